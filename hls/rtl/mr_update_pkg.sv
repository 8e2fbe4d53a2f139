// SPDX-License-Identifier: Apache-2.0
// What the blocks of the kernel `millrace_update` have in common: sizes of docs/store.md, layouts
// of what they hand on, places of the registers.
package mr_update_pkg;
  localparam int TILE_BEATS = 128;  // of 64 bytes, of one of w, m, v, gradients
  localparam int SLOTS = 4;         // tiles in a buffer
  localparam int SLOT_BEATS = SLOTS * TILE_BEATS;
  localparam int AW = 9;            // an address in one: slot and beat

  // Kinds of jobs, hls/millrace_update.h.
  localparam logic [1:0] TABLE = 2'd0, PATCH = 2'd1, VECTOR = 2'd2, HEADERS = 2'd3;

  // A side of a job, hls/places.h: {turned, top / 4, section, first, header, group, piece, at}.
  localparam int AT = 0, PIECE = 58, GROUP = 82, HEADER = 106, FIRST = 130, SECTION = 154,
      TOP = 164, TURNED = 178, SIDE_W = 179;

  // A job as mr_update_load takes it: {kind, decays, unit, rows, cols, from, to, gradients}.
  localparam int L_GRADIENTS = 0, L_TO = 58, L_FROM = 116, L_COLS = 174, L_ROWS = 194,
      L_UNIT = 204, L_DECAYS = 220, L_KIND = 221, LOAD_W = 223;
  // And as mr_update_put does: {kind, rows, cols, along, down}.
  localparam int P_DOWN = 0, P_ALONG = SIDE_W, P_COLS = 2 * SIDE_W, P_ROWS = P_COLS + 20,
      P_KIND = P_ROWS + 10, PUT_W = P_KIND + 2;

  // A tile behind the lanes: where it goes, its beats (of w alone), and for blocks what it is.
  // {to, beats, vector, patch, last of the patch, last of its row of tiles, row, column}
  localparam int T_COL = 0, T_ROW = 3, T_ROW_END = 7, T_END = 8, T_PATCH = 9, T_VECTOR = 10,
      T_BEATS = 11, T_TO = 19, TILE_W = 77;

  // Words of the arguments, counted from 0x10: in the order of the C++ kernel, 64 bits with a word
  // behind them that is reserved, and so 32 bits. A_FACTORS: scale, keep1, add1, keep2, add2, root,
  // epsilon, rate.
  localparam int A_JOBS = 0, A_OLD_STATE = 3, A_GRADIENTS = 6, A_NEW_STATE = 9, A_W = 12,
      A_W_VECTORS = 15, A_WT = 18, A_COUNT = 21, A_CHANNELS = 23, A_W_CHANNEL = 25,
      A_WT_CHANNEL = 28, A_FACTORS = 31, A_DECAY = 47, ARGS = 49;
  // Behind them, read-only: how the run ended, and where it went wrong.
  localparam logic [31:0] ENDED_WELL = 32'd0, BAD_READ = 32'd1, BAD_WRITE = 32'd2, BAD_JOB = 32'd3,
      BAD_CHANNELS = 32'd4;
endpackage
