// SPDX-License-Identifier: Apache-2.0
// Sum, or largest, of N vectors of LANES integers, lane by lane, a register level per halving;
// vectors outside mask_i count as zero.
//
// Parameters
//   N      vectors (power of two); LANES integers a vector; W bits of an integer
//   MAX    1: the largest, of integers without sign, in place of the sum
//
// Timing: valid_i with in_i, one y_o a cycle, valid_o with y_o $clog2(N) cycles later. mask_i is
// constant over an operation (N = 1: the vector goes through).
module mr_attn_tree #(
  parameter int N = 1,
  parameter int LANES = 4,
  parameter int W = 48,
  parameter int MAX = 0
) (
  input  logic                 clk_i,
  input  logic                 rst_ni,
  input  logic                 valid_i,
  input  logic [N-1:0]         mask_i,
  input  logic [N*LANES*W-1:0] in_i,
  output logic                 valid_o,
  output logic [LANES*W-1:0]   y_o
);

  localparam int LW = LANES * W;
  localparam int LEVELS = $clog2(N);

  if (N == 1) begin : gen_wire
    logic unused;
    assign unused  = ^{clk_i, rst_ni, mask_i};
    assign valid_o = valid_i;
    assign y_o     = in_i;
  end else begin : gen_tree
    function automatic logic [LW-1:0] both(input logic [LW-1:0] a, input logic [LW-1:0] b);
      for (int k = 0; k < LANES; k++)
        if (MAX != 0) both[k*W+:W] = (a[k*W+:W] > b[k*W+:W]) ? a[k*W+:W] : b[k*W+:W];
        else both[k*W+:W] = a[k*W+:W] + b[k*W+:W];
    endfunction

    // Heap: node 1 is the result, nodes i's operands are nodes 2i and 2i+1; node N + c is input c.
    logic [LEVELS-1:0] v_q;
    logic [LW-1:0] node_q [1:N-1];

    always_ff @(posedge clk_i) begin
      if (!rst_ni) v_q <= '0;
      else v_q <= LEVELS'({v_q, valid_i});
    end

    for (genvar i = 1; i < N; i++) begin : gen_node
      if (2 * i >= N) begin : gen_leaf
        always_ff @(posedge clk_i) begin
          if (valid_i)
            node_q[i] <= both(mask_i[2*i-N] ? in_i[(2*i-N)*LW+:LW] : '0,
                              mask_i[2*i+1-N] ? in_i[(2*i+1-N)*LW+:LW] : '0);
        end
      end else begin : gen_inner
        always_ff @(posedge clk_i) begin
          if (v_q[LEVELS-1-$clog2(i+1)]) node_q[i] <= both(node_q[2*i], node_q[2*i+1]);
        end
      end
    end

    assign valid_o = v_q[LEVELS-1];
    assign y_o     = node_q[1];
  end

endmodule
