// SPDX-License-Identifier: Apache-2.0
// Technology block: the adder of an accumulator whose sum is in a memory, in one DSP48E2.
//
//   sum_o = (first_i ? 0 : sum_i) + term
//
// Parameters
//   TERM_REG  0: the term has no register, and comes with the rest
//
// Timing: v_i takes term_i. sum_o follows sum_i and first_i at once. Empty where the build has no
// DSP48E2 (mr_tech_pkg).
module mr_dot_add #(
  parameter int TERM_REG = 1
) (
  input  logic        clk_i,
  input  logic        v_i,
  input  logic        first_i,
  input  logic [47:0] sum_i,
  input  logic [47:0] term_i,
  output logic [47:0] sum_o
);

  logic [47:0] unused_pc;
  mr_dsp48e2 #(.USE_MULT("NONE"), .CREG(TERM_REG)) u_dsp (
    .clk_i, .ce_ab_i(1'b0), .ce_c_i(v_i), .ce_d_i(1'b0), .ce_m_i(1'b0), .ce_p_i(1'b0),
    .inmode_i(5'd0), .opmode_i({7'b00_000_11, !first_i, !first_i}),  // X: A and B or 0, Y: C
    .a_i(sum_i[47:18]), .b_i(sum_i[17:0]), .c_i(term_i), .d_i(27'd0), .carry_i(1'b0), .pc_i(48'd0),
    .pc_o(unused_pc), .p_o(sum_o)
  );

endmodule
