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

`ifdef MILLRACE_DSP48E2
  // W: the constant RND, or 0. Z: the cascade, or 0. X and Y: the product.
  localparam logic [8:0] OpMode = (FIRST != 0) ? 9'b10_000_01_01 : 9'b00_001_01_01;

  logic [47:0] p, pc;
  assign up_o = (LAST != 0) ? p : pc;

  DSP48E2 #(
    .AMULTSEL     ("AD"),
    .AREG         (1),
    .ACASCREG     (1),
    .BREG         (1),
    .BCASCREG     (1),
    .DREG         (1),
    .ADREG        (0),
    .MREG         (1),
    .PREG         (LAST),
    .CREG         (0),
    .ALUMODEREG   (0),
    .CARRYINREG   (0),
    .CARRYINSELREG(0),
    .INMODEREG    (0),
    .OPMODEREG    (0),
    .RND          (BIAS)
  ) u_dsp (
    .CLK          (clk_i),
    .A            ({{4{hi_i[7]}}, hi_i, 18'd0}),
    .B            ({{10{a_i[7]}}, a_i}),
    .C            (48'd0),
    .D            ({{19{lo_i[7]}}, lo_i}),
    .INMODE       (5'b00100),  // D + A2
    .OPMODE       (OpMode),
    .ALUMODE      (4'd0),
    .CARRYIN      (1'b0),
    .CARRYINSEL   (3'd0),
    .CEA1         (1'b0),
    .CEA2         (v_i[0]),
    .CEB1         (1'b0),
    .CEB2         (v_i[0]),
    .CED          (v_i[0]),
    .CEAD         (1'b0),
    .CEM          (v_i[1]),
    .CEP          (v_i[2]),
    .CEC          (1'b0),
    .CEALUMODE    (1'b0),
    .CECARRYIN    (1'b0),
    .CECTRL       (1'b0),
    .CEINMODE     (1'b0),
    .RSTA         (1'b0),
    .RSTB         (1'b0),
    .RSTC         (1'b0),
    .RSTD         (1'b0),
    .RSTM         (1'b0),
    .RSTP         (1'b0),
    .RSTALLCARRYIN(1'b0),
    .RSTALUMODE   (1'b0),
    .RSTCTRL      (1'b0),
    .RSTINMODE    (1'b0),
    .ACIN         (30'd0),
    .BCIN         (18'd0),
    .CARRYCASCIN  (1'b0),
    .MULTSIGNIN   (1'b0),
    .PCIN         (down_i),
    .PCOUT        (pc),
    .P            (p)
  );
`else
  assign up_o = down_i;
  logic unused;
  assign unused = ^{clk_i, v_i, a_i, lo_i, hi_i, BIAS, 1'(FIRST), 1'(LAST)};
`endif

endmodule
