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
    input  logic [         1:0] function_i,  // of mr_vgelu

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
    output logic [LANES-1:0]    gt_o,
    output logic                gelu_valid_o,
    output logic [LANES*32-1:0] gelu_o,
    // scalar units, on lane 0 of a_i; rsqrt takes what its own valid says
    input  logic                rsqrt_valid_i,
    output logic                exp2_valid_o,
    output logic [15:0]         exp2_o,
    output logic                recip_valid_o,
    output logic [31:0]         recip_o,
    output logic                rsqrt_valid_o,
    output logic                rsqrt_ovf_o,
    output logic [31:0]         rsqrt_o
);
  mr_vfadd #(.LANES(LANES)) u_add (
    .clk_i, .rst_ni, .valid_i, .a_i, .b_i, .valid_o(add_valid_o), .y_o(add_o), .ovf_o(add_ovf_o)
  );
  mr_vfmul #(.LANES(LANES)) u_mul (
    .clk_i, .rst_ni, .valid_i, .a_i, .b_i, .valid_o(mul_valid_o), .y_o(mul_o), .ovf_o(mul_ovf_o)
  );
  mr_vacc2f #(.LANES(LANES)) u_cvt (
    .clk_i, .rst_ni, .valid_i, .acc_i, .exp_i, .valid_o(cvt_valid_o), .y_o(cvt_o), .ovf_o(cvt_ovf_o)
  );

  logic gelu_v, unused_gelu;
  logic [LANES*32-1:0] relu, neg;
  mr_vgelu #(.LANES(LANES)) u_gelu (
    .clk_i, .rst_ni, .valid_i, .fn_i(function_i), .x_i(a_i), .valid_o(gelu_v), .relu_o(relu),
    .neg_o(neg)
  );
  mr_vfadd #(.LANES(LANES)) u_gelu_add (
    .clk_i, .rst_ni, .valid_i(gelu_v), .a_i(relu), .b_i(neg), .valid_o(gelu_valid_o), .y_o(gelu_o),
    .ovf_o(unused_gelu)
  );
  mr_exp2 u_exp2 (
    .clk_i, .rst_ni, .valid_i, .d_i({1'b0, a_i[30:0]}), .valid_o(exp2_valid_o), .p_o(exp2_o)
  );
  mr_recip u_recip (
    .clk_i, .rst_ni, .valid_i, .v_i(a_i[31:0]), .valid_o(recip_valid_o), .y_o(recip_o)
  );
  mr_rsqrt u_rsqrt (
    .clk_i, .rst_ni, .valid_i(rsqrt_valid_i), .v_i(a_i[31:0]), .eps_i(a_i[0] ? b_i[31:0] : 32'd0),
    .valid_o(rsqrt_valid_o), .y_o(rsqrt_o), .ovf_o(rsqrt_ovf_o)
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
