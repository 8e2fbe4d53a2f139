// SPDX-License-Identifier: Apache-2.0
// The sequencer: runs a program. Fetches descriptor and commands, deals them out to five queues,
// keeps the semaphores, collects errors, watches for progress, and ends the run.
//
// Parameters
//   N, T .. RING  geometry, for the rules of mr_legal
//   TRAIN         1: runs of training: train_o, rows_, grad_, s_ are of these, and commands too
//
// Per queue q (mr_pkg::QUEUE_*): issue_valid_o/issue_ready_i with cmd_o and a unit_done_i pulse per
// command, in order. The reader queue is served inside (mr_stream_ctl), the END command too.
// unit_rst_no resets all units: at power-up, at the start of every run and after an error, each
// time only when AXI is idle. halt_o, a register, asks readers and writers to stop issuing and
// drain. A memory
// that never answers: the error is reported after a second watchdog time, and the sequencer stays
// busy until the memory has answered.
//
// Errors are precise: the run ends with the error of the command that comes first in the program,
// as if commands were executed one after the other. On an error at command i nothing is dealt out
// any more; commands before i go on to their end, and if one of them fails, its error takes the
// place of i's. What commands behind i do is not looked at. A unit that finds an error goes on to
// the end of its command, so that this always ends. Errors of the memory (READ, WRITE) and the
// watchdog end the run at once.
`include "mr_assert.svh"
`include "mr_bundles.svh"
module mr_seq #(
  parameter int N = 1,
  parameter int T = 128,
  parameter int ACT_WORDS = 1024,
  parameter int QKV_WORDS = 256,
  parameter int D_MAX = 4096,
  parameter int ROT_MAX = 256,
  parameter int W_MAX = 4096,
  parameter int RING = 1024,
  parameter int TRAIN = 0,
  localparam int ERRORS = N + mr_pkg::UNITS + (TRAIN != 0 ? mr_pkg::TRAINING_UNITS : 0)
) (
  input  logic                 clk_i,
  input  logic                 rst_ni,

  // registers
  `MR_CTL_S(),
  `MR_FIRST_M(err_),
  output logic                 counters_clear_o,
  output logic                 counters_run_o,

  // fetch client of mr_hostrd
  `MR_RD_M(hr_, 1),

  // the run
  `MR_RUN_M(),
  // Sizes of windows are those of the smallest, for all channels.
  output logic [N*32-1:0]      w_limit_o,
  output logic [N*32-1:0]      kv_limit_o,

  // queues 1..4 (array, vector, attention, writer)
  `MR_UNITS_M(),

  // readers and splitters
  `MR_WJOB_M(job_),
  `MR_SP_M(sp_, N),

  // errors of the units: valid pulse, at the latest beside the command's done; code, queue whose
  // command it concerns (its oldest in the unit), address
  `MR_ERR_S(err_, ERRORS),
  input  logic                 progress_i,  // any beat moved or block computed in this cycle
  input  logic                 axi_idle_i,
  output logic                 halt_o,
  output logic                 unit_rst_no,

  // completed commands, for the check mode
  output logic [4:0]           done_valid_o,
  output logic [79:0]          done_index_o
);

  localparam int READER = mr_pkg::QUEUE_READER, ARRAY = mr_pkg::QUEUE_ARRAY,
                 WRITER = mr_pkg::QUEUE_WRITER;
  localparam logic [2:0] IDLE = 0, CLEAN = 1, RUN = 2, DRAIN = 3, SETTLE = 4;
  logic [2:0]  state_q;
  logic [3:0]  wait_q;
  logic        failed_q, ended_q;
  logic        held_q;  // err_*_o have an error of this run
  logic        fetch_start_q;

  assign busy_o         = state_q != IDLE;
  assign counters_run_o = state_q == RUN;

  // Commands come and go rarely. See mr_clk_gate.
  logic clk_ctl, act_ctl;
  mr_clk_gate u_gate_ctl (.clk_i, .active_i(act_ctl), .clk_o(clk_ctl));
  assign act_ctl = !unit_rst_no || fetch_start_q || hr_valid_o || hr_data_valid_i || d_room ||
                   fail_q || (cmd_valid && cmd_ready) || (iss_valid & iss_ready) != '0 ||
                   unit_done != '0 || sp_done_i != '0 || (job_valid_o & job_ready_i) != '0 ||
                   (sp_valid_o & sp_ready_i) != '0;

  // ---- fetch and dispatch ---------------------------------------------------------------------
  logic         desc_bad, cmd_valid, cmd_ready;
  logic         desc_valid, fetched;
  logic [31:0]  input_limit, w_limit, kv_limit, rows_limit, grad_limit;
  assign w_limit_o  = {N{w_limit}};
  assign kv_limit_o = {N{kv_limit}};
  logic [15:0]  n_cmds_o;
  logic [511:0] cmd;
  mr_fetch #(.N(N), .T(T), .TRAIN(TRAIN)) u_fetch (
    .clk_i(clk_ctl), .rst_ni(unit_rst_no), .start_i(fetch_start_q), .addr_i(run_addr_i),
    `MR_RD_M_TO(hr_, hr_),
    .bad_o(desc_bad), .desc_valid_o(desc_valid), .n_cmds_o,
    `MR_RUN_M_TO(, ),
    .input_limit_o(input_limit), .w_limit_o(w_limit), .kv_limit_o(kv_limit),
    .rows_limit_o(rows_limit), .grad_limit_o(grad_limit), .fetched_o(fetched),
    .cmd_valid_o(cmd_valid), .cmd_ready_i(cmd_ready), .cmd_o(cmd)
  );

  // A command sits in a register while it is routed; both parts of the reader queue take it
  // together.
  logic         d_valid_q;
  logic [511:0] d_cmd_q;
  logic [4:0]   d_route_q, q_ready, q_valid;
  logic [15:0]  index_q;
  logic         d_room, d_go, d_bad, d_end, sc_ready, illegal;
  logic [7:0]   illegal_code;
  logic         end_dealt_q;  // nothing behind END is looked at
  logic         fail_q;       // an error is held, and commands before it go on
  logic         stop_q;       // so nothing more is dealt out; what is in its cycle lies behind it
  logic         no_end_q;     // all commands are dealt out, none was END: it waits for more
  assign d_bad     = d_valid_q && illegal && !end_dealt_q;
  assign d_end     = d_cmd_q[7:0] == mr_pkg::OP_END[7:0];
  assign d_room    = d_valid_q && (d_route_q & q_ready) != '0 && (!d_route_q[READER] || sc_ready);
  assign d_go      = d_room && !illegal && !end_dealt_q && !stop_q;
  assign cmd_ready = !d_valid_q || d_go;
  assign q_valid   = d_go ? d_route_q : '0;

  always_ff @(posedge clk_ctl) begin
    if (!unit_rst_no) begin
      d_valid_q   <= 1'b0;
      index_q     <= '0;
      end_dealt_q <= 1'b0;
      no_end_q    <= 1'b0;
      stop_q      <= 1'b0;
    end else begin
      stop_q   <= fail_q;
      no_end_q <= desc_valid && !d_valid_q && index_q == n_cmds_o && !end_dealt_q;
      if (cmd_ready) d_valid_q <= cmd_valid;
      if (d_go) index_q <= index_q + 16'd1;
      if (d_go && d_end) end_dealt_q <= 1'b1;
    end
    if (cmd_valid && cmd_ready) begin
      d_cmd_q   <= cmd;
      d_route_q <= mr_pkg::queue_of(cmd[7:0], TRAIN != 0 ? train_o : 1'b0);
    end
  end

  mr_legal #(
    .N(N), .T(T), .ACT_WORDS(ACT_WORDS), .QKV_WORDS(QKV_WORDS), .D_MAX(D_MAX), .ROT_MAX(ROT_MAX),
    .W_MAX(W_MAX), .RING(RING), .TRAIN(TRAIN)
  ) u_legal (
    .clk_i(clk_ctl), .rst_ni(unit_rst_no), .n_rows_i(n_rows_o), .two_pass_i(two_pass_o),
    .input_beats_i(input_limit), .result_beats_i(result_limit_o), .train_i(train_o),
    .rows_beats_i(rows_limit), .grad_beats_i(grad_limit), .load_i(fetched), .cmd_i(hr_data_i),
    .take_i(d_go), .bad_o(illegal), .code_o(illegal_code)
  );

  // ---- queues ---------------------------------------------------------------------------------
  logic [4:0]    iss_valid, iss_ready, unit_done;
  logic [2559:0] iss_cmd;
  logic [79:0]   take, signal, oldest, unused_index;
  logic [15:0]   sem_nonzero;
  logic [4:0]    waiting;
  genvar q;
  generate
    for (q = 0; q < 5; q = q + 1) begin : gen_queue
      mr_queue #(.DEPTH(q == READER ? 32 : 16), .LIMIT(q == ARRAY ? 8 : 1)) u_queue (
        .clk_i(clk_ctl), .rst_ni(unit_rst_no), .in_valid_i(q_valid[q]), .in_ready_o(q_ready[q]),
        .in_cmd_i(d_cmd_q), .in_index_i(index_q), .sem_i(sem_nonzero), .take_o(take[16*q+:16]),
        .signal_o(signal[16*q+:16]), .issue_valid_o(iss_valid[q]), .issue_ready_i(iss_ready[q]),
        .cmd_o(iss_cmd[512*q+:512]), .index_o(unused_index[16*q+:16]), .done_i(unit_done[q]),
        .waiting_o(waiting[q]), .busy_o(unit_busy_o[q]), .oldest_o(oldest[16*q+:16]),
        .done_valid_o(done_valid_o[q]), .done_index_o(done_index_o[16*q+:16])
      );
    end
  endgenerate

  mr_sems u_sems (
    .clk_i(clk_ctl), .rst_ni(unit_rst_no), .clear_i(1'b0), .take_i(take), .signal_i(signal),
    .nonzero_o(sem_nonzero)
  );

  logic stream_bad, stream_bad_stash, stream_pending, stream_done;
  logic [15:0] stream_index;
  logic [31:0] stream_off;
  mr_stream_ctl #(.N(N), .TRAIN(TRAIN)) u_stream_ctl (
    .clk_i(clk_ctl), .rst_ni(unit_rst_no), .clear_i(1'b0), .cmd_valid_i(q_valid[READER]),
    .cmd_ready_o(sc_ready), .cmd_i(d_cmd_q), .index_i(index_q), .limit_i(w_limit),
    .stash_limit_i(s_limit_o), .train_i(TRAIN != 0 ? train_o : 1'b0), .bad_o(stream_bad),
    .bad_index_o(stream_index), .bad_off_o(stream_off), .bad_stash_o(stream_bad_stash),
    .pending_o(stream_pending),
    .issue_valid_i(iss_valid[READER]), .issue_ready_o(iss_ready[READER]),
    .issue_cmd_i(iss_cmd[512*READER+:512]), .done_o(stream_done),
    `MR_WJOB_M_TO(job_, job_), `MR_SP_M_TO(sp_, sp_)
  );
  assign unit_done[READER] = stream_done;

  // END is not a unit's: it is taken when all commands have finished.
  logic is_end, end_ready, end_fire;
  assign is_end         = iss_cmd[512*WRITER+:8] == mr_pkg::OP_END[7:0];
  assign end_ready      = unit_busy_o == '0 && waiting[3:0] == '0 && !stop_q;
  assign end_fire       = iss_valid[WRITER] && is_end && end_ready;
  assign issue_valid_o  = {iss_valid[WRITER] && !is_end, iss_valid[3:1]};
  assign iss_ready[4:1] = {is_end ? end_ready : issue_ready_i[WRITER], issue_ready_i[3:1]};
  assign unit_done[4:1] = {unit_done_i[WRITER] || end_q, unit_done_i[3:1]};
  assign cmd_o          = iss_cmd[2559:512];
  logic end_q;
  always_ff @(posedge clk_ctl) end_q <= unit_rst_no && end_fire;

  // ---- errors ---------------------------------------------------------------------------------
  logic [39:0] idle_q;  // cycles without progress
  logic        dog;
  assign dog = watchdog_i != '0 && watchdog_i < 6'd40 && idle_q[watchdog_i];

  logic hit;
  assign hit = desc_bad || d_bad || stream_bad || err_valid_i != '0 || no_end_q || dog;

  // All other commands have been dealt out before the sequencer's own error.
  logic        first_v, first_once;
  logic [15:0] first_index;
  logic [7:0]  first_code, first_unit;
  logic [63:0] first_addr, stream_addr;
  assign stream_addr = ((TRAIN != 0 ? stream_bad_stash : 1'b0) ? s_base_o[63:0] : w_base_o[63:0]) +
                       {26'd0, stream_off, 6'd0};
  mr_first_error #(.N(N), .TRAIN(TRAIN), .ERRORS(ERRORS)) u_first_error (
    .clk_i, .run_i(state_q == RUN), .hit_i(hit), .once_i(desc_bad || dog), .index_i(index_q),
    .oldest_i(oldest),
    `MR_ERR_S_TO(err_, err_),
    .own_v_i(desc_bad || d_bad || stream_bad || no_end_q || dog), .own_desc_i(desc_bad),
    .own_index_i(stream_bad ? stream_index : index_q),
    .own_code_i(desc_bad ? mr_pkg::DEVERR_DESCRIPTOR[7:0] :
                stream_bad ? mr_pkg::DEVERR_WINDOW[7:0] : d_bad ? illegal_code :
                mr_pkg::DEVERR_WATCHDOG[7:0]),
    .own_addr_i(desc_bad ? run_addr_i : stream_bad ? stream_addr : 64'd0), .valid_o(first_v),
    .once_o(first_once), .index_o(first_index), .code_o(first_code), .unit_o(first_unit),
    .addr_o(first_addr)
  );

  // A command before number `index` has not finished. Those of the reader's queue are not asked:
  // they fail only where they are dealt out, and STREAM_TILES ends with a MATMUL that may not come.
  function automatic logic earlier(input logic [4:1] held, input logic [4*16-1:0] first,
                                   input logic [15:0] index);
    earlier = 1'b0;
    for (int i = 0; i < 4; i++) begin
      if (held[i+1] && first[16*i+:16] < index) earlier = 1'b1;
    end
  endfunction

  // ---- the run --------------------------------------------------------------------------------
  always_ff @(posedge clk_i) begin
    finish_o         <= 1'b0;
    counters_clear_o <= 1'b0;
    fetch_start_q    <= 1'b0;
    if (!rst_ni) begin
      state_q     <= SETTLE;
      wait_q      <= '0;
      halt_o      <= 1'b0;
      unit_rst_no <= 1'b0;
      done_o      <= 1'b0;
      error_o     <= 1'b0;
      fail_q      <= 1'b0;
      held_q      <= 1'b0;
      failed_q    <= 1'b0;
      ended_q     <= 1'b0;
      idle_q      <= '0;
      err_code_o  <= '0;
      err_unit_o  <= '0;
      err_index_o <= '0;
      err_addr_o  <= '0;
    end else begin
      idle_q <= (state_q != RUN && state_q != DRAIN) || progress_i || done_valid_o != '0 ? '0 :
                idle_q + 40'd1;
      unique case (state_q)
        IDLE: if (start_i) begin
          state_q          <= CLEAN;
          wait_q           <= '0;
          unit_rst_no      <= 1'b0;
          done_o           <= 1'b0;
          error_o          <= 1'b0;
          err_code_o       <= '0;
          err_unit_o       <= '0;
          err_index_o      <= '0;
          err_addr_o       <= '0;
          counters_clear_o <= 1'b1;
        end
        // Units start every run from reset: a program that left something behind harms no other.
        CLEAN: begin
          wait_q <= wait_q + 4'd1;
          if (wait_q == 4'd3) unit_rst_no <= 1'b1;
          if (wait_q == 4'd7) begin
            fetch_start_q <= 1'b1;
            state_q       <= RUN;
            wait_q        <= '0;
          end
        end
        RUN: begin
          if (hit) fail_q <= 1'b1;
          if (first_v) begin
            held_q <= 1'b1;
            if (!held_q || first_index < err_index_o) begin
              {err_index_o, err_code_o} <= {first_index, first_code};
              {err_unit_o, err_addr_o}  <= {first_unit, first_addr};
            end
          end
          // A queue shows a command some cycles after it was dealt out.
          if (fail_q) begin
            wait_q <= stream_pending || earlier(waiting[4:1] | unit_busy_o[4:1], oldest[79:16],
                                                err_index_o) ? '0 : wait_q + 4'd1;
          end
          if (reset_i || (first_v && first_once) || (fail_q && wait_q == 4'd15)) begin
            failed_q <= hit || fail_q;
            ended_q  <= hit || fail_q;
            fail_q   <= 1'b0;
            held_q   <= 1'b0;
            state_q  <= DRAIN;
            halt_o   <= 1'b1;
            wait_q   <= '0;
            idle_q   <= '0;
          end else if (end_q && !fail_q && !hit) begin
            failed_q <= 1'b0;
            ended_q  <= 1'b1;
            state_q  <= DRAIN;
            halt_o   <= 1'b1;
            wait_q   <= '0;
            idle_q   <= '0;
          end
        end
        // Outstanding bursts end before the units are reset: memory never sees a broken one. The
        // units' own pipelines get a few cycles to hand over what they have started.
        DRAIN: begin
          wait_q <= axi_idle_i ? wait_q + 4'd1 : '0;
          if (axi_idle_i && wait_q == 4'd15) begin
            unit_rst_no <= 1'b0;
            state_q     <= SETTLE;
            halt_o      <= 1'b0;
            wait_q      <= '0;
          end
          if (dog && ended_q) begin
            ended_q  <= 1'b0;
            error_o  <= 1'b1;
            finish_o <= 1'b1;
            if (!failed_q) err_code_o <= mr_pkg::DEVERR_WATCHDOG[7:0];
          end
        end
        default: begin  // SETTLE
          wait_q <= wait_q + 4'd1;
          if (wait_q == 4'd3) unit_rst_no <= 1'b1;
          if (wait_q == 4'd7) begin
            state_q  <= IDLE;
            if (ended_q) begin
              done_o  <= !failed_q;
              error_o <= failed_q;
            end
            finish_o <= ended_q;
            ended_q  <= 1'b0;
          end
        end
      endcase
    end
  end

  `MR_ASSERT(state, state_q <= SETTLE)
  // A command goes where there is room, and no more of them than the descriptor says. An error that
  // is reported is one, and how a run ended stands until the next one. Units are reset while no
  // burst is under way.
  `MR_ASSERT(dealt, (q_valid & ~q_ready) == '0 && (!q_valid[READER] || sc_ready))
  `MR_ASSERT(commands, !d_go || index_q < n_cmds_o)
  `MR_ASSERT(error, !first_v || state_q != RUN || first_code != '0)
  `MR_ASSERT(outcome, !done_o || !error_o)
  `MR_ASSERT_STABLE(ended, done_o || error_o, start_i, {done_o, error_o, err_code_o, err_unit_o,
                    err_index_o, err_addr_o})
  `MR_ASSERT(quiet, unit_rst_no || axi_idle_i)

endmodule
