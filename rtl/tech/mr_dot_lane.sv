// SPDX-License-Identifier: Apache-2.0
// One DSP48E2 of mr_dot: a lane of two dot products, and a link of the cascade that adds four.
//
//   up = (FIRST ? BIAS : down_i) + (hi_i * 2^18 + lo_i) * a_i
//
// Parameters
//   FIRST, BIAS  the cascade begins here, with BIAS
//   LAST         the cascade ends here: up_o has a register (v_i bit 2) and may go anywhere; the
//                others' has none and goes to the next one only
//
// Timing: v_i bit 0 takes the operands, bit 1 their product, bit 2 the sum. Empty where the build
// has no DSP48E2 (mr_tech_pkg).
module mr_dot_lane #(
  parameter int          FIRST = 0,
  parameter int          LAST = 0,
  parameter logic [47:0] BIAS = 48'd0
) (
  input  logic        clk_i,
  input  logic [ 2:0] v_i,
  input  logic [ 7:0] a_i,
  input  logic [ 7:0] lo_i,
  input  logic [ 7:0] hi_i,
  input  logic [47:0] down_i,
  output logic [47:0] up_o
);

  // W: the constant RND, or 0. Z: the cascade, or 0. X and Y: the product.
  localparam logic [8:0] OpMode = (FIRST != 0) ? 9'b10_000_01_01 : 9'b00_001_01_01;

  logic [47:0] p, pc;
  assign up_o = (LAST != 0) ? p : pc;

  mr_dsp48e2 #(
    .AMULTSEL("AD"),
    .AREG    (1),
    .BREG    (1),
    .DREG    (1),
    .MREG    (1),
    .PREG    (LAST),
    .RND     (BIAS)
  ) u_dsp (
    .clk_i,
    .ce_ab_i (v_i[0]),
    .ce_c_i  (1'b0),
    .ce_d_i  (v_i[0]),
    .ce_m_i  (v_i[1]),
    .ce_p_i  (v_i[2]),
    .opmode_i(OpMode),
    .a_i     ({{4{hi_i[7]}}, hi_i, 18'd0}),
    .b_i     ({{10{a_i[7]}}, a_i}),
    .c_i     (48'd0),
    .d_i     ({{19{lo_i[7]}}, lo_i}),
    .carry_i (1'b0),
    .pc_i    (down_i),
    .pc_o    (pc),
    .p_o     (p)
  );

endmodule
