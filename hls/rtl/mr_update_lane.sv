// SPDX-License-Identifier: Apache-2.0
//
// AdamW of one weight a cycle, rule 14 of docs/numerics.md; update() of hls/datapath.h bit for bit.
// The cores are those functions; what waits for them stands in delay lines.
//
//   gradient, unit -> widen -> x scale = d        w x decay = shrink
//   m' = m x keep1 + d x add1                     v' = v x keep2 + (d x d) x add2
//   below = root(v') x root + epsilon             w' = w - ((m' / below) x rate + shrink)
//
// Timing: w_i, m_i, v_i, gradient_i, unit_i and decay_i with valid_i, in any cycle; w_o, m_o, v_o
// with valid_o, mr_hls_pkg::UPDATE_LAT cycles later. No stall: who stops the results has room for
// that many. The other factors belong to a step and stand still while valid_o is to come.
module mr_update_lane (
    input  logic        clk_i,
    input  logic        rst_ni,
    input  logic [31:0] scale_i,
    input  logic [31:0] keep1_i,
    input  logic [31:0] add1_i,
    input  logic [31:0] keep2_i,
    input  logic [31:0] add2_i,
    input  logic [31:0] root_i,
    input  logic [31:0] epsilon_i,
    input  logic [31:0] rate_i,
    input  logic        valid_i,
    input  logic [31:0] w_i,
    input  logic [31:0] m_i,
    input  logic [31:0] v_i,
    input  logic [31:0] gradient_i,  // an integer; its number is gradient_i x 2^unit_i
    input  logic [15:0] unit_i,      // signed, -400 .. 400
    input  logic [31:0] decay_i,     // rate x weight decay, or 0
    output logic        valid_o,
    output logic [31:0] w_o,
    output logic [31:0] m_o,
    output logic [31:0] v_o
);
  localparam int ADD_LAT = mr_hls_pkg::ADD_LAT;
  localparam int MULTIPLY_LAT = mr_hls_pkg::MULTIPLY_LAT;
  localparam int UPDATE_LAT = mr_hls_pkg::UPDATE_LAT;
  // Cycles from the operands to each value.
  localparam int D_AT = mr_hls_pkg::WIDEN_LAT + MULTIPLY_LAT;
  localparam int M_AT = D_AT + MULTIPLY_LAT + ADD_LAT;
  localparam int V_AT = D_AT + 2 * MULTIPLY_LAT + ADD_LAT;
  localparam int BELOW_AT = V_AT + mr_hls_pkg::ROOT_LAT + MULTIPLY_LAT + ADD_LAT;
  localparam int MOVE_AT = BELOW_AT + mr_hls_pkg::DIVIDE_LAT + MULTIPLY_LAT;

  logic [31:0] widened, d, d_part, d_square, square_part;
  logic [31:0] keep_m, keep_m_late, keep_v, keep_v_late, m, m_late, v;
  logic [31:0] root, scaled, below, quotient, move, shrink, shrink_late, change, w_late;

  // ---- the gradient ----
  mr_hls_widen u_widen (.clk_i, .gradient_i, .unit_i, .y_o(widened));
  mr_hls_multiply u_d (.clk_i, .a_i(widened), .b_i(scale_i), .y_o(d));

  // ---- the first moment ----
  mr_hls_multiply u_keep_m (.clk_i, .a_i(m_i), .b_i(keep1_i), .y_o(keep_m));
  mr_hls_delay #(.N(D_AT)) u_keep_m_late (.clk_i, .d_i(keep_m), .q_o(keep_m_late));
  mr_hls_multiply u_d_part (.clk_i, .a_i(d), .b_i(add1_i), .y_o(d_part));
  mr_hls_add u_m (.clk_i, .a_i(keep_m_late), .b_i(d_part), .y_o(m));

  // ---- the second moment ----
  mr_hls_multiply u_keep_v (.clk_i, .a_i(v_i), .b_i(keep2_i), .y_o(keep_v));
  mr_hls_delay #(.N(D_AT + MULTIPLY_LAT)) u_keep_v_late (.clk_i, .d_i(keep_v), .q_o(keep_v_late));
  mr_hls_multiply u_d_square (.clk_i, .a_i(d), .b_i(d), .y_o(d_square));
  mr_hls_multiply u_square_part (.clk_i, .a_i(d_square), .b_i(add2_i), .y_o(square_part));
  mr_hls_add u_v (.clk_i, .a_i(keep_v_late), .b_i(square_part), .y_o(v));

  // ---- the step ----
  mr_hls_root u_root (.clk_i, .a_i(v), .y_o(root));
  mr_hls_multiply u_scaled (.clk_i, .a_i(root), .b_i(root_i), .y_o(scaled));
  mr_hls_add u_below (.clk_i, .a_i(scaled), .b_i(epsilon_i), .y_o(below));
  mr_hls_delay #(.N(BELOW_AT - M_AT)) u_m_late (.clk_i, .d_i(m), .q_o(m_late));
  mr_hls_divide u_quotient (.clk_i, .a_i(m_late), .b_i(below), .y_o(quotient));
  mr_hls_multiply u_move (.clk_i, .a_i(quotient), .b_i(rate_i), .y_o(move));

  // ---- the weight ----
  mr_hls_multiply u_shrink (.clk_i, .a_i(w_i), .b_i(decay_i), .y_o(shrink));
  mr_hls_delay #(.N(MOVE_AT - MULTIPLY_LAT))
      u_shrink_late (.clk_i, .d_i(shrink), .q_o(shrink_late));
  mr_hls_add u_change (.clk_i, .a_i(move), .b_i(shrink_late), .y_o(change));
  mr_hls_delay #(.N(MOVE_AT + ADD_LAT)) u_w_late (.clk_i, .d_i(w_i), .q_o(w_late));
  mr_hls_add u_w (.clk_i, .a_i(w_late), .b_i({~change[31], change[30:0]}), .y_o(w_o));

  // ---- what is ready before the weight ----
  mr_hls_delay #(.N(UPDATE_LAT - BELOW_AT)) u_m_out (.clk_i, .d_i(m_late), .q_o(m_o));
  mr_hls_delay #(.N(UPDATE_LAT - V_AT)) u_v_out (.clk_i, .d_i(v), .q_o(v_o));

  logic [UPDATE_LAT-1:0] valid_q;
  always_ff @(posedge clk_i) begin
    if (!rst_ni) valid_q <= '0;
    else valid_q <= {valid_q[UPDATE_LAT-2:0], valid_i};
  end
  assign valid_o = valid_q[UPDATE_LAT-1];
endmodule
