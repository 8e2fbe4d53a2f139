// SPDX-License-Identifier: Apache-2.0
// Plans a command: walks the tokens, forms groups (up to 4 rows of one sequence x some heads),
// asks the lanes for the KV passes of each group and hands the groups to the executor. Runs ahead
// of it: K and V of the next group are asked for while this one is worked on.
//
// Parameters
//   N, T, SCORES, W_MAX, HEADS_MAX as in mr_attn
//
// Group: rows = tokens that `continue` the first (at most 4), heads = all if the scores fit (rows
// * heads * ceil(positions / N) <= SCORES / N), else the largest power of two that does; if one
// head of so many rows does not fit, fewer rows. All heads: whole records, one sequential job per
// pass and channel; else slices. Positions: all before the sequence's end where the row table has
// one, else those up to the last row's.
//
// Window: all that a group reads lies in the KV windows' smallest (kv_limit_i, beats); that is
// looked at while the group is planned. If not, err_o is a pulse, nothing more is asked for, and
// idle_o follows.
//
// Timing: start_i with cfg_* stable until idle_o. g_valid_o/g_ready_i: groups in order (payload
// stable while waiting); jd_valid_o is offered to a channel until its jd_ready_i, one pass at a
// time.
`include "mr_assert.svh"
`include "mr_bundles.svh"
module mr_attn_plan #(
  parameter int N = 1,
  parameter int T = 8,
  parameter int SCORES = 2048,
  parameter int W_MAX = 4096,
  parameter int HEADS_MAX = 16,
  localparam int WA = (W_MAX > 64) ? $clog2(W_MAX / 64) : 1,
  localparam int HA = (HEADS_MAX > 1) ? $clog2(HEADS_MAX) : 1,
  localparam int TA = $clog2(T),
  localparam int LN = $clog2(N),
  localparam int CA = (N > 1) ? LN : 1
) (
  input  logic          clk_i,
  input  logic          rst_ni,
  input  logic          start_i,
  output logic          idle_o,
  input  logic          cfg_pm_i,          // PM_LOAD, else ATTEND
  input  logic          cfg_to_end_i,      // PM_LOAD: of the last position that each row sees
  input  logic [15:0]   cfg_layer_i,
  input  logic [7:0]    cfg_heads_i,
  input  logic [7:0]    cfg_hpw_i,
  input  logic [15:0]   cfg_pm_words_i,    // PM_LOAD: W/64
  input  logic [15:0]   cfg_rows_i,
  `MR_KV_AT_S(kv_),
  input  logic [31:0]   kv_limit_i,
  output logic          err_o,
  // row table
  `MR_RAM_R_M(row_, TA, 65),  // {has an end, last position, pos, kv_off}
  input  logic [T-1:0]  row_continues_i,
  // passes, to the lanes
  `MR_ATTN_JD_M(jd_, N),
  // groups, to the executor
  `MR_ATTN_G_M(g_, CA, HA+1, WA+1)
);

  localparam logic [4:0] IDLE = 5'd0, MUL = 5'd1, BASE = 5'd2, ROW = 5'd3, READ = 5'd4, TAKE = 5'd5,
                         FIT = 5'd6, CHECK = 5'd7, FIRST = 5'd8, HEADS = 5'd9, WORDS = 5'd10,
                         PUSH_K = 5'd11, PUSH_V = 5'd12, GROUP = 5'd13, PM_ADDR = 5'd14,
                         PUSH_PM = 5'd15, PM_GROUP = 5'd16;

  logic [4:0] state_q;
  // As wide as they can get: 32 bits are enough for what lies in the window.
  logic [47:0] lay_q;
  logic [49:0] v_off_q, p_off_q, far_q;
  logic [31:0] k_off_q, kv_q, base_q;
  logic [15:0] local_q;  // positions on the channel that has most of them
  logic [31:0] span_q;   // beats of their records
  logic [31:0] pm_beats_q;  // before the record that PM_LOAD wants
  logic        out_q, pm_out, all_q, zero_q;
  logic [15:0] words_q, rec_q, tok_q, pm_pos_q;
  logic [15:0] pos_q;  // the last position that the first row sees
  logic [7:0] heads_q, half_q, hg_q, head0_q;
  logic [7:0] sbw_q;
  logic [2:0] behind_q, nr_q;
  logic [N-1:0] jd_q;
  logic [23:0] head_need_q;  // of one row
  logic [15:0] last_q;       // pos_q + N - 1
  logic [49:0] pm_base_q;    // kv_q + p_off_q
  logic [7:0] hgw_q;   // heads of the group, at most hg_q
  logic [15:0] gw_q, w0_q, w0_next;
  logic fits, jd_done;

  // Which of the three tokens behind t continue the one before; then rows of the run that begins at
  // t, at most 4. Functions, so that they cost the simulator nothing in other states (so below).
  function automatic logic [2:0] behind(input logic [T-1:0] cont, input logic [15:0] t,
                                        input logic [15:0] rows);
    for (int k = 0; k < 3; k++) begin
      behind[k] = (t + 16'(k + 1) < rows) && cont[TA'(t+16'(k+1))];
    end
  endfunction
  // Tokens that continue have their prefix maxima written by the epilogue.
  function automatic logic skip(input logic [T-1:0] cont, input logic [TA-1:0] t);
    skip = cfg_pm_i && !cfg_to_end_i && cont[t];
  endfunction
  function automatic logic [2:0] run(input logic [2:0] more);
    run = !more[0] ? 3'd1 : !more[1] ? 3'd2 : !more[2] ? 3'd3 : 3'd4;
  endfunction

  // Positions that rows see, from the first row's last on.
  function automatic logic [15:0] more(input logic all, input logic [2:0] rows);
    more = all ? 16'd1 : 16'(rows);
  endfunction

  // Of one row, so that so many rows fit: no product.
  localparam logic [23:0] SC = 24'(SCORES / N);
  logic [23:0] most;
  always_comb begin
    unique case (nr_q)  // 1..4
      3'd1: most = SC;
      3'd2: most = SC / 24'd2;
      3'd3: most = SC / 24'd3;
      default: most = SC / 24'd4;
    endcase
  end
  assign fits    = (head_need_q <= most) || (nr_q == 3'd1 && hg_q == 8'd1);
  assign jd_done = ((jd_q & ~jd_ready_i) == '0);
  assign pm_out  = state_q == PUSH_PM && !zero_q && far_q > 50'(kv_limit_i);
  assign w0_next = w0_q + gw_q;

  // Largest power of two below the number of heads.
  function automatic logic [7:0] below(input logic [7:0] h);
    below = 8'd1;
    for (int i = 1; i < 8; i++) if (h > 8'(1 << i)) below = 8'(1 << i);
  endfunction

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      state_q <= IDLE;
      jd_q    <= '0;
      err_o   <= 1'b0;
    end else begin
      jd_q  <= jd_q & ~jd_ready_i;
      err_o <= 1'b0;
      unique case (state_q)
        IDLE: if (start_i) state_q <= MUL;
        MUL: state_q <= BASE;
        BASE: state_q <= ROW;
        ROW: begin
          if (tok_q >= cfg_rows_i) state_q <= IDLE;
          else if (!skip(row_continues_i, TA'(tok_q))) state_q <= READ;
        end
        READ: state_q <= TAKE;
        TAKE: state_q <= cfg_pm_i ? PM_ADDR : FIT;
        FIT: state_q <= CHECK;
        CHECK: state_q <= fits ? FIRST : FIT;
        FIRST: state_q <= HEADS;
        HEADS: state_q <= WORDS;
        WORDS: begin
          state_q <= out_q ? IDLE : PUSH_K;
          jd_q    <= out_q ? '0 : '1;
          err_o   <= out_q;
        end
        PUSH_K:
          if (jd_done) begin
            state_q <= PUSH_V;
            jd_q    <= '1;
          end
        PUSH_V: if (jd_done) state_q <= GROUP;
        GROUP: if (g_ready_i) state_q <= (w0_next == words_q) ? ROW : HEADS;
        PM_ADDR: begin
          state_q <= PUSH_PM;
          for (int c = 0; c < N; c++) jd_q[c] <= !zero_q && (g_lane_o == CA'(c));
        end
        PUSH_PM: begin
          if (pm_out) begin
            state_q <= IDLE;
            jd_q    <= '0;
            err_o   <= 1'b1;
          end else if (jd_done) begin
            state_q <= PM_GROUP;
          end
        end
        default: if (g_ready_i) state_q <= ROW;
      endcase
    end
  end

  always_ff @(posedge clk_i) begin
    unique case (state_q)
      IDLE:
        if (start_i) begin
          tok_q   <= '0;
          heads_q <= cfg_heads_i;
          half_q  <= below(cfg_heads_i);
        end
      MUL: begin
        lay_q   <= 48'(cfg_layer_i) * 48'(kv_layer_beats_i);
        words_q <= cfg_pm_i ? cfg_pm_words_i : 16'(cfg_heads_i) * 16'(cfg_hpw_i);
      end
      BASE: begin
        k_off_q <= lay_q[31:0];
        v_off_q <= 50'(lay_q) + 50'(kv_v_beats_i);
        p_off_q <= 50'(lay_q) + 50'(kv_pm_beats_i);
        sbw_q   <= 8'((words_q + 16'd31) >> 5);
        rec_q   <= words_q + ((words_q + 16'd31) >> 5);
      end
      ROW: begin
        behind_q <= behind(row_continues_i, tok_q, cfg_rows_i);
        if (skip(row_continues_i, TA'(tok_q))) tok_q <= tok_q + 16'd1;
        hg_q <= heads_q;
      end
      READ: begin
        nr_q     <= run(behind_q);
        kv_q     <= row_rdata_i[31:0];
        all_q    <= row_rdata_i[64];
        pos_q    <= row_rdata_i[63:48];
        last_q   <= row_rdata_i[63:48] + 16'(N - 1);
        pm_pos_q <= cfg_to_end_i ? row_rdata_i[63:48] : row_rdata_i[47:32] - 16'd1;
        zero_q   <= !cfg_to_end_i && row_rdata_i[47:32] == 16'd0;
      end
      TAKE: begin
        pm_base_q  <= 50'(kv_q) + p_off_q;
        pm_beats_q <= (32'(pm_pos_q) >> LN) * 32'(sbw_q);
        local_q    <= (last_q + more(all_q, nr_q)) >> LN;
      end
      FIT: head_need_q <= 24'(hg_q) * 24'(local_q);
      CHECK: begin
        // V lies behind K. With fewer rows than this the next group would have the others.
        span_q <= 32'(local_q) * 32'(rec_q);
        if (!fits) begin
          if (hg_q == heads_q && hg_q != 8'd1) begin
            hg_q <= half_q;
          end else if (hg_q != 8'd1) begin
            hg_q <= hg_q >> 1;
          end else begin
            hg_q    <= heads_q;
            nr_q    <= nr_q - 3'd1;
            local_q <= (last_q + more(all_q, nr_q - 3'd1)) >> LN;
          end
        end
      end
      FIRST: begin
        far_q   <= 50'(kv_q) + v_off_q + 50'(span_q);
        head0_q <= '0;
        w0_q    <= '0;
      end
      HEADS: begin  // the last group may have fewer heads
        hgw_q <= (9'(head0_q) + 9'(hg_q) > 9'(heads_q)) ? heads_q - head0_q : hg_q;
        out_q <= far_q > 50'(kv_limit_i);
      end
      WORDS: begin
        gw_q   <= 16'(hgw_q) * 16'(cfg_hpw_i);
        base_q <= kv_q + k_off_q;
      end
      PUSH_K: if (jd_done) base_q <= kv_q + v_off_q[31:0];
      GROUP:
        if (g_ready_i) begin
          w0_q    <= w0_next;
          head0_q <= head0_q + hg_q;
          if (w0_next == words_q) tok_q <= tok_q + 16'(nr_q);
        end
      PM_ADDR: begin
        base_q <= pm_base_q[31:0] + pm_beats_q;
        far_q  <= pm_base_q + 50'(pm_beats_q) + 50'(sbw_q);
      end
      PM_GROUP: if (g_ready_i) tok_q <= tok_q + 16'd1;
      default: ;
    endcase
  end

  // ---- outputs ----
  logic [7:0] sc_last;
  assign sc_last = 8'((w0_next - 16'd1) >> 5);

  assign idle_o         = (state_q == IDLE);
  assign row_ren_o      = (state_q == ROW);
  assign row_raddr_o    = TA'(tok_q);
  assign jd_valid_o     = pm_out ? '0 : jd_q;
  assign jd_one_o       = cfg_pm_i;
  assign jd_whole_o     = (hgw_q == heads_q);
  assign jd_base_o      = base_q;
  assign jd_positions_o = g_positions_o;
  assign jd_rec_o       = cfg_pm_i ? 16'(sbw_q) : rec_q;
  assign jd_sc_off_o    = 8'(w0_q >> 5);
  assign jd_sc_beats_o  = g_sc_beats_o;
  assign jd_dat_off_o   = 16'(sbw_q) + w0_q;
  assign jd_dat_beats_o = gw_q;

  assign g_valid_o    = (state_q == GROUP) || (state_q == PM_GROUP);
  assign g_tok_o      = tok_q;
  assign g_zero_o     = zero_q;
  assign g_nr_o       = nr_q;
  assign g_pos_o      = pos_q;
  assign g_positions_o = pos_q + more(all_q, nr_q);
  assign g_hg_o       = (HA + 1)'(hgw_q);
  assign g_words_o    = (WA + 1)'(gw_q);
  assign g_word0_o    = (WA + 1)'(w0_q);
  assign g_sc_beats_o = sc_last - 8'(w0_q >> 5) + 8'd1;
  assign g_sc_first_o = w0_q[4:0];
  if (N > 1) begin : gen_lane
    assign g_lane_o = pm_pos_q[CA-1:0];
  end else begin : gen_lane0
    assign g_lane_o = '0;
  end

  `MR_ASSERT(state, state_q <= PM_GROUP)
  `MR_ASSERT(start, !start_i || idle_o)
  `MR_ASSERT_STABLE(group, g_valid_o, g_ready_i, {g_tok_o, g_zero_o, g_lane_o, g_nr_o, g_pos_o,
                    g_positions_o, g_hg_o, g_words_o, g_word0_o, g_sc_beats_o, g_sc_first_o})

endmodule
