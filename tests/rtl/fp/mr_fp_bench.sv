// SPDX-License-Identifier: Apache-2.0
//
// All floating-point units side by side for the bench: one set of operands, one valid for each.
//
// LANES: lanes of the vector units.
module mr_fp_bench #(
    parameter int LANES = 4
) (
    input  logic                clk_i,
    input  logic                rst_ni,
    input  logic                valid_i,
    input  logic [LANES*32-1:0] a_i,
    input  logic [LANES*32-1:0] b_i,
    input  logic [LANES*48-1:0] acc_i,
    input  logic [LANES*11-1:0] exp_i,

    output logic                add_valid_o,
    output logic [LANES*32-1:0] add_o,
    output logic                add_ovf_o,
    output logic                mul_valid_o,
    output logic [LANES*32-1:0] mul_o,
    output logic                mul_ovf_o,
    output logic                cvt_valid_o,
    output logic [LANES*32-1:0] cvt_o,
    output logic                cvt_ovf_o,
    output logic                fn_valid_o,
    output logic [LANES*32-1:0] max_o,
    output logic [LANES*32-1:0] scale_o,
    output logic [LANES-1:0]    gt_o
);
  mr_vfadd #(.LANES(LANES)) u_add (
      .clk_i,
      .rst_ni,
      .valid_i,
      .a_i,
      .b_i,
      .valid_o(add_valid_o),
      .y_o(add_o),
      .ovf_o(add_ovf_o)
  );
  mr_vfmul #(.LANES(LANES)) u_mul (
      .clk_i,
      .rst_ni,
      .valid_i,
      .a_i,
      .b_i,
      .valid_o(mul_valid_o),
      .y_o(mul_o),
      .ovf_o(mul_ovf_o)
  );
  mr_vacc2f #(.LANES(LANES)) u_cvt (
      .clk_i,
      .rst_ni,
      .valid_i,
      .acc_i,
      .exp_i,
      .valid_o(cvt_valid_o),
      .y_o(cvt_o),
      .ovf_o(cvt_ovf_o)
  );

  always_ff @(posedge clk_i) begin
    fn_valid_o <= rst_ni && valid_i;
    if (valid_i) begin
      for (int l = 0; l < LANES; l++) begin
        max_o[32*l+:32] <= mr_fp_pkg::fmax(a_i[32*l+:32], b_i[32*l+:32]);
        gt_o[l] <= mr_fp_pkg::fgt(a_i[32*l+:32], b_i[32*l+:32]);
        scale_o[32*l+:32] <= mr_fp_pkg::fscale(a_i[32*l+:32], exp_i[11*l+:11]);
      end
    end
  end
endmodule
