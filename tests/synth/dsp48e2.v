// SPDX-License-Identifier: Apache-2.0
// DSP48E2 for simulation: what Yosys 0.23 makes of multiplications (a signed 27 x 18 multiplier without registers)
// and what rtl/tech instantiates, written from the user guide (UG579). Yosys has no simulation model of this cell.
//
// There are: one register each for A, B, C, D and CARRYIN or none; pre-adder D + A, D or A without a register; product and P with a
// register or none; X and Y: the product, or 0 or A:B and C; Z: 0, PCIN or P; W: 0 or RND; W + X + Y + Z + CARRYIN. Control
// inputs have no registers, and resets are not used. Another parameter is an unknown module here. Another value of a
// control input makes P wrong in every bit.
// verilator lint_off DECLFILENAME
// verilator lint_off UNUSED
// verilator lint_off WIDTH
module DSP48E2 #(
  parameter ACASCREG = 1,
  parameter ADREG = 1,
  parameter A_INPUT = "DIRECT",
  parameter ALUMODEREG = 1,
  parameter AREG = 1,
  parameter BCASCREG = 1,
  parameter B_INPUT = "DIRECT",
  parameter BREG = 1,
  parameter CARRYINREG = 1,
  parameter CARRYINSELREG = 1,
  parameter CREG = 1,
  parameter DREG = 1,
  parameter INMODEREG = 1,
  parameter MREG = 1,
  parameter OPMODEREG = 1,
  parameter PREG = 1,
  parameter [47:0] RND = 48'd0,
  parameter USE_MULT = "MULTIPLY",
  parameter USE_SIMD = "ONE48",
  parameter AMULTSEL = "A",
  parameter BMULTSEL = "B"
) (
  input         CLK,
  input  [29:0] A,
  input  [17:0] B,
  input  [47:0] C,
  input  [26:0] D,
  output [47:0] P,
  output [47:0] PCOUT,
  input  [ 4:0] INMODE,
  input  [ 3:0] ALUMODE,
  input  [ 8:0] OPMODE,
  input  [ 2:0] CARRYINSEL,
  input  [29:0] ACIN,
  input  [17:0] BCIN,
  input  [47:0] PCIN,
  input         CARRYIN,
  input         CARRYCASCIN,
  input         MULTSIGNIN,
  input         CEA1,
  input         CEA2,
  input         CEAD,
  input         CEALUMODE,
  input         CEB1,
  input         CEB2,
  input         CEC,
  input         CECARRYIN,
  input         CECTRL,
  input         CED,
  input         CEINMODE,
  input         CEM,
  input         CEP,
  input         RSTA,
  input         RSTALLCARRYIN,
  input         RSTALUMODE,
  input         RSTB,
  input         RSTC,
  input         RSTCTRL,
  input         RSTD,
  input         RSTINMODE,
  input         RSTM,
  input         RSTP
);
  generate
    if (AREG > 1 || BREG > 1 || ADREG != 0 || ALUMODEREG != 0 || CARRYINSELREG != 0 ||
        INMODEREG != 0 || OPMODEREG != 0 || A_INPUT != "DIRECT" || B_INPUT != "DIRECT" || USE_SIMD != "ONE48" ||
        (AMULTSEL != "A" && AMULTSEL != "AD") || BMULTSEL != "B") begin : gen_no
      dsp48e2_use_without_a_model u_no ();
    end
  endgenerate

  reg  [29:0] a_q;
  reg  [26:0] d_q;
  reg  [17:0] b_q;
  reg  [47:0] c_q, m_q, p_q;
  reg         carry_q;
  wire [29:0] a = AREG != 0 ? a_q : A;
  wire [26:0] d = DREG != 0 ? d_q : D;
  wire [17:0] b = BREG != 0 ? b_q : B;
  wire carry = CARRYINREG != 0 ? carry_q : CARRYIN;
  wire [47:0] c = CREG != 0 ? c_q : C;

  localparam PREADD = AMULTSEL == "AD";
  wire [26:0] ad = PREADD ? (INMODE[1] ? 27'd0 : a[26:0]) + (INMODE[2] ? d : 27'd0) : a[26:0];
  wire in_known = INMODE == 5'd0 || (PREADD && (INMODE == 5'd4 || INMODE == 5'd6));
  wire signed [47:0] x = {{21{ad[26]}}, ad};
  wire signed [47:0] y = {{30{b[17]}}, b};
  wire [47:0] product = in_known ? x * y : ~(x * y);
  wire [47:0] m = MREG != 0 ? m_q : product;

  wire [1:0] ow = OPMODE[8:7];
  wire [2:0] oz = OPMODE[6:4];
  wire [3:0] oxy = OPMODE[3:0];
  wire use_m = USE_MULT == "MULTIPLY" && oxy == 4'd5;
  wire use_ab = USE_MULT == "NONE" && oxy == 4'd15;
  wire known = (use_m || use_ab || oxy == 4'd12) && (oz == 3'd0 || oz == 3'd1 || (oz == 3'd2 && PREG != 0)) &&
               (ow == 2'd0 || ow == 2'd2) && ALUMODE == 4'd0 && CARRYINSEL == 3'd0;
  wire [47:0] sum = (ow == 2'd0 ? 48'd0 : RND) + (use_m ? m : c) + (use_ab ? {a, b} : 48'd0) +
                    (oz == 3'd0 ? 48'd0 : oz == 3'd1 ? PCIN : p_q) + {47'd0, carry};
  wire [47:0] alu = known ? sum : ~sum;
  assign P = PREG != 0 ? p_q : alu;
  assign PCOUT = P;

  always @(posedge CLK) begin
    if (CEA2) a_q <= A;
    if (CEB2) b_q <= B;
    if (CEC) c_q <= C;
    if (CED) d_q <= D;
    if (CECARRYIN) carry_q <= CARRYIN;
    if (CEM) m_q <= product;
    if (CEP) p_q <= alu;
  end
endmodule
