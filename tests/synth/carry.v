// SPDX-License-Identifier: Apache-2.0
// CARRY4 as four MUXCY and XORCY, for simulation of netlists (`techmap -map`): in the cell with vectors as ports a
// carry that depends on a lower bit of the same cell looks like a combinational loop to Verilator 5.006, which
// then simulates it wrongly.
module CARRY4 (
  output [3:0] CO,
  output [3:0] O,
  input        CI,
  input        CYINIT,
  input  [3:0] DI,
  input  [3:0] S
);
  wire in = CI | CYINIT;
  MUXCY m0 (.O(CO[0]), .CI(in),    .DI(DI[0]), .S(S[0]));
  MUXCY m1 (.O(CO[1]), .CI(CO[0]), .DI(DI[1]), .S(S[1]));
  MUXCY m2 (.O(CO[2]), .CI(CO[1]), .DI(DI[2]), .S(S[2]));
  MUXCY m3 (.O(CO[3]), .CI(CO[2]), .DI(DI[3]), .S(S[3]));
  XORCY x0 (.O(O[0]), .CI(in),    .LI(S[0]));
  XORCY x1 (.O(O[1]), .CI(CO[0]), .LI(S[1]));
  XORCY x2 (.O(O[2]), .CI(CO[1]), .LI(S[2]));
  XORCY x3 (.O(O[3]), .CI(CO[2]), .LI(S[3]));
endmodule
