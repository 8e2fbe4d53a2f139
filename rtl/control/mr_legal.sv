// SPDX-License-Identifier: Apache-2.0
// Is a command legal? All rules stand in rtl/spec/device.def, from which mr_pkg has them as
// functions; what is here is what they need to know: the values of the run, and what the commands
// before this one leave, in program order (not in the order in which units finish).
//
// Commands are judged while they go into the queue of mr_fetch, in their order, one a cycle.
// load_i: cmd_i goes into it in this cycle, and with TRAIN what its windows have ahead is known. In
// the next cycle its fields are looked at, its effects on the order are noted, and its products and
// windows are known; in the one after that, whether products are small enough and windows lie
// inside. From the third cycle on, which is the first in which the dispatcher can have the command,
// the verdict is there:
//   bad_o   the oldest command without take_i (it is dealt out) must not be dealt out
//   code_o  why: COMMAND, WINDOW, or WATCHDOG if it waits for what nothing before it signals
// Behind a command that is bad verdicts mean nothing.
// HELD: a power of two; there are always fewer commands between load_i and take_i.
// n_rows_i, two_pass_i, input_beats_i, result_beats_i: stable from the first command on. With TRAIN
// also train_i (a run of training), rows_beats_i, grad_beats_i.
`include "mr_assert.svh"
module mr_legal #(
  parameter int N = 1,
  parameter int T = 128,
  parameter int ACT_WORDS = 1024,
  parameter int QKV_WORDS = 256,
  parameter int D_MAX = 4096,
  parameter int ROT_MAX = 256,
  parameter int W_MAX = 4096,
  parameter int RING = 1024,
  parameter int HELD = 32,
  parameter int TRAIN = 0
) (
  input  logic         clk_i,
  input  logic         rst_ni,

  input  logic [15:0]  n_rows_i,
  input  logic         two_pass_i,
  input  logic [31:0]  input_beats_i,
  input  logic [31:0]  result_beats_i,
  input  logic         train_i,
  input  logic [31:0]  rows_beats_i,
  input  logic [31:0]  grad_beats_i,

  input  logic         load_i,
  input  logic [511:0] cmd_i,
  input  logic         take_i,
  output logic         bad_o,
  output logic [7:0]   code_o
);

  localparam int TILES = mr_pkg::TILES_MAX;
  localparam int TW = $clog2(TILES);
  localparam int TILE_W = 16 + 32 + 2;
  localparam int WINDOWS_W = TRAIN != 0 ? mr_pkg::TRAINING_WINDOWS_W : mr_pkg::WINDOWS_W;
  localparam int WINDOWS_MORE = mr_pkg::TRAINING_WINDOWS_W - mr_pkg::WINDOWS_W;
  localparam int CHECKS_W = TRAIN != 0 ? mr_pkg::TRAINING_CHECKS_W : mr_pkg::CHECKS_W;
  localparam int CHECKS_MORE = mr_pkg::TRAINING_CHECKS_W - mr_pkg::CHECKS_W;
  localparam int PRODUCTS_MORE = mr_pkg::TRAINING_PRODUCTS_W - mr_pkg::PRODUCTS_W;
  localparam int PRODUCTS_W = TRAIN != 0 ? mr_pkg::TRAINING_PRODUCTS_W : mr_pkg::PRODUCTS_W;

  // Of a command the fields of its op have a meaning.
  // verilator lint_off UNUSED
  logic [511:0] c;
  // verilator lint_on UNUSED
  logic         c_valid_q;
  logic [511:0] c_q;
  logic [mr_pkg::OPS-1:0] op_q;
  always_ff @(posedge clk_i) begin
    c_valid_q <= rst_ni && load_i;
    if (load_i) begin
      c_q  <= cmd_i;
      op_q <= mr_pkg::op_of(cmd_i[7:0], train);
    end
  end
  assign c = c_q;
  logic [mr_pkg::AHEAD_W-1:0] ahead;

  // ---- values -----------------------------------------------------------------------------------
  // What the commands so far leave.
  logic [TILE_W-1:0] tile_mem [0:TILES-1];  // kblocks, cols, fp4, bias of matrices without MATMUL
  logic [TW-1:0]     tile_w_q, tile_r_q;
  logic [TW:0]       tiles_q;
  logic [15:0]       exp_cols_q;
  // Semaphores: a count is what the commands have added less what they have taken. Each belongs to
  // the queue that first waited for it.
  logic [63:0]       sem_q;    // 4 bits each
  logic [79:0]       owner_q;  // 5 bits each
  // Of a run of training.
  logic              train;
  logic [31:0]       rows_beats, grad_beats;
  if (TRAIN != 0) begin : gen_train
    assign {train, rows_beats, grad_beats} = {train_i, rows_beats_i, grad_beats_i};
    logic [mr_pkg::VALUES_W-1:0] run;  // what does not change from command to command
    assign run = values(input_beats_i, result_beats_i, two_pass_i, n_rows_i, '0, '0, '0,
                        {grad_beats, rows_beats, train});
    always_ff @(posedge clk_i) if (load_i) ahead <= mr_pkg::ahead_of(cmd_i, run);
  end else begin : gen_no_train
    assign {train, rows_beats, grad_beats, ahead} = '0;
    logic unused;
    assign unused = ^{train_i, rows_beats_i, grad_beats_i};
  end
  function automatic logic [mr_pkg::VALUES_W-1:0] values(
      input logic [31:0] in_beats, input logic [31:0] out_beats, input logic two,
      input logic [15:0] rows, input logic [TW:0] tiles, input logic [TILE_W-1:0] tile,
      input logic [15:0] exp_cols, input logic [64:0] training);
    // The last value of device.def comes first.
    values = {training, exp_cols, tile[0], tile[1], tile[33:2], tile[49:34], tiles, out_beats,
              in_beats, two, rows, 32'd0, 16'(RING), 16'(W_MAX), 16'(ROT_MAX), 16'(D_MAX),
              16'(QKV_WORDS), 16'(ACT_WORDS), 16'(T), 6'(N)};
  endfunction

  logic stash;
  assign stash = train && c[7:0] == mr_pkg::OP_STREAM_STASH[7:0];

  // ---- fields, order, windows -------------------------------------------------------------------
  logic                          w_valid_q, w_sem_bad_q, w_missing_q;
  logic [CHECKS_W-1:0]           w_checks_q;
  logic [WINDOWS_W-1:0]          w_q;
  logic [PRODUCTS_W-1:0]         p_q;
  logic [7:0]                    w_op_q;
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      w_valid_q  <= 1'b0;
      tiles_q    <= '0;
      tile_w_q   <= '0;
      tile_r_q   <= '0;
      exp_cols_q <= '0;
      sem_q      <= '0;
      owner_q    <= '0;
    end else begin
      w_valid_q <= c_valid_q;
      if (c_valid_q) begin : judge
        logic [mr_pkg::VALUES_W-1:0] v;
        // Without TRAIN there are fewer.
        // verilator lint_off UNUSED
        logic [mr_pkg::TRAINING_CHECKS_W-1:0]   checks;
        logic [mr_pkg::TRAINING_WINDOWS_W-1:0]  windows;
        logic [mr_pkg::TRAINING_PRODUCTS_W-1:0] products;
        // verilator lint_on UNUSED
        logic [4:0] queue;
        logic       waits, signals, bad, missing;
        logic [3:0] sem;
        v = values(input_beats_i, result_beats_i, two_pass_i, n_rows_i, tiles_q,
                   tile_mem[tile_r_q], exp_cols_q, {grad_beats, rows_beats, train});
        queue   = mr_pkg::queue_of(c[7:0], train);
        bad     = 1'b0;
        missing = 1'b0;
        for (int s = 0; s < 16; s++) begin
          waits   = c[mr_pkg::CMD_WAIT_LSB+s];
          signals = c[mr_pkg::CMD_SIGNAL_LSB+s];
          sem     = sem_q[4*s+:4];
          if (waits && sem == 4'd0) missing = 1'b1;
          if (signals && !waits && sem == 4'd15) bad = 1'b1;
          if (waits && (owner_q[5*s+:5] & ~queue) != 5'd0) bad = 1'b1;
          if (waits) owner_q[5*s+:5] <= queue;
          if (signals && !waits) sem_q[4*s+:4] <= sem + 4'd1;
          if (waits && !signals) sem_q[4*s+:4] <= sem - 4'd1;
        end
        w_sem_bad_q <= bad;
        w_missing_q <= missing;
        if (TRAIN != 0) begin
          checks   = mr_pkg::training_checks_of(op_q, c, v);
          windows  = mr_pkg::training_windows_of(c, v, ahead);
          products = mr_pkg::training_products_of(c, v);
        end else begin
          checks   = {CHECKS_MORE'(0), mr_pkg::checks_of(op_q, c, v)};
          windows  = {WINDOWS_MORE'(0), mr_pkg::windows_of(c, v)};
          products = {PRODUCTS_MORE'(0), mr_pkg::products_of(c, v)};
        end
        w_checks_q  <= checks[CHECKS_W-1:0];
        w_q         <= windows[WINDOWS_W-1:0];
        p_q         <= products[PRODUCTS_W-1:0];
        w_op_q      <= c[7:0];
        exp_cols_q  <= mr_pkg::after_exp_cols(c, v);
        if (c[7:0] == mr_pkg::OP_STREAM_TILES[7:0] || stash) begin
          tiles_q  <= tiles_q + 1'b1;
          tile_w_q <= tile_w_q + 1'b1;
          tile_mem[tile_w_q] <= stash ?
            {c[mr_pkg::STREAM_STASH_KBLOCKS_LSB+:16], c[mr_pkg::STREAM_STASH_COLS_LSB+:32], 2'b00} :
            {c[mr_pkg::STREAM_TILES_KBLOCKS_LSB+:16], c[mr_pkg::STREAM_TILES_COLS_LSB+:32],
             c[mr_pkg::STREAM_TILES_FP4_LSB], c[mr_pkg::STREAM_TILES_BIAS_LSB]};
        end
        if (c[7:0] == mr_pkg::OP_MATMUL[7:0] || (train && c[7:0] == mr_pkg::OP_GRAD[7:0])) begin
          tiles_q  <= tiles_q - 1'b1;
          tile_r_q <= tile_r_q + 1'b1;
        end
      end
    end
  end

  // ---- verdicts, up to the dispatcher -----------------------------------------------------------
  mr_legal_verdict #(.HELD(HELD), .TRAIN(TRAIN)) u_verdict (
    .clk_i, .rst_ni, .valid_i(w_valid_q), .checks_i(w_checks_q), .sem_bad_i(w_sem_bad_q),
    .missing_i(w_missing_q), .windows_i(w_q), .op_i(w_op_q), .products_i(p_q), .take_i, .bad_o,
    .code_o
  );

`ifdef MILLRACE_ASSERT
  // All commands of a run are judged by the same values.
  logic begun_q;
  always_ff @(posedge clk_i) begun_q <= rst_ni && (begun_q || load_i);
  `MR_ASSERT_STABLE(run, begun_q, !rst_ni, {n_rows_i, two_pass_i, input_beats_i, result_beats_i,
                    train_i, rows_beats_i, grad_beats_i})
`endif

endmodule
