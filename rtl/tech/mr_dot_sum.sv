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

`ifdef MILLRACE_DSP48E2
  logic [47:0] pc;
  DSP48E2 #(
    .USE_MULT     ("NONE"),
    .AREG         (0),
    .ACASCREG     (0),
    .BREG         (0),
    .BCASCREG     (0),
    .DREG         (0),
    .ADREG        (0),
    .MREG         (0),
    .CREG         (1),
    .PREG         (1),
    .ALUMODEREG   (0),
    .CARRYINREG   (GRAD),
    .CARRYINSELREG(0),
    .INMODEREG    (0),
    .OPMODEREG    (0)
  ) u_dsp (
    .CLK          (clk_i),
    .A            (30'd0),
    .B            (18'd0),
    .C            (term_i),
    .D            (27'd0),
    .INMODE       (5'd0),
    .OPMODE       ({3'b000, !first_i, 5'b0_11_00}),  // Z: P or 0, Y: C
    .ALUMODE      (4'd0),
    .CARRYIN      ((GRAD != 0) ? round_i : 1'b0),
    .CARRYINSEL   (3'd0),
    .CEA1         (1'b0),
    .CEA2         (1'b0),
    .CEB1         (1'b0),
    .CEB2         (1'b0),
    .CED          (1'b0),
    .CEAD         (1'b0),
    .CEM          (1'b0),
    .CEP          (v_i[1]),
    .CEC          (v_i[0]),
    .CEALUMODE    (1'b0),
    .CECARRYIN    (v_i[0]),
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
    .PCIN         (48'd0),
    .PCOUT        (pc),
    .P            (acc_o)
  );
  logic unused;
  assign unused = ^{pc, round_i};
`else
  assign acc_o = term_i;
  logic unused;
  assign unused = ^{clk_i, v_i, first_i, round_i, 1'(GRAD)};
`endif

endmodule
