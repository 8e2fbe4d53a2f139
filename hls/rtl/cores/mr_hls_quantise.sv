// SPDX-License-Identifier: Apache-2.0
// Made by hls/xls/generate.py from core_quantise() of hls/xls/cores.cpp; change it there.
//
// Timing: operands in any cycle; y_o mr_hls_pkg::QUANTISE_LAT cycles later, 4. No stall, no
// reset.
//
// XLS slices what it needs from values of whole functions, so parts of them are unused.
// verilator lint_off UNUSEDSIGNAL
module mr_hls_quantise(
  input wire clk_i,
  input wire [31:0] a_i,
  input wire [7:0] code_i,
  output wire [7:0] y_o
);
  // ===== Pipe stage 0:
  wire p0_literal_582_comb;
  wire [7:0] p0_bit_slice_584_comb;
  wire [7:0] p0_v11_comb;
  wire [7:0] p0_v79_comb;
  wire [8:0] p0_concat_592_comb;
  wire [8:0] p0_v4__2_comb;
  wire [7:0] p0_v12_comb;
  wire [8:0] p0_sub_607_comb;
  wire [6:0] p0_bit_slice_610_comb;
  wire [9:0] p0_sign_ext_625_comb;
  wire [9:0] p0_literal_626_comb;
  wire p0_v15_comb;
  wire p0_v75_comb;
  wire p0_v9_comb;
  wire [22:0] p0_bit_slice_647_comb;
  wire [9:0] p0_add_648_comb;
  wire p0_not_650_comb;
  assign p0_literal_582_comb = 1'h0;
  assign p0_bit_slice_584_comb = a_i[30:23];
  assign p0_v11_comb = 8'h01;
  assign p0_v79_comb = 8'h00;
  assign p0_concat_592_comb = {p0_literal_582_comb, code_i};
  assign p0_v4__2_comb = {p0_literal_582_comb, p0_bit_slice_584_comb};
  assign p0_v12_comb = code_i + p0_v11_comb;
  assign p0_sub_607_comb = p0_concat_592_comb - p0_v4__2_comb;
  assign p0_bit_slice_610_comb = p0_v12_comb[7:1];
  assign p0_sign_ext_625_comb = {{1{p0_sub_607_comb[8]}}, p0_sub_607_comb};
  assign p0_literal_626_comb = 10'h011;
  assign p0_v15_comb = |p0_bit_slice_610_comb;
  assign p0_v75_comb = a_i[31];
  assign p0_v9_comb = p0_bit_slice_584_comb == p0_v79_comb;
  assign p0_bit_slice_647_comb = a_i[22:0];
  assign p0_add_648_comb = p0_sign_ext_625_comb + p0_literal_626_comb;
  assign p0_not_650_comb = ~p0_v15_comb;

  // Registers for pipe stage 0:
  reg p0_v75;
  reg p0_v9;
  reg [22:0] p0_bit_slice_297;
  reg [9:0] p0_add_336;
  reg p0_not_458;
  always_ff @ (posedge clk_i) begin
    p0_v75 <= p0_v75_comb;
    p0_v9 <= p0_v9_comb;
    p0_bit_slice_297 <= p0_bit_slice_647_comb;
    p0_add_336 <= p0_add_648_comb;
    p0_not_458 <= p0_not_650_comb;
  end

  // ===== Pipe stage 1:
  wire [31:0] p1_v7_comb;
  wire [23:0] p1_literal_574_comb;
  wire [10:0] p1_bit_slice_577_comb;
  wire [10:0] p1_literal_578_comb;
  wire [10:0] p1_add_586_comb;
  wire [31:0] p1_v39_comb;
  wire p1_literal_597_comb;
  wire [22:0] p1_not_608_comb;
  wire [23:0] p1_literal_609_comb;
  wire [9:0] p1_literal_611_comb;
  wire [23:0] p1_decode_612_comb;
  wire [23:0] p1_v36__1_comb;
  wire [23:0] p1_concat_627_comb;
  wire [23:0] p1_shll_628_comb;
  wire p1_ugt_632_comb;
  wire [23:0] p1_v42__1_comb;
  wire [23:0] p1_v37_narrowed_comb;
  wire [23:0] p1_v52__1_comb;
  wire p1_v65_comb;
  wire p1_ne_653_comb;
  assign p1_v7_comb = {{22{p0_add_336[9]}}, p0_add_336};
  assign p1_literal_574_comb = 24'h00_0000;
  assign p1_bit_slice_577_comb = p1_v7_comb[10:0];
  assign p1_literal_578_comb = 11'h7ff;
  assign p1_add_586_comb = p1_bit_slice_577_comb + p1_literal_578_comb;
  assign p1_v39_comb = {{21{p1_add_586_comb[10]}}, p1_add_586_comb};
  assign p1_literal_597_comb = 1'h1;
  assign p1_not_608_comb = ~p0_bit_slice_297;
  assign p1_literal_609_comb = 24'hff_ffff;
  assign p1_literal_611_comb = 10'h019;
  assign p1_decode_612_comb = p1_v39_comb >= 32'h0000_0018 ? 24'h00_0000 : 24'h00_0001 << p1_v39_comb;
  assign p1_v36__1_comb = {p1_literal_597_comb, p0_bit_slice_297};
  assign p1_concat_627_comb = {p0_literal_582_comb, p1_not_608_comb};
  assign p1_shll_628_comb = p1_v39_comb >= 32'h0000_0018 ? 24'h00_0000 : p1_literal_609_comb << p1_v39_comb;
  assign p1_ugt_632_comb = p0_add_336 > p1_literal_611_comb;
  assign p1_v42__1_comb = p1_decode_612_comb & p1_v36__1_comb;
  assign p1_v37_narrowed_comb = p1_v7_comb >= 32'h0000_0018 ? 24'h00_0000 : p1_v36__1_comb >> p1_v7_comb;
  assign p1_v52__1_comb = ~(p1_concat_627_comb | p1_shll_628_comb);
  assign p1_v65_comb = ~(p0_v9 | p0_not_458 | p1_ugt_632_comb);
  assign p1_ne_653_comb = p1_v42__1_comb != p1_literal_574_comb;

  // Registers for pipe stage 1:
  reg p1_v75;
  reg [23:0] p1_v37_narrowed;
  reg [23:0] p1_v52__1;
  reg p1_v65;
  reg p1_ne_494;
  always_ff @ (posedge clk_i) begin
    p1_v75 <= p0_v75;
    p1_v37_narrowed <= p1_v37_narrowed_comb;
    p1_v52__1 <= p1_v52__1_comb;
    p1_v65 <= p1_v65_comb;
    p1_ne_494 <= p1_ne_653_comb;
  end

  // ===== Pipe stage 2:
  wire p2_v54_comb;
  wire p2_v56__1_comb;
  wire p2_v60_comb;
  wire p2_v64__2_comb;
  wire [24:0] p2_v64__1_comb;
  wire [24:0] p2_concat_624_comb;
  wire [24:0] p2_add_646_comb;
  assign p2_v54_comb = p1_v52__1 != p1_literal_574_comb;
  assign p2_v56__1_comb = p1_v37_narrowed[0];
  assign p2_v60_comb = p2_v54_comb | p2_v56__1_comb;
  assign p2_v64__2_comb = p1_ne_494 & p2_v60_comb;
  assign p2_v64__1_comb = {p1_literal_574_comb, p2_v64__2_comb};
  assign p2_concat_624_comb = {p0_literal_582_comb, p1_v37_narrowed};
  assign p2_add_646_comb = p2_v64__1_comb + p2_concat_624_comb;

  // Registers for pipe stage 2:
  reg p2_v75;
  reg [24:0] p2_add_257;
  reg p2_v65;
  always_ff @ (posedge clk_i) begin
    p2_v75 <= p1_v75;
    p2_add_257 <= p2_add_646_comb;
    p2_v65 <= p1_v65;
  end

  // ===== Pipe stage 3:
  wire [17:0] p3_bit_slice_579_comb;
  wire p3_or_reduce_587_comb;
  wire [7:0] p3_bit_slice_588_comb;
  wire [7:0] p3_literal_589_comb;
  wire [7:0] p3_v71__2_comb;
  wire [7:0] p3_sub_615_comb;
  wire [7:0] p3_v76__1_comb;
  wire [7:0] p3_sign_ext_635_comb;
  wire [7:0] p3_v80_comb;
  assign p3_bit_slice_579_comb = p2_add_257[24:7];
  assign p3_or_reduce_587_comb = |p3_bit_slice_579_comb;
  assign p3_bit_slice_588_comb = p2_add_257[7:0];
  assign p3_literal_589_comb = 8'h7f;
  assign p3_v71__2_comb = p3_or_reduce_587_comb ? p3_literal_589_comb : p3_bit_slice_588_comb;
  assign p3_sub_615_comb = p0_v79_comb - p3_v71__2_comb;
  assign p3_v76__1_comb = p2_v75 ? p3_sub_615_comb : p3_v71__2_comb;
  assign p3_sign_ext_635_comb = {8{p2_v65}};
  assign p3_v80_comb = p3_v76__1_comb & p3_sign_ext_635_comb;

  // Registers for pipe stage 3:
  reg [7:0] y_o__output_flop;
  always_ff @ (posedge clk_i) begin
    y_o__output_flop <= p3_v80_comb;
  end
  assign y_o = y_o__output_flop;
endmodule
