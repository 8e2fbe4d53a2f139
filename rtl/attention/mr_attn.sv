// SPDX-License-Identifier: Apache-2.0
// Attention: PM_LOAD and ATTEND (docs/inside/commands.md), the controller over one mr_attn_lane per
// channel.
//
// A group is up to 4 tokens that continue one sequence x some heads (mr_attn_plan). For a group:
// load q and prefix maxima (mr_attn_load), QK pass over the K records in all lanes, merge of the
// lanes' maxima, PV pass over the V records, drain (mr_attn_out). The load of the next group runs
// beside PV, its QK pass beside the drain, its KV reads ahead of both.
//
// Parameters
//   N          channels (power of two, 1..16); V = 4N
//   T          row slots (and tokens)
//   SCORES     score buffer entries over all channels, >= CTX_MAX, multiple of N
//   QKV_WORDS  528-bit words of q/k/v memory per row slot
//   PM_WORDS   16-bit words of prefix maxima per token
//   W_MAX      largest heads * HP; HEADS_MAX most heads; HP_MAX largest HP; CTX_MAX most positions
//   KV_DEPTH   beats of a lane's KV FIFO: the credits the reader starts with
//   TRAIN      1: cmd_keep_i is looked at; D_MAX: floats of a token in the row memory
//   FOLD       1; with more (N <= 4), a row's work on a beat takes 64 / V cycles (mr_attn_mac)
//
// Timing
//   cmd_valid_i/cmd_ready_o: one command at a time, taken when idle. n_rows_i, two_pass_i and
//     kv_*_beats_i are stable while busy. done_o: pulse when the last block (or prefix maximum) has
//     been written; the next command can be taken in that cycle.
//   row_*, q_*, pm_*: RAM ports, address in t, data in t+1. row_rdata_i as mr_rows has it.
//   q word: {code1, 32 x int8, code0, 32 x int8} (block 2w+1 high), at row slot * QKV_WORDS +
//     q_base + w. Prefix maxima {block 2w+1, block 2w} at token * PM_WORDS + w. A token's K, V and
//     prefix maxima are in memory before its ATTEND starts.
//   kv_job_*: to the readers, valid/ready; kv_valid_i beats are never refused; kv_credit_o: pulse
//     per beat freed.
//   b_*: valid/ready to activation memory; b_word_o is dst_base + block, b_first_o is block 0.
//   keep_*: with cmd_keep_i, all words of V floats that are quantised, once each and before done_o:
//     a write port of the second row memory. heads * HP is at most D_MAX then.
//   cnt_busy_o, cnt_wait_kv_o, cnt_idle_o: exactly one is high in each cycle. Waits for KV: some
//     lane has run out of beats and no lane moves.
//   ovf_o, nan_o: pulses for the sticky flags.
//
// Cycles of an ATTEND of one group, from the cycle after the command was taken to done_o, when
// neither KV beats nor b_ keep it waiting (the bench holds it to this exactly): r rows, p = 1 or 2
// passes, h heads, w = W/64, s = ceil(W/2048), L = ceil(positions / N) records on channel 0:
//   L (2 s + r w (p + 1))        passes: with one row and pass, a beat of K or V in every cycle
//   + r w p + r h + r p HP/64    load, merge, last head's sums
//   + 92 - s + 3 log2 N + 2 max(8 / N, 1)   pipelines, to the first block on b_
//   + (2 r w - 1) max(8 / N, 1) + 2   other blocks, done_o (one pass; about twice that with two)
// With FOLD, r w (p + 1) in the first line is 64 / V times as much.
// More groups: the load of the next runs beside PV, its QK pass beside the drain.
`include "mr_assert.svh"
`include "mr_bundles.svh"
module mr_attn #(
  parameter int N = 1,
  parameter int T = 8,
  parameter int V = 4 * N,
  parameter int SCORES = 2048,
  parameter int QKV_WORDS = 64,
  parameter int PM_WORDS = 64,
  parameter int W_MAX = 4096,
  parameter int HEADS_MAX = 16,
  parameter int HP_MAX = 256,
  parameter int CTX_MAX = 2048,
  parameter int KV_DEPTH = 128,
  parameter int FOLD = 1,
  parameter int D_MAX = 4096,
  parameter int TRAIN = 0
) (
  input  logic                           clk_i,
  input  logic                           rst_ni,
  // command
  input  logic                           cmd_valid_i,
  output logic                           cmd_ready_o,
  input  logic                           cmd_pm_i,        // PM_LOAD, else ATTEND
  input  logic                           cmd_to_end_i,    // PM_LOAD
  input  logic [15:0]                    cmd_layer_i,
  input  logic [15:0]                    cmd_pm_words_i,  // PM_LOAD: W/64
  input  logic [7:0]                     cmd_heads_i,
  input  logic [7:0]                     cmd_hpw_i,       // HP/64
  input  logic [31:0]                    cmd_scale_i,
  input  logic [15:0]                    cmd_q_base_i,
  input  logic [15:0]                    cmd_dst_base_i,
  input  logic [1:0]                     cmd_dst_slot_i,
  input  logic                           cmd_keep_i,
  output logic                           done_o,
  input  logic [15:0]                    n_rows_i,
  input  logic                           two_pass_i,
  `MR_KV_AT_S(kv_),
  input  logic [31:0]                    kv_limit_i,     // beats of the smallest KV window
  output logic                           err_o,          // pulse before done_o: outside that window
  // row table
  `MR_RAM_R_M(row_, $clog2(T), 65),
  input  logic [T-1:0]                   row_continues_i,
  // KV store, packed by channel
  `MR_KV_M(kv_, N),
  // q words
  `MR_RAM_R_M(q_, $clog2(T*QKV_WORDS), 528),
  // prefix maxima
  `MR_RAM_R_M(pm_, $clog2(T*PM_WORDS), 16),
  `MR_RAM_W_M(pm_, $clog2(T*PM_WORDS), 16),
  // activation memory
  `MR_BLK_M(b_),
  // second row memory
  `MR_RAM_W_M(keep_, $clog2(T*(D_MAX/V)), V*32),
  // counters, sticky flags
  `MR_ATTN_CNT_M(cnt_),
  `MR_FLAGS_M()
);

  localparam int WW = W_MAX / 64;
  localparam int WA = (WW > 1) ? $clog2(WW) : 1;
  localparam int HA = (HEADS_MAX > 1) ? $clog2(HEADS_MAX) : 1;
  localparam int LN = $clog2(N);
  localparam int CA = (N > 1) ? LN : 1;
  localparam int PA = $clog2(T * PM_WORDS);

  if (CTX_MAX > SCORES || SCORES % N != 0 || 64 % V != 0 || W_MAX % 64 != 0 || HP_MAX % 64 != 0 ||
      (FOLD > 1 && V > 16)) begin : gen_illegal
    mr_attn_illegal_parameters u_illegal ();
  end

  // ---- command ----
  logic busy_q, start_q, pm_cmd_q, to_end_q, two_q;
  logic [15:0] layer_q, pm_words_q, q_base_q, dst_base_q;
  logic [7:0] heads_q, hpw_q;
  logic [31:0] scale_q;
  logic [1:0] dst_slot_q;
  logic finished;

  assign cmd_ready_o = !busy_q;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      busy_q  <= 1'b0;
      start_q <= 1'b0;
      done_o  <= 1'b0;
    end else begin
      start_q <= cmd_valid_i && !busy_q;
      done_o  <= finished;
      if (cmd_valid_i && !busy_q) busy_q <= 1'b1;
      else if (finished) busy_q <= 1'b0;
    end
  end

  always_ff @(posedge clk_i) begin
    if (cmd_valid_i && !busy_q) begin
      pm_cmd_q   <= cmd_pm_i;
      to_end_q   <= cmd_to_end_i;
      two_q      <= two_pass_i;
      layer_q    <= cmd_layer_i;
      pm_words_q <= cmd_pm_words_i;
      heads_q    <= cmd_heads_i;
      hpw_q      <= cmd_hpw_i;
      scale_q    <= cmd_scale_i;
      q_base_q   <= cmd_q_base_i;
      dst_base_q <= cmd_dst_base_i;
      dst_slot_q <= cmd_dst_slot_i;
    end
  end

  logic keep;
  if (TRAIN != 0) begin : gen_keep
    logic keep_q;
    assign keep = keep_q;
    always_ff @(posedge clk_i) if (cmd_valid_i && !busy_q) keep_q <= cmd_keep_i;
  end else begin : gen_no_keep
    logic unused_keep;
    assign unused_keep = cmd_keep_i;
    assign keep = 1'b0;
  end

  // ---- plan ----
  logic plan_idle, g_valid, g_ready, g_zero;
  logic [CA-1:0] g_lane;
  logic [15:0] g_tok, g_pos, g_positions;
  logic [2:0] g_nr;
  logic [HA:0] g_hg;
  logic [WA:0] g_words, g_word0;
  logic [7:0] g_sc_beats;
  logic [4:0] g_sc_first;
  logic [N-1:0] jd_valid, jd_ready;
  logic jd_one, jd_whole;
  logic [31:0] jd_base;
  logic [15:0] jd_positions, jd_rec, jd_dat_off, jd_dat_beats;
  logic [7:0] jd_sc_off, jd_sc_beats;

  mr_attn_plan #(.N(N), .T(T), .SCORES(SCORES), .W_MAX(W_MAX), .HEADS_MAX(HEADS_MAX)) u_plan (
    .clk_i, .rst_ni, .start_i(start_q), .idle_o(plan_idle), .cfg_pm_i(pm_cmd_q),
    .cfg_to_end_i(to_end_q), .cfg_layer_i(layer_q), .cfg_heads_i(heads_q), .cfg_hpw_i(hpw_q),
    .cfg_pm_words_i(pm_words_q), .cfg_rows_i(n_rows_i),
    `MR_KV_AT_S_TO(kv_, kv_),
    .kv_limit_i, .err_o,
    `MR_RAM_R_M_TO(row_, row_),
    .row_continues_i,
    `MR_ATTN_JD_M_ON(jd_, jd_), `MR_ATTN_G_M_ON(g_, g_)
  );

  // ---- front: takes a group, loads its rows, runs its QK pass; PM_LOAD ----
  localparam logic [2:0] A_IDLE = 3'd0, A_LOAD = 3'd1, A_START = 3'd2, A_RUN = 3'd3, A_HAND = 3'd4,
                         A_BEAT = 3'd5, A_WRITE = 3'd6;
  localparam logic [2:0] B_IDLE = 3'd0, B_MERGE = 3'd1, B_PV = 3'd2, B_RUN = 3'd3, B_OUT = 3'd4;

  logic [2:0] a_state_q, b_state_q;
  logic ld_start_q, ld_done, qk_start, pv_start, hand;
  logic a_par_q, a_zero_q, a_run_q, b_run_q;
  logic [CA-1:0] a_lane_q;
  logic [15:0] a_tok_q, a_pos_q, a_positions_q;
  logic [2:0] a_nr_q;
  logic [HA:0] a_hg_q;
  logic [WA:0] a_words_q, a_word0_q;
  logic [7:0] a_sc_beats_q;
  logic [4:0] a_sc_first_q;
  logic [N-1:0] qk_done, pv_done, pm_valid;
  logic pm_take, pm_last_word, pm_last_beat;
  logic [511:0] pm_beat_q;
  logic [15:0] pm_word_q, pm_left_q;
  logic b_busy, out_done;

  assign g_ready  = (a_state_q == A_IDLE);
  assign qk_start = (a_state_q == A_START) && b_state_q != B_MERGE && b_state_q != B_PV &&
                    b_state_q != B_RUN;
  assign hand     = (a_state_q == A_HAND) && (b_state_q == B_IDLE);
  assign pm_take  = (a_state_q == A_BEAT) && pm_valid[a_lane_q];
  assign pm_last_beat = (pm_left_q == 16'd1);
  assign pm_last_word = (pm_word_q[4:0] == 5'd31);
  assign b_busy   = (b_state_q != B_IDLE);
  assign finished = busy_q && !start_q && plan_idle && a_state_q == A_IDLE && !b_busy;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      a_state_q  <= A_IDLE;
      ld_start_q <= 1'b0;
      a_run_q    <= 1'b0;
      a_par_q    <= 1'b0;
    end else begin
      ld_start_q <= 1'b0;
      a_run_q    <= qk_start;
      unique case (a_state_q)
        A_IDLE:
          if (g_valid) begin
            ld_start_q <= !pm_cmd_q;
            a_state_q  <= !pm_cmd_q ? A_LOAD : g_zero ? A_WRITE : A_BEAT;
            a_par_q    <= !a_par_q;
          end
        A_LOAD: if (ld_done) a_state_q <= A_START;
        A_START: if (qk_start) a_state_q <= A_RUN;
        A_RUN: if (!a_run_q && &qk_done) a_state_q <= A_HAND;
        A_HAND: if (hand) a_state_q <= A_IDLE;
        A_BEAT: if (pm_take) a_state_q <= A_WRITE;
        default:
          if (pm_last_beat) a_state_q <= A_IDLE;
          else if (pm_last_word && !a_zero_q) a_state_q <= A_BEAT;
      endcase
    end
  end

  logic [N*512-1:0] pm_data;
  always_ff @(posedge clk_i) begin
    if (g_valid && g_ready) begin
      a_tok_q      <= g_tok;
      a_zero_q     <= g_zero;
      a_lane_q     <= g_lane;
      a_nr_q       <= g_nr;
      a_pos_q      <= g_pos;
      a_positions_q <= g_positions;
      a_hg_q       <= g_hg;
      a_words_q    <= g_words;
      a_word0_q    <= g_word0;
      a_sc_beats_q <= g_sc_beats;
      a_sc_first_q <= g_sc_first;
      pm_word_q    <= '0;
      pm_left_q    <= pm_words_q;
      pm_beat_q    <= '0;
    end
    if (pm_take) begin
      for (int c = 0; c < N; c++) if (a_lane_q == CA'(c)) pm_beat_q <= pm_data[512*c+:512];
    end
    if (a_state_q == A_WRITE) begin
      pm_beat_q <= pm_beat_q >> 16;
      pm_word_q <= pm_word_q + 16'd1;
      pm_left_q <= pm_left_q - 16'd1;
    end
  end

  assign pm_we_o    = (a_state_q == A_WRITE);
  assign pm_waddr_o = PA'(32'(a_tok_q) * PM_WORDS + 32'(pm_word_q));
  assign pm_wdata_o = pm_beat_q[15:0];

  // ---- load ----
  logic ld_valid, lp_valid, mq_we;
  logic [WA+2:0] ld_addr, lp_addr;
  logic [527:0] ld_data;
  logic [15:0] lp_data;
  logic [HA+1:0] mq_waddr;
  logic [7:0] mq_wdata;

  mr_attn_load #(
    .T(T), .QKV_WORDS(QKV_WORDS), .PM_WORDS(PM_WORDS), .W_MAX(W_MAX), .HEADS_MAX(HEADS_MAX)
  ) u_load (
    .clk_i, .rst_ni, .start_i(ld_start_q), .cfg_tok_i(a_tok_q), .cfg_nr_i(a_nr_q),
    .cfg_two_i(two_q), .cfg_hpw_i(hpw_q), .cfg_words_i(a_words_q), .cfg_word0_i(a_word0_q),
    .cfg_q_base_i(q_base_q), .cfg_par_i(a_par_q), .done_o(ld_done),
    `MR_RAM_R_M_TO(q_, q_), `MR_RAM_R_M_TO(pm_, pm_), `MR_WORD_M_ON(ld_, ld_),
    `MR_WORD_M_ON(lp_, lp_), `MR_RAM_W_M_ON(mq_, mq_)
  );

  // ---- back: merge of the maxima, PV pass, drain ----
  logic b_par_q;
  logic [15:0] b_tok_q;
  logic [2:0] b_nr_q;
  logic [HA:0] b_hg_q;
  logic [WA:0] b_words_q, b_word0_q;
  logic [N-1:0] b_lanes_q, lanes_d;

  for (genvar c = 0; c < N; c++) begin : gen_has
    assign lanes_d[c] = (a_positions_q > 16'(c));  // some of them is c mod N
  end

  // Merge: reads (row, head) of all lanes, one a cycle; a pipelined tree of maxima; writes all
  // lanes.
  logic m_act_q, m_rd_q, m_row_last, m_head_last, m_done;
  logic [1:0] m_row_q, mw_row_q;
  logic [HA-1:0] m_head_q, mw_head_q;
  logic [N*32-1:0] mx_rdata;
  logic mt_valid, mw_valid_q, mw_head_last, mw_row_last;
  logic [31:0] mt_key, mw_data_q;
  logic [HA+1:0] mw_addr_q;

  assign m_head_last  = ((HA + 1)'(m_head_q) + 1'b1 == b_hg_q);
  assign m_row_last   = (3'(m_row_q) + 3'd1 == b_nr_q);
  assign mw_head_last = ((HA + 1)'(mw_head_q) + 1'b1 == b_hg_q);
  assign mw_row_last  = (3'(mw_row_q) + 3'd1 == b_nr_q);
  assign m_done       = mt_valid && mw_head_last && mw_row_last;
  assign pv_start     = (b_state_q == B_PV);

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      b_state_q  <= B_IDLE;
      m_act_q    <= 1'b0;
      m_rd_q     <= 1'b0;
      mw_valid_q <= 1'b0;
      b_run_q    <= 1'b0;
    end else begin
      m_rd_q     <= m_act_q;
      mw_valid_q <= mt_valid;
      b_run_q    <= pv_start;
      if (hand) m_act_q <= 1'b1;
      else if (m_head_last && m_row_last) m_act_q <= 1'b0;
      unique case (b_state_q)
        B_IDLE: if (hand) b_state_q <= B_MERGE;
        B_MERGE: if (m_done) b_state_q <= B_PV;
        B_PV: b_state_q <= B_RUN;
        B_RUN: if (!b_run_q && &pv_done) b_state_q <= B_OUT;
        default: if (out_done) b_state_q <= B_IDLE;
      endcase
    end
  end

  always_ff @(posedge clk_i) begin
    if (hand) begin
      b_tok_q   <= a_tok_q;
      b_nr_q    <= a_nr_q;
      b_hg_q    <= a_hg_q;
      b_words_q <= a_words_q;
      b_word0_q <= a_word0_q;
      b_par_q   <= a_par_q;
      b_lanes_q <= lanes_d;
      m_row_q   <= '0;
      m_head_q  <= '0;
      mw_row_q  <= '0;
      mw_head_q <= '0;
    end
    if (m_act_q) begin
      m_head_q <= m_head_last ? '0 : m_head_q + 1'b1;
      if (m_head_last) m_row_q <= m_row_q + 2'd1;
    end
    if (mt_valid) begin
      mw_addr_q <= {mw_row_q, mw_head_q};
      mw_data_q <= mt_key[31] ? {1'b0, mt_key[30:0]} : ~mt_key;  // key back to fp32
      mw_head_q <= mw_head_last ? '0 : mw_head_q + 1'b1;
      if (mw_head_last) mw_row_q <= mw_row_q + 2'd1;
    end
  end

  mr_attn_tree #(.N(N), .LANES(1), .W(32), .MAX(1)) u_max (
    .clk_i, .rst_ni, .valid_i(m_rd_q), .mask_i(b_lanes_q), .in_i(mx_rdata), .valid_o(mt_valid),
    .y_o(mt_key)
  );

  // ---- drain ----
  logic out_start, unused_out_busy, out_nan, out_ovf;
  logic sum_ren, dr_step, dr_load;
  logic [HA+1:0] sum_raddr;
  logic [WA+1:0] dr_addr;
  logic [N*32-1:0] sum_rdata;
  logic [N*V*48-1:0] dr_data;

  assign out_start = (b_state_q == B_RUN) && !b_run_q && &pv_done;

  mr_attn_out #(
    .N(N), .V(V), .W_MAX(W_MAX), .HEADS_MAX(HEADS_MAX), .T(T), .D_MAX(D_MAX), .TRAIN(TRAIN)
  ) u_out (
    .clk_i, .rst_ni, .start_i(out_start), .cfg_lanes_i(b_lanes_q), .cfg_tok_i(b_tok_q),
    .cfg_nr_i(b_nr_q), .cfg_two_i(two_q), .cfg_hpw_i(hpw_q), .cfg_hg_i(b_hg_q),
    .cfg_words_i(b_words_q), .cfg_word0_i(b_word0_q), .cfg_par_i(b_par_q),
    .cfg_dst_base_i(dst_base_q), .cfg_dst_slot_i(dst_slot_q), .cfg_keep_i(keep),
    .busy_o(unused_out_busy), .done_o(out_done),
    `MR_WORD_S_ON(lp_, lp_), `MR_RAM_R_M_ON(sum_, sum_),
    .dr_step_o(dr_step), .dr_load_o(dr_load), .dr_addr_o(dr_addr), .dr_i(dr_data),
    `MR_BLK_M_TO(b_, b_), `MR_RAM_W_M_TO(keep_, keep_),
    .ovf_o(out_ovf), .nan_o(out_nan)
  );

  // ---- lanes ----
  logic [N-1:0] lane_step, lane_starve, lane_ovf;

  for (genvar c = 0; c < N; c++) begin : gen_lane
    mr_attn_lane #(
      .N(N), .CH(c), .V(V), .SCORES(SCORES), .W_MAX(W_MAX), .HEADS_MAX(HEADS_MAX), .HP_MAX(HP_MAX),
      .KV_DEPTH(KV_DEPTH), .FOLD(FOLD)
    ) u_lane (
      .clk_i, .rst_ni,
      `MR_KV_M_TO_AT(kv_, kv_, c), `MR_ATTN_JD_S_ON_AT(jd_, jd_, c), `MR_WORD_S_ON(ld_, ld_),
      `MR_WORD_S_ON(lp_, lp_), `MR_RAM_W_S_ON(mq_, mq_),
      .qk_start_i(qk_start), .pv_start_i(pv_start), .cfg_nr_i(a_nr_q), .cfg_two_i(two_q),
      .cfg_pos_i(a_pos_q), .cfg_positions_i(a_positions_q), .cfg_hg_i(a_hg_q), .cfg_hpw_i(hpw_q),
      .cfg_words_i(a_words_q), .cfg_sc_beats_i(a_sc_beats_q), .cfg_sc_first_i(a_sc_first_q),
      .cfg_par_i(a_par_q), .cfg_scale_i(scale_q), .qk_done_o(qk_done[c]), .pv_done_o(pv_done[c]),
      .mx_ren_i(m_act_q), .mx_raddr_i({m_row_q, m_head_q}), .mx_rdata_o(mx_rdata[32*c+:32]),
      .mxw_valid_i(mw_valid_q), .mxw_addr_i(mw_addr_q), .mxw_data_i(mw_data_q), .dr_step_i(dr_step),
      .dr_load_i(dr_load), .dr_addr_i(dr_addr), .dr_o(dr_data[V*48*c+:V*48]), .sum_ren_i(sum_ren),
      .sum_raddr_i(sum_raddr), .sum_rdata_o(sum_rdata[32*c+:32]), .pm_valid_o(pm_valid[c]),
      .pm_take_i(pm_take && a_lane_q == CA'(c)), .pm_data_o(pm_data[512*c+:512]),
      .step_o(lane_step[c]), .starve_o(lane_starve[c]), .ovf_o(lane_ovf[c])
    );
  end

  // ---- counters and flags ----
  logic waits;
  assign waits = (lane_starve != '0 && lane_step == '0) || (a_state_q == A_BEAT && !pm_take);

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      cnt_busy_o    <= 1'b0;
      cnt_wait_kv_o <= 1'b0;
      cnt_idle_o    <= 1'b1;
      ovf_o         <= 1'b0;
      nan_o         <= 1'b0;
    end else begin
      cnt_busy_o    <= busy_q && !waits;
      cnt_wait_kv_o <= busy_q && waits;
      cnt_idle_o    <= !busy_q;
      ovf_o         <= out_ovf || lane_ovf != '0;
      nan_o         <= out_nan;
    end
  end

  `MR_ASSERT(a_state, a_state_q <= A_WRITE)
  `MR_ASSERT(b_state, b_state_q <= B_OUT)
  `MR_ASSERT(counters, $onehot({cnt_busy_o, cnt_wait_kv_o, cnt_idle_o}))

endmodule
