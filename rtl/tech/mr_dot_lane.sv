// SPDX-License-Identifier: Apache-2.0
// One DSP48E2 of mr_dot: a lane of two dot products, and a link of the cascade that adds four.
//
//   up = (FIRST ? BIAS : down_i) + (hi_i * 2^18 + lo_i) * a_i
//
// With ALONE it is attention's (mr_attn_mac): a link of one dot product, or a multiplier alone:
//
//   up = (FIRST ? BIAS : down_i) + lo_i * a_i;   with alone_i: p = p_i * a_i
//
// Parameters
//   FIRST, BIAS  the cascade begins here, with BIAS
//   LAST         the cascade ends here: up_o has a register (v_i bit 2) and may go anywhere; the
//                others' has none and goes to the next one only
//   ALONE        1: as above; p_o is P, for LAST a cycle later than the others'
//
// Timing: v_i bit 0 takes the operands but p_i, bit 1 their product, bit 2 the sum. alone_i and p_i
// belong to bit 1; link_i, low for a product alone, to bit 2. It should come from a register, since
// a cascade of adders is behind it. Without ALONE they are not used. Empty where the build has no
// DSP48E2 (mr_tech_pkg).
module mr_dot_lane #(
  parameter int          FIRST = 0,
  parameter int          LAST = 0,
  parameter logic [47:0] BIAS = 48'd0,
  parameter int          ALONE = 0
) (
  input  logic        clk_i,
  input  logic [ 2:0] v_i,
  input  logic        alone_i,
  input  logic        link_i,
  input  logic [ 7:0] a_i,
  input  logic [ 7:0] lo_i,
  input  logic [ 7:0] hi_i,
  input  logic [26:0] p_i,
  input  logic [47:0] down_i,
  output logic [47:0] up_o,
  output logic [47:0] p_o
);

  localparam int AReg = (ALONE == 0) ? 1 : 0;

  // The pre-adder's D + A, D or A. W: the constant RND, or 0. Z: the cascade, or 0. X and Y: the
  // product.
  logic link;
  logic [4:0] inmode;
  logic [8:0] opmode;
  logic [26:0] a;
  assign link   = (ALONE == 0) || link_i;
  assign inmode = (ALONE == 0) ? 5'b00100 : alone_i ? 5'b00000 : 5'b00110;
  assign opmode = (FIRST != 0) ? {link, 8'b0_000_01_01} : {4'b00_00, link, 4'b01_01};
  assign a      = (ALONE != 0) ? p_i : {hi_i[7], hi_i, 18'd0};

  logic [47:0] pc;
  assign up_o = (LAST != 0) ? p_o : pc;

  mr_dsp48e2 #(
    .AMULTSEL("AD"), .AREG(AReg), .BREG(1), .DREG(1), .MREG(1), .PREG(LAST), .RND(BIAS)
  ) u_dsp (
    .clk_i, .ce_ab_i(v_i[0]), .ce_c_i(1'b0), .ce_d_i(v_i[0]), .ce_m_i(v_i[1]), .ce_p_i(v_i[2]),
    .inmode_i(inmode), .opmode_i(opmode), .a_i({{3{a[26]}}, a}), .b_i({{10{a_i[7]}}, a_i}),
    .c_i(48'd0), .d_i({{19{lo_i[7]}}, lo_i}), .carry_i(1'b0), .pc_i(down_i), .pc_o(pc), .p_o
  );

  logic unused;
  assign unused = ^{alone_i, link_i, p_i, hi_i};

endmodule
