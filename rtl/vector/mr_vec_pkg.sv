// SPDX-License-Identifier: Apache-2.0
// The tag that goes through the shared mr_quant with every block (V > 32: with the first block of a
// beat; mr_vec_out adds out_sub_o). LayerNorm's tag {row slot, word, region, first} is its low 35
// bits.
package mr_vec_pkg;
  // Each user needs some of them.
  // verilator lint_off UNUSEDPARAM
  localparam int TAG_FIRST = 0;    // first block of the row: starts the row maximum (ACT)
  localparam int TAG_REGION = 1;   // 2 bits: row-maximum slot (ACT)
  localparam int TAG_WORD = 3;     // 16 bits: word of the row slot
  localparam int TAG_SLOT = 19;    // 16 bits: row slot of the first pass
  localparam int TAG_LN_W = 35;
  localparam int TAG_HALF = 35;    // QKV: which block of the word
  localparam int TAG_QKV = 36;     // 0 activation memory, 1 q/k/v memory
  localparam int TAG_PMAX = 37;    // QKV: fold the code into the prefix maxima
  localparam int TAG_BLOCK = 38;   // 12 bits, QKV: block of the matrix row, for the prefix maxima
  localparam int TAG_EPI = 50;     // 1 from the epilogue, 0 from LayerNorm: who counts the write
  localparam int TAG_W = 51;
  // verilator lint_on UNUSEDPARAM
endpackage
