// SPDX-License-Identifier: Apache-2.0
// A DSP48E2 as rtl/tech uses it: what the blocks do not need is tied off here. Without resets, and
// with control inputs that have no registers. Where the build has no DSP48E2 (mr_tech_pkg) it is
// empty and its outputs are 0.
//
// Parameters: those of the cell (AMD UG579) with the same names; AREG, BREG and DREG 0 or 1.
//
// Timing: an enable a register; c_i and carry_i share ce_c_i. inmode_i and opmode_i work at
// once. A register that the parameters leave out is a wire, and its enable has no effect.
module mr_dsp48e2 #(
  parameter              USE_MULT = "MULTIPLY",
  parameter              AMULTSEL = "A",
  parameter int          AREG = 0,
  parameter int          BREG = 0,
  parameter int          CREG = 0,
  parameter int          DREG = 0,
  parameter int          MREG = 0,
  parameter int          PREG = 0,
  parameter int          CARRYINREG = 0,
  parameter logic [47:0] RND = 48'd0
) (
  input  logic        clk_i,
  input  logic        ce_ab_i,
  input  logic        ce_c_i,
  input  logic        ce_d_i,
  input  logic        ce_m_i,
  input  logic        ce_p_i,
  input  logic [ 4:0] inmode_i,
  input  logic [ 8:0] opmode_i,
  input  logic [29:0] a_i,
  input  logic [17:0] b_i,
  input  logic [47:0] c_i,
  input  logic [26:0] d_i,
  input  logic        carry_i,
  input  logic [47:0] pc_i,   // from the cascade
  output logic [47:0] pc_o,
  output logic [47:0] p_o
);

`ifdef MILLRACE_DSP48E2
  DSP48E2 #(
    .USE_MULT(USE_MULT), .AMULTSEL(AMULTSEL), .AREG(AREG), .ACASCREG(AREG), .BREG(BREG),
    .BCASCREG(BREG), .DREG(DREG), .ADREG(0), .MREG(MREG), .PREG(PREG), .CREG(CREG), .ALUMODEREG(0),
    .CARRYINREG(CARRYINREG), .CARRYINSELREG(0), .INMODEREG(0), .OPMODEREG(0), .RND(RND)
  ) u_dsp (
    .CLK(clk_i), .A(a_i), .B(b_i), .C(c_i), .D(d_i), .INMODE(inmode_i), .OPMODE(opmode_i),
    .ALUMODE(4'd0), .CARRYIN(carry_i), .CARRYINSEL(3'd0), .CEA1(1'b0), .CEA2(ce_ab_i), .CEB1(1'b0),
    .CEB2(ce_ab_i), .CED(ce_d_i), .CEAD(1'b0), .CEM(ce_m_i), .CEP(ce_p_i), .CEC(ce_c_i),
    .CEALUMODE(1'b0), .CECARRYIN(ce_c_i), .CECTRL(1'b0), .CEINMODE(1'b0), .RSTA(1'b0), .RSTB(1'b0),
    .RSTC(1'b0), .RSTD(1'b0), .RSTM(1'b0), .RSTP(1'b0), .RSTALLCARRYIN(1'b0), .RSTALUMODE(1'b0),
    .RSTCTRL(1'b0), .RSTINMODE(1'b0), .ACIN(30'd0), .BCIN(18'd0), .CARRYCASCIN(1'b0),
    .MULTSIGNIN(1'b0), .PCIN(pc_i), .PCOUT(pc_o), .P(p_o)
  );
`else
  assign pc_o = 48'd0;
  assign p_o  = 48'd0;
  logic unused;
  assign unused = ^{clk_i, ce_ab_i, ce_c_i, ce_d_i, ce_m_i, ce_p_i, inmode_i, opmode_i, a_i, b_i,
                    c_i, d_i, carry_i, pc_i, USE_MULT, AMULTSEL, 1'(AREG), 1'(BREG), 1'(CREG),
                    1'(DREG), 1'(MREG), 1'(PREG), 1'(CARRYINREG), RND};
`endif

endmodule
