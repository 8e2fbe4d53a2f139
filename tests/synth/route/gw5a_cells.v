// SPDX-License-Identifier: Apache-2.0
// What gw5a.v uses of GW5A's multipliers, for simulation; Yosys has no models of these. Signed, no registers.
// verilator lint_off DECLFILENAME
// verilator lint_off UNUSED
module MULT12X12 (
  output [23:0] DOUT,
  input  [11:0] A, B,
  input  [1:0]  CLK, CE, RESET
);
  assign DOUT = $signed(A) * $signed(B);
endmodule

// The product alone: an input that would add to it makes the result wrong in every bit.
module MULTALU27X18 #(parameter C_SEL = 1'b1) (
  output [47:0] DOUT, CASO,
  output [26:0] SOA,
  input  [26:0] A, SIA,
  input  [17:0] B,
  input  [47:0] C,
  input  [25:0] D,
  input  [47:0] CASI,
  input  ACCSEL, PSEL, ASEL, PADDSUB, CSEL, CASISEL,
  input  [1:0] ADDSUB, CLK, CE, RESET
);
  wire signed [47:0] p = $signed(A) * $signed(B);
  assign DOUT = C_SEL || ACCSEL || PSEL || ASEL || PADDSUB || CSEL || CASISEL || ADDSUB != 0 ? ~p : p;
  assign CASO = DOUT;
  assign SOA = A;
endmodule
