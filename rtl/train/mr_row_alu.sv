// SPDX-License-Identifier: Apache-2.0
// The works of MOVE_ROWS, row by row and in place: the gradients of LayerNorm's gain and input, the
// softmax and its gradient (rules 17 and 19 of docs/inside/numerics.md; mr_row_work of the C
// model). A row is read once for each pass; the last one writes it. mr_row_pkg has the passes and
// their steps.
//
// Parameters: N, T, D_MAX as everywhere; VEC_WORDS as mr_layernorm's.
//
// Ports
//   cmd_     valid/ready, the 512-bit command, a work that is legal, and its rows; one is inside at
//            a time, from here to done_o, a pulse when all that it writes is there
//   busy_o   a command is inside
//   row_     RAM port of the row table: a row's position
//   res_     RAM ports of both row memories, of one address: a word is read in a cycle with
//            res_ren_o of a memory and its res_grant_i, which other readers take away
//   vec_     RAM port of the gains, two cycles
//   wr_      write ports of row memories 1 and 2, which nobody else writes meanwhile
//   ovf_o, nan_o   pulses, an overflow to infinity, a result that is NaN
//
// Timing, w words of a row of which s are seen by it (softmax), per row: NORM_GAIN 4 w, NORM_BACK
// 8 w, SOFTMAX 2 s + 2 w, SOFTMAX_BACK 2 s + 4 w, and about 100 cycles; less than 110 + 2 log2(V).
`include "mr_assert.svh"
`include "mr_bundles.svh"
module mr_row_alu #(
  parameter int N = 1,
  parameter int T = 32,
  parameter int D_MAX = 256,
  parameter int VEC_WORDS = 64,
  localparam int V = 4 * N,
  localparam int ROW = D_MAX / V,
  localparam int TW = $clog2(T),
  localparam int RESW = $clog2(T * ROW),
  localparam int VEC_AW = $clog2(2 * VEC_WORDS)
) (
  input  logic              clk_i,
  input  logic              rst_ni,

  `MR_CMD_S(),
  input  logic [15:0]       cmd_rows_i,
  output logic              busy_o,

  `MR_RAM_R_M(row_, TW, 16),
  output logic [1:0]        res_ren_o,
  input  logic [1:0]        res_grant_i,
  output logic [RESW-1:0]   res_raddr_o,
  input  logic [V*32-1:0]   res1_rdata_i,
  input  logic [V*32-1:0]   res2_rdata_i,
  `MR_RAM_R_M(vec_, VEC_AW, V*32),
  output logic [1:0]        wr_en_o,
  output logic [RESW-1:0]   wr_addr_o,
  output logic [V*32-1:0]   wr_data_o,
  `MR_FLAGS_M()
);

  localparam int LV = $clog2(V);
  localparam int OP = mr_row_pkg::OP;

  // ---- command ----------------------------------------------------------------------------------
  logic        start, back_q, soft_q;
  logic [15:0] rows_m1_q, words_m1_q, n_m1_q, own_q;
  logic [31:0] inv_n_q, inv_n2_q, eps_q, scale_q, grad_scale_q;
  logic [15:0] n_q;
  logic [7:0]  work;
  assign start = cmd_valid_i && cmd_ready_o;
  assign work  = cmd_i[mr_pkg::MOVE_ROWS_WORK_LSB+:8];
  always_ff @(posedge clk_i) begin
    if (start) begin
      back_q       <= work == mr_pkg::MOVE_NORM_BACK[7:0] || work == mr_pkg::MOVE_SOFTMAX_BACK[7:0];
      soft_q       <= work == mr_pkg::MOVE_SOFTMAX[7:0] || work == mr_pkg::MOVE_SOFTMAX_BACK[7:0];
      rows_m1_q    <= cmd_rows_i - 16'd1;
      words_m1_q   <= (cmd_i[mr_pkg::MOVE_ROWS_COLS_LSB+:16] >> LV) - 16'd1;
      n_q          <= cmd_i[mr_pkg::MOVE_ROWS_N_LSB+:16];
      n_m1_q       <= cmd_i[mr_pkg::MOVE_ROWS_N_LSB+:16] - 16'd1;
      inv_n_q      <= cmd_i[mr_pkg::MOVE_ROWS_INV_N_LSB+:32];
      inv_n2_q     <= cmd_i[mr_pkg::MOVE_ROWS_INV_N2_LSB+:32];
      eps_q        <= cmd_i[mr_pkg::MOVE_ROWS_EPS_LSB+:32];
      scale_q      <= cmd_i[mr_pkg::MOVE_ROWS_SCALE_LSB+:32];
      grad_scale_q <= cmd_i[mr_pkg::MOVE_ROWS_GRAD_SCALE_LSB+:32];
    end
  end

  // ---- passes -----------------------------------------------------------------------------------
  // POS: the row's position is read. LIMITS, MASKS: which columns count. CLEAR: a pass begins. RUN:
  // its words are read. DRAIN: until its last result is there. SCALARS: what the sums become.
  localparam logic [2:0] IDLE = 3'd0, POS = 3'd1, LIMITS = 3'd2, MASKS = 3'd3, CLEAR = 3'd4,
                         RUN = 3'd5, DRAIN = 3'd6, SCALARS = 3'd7;
  logic [2:0]  state_q;
  logic [3:0]  pass_q, next_pass;
  logic        stats, out_pass, sums_pass, go, last, drained, stats_done, scalars_done, row_end;
  logic        last_row_q, gone;
  logic [15:0] row_q, word_q, first_word, last_word;
  logic [5:0]  drain_q;
  assign cmd_ready_o = state_q == IDLE;
  assign busy_o      = state_q != IDLE;
  assign stats       = pass_q == mr_row_pkg::STATS;
  assign sums_pass   = pass_q == mr_row_pkg::AB || pass_q == mr_row_pkg::SUM;
  assign out_pass    = pass_q == mr_row_pkg::GAIN || pass_q == mr_row_pkg::DX ||
                       pass_q == mr_row_pkg::PROB || pass_q == mr_row_pkg::DS;
  assign drained     = stats ? stats_done : drain_q == 6'd0;
  assign row_end     = state_q == DRAIN && drained && out_pass && (!last_row_q || gone);

  always_comb begin
    case (pass_q)
      mr_row_pkg::TOP:   next_pass = mr_row_pkg::STATS;
      mr_row_pkg::STATS: next_pass = back_q ? mr_row_pkg::AB : mr_row_pkg::GAIN;
      mr_row_pkg::AB:    next_pass = mr_row_pkg::DX;
      mr_row_pkg::MAX:   next_pass = mr_row_pkg::SUM;
      mr_row_pkg::SUM:   next_pass = back_q ? mr_row_pkg::DS : mr_row_pkg::PROB;
      default:           next_pass = soft_q ? mr_row_pkg::MAX : mr_row_pkg::TOP;
    endcase
  end

  // From a pass's last word to its last result.
  function automatic [5:0] drain_of(input [3:0] pass);
    case (pass)
      mr_row_pkg::TOP:  drain_of = 6'd5;
      mr_row_pkg::MAX:  drain_of = 6'(mr_row_pkg::KEY + LV + 1);
      mr_row_pkg::AB:   drain_of = 6'(mr_row_pkg::AB_PROD + mr_row_pkg::PROD_LAT + LV);
      mr_row_pkg::SUM:  drain_of = 6'(mr_row_pkg::SUM_PROD + mr_row_pkg::PROD_LAT + LV);
      mr_row_pkg::GAIN: drain_of = 6'(mr_row_pkg::GAIN_DY + OP);
      mr_row_pkg::DX:   drain_of = 6'(mr_row_pkg::DX_OUT + OP);
      mr_row_pkg::PROB: drain_of = 6'(mr_row_pkg::P_BY + OP);
      default:          drain_of = 6'(mr_row_pkg::DS_OUT + OP);
    endcase
  endfunction

  always_ff @(posedge clk_i) begin
    done_o <= 1'b0;
    if (!rst_ni) begin
      state_q <= IDLE;
    end else begin
      case (state_q)
        IDLE: if (start) state_q <= POS;
        POS: state_q <= LIMITS;
        LIMITS: state_q <= MASKS;
        MASKS: state_q <= CLEAR;
        CLEAR: state_q <= RUN;
        RUN: if (go && last) state_q <= DRAIN;
        DRAIN: begin
          if (row_end) state_q <= last_row_q ? IDLE : POS;
          else if (drained && !out_pass) state_q <= sums_pass ? SCALARS : CLEAR;
          done_o <= row_end && last_row_q;
        end
        default: if (scalars_done) state_q <= CLEAR;
      endcase
    end
  end
  always_ff @(posedge clk_i) begin
    if (start) row_q <= '0;
    else if (row_end) row_q <= row_q + 16'd1;
    if (state_q == MASKS || (state_q == DRAIN && drained && !out_pass && !sums_pass) ||
        (state_q == SCALARS && scalars_done)) begin
      pass_q <= next_pass;
    end
    // A row begins behind it, and words of the pass before are past its steps.
    if (start) pass_q <= mr_row_pkg::GAIN;
    last_row_q <= row_q == rows_m1_q;
    if (state_q == RUN) drain_q <= drain_of(pass_q);
    else if (drain_q != 6'd0) drain_q <= drain_q - 6'd1;
  end

  // ---- the columns that count: first and last one -----------------------------------------------
  logic [15:0]   lo_q, hi_q;
  logic [V-1:0]  lo_mask_q, hi_mask_q;
  assign row_ren_o   = state_q == POS;
  assign row_raddr_o = row_q[TW-1:0];
  always_ff @(posedge clk_i) begin
    if (start) own_q <= cmd_i[mr_pkg::MOVE_ROWS_OWN_COL_LSB+:16];
    else if (row_end) own_q <= own_q + 16'd1;
    if (state_q == LIMITS) begin
      lo_q <= (!soft_q || row_rdata_i > own_q) ? '0 : own_q - row_rdata_i;
      hi_q <= soft_q ? own_q : n_m1_q;
    end
    if (state_q == MASKS) begin
      lo_mask_q <= {V{1'b1}} << lo_q[LV-1:0];
      hi_mask_q <= {V{1'b1}} >> ~hi_q[LV-1:0];
    end
  end

  // ---- reading ----------------------------------------------------------------------------------
  // A pass with two or four cycles a word reads in every second or fourth cycle.
  logic [1:0]      phase_q, need;
  logic            turn, seen;
  logic [2:0]      flags;
  logic [RESW-1:0] base_q;
  assign seen       = pass_q == mr_row_pkg::MAX || pass_q == mr_row_pkg::SUM;
  assign first_word = seen ? lo_q >> LV : '0;
  assign last_word  = seen ? hi_q >> LV : words_m1_q;
  assign need       = {!stats && (back_q || !soft_q), 1'b1};
  assign turn       = (pass_q == mr_row_pkg::DX || pass_q == mr_row_pkg::DS) ? phase_q == 2'd0 :
                      (out_pass || pass_q == mr_row_pkg::AB) ? !phase_q[0] : 1'b1;
  assign res_ren_o  = {2{state_q == RUN && turn}} & need;
  assign go         = res_ren_o[0] && (need & ~res_grant_i) == 2'd0;
  assign last       = word_q == last_word;
  assign res_raddr_o = base_q + RESW'(word_q);
  assign flags      = {word_q >= (lo_q >> LV) && word_q <= (hi_q >> LV), word_q == (lo_q >> LV),
                       word_q == (hi_q >> LV)};
  always_ff @(posedge clk_i) begin
    phase_q <= (state_q == RUN) ? phase_q + 2'd1 : 2'd0;
    if (state_q == CLEAR) word_q <= first_word;
    else if (go) word_q <= word_q + 16'd1;
    if (start) base_q <= '0;
    else if (row_end) base_q <= base_q + RESW'(ROW);
  end

  // ---- sums to numbers --------------------------------------------------------------------------
  // seq_q[c]: cycle c behind the last sum. AB: 0 A to fp32, 1 B, 3 and 4 times 1/n, 6 and 7 scaled.
  // SUM: 0 the sum of p to fp32, 1 that of p dP, 3 reciprocal, 14 their product, 17 scaled.
  logic [17:0]        seq_q;
  logic [7:0]         top_x, top_y, top_g;
  logic [31:0]        mean, r, cvt_y, mul_y, recip_y, ma_q, mb_q, by_q, d_q;
  logic [47:0]        sum, win_q;
  logic [63:0]        prod;
  logic               wide, wide_q, nan_q, lanes_bad, ab, recip_done;
  logic               stats_ovf, lanes_ovf, cvt_ovf, mul_ovf, unused_cvt, unused_mul;
  logic signed [10:0] unit_q;
  logic [9:0]         fix_q;
  assign scalars_done = ab ? seq_q[7] : back_q ? seq_q[17] : recip_done;
  always_ff @(posedge clk_i) begin
    if (!rst_ni) seq_q <= '0;
    else seq_q <= {seq_q[16:0], state_q == DRAIN && drained && sums_pass};
    ab <= pass_q == mr_row_pkg::AB;  // long before it ends
  end

  // Where more than 47 bits count, the upper ones; the rest is sticky.
  assign wide = prod[63:46] != {18{prod[63]}};
  always_ff @(posedge clk_i) begin
    if (seq_q[0]) begin
      wide_q <= wide;
      win_q  <= wide ? {prod[63], prod[63:18], prod[17] || prod[16:0] != '0} : prod[47:0];
    end
    if (seq_q[6] && ab) ma_q <= mr_fp_pkg::fscale(mul_y, unit_q);
    if (seq_q[7] && ab) mb_q <= mr_fp_pkg::fscale(mul_y, unit_q - 11'sd16);
    if (recip_done) by_q <= recip_y;
    if (seq_q[17]) d_q <= mr_fp_pkg::fscale(mul_y, unit_q);
    // Units of the integers, when the exponents are known: rule 19's k, rule 17's E - 149.
    if (state_q == CLEAR) begin
      unit_q <= soft_q ? 11'({3'd0, top_y}) - 11'd149 :
                         11'({3'd0, top_y}) + 11'({3'd0, top_g}) - 11'd275;
      fix_q  <= soft_q ? 10'({2'd0, top_y}) + 10'd2 :
                         10'({2'd0, top_y}) + 10'({2'd0, top_g}) - 10'd124;
    end
    if (state_q == POS) nan_q <= 1'b0;
    else if (lanes_bad || (stats && (top_x == 8'd255 || (back_q && top_g == 8'd255))) ||
             ((stats || pass_q == mr_row_pkg::SUM) && back_q && top_y == 8'd255)) begin
      nan_q <= 1'b1;
    end
  end
  mr_vacc2f #(.LANES(1)) u_cvt (
    .clk_i, .rst_ni, .valid_i(seq_q[0] || seq_q[1]), .acc_i(seq_q[0] ? sum : win_q),
    .exp_i((seq_q[1] && wide_q) ? 11'd17 : 11'd0), .valid_o(unused_cvt), .y_o(cvt_y),
    .ovf_o(cvt_ovf)
  );
  mr_recip u_recip (
    .clk_i, .rst_ni, .valid_i(seq_q[3] && !ab), .v_i(cvt_y), .valid_o(recip_done), .y_o(recip_y)
  );
  mr_vfmul #(.LANES(1)) u_mul (
    .clk_i, .rst_ni, .valid_i(ab ? seq_q[3] || seq_q[4] : seq_q[14] && back_q), .a_i(cvt_y),
    .b_i(ab ? inv_n_q : recip_y), .valid_o(unused_mul), .y_o(mul_y), .ovf_o(mul_ovf)
  );
  mr_norm_stats #(.V(V)) u_stats (
    .clk_i, .rst_ni, .busy_i(busy_o), .ren_i(go && stats), .first_i(word_q == '0), .last_i(last),
    .data_i(res1_rdata_i), .top_i(top_x), .nan_i(top_x == 8'd255), .n_i(n_q), .inv_n_i(inv_n_q),
    .inv_n2_i(inv_n2_q), .eps_i(eps_q), .done_o(stats_done), .mean_o(mean), .r_o(r),
    .ovf_o(stats_ovf)
  );

  // ---- the lanes --------------------------------------------------------------------------------
  logic            out_valid;
  logic [V*32-1:0] out;
  logic [15:0]     vec_word_q;
  mr_row_lanes #(.V(V)) u_lanes (
    .clk_i, .rst_ni, .pass_i(pass_q), .clear_i(state_q == CLEAR), .issue_i(go), .flags_i(flags),
    .lo_i(lo_mask_q), .hi_i(hi_mask_q), .x_i(res1_rdata_i), .y_i(res2_rdata_i), .vec_ren_o,
    .vec_i(vec_rdata_i), .mean_i(mean), .r_i(r), .ma_i(ma_q), .mb_i(mb_q), .scale_i(scale_q),
    .by_i(by_q), .d_i(d_q), .grad_scale_i(grad_scale_q), .fix_i(fix_q), .nan_i(nan_q),
    .top_x_o(top_x), .top_y_o(top_y), .top_g_o(top_g), .sum_o(sum), .prod_o(prod),
    .bad_o(lanes_bad), .out_valid_o(out_valid), .out_o(out), .nan_o, .ovf_o(lanes_ovf)
  );
  assign vec_raddr_o = VEC_AW'(vec_word_q);
  assign ovf_o       = stats_ovf || lanes_ovf || cvt_ovf || mul_ovf;
  always_ff @(posedge clk_i) begin
    if (state_q == CLEAR) vec_word_q <= '0;
    else if (vec_ren_o) vec_word_q <= vec_word_q + 16'd1;
  end

  // ---- writing ----------------------------------------------------------------------------------
  // A result is written in the cycle after it has come. The last row ends two cycles later than
  // that asks for, so that cycle counts which are written down stay.
  logic [1:0]      late_q;
  logic [RESW-1:0] out_at_q;
  assign gone    = !out_valid && late_q == 2'd0;
  assign wr_en_o = {2{late_q[0]}} & {back_q, !back_q};
  always_ff @(posedge clk_i) begin
    late_q <= rst_ni ? {late_q[0], out_valid} : '0;
    if (state_q == CLEAR) out_at_q <= base_q;
    else if (out_valid) out_at_q <= out_at_q + RESW'(1);
    if (out_valid) {wr_addr_o, wr_data_o} <= {out_at_q, out};
  end

  `MR_ASSERT(pass, state_q == IDLE || pass_q <= mr_row_pkg::DS)

endmodule
