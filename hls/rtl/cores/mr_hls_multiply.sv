// SPDX-License-Identifier: Apache-2.0
// Made by hls/xls/generate.py from core_multiply() of hls/xls/cores.cpp; change it there.
//
// Timing: operands in any cycle; y_o mr_hls_pkg::MULTIPLY_LAT cycles later, 6. No stall, no
// reset.
//
// XLS slices what it needs from values of whole functions, so parts of them are unused.
// verilator lint_off UNUSEDSIGNAL
module mr_hls_multiply(
  input wire clk_i,
  input wire [31:0] a_i,
  input wire [31:0] b_i,
  output wire [31:0] y_o
);
  wire [40:0] v72;
  wire [40:0] v64;

  // ===== Pipe stage 0:
  wire p0_literal_1134_comb;
  wire [7:0] p0_bit_slice_1141_comb;
  wire [7:0] p0_literal_1142_comb;
  wire p0_v16_comb;
  wire p0_not_1160_comb;
  wire [7:0] p0_bit_slice_1163_comb;
  wire [7:0] p0_literal_1170_comb;
  wire [30:0] p0_b_i_bits_0_width_31_comb;
  wire [30:0] p0_sign_ext_1172_comb;
  wire p0_v5_comb;
  wire p0_v32_comb;
  wire p0_ne_1180_comb;
  wire [30:0] p0_literal_1181_comb;
  wire p0_b_i_portion_31_width_1_comb;
  wire [30:0] p0_v19_squeezed_portion_0_width_31_comb;
  wire p0_not_1187_comb;
  wire [30:0] p0_a_i_bits_0_width_31_comb;
  wire p0_v42_comb;
  wire p0_v48_comb;
  wire p0_v14_comb;
  wire [31:0] p0_v19_comb;
  wire [31:0] p0_v9_comb;
  wire [22:0] p0_bit_slice_1219_comb;
  wire [22:0] p0_sign_ext_1220_comb;
  wire p0_v3_comb;
  wire p0_v129_comb;
  wire [31:0] p0_v21_comb;
  wire [8:0] p0_v29__2_comb;
  wire [8:0] p0_v25__2_comb;
  wire p0_bit_slice_1246_comb;
  wire [22:0] p0_v8_squeezed_portion_0_width_31__1_comb;
  wire [22:0] p0_literal_1248_comb;
  wire p0_v130_comb;
  wire [16:0] p0_v69__1_comb;
  wire [8:0] p0_add_1270_comb;
  wire p0_v121__1_comb;
  wire [5:0] p0_bit_slice_1291_comb;
  wire [22:0] p0_v10__1_comb;
  wire [23:0] p0_bit_slice_1299_comb;
  wire [16:0] p0_bit_slice_1300_comb;
  assign p0_literal_1134_comb = 1'h0;
  assign p0_bit_slice_1141_comb = b_i[30:23];
  assign p0_literal_1142_comb = 8'h00;
  assign p0_v16_comb = p0_bit_slice_1141_comb == p0_literal_1142_comb;
  assign p0_not_1160_comb = ~p0_v16_comb;
  assign p0_bit_slice_1163_comb = a_i[30:23];
  assign p0_literal_1170_comb = 8'hff;
  assign p0_b_i_bits_0_width_31_comb = b_i[30:0];
  assign p0_sign_ext_1172_comb = {31{p0_not_1160_comb}};
  assign p0_v5_comb = p0_bit_slice_1163_comb == p0_literal_1142_comb;
  assign p0_v32_comb = p0_bit_slice_1163_comb != p0_literal_1170_comb;
  assign p0_ne_1180_comb = p0_bit_slice_1141_comb != p0_literal_1170_comb;
  assign p0_literal_1181_comb = 31'h7f80_0000;
  assign p0_b_i_portion_31_width_1_comb = b_i[31];
  assign p0_v19_squeezed_portion_0_width_31_comb = p0_b_i_bits_0_width_31_comb & p0_sign_ext_1172_comb;
  assign p0_not_1187_comb = ~p0_v5_comb;
  assign p0_a_i_bits_0_width_31_comb = a_i[30:0];
  assign p0_v42_comb = ~(p0_v32_comb & p0_ne_1180_comb);
  assign p0_v48_comb = p0_v5_comb | p0_v16_comb;
  assign p0_v14_comb = p0_b_i_bits_0_width_31_comb > p0_literal_1181_comb;
  assign p0_v19_comb = {p0_b_i_portion_31_width_1_comb, p0_v19_squeezed_portion_0_width_31_comb};
  assign p0_v9_comb = 32'h7fc0_0000;
  assign p0_bit_slice_1219_comb = a_i[22:0];
  assign p0_sign_ext_1220_comb = {23{p0_not_1187_comb}};
  assign p0_v3_comb = p0_a_i_bits_0_width_31_comb > p0_literal_1181_comb;
  assign p0_v129_comb = p0_v42_comb & p0_v48_comb;
  assign p0_v21_comb = p0_v14_comb ? p0_v9_comb : p0_v19_comb;
  assign p0_v29__2_comb = {p0_literal_1134_comb, p0_bit_slice_1141_comb};
  assign p0_v25__2_comb = {p0_literal_1134_comb, p0_bit_slice_1163_comb};
  assign p0_bit_slice_1246_comb = a_i[31];
  assign p0_v8_squeezed_portion_0_width_31__1_comb = p0_bit_slice_1219_comb & p0_sign_ext_1220_comb;
  assign p0_literal_1248_comb = 23'h40_0000;
  assign p0_v130_comb = p0_v3_comb | p0_v14_comb | p0_v129_comb;
  assign p0_v69__1_comb = p0_v21_comb[16:0];
  assign p0_add_1270_comb = p0_v29__2_comb + p0_v25__2_comb;
  assign p0_v121__1_comb = p0_b_i_portion_31_width_1_comb ^ p0_bit_slice_1246_comb;
  assign p0_bit_slice_1291_comb = p0_v21_comb[22:17];
  assign p0_v10__1_comb = p0_v3_comb ? p0_literal_1248_comb : p0_v8_squeezed_portion_0_width_31__1_comb;
  assign p0_bit_slice_1299_comb = v72[40:17];
  assign p0_bit_slice_1300_comb = v72[16:0];

  // Registers for pipe stage 0:
  reg [40:0] p1_v64;
  reg p0_v130;
  reg [16:0] p0_v69__1;
  reg [8:0] p0_add_466;
  reg p0_v16;
  reg p0_v5;
  reg p0_v121__1;
  reg [5:0] p0_bit_slice_777;
  reg p0_v42;
  reg [22:0] p0_v10__1;
  reg [23:0] p1_bit_slice_903;
  reg [16:0] p1_bit_slice_905;
  always_ff @ (posedge clk_i) begin
    p1_v64 <= v64;
    p0_v130 <= p0_v130_comb;
    p0_v69__1 <= p0_v69__1_comb;
    p0_add_466 <= p0_add_1270_comb;
    p0_v16 <= p0_v16_comb;
    p0_v5 <= p0_v5_comb;
    p0_v121__1 <= p0_v121__1_comb;
    p0_bit_slice_777 <= p0_bit_slice_1291_comb;
    p0_v42 <= p0_v42_comb;
    p0_v10__1 <= p0_v10__1_comb;
    p1_bit_slice_903 <= p0_bit_slice_1299_comb;
    p1_bit_slice_905 <= p0_bit_slice_1300_comb;
  end

  // ===== Pipe stage 1:
  wire [17:0] p1_literal_1152_comb;
  wire [41:0] p1_concat_1161_comb;
  wire [41:0] p1_concat_1162_comb;
  wire [41:0] p1_add_1173_comb;
  wire [11:0] p1_bit_slice_1185_comb;
  wire [11:0] p1_literal_1186_comb;
  wire [59:0] p1_v74_narrowed_for_shll_comb;
  wire p1_v76_comb;
  wire [59:0] p1_v82_narrowed_comb;
  wire p1_literal_1195_comb;
  wire [10:0] p1_literal_1199_comb;
  wire [31:0] p1_v93_comb;
  wire [22:0] p1_v88__1_comb;
  wire p1_v84__1_comb;
  wire p1_v95__1_comb;
  wire p1_v78_comb;
  wire [23:0] p1_v55__1_comb;
  wire [16:0] p1_v61__1_comb;
  assign p1_literal_1152_comb = 18'h0_0000;
  assign p1_concat_1161_comb = {p0_literal_1134_comb, p1_v64};
  assign p1_concat_1162_comb = {p1_literal_1152_comb, p1_bit_slice_903};
  assign p1_add_1173_comb = p1_concat_1161_comb + p1_concat_1162_comb;
  assign p1_bit_slice_1185_comb = p1_add_1173_comb[41:30];
  assign p1_literal_1186_comb = 12'h000;
  assign p1_v74_narrowed_for_shll_comb = {p0_literal_1134_comb, p1_add_1173_comb, p1_bit_slice_905};
  assign p1_v76_comb = p1_bit_slice_1185_comb == p1_literal_1186_comb;
  assign p1_v82_narrowed_comb = p1_v74_narrowed_for_shll_comb << p1_v76_comb;
  assign p1_literal_1195_comb = 1'h1;
  assign p1_literal_1199_comb = 11'h001;
  assign p1_v93_comb = p1_v82_narrowed_comb[55:24];
  assign p1_v88__1_comb = p1_v82_narrowed_comb[22:0];
  assign p1_v84__1_comb = p1_v82_narrowed_comb[23];
  assign p1_v95__1_comb = p1_v82_narrowed_comb[24];
  assign p1_v78_comb = |p1_bit_slice_1185_comb;
  assign p1_v55__1_comb = {p1_literal_1195_comb, p0_v10__1};
  assign p1_v61__1_comb = {p1_literal_1199_comb, p0_bit_slice_777};

  // Registers for pipe stage 1:
  reg p1_v130;
  reg [8:0] p1_add_466;
  reg [31:0] p2_v93;
  reg [22:0] p2_v88__1;
  reg p2_v84__1;
  reg p2_v95__1;
  reg p1_v16;
  reg p1_v5;
  reg p2_v78;
  reg p1_v121__1;
  reg p1_v42;
  always_ff @ (posedge clk_i) begin
    p1_v130 <= p0_v130;
    p1_add_466 <= p0_add_466;
    p2_v93 <= p1_v93_comb;
    p2_v88__1 <= p1_v88__1_comb;
    p2_v84__1 <= p1_v84__1_comb;
    p2_v95__1 <= p1_v95__1_comb;
    p1_v16 <= p0_v16;
    p1_v5 <= p0_v5;
    p2_v78 <= p1_v78_comb;
    p1_v121__1 <= p0_v121__1;
    p1_v42 <= p0_v42;
  end

  // ===== Pipe stage 2:
  wire [22:0] p2_literal_1131_comb;
  wire p2_v90_comb;
  wire p2_v98_comb;
  wire [30:0] p2_v7_bits_0_width_31_comb;
  wire p2_v99_comb;
  wire [31:0] p2_v100_comb;
  wire [31:0] p2_v101_comb;
  wire [7:0] p2_bit_slice_1175_comb;
  wire p2_v103_comb;
  wire p2_not_1221_comb;
  wire [22:0] p2_bit_slice_1249_comb;
  wire [22:0] p2_sign_ext_1250_comb;
  wire [22:0] p2_v115__1_comb;
  assign p2_literal_1131_comb = 23'h00_0000;
  assign p2_v90_comb = p2_v88__1 != p2_literal_1131_comb;
  assign p2_v98_comb = p2_v90_comb | p2_v95__1;
  assign p2_v7_bits_0_width_31_comb = 31'h0000_0000;
  assign p2_v99_comb = p2_v84__1 & p2_v98_comb;
  assign p2_v100_comb = {p2_v7_bits_0_width_31_comb, p2_v99_comb};
  assign p2_v101_comb = p2_v100_comb + p2_v93;
  assign p2_bit_slice_1175_comb = p2_v101_comb[31:24];
  assign p2_v103_comb = |p2_bit_slice_1175_comb;
  assign p2_not_1221_comb = ~p2_v103_comb;
  assign p2_bit_slice_1249_comb = p2_v101_comb[22:0];
  assign p2_sign_ext_1250_comb = {23{p2_not_1221_comb}};
  assign p2_v115__1_comb = p2_bit_slice_1249_comb & p2_sign_ext_1250_comb;

  // Registers for pipe stage 2:
  reg p2_v130;
  reg p3_v103;
  reg [8:0] p2_add_466;
  reg p2_v16;
  reg p2_v5;
  reg p3_v78;
  reg p2_v121__1;
  reg p2_v42;
  reg [22:0] p3_v115__1;
  always_ff @ (posedge clk_i) begin
    p2_v130 <= p1_v130;
    p3_v103 <= p2_v103_comb;
    p2_add_466 <= p1_add_466;
    p2_v16 <= p1_v16;
    p2_v5 <= p1_v5;
    p3_v78 <= p2_v78;
    p2_v121__1 <= p1_v121__1;
    p2_v42 <= p1_v42;
    p3_v115__1 <= p2_v115__1_comb;
  end

  // ===== Pipe stage 3:

  // Registers for pipe stage 3:
  reg p3_v130;
  reg [8:0] p3_add_466;
  reg p3_v16;
  reg p3_v5;
  reg p3_v121__1;
  reg p3_v42;
  always_ff @ (posedge clk_i) begin
    p3_v130 <= p2_v130;
    p3_add_466 <= p2_add_466;
    p3_v16 <= p2_v16;
    p3_v5 <= p2_v5;
    p3_v121__1 <= p2_v121__1;
    p3_v42 <= p2_v42;
  end

  // ===== Pipe stage 4:
  wire [1:0] p4_concat_1139_comb;
  wire [1:0] p4_literal_1140_comb;
  wire [5:0] p4_literal_1145_comb;
  wire [1:0] p4_add_1146_comb;
  wire [8:0] p4_literal_1148_comb;
  wire [7:0] p4_concat_1157_comb;
  wire [9:0] p4_v105_associative_element_comb;
  wire [9:0] p4_concat_1159_comb;
  wire [31:0] p4_v117_comb;
  wire [9:0] p4_sign_ext_1165_comb;
  wire [9:0] p4_add_1166_comb;
  wire [9:0] p4_add_1176_comb;
  wire [9:0] p4_literal_1177_comb;
  wire [9:0] p4_literal_1189_comb;
  wire [8:0] p4_v116__1_comb;
  wire p4_sle_1194_comb;
  wire p4_v109_comb;
  wire [31:0] p4_v116_comb;
  wire p4_nor_1224_comb;
  wire [31:0] p4_v118_comb;
  wire [31:0] p4_sign_ext_1252_comb;
  wire [31:0] p4_v132_comb;
  assign p4_concat_1139_comb = {p0_literal_1134_comb, p3_v78};
  assign p4_literal_1140_comb = 2'h1;
  assign p4_literal_1145_comb = 6'h20;
  assign p4_add_1146_comb = p4_concat_1139_comb + p4_literal_1140_comb;
  assign p4_literal_1148_comb = 9'h000;
  assign p4_concat_1157_comb = {p4_literal_1145_comb, p4_add_1146_comb};
  assign p4_v105_associative_element_comb = {p0_literal_1134_comb, p3_add_466};
  assign p4_concat_1159_comb = {p4_literal_1148_comb, p3_v103};
  assign p4_v117_comb = 32'h7f80_0000;
  assign p4_sign_ext_1165_comb = {{2{p4_concat_1157_comb[7]}}, p4_concat_1157_comb};
  assign p4_add_1166_comb = p4_v105_associative_element_comb + p4_concat_1159_comb;
  assign p4_add_1176_comb = p4_sign_ext_1165_comb + p4_add_1166_comb;
  assign p4_literal_1177_comb = 10'h000;
  assign p4_literal_1189_comb = 10'h0fe;
  assign p4_v116__1_comb = p4_add_1176_comb[8:0];
  assign p4_sle_1194_comb = $signed(p4_add_1176_comb) <= $signed(p4_literal_1177_comb);
  assign p4_v109_comb = $signed(p4_add_1176_comb) > $signed(p4_literal_1189_comb);
  assign p4_v116_comb = {p4_v116__1_comb, p3_v115__1};
  assign p4_nor_1224_comb = ~(p3_v5 | p3_v16 | p4_sle_1194_comb);
  assign p4_v118_comb = p4_v109_comb ? p4_v117_comb : p4_v116_comb;
  assign p4_sign_ext_1252_comb = {32{p4_nor_1224_comb}};
  assign p4_v132_comb = p4_v118_comb & p4_sign_ext_1252_comb;

  // Registers for pipe stage 4:
  reg p4_v130;
  reg p4_v121__1;
  reg p4_v42;
  reg [31:0] p4_v132;
  always_ff @ (posedge clk_i) begin
    p4_v130 <= p3_v130;
    p4_v121__1 <= p3_v121__1;
    p4_v42 <= p3_v42;
    p4_v132 <= p4_v132_comb;
  end

  // ===== Pipe stage 5:
  wire [31:0] p5_v134_comb;
  wire p5_bit_slice_1197_comb;
  wire p5_v135__1_comb;
  wire [30:0] p5_bit_slice_1228_comb;
  wire [31:0] p5_v135_comb;
  wire [31:0] p5_v137_comb;
  assign p5_v134_comb = p4_v42 ? p4_v117_comb : p4_v132;
  assign p5_bit_slice_1197_comb = p5_v134_comb[31];
  assign p5_v135__1_comb = p5_bit_slice_1197_comb | p4_v121__1;
  assign p5_bit_slice_1228_comb = p5_v134_comb[30:0];
  assign p5_v135_comb = {p5_v135__1_comb, p5_bit_slice_1228_comb};
  assign p5_v137_comb = p4_v130 ? p0_v9_comb : p5_v135_comb;

  // Registers for pipe stage 5:
  reg [31:0] y_o__output_flop;
  always_ff @ (posedge clk_i) begin
    y_o__output_flop <= p5_v137_comb;
  end

  // ===== Instantiations
  mr_hls_product product_v72_inst (.a_i(p1_v55__1_comb), .b_i(p0_v69__1), .p_o(v72));
  mr_hls_product product_v64_inst (.a_i(p1_v55__1_comb), .b_i(p1_v61__1_comb), .p_o(v64));
  assign y_o = y_o__output_flop;
endmodule
