// SPDX-License-Identifier: Apache-2.0
//
// LAYERNORM: residual rows to normalised rows for the quantiser, bit-exact to mr_layernorm of
// host/cmodel/num.c. Two engines work on neighbouring tokens: one reads a row, sums its integers
// and their squares and makes mean and 1/sigma of the sums; the other reads the row again and
// normalises it. The vector memory has one port and each beat needs gain and bias, so normalising
// takes two cycles a beat, and the statistics of the next token are read in the cycles between.
// A token alone takes 3 D/V + 62 cycles or so, each further one 2 D/V + 45.
//
// V: lanes, a power of two from 4 to 64. T: tokens. D_MAX: floats per token of the residual memory.
// VEC_WORDS: words of V floats from the first gain to the first bias in the vector memory.
//
// Command: valid/ready, one at a time; the fields may change after the handshake, row_logit_i must
// stay. cmd_rows_i: resident tokens. cmd_two_pass_i: the run's flag; row slots then are 2k.
// cmd_logit_rows_i: tokens whose bit of row_logit_i is clear are skipped.
// cmd_keep_i: the output goes to a row memory too; not with cmd_logit_rows_i.
// Token k of the command's output (the k-th processed) goes to row slot k, or 2k with two passes.
// rexp, res: RAM ports, data one cycle after ren, held. The exponent is the largest of the row.
// phase_i: alternates every cycle; rows are read for normalising in cycles with it low. It is not
// made here: the unit's state stands still while the unit is idle (mr_clk_gate).
// vec: RAM port with data two cycles after ren, gain of word w at w, bias at VEC_WORDS + w.
// q: beats for mr_quant (valid/ready, registered), q_tag_o = {row slot 16, word 16, region 2,
// first} as mr_quant wants it: constant over a block, of a beat's first block if V > 32; word =
// dst_base + block in the row, region = dst_slot, first = block 0 of the row.
// keep_we_o: with cmd_keep_i, pulse in a beat's first cycle on q_data_o; keep_ is its place, in the
// memory token * D_MAX/V + word. By then the row has been read up to there, and its sums are made.
// The last one comes before done_o.
// wr_ack_i: pulse for each block of this unit that activation memory has taken, residue blocks
// included. done_o: pulse after the last one (at once if no token was to be processed).
// busy_o: from the command to done_o. ovf_o, nan_o: pulses, an overflow to infinity, a row of NaN.
`include "mr_assert.svh"
`include "mr_bundles.svh"
module mr_layernorm #(
    parameter int V = 4,
    parameter int T = 8,
    parameter int D_MAX = 256,
    parameter int VEC_WORDS = 64,
    localparam int ROW = D_MAX / V,
    localparam int RES_AW = $clog2(T * ROW),
    localparam int REXP_AW = T > 1 ? $clog2(T) : 1,
    localparam int VEC_AW = $clog2(2 * VEC_WORDS)
) (
    input  logic               clk_i,
    input  logic               rst_ni,
    // command
    input  logic               cmd_valid_i,
    output logic               cmd_ready_o,
    input  logic [15:0]        cmd_dst_base_i,
    input  logic [15:0]        cmd_dblocks_i,
    input  logic [15:0]        cmd_n_i,
    input  logic [1:0]         cmd_dst_slot_i,
    input  logic               cmd_logit_rows_i,
    input  logic               cmd_keep_i,
    input  logic [31:0]        cmd_inv_n_i,
    input  logic [31:0]        cmd_inv_n2_i,
    input  logic [31:0]        cmd_eps_i,
    input  logic [15:0]        cmd_rows_i,
    input  logic               cmd_two_pass_i,
    input  logic [T-1:0]       row_logit_i,
    input  logic               phase_i,
    // memories
    `MR_RAM_R_M(rexp_, REXP_AW, 8),
    `MR_RAM_R_M(res_, RES_AW, V*32),
    `MR_RAM_R_M(vec_, VEC_AW, V*32),
    // to mr_quant
    output logic               q_valid_o,
    input  logic               q_ready_i,
    output logic [V*32-1:0]    q_data_o,
    output logic               q_two_pass_o,
    output logic [34:0]        q_tag_o,
    `MR_ROW_AT_M(keep_, RES_AW, REXP_AW),
    input  logic               wr_ack_i,
    output logic               done_o,
    output logic               busy_o,
  `MR_FLAGS_M()
);
  localparam int BEATS = V < 32 ? 32 / V : 1;   // beats of a block
  localparam int SUBS = V > 32 ? V / 32 : 1;    // blocks of a beat
  localparam int FIFO = 16;                     // output beats held or on their way

  // ---- command ---------------------------------------------------------------------------------

  logic [15:0] dst_base_q, n_q, rows_q, row_beats_q;
  logic [1:0] dst_slot_q;
  logic logit_rows_q, two_pass_q;
  logic [31:0] inv_n_q, inv_n2_q, eps_q;
  logic start;

  assign start = cmd_valid_i && cmd_ready_o;
  assign cmd_ready_o = !busy_o;

  always_ff @(posedge clk_i) begin
    if (start) begin
      dst_base_q <= cmd_dst_base_i;
      row_beats_q <= V <= 32 ? cmd_dblocks_i << $clog2(BEATS) : cmd_dblocks_i >> $clog2(SUBS);
      n_q <= cmd_n_i;
      dst_slot_q <= cmd_dst_slot_i;
      logit_rows_q <= cmd_logit_rows_i;
      inv_n_q <= cmd_inv_n_i;
      inv_n2_q <= cmd_inv_n2_i;
      eps_q <= cmd_eps_i;
      rows_q <= cmd_rows_i;
      two_pass_q <= cmd_two_pass_i;
    end
  end

  // ---- statistics: control ---------------------------------------------------------------------

  localparam logic [2:0] S_IDLE = 3'd0, S_NEXT = 3'd1, S_READ = 3'd2, S_WAIT = 3'd3, S_HAND = 3'd4,
                         S_END = 3'd5;
  logic [2:0] state_q;
  logic [15:0] token_q, s_word_q;
  logic [RES_AW-1:0] s_base_q, n_base_q;
  logic [7:0] top_q;
  logic rexp_v_q, nan_q, skip, s_ren, s_first, s_last, n_ren, n_busy_q, hand, stats_ready;

  assign skip = logit_rows_q && !row_logit_i[token_q[REXP_AW-1:0]];
  assign rexp_ren_o = state_q == S_NEXT && token_q != rows_q && !skip;
  assign rexp_raddr_o = token_q[REXP_AW-1:0];
  assign s_ren = state_q == S_READ && !n_ren;
  assign s_first = s_word_q == 16'd0;
  assign s_last = s_word_q == row_beats_q - 16'd1;
  assign hand = state_q == S_HAND && !n_busy_q;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      state_q <= S_IDLE;
      rexp_v_q <= 1'b0;
    end else begin
      rexp_v_q <= rexp_ren_o;
      case (state_q)
        S_IDLE: if (start) state_q <= S_NEXT;
        S_NEXT: begin
          if (token_q == rows_q) state_q <= S_END;
          else if (!skip) state_q <= S_READ;
        end
        S_READ: if (s_ren && s_last) state_q <= S_WAIT;
        S_WAIT: if (stats_ready) state_q <= S_HAND;
        S_HAND: if (hand) state_q <= S_NEXT;
        default: if (done_o) state_q <= S_IDLE;
      endcase
    end
  end

  always_ff @(posedge clk_i) begin
    if (start) begin
      token_q <= 16'd0;
      s_base_q <= '0;
      s_word_q <= 16'd0;
    end else if (hand || (state_q == S_NEXT && token_q != rows_q && skip)) begin
      token_q <= token_q + 16'd1;
      s_base_q <= s_base_q + RES_AW'(ROW);
      s_word_q <= 16'd0;
    end else if (s_ren) begin
      s_word_q <= s_word_q + 16'd1;
    end
    if (rexp_v_q) begin
      top_q <= rexp_rdata_i == 8'd0 ? 8'd1 : rexp_rdata_i;  // a row of zeros
      nan_q <= rexp_rdata_i == 8'd255;
    end
  end

  assign nan_o = hand && nan_q;

  // ---- statistics: sums, mean, 1/sigma ---------------------------------------------------------

  logic [31:0] mean, r;
  logic stats_ovf, lane_ovf;

  mr_norm_stats #(.V(V)) u_stats (
    .clk_i, .rst_ni, .busy_i(busy_o), .ren_i(s_ren), .first_i(s_first), .last_i(s_last),
    .data_i(res_rdata_i), .top_i(top_q), .nan_i(nan_q), .n_i(n_q), .inv_n_i(inv_n_q),
    .inv_n2_i(inv_n2_q), .eps_i(eps_q), .done_o(stats_ready), .mean_o(mean), .r_o(r),
    .ovf_o(stats_ovf)
  );

  // ---- normalise -------------------------------------------------------------------------------

  // After a hand-over: nv_q[c - 1] is a beat c cycles after its read: 2 minus mean, 5 times r, 8
  // times gain, 11 plus bias, 14 out. Reads go in even cycles only. So one adder and one multiplier
  // do it all: the adder subtracts in even cycles and adds in odd ones, the multiplier takes r in
  // odd cycles and the gain in even ones. Gain reads (5) go in odd and bias reads (8) in even
  // cycles. A result's last register is that of the operand that it becomes, behind the select.
  logic [31:0] neg_mean_q, r_q;
  logic [15:0] n_word_q, g_word_q, b_word_q;
  logic [13:0] nv_q;
  logic [3:0] gap_q;
  logic [4:0] held_q;  // beats read and not yet in the output register
  logic n_reading_q, fetch, out_v, unused_nmul, unused_nadd;
  logic [V*32-1:0] add_a_q, add_b_q, mul_a_q, mul_b_q, y_q, nmul_y, nadd_y;
  logic [1:0] n_ovf;

  assign n_ren = n_reading_q && !phase_i && !held_q[4];

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      n_reading_q <= 1'b0;
      n_busy_q <= 1'b0;
      nv_q <= 14'd0;
      held_q <= 5'd0;
      gap_q <= 4'd0;
    end else begin
      nv_q <= {nv_q[12:0], n_ren};
      held_q <= held_q + {4'd0, n_ren} - {4'd0, fetch};
      if (hand) begin
        n_reading_q <= 1'b1;
        n_busy_q <= 1'b1;
      end else if (n_ren && n_word_q == row_beats_q - 16'd1) begin
        n_reading_q <= 1'b0;
        gap_q <= 4'd4;  // mean and r must stay until the last beat has passed them
      end else if (n_busy_q && !n_reading_q) begin
        gap_q <= gap_q - 4'd1;
        if (gap_q == 4'd1) n_busy_q <= 1'b0;
      end
    end
  end

  always_ff @(posedge clk_i) begin
    if (hand) begin
      neg_mean_q <= {~mean[31], mean[30:0]};
      r_q <= r;
      n_base_q <= s_base_q;
      n_word_q <= 16'd0;
    end else if (n_ren) begin
      n_word_q <= n_word_q + 16'd1;
    end
    if (start) begin
      g_word_q <= 16'd0;
      b_word_q <= 16'd0;
    end else begin
      if (nv_q[4]) g_word_q <= g_word_q == row_beats_q - 16'd1 ? 16'd0 : g_word_q + 16'd1;
      if (nv_q[7]) b_word_q <= b_word_q == row_beats_q - 16'd1 ? 16'd0 : b_word_q + 16'd1;
    end
  end

  assign res_ren_o = s_ren || n_ren;
  assign res_raddr_o = n_ren ? n_base_q + RES_AW'(n_word_q) : s_base_q + RES_AW'(s_word_q);
  assign vec_ren_o = nv_q[4] || nv_q[7];
  assign vec_raddr_o = nv_q[4] ? VEC_AW'(g_word_q) : VEC_AW'(VEC_WORDS) + VEC_AW'(b_word_q);

  assign out_v = nv_q[13];
  always_ff @(posedge clk_i) begin
    if (nv_q[0] || nv_q[9]) begin
      add_a_q <= nv_q[0] ? res_rdata_i : nmul_y;
      add_b_q <= nv_q[0] ? {V{neg_mean_q}} : vec_rdata_i;
    end
    if (nv_q[3] || nv_q[6]) begin
      mul_a_q <= nv_q[3] ? nadd_y : nmul_y;
      mul_b_q <= nv_q[3] ? {V{r_q}} : vec_rdata_i;
    end
    if (nv_q[12]) y_q <= nadd_y;
  end

  mr_vfadd #(.LANES(V), .EARLY(1)) u_nadd (
    .clk_i, .rst_ni, .valid_i(nv_q[1] || nv_q[10]), .a_i(add_a_q), .b_i(add_b_q),
    .valid_o(unused_nadd), .y_o(nadd_y), .ovf_o(n_ovf[0])
  );
  mr_vfmul #(.LANES(V), .EARLY(1)) u_nmul (
    .clk_i, .rst_ni, .valid_i(nv_q[4] || nv_q[7]), .a_i(mul_a_q), .b_i(mul_b_q),
    .valid_o(unused_nmul), .y_o(nmul_y), .ovf_o(n_ovf[1])
  );

  assign lane_ovf = n_ovf != 2'd0;
  assign ovf_o = stats_ovf || lane_ovf;

  // ---- output ----------------------------------------------------------------------------------

  logic [V*32-1:0] fifo[0:FIFO-1];
  logic [3:0] wptr_q, rptr_q;
  logic [4:0] count_q;
  logic [15:0] slot_q, word_q, beat_q;
  logic [2:0] part_q;
  logic [15:0] pending_q;  // blocks that activation memory has yet to take
  logic block_end;

  // A beat that comes out while none is held goes on at once.
  assign fetch = (count_q != 5'd0 || out_v) && (!q_valid_o || q_ready_i);
  assign block_end = BEATS == 1 || part_q == 3'(BEATS - 1);
  assign q_two_pass_o = two_pass_q;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      wptr_q <= 4'd0;
      rptr_q <= 4'd0;
      count_q <= 5'd0;
      q_valid_o <= 1'b0;
    end else begin
      if (out_v) wptr_q <= wptr_q + 4'd1;
      if (fetch) rptr_q <= rptr_q + 4'd1;
      count_q <= count_q + {4'd0, out_v} - {4'd0, fetch};
      if (fetch) q_valid_o <= 1'b1;
      else if (q_ready_i) q_valid_o <= 1'b0;
    end
  end

  always_ff @(posedge clk_i) begin
    if (out_v) fifo[wptr_q] <= y_q;
    if (fetch) begin
      q_data_o <= count_q != 5'd0 ? fifo[rptr_q] : y_q;
      q_tag_o <= {two_pass_q ? {slot_q[14:0], 1'b0} : slot_q, dst_base_q + word_q, dst_slot_q,
                  word_q == 16'd0};
    end
    if (start) begin
      slot_q <= 16'd0;
      word_q <= 16'd0;
      beat_q <= 16'd0;
      part_q <= 3'd0;
    end else if (fetch) begin
      part_q <= block_end ? 3'd0 : part_q + 3'd1;
      if (beat_q == row_beats_q - 16'd1) begin
        beat_q <= 16'd0;
        word_q <= 16'd0;
        slot_q <= slot_q + 16'd1;
      end else begin
        beat_q <= beat_q + 16'd1;
        if (block_end) word_q <= word_q + 16'(SUBS);
      end
    end
  end

  logic keep_q;
  logic [RES_AW-1:0] base_q;
  always_ff @(posedge clk_i) begin
    if (!rst_ni) keep_we_o <= 1'b0;
    else keep_we_o <= fetch && keep_q;
  end
  always_ff @(posedge clk_i) begin
    if (fetch && keep_q) begin
      keep_waddr_o <= base_q + RES_AW'(beat_q);
      keep_tok_o <= slot_q[REXP_AW-1:0];
      keep_first_o <= beat_q == 16'd0;
      keep_last_o <= beat_q == row_beats_q - 16'd1;
    end
    if (start) begin
      keep_q <= cmd_keep_i;
      base_q <= '0;
    end else if (fetch && beat_q == row_beats_q - 16'd1) begin
      base_q <= base_q + RES_AW'(ROW);
    end
  end

  // Counted when the block's last beat is fetched, so before any acknowledgement.
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      pending_q <= 16'd0;
      busy_o <= 1'b0;
      done_o <= 1'b0;
    end else begin
      pending_q <= pending_q - {15'd0, wr_ack_i} +
          (fetch && block_end ? (two_pass_q ? 16'(2 * SUBS) : 16'(SUBS)) : 16'd0);
      done_o <= state_q == S_END && !done_o && !n_busy_q && held_q == 5'd0 && pending_q == 16'd0;
      if (start) busy_o <= 1'b1;
      else if (done_o) busy_o <= 1'b0;
    end
  end

  `MR_ASSERT(state, state_q <= S_END)
  `MR_ASSERT_STABLE(q, q_valid_o, q_ready_i, {q_data_o, q_tag_o})
  `MR_ASSERT_COUNT(held, held_q, n_ren, fetch, FIFO)
  `MR_ASSERT_COUNT(count, count_q, out_v, fetch, FIFO)

endmodule
