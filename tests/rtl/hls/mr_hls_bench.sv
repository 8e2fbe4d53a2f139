// SPDX-License-Identifier: Apache-2.0
//
// For tests/rtl/hls/tb.cpp: the generated cores side by side, each with operands of its own, and a
// whole lane. The latencies are outputs, so that the bench knows them from the package alone.
module mr_hls_bench (
    input  logic        clk_i,
    input  logic        rst_ni,
    input  logic [31:0] a_i,
    input  logic [31:0] b_i,
    input  logic [15:0] core_unit_i,
    input  logic [7:0]  code_i,
    output logic [31:0] sum_o,
    output logic [31:0] product_o,
    output logic [31:0] quotient_o,
    output logic [31:0] root_o,
    output logic [31:0] number_o,    // a_i x 2^core_unit_i
    output logic [7:0]  element_o,
    output logic [31:0] add_lat_o,
    output logic [31:0] multiply_lat_o,
    output logic [31:0] divide_lat_o,
    output logic [31:0] root_lat_o,
    output logic [31:0] widen_lat_o,
    output logic [31:0] quantise_lat_o,
    output logic [31:0] update_lat_o,

    input  logic [255:0] factors_i,  // scale, keep1, add1, keep2, add2, root, epsilon, rate
    input  logic         valid_i,
    input  logic [31:0]  w_i,
    input  logic [31:0]  m_i,
    input  logic [31:0]  v_i,
    input  logic [31:0]  gradient_i,
    input  logic [15:0]  unit_i,
    input  logic [31:0]  decay_i,
    output logic         valid_o,
    output logic [31:0]  w_o,
    output logic [31:0]  m_o,
    output logic [31:0]  v_o
);
  assign add_lat_o = mr_hls_pkg::ADD_LAT;
  assign multiply_lat_o = mr_hls_pkg::MULTIPLY_LAT;
  assign divide_lat_o = mr_hls_pkg::DIVIDE_LAT;
  assign root_lat_o = mr_hls_pkg::ROOT_LAT;
  assign widen_lat_o = mr_hls_pkg::WIDEN_LAT;
  assign quantise_lat_o = mr_hls_pkg::QUANTISE_LAT;
  assign update_lat_o = mr_hls_pkg::UPDATE_LAT;

  mr_hls_add u_add (.clk_i, .a_i, .b_i, .y_o(sum_o));
  mr_hls_multiply u_multiply (.clk_i, .a_i, .b_i, .y_o(product_o));
  mr_hls_divide u_divide (.clk_i, .a_i, .b_i, .y_o(quotient_o));
  mr_hls_root u_root (.clk_i, .a_i, .y_o(root_o));
  mr_hls_widen u_widen (.clk_i, .gradient_i(a_i), .unit_i(core_unit_i), .y_o(number_o));
  mr_hls_quantise u_quantise (.clk_i, .a_i, .code_i, .y_o(element_o));

  mr_update_lane u_lane (
      .clk_i, .rst_ni, .valid_i, .w_i, .m_i, .v_i, .gradient_i, .unit_i, .decay_i,
      .scale_i(factors_i[31:0]), .keep1_i(factors_i[63:32]), .add1_i(factors_i[95:64]),
      .keep2_i(factors_i[127:96]), .add2_i(factors_i[159:128]), .root_i(factors_i[191:160]),
      .epsilon_i(factors_i[223:192]), .rate_i(factors_i[255:224]), .valid_o, .w_o, .m_o, .v_o
  );
endmodule
