// SPDX-License-Identifier: Apache-2.0
// Reads a row of the residual memory and gives it in beats, for mr_kvstore's STORE_RES.
//
// Parameters: those of mr_kvstore
//
// Ports
//   start_i  high until the job of the row is taken; tok_i, beats_i hold until its last beat
//   ren_o    the residual memory: data one cycle later and held. want_o, from a register: it may
//            be read in this cycle
//   out_     valid/ready, beats_i beats
`include "mr_assert.svh"
module mr_row_beats #(
  parameter int T = 8,
  parameter int V = 4,
  parameter int D_MAX = 64,
  localparam int AW = $clog2(T * (D_MAX / V))
) (
  input  logic            clk_i,
  input  logic            rst_ni,
  input  logic            start_i,
  input  logic [15:0]     tok_i,
  input  logic [15:0]     beats_i,
  output logic            ren_o,
  output logic            want_o,
  output logic [AW-1:0]   raddr_o,
  input  logic [V*32-1:0] rdata_i,
  output logic            out_valid_o,
  input  logic            out_ready_i,
  output logic [511:0]    out_data_o
);

  logic          more_q;  // words are still to be read
  logic          rv_q;    // one is at the memory's output
  logic          ready;
  logic [15:0]   left_q;
  logic [AW-1:0] addr_q;
  assign ren_o   = more_q && !start_i && (!rv_q || ready);
  assign want_o  = more_q;
  assign raddr_o = addr_q;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      rv_q   <= 1'b0;
      more_q <= 1'b0;
    end else begin
      if (ren_o) rv_q <= 1'b1;
      else if (ready) rv_q <= 1'b0;
      if (start_i) more_q <= beats_i != '0;
      else if (ren_o) more_q <= left_q != 16'd1;
    end
  end
  always_ff @(posedge clk_i) begin
    if (start_i) begin
      addr_q <= AW'(32'(tok_i) * (D_MAX / V));
      left_q <= (V <= 16) ? beats_i * 16'(16 / V) : beats_i / 16'(V / 16);
    end else if (ren_o) begin
      addr_q <= addr_q + AW'(1);
      left_q <= left_q - 16'd1;
    end
  end

  mr_width #(.IN(V * 32), .OUT(512)) u_width (
    .clk_i, .rst_ni, .clear_i(start_i),
    .in_valid_i(rv_q), .in_ready_o(ready), .in_data_i(rdata_i),
    .out_valid_o, .out_ready_i, .out_data_o
  );

  // A row begins when the one before has gone out, and has no more words than its beats.
  `MR_ASSERT(start, !start_i || (!rv_q && !out_valid_o))
  `MR_ASSERT(left, !ren_o || left_q != '0)
  `MR_ASSERT_STABLE(out, out_valid_o, out_ready_i, out_data_o)

endmodule
