// SPDX-License-Identifier: Apache-2.0
// In place of mr_ram_1r1w: a memory that may have anything in it.
module mr_ram_1r1w #(
  parameter int W = 8,
  parameter int DEPTH = 16,
  parameter int APART = 0
) (
  input  logic                     clk_i,
  input  logic                     wen_i,
  input  logic [$clog2(DEPTH)-1:0] waddr_i,
  input  logic [W-1:0]             wdata_i,
  input  logic                     ren_i,
  input  logic [$clog2(DEPTH)-1:0] raddr_i,
  output logic [W-1:0]             rdata_o
);

  (* anyseq *) logic [W-1:0] any;
  always_ff @(posedge clk_i) if (ren_i) rdata_o <= any;

endmodule
