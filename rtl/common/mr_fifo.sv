// SPDX-License-Identifier: Apache-2.0
// First-in first-out buffer in a RAM, with a show-ahead output: out_data_o is the oldest entry.
//
// Parameters
//   W      entry width in bits
//   DEPTH  entries, >= 2, any number; all of them usable
//
// Timing: valid/ready on both sides. in_ready_o depends on registers only (count_o < DEPTH; a pop
// in the same cycle does not help), out_valid_o too. An entry that is pushed into an empty FIFO in
// cycle t is at the output in t+2; one entry a cycle is sustained on both sides from DEPTH 3 on.
// count_o is the number of entries inside, the one at the output included. clear_i drops all
// entries (in_valid_i must be low in that cycle, or its beat is dropped too).
`include "mr_assert.svh"
module mr_fifo #(
  parameter int W = 32,
  parameter int DEPTH = 16
) (
  input  logic                       clk_i,
  input  logic                       rst_ni,
  input  logic                       clear_i,
  input  logic                       in_valid_i,
  output logic                       in_ready_o,
  input  logic [W-1:0]               in_data_i,
  output logic                       out_valid_o,
  input  logic                       out_ready_i,
  output logic [W-1:0]               out_data_o,
  output logic [$clog2(DEPTH+1)-1:0] count_o
);

  localparam int AW = $clog2(DEPTH);
  localparam int CW = $clog2(DEPTH + 1);

  logic [AW-1:0] wptr_q, rptr_q;
  logic [CW-1:0] count_q;  // all entries
  logic          ram_q;    // the RAM has one: count_q is more than what the output register holds
  logic          out_valid_q;

  logic push, pop, fetch;
  assign in_ready_o  = (count_q != CW'(DEPTH));
  assign out_valid_o = out_valid_q;
  assign count_o     = count_q;
  assign push        = in_valid_i && in_ready_o;
  assign pop         = out_valid_q && out_ready_i;
  // The RAM's read register is the output register: refill it whenever it is or becomes free.
  assign fetch       = ram_q && (!out_valid_q || out_ready_i);

  always_ff @(posedge clk_i) begin
    if (!rst_ni || clear_i) begin
      wptr_q      <= '0;
      rptr_q      <= '0;
      count_q     <= '0;
      ram_q       <= 1'b0;
      out_valid_q <= 1'b0;
    end else begin
      if (push) wptr_q <= (wptr_q == AW'(DEPTH - 1)) ? '0 : wptr_q + 1'b1;
      if (fetch) rptr_q <= (rptr_q == AW'(DEPTH - 1)) ? '0 : rptr_q + 1'b1;
      // Push and pop come late: they choose between one more and one less (x - 1 = ~(~x + 1), which
      // synthesis does not make one adder with a late operand).
      if (push != pop) count_q <= push ? count_q + 1'b1 : ~(~count_q + 1'b1);
      if (push != fetch) ram_q <= push || count_q != (out_valid_q ? CW'(2) : CW'(1));
      if (fetch) out_valid_q <= 1'b1;
      else if (pop) out_valid_q <= 1'b0;
    end
  end

`ifndef FORMAL  // no proof relies on it
  // A writer that does not look at in_ready_o never meets it low: its entry would be lost.
  `MR_ASSERT_STABLE(in, in_valid_i, in_ready_o || clear_i, in_data_i)
`endif
  `MR_ASSERT_STABLE(out, out_valid_o, out_ready_i || clear_i, out_data_o)
  `MR_ASSERT_COUNT(count, count_q, push, pop, DEPTH)

`ifdef FORMAL
  logic [AW-1:0] f_addr;
  logic [W-1:0] f_data;
`endif
  // Both pointers are the same only while the RAM is empty, which is not read, or full.
  mr_ram_1r1w #(.W(W), .DEPTH(DEPTH), .APART(1)) u_ram (
    .clk_i, .wen_i(push), .waddr_i(wptr_q), .wdata_i(in_data_i),
    .ren_i(fetch), .raddr_i(rptr_q), .rdata_o(out_data_o)
`ifdef FORMAL
    , .f_addr_i(f_addr), .f_data_o(f_data)
`endif
  );

`ifdef FORMAL
  `include "mr_fifo_props.svh"
`endif

endmodule
