// SPDX-License-Identifier: Apache-2.0
//
// LANES derivatives of gelu_new, of the exact GELU or of relu, 16 bits signed with 14 of them
// fraction, GELU's by 320 linear segments on [0, 5); bit-exact to mr_function_slope of
// host/cmodel/backward.c.
//
// LANES: number of lanes.
// Timing: x_i and fn_i (FUNCTION_* of mr_pkg, not NONE) with valid_i; e_o with valid_o, 5 cycles
// later; one operation a cycle, no stall.
module mr_vslope #(
    parameter int LANES = 4
) (
    input  logic                clk_i,
    input  logic                rst_ni,
    input  logic                valid_i,
    input  logic [          1:0] fn_i,
    input  logic [LANES*32-1:0] x_i,
    output logic                valid_o,
    output logic [LANES*16-1:0] e_o
);
  // {value 21, step 15}, both signed and in units of 2^-20: of 1 - the derivative, a page each.
  (* rom_style = "block" *) logic [35:0] rom[0:831];
  initial begin
`include "rom_slope.svh"
  end

  // Valid bits of the stages: 1 index, 2 ROM, 3 its register, 4 product, 5 result.
  logic [4:0] valid_q;
  always_ff @(posedge clk_i) begin
    if (!rst_ni) valid_q <= 5'd0;
    else valid_q <= {valid_q[3:0], valid_i};
  end
  assign valid_o = valid_q[4];

  // Of relu, all numbers are beyond the table; 0 and what counts as 0 are with negative ones.
  logic relu, exact_q;
  assign relu = fn_i == mr_pkg::FUNCTION_RELU[1:0];
  always_ff @(posedge clk_i) if (valid_i) exact_q <= fn_i == mr_pkg::FUNCTION_GELU[1:0];

  for (genvar l = 0; l < LANES; l++) begin : gen_lane
    logic [22:0] n_q;
    logic [35:0] word_q, word3_q;
    logic [13:0] t_q, t3_q;
    logic [2:0] kind_q, kind2_q, kind3_q, kind4_q;  // NaN, at least 5, negative
    logic signed [15:0] prod_q;
    logic signed [20:0] value_q;
    logic [15:0] q;

    assign q = kind4_q[1] ? 16'd0 : 16'((value_q + 21'(prod_q) + 21'sd32) >>> 6);

    always_ff @(posedge clk_i) begin
      if (valid_i) begin
        n_q <= mr_fp_pkg::gelu_index(x_i[32*l+:31]);
        kind_q <= {x_i[32*l+:31] > 31'h7F800000, relu || x_i[32*l+:31] >= 31'h40A00000,
                   x_i[32*l+31] || (relu && x_i[32*l+23+:8] == 8'd0)};
      end
      if (valid_q[0]) begin
        word_q <= rom[{exact_q, n_q[22:14]}];
        t_q <= n_q[13:0];
        kind2_q <= kind_q;
      end
      if (valid_q[1]) begin
        word3_q <= word_q;
        t3_q <= t_q;
        kind3_q <= kind2_q;
      end
      if (valid_q[2]) begin
        prod_q <=
            16'(($signed({{15{word3_q[14]}}, word3_q[14:0]}) * $signed({16'd0, t3_q})) >>> 14);
        value_q <= word3_q[35:15];
        kind4_q <= kind3_q;
      end
      if (valid_q[3]) e_o[16*l+:16] <= kind4_q[2] ? 16'h8000 : kind4_q[0] ? q : 16'h4000 - q;
    end
  end
endmodule
