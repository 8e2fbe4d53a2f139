// SPDX-License-Identifier: Apache-2.0
//
// 1/v, bit-exact to mr_recip of host/cmodel/num.c: table seed y0 and one Newton step
// y = y0 (2 - v y0). v <= 0, Inf or NaN gives NaN.
//
// Timing: v_i with valid_i; y_o with valid_o, mr_fp_pkg::RECIP_LAT (11) cycles later; one operation
// a cycle, no stall. y_o keeps its value while valid_o is low.
module mr_recip (
    input  logic        clk_i,
    input  logic        rst_ni,
    input  logic        valid_i,
    input  logic [31:0] v_i,
    output logic        valid_o,
    output logic [31:0] y_o
);
  logic [16:0] rom[0:127];
  initial begin
`include "rom_recip.svh"
  end

  // 1, 2: seed; 3..5: v y0; 6..8: 2 - v y0; 9..11: y.
  logic [7:0] valid_q;
  always_ff @(posedge clk_i) begin
    if (!rst_ni) valid_q <= 8'd0;
    else valid_q <= {valid_q[6:0], valid_i};
  end

  // Seeds are in (1/2, 1) in units of 2^-16: the leading one is always bit 15.
  function automatic [31:0] seed(input [14:0] m, input [7:0] e);
    seed = e >= 8'd253 ? 32'd0 : {1'b0, 8'd253 - e, m, 8'd0};
  endfunction

  logic bad1_q;
  logic [31:0] v1_q, v2_q, vy, two_minus, y0, y0_late;
  /* verilator lint_off UNUSEDSIGNAL */
  logic [16:0] word_q;  // bits 16 and 15 are the same in every entry
  /* verilator lint_on UNUSEDSIGNAL */
  logic [31:0] y0_q[0:7];  // y0 while the product and the difference are under way
  logic [2:0] wr_q, rd_q;
  logic unused_valid0, unused_valid1, unused_ovf0, unused_ovf1, unused_ovf2;

  always_ff @(posedge clk_i) begin
    if (valid_i) begin
      bad1_q <= v_i[31] || v_i[30:23] == 8'd0 || v_i[30:23] == 8'd255;
      v1_q <= v_i;
      word_q <= rom[v_i[22:16]];
    end
    if (valid_q[0]) begin
      v2_q <= v1_q;
      y0 <= bad1_q ? mr_fp_pkg::QNAN : seed(word_q[14:0], v1_q[30:23]);
    end
  end

  // A ring instead of a six-stage delay line.
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      wr_q <= 3'd0;
      rd_q <= 3'd0;
    end else begin
      if (valid_q[1]) wr_q <= wr_q + 3'd1;
      if (valid_q[6]) rd_q <= rd_q + 3'd1;
    end
  end
  always_ff @(posedge clk_i) begin
    if (valid_q[1]) y0_q[wr_q] <= y0;
    if (valid_q[6]) y0_late <= y0_q[rd_q];
  end

  mr_vfmul #(.LANES(1)) u_mul0 (
    .clk_i, .rst_ni, .valid_i(valid_q[1]), .a_i(v2_q), .b_i(y0), .valid_o(unused_valid0), .y_o(vy),
    .ovf_o(unused_ovf0)
  );
  mr_vfadd #(.LANES(1)) u_sub (
    .clk_i, .rst_ni, .valid_i(valid_q[4]), .a_i(mr_fp_pkg::FP_TWO), .b_i({~vy[31], vy[30:0]}),
    .valid_o(unused_valid1), .y_o(two_minus), .ovf_o(unused_ovf1)
  );
  mr_vfmul #(.LANES(1)) u_mul1 (
    .clk_i, .rst_ni, .valid_i(valid_q[7]), .a_i(y0_late), .b_i(two_minus), .valid_o(valid_o),
    .y_o(y_o), .ovf_o(unused_ovf2)
  );
endmodule
