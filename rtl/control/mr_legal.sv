// SPDX-License-Identifier: Apache-2.0
// Is a command legal? All rules stand in rtl/spec/device.def, from which mr_pkg has them as
// functions; what is here is what they need to know: the values of the run, and what the commands
// before this one have left, in program order (not in the order in which units finish).
//
// A command passes two registers of the dispatcher. load_i: cmd_i goes into the first in this
// cycle; its fields and windows are looked at, and the answer is a register too. Then it is
// d_cmd_i, with its queue's bit in d_queue_i, until take_i: it is dealt out, and its effects on the
// order are noted.
//   bad_o   level while the command is in the register: it must not be dealt out
//   code_o  why: COMMAND, WINDOW, or WATCHDOG if it waits for what nothing before it signals
// Rules of the order (semaphores, matrices of the stream, tracked exponents) are looked at in the
// second register's cycle, because they need to know that the command before was dealt out. They
// are short.
// n_rows_i, input_beats_i, result_beats_i: stable from the first command on.
module mr_legal #(
  parameter int N = 1,
  parameter int T = 128,
  parameter int ACT_WORDS = 1024,
  parameter int QKV_WORDS = 256,
  parameter int D_MAX = 4096,
  parameter int ROT_MAX = 256,
  parameter int W_MAX = 4096,
  parameter int RING = 1024
) (
  input  logic         clk_i,
  input  logic         rst_ni,

  input  logic [15:0]  n_rows_i,
  input  logic         two_pass_i,
  input  logic [31:0]  input_beats_i,
  input  logic [31:0]  result_beats_i,

  input  logic         load_i,
  input  logic [511:0] cmd_i,
  // Of a command the fields of its op have a meaning.
  // verilator lint_off UNUSED
  input  logic [511:0] d_cmd_i,
  // verilator lint_on UNUSED
  input  logic [4:0]   d_queue_i,
  input  logic         take_i,
  output logic         bad_o,
  output logic [7:0]   code_o
);

  localparam int TILES = mr_pkg::TILES_MAX;
  localparam int TW = $clog2(TILES);
  localparam int TILE_W = 16 + 32 + 2;

  // ---- values -----------------------------------------------------------------------------------
  logic [TILE_W-1:0] tile_mem [0:TILES-1];  // kblocks, cols, fp4, bias of matrices without MATMUL
  logic [TILE_W-1:0] tile;
  logic [TW-1:0]     tile_w_q, tile_r_q;
  logic [TW:0]       tiles_q;
  logic [15:0]       exp_cols_q;
  logic [mr_pkg::VALUES_W-1:0] v;
  assign tile = tile_mem[tile_r_q];
  // The last value of device.def comes first.
  assign v = {
    exp_cols_q, tile[0], tile[1], tile[33:2], tile[49:34], tiles_q, result_beats_i, input_beats_i,
    two_pass_i, n_rows_i, 32'd0, 16'(RING), 16'(W_MAX), 16'(ROT_MAX), 16'(D_MAX), 16'(QKV_WORDS),
    16'(ACT_WORDS), 16'(T), 6'(N)};

  // ---- fields and windows -----------------------------------------------------------------------
  logic fields_ok_q, windows_ok_q;
  always_ff @(posedge clk_i) begin
    if (load_i) begin
      fields_ok_q  <= mr_pkg::legal_fields(cmd_i, v);
      windows_ok_q <= mr_pkg::legal_windows(cmd_i, v);
    end
  end

  // ---- semaphores, in program order -------------------------------------------------------------
  // A count is what the commands so far have added less what they have taken. Each semaphore
  // belongs to the queue that first waited for it.
  logic [3:0]  sem_q [0:15];
  logic [4:0]  owner_q [0:15];
  logic [15:0] waits, signals, missing, over, foreign;
  assign waits   = d_cmd_i[mr_pkg::CMD_WAIT_LSB+:16];
  assign signals = d_cmd_i[mr_pkg::CMD_SIGNAL_LSB+:16];
  genvar s;
  generate
    for (s = 0; s < 16; s = s + 1) begin : gen_sem
      assign missing[s] = waits[s] && sem_q[s] == 4'd0;
      assign over[s]    = signals[s] && !waits[s] && sem_q[s] == 4'd15;
      assign foreign[s] = waits[s] && (owner_q[s] & ~d_queue_i) != 5'd0;
      always_ff @(posedge clk_i) begin
        if (!rst_ni) begin
          sem_q[s]   <= 4'd0;
          owner_q[s] <= 5'd0;
        end else if (take_i) begin
          if (waits[s]) owner_q[s] <= d_queue_i;
          if (signals[s] && !waits[s]) sem_q[s] <= sem_q[s] + 4'd1;
          if (waits[s] && !signals[s]) sem_q[s] <= sem_q[s] - 4'd1;
        end
      end
    end
  endgenerate

  logic command_bad;
  assign command_bad = !fields_ok_q || !mr_pkg::legal_order(d_cmd_i, v) || over != '0 ||
                       foreign != '0;
  assign bad_o  = command_bad || !windows_ok_q || missing != '0;
  assign code_o = command_bad ? mr_pkg::DEVERR_COMMAND[7:0] :
                  !windows_ok_q ? mr_pkg::DEVERR_WINDOW[7:0] : mr_pkg::DEVERR_WATCHDOG[7:0];

  // ---- what a command leaves --------------------------------------------------------------------
  logic is_tiles, is_matmul;
  assign is_tiles  = d_cmd_i[7:0] == mr_pkg::OP_STREAM_TILES[7:0];
  assign is_matmul = d_cmd_i[7:0] == mr_pkg::OP_MATMUL[7:0];
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      tiles_q    <= '0;
      tile_w_q   <= '0;
      tile_r_q   <= '0;
      exp_cols_q <= '0;
    end else if (take_i) begin
      exp_cols_q <= mr_pkg::after_exp_cols(d_cmd_i, v);
      if (is_tiles) begin
        tiles_q  <= tiles_q + 1'b1;
        tile_w_q <= tile_w_q + 1'b1;
      end
      if (is_matmul) begin
        tiles_q  <= tiles_q - 1'b1;
        tile_r_q <= tile_r_q + 1'b1;
      end
    end
    if (take_i && is_tiles) begin
      tile_mem[tile_w_q] <= {
        d_cmd_i[mr_pkg::STREAM_TILES_KBLOCKS_LSB+:16], d_cmd_i[mr_pkg::STREAM_TILES_COLS_LSB+:32],
        d_cmd_i[mr_pkg::STREAM_TILES_FP4_LSB], d_cmd_i[mr_pkg::STREAM_TILES_BIAS_LSB]};
    end
  end

endmodule
