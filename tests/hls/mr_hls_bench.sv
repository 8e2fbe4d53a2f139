// SPDX-License-Identifier: Apache-2.0
//
// For tests/hls/tb.cpp: the generated cores side by side. The latencies are outputs, so that the
// bench knows them from the package alone.
module mr_hls_bench (
    input  logic        clk_i,
    input  logic        rst_ni,      // the cores have no reset
    input  logic [31:0] a_i,
    input  logic [31:0] b_i,
    input  logic [15:0] unit_i,
    input  logic [7:0]  code_i,
    output logic [31:0] sum_o,
    output logic [31:0] product_o,
    output logic [31:0] quotient_o,
    output logic [31:0] root_o,
    output logic [31:0] number_o,    // a_i x 2^unit_i
    output logic [7:0]  element_o,
    output logic [31:0] add_lat_o,
    output logic [31:0] multiply_lat_o,
    output logic [31:0] divide_lat_o,
    output logic [31:0] root_lat_o,
    output logic [31:0] widen_lat_o,
    output logic [31:0] quantise_lat_o
);
  logic unused_rst;
  assign unused_rst = rst_ni;
  assign add_lat_o = mr_hls_pkg::ADD_LAT;
  assign multiply_lat_o = mr_hls_pkg::MULTIPLY_LAT;
  assign divide_lat_o = mr_hls_pkg::DIVIDE_LAT;
  assign root_lat_o = mr_hls_pkg::ROOT_LAT;
  assign widen_lat_o = mr_hls_pkg::WIDEN_LAT;
  assign quantise_lat_o = mr_hls_pkg::QUANTISE_LAT;

  mr_hls_add u_add (.clk_i, .a_i, .b_i, .y_o(sum_o));
  mr_hls_multiply u_multiply (.clk_i, .a_i, .b_i, .y_o(product_o));
  mr_hls_divide u_divide (.clk_i, .a_i, .b_i, .y_o(quotient_o));
  mr_hls_root u_root (.clk_i, .a_i, .y_o(root_o));
  mr_hls_widen u_widen (.clk_i, .gradient_i(a_i), .unit_i, .y_o(number_o));
  mr_hls_quantise u_quantise (.clk_i, .a_i, .code_i, .y_o(element_o));
endmodule
