// SPDX-License-Identifier: Apache-2.0
//
// 1/sqrt(v + eps), bit-exact to mr_rsqrt(mr_fadd(v, eps)) of host/cmodel/num.c: a rounded sum v',
// then table seed y0 and one Newton step y = y0 (1.5 - ((0.5 v') y0) y0). v' <= 0, Inf or NaN gives
// NaN. One multiplier and one adder, used in turn: a register stands behind the selects.
//
// Timing: v_i and eps_i with valid_i; y_o with valid_o, mr_fp_pkg::RSQRT_LAT (18) cycles later; one
// operation at a time: no valid_i before valid_o of the one before. y_o keeps its value until the
// next one's. ovf_o: pulse, the sum overflowed.
module mr_rsqrt (
    input  logic        clk_i,
    input  logic        rst_ni,
    input  logic        valid_i,
    input  logic [31:0] v_i,
    input  logic [31:0] eps_i,
    output logic        valid_o,
    output logic [31:0] y_o,
    output logic        ovf_o
);
  logic [16:0] rom[0:127];
  initial begin
`include "rom_rsqrt.svh"
  end

  // Stage s + 1 has valid_q[s]: 1 operands; 2..4 sum; 5 seed; 6..8, 9..11 products, whose last
  // registers are operands'; 12..14 difference; 15 operand; 16..18 product.
  logic [16:0] valid_q;
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      valid_q <= 17'd0;
      valid_o <= 1'b0;
    end else begin
      valid_q <= {valid_q[15:0], valid_i};
      valid_o <= valid_q[16];
    end
  end

  // Seeds are in (1/2, 1) in units of 2^-16: the leading one is always bit 15. v = m 2^(2h + odd),
  // biased exponent e = 127 + 2h + odd, seed exponent 126 - h.
  function automatic [31:0] seed(input [14:0] m, input [7:0] e);
    seed = {1'b0, 8'd189 - {1'b0, e[7:1]} + {7'd0, ~e[0]}, m, 8'd0};
  endfunction

  logic bad;
  logic [31:0] y0_q, add_a_q, add_b_q, mul_b_q, prod, sum;
  /* verilator lint_off UNUSEDSIGNAL */
  logic [16:0] word;  // bits 16 and 15 are the same in every entry
  /* verilator lint_on UNUSEDSIGNAL */
  logic unused_valid0, unused_valid1, unused_ovf0;

  assign bad = sum[31] || sum[30:23] == 8'd0 || sum[30:23] == 8'd255;
  assign word = rom[{~sum[23], sum[22:17]}];
  always_ff @(posedge clk_i) begin
    if (valid_i || valid_q[9]) begin
      add_a_q <= valid_i ? v_i : mr_fp_pkg::FP_1P5;
      add_b_q <= valid_i ? eps_i : {~prod[31], prod[30:0]};
    end
    if (valid_q[3]) y0_q <= bad ? mr_fp_pkg::QNAN : seed(word[14:0], sum[30:23]);
    if (valid_q[3] || valid_q[6] || valid_q[13]) begin
      // 0.5 v': without an exponent it is 0 to the multiplier, and y0 is NaN if v' had none.
      mul_b_q <= valid_q[6] ? prod : {sum[31], sum[30:23] - {7'd0, valid_q[3]}, sum[22:0]};
    end
    if (valid_q[16]) y_o <= prod;
  end

  mr_vfmul #(.LANES(1), .EARLY(1)) u_mul (
    .clk_i, .rst_ni, .valid_i(valid_q[4] || valid_q[7] || valid_q[14]), .a_i(y0_q), .b_i(mul_b_q),
    .valid_o(unused_valid0), .y_o(prod), .ovf_o(unused_ovf0)
  );
  mr_vfadd #(.LANES(1)) u_add (
    .clk_i, .rst_ni, .valid_i(valid_q[0] || valid_q[10]), .a_i(add_a_q), .b_i(add_b_q),
    .valid_o(unused_valid1), .y_o(sum), .ovf_o(ovf_o)
  );
endmodule
