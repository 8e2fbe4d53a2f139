// SPDX-License-Identifier: Apache-2.0
// The reader queue: turns STREAM_VEC and STREAM_TILES into read jobs, which run ahead, and into
// commands for the channels' splitters, which follow the data. Both go to all N channels; a job
// starts where the last one of the weights ended, or where SEEK says.
//
// Parameters
//   N      channels (a power of two)
//   TRAIN  1: STREAM_STASH too (mr_stash_jobs); stash_limit_i is its window. And SEEK, in a run of
//          training, train_i
//
// Commands are legal (mr_legal) but for their window: what they take from the stream must end in
// the smallest weight window, limit_i (beats).
//
// Timing: valid/ready at every port; per channel bits of job_valid_o and sp_valid_o fall as the
// channels take the job or command, the next one follows when all have. done_o: all splitters have
// finished. bad_o is a pulse, some cycles after the command: it lies outside. bad_index_o is its
// index_i, bad_off_o where it would begin, bad_stash_o in which window. Nothing of it is read, nor
// of those behind it.
// A job with job_stash_o is in the stash. A STREAM_STASH without semaphores is read in its turn, as
// weights are; one that waits is read when it is issued, and holds those behind it back.
// pending_o: a command's window has not been looked at; one of the stash shows a cycle later.
`include "mr_assert.svh"
`include "mr_bundles.svh"
module mr_stream_ctl #(
  parameter int N = 1,
  parameter int TRAIN = 0
) (
  input  logic         clk_i,
  input  logic         rst_ni,
  input  logic         clear_i,     // start of a run: back to the stream's first beat

  // from the dispatcher (jobs, no waiting)
  input  logic         cmd_valid_i,
  output logic         cmd_ready_o,
  input  logic [511:0] cmd_i,
  input  logic [15:0]  index_i,
  input  logic [31:0]  limit_i,
  input  logic [31:0]  stash_limit_i,
  input  logic         train_i,
  output logic         bad_o,
  output logic [15:0]  bad_index_o,
  output logic [31:0]  bad_off_o,
  output logic         bad_stash_o,
  output logic         pending_o,

  // from the reader's mr_queue (after waiting)
  input  logic         issue_valid_i,
  output logic         issue_ready_o,
  input  logic [511:0] issue_cmd_i,
  output logic         done_o,

  `MR_WJOB_M(job_),

  `MR_SP_M(sp_, N)
);

  localparam int LN = $clog2(N);
  localparam int JOB_W = TRAIN != 0 ? 65 : 32;  // beats; and where it begins, if it seeks

  // ---- fields ---------------------------------------------------------------------------------
  // Fields lie at fixed bits of a command; the rest of it is not used here.
  // verilator lint_off UNUSED
  logic [511:0] c;
  // verilator lint_on UNUSED
  logic        is_vec, is_stash;
  logic [15:0] d, kb;
  logic [31:0] cols;
  assign c      = cmd_i;
  assign is_vec = c[7:0] == mr_pkg::OP_STREAM_VEC[7:0];
  assign is_stash = TRAIN != 0 && c[7:0] == mr_pkg::OP_STREAM_STASH[7:0];
  assign d      = c[mr_pkg::STREAM_VEC_D_LSB +: 16];
  assign kb     = c[mr_pkg::STREAM_TILES_KBLOCKS_LSB +: 16];
  assign cols   = c[mr_pkg::STREAM_TILES_COLS_LSB +: 32];

  // ---- beats of a command: three steps --------------------------------------------------------
  logic        a_valid_q, b_valid_q, a_vec_q, a_bias_q, b_vec_q;
  logic [31:0] a_groups_q, b_low_q;
  logic [14:0] b_high_q;  // groups x beats of a group, in two parts: a multiplier each
  logic [17:0] a_group_beats_q;
  logic [31:0] b_header_q;
  logic [15:0] a_vec_beats_q, b_vec_beats_q;
  logic [31:0] a_headers;  // one for 16 groups, of one beat or with bias of five
  assign a_headers = (a_groups_q + 32'd15) >> 4;
  logic        j_in_valid, j_in_ready;
  logic [31:0] j_in_beats;
  logic        st_new, st_busy, st_good, st_bad, take;
  // A command of the stash leaves a job of no beats among those of the weights: its turn.
  assign cmd_ready_o = !a_valid_q && !b_valid_q && !st_new && !st_busy;
  assign take        = cmd_valid_i && cmd_ready_o;
  assign j_in_valid  = b_valid_q || st_good;
  assign j_in_beats  = st_good ? '0 : b_vec_q ? {15'd0, b_vec_beats_q, 1'b0}
                               : b_low_q + {b_high_q, 17'd0} + b_header_q;

  // Where the command seeks to.
  logic        a_seek, b_seek;
  logic [31:0] a_off, b_off;

  logic [15:0] a_index_q, b_index_q;
  always_ff @(posedge clk_i) begin
    if (!rst_ni || clear_i) begin
      a_valid_q <= 1'b0;
      b_valid_q <= 1'b0;
    end else begin
      if (take && !is_stash) a_valid_q <= 1'b1;
      if (a_valid_q) begin
        a_valid_q <= 1'b0;
        b_valid_q <= 1'b1;
      end
      if (j_in_valid && j_in_ready) b_valid_q <= 1'b0;
    end
    if (take) begin
      a_index_q       <= index_i;
      a_vec_q         <= is_vec;
      a_bias_q        <= c[mr_pkg::STREAM_TILES_BIAS_LSB];
      a_vec_beats_q   <= (d + 16'(16 * N - 1)) >> (4 + LN);
      a_groups_q      <= cols >> (2 + LN);
      a_group_beats_q <= ((18'(kb) + 18'd15) >> 4) +
                         (c[mr_pkg::STREAM_TILES_FP4_LSB] ? {2'd0, kb} : {1'd0, kb, 1'b0});
    end
    if (a_valid_q) begin
      b_index_q     <= a_index_q;
      b_vec_q       <= a_vec_q;
      b_vec_beats_q <= a_vec_beats_q;
      b_low_q       <= 32'(35'(a_groups_q[16:0]) * 35'(a_group_beats_q));
      b_high_q      <= 15'(a_groups_q[31:17] * a_group_beats_q[14:0]);
      b_header_q    <= a_headers + (a_bias_q ? a_headers << 2 : 32'd0);
    end
  end

  // ---- window -----------------------------------------------------------------------------------
  // Looked at beside the job's way through its FIFO, which takes two cycles. The job that ends
  // outside, number bad_job_q, stays in it; those before it are read.
  logic        c_valid_q, outside_q;
  logic [31:0] c_beats_q, end_q;  // of the command; of the stream up to it
  logic [32:0] c_end;
  logic [15:0] c_index_q;
  logic [15:0] in_q, out_q, bad_job_q;  // jobs into the FIFO and out of it
  logic        j_in;
  assign j_in      = j_in_valid && j_in_ready;
  assign c_end     = {1'b0, end_q} + {1'b0, c_beats_q};
  assign pending_o = a_valid_q || b_valid_q || c_valid_q || st_busy;
  always_ff @(posedge clk_i) begin
    bad_o <= 1'b0;
    if (!rst_ni || clear_i) begin
      c_valid_q <= 1'b0;
      outside_q <= 1'b0;
      end_q     <= '0;
      in_q      <= '0;
    end else begin
      c_valid_q <= j_in;
      if (j_in) in_q <= in_q + 16'd1;
      if (c_valid_q && !outside_q) begin
        outside_q <= c_end > {1'b0, limit_i};
        bad_o     <= c_end > {1'b0, limit_i};
        end_q     <= c_end[31:0];
      end
      if (a_seek && !outside_q) end_q <= a_off;  // the command before it was looked at
      if (st_bad && !outside_q) begin
        outside_q <= 1'b1;
        bad_o     <= 1'b1;
      end
    end
    if (j_in) begin
      c_beats_q <= j_in_beats;
      c_index_q <= b_index_q;
    end
    if (c_valid_q && !outside_q) begin
      bad_job_q   <= in_q - 16'd1;
      bad_index_o <= c_index_q;
      bad_off_o   <= end_q;
    end
    // Nothing of it is in the FIFO: the next job would be its.
    if ((TRAIN != 0 ? st_bad : 1'b0) && !outside_q) begin
      bad_job_q   <= in_q;
      bad_index_o <= a_index_q;
      bad_off_o   <= st_off;
    end
  end

  // ---- read jobs ------------------------------------------------------------------------------
  logic        j_valid, j_ready;
  logic [31:0] j_beats, j_off, off_q;
  logic [JOB_W-1:0] j_in_job, j_job;
  logic [N-1:0] job_pend_q;
  logic [5:0]   unused_count;
  mr_fifo #(.W(JOB_W), .DEPTH(32)) u_jobs (
    .clk_i, .rst_ni, .clear_i,
    .in_valid_i(j_in_valid), .in_ready_o(j_in_ready), .in_data_i(j_in_job),
    .out_valid_o(j_valid), .out_ready_i(j_ready), .out_data_o(j_job), .count_o(unused_count)
  );
  assign j_beats     = j_job[31:0];
  assign job_valid_o = job_pend_q;
  assign j_ready     = job_pend_q == '0 && !st_turn && !(outside_q && out_q == bad_job_q);

  always_ff @(posedge clk_i) begin
    if (!rst_ni || clear_i) begin
      job_pend_q <= '0;
      off_q      <= '0;
      out_q      <= '0;
    end else if (j_ready) begin
      if (j_valid) begin
        out_q       <= out_q + 16'd1;
        job_pend_q  <= (TRAIN != 0 && j_beats == '0) ? '0 : '1;
        job_off_o   <= j_off;
        job_beats_o <= j_beats;
        off_q       <= j_off + j_beats;
      end
    end else if (TRAIN != 0 ? st_job : 1'b0) begin  // a constant before enables are found
      job_pend_q  <= '1;
      job_off_o   <= st_job_off;
      job_beats_o <= st_job_beats;
    end else begin
      job_pend_q <= job_pend_q & ~job_ready_i;
    end
  end

  // ---- seeking ----------------------------------------------------------------------------------
  if (TRAIN != 0) begin : gen_seek
    logic        a_seek_q, b_seek_q;
    logic [31:0] a_off_q, b_off_q;
    always_ff @(posedge clk_i) begin
      if (take) begin
        a_seek_q <= train_i && c[mr_pkg::STREAM_TILES_SEEK_LSB];
        a_off_q  <= c[mr_pkg::STREAM_TILES_OFF_LSB +: 32];
      end
      if (a_valid_q) begin
        b_seek_q <= a_seek_q;
        b_off_q  <= a_off_q;
      end
    end
    assign a_seek   = a_valid_q && a_seek_q;
    assign a_off    = a_off_q;
    assign b_seek   = b_seek_q && !st_good;
    assign b_off    = b_off_q;
    assign j_in_job = {b_seek, b_off, j_in_beats};
    assign j_off    = j_job[64] ? j_job[63:32] : off_q;
  end else begin : gen_no_seek
    assign {a_seek, a_off, b_seek, b_off} = '0;
    assign j_in_job = j_in_beats;
    assign j_off    = off_q;
    logic unused;
    assign unused = ^{train_i, b_seek, b_off};
  end

  // ---- the stash --------------------------------------------------------------------------------
  // st_turn: the job at the head of the FIFO was of no beats, and its jobs are not all made.
  logic        st_turn, st_job;
  logic [31:0] st_off, st_job_off, st_job_beats;
  if (TRAIN != 0) begin : gen_train
    logic       new_q, next, waits, go, valid, last, turn_q, run_q;
    logic signed [6:0] issued_q;  // STREAM_STASHs that were issued, less those that had their turn
    assign st_turn = turn_q;
    // take comes late.
    assign st_new  = new_q;
    always_ff @(posedge clk_i) new_q <= rst_ni && !clear_i && take && is_stash;
    assign st_job  = turn_q && valid && job_pend_q == '0;
    assign go      = turn_q && !run_q && next && (!waits || issued_q > 7'sd0);
    mr_stash_jobs #(.N(N)) u_stash (
      .clk_i, .rst_ni(rst_ni && !clear_i), .cmd_valid_i(new_q),
      .cmd_kblocks_i(c[mr_pkg::STREAM_STASH_KBLOCKS_LSB +: 16]),
      .cmd_all_kblocks_i(c[mr_pkg::STREAM_STASH_ALL_KBLOCKS_LSB +: 16]),
      .cmd_cols_i(c[mr_pkg::STREAM_STASH_COLS_LSB +: 32]),
      .cmd_first_col_i(c[mr_pkg::STREAM_STASH_FIRST_COL_LSB +: 32]),
      .cmd_off_i(c[mr_pkg::STREAM_STASH_OFF_LSB +: 32]),
      .cmd_first_kblock_i(c[mr_pkg::STREAM_STASH_FIRST_KBLOCK_LSB +: 16]),
      .cmd_waits_i(c[mr_pkg::CMD_WAIT_LSB +: 16] != '0), .limit_i(stash_limit_i), .busy_o(st_busy),
      .good_o(st_good), .bad_o(st_bad), .off_o(st_off), .go_i(go), .next_o(next), .waits_o(waits),
      .job_valid_o(valid), .job_ready_i(st_job), .job_off_o(st_job_off), .job_beats_o(st_job_beats),
      .last_o(last)
    );
    logic issued;
    assign issued = issue_valid_i && issue_ready_o &&
                    issue_cmd_i[7:0] == mr_pkg::OP_STREAM_STASH[7:0];
    always_ff @(posedge clk_i) begin
      if (!rst_ni || clear_i) begin
        turn_q   <= 1'b0;
        run_q    <= 1'b0;
        issued_q <= '0;
      end else begin
        if (j_ready && j_valid && j_beats == '0) turn_q <= 1'b1;
        else if (st_job && last) turn_q <= 1'b0;
        if (go) run_q <= 1'b1;
        else if (st_job && last) run_q <= 1'b0;
        issued_q <= issued_q + $signed({6'd0, issued}) - $signed({6'd0, go});
      end
      if (j_ready && j_valid) job_stash_o <= 1'b0;
      else if (st_job) job_stash_o <= 1'b1;
      if (!outside_q && (c_valid_q || st_bad)) bad_stash_o <= st_bad;
    end
  end else begin : gen_no_train
    assign {st_turn, st_job, st_off, st_job_off, st_job_beats} = '0;
    assign {st_new, st_busy, st_good, st_bad} = '0;
    assign {job_stash_o, bad_stash_o} = '0;
    logic unused;
    assign unused = ^stash_limit_i;
  end

  // ---- splitter commands ----------------------------------------------------------------------
  // verilator lint_off UNUSED
  logic [511:0] s;
  // verilator lint_on UNUSED
  logic [N-1:0] sp_pend_q, sp_wait_q;
  logic         sp_busy_q, s_stash;
  assign s_stash       = TRAIN != 0 && s[7:0] == mr_pkg::OP_STREAM_STASH[7:0];
  assign s             = issue_cmd_i;
  assign issue_ready_o = !sp_busy_q;
  assign sp_valid_o    = sp_pend_q;

  always_ff @(posedge clk_i) begin
    done_o <= 1'b0;
    if (!rst_ni || clear_i) begin
      sp_pend_q <= '0;
      sp_wait_q <= '0;
      sp_busy_q <= 1'b0;
    end else if (!sp_busy_q) begin
      if (issue_valid_i) begin
        sp_busy_q <= 1'b1;
        sp_pend_q <= '1;
        sp_wait_q <= '1;
      end
    end else begin
      sp_pend_q <= sp_pend_q & ~sp_ready_i;
      sp_wait_q <= sp_wait_q & ~sp_done_i;
      if ((sp_wait_q & ~sp_done_i) == '0) begin
        sp_busy_q <= 1'b0;
        done_o    <= 1'b1;
      end
    end
    if (issue_valid_i && !sp_busy_q) begin
      sp_vec_o       <= s[7:0] == mr_pkg::OP_STREAM_VEC[7:0];
      sp_vec_beats_o <= (s[mr_pkg::STREAM_VEC_D_LSB +: 16] + 16'(16 * N - 1)) >> (4 + LN);
      sp_fp4_o       <= s[mr_pkg::STREAM_TILES_FP4_LSB] && !s_stash;
      sp_bias_o      <= s[mr_pkg::STREAM_TILES_BIAS_LSB] && !s_stash;
      sp_kblocks_o   <= s[mr_pkg::STREAM_TILES_KBLOCKS_LSB +: 16];
      sp_groups_o    <= s[mr_pkg::STREAM_TILES_COLS_LSB +: 32] >> (2 + LN);
    end
  end

  if (TRAIN != 0) begin : gen_parts
    always_ff @(posedge clk_i) begin
      if (issue_valid_i && !sp_busy_q) begin
        sp_first_o   <= s_stash ? s[mr_pkg::STREAM_STASH_FIRST_KBLOCK_LSB +: 4] : '0;
        sp_in_head_o <= s_stash ? s[mr_pkg::STREAM_STASH_FIRST_COL_LSB + 2 + LN +: 4] : '0;
      end
    end
  end else begin : gen_no_parts
    assign {sp_first_o, sp_in_head_o} = '0;
  end

  for (genvar ch = 0; ch < N; ch++) begin : gen_contracts
    `MR_ASSERT_STABLE(job, job_valid_o[ch], job_ready_i[ch], {job_off_o, job_beats_o, job_stash_o})
    `MR_ASSERT_STABLE(command, sp_valid_o[ch], sp_ready_i[ch],
                      {sp_vec_o, sp_vec_beats_o, sp_fp4_o, sp_bias_o, sp_kblocks_o, sp_groups_o,
                       sp_first_o, sp_in_head_o})
  end
  `MR_ASSERT(done, (sp_done_i & ~(sp_wait_q & ~sp_pend_q)) == '0)

endmodule
