// SPDX-License-Identifier: Apache-2.0
// Probabilities of one channel, computed on the fly from the score buffer: p = exp2(-(m - t)) as
// u16, in the order in which the scores were written (position, head, row), and their sums per
// (row, head).
//
// Parameters
//   N, CH      channels, this channel; SCORES entries of the score buffer over all channels
//   HEADS_MAX  heads
//
// NaN: m - t is NaN only if m is NaN or infinite, and then every p of the (row, head) is 0, so
// that a sum of 0 marks it (else it is at least 65535); the drain's reciprocal makes NaN of it.
//
// Timing: start_i (pulse) begins a pass over cfg_cnt_i > 0 positions; every p is offered once by
// p_valid_o/p_pop_i (show-ahead). Rows that do not see the position get p = 0. Score and maximum
// memories are RAM ports: sc_ren_o/sc_raddr_o and mx_ren_o/mx_raddr_o in t, data in t+1. The score
// is read a step ahead, from start_i on (one too many in the end), and has a register behind the
// memory. The sums are complete when the last p has been popped; RAM port sum_*_i/sum_rdata_o
// outside a pass.
`include "mr_assert.svh"
`include "mr_bundles.svh"
module mr_attn_prob #(
  parameter int N = 1,
  parameter int CH = 0,
  parameter int SCORES = 2048,
  parameter int HEADS_MAX = 16,
  localparam int HA = (HEADS_MAX > 1) ? $clog2(HEADS_MAX) : 1,
  localparam int SA = $clog2(SCORES / N)
) (
  input  logic          clk_i,
  input  logic          rst_ni,
  input  logic          start_i,
  input  logic [15:0]   cfg_cnt_i,    // positions of this channel
  input  logic [2:0]    cfg_nr_i,
  input  logic [HA:0]   cfg_hg_i,
  input  logic [15:0]   cfg_pos_i,    // row r sees positions up to pos + r
  `MR_RAM_R_M(sc_, SA, 32),
  `MR_RAM_R_M(mx_, HA+2, 32),  // {row, head}
  output logic          p_valid_o,
  input  logic          p_pop_i,
  output logic [15:0]   p_o,
  `MR_RAM_R_S(sum_, HA+2, 32)
);

  localparam int DEPTH = 32;  // more than the latency from issue to pop

  // ---- issue ----
  logic act_q, issue, i_row_last, i_head_last;
  logic [5:0] credit_q;
  logic [15:0] left_q;
  logic [1:0] i_row_q;
  logic [HA-1:0] i_head_q;
  logic [SA-1:0] i_next_q;  // the score behind the one that waits at the memory's output
  logic [31:0] score_q;

  assign issue       = act_q && (credit_q != '0);
  assign i_row_last  = (3'(i_row_q) + 3'd1 == cfg_nr_i);
  assign i_head_last = ((HA + 1)'(i_head_q) + 1'b1 == cfg_hg_i);
  assign sc_ren_o    = start_i || issue;
  assign sc_raddr_o  = start_i ? '0 : i_next_q;
  assign mx_ren_o    = issue;
  assign mx_raddr_o  = {i_row_q, i_head_q};

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      act_q    <= 1'b0;
      credit_q <= 6'(DEPTH);
    end else begin
      if (start_i) act_q <= 1'b1;
      else if (issue && i_row_last && i_head_last && left_q == 16'd1) act_q <= 1'b0;
      if (issue && !p_pop_i) credit_q <= credit_q - 6'd1;
      if (!issue && p_pop_i) credit_q <= credit_q + 6'd1;
    end
  end
  `MR_ASSERT_COUNT(credit, credit_q, p_pop_i, issue, DEPTH)
  `MR_ASSERT(start, !start_i || (!act_q && credit_q == 6'(DEPTH)))
  `MR_ASSERT(sums, !(sum_ren_i && e_valid))

  always_ff @(posedge clk_i) begin
    if (start_i) begin
      left_q   <= cfg_cnt_i;
      i_row_q  <= '0;
      i_head_q <= '0;
      i_next_q <= SA'(1);
    end else if (issue) begin
      i_next_q <= i_next_q + 1'b1;
      i_row_q  <= i_row_last ? 2'd0 : i_row_q + 2'd1;
      if (i_row_last) begin
        i_head_q <= i_head_last ? '0 : i_head_q + 1'b1;
        if (i_head_last) left_q <= left_q - 16'd1;
      end
    end
    if (issue) score_q <= sc_rdata_i;
  end

  // ---- d = m - t, p = exp2(-d) ----
  logic rd_valid_q, d_valid, e_valid, unused_ovf;
  logic [31:0] d;
  logic [15:0] e_p;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) rd_valid_q <= 1'b0;
    else rd_valid_q <= issue;
  end

  mr_vfadd #(.LANES(1)) u_sub (
    .clk_i, .rst_ni, .valid_i(rd_valid_q), .a_i(mx_rdata_i), .b_i({!score_q[31], score_q[30:0]}),
    .valid_o(d_valid), .y_o(d), .ovf_o(unused_ovf)
  );

  mr_exp2 u_exp2 (.clk_i, .rst_ni, .valid_i(d_valid), .d_i(d), .valid_o(e_valid), .p_o(e_p));

  // ---- mask, sums ----
  logic e_row_last, e_head_last, e_first, e_masked;
  logic [1:0] e_row_q;
  logic [HA-1:0] e_head_q;
  logic [15:0] e_pos_q;

  assign e_row_last  = (3'(e_row_q) + 3'd1 == cfg_nr_i);
  assign e_head_last = ((HA + 1)'(e_head_q) + 1'b1 == cfg_hg_i);
  assign e_first     = (e_pos_q == 16'(CH));
  assign e_masked    = (e_pos_q > cfg_pos_i + 16'(e_row_q));

  logic a_valid_q, a_first_q, f_hit_q;
  logic [15:0] a_p_q;
  logic [HA+1:0] a_addr_q;
  logic [31:0] last_q, sum_rdata, old, sum;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) a_valid_q <= 1'b0;
    else a_valid_q <= e_valid;
  end

  always_ff @(posedge clk_i) begin
    if (start_i) begin
      e_row_q  <= '0;
      e_head_q <= '0;
      e_pos_q  <= 16'(CH);
    end else if (e_valid) begin
      e_row_q <= e_row_last ? 2'd0 : e_row_q + 2'd1;
      if (e_row_last) begin
        e_head_q <= e_head_last ? '0 : e_head_q + 1'b1;
        if (e_head_last) e_pos_q <= e_pos_q + 16'(N);
      end
    end
    if (e_valid) begin
      a_p_q     <= e_masked ? 16'd0 : e_p;
      a_addr_q  <= {e_row_q, e_head_q};
      a_first_q <= e_first;
      // The word may be on its way into the memory: take it from there.
      f_hit_q   <= a_valid_q && (a_addr_q == {e_row_q, e_head_q});
    end
    if (a_valid_q) last_q <= sum;
  end

  assign old = f_hit_q ? last_q : sum_rdata;
  assign sum = (a_first_q ? 32'd0 : old) + 32'(a_p_q);

  mr_ram_1r1w #(.W(32), .DEPTH(4 << HA)) u_sum (
    .clk_i, .wen_i(a_valid_q), .waddr_i(a_addr_q), .wdata_i(sum),
    .ren_i(e_valid || sum_ren_i), .raddr_i(e_valid ? {e_row_q, e_head_q} : sum_raddr_i),
    .rdata_o(sum_rdata)
  );
  assign sum_rdata_o = sum_rdata;

  logic unused_ready;
  logic [5:0] unused_count;
  mr_fifo #(.W(16), .DEPTH(DEPTH)) u_fifo (
    .clk_i, .rst_ni, .clear_i(1'b0),
    .in_valid_i(a_valid_q), .in_ready_o(unused_ready), .in_data_i(a_p_q),
    .out_valid_o(p_valid_o), .out_ready_i(p_pop_i), .out_data_o(p_o), .count_o(unused_count)
  );

endmodule
