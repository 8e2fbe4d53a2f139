// SPDX-License-Identifier: Apache-2.0
// Attention of one channel: KV FIFO, read jobs, the step engine that walks the records of the
// positions p mod N == CH twice (QK pass: scores and their maxima; PV pass: probabilities times
// values), and the local memories: q words, prefix maxima, scores, maxima, accumulators.
//
// Parameters
//   N, CH, V    channels (power of two), this channel, drain lanes
//   SCORES      score buffer entries over all channels (SCORES/N here)
//   W_MAX       largest attention width (multiple of 64); HEADS_MAX heads; HP_MAX largest HP
//   KV_DEPTH    beats of the KV FIFO
//   FOLD        1; with more a step of data takes 64 / V cycles (mr_attn_mac)
//
// Timing
//   kv_valid_i/kv_data_i: never refused; kv_credit_o pulses when a beat has left the FIFO.
//   jd_*: see mr_attn_jobs; beats must be consumed by passes in the order of the jobs.
//   ld_*: writes into the q buffer at {row, half, word}, not during a QK pass; lp_*: prefix maxima
//     at {parity, row, word}; mq_*: maximum q code of {row, head}.
//   qk_start_i (pulse) latches cfg_* and runs the QK pass; qk_done_o is low from the next cycle
//     until the last score and maximum are stored. Then mx_* belongs to the controller: a RAM port
//     of the channel's maxima as ordered keys (0: no position); mxw_* writes the merged maximum as
//     fp32. pv_start_i runs the PV pass with the same configuration; pv_done_o likewise. qk_start_i
//     may come once pv_done_o is high.
//   A pass takes positions * (scale beats + words * rows [* 2 in a two-pass QK]) steps, one a cycle
//     unless a beat (or the first p) is missing. With FOLD one of data takes 64 / V cycles.
//   dr_*, sum_*: see mr_attn_mac, mr_attn_prob.
//   pm_take_i: the beat at the FIFO's head (pm_valid_o) is taken by the controller.
`include "mr_assert.svh"
`include "mr_bundles.svh"
module mr_attn_lane #(
  parameter int N = 1,
  parameter int CH = 0,
  parameter int V = 4,
  parameter int SCORES = 2048,
  parameter int W_MAX = 4096,
  parameter int HEADS_MAX = 16,
  parameter int HP_MAX = 256,
  parameter int KV_DEPTH = 128,
  parameter int FOLD = 1,
  localparam int WW = W_MAX / 64,
  localparam int WA = (WW > 1) ? $clog2(WW) : 1,
  localparam int HA = (HEADS_MAX > 1) ? $clog2(HEADS_MAX) : 1
) (
  input  logic            clk_i,
  input  logic            rst_ni,
  // KV beats and jobs
  `MR_KV_M(kv_, 1),
  `MR_ATTN_JD_S(jd_, 1),
  // loads
  `MR_WORD_S(ld_, WA+3, 528),
  `MR_WORD_S(lp_, WA+3, 16),
  `MR_RAM_W_S(mq_, HA+2, 8),
  // passes
  input  logic            qk_start_i,
  input  logic            pv_start_i,
  input  logic [2:0]      cfg_nr_i,
  input  logic            cfg_two_i,
  input  logic [15:0]     cfg_pos_i,     // row r sees positions up to pos + r,
  input  logic [15:0]     cfg_positions_i,  // of so many
  input  logic [HA:0]     cfg_hg_i,
  input  logic [7:0]      cfg_hpw_i,
  input  logic [WA:0]     cfg_words_i,   // hg * hpw
  input  logic [7:0]      cfg_sc_beats_i,
  input  logic [4:0]      cfg_sc_first_i,  // first word's place in the first scale beat
  input  logic            cfg_par_i,
  input  logic [31:0]     cfg_scale_i,   // constant over the command
  output logic            qk_done_o,
  output logic            pv_done_o,
  // maxima
  `MR_RAM_R_S(mx_, HA+2, 32),
  `MR_WORD_S(mxw_, HA+2, 32),
  // drain
  `MR_ATTN_DR_S(dr_, WA+2),
  output logic [V*48-1:0] dr_o,
  `MR_RAM_R_S(sum_, HA+2, 32),
  // prefix maxima of PM_LOAD
  output logic            pm_valid_o,
  input  logic            pm_take_i,
  output logic [511:0]    pm_data_o,
  // counters
  output logic            step_o,        // a step in this cycle, or turns of one
  output logic            starve_o,      // wants a beat and has none
  output logic            ovf_o
);

  localparam int LN = $clog2(N);
  localparam int SA = $clog2(SCORES / N);
  localparam int SB = (W_MAX + 2047) / 2048;
  localparam int IA = 5 + ((SB > 1) ? $clog2(SB) : 0);  // code pair in the scale register
  localparam int HB = HP_MAX / 64;
  localparam int BA = (HB > 1) ? $clog2(HB) : 1;

  mr_attn_jobs #(.N(N), .CH(CH)) u_jobs (
    .clk_i, .rst_ni,
    `MR_ATTN_JD_S_TO(jd_, jd_),
    .job_valid_o(kv_job_valid_o), .job_ready_i(kv_job_ready_i), .job_off_o(kv_job_off_o),
    .job_beats_o(kv_job_beats_o)
  );

  // ---- KV FIFO ----
  logic f_valid, f_pop, unused_ready;
  logic [511:0] f_data;
  logic [$clog2(KV_DEPTH+1)-1:0] unused_count;

  mr_fifo #(.W(512), .DEPTH(KV_DEPTH)) u_kv (
    .clk_i, .rst_ni, .clear_i(1'b0),
    .in_valid_i(kv_valid_i), .in_ready_o(unused_ready),  // the reader holds a credit for every beat
    .in_data_i(kv_data_i),
    .out_valid_o(f_valid), .out_ready_i(f_pop), .out_data_o(f_data), .count_o(unused_count)
  );

  always_ff @(posedge clk_i) begin
    if (!rst_ni) kv_credit_o <= 1'b0;
    else kv_credit_o <= f_pop && f_valid;
  end
  assign pm_valid_o = f_valid;
  assign pm_data_o  = f_data;

  // ---- configuration of the pass ----
  logic [2:0] nr_q;
  logic two_q, par_q;
  logic [15:0] pos_q, cnt_q, cnt_d;
  logic [HA:0] hg_q;
  logic [7:0] hpw_q, sc_beats_q;
  logic [WA:0] words_q;
  logic [4:0] sc_first_q;

  // those with p mod N == CH
  assign cnt_d = (cfg_positions_i + 16'(N - 1 - CH)) >> LN;

  always_ff @(posedge clk_i) begin
    if (qk_start_i) begin
      nr_q       <= cfg_nr_i;
      two_q      <= cfg_two_i;
      par_q      <= cfg_par_i;
      pos_q      <= cfg_pos_i;
      cnt_q      <= cnt_d;
      hg_q       <= cfg_hg_i;
      hpw_q      <= cfg_hpw_i;
      words_q    <= cfg_words_i;
      sc_beats_q <= cfg_sc_beats_i;
      sc_first_q <= cfg_sc_first_i;
    end
  end

  // ---- step engine ----
  // One step: a scale beat into the scale register, or a data beat for one row (and half).
  logic act_q, mode_q, scale_q, half_q;  // mode: 0 QK, 1 PV
  logic first_q;                         // first position
  logic [1:0] row_q;
  logic [15:0] left_q;
  logic [7:0] sj_q, hb_q;
  logic [WA:0] word_q;
  logic step, folded, beat_new, need_p, p_valid, p_pop;
  logic qk_pre, qk_st;
  logic half_last, row_last, hb_last, word_last, beat_last;

  assign beat_new  = scale_q || (row_q == 2'd0 && !half_q);
  assign need_p    = mode_q && !scale_q && hb_q == 8'd0;
  assign step      = act_q && (!beat_new || f_valid) && (!need_p || p_valid) && !folded;
  assign p_pop     = step && need_p;
  assign f_pop     = (step && beat_new) || pm_take_i;
  assign half_last = mode_q || half_q || !two_q;
  assign row_last  = (3'(row_q) + 3'd1 == nr_q);
  assign hb_last   = (hb_q + 8'd1 == hpw_q);
  assign word_last = (word_q + 1'b1 == words_q);
  assign beat_last = half_last && row_last;
  assign step_o    = step || folded;
  assign starve_o  = act_q && beat_new && !f_valid && !folded;

  // Steps of data are TURNS cycles apart; mr_attn_qk sees one when its products are nearly done.
  localparam int TURNS = (FOLD > 1) ? 64 / V : 1;
  if (FOLD > 1) begin : gen_fold
    logic [$clog2(TURNS)-1:0] left_turns_q;
    logic [TURNS-2:0] qk_q;  // steps of QK, one bit a cycle since their pre_valid
    assign folded = left_turns_q != '0;
    assign qk_pre = qk_q[TURNS-2];
    always_ff @(posedge clk_i) begin
      if (!rst_ni) begin
        left_turns_q <= '0;
        qk_q         <= '0;
        qk_st        <= 1'b0;
      end else begin
        if (step && !scale_q) left_turns_q <= '1;
        else if (folded) left_turns_q <= left_turns_q - 1'b1;
        qk_q  <= (TURNS - 1)'({qk_q, s1_v_q && !s1_mode_q});
        qk_st <= qk_pre;
      end
    end
  end else begin : gen_no_fold
    assign folded = 1'b0;
    assign qk_pre = s1_v_q && !s1_mode_q;
    assign qk_st  = s2_qk_q;
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) act_q <= 1'b0;
    else if (qk_start_i) act_q <= (cnt_d != '0);
    else if (pv_start_i) act_q <= (cnt_q != '0);
    else if (step && !scale_q && beat_last && word_last && left_q == 16'd1) act_q <= 1'b0;
  end

  always_ff @(posedge clk_i) begin
    if (qk_start_i || pv_start_i) begin
      mode_q  <= pv_start_i;
      left_q  <= qk_start_i ? cnt_d : cnt_q;
      first_q <= 1'b1;
      scale_q <= 1'b1;
      sj_q    <= '0;
      row_q   <= '0;
      half_q  <= 1'b0;
      word_q  <= '0;
      hb_q    <= '0;
    end else if (step) begin
      if (scale_q) begin
        sj_q <= sj_q + 8'd1;
        if (sj_q + 8'd1 == sc_beats_q) scale_q <= 1'b0;
      end else begin
        half_q <= !half_last;
        if (half_last) row_q <= row_last ? 2'd0 : row_q + 2'd1;
        if (beat_last) begin
          hb_q   <= hb_last ? 8'd0 : hb_q + 8'd1;
          word_q <= word_last ? '0 : word_q + 1'b1;
          if (word_last) begin
            left_q  <= left_q - 16'd1;
            first_q <= 1'b0;
            scale_q <= 1'b1;
            sj_q    <= '0;
          end
        end
      end
    end
  end

  // ---- stages 1 and 2: beat, codes, and the local memories ----
  logic s1_v_q, s1_new_q, s1_hfirst_q, s1_hlast_q, s1_half_q, s1_mode_q, s1_first_q, s1_needp_q;
  logic s2_qk_q, s2_pv_q, s2_new_q, s2_hfirst_q, s2_hlast_q, s2_half_q, s2_first_q;
  logic [1:0] s1_row_q, s2_row_q;
  logic [WA-1:0] s1_word_q, s2_word_q;
  logic [BA-1:0] s1_hb_q, s2_hb_q;
  logic [511:0] s1_beat_q;
  logic [15:0] s1_code_q, s2_code_q, s1_p_q, s2_p_q, pm_rdata;
  logic [527:0] q_rdata;
  logic [512*SB-1:0] sc_q;
  logic [IA-1:0] sc_idx;
  logic [15:0] p_head;
  logic [15:0] hold_q [0:3];  // probabilities of the head, by row

  assign sc_idx = IA'(sc_first_q) + IA'(word_q);

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      s1_v_q  <= 1'b0;
      s2_qk_q <= 1'b0;
      s2_pv_q <= 1'b0;
    end else begin
      s1_v_q  <= step && !scale_q;
      s2_qk_q <= s1_v_q && !s1_mode_q;
      s2_pv_q <= s1_v_q && s1_mode_q;
    end
  end

  always_ff @(posedge clk_i) begin
    if (step) begin
      if (scale_q) begin
        for (int j = 0; j < SB; j++) begin
          if (sj_q == 8'(j)) sc_q[512*j+:512] <= f_data;
        end
      end else begin
        if (beat_new) begin
          s1_beat_q <= f_data;
          s1_code_q <= sc_q[{sc_idx, 4'd0}+:16];
        end
        s1_new_q    <= beat_new;
        s1_mode_q   <= mode_q;
        s1_hfirst_q <= (hb_q == 8'd0);
        s1_hlast_q  <= hb_last && beat_last;
        s1_half_q   <= half_q;
        s1_row_q    <= row_q;
        s1_word_q   <= word_q[WA-1:0];
        s1_hb_q     <= BA'(hb_q);
        s1_first_q  <= first_q;
        s1_needp_q  <= need_p;
        if (need_p) s1_p_q <= p_head;
      end
    end
    if (s1_v_q) begin
      s2_code_q <= s1_code_q;
      s2_row_q   <= s1_row_q;
      s2_first_q <= s1_first_q;
      s2_word_q  <= s1_word_q;
      if (s1_mode_q) begin
        s2_p_q  <= s1_needp_q ? s1_p_q : hold_q[s1_row_q];
        if (s1_needp_q) hold_q[s1_row_q] <= s1_p_q;
      end else begin
        s2_new_q    <= s1_new_q;
        s2_hfirst_q <= s1_hfirst_q;
        s2_hlast_q  <= s1_hlast_q;
        s2_half_q   <= s1_half_q;
        s2_hb_q     <= s1_hb_q;
      end
    end
  end

  // Loaded before the QK pass, which reads it.
  mr_ram_1r1w #(.W(528), .DEPTH(8 << WA), .APART(1)) u_q (
    .clk_i, .wen_i(ld_valid_i), .waddr_i(ld_addr_i), .wdata_i(ld_data_i),
    .ren_i(step && !scale_q && !mode_q), .raddr_i({row_q, half_q, word_q[WA-1:0]}),
    .rdata_o(q_rdata)
  );

  mr_ram_1r1w #(.W(16), .DEPTH(8 << WA)) u_pm (
    .clk_i, .wen_i(lp_valid_i), .waddr_i(lp_addr_i), .wdata_i(lp_data_i),
    .ren_i(step && !scale_q && mode_q), .raddr_i({par_q, row_q, word_q[WA-1:0]}), .rdata_o(pm_rdata)
  );

  // ---- QK: scores into the score buffer, maxima per (row, head) ----
  logic t_valid, qk_ovf;
  logic [20:0] d0, d1;
  logic [31:0] t;

  mr_attn_qk #(.HEADS_MAX(HEADS_MAX), .HP_MAX(HP_MAX)) u_qk (
    .clk_i, .rst_ni, .start_i(qk_start_i), .cfg_nr_i(nr_q), .cfg_two_i(two_q), .cfg_hg_i(hg_q),
    .cfg_hpw_i(hpw_q), .cfg_scale_i,
    `MR_RAM_W_S_TO(mq_, mq_),
    .pre_valid_i(qk_pre), .qcode_i({q_rdata[527:520], q_rdata[263:256]}), .st_valid_i(qk_st),
    .st_new_i(s2_new_q), .st_hfirst_i(s2_hfirst_q), .st_hlast_i(s2_hlast_q), .st_beat_i(s2_hb_q),
    .st_row_i(s2_row_q), .st_half_i(s2_half_q), .st_kcode_i(s2_code_q), .d0_i(d0), .d1_i(d1),
    .t_valid_o(t_valid), .t_o(t), .ovf_o(qk_ovf)
  );
  assign ovf_o = qk_ovf;

  logic t_row_last, t_head_last, t_masked, t_all;
  logic [1:0] t_row_q;
  logic [HA-1:0] t_head_q;
  logic [15:0] t_pos_q, t_left_q;
  logic [SA-1:0] t_addr_q;
  logic k_valid_q, k_first_q, qk_busy_q, k_last_q;
  logic [31:0] k_key_q, key_new, mx_rdata;
  logic [HA+1:0] k_addr_q;

  assign t_row_last  = (3'(t_row_q) + 3'd1 == nr_q);
  assign t_head_last = ((HA + 1)'(t_head_q) + 1'b1 == hg_q);
  assign t_masked    = (t_pos_q > pos_q + 16'(t_row_q));
  assign t_all       = t_row_last && t_head_last && t_left_q == 16'd1;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      k_valid_q <= 1'b0;
      qk_busy_q <= 1'b0;
    end else begin
      k_valid_q <= t_valid;
      if (qk_start_i) qk_busy_q <= (cnt_d != '0);
      else if (k_valid_q && k_last_q) qk_busy_q <= 1'b0;
    end
  end
  assign qk_done_o = !qk_busy_q;

  always_ff @(posedge clk_i) begin
    if (qk_start_i) begin
      t_row_q  <= '0;
      t_head_q <= '0;
      t_pos_q  <= 16'(CH);
      t_left_q <= cnt_d;
      t_addr_q <= '0;
    end else if (t_valid) begin
      t_addr_q <= t_addr_q + 1'b1;
      t_row_q  <= t_row_last ? 2'd0 : t_row_q + 2'd1;
      if (t_row_last) begin
        t_head_q <= t_head_last ? '0 : t_head_q + 1'b1;
        if (t_head_last) begin
          t_pos_q  <= t_pos_q + 16'(N);
          t_left_q <= t_left_q - 16'd1;
        end
      end
    end
    if (t_valid) begin
      // Ordered as unsigned: -0 below +0, NaN (canonical, positive) above all; 0 is no value.
      k_key_q   <= t_masked ? 32'd0 : t[31] ? ~t : {1'b1, t[30:0]};
      k_addr_q  <= {t_row_q, t_head_q};
      k_first_q <= (t_pos_q == 16'(CH));
      k_last_q  <= t_all;
    end
  end

  // Scores of one (row, head) are at least two cycles apart (a scale beat lies between), so the
  // memory always has the previous one.
  assign key_new = (k_first_q || k_key_q > mx_rdata) ? k_key_q : mx_rdata;

  logic sc_ren, pmx_ren;
  logic [SA-1:0] sc_raddr;
  logic [31:0] sc_rdata;
  logic [HA+1:0] pmx_raddr;

  // The QK pass writes, the PV pass reads; neither runs beside the other.
  mr_ram_1r1w #(.W(32), .DEPTH(SCORES / N), .APART(1)) u_score (
    .clk_i, .wen_i(t_valid), .waddr_i(t_addr_q), .wdata_i(t),
    .ren_i(sc_ren), .raddr_i(sc_raddr), .rdata_o(sc_rdata)
  );

  // The running keys in the QK pass, then the merged fp32 maxima.
  mr_ram_1r1w #(.W(32), .DEPTH(4 << HA)) u_max (
    .clk_i, .wen_i(k_valid_q || mxw_valid_i), .waddr_i(k_valid_q ? k_addr_q : mxw_addr_i),
    .wdata_i(k_valid_q ? key_new : mxw_data_i),
    .ren_i(t_valid || pmx_ren || mx_ren_i),
    .raddr_i(t_valid ? {t_row_q, t_head_q} : pmx_ren ? pmx_raddr : mx_raddr_i), .rdata_o(mx_rdata)
  );
  assign mx_rdata_o = mx_rdata;

  // ---- PV ----
  logic pv_busy;

  mr_attn_prob #(.N(N), .CH(CH), .SCORES(SCORES), .HEADS_MAX(HEADS_MAX)) u_prob (
    .clk_i, .rst_ni, .start_i(pv_start_i && cnt_q != '0), .cfg_cnt_i(cnt_q), .cfg_nr_i(nr_q),
    .cfg_hg_i(hg_q), .cfg_pos_i(pos_q),
    `MR_RAM_R_M_ON(sc_, sc_),
    .mx_ren_o(pmx_ren), .mx_raddr_o(pmx_raddr), .mx_rdata_i(mx_rdata), .p_valid_o(p_valid),
    .p_pop_i(p_pop), .p_o(p_head),
    `MR_RAM_R_S_TO(sum_, sum_)
  );

  // Multipliers of both passes, and PV's sums.
  mr_attn_mac #(.V(V), .AA(WA + 2), .FOLD(TURNS)) u_mac (
    .clk_i, .rst_ni, .pre_valid_i(s1_v_q), .kv_i(s1_beat_q), .q_i(q_rdata), .vcode_i(s1_code_q),
    .pm_i(pm_rdata), .st_qk_i(s2_qk_q), .st_pv_i(s2_pv_q), .st_first_i(s2_first_q),
    .st_addr_i({s2_row_q, s2_word_q}), .st_p_i(s2_p_q), .d0_o(d0), .d1_o(d1), .busy_o(pv_busy),
    .dr_step_i, .dr_load_i, .dr_addr_i, .dr_o
  );

  assign pv_done_o = !(act_q && mode_q) && !s1_v_q && !pv_busy;

  `MR_ASSERT(start, !(qk_start_i || pv_start_i) || (qk_done_o && pv_done_o))
  `MR_ASSERT(load, !ld_valid_i || qk_done_o)
  `MR_ASSERT(pm, !pm_take_i || (f_valid && !act_q))
  `MR_ASSERT_ONEHOT0(max_read, {t_valid, pmx_ren, mx_ren_i})
  `MR_ASSERT_ONEHOT0(max_write, {k_valid_q, mxw_valid_i})

endmodule
