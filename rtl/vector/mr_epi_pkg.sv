// SPDX-License-Identifier: Apache-2.0
// When things happen in the epilogue. A beat that is taken in cycle t is at stage k in cycle t + k;
// v_o[k] of mr_epi_lanes says so. The numbers follow from the latencies of the fp units, which
// mr_epi_lanes holds them to (Yosys 0.23 takes no package inside another one).
package mr_epi_pkg;
  // Each part needs some of them.
  // verilator lint_off UNUSEDPARAM
  localparam int K_BIAS = 4;   // converted: 1 + ACC2F_LAT
  localparam int K_PREP = 7;   // biased: + FADD_LAT
  localparam int K_MUL = 8;    // factors of rotary
  localparam int K_PROD = 11;  // + FMUL_LAT
  localparam int K_ROT = 12;   // terms of rotary
  localparam int K_GELU = 15;  // rotated: + FADD_LAT
  localparam int K_PICK = 25;  // + GELU_LAT + FADD_LAT
  localparam int K_DST = 26;   // the lanes' result
  localparam int K_RES = 29;   // residual written: + FADD_LAT
  localparam int K_MAX = 31;   // largest exponent of a residual word
  localparam int K_TOP = 32;   // row exponent written

  localparam int JOBS = 64;    // units that are complete but not yet read, at most
  // verilator lint_on UNUSEDPARAM
endpackage
