// SPDX-License-Identifier: Apache-2.0
// Largest float of the lanes of all words since clear_i: fmax of docs/inside/numerics.md but for
// the sign of a zero. A NaN, which is the canonical one, is larger than all; what is not live is
// smaller.
//
// Parameters
//   V  lanes, a power of two, at least 2
//
// Timing: a word a cycle; max_o has it log2(V) + 1 cycles later.
module mr_row_max #(
  parameter int V = 4
) (
  input  logic            clk_i,
  input  logic            rst_ni,
  input  logic            clear_i,
  input  logic            valid_i,
  input  logic [V-1:0]    live_i,
  input  logic [V*32-1:0] data_i,
  output logic [31:0]     max_o
);

  localparam int LOG = $clog2(V);

  // Floats in the order of unsigned integers; 0 is below them all.
  function automatic [31:0] key(input [31:0] x);
    key = x[31] ? ~x : {1'b1, x[30:0]};
  endfunction
  function automatic [31:0] larger(input [31:0] a, input [31:0] b);
    larger = a > b ? a : b;
  endfunction

  // Node i is the larger of nodes 2i + 1 and 2i + 2; the leaves are the lanes, the root is node 0.
  logic [LOG-1:0]      v_q;
  logic [(V-1)*32-1:0] t_q;
  logic [31:0]         key_q;
  always_ff @(posedge clk_i) begin
    if (!rst_ni) v_q <= '0;
    else v_q <= LOG'({v_q, valid_i});
  end
  for (genvar k = 0; k < LOG; k++) begin : gen_level
    for (genvar i = (V >> (k + 1)) - 1; i < (V >> k) - 1; i++) begin : gen_node
      logic [31:0] a, b;
      if (k == 0) begin : gen_leaves
        localparam int L = 2 * i + 1 - (V - 1);
        assign a = key(data_i[32*L+:32]) & {32{live_i[L]}};
        assign b = key(data_i[32*L+32+:32]) & {32{live_i[L+1]}};
      end else begin : gen_nodes
        assign a = t_q[32*(2*i+1)+:32];
        assign b = t_q[32*(2*i+2)+:32];
      end
      always_ff @(posedge clk_i) begin
        if (k == 0 ? valid_i : v_q[k > 0 ? k - 1 : 0]) t_q[32*i+:32] <= larger(a, b);
      end
    end
  end
  always_ff @(posedge clk_i) begin
    if (clear_i) key_q <= '0;
    else if (v_q[LOG-1]) key_q <= larger(key_q, t_q[31:0]);
  end
  assign max_o = key_q[31] ? {1'b0, key_q[30:0]} : ~key_q;
endmodule
