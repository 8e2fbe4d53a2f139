// SPDX-License-Identifier: Apache-2.0
// Loads what a group needs from the row memories: q words (first pass and residue) and prefix
// maxima of its rows, broadcast to the lanes, and the maximum q code per (row, head).
//
// Parameters
//   T, QKV_WORDS, PM_WORDS  sizes of the row memories; W_MAX, HEADS_MAX as in mr_attn
//
// Timing: start_i (pulse) with cfg_* stable until done_o (pulse, all writes have left);
// rows * passes * words + 6 cycles. q_* and pm_* are RAM ports.
`include "mr_assert.svh"
`include "mr_bundles.svh"
module mr_attn_load #(
  parameter int T = 8,
  parameter int QKV_WORDS = 64,
  parameter int PM_WORDS = 64,
  parameter int W_MAX = 4096,
  parameter int HEADS_MAX = 16,
  localparam int WW = W_MAX / 64,
  localparam int WA = (WW > 1) ? $clog2(WW) : 1,
  localparam int HA = (HEADS_MAX > 1) ? $clog2(HEADS_MAX) : 1,
  localparam int QA = $clog2(T * QKV_WORDS),
  localparam int PA = $clog2(T * PM_WORDS)
) (
  input  logic          clk_i,
  input  logic          rst_ni,
  input  logic          start_i,
  input  logic [15:0]   cfg_tok_i,
  input  logic [2:0]    cfg_nr_i,
  input  logic          cfg_two_i,
  input  logic [7:0]    cfg_hpw_i,
  input  logic [WA:0]   cfg_words_i,
  input  logic [WA:0]   cfg_word0_i,   // first word of the head group
  input  logic [15:0]   cfg_q_base_i,
  input  logic          cfg_par_i,
  output logic          done_o,
  `MR_RAM_R_M(q_, QA, 528),
  `MR_RAM_R_M(pm_, PA, 16),
  `MR_WORD_M(ld_, WA+3, 528),  // {row, half, word}
  `MR_WORD_M(lp_, WA+3, 16),  // {parity, row, word}
  `MR_RAM_W_M(mq_, HA+2, 8)  // {row, head}
);

  // ---- walk ----
  logic act_q, half_q, word_last, half_last, row_last, all_last;
  logic [1:0] row_q;
  logic [WA:0] word_q;
  logic [7:0] hb_q;
  logic [HA-1:0] head_q;

  assign word_last = (word_q + 1'b1 == cfg_words_i);
  assign half_last = half_q || !cfg_two_i;
  assign row_last  = (3'(row_q) + 3'd1 == cfg_nr_i);
  assign all_last  = word_last && half_last && row_last;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) act_q <= 1'b0;
    else if (start_i) act_q <= 1'b1;
    else if (all_last) act_q <= 1'b0;
  end

  always_ff @(posedge clk_i) begin
    if (start_i) begin
      row_q  <= '0;
      half_q <= 1'b0;
      word_q <= '0;
      hb_q   <= '0;
      head_q <= '0;
    end else if (act_q) begin
      word_q <= word_last ? '0 : word_q + 1'b1;
      hb_q   <= (hb_q + 8'd1 == cfg_hpw_i) ? 8'd0 : hb_q + 8'd1;
      if (word_last) head_q <= '0;
      else if (hb_q + 8'd1 == cfg_hpw_i) head_q <= head_q + 1'b1;
      if (word_last) begin
        half_q <= !half_last;
        if (half_last) row_q <= row_q + 2'd1;
      end
    end
  end

  // ---- addresses (1), memory (2), broadcast (3), maxima (4) ----
  logic [15:0] tok, slot;
  assign tok  = cfg_tok_i + 16'(row_q);
  assign slot = cfg_two_i ? {tok[14:0], half_q} : tok;

  logic [2:0] v_q, hi_q, hfirst_q, hlast_q;
  logic [WA+2:0] a1_q, a2_q;
  logic [HA-1:0] h1_q, h2_q, h3_q;
  logic [QA-1:0] q_raddr_q;
  logic [PA-1:0] pm_raddr_q;
  logic [7:0] code_max, run_q;
  logic busy_q;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      v_q     <= 3'd0;
      hi_q    <= 3'd0;
      hlast_q <= 3'd0;
      mq_we_o <= 1'b0;
      busy_q  <= 1'b0;
      done_o  <= 1'b0;
    end else begin
      done_o <= 1'b0;
      if (start_i) begin
        busy_q <= 1'b1;
      end else if (busy_q) begin
        v_q     <= {v_q[1:0], act_q};
        hi_q    <= {hi_q[1:0], act_q && !half_q};
        hlast_q <= {hlast_q[1:0], hb_q + 8'd1 == cfg_hpw_i};
        mq_we_o <= v_q[2] && hi_q[2] && hlast_q[2];
        if (!act_q && v_q == 3'd0) begin
          busy_q <= 1'b0;
          done_o <= 1'b1;
        end
      end
    end
  end

  always_ff @(posedge clk_i) begin
    if (act_q) begin
      q_raddr_q  <= QA'(32'(slot) * QKV_WORDS + 32'(cfg_q_base_i) + 32'(cfg_word0_i) + 32'(word_q));
      pm_raddr_q <= PA'(32'(tok) * PM_WORDS + 32'(cfg_word0_i) + 32'(word_q));
      a1_q       <= {row_q, half_q, word_q[WA-1:0]};
      h1_q       <= head_q;
    end
    if (busy_q) hfirst_q <= {hfirst_q[1:0], hb_q == 8'd0};
    if (v_q[0]) begin
      a2_q <= a1_q;
      h2_q <= h1_q;
    end
    if (v_q[1]) begin
      ld_data_o <= q_rdata_i;
      ld_addr_o <= a2_q;
      h3_q      <= h2_q;
      lp_data_o <= pm_rdata_i;
      lp_addr_o <= {cfg_par_i, a2_q[WA+2:WA+1], a2_q[WA-1:0]};
    end
    if (v_q[2]) begin
      run_q      <= code_max;
      mq_wdata_o <= code_max;
      mq_waddr_o <= {ld_addr_o[WA+2:WA+1], h3_q};
    end
  end

  function automatic logic [7:0] max8(input logic [7:0] a, input logic [7:0] b);
    max8 = (a > b) ? a : b;
  endfunction
  assign code_max = max8(max8(ld_data_o[527:520], ld_data_o[263:256]), hfirst_q[2] ? 8'd0 : run_q);

  assign q_ren_o    = v_q[0];
  assign q_raddr_o  = q_raddr_q;
  assign pm_ren_o   = v_q[0] && hi_q[0];
  assign pm_raddr_o = pm_raddr_q;
  assign ld_valid_o = v_q[2];
  assign lp_valid_o = v_q[2] && hi_q[2];

  `MR_ASSERT(start, !start_i || !busy_q)

endmodule
