// SPDX-License-Identifier: Apache-2.0
// Made by hls/xls/generate.py from core_add() of hls/xls/cores.cpp; change it there.
//
// Timing: operands in any cycle; y_o mr_hls_pkg::ADD_LAT cycles later, 11. No stall, no
// reset.
//
// XLS slices what it needs from values of whole functions, so parts of them are unused.
// verilator lint_off UNUSEDSIGNAL
module mr_hls_add(
  input wire clk_i,
  input wire [31:0] a_i,
  input wire [31:0] b_i,
  output wire [31:0] y_o
);
  // ===== Pipe stage 0:
  wire [7:0] p0_bit_slice_1316_comb;
  wire [7:0] p0_v60_comb;
  wire [7:0] p0_bit_slice_1318_comb;
  wire p0_ne_1334_comb;
  wire p0_ne_1335_comb;
  wire [30:0] p0_a_i_bits_0_width_31_comb;
  wire [30:0] p0_sign_ext_1351_comb;
  wire [30:0] p0_b_i_bits_0_width_31_comb;
  wire [30:0] p0_sign_ext_1353_comb;
  wire [30:0] p0_literal_1369_comb;
  wire p0_a_i_portion_31_width_1_comb;
  wire [30:0] p0_v8_squeezed_portion_0_width_31_comb;
  wire p0_b_i_portion_31_width_1_comb;
  wire [30:0] p0_v19_squeezed_portion_0_width_31_comb;
  wire [31:0] p0_v9_comb;
  wire p0_v3_comb;
  wire [31:0] p0_v8_comb;
  wire p0_v14_comb;
  wire [31:0] p0_v19_comb;
  wire [31:0] p0_v10_comb;
  wire [31:0] p0_v21_comb;
  assign p0_bit_slice_1316_comb = a_i[30:23];
  assign p0_v60_comb = 8'h00;
  assign p0_bit_slice_1318_comb = b_i[30:23];
  assign p0_ne_1334_comb = p0_bit_slice_1316_comb != p0_v60_comb;
  assign p0_ne_1335_comb = p0_bit_slice_1318_comb != p0_v60_comb;
  assign p0_a_i_bits_0_width_31_comb = a_i[30:0];
  assign p0_sign_ext_1351_comb = {31{p0_ne_1334_comb}};
  assign p0_b_i_bits_0_width_31_comb = b_i[30:0];
  assign p0_sign_ext_1353_comb = {31{p0_ne_1335_comb}};
  assign p0_literal_1369_comb = 31'h7f80_0000;
  assign p0_a_i_portion_31_width_1_comb = a_i[31];
  assign p0_v8_squeezed_portion_0_width_31_comb = p0_a_i_bits_0_width_31_comb & p0_sign_ext_1351_comb;
  assign p0_b_i_portion_31_width_1_comb = b_i[31];
  assign p0_v19_squeezed_portion_0_width_31_comb = p0_b_i_bits_0_width_31_comb & p0_sign_ext_1353_comb;
  assign p0_v9_comb = 32'h7fc0_0000;
  assign p0_v3_comb = p0_a_i_bits_0_width_31_comb > p0_literal_1369_comb;
  assign p0_v8_comb = {p0_a_i_portion_31_width_1_comb, p0_v8_squeezed_portion_0_width_31_comb};
  assign p0_v14_comb = p0_b_i_bits_0_width_31_comb > p0_literal_1369_comb;
  assign p0_v19_comb = {p0_b_i_portion_31_width_1_comb, p0_v19_squeezed_portion_0_width_31_comb};
  assign p0_v10_comb = p0_v3_comb ? p0_v9_comb : p0_v8_comb;
  assign p0_v21_comb = p0_v14_comb ? p0_v9_comb : p0_v19_comb;

  // Registers for pipe stage 0:
  reg [31:0] p0_v10;
  reg [31:0] p0_v21;
  always_ff @ (posedge clk_i) begin
    p0_v10 <= p0_v10_comb;
    p0_v21 <= p0_v21_comb;
  end

  // ===== Pipe stage 1:
  wire [30:0] p1_v23__1_comb;
  wire [30:0] p1_v25__1_comb;
  wire p1_v26_comb;
  assign p1_v23__1_comb = p0_v21[30:0];
  assign p1_v25__1_comb = p0_v10[30:0];
  assign p1_v26_comb = p1_v23__1_comb > p1_v25__1_comb;

  // Registers for pipe stage 1:
  reg [31:0] p1_v10;
  reg [31:0] p1_v21;
  reg p1_v26;
  always_ff @ (posedge clk_i) begin
    p1_v10 <= p0_v10;
    p1_v21 <= p0_v21;
    p1_v26 <= p1_v26_comb;
  end

  // ===== Pipe stage 2:
  wire p2_v142__1_comb;
  wire [31:0] p2_v28_comb;
  wire [31:0] p2_v27_comb;
  wire p2_bit_slice_1363_comb;
  wire p2_bit_slice_1364_comb;
  wire [7:0] p2_bit_slice_1365_comb;
  wire [7:0] p2_v45_comb;
  wire [7:0] p2_v38_comb;
  wire p2_v29__1_comb;
  wire p2_v56_comb;
  wire [31:0] p2_v65_comb;
  wire [8:0] p2_v70__2_comb;
  wire [8:0] p2_v37__2_comb;
  wire p2_v51_comb;
  wire p2_v57_comb;
  wire [31:0] p2_v67_comb;
  wire [8:0] p2_sub_1516_comb;
  wire p2_or_1526_comb;
  wire [22:0] p2_bit_slice_1534_comb;
  wire p2_ne_1544_comb;
  assign p2_v142__1_comb = 1'h0;
  assign p2_v28_comb = p1_v26 ? p1_v10 : p1_v21;
  assign p2_v27_comb = p1_v26 ? p1_v21 : p1_v10;
  assign p2_bit_slice_1363_comb = p1_v21[31];
  assign p2_bit_slice_1364_comb = p1_v10[31];
  assign p2_bit_slice_1365_comb = p2_v28_comb[30:23];
  assign p2_v45_comb = 8'hff;
  assign p2_v38_comb = p2_v27_comb[30:23];
  assign p2_v29__1_comb = p2_bit_slice_1363_comb ^ p2_bit_slice_1364_comb;
  assign p2_v56_comb = p2_bit_slice_1365_comb == p2_v45_comb;
  assign p2_v65_comb = 32'h8000_0000;
  assign p2_v70__2_comb = {p2_v142__1_comb, p2_v38_comb};
  assign p2_v37__2_comb = {p2_v142__1_comb, p2_bit_slice_1365_comb};
  assign p2_v51_comb = p2_v27_comb == p0_v9_comb;
  assign p2_v57_comb = p2_v29__1_comb & p2_v56_comb;
  assign p2_v67_comb = p1_v10 & p2_v65_comb & p1_v21;
  assign p2_sub_1516_comb = p2_v70__2_comb - p2_v37__2_comb;
  assign p2_or_1526_comb = p2_v51_comb | p2_v57_comb;
  assign p2_bit_slice_1534_comb = p2_v28_comb[22:0];
  assign p2_ne_1544_comb = p2_bit_slice_1365_comb != p0_v60_comb;

  // Registers for pipe stage 2:
  reg [31:0] p2_v27;
  reg [31:0] p2_v67;
  reg p2_v29__1;
  reg [7:0] p2_v38;
  reg [8:0] p2_sub_493;
  reg p2_or_690;
  reg [22:0] p2_bit_slice_717;
  reg p2_ne_922;
  always_ff @ (posedge clk_i) begin
    p2_v27 <= p2_v27_comb;
    p2_v67 <= p2_v67_comb;
    p2_v29__1 <= p2_v29__1_comb;
    p2_v38 <= p2_v38_comb;
    p2_sub_493 <= p2_sub_1516_comb;
    p2_or_690 <= p2_or_1526_comb;
    p2_bit_slice_717 <= p2_bit_slice_1534_comb;
    p2_ne_922 <= p2_ne_1544_comb;
  end

  // ===== Pipe stage 3:
  wire p3_literal_1303_comb;
  wire [2:0] p3_literal_1305_comb;
  wire [31:0] p3_v93_comb;
  wire [31:0] p3_v77_comb;
  wire [26:0] p3_concat_1322_comb;
  wire [26:0] p3_sign_ext_1323_comb;
  wire [8:0] p3_literal_1324_comb;
  wire [31:0] p3_v94_comb;
  wire [26:0] p3_v89__1_comb;
  wire p3_v79_comb;
  wire [23:0] p3_bit_slice_1339_comb;
  wire [4:0] p3_literal_1356_comb;
  wire [26:0] p3_v90_narrowed_comb;
  wire p3_not_1358_comb;
  wire [23:0] p3_v96__1_comb;
  wire [23:0] p3_literal_1361_comb;
  wire [31:0] p3_v90_comb;
  wire [31:0] p3_sign_ext_1404_comb;
  wire [23:0] p3_v98__1_comb;
  wire [23:0] p3_bit_slice_1409_comb;
  wire [31:0] p3_v92_comb;
  wire [23:0] p3_v99__1_comb;
  wire [23:0] p3_literal_1460_comb;
  wire p3_bit_slice_1514_comb;
  wire p3_v101_comb;
  wire [26:0] p3_bit_slice_1521_comb;
  assign p3_literal_1303_comb = 1'h1;
  assign p3_literal_1305_comb = 3'h0;
  assign p3_v93_comb = 32'hffff_ffff;
  assign p3_v77_comb = {{23{p2_sub_493[8]}}, p2_sub_493};
  assign p3_concat_1322_comb = {p3_literal_1303_comb, p2_bit_slice_717, p3_literal_1305_comb};
  assign p3_sign_ext_1323_comb = {27{p2_ne_922}};
  assign p3_literal_1324_comb = 9'h01a;
  assign p3_v94_comb = p3_v77_comb >= 32'h0000_0020 ? 32'h0000_0000 : p3_v93_comb << p3_v77_comb;
  assign p3_v89__1_comb = p3_concat_1322_comb & p3_sign_ext_1323_comb;
  assign p3_v79_comb = p2_sub_493 > p3_literal_1324_comb;
  assign p3_bit_slice_1339_comb = p3_v94_comb[26:3];
  assign p3_literal_1356_comb = 5'h00;
  assign p3_v90_narrowed_comb = p3_v77_comb >= 32'h0000_001b ? 27'h000_0000 : p3_v89__1_comb >> p3_v77_comb;
  assign p3_not_1358_comb = ~p3_v79_comb;
  assign p3_v96__1_comb = ~p3_bit_slice_1339_comb;
  assign p3_literal_1361_comb = 24'hff_ffff;
  assign p3_v90_comb = {p3_literal_1356_comb, p3_v90_narrowed_comb};
  assign p3_sign_ext_1404_comb = {32{p3_not_1358_comb}};
  assign p3_v98__1_comb = p3_v79_comb ? p3_literal_1361_comb : p3_v96__1_comb;
  assign p3_bit_slice_1409_comb = p3_v89__1_comb[26:3];
  assign p3_v92_comb = p3_v90_comb & p3_sign_ext_1404_comb;
  assign p3_v99__1_comb = p3_v98__1_comb & p3_bit_slice_1409_comb;
  assign p3_literal_1460_comb = 24'h00_0000;
  assign p3_bit_slice_1514_comb = p3_v92_comb[0];
  assign p3_v101_comb = p3_v99__1_comb != p3_literal_1460_comb;
  assign p3_bit_slice_1521_comb = p3_v92_comb[27:1];

  // Registers for pipe stage 3:
  reg [31:0] p3_v27;
  reg [31:0] p3_v67;
  reg p3_v29__1;
  reg [7:0] p3_v38;
  reg p3_bit_slice_407;
  reg p3_v101;
  reg [26:0] p3_bit_slice_588;
  reg p3_or_690;
  always_ff @ (posedge clk_i) begin
    p3_v27 <= p2_v27;
    p3_v67 <= p2_v67;
    p3_v29__1 <= p2_v29__1;
    p3_v38 <= p2_v38;
    p3_bit_slice_407 <= p3_bit_slice_1514_comb;
    p3_v101 <= p3_v101_comb;
    p3_bit_slice_588 <= p3_bit_slice_1521_comb;
    p3_or_690 <= p2_or_690;
  end

  // ===== Pipe stage 4:
  wire p4_v103__1_comb;
  wire [27:0] p4_literal_1346_comb;
  wire [27:0] p4_concat_1347_comb;
  wire [27:0] p4_sub_1372_comb;
  wire [27:0] p4_v106__1_squeezed_comb;
  wire p4_bit_slice_1470_comb;
  wire p4_v125__1_comb;
  wire [2:0] p4_bit_slice_1549_comb;
  wire [24:0] p4_bit_slice_1551_comb;
  assign p4_v103__1_comb = p3_bit_slice_407 | p3_v101;
  assign p4_literal_1346_comb = 28'h000_0000;
  assign p4_concat_1347_comb = {p3_bit_slice_588, p4_v103__1_comb};
  assign p4_sub_1372_comb = p4_literal_1346_comb - p4_concat_1347_comb;
  assign p4_v106__1_squeezed_comb = p3_v29__1 ? p4_sub_1372_comb : p4_concat_1347_comb;
  assign p4_bit_slice_1470_comb = p4_v106__1_squeezed_comb[1];
  assign p4_v125__1_comb = p4_bit_slice_1470_comb | p3_bit_slice_407 | p3_v101;
  assign p4_bit_slice_1549_comb = p4_v106__1_squeezed_comb[2:0];
  assign p4_bit_slice_1551_comb = p4_v106__1_squeezed_comb[27:3];

  // Registers for pipe stage 4:
  reg [31:0] p4_v27;
  reg [31:0] p4_v67;
  reg [7:0] p4_v38;
  reg p4_or_690;
  reg p4_v125__1;
  reg [2:0] p4_bit_slice_955;
  reg [24:0] p4_bit_slice_961;
  always_ff @ (posedge clk_i) begin
    p4_v27 <= p3_v27;
    p4_v67 <= p3_v67;
    p4_v38 <= p3_v38;
    p4_or_690 <= p3_or_690;
    p4_v125__1 <= p4_v125__1_comb;
    p4_bit_slice_955 <= p4_bit_slice_1549_comb;
    p4_bit_slice_961 <= p4_bit_slice_1551_comb;
  end

  // ===== Pipe stage 5:
  wire [2:0] p5_literal_1421_comb;
  wire [22:0] p5_bit_slice_1422_comb;
  wire [25:0] p5_sign_ext_1473_comb;
  wire [25:0] p5_concat_1474_comb;
  wire p5_v162__1_comb;
  wire [31:0] p5_v169_comb;
  wire [25:0] p5_add_1543_comb;
  assign p5_literal_1421_comb = 3'h1;
  assign p5_bit_slice_1422_comb = p4_v27[22:0];
  assign p5_sign_ext_1473_comb = {{1{p4_bit_slice_961[24]}}, p4_bit_slice_961};
  assign p5_concat_1474_comb = {p5_literal_1421_comb, p5_bit_slice_1422_comb};
  assign p5_v162__1_comb = p4_v27[31];
  assign p5_v169_comb = p4_or_690 ? p0_v9_comb : p4_v27;
  assign p5_add_1543_comb = p5_sign_ext_1473_comb + p5_concat_1474_comb;

  // Registers for pipe stage 5:
  reg [31:0] p5_v67;
  reg [7:0] p5_v38;
  reg p5_v162__1;
  reg [31:0] p5_v169;
  reg p5_v125__1;
  reg [25:0] p5_add_918;
  reg [2:0] p5_bit_slice_955;
  always_ff @ (posedge clk_i) begin
    p5_v67 <= p4_v67;
    p5_v38 <= p4_v38;
    p5_v162__1 <= p5_v162__1_comb;
    p5_v169 <= p5_v169_comb;
    p5_v125__1 <= p4_v125__1;
    p5_add_918 <= p5_add_1543_comb;
    p5_bit_slice_955 <= p4_bit_slice_955;
  end

  // ===== Pipe stage 6:
  wire [28:0] p6_concat_1309_comb;
  wire [31:0] p6_v107_comb;
  wire [31:0] p6_v110_comb;
  wire [32:0] p6_v111_comb;
  wire [5:0] p6_v112_comb;
  wire [25:0] p6_literal_1423_comb;
  wire [6:0] p6_concat_1461_comb;
  wire [6:0] p6_literal_1462_comb;
  wire p6_ne_1475_comb;
  wire p6_ne_1476_comb;
  wire [6:0] p6_add_1518_comb;
  wire p6_or_1545_comb;
  assign p6_concat_1309_comb = {p5_add_918, p5_bit_slice_955};
  assign p6_v107_comb = {{3{p6_concat_1309_comb[28]}}, p6_concat_1309_comb};
  assign p6_v110_comb = {p6_v107_comb[0], p6_v107_comb[1], p6_v107_comb[2], p6_v107_comb[3], p6_v107_comb[4], p6_v107_comb[5], p6_v107_comb[6], p6_v107_comb[7], p6_v107_comb[8], p6_v107_comb[9], p6_v107_comb[10], p6_v107_comb[11], p6_v107_comb[12], p6_v107_comb[13], p6_v107_comb[14], p6_v107_comb[15], p6_v107_comb[16], p6_v107_comb[17], p6_v107_comb[18], p6_v107_comb[19], p6_v107_comb[20], p6_v107_comb[21], p6_v107_comb[22], p6_v107_comb[23], p6_v107_comb[24], p6_v107_comb[25], p6_v107_comb[26], p6_v107_comb[27], p6_v107_comb[28], p6_v107_comb[29], p6_v107_comb[30], p6_v107_comb[31]};
  assign p6_v111_comb = {p6_v110_comb[31:0] == 32'h0000_0000, p6_v110_comb[31] && p6_v110_comb[30:0] == 31'h0000_0000, p6_v110_comb[30] && p6_v110_comb[29:0] == 30'h0000_0000, p6_v110_comb[29] && p6_v110_comb[28:0] == 29'h0000_0000, p6_v110_comb[28] && p6_v110_comb[27:0] == 28'h000_0000, p6_v110_comb[27] && p6_v110_comb[26:0] == 27'h000_0000, p6_v110_comb[26] && p6_v110_comb[25:0] == 26'h000_0000, p6_v110_comb[25] && p6_v110_comb[24:0] == 25'h000_0000, p6_v110_comb[24] && p6_v110_comb[23:0] == 24'h00_0000, p6_v110_comb[23] && p6_v110_comb[22:0] == 23'h00_0000, p6_v110_comb[22] && p6_v110_comb[21:0] == 22'h00_0000, p6_v110_comb[21] && p6_v110_comb[20:0] == 21'h00_0000, p6_v110_comb[20] && p6_v110_comb[19:0] == 20'h0_0000, p6_v110_comb[19] && p6_v110_comb[18:0] == 19'h0_0000, p6_v110_comb[18] && p6_v110_comb[17:0] == 18'h0_0000, p6_v110_comb[17] && p6_v110_comb[16:0] == 17'h0_0000, p6_v110_comb[16] && p6_v110_comb[15:0] == 16'h0000, p6_v110_comb[15] && p6_v110_comb[14:0] == 15'h0000, p6_v110_comb[14] && p6_v110_comb[13:0] == 14'h0000, p6_v110_comb[13] && p6_v110_comb[12:0] == 13'h0000, p6_v110_comb[12] && p6_v110_comb[11:0] == 12'h000, p6_v110_comb[11] && p6_v110_comb[10:0] == 11'h000, p6_v110_comb[10] && p6_v110_comb[9:0] == 10'h000, p6_v110_comb[9] && p6_v110_comb[8:0] == 9'h000, p6_v110_comb[8] && p6_v110_comb[7:0] == 8'h00, p6_v110_comb[7] && p6_v110_comb[6:0] == 7'h00, p6_v110_comb[6] && p6_v110_comb[5:0] == 6'h00, p6_v110_comb[5] && p6_v110_comb[4:0] == 5'h00, p6_v110_comb[4] && p6_v110_comb[3:0] == 4'h0, p6_v110_comb[3] && p6_v110_comb[2:0] == 3'h0, p6_v110_comb[2] && p6_v110_comb[1:0] == 2'h0, p6_v110_comb[1] && !p6_v110_comb[0], p6_v110_comb[0]};
  assign p6_v112_comb = {p6_v111_comb[32], p6_v111_comb[16] | p6_v111_comb[17] | p6_v111_comb[18] | p6_v111_comb[19] | p6_v111_comb[20] | p6_v111_comb[21] | p6_v111_comb[22] | p6_v111_comb[23] | p6_v111_comb[24] | p6_v111_comb[25] | p6_v111_comb[26] | p6_v111_comb[27] | p6_v111_comb[28] | p6_v111_comb[29] | p6_v111_comb[30] | p6_v111_comb[31], p6_v111_comb[8] | p6_v111_comb[9] | p6_v111_comb[10] | p6_v111_comb[11] | p6_v111_comb[12] | p6_v111_comb[13] | p6_v111_comb[14] | p6_v111_comb[15] | p6_v111_comb[24] | p6_v111_comb[25] | p6_v111_comb[26] | p6_v111_comb[27] | p6_v111_comb[28] | p6_v111_comb[29] | p6_v111_comb[30] | p6_v111_comb[31], p6_v111_comb[4] | p6_v111_comb[5] | p6_v111_comb[6] | p6_v111_comb[7] | p6_v111_comb[12] | p6_v111_comb[13] | p6_v111_comb[14] | p6_v111_comb[15] | p6_v111_comb[20] | p6_v111_comb[21] | p6_v111_comb[22] | p6_v111_comb[23] | p6_v111_comb[28] | p6_v111_comb[29] | p6_v111_comb[30] | p6_v111_comb[31], p6_v111_comb[2] | p6_v111_comb[3] | p6_v111_comb[6] | p6_v111_comb[7] | p6_v111_comb[10] | p6_v111_comb[11] | p6_v111_comb[14] | p6_v111_comb[15] | p6_v111_comb[18] | p6_v111_comb[19] | p6_v111_comb[22] | p6_v111_comb[23] | p6_v111_comb[26] | p6_v111_comb[27] | p6_v111_comb[30] | p6_v111_comb[31], p6_v111_comb[1] | p6_v111_comb[3] | p6_v111_comb[5] | p6_v111_comb[7] | p6_v111_comb[9] | p6_v111_comb[11] | p6_v111_comb[13] | p6_v111_comb[15] | p6_v111_comb[17] | p6_v111_comb[19] | p6_v111_comb[21] | p6_v111_comb[23] | p6_v111_comb[25] | p6_v111_comb[27] | p6_v111_comb[29] | p6_v111_comb[31]};
  assign p6_literal_1423_comb = 26'h000_0000;
  assign p6_concat_1461_comb = {p2_v142__1_comb, p6_v112_comb};
  assign p6_literal_1462_comb = 7'h7b;
  assign p6_ne_1475_comb = p5_add_918 != p6_literal_1423_comb;
  assign p6_ne_1476_comb = p5_bit_slice_955 != p3_literal_1305_comb;
  assign p6_add_1518_comb = p6_concat_1461_comb + p6_literal_1462_comb;
  assign p6_or_1545_comb = p6_ne_1475_comb | p6_ne_1476_comb;

  // Registers for pipe stage 6:
  reg [31:0] p6_v67;
  reg [7:0] p6_v38;
  reg [31:0] p6_v107;
  reg [6:0] p6_add_517;
  reg p6_v162__1;
  reg [31:0] p6_v169;
  reg p6_v125__1;
  reg p6_or_939;
  always_ff @ (posedge clk_i) begin
    p6_v67 <= p5_v67;
    p6_v38 <= p5_v38;
    p6_v107 <= p6_v107_comb;
    p6_add_517 <= p6_add_1518_comb;
    p6_v162__1 <= p5_v162__1;
    p6_v169 <= p5_v169;
    p6_v125__1 <= p5_v125__1;
    p6_or_939 <= p6_or_1545_comb;
  end

  // ===== Pipe stage 7:
  wire [31:0] p7_v115_comb;
  wire [29:0] p7_bit_slice_1301_comb;
  wire p7_v120_comb;
  wire [31:0] p7_v126_comb;
  wire [31:0] p7_v125_comb;
  wire [31:0] p7_v127_comb;
  wire [3:0] p7_bit_slice_1354_comb;
  wire [3:0] p7_literal_1355_comb;
  wire [3:0] p7_v131__1_comb;
  wire [3:0] p7_literal_1398_comb;
  wire [1:0] p7_literal_1411_comb;
  wire p7_v133_comb;
  wire p7_v135__1_comb;
  wire [9:0] p7_concat_1463_comb;
  wire [9:0] p7_bit_slice_1464_comb;
  wire p7_v61_comb;
  wire p7_v138_comb;
  wire [28:0] p7_bit_slice_1508_comb;
  wire [9:0] p7_sub_1519_comb;
  wire p7_v68__1_comb;
  assign p7_v115_comb = {{25{p6_add_517[6]}}, p6_add_517};
  assign p7_bit_slice_1301_comb = p6_v107[31:2];
  assign p7_v120_comb = p7_v115_comb[31];
  assign p7_v126_comb = p7_v115_comb >= 32'h0000_0020 ? 32'h0000_0000 : p6_v107 << p7_v115_comb;
  assign p7_v125_comb = {p2_v142__1_comb, p7_bit_slice_1301_comb, p6_v125__1};
  assign p7_v127_comb = p7_v120_comb ? p7_v125_comb : p7_v126_comb;
  assign p7_bit_slice_1354_comb = p7_v127_comb[3:0];
  assign p7_literal_1355_comb = 4'hb;
  assign p7_v131__1_comb = p7_bit_slice_1354_comb & p7_literal_1355_comb;
  assign p7_literal_1398_comb = 4'h0;
  assign p7_literal_1411_comb = 2'h0;
  assign p7_v133_comb = p7_v131__1_comb != p7_literal_1398_comb;
  assign p7_v135__1_comb = p7_v127_comb[2];
  assign p7_concat_1463_comb = {p7_literal_1411_comb, p6_v38};
  assign p7_bit_slice_1464_comb = p7_v115_comb[9:0];
  assign p7_v61_comb = p6_v38 == p0_v60_comb;
  assign p7_v138_comb = p7_v133_comb & p7_v135__1_comb;
  assign p7_bit_slice_1508_comb = p7_v127_comb[31:3];
  assign p7_sub_1519_comb = p7_concat_1463_comb - p7_bit_slice_1464_comb;
  assign p7_v68__1_comb = p6_v38 != p2_v45_comb;

  // Registers for pipe stage 7:
  reg p7_v61;
  reg p7_v138;
  reg [31:0] p7_v67;
  reg [28:0] p7_bit_slice_379;
  reg [9:0] p7_sub_531;
  reg p7_v162__1;
  reg [31:0] p7_v169;
  reg p7_v68__1;
  reg p7_or_939;
  always_ff @ (posedge clk_i) begin
    p7_v61 <= p7_v61_comb;
    p7_v138 <= p7_v138_comb;
    p7_v67 <= p6_v67;
    p7_bit_slice_379 <= p7_bit_slice_1508_comb;
    p7_sub_531 <= p7_sub_1519_comb;
    p7_v162__1 <= p6_v162__1;
    p7_v169 <= p6_v169;
    p7_v68__1 <= p7_v68__1_comb;
    p7_or_939 <= p6_or_939;
  end

  // ===== Pipe stage 8:
  wire [28:0] p8_literal_1296_comb;
  wire [29:0] p8_concat_1314_comb;
  wire [29:0] p8_concat_1315_comb;
  wire [29:0] p8_add_1333_comb;
  wire [5:0] p8_bit_slice_1348_comb;
  wire p8_v142__2_comb;
  wire p8_not_1419_comb;
  wire [22:0] p8_bit_slice_1471_comb;
  wire [22:0] p8_sign_ext_1472_comb;
  wire [22:0] p8_v154__1_comb;
  assign p8_literal_1296_comb = 29'h0000_0000;
  assign p8_concat_1314_comb = {p2_v142__1_comb, p7_bit_slice_379};
  assign p8_concat_1315_comb = {p8_literal_1296_comb, p7_v138};
  assign p8_add_1333_comb = p8_concat_1314_comb + p8_concat_1315_comb;
  assign p8_bit_slice_1348_comb = p8_add_1333_comb[29:24];
  assign p8_v142__2_comb = |p8_bit_slice_1348_comb;
  assign p8_not_1419_comb = ~p8_v142__2_comb;
  assign p8_bit_slice_1471_comb = p8_add_1333_comb[22:0];
  assign p8_sign_ext_1472_comb = {23{p8_not_1419_comb}};
  assign p8_v154__1_comb = p8_bit_slice_1471_comb & p8_sign_ext_1472_comb;

  // Registers for pipe stage 8:
  reg p8_v61;
  reg [31:0] p8_v67;
  reg [9:0] p8_sub_531;
  reg p8_v162__1;
  reg [31:0] p8_v169;
  reg p8_v142__2;
  reg p8_v68__1;
  reg [22:0] p8_v154__1;
  reg p8_or_939;
  always_ff @ (posedge clk_i) begin
    p8_v61 <= p7_v61;
    p8_v67 <= p7_v67;
    p8_sub_531 <= p7_sub_531;
    p8_v162__1 <= p7_v162__1;
    p8_v169 <= p7_v169;
    p8_v142__2 <= p8_v142__2_comb;
    p8_v68__1 <= p7_v68__1;
    p8_v154__1 <= p8_v154__1_comb;
    p8_or_939 <= p7_or_939;
  end

  // ===== Pipe stage 9:
  wire [9:0] p9_literal_1292_comb;
  wire [10:0] p9_sign_ext_1310_comb;
  wire [10:0] p9_concat_1311_comb;
  wire [10:0] p9_add_1330_comb;
  wire [10:0] p9_literal_1342_comb;
  wire [7:0] p9_bit_slice_1343_comb;
  wire [10:0] p9_literal_1345_comb;
  wire p9_v148_comb;
  wire [30:0] p9_concat_1368_comb;
  wire p9_v146_comb;
  wire [30:0] p9_v157__1_comb;
  wire [30:0] p9_sign_ext_1417_comb;
  wire [30:0] p9_v159__1_comb;
  wire [31:0] p9_v162_comb;
  assign p9_literal_1292_comb = 10'h000;
  assign p9_sign_ext_1310_comb = {{1{p8_sub_531[9]}}, p8_sub_531};
  assign p9_concat_1311_comb = {p9_literal_1292_comb, p8_v142__2};
  assign p9_add_1330_comb = p9_sign_ext_1310_comb + p9_concat_1311_comb;
  assign p9_literal_1342_comb = 11'h0fe;
  assign p9_bit_slice_1343_comb = p9_add_1330_comb[7:0];
  assign p9_literal_1345_comb = 11'h000;
  assign p9_v148_comb = $signed(p9_add_1330_comb) > $signed(p9_literal_1342_comb);
  assign p9_concat_1368_comb = {p9_bit_slice_1343_comb, p8_v154__1};
  assign p9_v146_comb = $signed(p9_add_1330_comb) > $signed(p9_literal_1345_comb);
  assign p9_v157__1_comb = p9_v148_comb ? p0_literal_1369_comb : p9_concat_1368_comb;
  assign p9_sign_ext_1417_comb = {31{p9_v146_comb}};
  assign p9_v159__1_comb = p9_v157__1_comb & p9_sign_ext_1417_comb;
  assign p9_v162_comb = {p8_v162__1, p9_v159__1_comb};

  // Registers for pipe stage 9:
  reg p9_v61;
  reg [31:0] p9_v67;
  reg [31:0] p9_v169;
  reg [31:0] p9_v162;
  reg p9_v68__1;
  reg p9_or_939;
  always_ff @ (posedge clk_i) begin
    p9_v61 <= p8_v61;
    p9_v67 <= p8_v67;
    p9_v169 <= p8_v169;
    p9_v162 <= p9_v162_comb;
    p9_v68__1 <= p8_v68__1;
    p9_or_939 <= p8_or_939;
  end

  // ===== Pipe stage 10:
  wire [31:0] p10_sign_ext_1376_comb;
  wire [31:0] p10_v164_comb;
  wire [31:0] p10_v170_comb;
  wire [31:0] p10_v171_comb;
  assign p10_sign_ext_1376_comb = {32{p9_or_939}};
  assign p10_v164_comb = p9_v162 & p10_sign_ext_1376_comb;
  assign p10_v170_comb = p9_v68__1 ? p10_v164_comb : p9_v169;
  assign p10_v171_comb = p9_v61 ? p9_v67 : p10_v170_comb;

  // Registers for pipe stage 10:
  reg [31:0] y_o__output_flop;
  always_ff @ (posedge clk_i) begin
    y_o__output_flop <= p10_v171_comb;
  end
  assign y_o = y_o__output_flop;
endmodule
