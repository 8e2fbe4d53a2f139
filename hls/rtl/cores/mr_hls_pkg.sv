// SPDX-License-Identifier: Apache-2.0
// Made by hls/xls/generate.py: cycles from the operands of a core to its result.
package mr_hls_pkg;
  localparam int ADD_LAT = 11;
  localparam int MULTIPLY_LAT = 6;
  localparam int DIVIDE_LAT = 29;
  localparam int ROOT_LAT = 25;
  localparam int WIDEN_LAT = 5;
  localparam int QUANTISE_LAT = 4;
  // Of mr_update_lane: the longest way, by the second moment.
  localparam int UPDATE_LAT =
      WIDEN_LAT + 5 * MULTIPLY_LAT + 4 * ADD_LAT + ROOT_LAT + DIVIDE_LAT;
endpackage
