// SPDX-License-Identifier: Apache-2.0
//
// 1/sqrt(v), bit-exact to mr_rsqrt of host/cmodel/num.c: table seed y0 and one Newton step
// y = y0 (1.5 - ((0.5 v) y0) y0). v <= 0, Inf or NaN gives NaN. One multiplier and one adder, used
// in turn.
//
// Timing: v_i with valid_i; y_o with valid_o, mr_fp_pkg::RSQRT_LAT (14) cycles later; one operation
// at a time: no valid_i before valid_o of the one before. y_o keeps its value until the next
// operation's first product.
module mr_rsqrt (
    input  logic        clk_i,
    input  logic        rst_ni,
    input  logic        valid_i,
    input  logic [31:0] v_i,
    output logic        valid_o,
    output logic [31:0] y_o
);
  logic [16:0] rom[0:127];
  initial begin
`include "rom_rsqrt.svh"
  end

  // Stage s + 1 has valid_q[s]: 1, 2 seed; 3..5, 6..8 products; 9..11 difference; 12..14 product.
  logic [12:0] valid_q;
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      valid_q <= 13'd0;
      valid_o <= 1'b0;
    end else begin
      valid_q <= {valid_q[11:0], valid_i};
      valid_o <= valid_q[12];
    end
  end

  // Seeds are in (1/2, 1) in units of 2^-16: the leading one is always bit 15. v = m 2^(2h + odd),
  // biased exponent e = 127 + 2h + odd, seed exponent 126 - h.
  function automatic [31:0] seed(input [14:0] m, input [7:0] e);
    seed = {1'b0, 8'd189 - {1'b0, e[7:1]} + {7'd0, ~e[0]}, m, 8'd0};
  endfunction

  logic bad_q;
  logic [31:0] v_q, half_q, y0_q, prod, diff;
  /* verilator lint_off UNUSEDSIGNAL */
  logic [16:0] word_q;  // bits 16 and 15 are the same in every entry
  /* verilator lint_on UNUSEDSIGNAL */
  logic unused_valid0, unused_valid1, unused_ovf0, unused_ovf1;

  always_ff @(posedge clk_i) begin
    if (valid_i) begin
      bad_q <= v_i[31] || v_i[30:23] == 8'd0 || v_i[30:23] == 8'd255;
      v_q <= v_i;
      word_q <= rom[{~v_i[23], v_i[22:17]}];
    end
    if (valid_q[0]) begin
      half_q <= mr_fp_pkg::fscale(v_q, -11'sd1);
      y0_q <= bad_q ? mr_fp_pkg::QNAN : seed(word_q[14:0], v_q[30:23]);
    end
  end

  mr_vfmul #(
      .LANES(1)
  ) u_mul (
      .clk_i,
      .rst_ni,
      .valid_i(valid_q[1] || valid_q[4] || valid_q[10]),
      .a_i    (y0_q),
      .b_i    (valid_q[1] ? half_q : valid_q[4] ? prod : diff),
      .valid_o(unused_valid0),
      .y_o    (prod),
      .ovf_o  (unused_ovf0)
  );
  mr_vfadd #(
      .LANES(1)
  ) u_sub (
      .clk_i,
      .rst_ni,
      .valid_i(valid_q[7]),
      .a_i    (mr_fp_pkg::FP_1P5),
      .b_i    ({~prod[31], prod[30:0]}),
      .valid_o(unused_valid1),
      .y_o    (diff),
      .ovf_o  (unused_ovf1)
  );

  assign y_o = prod;
endmodule
