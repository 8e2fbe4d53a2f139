// SPDX-License-Identifier: Apache-2.0
// Drain of a group: sums the lanes' accumulators, V values at a time, converts them with the
// prefix maximum's exponent, multiplies by the reciprocal of the probability sum, quantises, and
// writes the blocks to activation memory.
//
// Parameters
//   N, V        channels, lanes (V = 4N divides 64); W_MAX, HEADS_MAX as in mr_attn
//   TRAIN       1: cfg_keep_i is looked at; T, D_MAX as in mr_attn
//
// Timing: start_i (pulse) with cfg_* (taken over at once); busy_o high from the next cycle until
// the last block was accepted on b_, done_o pulses in the last cycle of busy. rows * heads + 20 +
// log2 N cycles to the first beat, then rows * words * 64/V beats, one a cycle (two-pass: half the
// rate), as long as b_ready_i is high. b_*: valid/ready, one block of 32.
//   lp_*: prefix maxima as in mr_attn_lane; dr_*, sum_*: to the lanes (mr_attn_lane), packed by
//     channel.
//   keep_*: with cfg_keep_i, the values before the quantiser, a pulse for each beat; keep_waddr_o
//     is token * D_MAX/V + word. The last one comes before done_o.
`include "mr_assert.svh"
`include "mr_bundles.svh"
module mr_attn_out #(
  parameter int N = 1,
  parameter int V = 4,
  parameter int W_MAX = 4096,
  parameter int HEADS_MAX = 16,
  parameter int T = 8,
  parameter int D_MAX = 4096,
  parameter int TRAIN = 0,
  localparam int RESW = $clog2(T * (D_MAX / V)),
  localparam int WW = W_MAX / 64,
  localparam int WA = (WW > 1) ? $clog2(WW) : 1,
  localparam int HA = (HEADS_MAX > 1) ? $clog2(HEADS_MAX) : 1
) (
  input  logic              clk_i,
  input  logic              rst_ni,
  input  logic              start_i,
  input  logic [N-1:0]      cfg_lanes_i,    // channels with positions
  input  logic [15:0]       cfg_tok_i,
  input  logic [2:0]        cfg_nr_i,
  input  logic              cfg_two_i,
  input  logic [7:0]        cfg_hpw_i,
  input  logic [HA:0]       cfg_hg_i,
  input  logic [WA:0]       cfg_words_i,
  input  logic [WA:0]       cfg_word0_i,
  input  logic              cfg_par_i,
  input  logic [15:0]       cfg_dst_base_i,
  input  logic [1:0]        cfg_dst_slot_i,
  // With TRAIN.
  // verilator lint_off UNUSED
  input  logic              cfg_keep_i,
  // verilator lint_on UNUSED
  output logic              busy_o,
  output logic              done_o,
  `MR_WORD_S(lp_, WA+3, 16),
  `MR_RAM_R_M(sum_, HA+2, N*32),
  `MR_ATTN_DR_M(dr_, WA+2),
  input  logic [N*V*48-1:0] dr_i,
  `MR_BLK_M(b_),
  `MR_RAM_W_M(keep_, RESW, V*32),
  `MR_FLAGS_M()
);

  localparam int LEVELS = $clog2(N);
  localparam int SUBS = 64 / V;                        // beats of a word
  localparam int UA = (SUBS > 1) ? $clog2(SUBS) : 1;
  localparam int NB = (V > 32) ? V / 32 : 1;           // blocks of a beat
  localparam int DEPTH = 32;                           // more than the latency from step to FIFO

  // ---- configuration ----
  logic [N-1:0] lanes_q;
  logic [15:0] tok_q, dst_base_q;
  logic [2:0] nr_q;
  logic two_q, par_q;
  logic [7:0] hpw_q;
  logic [HA:0] hg_q;
  logic [WA:0] words_q, word0_q;
  logic [1:0] region_q;
  logic [15:0] left_q;  // blocks until done

  always_ff @(posedge clk_i) begin
    if (start_i) begin
      lanes_q    <= cfg_lanes_i;
      tok_q      <= cfg_tok_i;
      nr_q       <= cfg_nr_i;
      two_q      <= cfg_two_i;
      hpw_q      <= cfg_hpw_i;
      hg_q       <= cfg_hg_i;
      words_q    <= cfg_words_i;
      word0_q    <= cfg_word0_i;
      par_q      <= cfg_par_i;
      dst_base_q <= cfg_dst_base_i;
      region_q   <= cfg_dst_slot_i;
      left_q     <= (16'(cfg_nr_i) * 16'(cfg_words_i)) << (cfg_two_i ? 2 : 1);
    end else if (b_valid_o && b_ready_i) begin
      left_q <= left_q - 16'd1;
    end
  end

  logic busy_q;
  assign busy_o = busy_q;
  assign done_o = busy_q && b_valid_o && b_ready_i && left_q == 16'd1;
  always_ff @(posedge clk_i) begin
    if (!rst_ni) busy_q <= 1'b0;
    else if (start_i) busy_q <= 1'b1;
    else if (done_o) busy_q <= 1'b0;
  end

  // ---- sums of p: one (row, head) a cycle through the tree, to fp32, reciprocal ----
  logic s_act_q, s_head_last, s_row_last, s_rd_q;
  logic [1:0] s_row_q;
  logic [HA-1:0] s_head_q;

  assign s_head_last = ((HA + 1)'(s_head_q) + 1'b1 == hg_q);
  assign s_row_last  = (3'(s_row_q) + 3'd1 == nr_q);
  assign sum_ren_o   = s_act_q;
  assign sum_raddr_o = {s_row_q, s_head_q};

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      s_act_q <= 1'b0;
      s_rd_q  <= 1'b0;
    end else begin
      if (start_i) s_act_q <= 1'b1;
      else if (s_head_last && s_row_last) s_act_q <= 1'b0;
      s_rd_q <= s_act_q;
    end
  end

  always_ff @(posedge clk_i) begin
    if (start_i) begin
      s_row_q  <= '0;
      s_head_q <= '0;
    end else if (s_act_q) begin
      s_head_q <= s_head_last ? '0 : s_head_q + 1'b1;
      if (s_head_last) s_row_q <= s_row_q + 2'd1;
    end
  end

  logic [31:0] s_sum, s_f, s_r;
  logic s_sum_v, s_f_v, s_r_v, unused_ovf0;

  mr_attn_tree #(.N(N), .LANES(1), .W(32)) u_sum (
    .clk_i, .rst_ni, .valid_i(s_rd_q), .mask_i(lanes_q), .in_i(sum_rdata_i), .valid_o(s_sum_v),
    .y_o(s_sum)
  );

  mr_vacc2f #(.LANES(1)) u_sum2f (
    .clk_i, .rst_ni, .valid_i(s_sum_v), .acc_i({16'd0, s_sum}), .exp_i(11'd0), .valid_o(s_f_v),
    .y_o(s_f), .ovf_o(unused_ovf0)
  );

  mr_recip u_recip (.clk_i, .rst_ni, .valid_i(s_f_v), .v_i(s_f), .valid_o(s_r_v), .y_o(s_r));

  // Written in the order in which they are read, faster than they are read.
  logic w_head_last, have_q;
  logic [1:0] w_row_q;
  logic [HA-1:0] w_head_q;
  logic [31:0] rc_rdata;
  assign w_head_last = ((HA + 1)'(w_head_q) + 1'b1 == hg_q);

  always_ff @(posedge clk_i) begin
    if (!rst_ni || start_i) have_q <= 1'b0;
    else if (s_r_v) have_q <= 1'b1;
  end
  always_ff @(posedge clk_i) begin
    if (start_i) begin
      w_row_q  <= '0;
      w_head_q <= '0;
    end else if (s_r_v) begin
      w_head_q <= w_head_last ? '0 : w_head_q + 1'b1;
      if (w_head_last) w_row_q <= w_row_q + 2'd1;
    end
  end

  // ---- steps: (row, word, sub) ----
  logic act_q, step, sub_last, hb_last, word_last, row_last, q_valid, q_ready;
  logic [5:0] credit_q;
  logic [1:0] row_q;
  logic [WA:0] word_q;
  logic [7:0] hb_q;
  logic [HA-1:0] head_q;
  logic [UA-1:0] sub_q;

  assign step      = act_q && have_q && credit_q != 6'd0;
  assign sub_last  = (SUBS == 1) || (sub_q == UA'(SUBS - 1));
  assign hb_last   = (hb_q + 8'd1 == hpw_q);
  assign word_last = (word_q + 1'b1 == words_q);
  assign row_last  = (3'(row_q) + 3'd1 == nr_q);
  assign dr_step_o = step;
  assign dr_load_o = (sub_q == '0);
  assign dr_addr_o = {row_q, word_q[WA-1:0]};

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      act_q    <= 1'b0;
      credit_q <= 6'(DEPTH);
    end else begin
      if (start_i) act_q <= 1'b1;
      else if (step && sub_last && word_last && row_last) act_q <= 1'b0;
      if (step && !(q_valid && q_ready)) credit_q <= credit_q - 6'd1;
      if (!step && q_valid && q_ready) credit_q <= credit_q + 6'd1;
    end
  end
  `MR_ASSERT_COUNT(credit, credit_q, q_valid && q_ready, step, DEPTH)

  always_ff @(posedge clk_i) begin
    if (start_i) begin
      row_q  <= '0;
      word_q <= '0;
      hb_q   <= '0;
      head_q <= '0;
      sub_q  <= '0;
    end else if (step) begin
      sub_q <= sub_last ? '0 : sub_q + 1'b1;
      if (sub_last) begin
        word_q <= word_last ? '0 : word_q + 1'b1;
        hb_q   <= hb_last ? 8'd0 : hb_q + 8'd1;
        if (word_last) head_q <= '0;
        else if (hb_last) head_q <= head_q + 1'b1;
        if (word_last) row_q <= row_q + 2'd1;
      end
    end
  end

  logic [15:0] pm_rdata;
  mr_ram_1r1w #(.W(16), .DEPTH(8 << WA)) u_pm (
    .clk_i, .wen_i(lp_valid_i), .waddr_i(lp_addr_i), .wdata_i(lp_data_i),
    .ren_i(step), .raddr_i({par_q, row_q, word_q[WA-1:0]}), .rdata_o(pm_rdata)
  );

  mr_ram_1r1w #(.W(32), .DEPTH(4 << HA)) u_rc (
    .clk_i, .wen_i(s_r_v), .waddr_i({w_row_q, w_head_q}),
    .wdata_i(s_r),  // NaN for a sum of 0: the (row, head) had a NaN or infinite maximum
    .ren_i(step), .raddr_i({row_q, head_q}), .rdata_o(rc_rdata)
  );

  // ---- what goes along with a beat: reciprocal (or NaN) and exponent code per block ----
  logic step1_q, step2_q, hi1_q;
  logic [NB*8-1:0] code_d, code_x;              // at the memory's output; beside the sum
  logic [NB*32-1:0] rc_d, rc_m;                 // beside the fp32 value
  logic [NB*8*(LEVELS+1)-1:0] code_q;
  logic [NB*32*(LEVELS+4)-1:0] rc_q;

  if (NB > 1) begin : gen_code2
    logic unused_hi;
    assign unused_hi = hi1_q;
    assign code_d    = pm_rdata;
  end else begin : gen_code1
    assign code_d = hi1_q ? pm_rdata[15:8] : pm_rdata[7:0];
  end
  for (genvar b = 0; b < NB; b++) begin : gen_rc
    assign rc_d[32*b+:32] = (code_d[8*b+:8] == 8'hFF) ? mr_fp_pkg::QNAN : rc_rdata;
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      step1_q <= 1'b0;
      step2_q <= 1'b0;
    end else begin
      step1_q <= step;
      step2_q <= step1_q;
    end
  end
  always_ff @(posedge clk_i) begin
    if (step) hi1_q <= (SUBS > 1) && (sub_q >= UA'(SUBS / 2));
    if (busy_q) begin
      code_q <= (NB * 8 * (LEVELS + 1))'({code_q, code_d});
      rc_q   <= (NB * 32 * (LEVELS + 4))'({rc_q, rc_d});
    end
  end
  assign code_x = code_q[NB*8*LEVELS+:NB*8];
  assign rc_m   = rc_q[NB*32*(LEVELS+3)+:NB*32];

  // ---- values ----
  logic x_v, c_v, m_v, c_ovf, m_ovf;
  logic [V*48-1:0] x;
  logic [V*11-1:0] x_exp;
  logic [V*32-1:0] c, m, m_b;

  mr_attn_tree #(.N(N), .LANES(V), .W(48)) u_acc (
    .clk_i, .rst_ni, .valid_i(step2_q), .mask_i(lanes_q), .in_i(dr_i), .valid_o(x_v), .y_o(x)
  );

  // value = acc * 2^(pm - 127 - 6 - 12); times the reciprocal, which is NaN where the result must
  // be
  for (genvar b = 0; b < NB; b++) begin : gen_operands
    localparam int L = V / NB;
    assign x_exp[11*L*b+:11*L] = {L{11'(code_x[8*b+:8]) - 11'd145}};
    assign m_b[32*L*b+:32*L]   = {L{rc_m[32*b+:32]}};
  end

  mr_vacc2f #(.LANES(V)) u_acc2f (
    .clk_i, .rst_ni, .valid_i(x_v), .acc_i(x), .exp_i(x_exp), .valid_o(c_v), .y_o(c), .ovf_o(c_ovf)
  );

  mr_vfmul #(.LANES(V)) u_mul (
    .clk_i, .rst_ni, .valid_i(c_v), .a_i(c), .b_i(m_b), .valid_o(m_v), .y_o(m), .ovf_o(m_ovf)
  );
  assign ovf_o = c_ovf || m_ovf;
  assign nan_o = c_v && (rc_m[31:0] == mr_fp_pkg::QNAN || rc_m[NB*32-1-:32] == mr_fp_pkg::QNAN);

  // ---- quantiser ----
  logic unused_fifo_ready;
  logic [$clog2(DEPTH+1)-1:0] unused_fifo_count;
  logic [V*32-1:0] q_data;

  mr_fifo #(.W(V * 32), .DEPTH(DEPTH)) u_fifo (
    .clk_i, .rst_ni, .clear_i(1'b0),
    .in_valid_i(m_v), .in_ready_o(unused_fifo_ready),  // a step holds a credit
    .in_data_i(m),
    .out_valid_o(q_valid), .out_ready_i(q_ready), .out_data_o(q_data), .count_o(unused_fifo_count)
  );

  localparam int TAG = 16 + 16 + 2 + 1;
  localparam int SUBW = (V > 64) ? $clog2(V / 32) : 1;
  logic t_sub_last, t_word_last;
  logic [1:0] t_row_q;
  logic [WA:0] t_word_q;
  logic [UA-1:0] t_sub_q;
  logic [15:0] t_tok, t_slot, t_block, t_word;
  logic [TAG-1:0] t_tag, o_tag;
  logic [SUBW-1:0] o_sub;
  logic o_lo;

  assign t_sub_last  = (SUBS == 1) || (t_sub_q == UA'(SUBS - 1));
  assign t_word_last = (t_word_q + 1'b1 == words_q);
  assign t_tok       = tok_q + 16'(t_row_q);
  assign t_slot      = two_q ? {t_tok[14:0], 1'b0} : t_tok;
  assign t_block     = {15'(word0_q) + 15'(t_word_q), (SUBS > 1) && (t_sub_q >= UA'(SUBS / 2))};
  assign t_word      = dst_base_q + t_block;
  assign t_tag       = {t_slot, t_word, region_q, t_block == 16'd0};

  always_ff @(posedge clk_i) begin
    if (start_i) begin
      t_row_q  <= '0;
      t_word_q <= '0;
      t_sub_q  <= '0;
    end else if (q_valid && q_ready) begin
      t_sub_q <= t_sub_last ? '0 : t_sub_q + 1'b1;
      if (t_sub_last) begin
        t_word_q <= t_word_last ? '0 : t_word_q + 1'b1;
        if (t_word_last) t_row_q <= t_row_q + 2'd1;
      end
    end
  end

  if (TRAIN != 0) begin : gen_keep
    localparam int ROW = D_MAX / V;
    logic keep_q;
    logic [RESW-1:0] start, row_at_q, at_q;
    assign start = RESW'(cfg_tok_i) * RESW'(ROW) + (RESW'(cfg_word0_i) << $clog2(SUBS));
    always_ff @(posedge clk_i) begin
      if (!rst_ni) keep_we_o <= 1'b0;
      else keep_we_o <= q_valid && q_ready && keep_q;
    end
    always_ff @(posedge clk_i) begin
      if (start_i) begin
        keep_q   <= cfg_keep_i;
        row_at_q <= start;
        at_q     <= start;
      end else if (q_valid && q_ready) begin
        keep_waddr_o <= at_q;
        keep_wdata_o <= q_data;
        at_q         <= at_q + 1'b1;
        if (t_sub_last && t_word_last) begin
          row_at_q <= row_at_q + RESW'(ROW);
          at_q     <= row_at_q + RESW'(ROW);
        end
      end
    end
  end else begin : gen_no_keep
    assign {keep_we_o, keep_waddr_o, keep_wdata_o} = '0;
  end

  mr_quant #(.V(V), .TAG(TAG)) u_quant (
    .clk_i, .rst_ni, .in_valid_i(q_valid), .in_ready_o(q_ready), .in_data_i(q_data),
    .in_two_pass_i(two_q), .in_tag_i(t_tag), .out_valid_o(b_valid_o), .out_ready_i(b_ready_i),
    .out_data_o(b_data_o), .out_tag_o(o_tag), .out_sub_o(o_sub), .out_lo_o(o_lo)
  );

  // two-pass: the pair's first slot is even
  assign b_slot_o   = {o_tag[TAG-1:20], o_tag[19] || o_lo};
  assign b_word_o   = o_tag[18:3] + 16'(o_sub);
  assign b_region_o = o_tag[2:1];
  assign b_first_o  = o_tag[0] && o_sub == '0;
  assign b_lo_o     = o_lo;

endmodule
