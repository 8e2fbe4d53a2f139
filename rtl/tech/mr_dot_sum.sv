// SPDX-License-Identifier: Apache-2.0
// The DSP48E2 of mr_dot_acc: acc_o = (first_i ? 0 : acc_o) + term, and 1 more with round (GRAD 1).
// Timing: v_i bit 0 takes term_i and round_i, bit 1, with first_i, adds them. Empty where the build
// has no DSP48E2 (mr_tech_pkg).
module mr_dot_sum #(
  parameter int GRAD = 0
) (
  input  logic        clk_i,
  input  logic [ 1:0] v_i,
  input  logic        first_i,
  input  logic [47:0] term_i,
  input  logic        round_i,
  output logic [47:0] acc_o
);

  logic [47:0] unused_pc;
  mr_dsp48e2 #(.USE_MULT("NONE"), .CREG(1), .PREG(1), .CARRYINREG(GRAD)) u_dsp (
    .clk_i, .ce_ab_i(1'b0), .ce_c_i(v_i[0]), .ce_d_i(1'b0), .ce_m_i(1'b0), .ce_p_i(v_i[1]),
    .inmode_i(5'd0), .opmode_i({3'b000, !first_i, 5'b0_11_00}),  // Z: P or 0, Y: C
    .a_i(30'd0), .b_i(18'd0), .c_i(term_i), .d_i(27'd0), .carry_i(1'(GRAD) & round_i), .pc_i(48'd0),
    .pc_o(unused_pc), .p_o(acc_o)
  );

endmodule
