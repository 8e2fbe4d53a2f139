// SPDX-License-Identifier: Apache-2.0
// Made by hls/xls/generate.py from core_widen() of hls/xls/cores.cpp; change it there.
//
// Timing: operands in any cycle; y_o mr_hls_pkg::WIDEN_LAT cycles later, 5. No stall, no
// reset.
//
// XLS slices what it needs from values of whole functions, so parts of them are unused.
// verilator lint_off UNUSEDSIGNAL
module mr_hls_widen(
  input wire clk_i,
  input wire [31:0] gradient_i,
  input wire [15:0] unit_i,
  output wire [31:0] y_o
);
  // ===== Pipe stage 0:
  wire p0_v4_comb;
  wire [31:0] p0_v5_comb;
  wire [31:0] p0_v7_comb;
  wire [31:0] p0_v6_comb;
  wire p0_ne_447_comb;
  assign p0_v4_comb = gradient_i[31];
  assign p0_v5_comb = -gradient_i;
  assign p0_v7_comb = 32'h0000_0000;
  assign p0_v6_comb = p0_v4_comb ? p0_v5_comb : gradient_i;
  assign p0_ne_447_comb = gradient_i != p0_v7_comb;

  // Registers for pipe stage 0:
  reg [15:0] p0_unit_i;
  reg [31:0] p0_v6;
  reg p0_v4;
  reg p0_ne_260;
  always_ff @ (posedge clk_i) begin
    p0_unit_i <= unit_i;
    p0_v6 <= p0_v6_comb;
    p0_v4 <= p0_v4_comb;
    p0_ne_260 <= p0_ne_447_comb;
  end

  // ===== Pipe stage 1:
  wire [31:0] p1_v9_comb;
  wire [32:0] p1_v10_comb;
  wire [5:0] p1_v11_comb;
  wire [31:0] p1_v15_narrowed_comb;
  assign p1_v9_comb = {p0_v6[0], p0_v6[1], p0_v6[2], p0_v6[3], p0_v6[4], p0_v6[5], p0_v6[6], p0_v6[7], p0_v6[8], p0_v6[9], p0_v6[10], p0_v6[11], p0_v6[12], p0_v6[13], p0_v6[14], p0_v6[15], p0_v6[16], p0_v6[17], p0_v6[18], p0_v6[19], p0_v6[20], p0_v6[21], p0_v6[22], p0_v6[23], p0_v6[24], p0_v6[25], p0_v6[26], p0_v6[27], p0_v6[28], p0_v6[29], p0_v6[30], p0_v6[31]};
  assign p1_v10_comb = {p1_v9_comb[31:0] == 32'h0000_0000, p1_v9_comb[31] && p1_v9_comb[30:0] == 31'h0000_0000, p1_v9_comb[30] && p1_v9_comb[29:0] == 30'h0000_0000, p1_v9_comb[29] && p1_v9_comb[28:0] == 29'h0000_0000, p1_v9_comb[28] && p1_v9_comb[27:0] == 28'h000_0000, p1_v9_comb[27] && p1_v9_comb[26:0] == 27'h000_0000, p1_v9_comb[26] && p1_v9_comb[25:0] == 26'h000_0000, p1_v9_comb[25] && p1_v9_comb[24:0] == 25'h000_0000, p1_v9_comb[24] && p1_v9_comb[23:0] == 24'h00_0000, p1_v9_comb[23] && p1_v9_comb[22:0] == 23'h00_0000, p1_v9_comb[22] && p1_v9_comb[21:0] == 22'h00_0000, p1_v9_comb[21] && p1_v9_comb[20:0] == 21'h00_0000, p1_v9_comb[20] && p1_v9_comb[19:0] == 20'h0_0000, p1_v9_comb[19] && p1_v9_comb[18:0] == 19'h0_0000, p1_v9_comb[18] && p1_v9_comb[17:0] == 18'h0_0000, p1_v9_comb[17] && p1_v9_comb[16:0] == 17'h0_0000, p1_v9_comb[16] && p1_v9_comb[15:0] == 16'h0000, p1_v9_comb[15] && p1_v9_comb[14:0] == 15'h0000, p1_v9_comb[14] && p1_v9_comb[13:0] == 14'h0000, p1_v9_comb[13] && p1_v9_comb[12:0] == 13'h0000, p1_v9_comb[12] && p1_v9_comb[11:0] == 12'h000, p1_v9_comb[11] && p1_v9_comb[10:0] == 11'h000, p1_v9_comb[10] && p1_v9_comb[9:0] == 10'h000, p1_v9_comb[9] && p1_v9_comb[8:0] == 9'h000, p1_v9_comb[8] && p1_v9_comb[7:0] == 8'h00, p1_v9_comb[7] && p1_v9_comb[6:0] == 7'h00, p1_v9_comb[6] && p1_v9_comb[5:0] == 6'h00, p1_v9_comb[5] && p1_v9_comb[4:0] == 5'h00, p1_v9_comb[4] && p1_v9_comb[3:0] == 4'h0, p1_v9_comb[3] && p1_v9_comb[2:0] == 3'h0, p1_v9_comb[2] && p1_v9_comb[1:0] == 2'h0, p1_v9_comb[1] && !p1_v9_comb[0], p1_v9_comb[0]};
  assign p1_v11_comb = {p1_v10_comb[32], p1_v10_comb[16] | p1_v10_comb[17] | p1_v10_comb[18] | p1_v10_comb[19] | p1_v10_comb[20] | p1_v10_comb[21] | p1_v10_comb[22] | p1_v10_comb[23] | p1_v10_comb[24] | p1_v10_comb[25] | p1_v10_comb[26] | p1_v10_comb[27] | p1_v10_comb[28] | p1_v10_comb[29] | p1_v10_comb[30] | p1_v10_comb[31], p1_v10_comb[8] | p1_v10_comb[9] | p1_v10_comb[10] | p1_v10_comb[11] | p1_v10_comb[12] | p1_v10_comb[13] | p1_v10_comb[14] | p1_v10_comb[15] | p1_v10_comb[24] | p1_v10_comb[25] | p1_v10_comb[26] | p1_v10_comb[27] | p1_v10_comb[28] | p1_v10_comb[29] | p1_v10_comb[30] | p1_v10_comb[31], p1_v10_comb[4] | p1_v10_comb[5] | p1_v10_comb[6] | p1_v10_comb[7] | p1_v10_comb[12] | p1_v10_comb[13] | p1_v10_comb[14] | p1_v10_comb[15] | p1_v10_comb[20] | p1_v10_comb[21] | p1_v10_comb[22] | p1_v10_comb[23] | p1_v10_comb[28] | p1_v10_comb[29] | p1_v10_comb[30] | p1_v10_comb[31], p1_v10_comb[2] | p1_v10_comb[3] | p1_v10_comb[6] | p1_v10_comb[7] | p1_v10_comb[10] | p1_v10_comb[11] | p1_v10_comb[14] | p1_v10_comb[15] | p1_v10_comb[18] | p1_v10_comb[19] | p1_v10_comb[22] | p1_v10_comb[23] | p1_v10_comb[26] | p1_v10_comb[27] | p1_v10_comb[30] | p1_v10_comb[31], p1_v10_comb[1] | p1_v10_comb[3] | p1_v10_comb[5] | p1_v10_comb[7] | p1_v10_comb[9] | p1_v10_comb[11] | p1_v10_comb[13] | p1_v10_comb[15] | p1_v10_comb[17] | p1_v10_comb[19] | p1_v10_comb[21] | p1_v10_comb[23] | p1_v10_comb[25] | p1_v10_comb[27] | p1_v10_comb[29] | p1_v10_comb[31]};
  assign p1_v15_narrowed_comb = p1_v11_comb >= 6'h20 ? 32'h0000_0000 : p0_v6 << p1_v11_comb;

  // Registers for pipe stage 1:
  reg [15:0] p1_unit_i;
  reg [5:0] p1_v11;
  reg p1_v4;
  reg [31:0] p1_v15_narrowed;
  reg p1_ne_260;
  always_ff @ (posedge clk_i) begin
    p1_unit_i <= p0_unit_i;
    p1_v11 <= p1_v11_comb;
    p1_v4 <= p0_v4;
    p1_v15_narrowed <= p1_v15_narrowed_comb;
    p1_ne_260 <= p0_ne_260;
  end

  // ===== Pipe stage 2:
  wire [8:0] p2_bit_slice_363_comb;
  wire [8:0] p2_literal_364_comb;
  wire [8:0] p2_v23__1_comb;
  wire [8:0] p2_literal_370_comb;
  wire p2_v25_comb;
  wire p2_v19__1_comb;
  wire p2_v30__1_comb;
  wire [23:0] p2_bit_slice_388_comb;
  wire [23:0] p2_literal_389_comb;
  wire p2_v26_comb;
  wire [24:0] p2_concat_406_comb;
  wire [24:0] p2_concat_407_comb;
  wire [24:0] p2_add_424_comb;
  wire p2_v30_comb;
  wire [22:0] p2_v41__1_comb;
  assign p2_bit_slice_363_comb = p1_v15_narrowed[8:0];
  assign p2_literal_364_comb = 9'h17f;
  assign p2_v23__1_comb = p2_bit_slice_363_comb & p2_literal_364_comb;
  assign p2_literal_370_comb = 9'h000;
  assign p2_v25_comb = p2_v23__1_comb != p2_literal_370_comb;
  assign p2_v19__1_comb = p1_v15_narrowed[7];
  assign p2_v30__1_comb = 1'h0;
  assign p2_bit_slice_388_comb = p1_v15_narrowed[31:8];
  assign p2_literal_389_comb = 24'h00_0000;
  assign p2_v26_comb = p2_v25_comb & p2_v19__1_comb;
  assign p2_concat_406_comb = {p2_v30__1_comb, p2_bit_slice_388_comb};
  assign p2_concat_407_comb = {p2_literal_389_comb, p2_v26_comb};
  assign p2_add_424_comb = p2_concat_406_comb + p2_concat_407_comb;
  assign p2_v30_comb = p2_add_424_comb[24];
  assign p2_v41__1_comb = p2_add_424_comb[22:0];

  // Registers for pipe stage 2:
  reg [15:0] p2_unit_i;
  reg [5:0] p2_v11;
  reg p2_v4;
  reg p2_v30;
  reg [22:0] p2_v41__1;
  reg p2_ne_260;
  always_ff @ (posedge clk_i) begin
    p2_unit_i <= p1_unit_i;
    p2_v11 <= p1_v11;
    p2_v4 <= p1_v4;
    p2_v30 <= p2_v30_comb;
    p2_v41__1 <= p2_v41__1_comb;
    p2_ne_260 <= p1_ne_260;
  end

  // ===== Pipe stage 3:
  wire [15:0] p3_literal_374_comb;
  wire [1:0] p3_literal_377_comb;
  wire [16:0] p3_concat_383_comb;
  wire [16:0] p3_sign_ext_384_comb;
  wire [7:0] p3_literal_385_comb;
  wire [7:0] p3_concat_386_comb;
  wire [16:0] p3_add_403_comb;
  wire [9:0] p3_literal_404_comb;
  wire [7:0] p3_sub_405_comb;
  wire [17:0] p3_sign_ext_422_comb;
  wire [17:0] p3_concat_423_comb;
  wire [17:0] p3_add_443_comb;
  assign p3_literal_374_comb = 16'h0000;
  assign p3_literal_377_comb = 2'h0;
  assign p3_concat_383_comb = {p3_literal_374_comb, p2_v30};
  assign p3_sign_ext_384_comb = {{1{p2_unit_i[15]}}, p2_unit_i};
  assign p3_literal_385_comb = 8'h9e;
  assign p3_concat_386_comb = {p3_literal_377_comb, p2_v11};
  assign p3_add_403_comb = p3_concat_383_comb + p3_sign_ext_384_comb;
  assign p3_literal_404_comb = 10'h000;
  assign p3_sub_405_comb = p3_literal_385_comb - p3_concat_386_comb;
  assign p3_sign_ext_422_comb = {{1{p3_add_403_comb[16]}}, p3_add_403_comb};
  assign p3_concat_423_comb = {p3_literal_404_comb, p3_sub_405_comb};
  assign p3_add_443_comb = p3_sign_ext_422_comb + p3_concat_423_comb;

  // Registers for pipe stage 3:
  reg p3_v4;
  reg [17:0] p3_add_166;
  reg [22:0] p3_v41__1;
  reg p3_ne_260;
  always_ff @ (posedge clk_i) begin
    p3_v4 <= p2_v4;
    p3_add_166 <= p3_add_443_comb;
    p3_v41__1 <= p2_v41__1;
    p3_ne_260 <= p2_ne_260;
  end

  // ===== Pipe stage 4:
  wire [17:0] p4_literal_359_comb;
  wire [8:0] p4_v42__1_comb;
  wire [17:0] p4_literal_362_comb;
  wire p4_v44_comb;
  wire [31:0] p4_v42_comb;
  wire [31:0] p4_v45_comb;
  wire p4_v48_comb;
  wire [31:0] p4_v46_comb;
  wire [31:0] p4_sign_ext_372_comb;
  wire [31:0] p4_v50_comb;
  wire p4_bit_slice_391_comb;
  wire p4_v51__1_comb;
  wire [30:0] p4_bit_slice_409_comb;
  wire [31:0] p4_v51_comb;
  wire [31:0] p4_sign_ext_427_comb;
  wire [31:0] p4_v53_comb;
  assign p4_literal_359_comb = 18'h0_00fe;
  assign p4_v42__1_comb = p3_add_166[8:0];
  assign p4_literal_362_comb = 18'h0_0000;
  assign p4_v44_comb = $signed(p3_add_166) > $signed(p4_literal_359_comb);
  assign p4_v42_comb = {p4_v42__1_comb, p3_v41__1};
  assign p4_v45_comb = 32'h7f80_0000;
  assign p4_v48_comb = $signed(p3_add_166) > $signed(p4_literal_362_comb);
  assign p4_v46_comb = p4_v44_comb ? p4_v45_comb : p4_v42_comb;
  assign p4_sign_ext_372_comb = {32{p4_v48_comb}};
  assign p4_v50_comb = p4_v46_comb & p4_sign_ext_372_comb;
  assign p4_bit_slice_391_comb = p4_v50_comb[31];
  assign p4_v51__1_comb = p4_bit_slice_391_comb | p3_v4;
  assign p4_bit_slice_409_comb = p4_v50_comb[30:0];
  assign p4_v51_comb = {p4_v51__1_comb, p4_bit_slice_409_comb};
  assign p4_sign_ext_427_comb = {32{p3_ne_260}};
  assign p4_v53_comb = p4_v51_comb & p4_sign_ext_427_comb;

  // Registers for pipe stage 4:
  reg [31:0] y_o__output_flop;
  always_ff @ (posedge clk_i) begin
    y_o__output_flop <= p4_v53_comb;
  end
  assign y_o = y_o__output_flop;
endmodule
