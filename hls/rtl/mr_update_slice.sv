// SPDX-License-Identifier: Apache-2.0
// A register in a stream: what a memory gave stands here before it leaves a block.
//
// valid/ready on both sides. in_ready_o is high while the register is empty or out_ready_i is;
// out_valid_o and out_data_o come from registers. One word a cycle.
module mr_update_slice #(
  parameter int W = 512
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
  assign in_ready_o = !out_valid_o || out_ready_i;
  always_ff @(posedge clk_i) begin
    if (!rst_ni) out_valid_o <= 1'b0;
    else out_valid_o <= in_valid_i || !in_ready_o;
    if (in_valid_i && in_ready_o) out_data_o <= in_data_i;
  end
endmodule
