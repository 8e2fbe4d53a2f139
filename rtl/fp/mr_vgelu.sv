// SPDX-License-Identifier: Apache-2.0
//
// LANES units for gelu_new, the exact GELU and relu, but for their addition: relu(x) and -g(|x|), g
// by 320 linear segments on [0, 5), 0 for relu. Their sum, which an mr_vfadd makes, is bit-exact to
// mr_function of host/cmodel/num.h.
//
// LANES: number of lanes.
// Timing: x_i and fn_i (FUNCTION_* of mr_pkg, not NONE) with valid_i; relu_o and neg_o with
// valid_o, mr_fp_pkg::GELU_LAT (7) cycles later; one operation a cycle, no stall.
module mr_vgelu #(
    parameter int LANES = 4
) (
    input  logic                clk_i,
    input  logic                rst_ni,
    input  logic                valid_i,
    input  logic [          1:0] fn_i,
    input  logic [LANES*32-1:0] x_i,
    output logic                valid_o,
    output logic [LANES*32-1:0] relu_o,
    output logic [LANES*32-1:0] neg_o
);
  // {value 23, slope 19}, both in units of 2^-24; the value is never negative.
  // Two pages, of gelu_new and of GELU. Block RAM: the read is registered. In LUTs a table takes
  // some 200 a lane.
  (* rom_style = "block" *) logic [41:0] rom[0:831];
  initial begin
`include "rom_gelu.svh"
  end

  // Valid bits of the stages: 1 index, 2 ROM, 3 its register, 4 product, 5 g, 6 zeros at its top, 7
  // to fp32.
  logic [6:0] valid_q;
  always_ff @(posedge clk_i) begin
    if (!rst_ni) valid_q <= 7'd0;
    else valid_q <= {valid_q[5:0], valid_i};
  end

  // Of relu g is 0: a reset, behind all that is long.
  logic exact_q;
  logic [3:0] relu_q;
  always_ff @(posedge clk_i) begin
    exact_q <= fn_i == mr_pkg::FUNCTION_GELU[1:0];
    relu_q <= {relu_q[2:0], fn_i == mr_pkg::FUNCTION_RELU[1:0]};
  end

  logic [LANES*32-1:0] pos1_q, pos2_q, pos3_q, pos4_q, pos5_q, pos6_q;

  // max(x, 0) as the device reads x; NaN stays.
  function automatic [31:0] relu(input [31:0] x);
    logic nan;
    begin
      nan = x[30:23] == 8'd255 && x[22:0] != 23'd0;
      relu = nan ? mr_fp_pkg::QNAN : x[31] || x[30:23] == 8'd0 ? 32'd0 : x;
    end
  endfunction

  always_ff @(posedge clk_i) begin
    if (valid_i) begin
      for (int l = 0; l < LANES; l++) pos1_q[32*l+:32] <= relu(x_i[32*l+:32]);
    end
    if (valid_q[0]) pos2_q <= pos1_q;
    if (valid_q[1]) pos3_q <= pos2_q;
    if (valid_q[2]) pos4_q <= pos3_q;
    if (valid_q[3]) pos5_q <= pos4_q;
    if (valid_q[4]) pos6_q <= pos5_q;
    if (valid_q[5]) relu_o <= pos6_q;
  end

  // -g as fp32: g has 22 bits in units of 2^-24, so nothing is rounded.
  function automatic [31:0] negative(input [21:0] g, input [2:0] zeros);
    logic [4:0] n;
    logic [23:0] y;
    begin
      {n, y} = mr_fp_pkg::norm25({g, 3'd0}, zeros);
      negative = {1'b1, y[23] ? 8'd124 - {3'd0, n} : 8'd0, y[22:0]};
    end
  endfunction

  for (genvar l = 0; l < LANES; l++) begin : gen_lane
    logic [22:0] n_q;
    logic [41:0] word_q, word3_q;
    logic [13:0] t_q, t3_q;
    logic [19:0] prod_q;
    logic [21:0] value_q, g_q, g6_q;
    logic [2:0] zeros_q;
    logic unused_top;

    // Over the whole table g lies in 0..2852899: no sign and 22 bits.
    assign unused_top = word3_q[41];

    always_ff @(posedge clk_i) begin
      if (valid_i) n_q <= mr_fp_pkg::gelu_index(x_i[32*l+:31]);
      if (valid_q[0]) begin
        word_q <= rom[{exact_q, n_q[22:14]}];
        t_q <= n_q[13:0];
      end
      if (valid_q[1]) begin
        word3_q <= word_q;
        t3_q <= t_q;
      end
      if (valid_q[2]) begin
        prod_q <=
            20'(($signed({{15{word3_q[18]}}, word3_q[18:0]}) * $signed({20'd0, t3_q})) >>> 14);
        value_q <= word3_q[40:19];
      end
      if (valid_q[3]) g_q <= relu_q[3] ? 22'd0 : value_q + {{2{prod_q[19]}}, prod_q};
      if (valid_q[4]) begin
        g6_q <= g_q;
        zeros_q <= mr_fp_pkg::zeros24({g_q, 2'd0});
      end
      if (valid_q[5]) neg_o[32*l+:32] <= negative(g6_q, zeros_q);
    end
  end

  assign valid_o = valid_q[6];
endmodule
