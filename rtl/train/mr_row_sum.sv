// SPDX-License-Identifier: Apache-2.0
// Sum of the lanes of all words since clear_i.
//
// Parameters
//   V    lanes, a power of two, at least 2
//   W    bits of a lane, signed
//   SUM  bits of the sum, which wraps
//
// Timing: a word a cycle; sum_o has it log2(V) + 1 cycles later.
module mr_row_sum #(
  parameter int V = 4,
  parameter int W = 25,
  parameter int SUM = 48
) (
  input  logic           clk_i,
  input  logic           rst_ni,
  input  logic           clear_i,
  input  logic           valid_i,
  input  logic [V*W-1:0] data_i,
  output logic [SUM-1:0] sum_o
);

  localparam int LOG = $clog2(V);
  localparam int TW = W + LOG;

  // Node i sums nodes 2i + 1 and 2i + 2; the leaves are the lanes, the root is node 0.
  logic [LOG-1:0]      v_q;
  logic [(V-1)*TW-1:0] t_q;
  always_ff @(posedge clk_i) begin
    if (!rst_ni) v_q <= '0;
    else v_q <= LOG'({v_q, valid_i});
  end
  for (genvar k = 0; k < LOG; k++) begin : gen_level
    for (genvar i = (V >> (k + 1)) - 1; i < (V >> k) - 1; i++) begin : gen_node
      logic [TW-1:0] a, b;
      if (k == 0) begin : gen_leaves
        localparam int L = 2 * i + 1 - (V - 1);
        assign a = {{LOG{data_i[W*L+W-1]}}, data_i[W*L+:W]};
        assign b = {{LOG{data_i[W*L+2*W-1]}}, data_i[W*L+W+:W]};
      end else begin : gen_nodes
        assign a = t_q[TW*(2*i+1)+:TW];
        assign b = t_q[TW*(2*i+2)+:TW];
      end
      always_ff @(posedge clk_i) begin
        if (k == 0 ? valid_i : v_q[k > 0 ? k - 1 : 0]) t_q[TW*i+:TW] <= a + b;
      end
    end
  end
  always_ff @(posedge clk_i) begin
    if (clear_i) sum_o <= '0;
    else if (v_q[LOG-1]) sum_o <= sum_o + {{(SUM - TW) {t_q[TW-1]}}, t_q[TW-1:0]};
  end
endmodule
