// SPDX-License-Identifier: Apache-2.0
// A RAM of the stand-in core: simple dual port, readable from outside in a view build.
module simlib_ram #(
    parameter DEPTH = 16,
    parameter WIDTH = 512
) (
    input  logic                     clk_i,
    input  logic                     wen_i,
    input  logic [$clog2(DEPTH)-1:0] waddr_i,
    input  logic [WIDTH-1:0]         wdata_i
);

`ifdef MILLRACE_VIEW
  logic [WIDTH-1:0] mem[0:DEPTH-1]  /*verilator public_flat_rd*/;
`else
  // verilator lint_off UNUSED
  logic [WIDTH-1:0] mem[0:DEPTH-1];
  // verilator lint_on UNUSED
`endif

  always_ff @(posedge clk_i) begin
    if (wen_i) mem[waddr_i] <= wdata_i;
  end

endmodule
