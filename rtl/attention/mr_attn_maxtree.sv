// SPDX-License-Identifier: Apache-2.0
// Largest of N ordered 32-bit keys, a register level per halving; keys outside mask_i count as 0.
//
// Parameters
//   N  keys (power of two)
//
// Timing: valid_i with in_i, one result a cycle, valid_o with max_o $clog2(N) cycles later. mask_i
// is constant over an operation (N = 1: the key goes through).
module mr_attn_maxtree #(
  parameter int N = 1
) (
  input  logic            clk_i,
  input  logic            rst_ni,
  input  logic            valid_i,
  input  logic [N-1:0]    mask_i,
  input  logic [N*32-1:0] in_i,
  output logic            valid_o,
  output logic [31:0]     max_o
);

  localparam int LEVELS = $clog2(N);

  if (N == 1) begin : gen_wire
    logic unused;
    assign unused  = ^{clk_i, rst_ni, mask_i};
    assign valid_o = valid_i;
    assign max_o   = in_i;
  end else begin : gen_tree
    function automatic logic [31:0] max32(input logic [31:0] a, input logic [31:0] b);
      max32 = (a > b) ? a : b;
    endfunction

    // Heap, as in mr_attn_tree.
    logic [LEVELS-1:0] v_q;
    logic [31:0] node_q [1:N-1];

    always_ff @(posedge clk_i) begin
      if (!rst_ni) v_q <= '0;
      else v_q <= LEVELS'({v_q, valid_i});
    end

    for (genvar i = 1; i < N; i++) begin : gen_node
      if (2 * i >= N) begin : gen_leaf
        always_ff @(posedge clk_i) begin
          if (valid_i)
            node_q[i] <= max32(mask_i[2*i-N] ? in_i[(2*i-N)*32+:32] : 32'd0,
                               mask_i[2*i+1-N] ? in_i[(2*i+1-N)*32+:32] : 32'd0);
        end
      end else begin : gen_inner
        always_ff @(posedge clk_i) begin
          if (v_q[LEVELS-1-$clog2(i+1)]) node_q[i] <= max32(node_q[2*i], node_q[2*i+1]);
        end
      end
    end

    assign valid_o = v_q[LEVELS-1];
    assign max_o   = node_q[1];
  end

endmodule
