// SPDX-License-Identifier: Apache-2.0
// Fetches the run descriptor and then the program's commands, ahead of the dispatcher.
//
// Parameters
//   N, T   channels and row slots, for the descriptor's rules (mr_pkg::legal_run, legal_channel)
//   TRAIN  1: runs of training, whose descriptors go on: train_o, rows_, grad_ and s_ are of these
//
// start_i is a pulse with addr_i; descriptor outputs are stable from desc_valid_o (level, until the
// next start) on. cmd_valid_o/cmd_ready_i: commands in program order, n_cmds of them, each two
// cycles or more after its fetched_o. bad_o is a pulse: the descriptor is refused, nothing more is
// fetched. Requests go to a client port of mr_hostrd, whose beats are never refused: the command
// FIFO has room for every beat that is asked for.
`include "mr_assert.svh"
`include "mr_bundles.svh"
module mr_fetch #(
  parameter int N = 1,
  parameter int T = 128,
  parameter int TRAIN = 0
) (
  input  logic            clk_i,
  input  logic            rst_ni,
  input  logic            start_i,
  input  logic [63:0]     addr_i,

  `MR_RD_M(hr_, 1),

  output logic            bad_o,
  output logic            desc_valid_o,
  output logic [15:0]     n_cmds_o,
  `MR_RUN_M(),  // the smallest of all channels
  output logic [31:0]     input_limit_o,
  output logic [31:0]     w_limit_o,   // the smallest of all channels
  output logic [31:0]     kv_limit_o,  // the smallest of all channels
  output logic [31:0]     rows_limit_o,
  output logic [31:0]     grad_limit_o,

  output logic            fetched_o,   // hr_data_i is a command
  output logic            cmd_valid_o,
  input  logic            cmd_ready_i,
  output logic [511:0]    cmd_o
);

  localparam int DESC_BEATS = 1 + (N + 1) / 2;
  localparam int DEPTH = 16;  // commands
  localparam int BURST = 8;   // half of them

  localparam logic [2:0] IDLE = 0, DESC_REQ = 1, DESC = 2, CHECK = 3, CMD_REQ = 4, CMD = 5,
                         MORE_REQ = 6, MORE = 7;
  logic [2:0]  state_q;
  logic [7:0]  beat_q, want_q;   // beats received, asked for
  logic [63:0] next_q;           // address of the next command
  logic [31:0] left_q;
  logic [4:0]  room;             // commands in the FIFO
  logic        fifo_in;
  logic        unused_room;  // checked before the request
  // The descriptor's first beat is judged from a register, while the next one is awaited.
  logic [511:0] desc_q;
  logic         bad_q, bad_channel_q;
  // The descriptor goes on; its rest is asked for, comes, is refused.
  logic         more, more_req, more_in, more_bad;

  mr_fifo #(.W(512), .DEPTH(DEPTH)) u_cmds (
    .clk_i, .rst_ni, .clear_i(start_i),
    .in_valid_i(fifo_in), .in_ready_o(unused_room), .in_data_i(hr_data_i),
    .out_valid_o(cmd_valid_o), .out_ready_i(cmd_ready_i), .out_data_o(cmd_o), .count_o(room)
  );
  assign fifo_in   = hr_data_valid_i && state_q == CMD;
  assign fetched_o = fifo_in;

  // What the descriptor's rules know beside its words: geometry, and where it was read.
  function automatic logic [mr_pkg::VALUES_W-1:0] values(input logic [31:0] addr,
                                                         input logic train);
    values = '0;
    values[mr_pkg::V_N_LSB+:mr_pkg::V_N_W]               = 6'(N);
    values[mr_pkg::V_T_LSB+:mr_pkg::V_T_W]               = 16'(T);
    values[mr_pkg::V_RUN_ADDR_LSB+:mr_pkg::V_RUN_ADDR_W] = addr;
    values[mr_pkg::V_TRAIN_LSB]                          = train;
  endfunction
  // Half of the FIFO is free: said by its bits, since a grant in this cycle depends on it.
  logic       free;
  logic [3:0] burst_q;  // what is asked for next: left_q is older than that
  assign free       = room[4:3] == 2'd0 || room == 5'(BURST);
  assign hr_valid_o = state_q == DESC_REQ || more_req || (state_q == CMD_REQ && free);
  assign hr_addr_o  = more_req ? addr_i + 64'(64 * DESC_BEATS) : next_q;
  assign hr_beats_o = state_q == DESC_REQ || more_req ? 16'(DESC_BEATS) : {12'd0, burst_q};

  // Of a beat's two channels and those before. With one channel there is one.
  function automatic logic [31:0] least(input logic [31:0] a, input logic [31:0] b,
                                        input logic [31:0] c);
    least = a < c ? a : c;
    if (N > 1 && b < least) least = b;
  endfunction

  always_ff @(posedge clk_i) begin
    bad_o <= 1'b0;
    if (!rst_ni) begin
      state_q      <= IDLE;
      desc_valid_o <= 1'b0;
    end else begin
      unique case (state_q)
        IDLE: if (start_i) begin
          state_q      <= DESC_REQ;
          desc_valid_o <= 1'b0;
        end
        DESC_REQ: if (hr_ready_i) state_q <= DESC;
        DESC: if (hr_data_valid_i && beat_q == 8'(DESC_BEATS - 1)) state_q <= CHECK;
        CHECK: begin
          bad_o        <= bad_q || bad_channel_q;
          desc_valid_o <= !bad_q && !bad_channel_q && !more;
          state_q      <= bad_q || bad_channel_q ? IDLE : more ? MORE_REQ : CMD_REQ;
        end
        CMD_REQ: if (hr_valid_o && hr_ready_i) state_q <= CMD;
        CMD: if (hr_data_valid_i && beat_q == want_q - 8'd1) begin
          state_q <= left_q == '0 ? IDLE : CMD_REQ;
        end
        default: begin
          state_q <= IDLE;
          if (more_req) state_q <= hr_ready_i ? MORE : MORE_REQ;
          if (more_in) state_q <= hr_data_valid_i && beat_q == 8'(DESC_BEATS - 1) ? CHECK : MORE;
        end
      endcase
    end

    if (state_q == IDLE) next_q <= addr_i;
    burst_q <= left_q >= 32'(BURST) ? 4'(BURST) : left_q[3:0];
    if (hr_valid_o && hr_ready_i) begin
      beat_q <= '0;
      want_q <= hr_beats_o[7:0];
      if (state_q == CMD_REQ) begin
        left_q <= left_q - {28'd0, burst_q};
        next_q <= next_q + {54'd0, burst_q, 6'd0};
      end
    end else if (hr_data_valid_i) begin
      beat_q <= beat_q + 8'd1;
    end

    if (hr_data_valid_i && state_q == DESC && beat_q == '0) begin
      desc_q           <= hr_data_i;
      bad_channel_q    <= 1'b0;
      n_cmds_o         <= hr_data_i[32 * mr_pkg::RUN_N_CMDS +: 16];
      left_q           <= hr_data_i[32 * mr_pkg::RUN_N_CMDS +: 32];
      n_rows_o         <= hr_data_i[32 * mr_pkg::RUN_N_ROWS +: 16];
      two_pass_o       <= hr_data_i[32 * mr_pkg::RUN_FLAGS];
      next_q           <= hr_data_i[32 * mr_pkg::RUN_PROG_LO +: 64];
      input_base_o     <= hr_data_i[32 * mr_pkg::RUN_INPUT_LO +: 64];
      input_limit_o    <= hr_data_i[32 * mr_pkg::RUN_INPUT_BEATS +: 32];
      result_base_o    <= hr_data_i[32 * mr_pkg::RUN_RESULT_LO +: 64];
      result_limit_o   <= hr_data_i[32 * mr_pkg::RUN_RESULT_BEATS +: 32];
      kv_layer_beats_o <= hr_data_i[32 * mr_pkg::RUN_KV_LAYER_BEATS +: 32];
      kv_v_beats_o     <= hr_data_i[32 * mr_pkg::RUN_KV_V_BEATS +: 32];
      kv_pm_beats_o    <= hr_data_i[32 * mr_pkg::RUN_KV_PM_BEATS +: 32];
    end
    if (state_q == DESC && beat_q != '0) begin
      bad_q <= !mr_pkg::legal_run(desc_q, values(addr_i[31:0], train_o));
    end
    for (int ch = 0; ch < N; ch++) begin
      if (hr_data_valid_i && state_q == DESC && beat_q == 8'(1 + ch / 2)) begin
        w_base_o[64 * ch +: 64]   <= hr_data_i[256 * (ch % 2) +: 64];
        kv_base_o[64 * ch +: 64]  <= hr_data_i[256 * (ch % 2) + 32 * mr_pkg::CHANNEL_KV_LO +: 64];
        if (!mr_pkg::legal_channel(hr_data_i[256 * (ch % 2) +: 256],
                                   values(addr_i[31:0], 1'b0))) begin
          bad_channel_q <= 1'b1;
        end
      end
    end
    if (hr_data_valid_i && state_q == DESC && beat_q != '0) begin
      w_limit_o  <= least(hr_data_i[64 +: 32], hr_data_i[256 + 64 +: 32], w_limit_o);
      kv_limit_o <= least(hr_data_i[192 +: 32], hr_data_i[256 + 192 +: 32], kv_limit_o);
    end else if (state_q == DESC_REQ) begin
      w_limit_o  <= '1;
      kv_limit_o <= '1;
    end
    if (hr_data_valid_i && more_bad) bad_channel_q <= 1'b1;
  end

  // ---- runs of training -------------------------------------------------------------------------
  if (TRAIN != 0) begin : gen_train
    logic         had_q;  // the descriptor's rest is there
    logic [N-1:0] stash_bad;
    assign more     = train_o && !had_q;
    assign more_req = state_q == MORE_REQ;
    assign more_in  = state_q == MORE;
    for (genvar ch = 0; ch < N; ch++) begin : gen_stash
      assign stash_bad[ch] = beat_q == 8'(1 + ch / 2) &&
          !mr_pkg::legal_stash(hr_data_i[256 * (ch % 2) +: 256], values(addr_i[31:0], 1'b1));
      always_ff @(posedge clk_i) begin
        if (hr_data_valid_i && more_in && beat_q == 8'(1 + ch / 2)) begin
          s_base_o[64 * ch +: 64] <= hr_data_i[256 * (ch % 2) + 32 * mr_pkg::STASH_LO +: 64];
        end
      end
    end
    assign more_bad = more_in &&
        (stash_bad != '0 || (beat_q == '0 &&
                             !mr_pkg::legal_training(hr_data_i, values(addr_i[31:0], 1'b1))));
    always_ff @(posedge clk_i) begin
      if (state_q == DESC_REQ) begin
        had_q     <= 1'b0;
        s_limit_o <= '1;
      end
      if (hr_data_valid_i && state_q == DESC && beat_q == '0) begin
        train_o <= (hr_data_i[32 * mr_pkg::RUN_FLAGS +: 32] & mr_pkg::FLAG_TRAIN) != '0;
      end
      if (hr_data_valid_i && more_in) begin
        had_q <= 1'b1;
        if (beat_q == '0) begin
          rows_base_o  <= hr_data_i[32 * mr_pkg::TRAINING_ROWS_LO +: 64];
          rows_limit_o <= hr_data_i[32 * mr_pkg::TRAINING_ROWS_BEATS +: 32];
          grad_base_o  <= hr_data_i[32 * mr_pkg::TRAINING_GRAD_LO +: 64];
          grad_limit_o <= hr_data_i[32 * mr_pkg::TRAINING_GRAD_BEATS +: 32];
        end else begin
          s_limit_o <= least(hr_data_i[32 * mr_pkg::STASH_BEATS +: 32],
                             hr_data_i[256 + 32 * mr_pkg::STASH_BEATS +: 32], s_limit_o);
        end
      end
    end
  end else begin : gen_no_train
    assign {more, more_req, more_in, more_bad, train_o, rows_base_o, rows_limit_o, grad_base_o,
            grad_limit_o, s_base_o, s_limit_o} = '0;
  end

  // One run at a time. Beats come only where they were asked for, commands only if there is room.
  `MR_ASSERT(start, !start_i || state_q == IDLE)
  `MR_ASSERT(beat, !hr_data_valid_i || state_q == DESC || state_q == CMD || state_q == MORE)
  `MR_ASSERT(room, !fifo_in || unused_room)
  `MR_ASSERT_STABLE(request, hr_valid_o, hr_ready_i, {hr_addr_o, hr_beats_o})
  `MR_ASSERT_STABLE(command, cmd_valid_o, cmd_ready_i || start_i, cmd_o)

endmodule
