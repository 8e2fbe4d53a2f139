// SPDX-License-Identifier: Apache-2.0
// MOVE_ROWS' COPY: rows of a row memory go to activation memory, row by row, and then turned to the
// stash, word by word. It calculates nothing: LayerNorm's way into the quantiser is there for the
// first, and for the second a mr_turned of its own. MATMUL's would not do: a COPY that waited for
// it while that MATMUL waits for the COPY's stash would wait for ever.
//
// Parameters: N, T, D_MAX as everywhere.
//
// Ports
//   cmd_      valid/ready, the 512-bit command, a COPY that is legal, and its rows; one is inside
//             at a time, from here to done_o, a pulse when all that it writes is there
//   err_      pulse up to done_o, WINDOW: the turned matrix does not end inside the stash, and
//             nothing of it was written
//   busy_o    a command is inside
//   res_      RAM port of the row memory res_second_o: a word is read in a cycle with res_ren_o and
//             res_grant_i, which other readers take away
//   q_        to the quantiser as mr_layernorm's; q_ack_i a pulse per block written
//   s_, rd_, job_, data_   as mr_stash_put
//
// Timing: a word a cycle as long as it is taken, rows times words for each destination.
`include "mr_assert.svh"
`include "mr_bundles.svh"
module mr_row_copy #(
  parameter int N = 1,
  parameter int T = 32,
  parameter int D_MAX = 256,
  localparam int V = 4 * N,
  localparam int ROW = D_MAX / V,
  localparam int RESW = $clog2(T * ROW)
) (
  input  logic                            clk_i,
  input  logic                            rst_ni,

  `MR_CMD_S(),
  input  logic [15:0]                     cmd_rows_i,
  output logic                            err_valid_o,
  output logic [63:0]                     err_addr_o,
  output logic                            busy_o,

  `MR_RAM_R_M(res_, RESW, V*32),
  output logic                            res_second_o,
  input  logic                            res_grant_i,
  `MR_LN_M(q_, mr_vec_pkg::TAG_LN_W),

  `MR_STASH_S(s_),
  `MR_RD_M(rd_, 1),
  `MR_WR_M(, 1)
);

  localparam int LV = $clog2(V);
  localparam int LB = $clog2(32 / V);  // words of a block
  localparam int FIFO = 8;             // words read and not with the quantiser

  // ---- command ----------------------------------------------------------------------------------
  // START: the passes are made ready. ACT and TURN: words are read. ENDS: until they are where they
  // belong.
  localparam logic [2:0] IDLE = 3'd0, START = 3'd1, ACT = 3'd2, TURN = 3'd3, ENDS = 3'd4;
  logic [2:0]  state_q;
  logic        turned_q, dst_first;  // the stash is due
  logic [1:0]  slot_q;
  logic [15:0] cols_q, dst_q, kblocks_q, rows_m1_q, words_m1_q, pending_q;
  logic [31:0] off_q;
  logic [10:0] at_row_q;
  logic [21:0] first_q;   // columns
  logic [32:0] begin_q;   // from the first column on, below zero too
  logic        start, t_done;
  assign cmd_ready_o = state_q == IDLE;
  assign start       = cmd_valid_i && cmd_ready_o;
  assign busy_o      = state_q != IDLE;

  // ---- counting through the rows ----------------------------------------------------------------
  // A run is a row of words to activation memory, a word of all rows to the stash.
  logic            to_act, room, t_room, go, run_end, pass_end;
  logic [15:0]     in_q, run_q;     // in the run; the run
  logic [RESW-1:0] at_q, next_q;    // the word; the next run's first
  logic [3:0]      held_q;
  logic            pop;
  assign to_act       = state_q == ACT;
  assign room         = to_act ? !held_q[3] : t_room;
  assign res_ren_o    = (to_act || state_q == TURN) && room;
  assign res_raddr_o  = at_q;
  assign go           = res_ren_o && res_grant_i;
  assign run_end      = in_q == (to_act ? words_m1_q : rows_m1_q);
  assign pass_end     = run_end && run_q == (to_act ? rows_m1_q : words_m1_q);

  always_ff @(posedge clk_i) begin
    done_o <= 1'b0;
    if (!rst_ni) begin
      state_q  <= IDLE;
      turned_q <= 1'b0;
    end else begin
      case (state_q)
        IDLE: if (cmd_valid_i) begin
          state_q  <= START;
          turned_q <= cmd_i[mr_pkg::MOVE_ROWS_TURNED_LSB];
        end
        START: state_q <= dst_first ? ACT : TURN;
        ACT: if (go && pass_end) state_q <= turned_q ? TURN : ENDS;
        TURN: if (go && pass_end) state_q <= ENDS;
        default: if (!turned_q && pending_q == '0) begin
          state_q <= IDLE;
          done_o  <= 1'b1;
        end
      endcase
      if (t_done) turned_q <= 1'b0;
    end
  end
  always_ff @(posedge clk_i) begin
    if (start) begin
      dst_first    <= cmd_i[mr_pkg::MOVE_ROWS_TO_ACT_LSB];
      res_second_o <= cmd_i[mr_pkg::MOVE_ROWS_SRC_LSB];
      slot_q       <= cmd_i[mr_pkg::MOVE_ROWS_DST_SLOT_LSB+:2];
      cols_q       <= cmd_i[mr_pkg::MOVE_ROWS_COLS_LSB+:16];
      dst_q        <= cmd_i[mr_pkg::MOVE_ROWS_DST_BASE_LSB+:16];
      off_q        <= cmd_i[mr_pkg::MOVE_ROWS_TURNED_OFF_LSB+:32];
      kblocks_q    <= cmd_i[mr_pkg::MOVE_ROWS_ALL_KBLOCKS_LSB+:16];
      at_row_q     <= cmd_i[mr_pkg::MOVE_ROWS_AT_ROW_LSB+5+:11];
      first_q      <= cmd_i[mr_pkg::MOVE_ROWS_FIRST_COL_LSB+:22];
      begin_q      <= {1'b0, cmd_i[mr_pkg::MOVE_ROWS_BEGIN_COL_LSB+:32]} -
                      {1'b0, cmd_i[mr_pkg::MOVE_ROWS_FIRST_COL_LSB+:32]};
      rows_m1_q    <= cmd_rows_i - 16'd1;
      words_m1_q   <= (cmd_i[mr_pkg::MOVE_ROWS_COLS_LSB+:16] >> LV) - 16'd1;
    end
    if (state_q == START || (go && pass_end)) begin
      in_q   <= '0;
      run_q  <= '0;
      at_q   <= '0;
      next_q <= (state_q == START && dst_first) ? RESW'(ROW) : RESW'(1);
    end else if (go && run_end) begin
      in_q   <= '0;
      run_q  <= run_q + 16'd1;
      at_q   <= next_q;
      next_q <= next_q + (to_act ? RESW'(ROW) : RESW'(1));
    end else if (go) begin
      in_q <= in_q + 16'd1;
      at_q <= at_q + (to_act ? RESW'(1) : RESW'(ROW));
    end
  end

  // ---- a word a cycle after it was read ---------------------------------------------------------
  logic        act_q, turn_q, last_q;
  logic [15:0] in1_q, run1_q;
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      act_q  <= 1'b0;
      turn_q <= 1'b0;
    end else begin
      act_q  <= go && to_act;
      turn_q <= go && !to_act;
    end
    if (go) begin
      in1_q  <= in_q;
      run1_q <= run_q;
      last_q <= pass_end;
    end
  end

  // ---- to activation memory ---------------------------------------------------------------------
  // held_q sees to the room, and the beats come again in its count.
  // verilator lint_off UNUSED
  logic        unused_ready;
  logic [3:0]  unused_count;
  // verilator lint_on UNUSED
  logic [15:0] block;
  assign block = in1_q >> LB;
  assign pop   = q_valid_o && q_ready_i;
  mr_fifo #(.W(V * 32 + mr_vec_pkg::TAG_LN_W), .DEPTH(FIFO)) u_words (
    .clk_i, .rst_ni, .clear_i(1'b0),
    .in_valid_i(act_q), .in_ready_o(unused_ready),
    .in_data_i({res_rdata_i, run1_q, dst_q + block, slot_q, block == '0}),
    .out_valid_o(q_valid_o), .out_ready_i(q_ready_i), .out_data_o({q_data_o, q_tag_o}),
    .count_o(unused_count)
  );
  logic block_end;
  assign block_end = LB == 0 || &(in_q | ~16'(32 / V - 1));
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      held_q    <= '0;
      pending_q <= '0;
    end else begin
      held_q    <= held_q + 4'(go && to_act) - 4'(pop);
      pending_q <= pending_q + 16'(go && to_act && block_end) - 16'(busy_o && q_ack_i);
    end
  end

  // ---- to the stash -----------------------------------------------------------------------------
  // verilator lint_off UNUSED
  logic unused_busy;  // busy_o says it
  // verilator lint_on UNUSED
  mr_turned #(.N(N)) u_turned (
    .clk_i, .rst_ni, .cmd_valid_i(state_q == START && turned_q), .cmd_off_i(off_q),
    .cmd_kblocks_i(kblocks_q), .cmd_at_i(at_row_q), .cmd_first_i(20'(first_q >> LV)),
    .cmd_groups_i(20'({4'd0, cols_q} >> LV)),
    .cmd_begin_i(begin_q[32] ? 17'd0 : {begin_q[31:16] != '0, begin_q[15:0]}),
    .cmd_rows_i(rows_m1_q + 16'd1), .take_i(go && !to_act), .room_o(t_room), .b_valid_i(turn_q),
    .b_data_i(res_rdata_i), .b_token_i(in1_q), .b_group_i(run1_q), .b_last_i(last_q),
    .done_o(t_done), .err_valid_o, .err_addr_o, .busy_o(unused_busy),
    `MR_STASH_S_TO(s_, s_), `MR_RD_M_TO(rd_, rd_), `MR_WR_M_TO(, )
  );

  `MR_ASSERT(state, state_q <= ENDS)
  `MR_ASSERT_COUNT(held, held_q, go && to_act, pop, FIFO)
  `MR_ASSERT_COUNT(pending, pending_q, go && to_act && block_end, busy_o && q_ack_i, 65535)

endmodule
