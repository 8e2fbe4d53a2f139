// SPDX-License-Identifier: Apache-2.0
// Two-entry register slice: cuts the combinational path of valid/payload and of ready.
//
// Parameters
//   W  payload width in bits
//
// Timing: valid/ready on both sides, all outputs from registers; latency 1, one beat a cycle.
module mr_skid #(
  parameter int W = 32
) (
  input  logic         clk_i,
  input  logic         rst_ni,
  input  logic         in_valid_i,
  output logic         in_ready_o,
  input  logic [W-1:0] in_data_i,
  output logic         out_valid_o,
  input  logic         out_ready_i,
  output logic [W-1:0] out_data_o
);

  logic out_valid_q, hold_valid_q;
  logic [W-1:0] out_q, hold_q;

  assign in_ready_o  = !hold_valid_q;
  assign out_valid_o = out_valid_q;
  assign out_data_o  = out_q;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      out_valid_q  <= 1'b0;
      hold_valid_q <= 1'b0;
    end else begin
      if (!out_valid_q || out_ready_i) begin
        out_valid_q  <= hold_valid_q || in_valid_i;
        hold_valid_q <= 1'b0;
      end else if (in_valid_i && in_ready_o) begin
        hold_valid_q <= 1'b1;
      end
    end
  end

  always_ff @(posedge clk_i) begin
    if (!out_valid_q || out_ready_i) begin
      if (hold_valid_q) out_q <= hold_q;
      else if (in_valid_i) out_q <= in_data_i;
    end
    if (in_valid_i && in_ready_o && out_valid_q && !out_ready_i) hold_q <= in_data_i;
  end

`ifdef FORMAL
  `include "mr_skid_props.svh"
`endif

endmodule
