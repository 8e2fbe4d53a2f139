// SPDX-License-Identifier: Apache-2.0
//
// A word, N cycles later. No reset, so that shift registers of LUTs can hold it.
//
// W: bits of a word. N: cycles, 1 or more.
// Timing: d_i in any cycle; q_o N cycles later. No stall.
module mr_hls_delay #(
    parameter int W = 32,
    parameter int N = 1
) (
    input  logic         clk_i,
    input  logic [W-1:0] d_i,
    output logic [W-1:0] q_o
);
  logic [N*W-1:0] line_q;

  if (N == 1) begin : gen_one
    always_ff @(posedge clk_i) line_q <= d_i;
  end else begin : gen_more
    always_ff @(posedge clk_i) line_q <= {line_q[(N-1)*W-1:0], d_i};
  end

  assign q_o = line_q[(N-1)*W+:W];
endmodule
