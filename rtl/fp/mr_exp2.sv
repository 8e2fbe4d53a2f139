// SPDX-License-Identifier: Apache-2.0
//
// Unnormalised probability p = 65535 * 2^-d as u16, bit-exact to mr_exp2_u16 of host/cmodel/num.c:
// 64 linear segments; 0 from d = 17 on and for NaN.
//
// Timing: d_i (fp32, not negative) with valid_i; p_o with valid_o, mr_fp_pkg::EXP2_LAT (6) cycles
// later; one operation a cycle, no stall. p_o keeps its value while valid_o is low.
module mr_exp2 (
    input  logic        clk_i,
    input  logic        rst_ni,
    input  logic        valid_i,
    input  logic [31:0] d_i,
    output logic        valid_o,
    output logic [15:0] p_o
);
  // {value 20, drop to the next segment 14}, u16.4.
  logic [33:0] rom[0:63];
  initial begin
`include "rom_exp2.svh"
  end

  logic [4:0] valid_q;
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      valid_q <= 5'd0;
      valid_o <= 1'b0;
    end else begin
      valid_q <= {valid_q[3:0], valid_i};
      valid_o <= valid_q[4];
    end
  end

  // round(d 2^16): d = sig 2^(e-150), n = sig >> (134-e), and 134-e is 3..24 where n is used.
  function automatic [20:0] to_fixed(input [23:0] sig, input [4:0] sh_less_3);
    logic [44:0] x;
    begin
      x = {sig, 21'd0} >> sh_less_3;
      to_fixed = x[44:24] + {20'd0, x[23] && (x[24] || x[22:0] != 23'd0)};
    end
  endfunction

  // floor((y + 8 2^whole) / 2^(4 + whole)): the truncated bits are below the rounding bit.
  function automatic [15:0] descale(input [19:0] y, input [4:0] whole);
    descale = 16'((({1'b0, y} >> whole) + 21'd8) >> 4);
  endfunction

  logic big1_q, big2_q, big3_q, big4_q, big5_q;
  logic [23:0] sig1_q;
  logic [4:0] sh1_q, whole3_q, whole4_q, whole5_q;
  logic [20:0] n2_q;
  logic [33:0] word3_q;
  logic [9:0] t3_q;
  logic [13:0] prod4_q;
  logic [19:0] value4_q, y5_q;
  logic unused_sign;

  assign unused_sign = d_i[31];

  always_ff @(posedge clk_i) begin
    if (valid_i) begin
      big1_q <= d_i[30:0] >= 31'h41880000;  // 17.0; so are Inf and NaN
      sig1_q <= d_i[30:23] < 8'd110 ? 24'd0 : {1'b1, d_i[22:0]};
      sh1_q <= 5'(8'd131 - d_i[30:23]);
    end
    if (valid_q[0]) begin
      big2_q <= big1_q;
      n2_q <= to_fixed(sig1_q, sh1_q);
    end
    if (valid_q[1]) begin
      big3_q <= big2_q;
      word3_q <= rom[n2_q[15:10]];
      t3_q <= n2_q[9:0];
      whole3_q <= n2_q[20:16];
    end
    if (valid_q[2]) begin
      big4_q <= big3_q;
      prod4_q <= 14'(({10'd0, word3_q[13:0]} * {14'd0, t3_q}) >> 10);
      value4_q <= word3_q[33:14];
      whole4_q <= whole3_q;
    end
    if (valid_q[3]) begin
      big5_q <= big4_q;
      y5_q <= value4_q - {6'd0, prod4_q};
      whole5_q <= whole4_q;
    end
    if (valid_q[4]) p_o <= big5_q ? 16'd0 : descale(y5_q, whole5_q);
  end
endmodule
