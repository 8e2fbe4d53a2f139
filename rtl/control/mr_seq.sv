// SPDX-License-Identifier: Apache-2.0
// The sequencer: runs a program. Fetches descriptor and commands, deals them out to five queues,
// keeps the semaphores, collects errors, watches for progress, and ends the run.
//
// Parameters
//   N, T       channels, row slots
//   D_MAX, RING  for the legality checks of stream commands
//   ERRORS     units that can report an error (err_* packed)
//
// Per queue q (mr_pkg::QUEUE_*): issue_valid_o/issue_ready_i with cmd_o and a done_i pulse per
// command, in order. The reader queue is served inside (mr_stream_ctl), the END command too.
// unit_rst_no resets all units: at power-up, at the start of every run and after an error, each
// time only when AXI is idle. halt_o asks readers and writers to stop issuing and drain. A memory
// that never answers: the error is reported after a second watchdog time, and the sequencer stays
// busy until the memory has answered.
module mr_seq #(
  parameter int N = 1,
  parameter int T = 128,
  parameter int D_MAX = 4096,
  parameter int RING = 1024,
  parameter int ERRORS = 4
) (
  input  logic                 clk_i,
  input  logic                 rst_ni,

  // registers
  input  logic                 start_i,
  input  logic                 reset_i,
  input  logic [63:0]          run_addr_i,
  input  logic [5:0]           watchdog_i,
  output logic                 busy_o,
  output logic                 done_o,
  output logic                 error_o,
  output logic                 finish_o,
  output logic [7:0]           err_code_o,
  output logic [7:0]           err_unit_o,
  output logic [15:0]          err_index_o,
  output logic [63:0]          err_addr_o,
  output logic                 counters_clear_o,
  output logic                 counters_run_o,

  // fetch client of mr_hostrd
  output logic                 hr_req_valid_o,
  input  logic                 hr_req_ready_i,
  output logic [63:0]          hr_req_addr_o,
  output logic [15:0]          hr_req_beats_o,
  input  logic                 hr_valid_i,
  input  logic [511:0]         hr_data_i,

  // the run
  output logic [15:0]          n_rows_o,
  output logic                 two_pass_o,
  output logic [63:0]          input_base_o,
  output logic [31:0]          input_limit_o,
  output logic [63:0]          result_base_o,
  output logic [31:0]          result_limit_o,
  output logic [31:0]          kv_layer_beats_o,
  output logic [31:0]          kv_v_beats_o,
  output logic [31:0]          kv_pm_beats_o,
  output logic [N*64-1:0]      w_base_o,
  output logic [N*32-1:0]      w_limit_o,
  output logic [N*64-1:0]      kv_base_o,
  output logic [N*32-1:0]      kv_limit_o,

  // queues 1..4 (array, vector, attention, writer)
  output logic [4:1]           issue_valid_o,
  input  logic [4:1]           issue_ready_i,
  output logic [4*512-1:0]     cmd_o,
  input  logic [4:1]           done_i,
  output logic [4:0]           unit_busy_o,

  // readers and splitters
  output logic [N-1:0]         job_valid_o,
  input  logic [N-1:0]         job_ready_i,
  output logic [31:0]          job_off_o,
  output logic [31:0]          job_beats_o,
  output logic [N-1:0]         sp_valid_o,
  input  logic [N-1:0]         sp_ready_i,
  output logic                 sp_vec_o,
  output logic [15:0]          sp_vec_beats_o,
  output logic                 sp_fp4_o,
  output logic                 sp_bias_o,
  output logic [15:0]          sp_kblocks_o,
  output logic [31:0]          sp_groups_o,
  input  logic [N-1:0]         sp_done_i,

  // errors of the units: valid pulse, code, queue whose command it concerns, address
  input  logic [ERRORS-1:0]    err_valid_i,
  input  logic [ERRORS*8-1:0]  err_code_i,
  input  logic [ERRORS*3-1:0]  err_queue_i,
  input  logic [ERRORS*64-1:0] err_addr_i,
  input  logic                 progress_i,  // any beat moved or block computed in this cycle
  input  logic                 axi_idle_i,
  output logic                 halt_o,
  output logic                 unit_rst_no,

  // completed commands, for the check mode
  output logic [4:0]           done_valid_o,
  output logic [79:0]          done_index_o
);

  localparam int READER = mr_pkg::QUEUE_READER, ARRAY = mr_pkg::QUEUE_ARRAY,
                 VECTOR = mr_pkg::QUEUE_VECTOR, ATTENTION = mr_pkg::QUEUE_ATTENTION,
                 WRITER = mr_pkg::QUEUE_WRITER;
  localparam logic [2:0] IDLE = 0, CLEAN = 1, RUN = 2, DRAIN = 3, SETTLE = 4;
  logic [2:0]  state_q;
  logic [3:0]  wait_q;
  logic        failed_q, ended_q;
  logic        fetch_start_q;

  assign busy_o         = state_q != IDLE;
  assign counters_run_o = state_q == RUN;

  // Commands come and go rarely. See mr_clk_gate.
  logic clk_ctl, act_ctl;
  mr_clk_gate u_gate_ctl (.clk_i, .active_i(act_ctl), .clk_o(clk_ctl));
  assign act_ctl = !unit_rst_no || fetch_start_q || hr_req_valid_o || hr_valid_i || d_go ||
                   (cmd_valid && cmd_ready) || (iss_valid & iss_ready) != '0 || unit_done != '0 ||
                   sp_done_i != '0 || (job_valid_o & job_ready_i) != '0 ||
                   (sp_valid_o & sp_ready_i) != '0;

  // ---- fetch and dispatch ---------------------------------------------------------------------
  logic         desc_bad, cmd_valid, cmd_ready;
  logic         unused_desc_valid;  // commands follow only after a good descriptor
  logic [511:0] cmd;
  mr_fetch #(
    .N(N),
    .T(T)
  ) u_fetch (
    .clk_i(clk_ctl),
    .rst_ni     (unit_rst_no),
    .start_i    (fetch_start_q),
    .addr_i     (run_addr_i),
    .hr_req_valid_o,
    .hr_req_ready_i,
    .hr_req_addr_o,
    .hr_req_beats_o,
    .hr_valid_i,
    .hr_data_i,
    .bad_o      (desc_bad),
    .desc_valid_o(unused_desc_valid),
    .n_rows_o,
    .two_pass_o,
    .input_base_o,
    .input_limit_o,
    .result_base_o,
    .result_limit_o,
    .kv_layer_beats_o,
    .kv_v_beats_o,
    .kv_pm_beats_o,
    .w_base_o,
    .w_limit_o,
    .kv_base_o,
    .kv_limit_o,
    .cmd_valid_o(cmd_valid),
    .cmd_ready_i(cmd_ready),
    .cmd_o      (cmd)
  );

  // A command's queue, one-hot; no bit for an opcode that does not exist.
  function automatic [4:0] route(input logic [7:0] op);
    unique case (op)
      mr_pkg::OP_STREAM_VEC[7:0], mr_pkg::OP_STREAM_TILES[7:0]: route = 5'd1 << READER;
      mr_pkg::OP_MATMUL[7:0]: route = 5'd1 << ARRAY;
      mr_pkg::OP_LOAD_ROWS[7:0], mr_pkg::OP_LAYERNORM[7:0]: route = 5'd1 << VECTOR;
      mr_pkg::OP_PM_LOAD[7:0], mr_pkg::OP_ATTEND[7:0]: route = 5'd1 << ATTENTION;
      mr_pkg::OP_STORE_KV[7:0], mr_pkg::OP_STORE_RES[7:0], mr_pkg::OP_END[7:0]:
      route = 5'd1 << WRITER;
      default: route = 5'd0;
    endcase
  endfunction

  // A command sits in a register while it is routed; both parts of the reader queue take it
  // together.
  logic         d_valid_q;
  logic [511:0] d_cmd_q;
  logic [4:0]   d_route_q, q_ready, q_valid;
  logic [15:0]  index_q;
  logic         d_go, d_bad, sc_ready;
  assign d_bad     = d_valid_q && d_route_q == '0;
  assign d_go      = d_valid_q && (d_route_q & q_ready) != '0 && (!d_route_q[READER] || sc_ready);
  assign cmd_ready = !d_valid_q || d_go;
  assign q_valid   = d_go ? d_route_q : '0;

  always_ff @(posedge clk_ctl) begin
    if (!unit_rst_no) begin
      d_valid_q <= 1'b0;
      index_q   <= '0;
    end else begin
      if (cmd_ready) d_valid_q <= cmd_valid;
      if (d_go) index_q <= index_q + 16'd1;
    end
    if (cmd_valid && cmd_ready) begin
      d_cmd_q   <= cmd;
      d_route_q <= route(cmd[7:0]);
    end
  end

  // ---- queues ---------------------------------------------------------------------------------
  logic [4:0]    iss_valid, iss_ready, unit_done;
  logic [2559:0] iss_cmd;
  logic [79:0]   take, signal, oldest, unused_index;
  logic [15:0]   sem_nonzero;
  logic          sem_overflow;
  genvar q;
  generate
    for (q = 0; q < 5; q = q + 1) begin : gen_queue
      mr_queue #(
        .DEPTH(q == READER ? 32 : 16),
        .LIMIT(q == ARRAY ? 8 : 1)
      ) u_queue (
        .clk_i(clk_ctl),
        .rst_ni       (unit_rst_no),
        .in_valid_i   (q_valid[q]),
        .in_ready_o   (q_ready[q]),
        .in_cmd_i     (d_cmd_q),
        .in_index_i   (index_q),
        .sem_i        (sem_nonzero),
        .take_o       (take[16*q+:16]),
        .signal_o     (signal[16*q+:16]),
        .issue_valid_o(iss_valid[q]),
        .issue_ready_i(iss_ready[q]),
        .cmd_o        (iss_cmd[512*q+:512]),
        .index_o      (unused_index[16*q+:16]),
        .done_i       (unit_done[q]),
        .busy_o       (unit_busy_o[q]),
        .oldest_o     (oldest[16*q+:16]),
        .done_valid_o (done_valid_o[q]),
        .done_index_o (done_index_o[16*q+:16])
      );
    end
  endgenerate

  mr_sems u_sems (
    .clk_i(clk_ctl),
    .rst_ni    (unit_rst_no),
    .clear_i   (1'b0),
    .take_i    (take),
    .signal_i  (signal),
    .nonzero_o (sem_nonzero),
    .overflow_o(sem_overflow)
  );

  logic stream_bad, stream_done;
  mr_stream_ctl #(
    .N    (N),
    .D_MAX(D_MAX),
    .RING (RING)
  ) u_stream_ctl (
    .clk_i(clk_ctl),
    .rst_ni       (unit_rst_no),
    .clear_i      (1'b0),
    .cmd_valid_i  (q_valid[READER]),
    .cmd_ready_o  (sc_ready),
    .cmd_i        (d_cmd_q),
    .bad_o        (stream_bad),
    .issue_valid_i(iss_valid[READER]),
    .issue_ready_o(iss_ready[READER]),
    .issue_cmd_i  (iss_cmd[512*READER+:512]),
    .done_o       (stream_done),
    .job_valid_o,
    .job_ready_i,
    .job_off_o,
    .job_beats_o,
    .sp_valid_o,
    .sp_ready_i,
    .sp_vec_o,
    .sp_vec_beats_o,
    .sp_fp4_o,
    .sp_bias_o,
    .sp_kblocks_o,
    .sp_groups_o,
    .sp_done_i
  );
  assign unit_done[READER] = stream_done;

  // END is not a unit's: it is taken when all earlier writer commands have finished.
  logic is_end, end_fire;
  assign is_end   = iss_cmd[512*WRITER+:8] == mr_pkg::OP_END[7:0];
  assign end_fire = iss_valid[WRITER] && is_end && !unit_busy_o[WRITER];
  assign issue_valid_o  = {iss_valid[WRITER] && !is_end, iss_valid[3:1]};
  assign iss_ready[4:1] = {is_end ? end_fire : issue_ready_i[WRITER], issue_ready_i[3:1]};
  assign unit_done[4:1] = {done_i[WRITER] || end_q, done_i[3:1]};
  assign cmd_o          = iss_cmd[2559:512];
  logic end_q;
  always_ff @(posedge clk_ctl) end_q <= unit_rst_no && end_fire;

  // ---- errors ---------------------------------------------------------------------------------
  logic [39:0] idle_q;  // cycles without progress
  logic        dog;
  assign dog = watchdog_i != '0 && watchdog_i < 6'd40 && idle_q[watchdog_i];

  logic program_bad, hit;
  assign program_bad = d_bad || stream_bad || sem_overflow;
  assign hit = desc_bad || program_bad || err_valid_i != '0 || dog;

  // ---- the run --------------------------------------------------------------------------------
  assign halt_o = state_q == DRAIN;

  always_ff @(posedge clk_i) begin
    finish_o         <= 1'b0;
    counters_clear_o <= 1'b0;
    fetch_start_q    <= 1'b0;
    if (!rst_ni) begin
      state_q     <= SETTLE;
      wait_q      <= '0;
      unit_rst_no <= 1'b0;
      done_o      <= 1'b0;
      error_o     <= 1'b0;
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
          end
        end
        RUN: begin
          if (hit || reset_i) begin
            failed_q <= hit;
            ended_q  <= hit;
            state_q  <= DRAIN;
            wait_q   <= '0;
            idle_q   <= '0;
            if (hit) begin
              err_code_o  <= mr_pkg::DEVERR_COMMAND[7:0];
              err_unit_o  <= 8'd0;
              err_index_o <= index_q;
              err_addr_o  <= '0;
              if (desc_bad) begin
                err_code_o <= mr_pkg::DEVERR_DESCRIPTOR[7:0];
                err_addr_o <= run_addr_i;
              end else if (stream_bad) begin
                err_index_o <= index_q - 16'd1;  // it was dealt out in the last cycle
              end else if (!program_bad && err_valid_i != '0) begin
                for (int i = 0; i < ERRORS; i++) begin
                  if (err_valid_i[i]) begin
                    err_code_o  <= err_code_i[8*i+:8];
                    err_unit_o  <= 8'(i + 1);
                    err_index_o <= oldest[16*err_queue_i[3*i+:3]+:16];
                    err_addr_o  <= err_addr_i[64*i+:64];
                  end
                end
              end else if (!program_bad) begin
                err_code_o <= mr_pkg::DEVERR_WATCHDOG[7:0];
              end
            end
          end else if (end_q) begin
            failed_q <= 1'b0;
            ended_q  <= 1'b1;
            state_q  <= DRAIN;
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

endmodule
