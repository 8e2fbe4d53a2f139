// SPDX-License-Identifier: Apache-2.0
// Passes of mr_row_alu over a row, and in which cycle behind its read a word gets to each step
// (offsets). Steps of one kind differ modulo the pass's cycles a word, so that each lane has one
// adder and one multiplier. An operand is chosen at the step's offset, and its result is there four
// cycles later (OP): the choice has a register of its own.
package mr_row_pkg;
  /* verilator lint_off UNUSEDPARAM */  // no module uses all of a package

  // Cycles a word: TOP, STATS, MAX, SUM 1; GAIN, AB, PROB 2; DX, DS 4.
  localparam logic [3:0] TOP = 4'd0;    // NORM_*: exponents of x, dy and the gains
  localparam logic [3:0] STATS = 4'd1;  // NORM_*: mean and 1/sigma, in mr_norm_stats
  localparam logic [3:0] GAIN = 4'd2;   // NORM_GAIN: dy ((x - mean) r)
  localparam logic [3:0] AB = 4'd3;     // NORM_BACK: the sums A and B
  localparam logic [3:0] DX = 4'd4;     // NORM_BACK: r ((dn - ma) - xh mb)
  localparam logic [3:0] MAX = 4'd5;    // SOFTMAX*: largest score, exponents of dP
  localparam logic [3:0] SUM = 4'd6;    // SOFTMAX*: sums of p, and of p dP
  localparam logic [3:0] PROB = 4'd7;   // SOFTMAX: p / sum
  localparam logic [3:0] DS = 4'd8;     // SOFTMAX_BACK: (P (dP - D)) scale

  localparam int OP = 4;          // cycles of an addition or a multiplication, with the choice

  localparam int IN = 2;          // words of both memories are in registers
  // LayerNorm: x - mean at IN.
  localparam int XH = 6;          // times r
  localparam int GAIN_DY = 11;    // xh dy
  localparam int AB_DN = 7;       // dy gain
  localparam int AB_H = 10;       // xh to an integer
  localparam int AB_A = 11;       // dn to an integer
  localparam int AB_PROD = 13;    // their product
  localparam int DX_DN = 5;       // dy gain
  localparam int DX_T = 9;        // dn - ma
  localparam int DX_U = 11;       // xh mb
  localparam int DX_W = 15;       // t - u
  localparam int DX_OUT = 20;     // r w
  // Softmax: scores times scale at IN.
  localparam int KEY = 6;         // to the largest
  localparam int DIST = 6;        // largest - score
  localparam int EXP = 10;        // to exp2
  localparam int SUM_A = 14;      // dP to an integer
  localparam int SUM_PROD = 16;   // p, and p dP
  localparam int P_BY = 17;       // p times 1 / sum
  localparam int DS_E = 19;       // dP - D
  localparam int DS_PE = 23;      // P e
  localparam int DS_OUT = 28;     // times scale
  localparam int LAST = 32;       // the last result of all

  // A sum over the lanes is there so many cycles behind its offset, plus log2(V).
  localparam int PROD_LAT = 4;

  /* verilator lint_on UNUSEDPARAM */
endpackage
