// SPDX-License-Identifier: Apache-2.0
// STORE_KV and STORE_RES: quantised K or V records, prefix maxima and residual rows to mr_writer.
// mr_row_beats reads the rows.
//
// Parameters
//   N          channels, a power of two: position p lies on channel p mod N, at local index p / N
//   T          tokens
//   V          lanes of the residual memory, 4..64, a power of two
//   SLOTS      row slots of the q/k/v memory
//   QKV_WORDS  528-bit words a row slot
//   PM_WORDS   16-bit words (two blocks) a token in the prefix-maximum memory
//   D_MAX      floats a token in the residual memory
//
// Command: cmd_valid_i/cmd_ready_o, fields of STORE_KV (cmd_res_i 0) or STORE_RES (cmd_res_i 1),
// cmd_rows_i tokens, cmd_two_pass_i; done_o pulse when all write responses are in. kv_*, res_* and
// cmd_* need not be stable after cmd_ready_o, but for the window and kv_*_beats inputs, which hold
// for the run. A record (scale beats, data beats), a token's prefix maxima, a residual row: one job
// each.
// RAM ports, data one cycle after ren and held: row table (row_), q/k/v memory (qkv_, address slot
// * QKV_WORDS + word, slot = 2 * token when two-pass; word = {code, 256 bits} x 2), prefix maxima
// (pm_, address token * PM_WORDS + word), residual (res_m_, address token * (D_MAX/V) + word;
// res_m_want_o, from a register: it may be read in this cycle).
// Fields are legal, and residual rows lie in the result window (mr_legal).
// Errors: err_valid_o pulse, WINDOW: a record outside its KV window, err_addr_o where it would
// start. The command stops there, waits for what is under way and gives done_o.
`include "mr_assert.svh"
`include "mr_bundles.svh"
module mr_kvstore #(
  parameter int N = 1,
  parameter int T = 8,
  parameter int V = 4,
  parameter int SLOTS = T,
  parameter int QKV_WORDS = 32,
  parameter int PM_WORDS = 8,
  parameter int D_MAX = 64,
  localparam int TW = $clog2(T),
  localparam int QAW = $clog2(SLOTS * QKV_WORDS),
  localparam int PAW = $clog2(T * PM_WORDS),
  localparam int RAW = $clog2(T * (D_MAX / V))
) (
  input  logic             clk_i,
  input  logic             rst_ni,

  input  logic             cmd_valid_i,
  output logic             cmd_ready_o,
  input  logic             cmd_res_i,
  input  logic [15:0]      cmd_layer_i,
  input  logic [15:0]      cmd_src_base_i,
  input  logic [15:0]      cmd_wbeats_i,   // W/64
  input  logic             cmd_is_v_i,
  input  logic [31:0]      cmd_out_off_i,
  input  logic [15:0]      cmd_res_beats_i,
  input  logic [15:0]      cmd_rows_i,
  input  logic             cmd_two_pass_i,
  output logic             done_o,

  // Windows: 64-byte aligned byte addresses, sizes in beats.
  // verilator lint_off UNUSED
  input  logic [N*64-1:0]  kv_base_i,
  input  logic [63:0]      res_base_i,
  // verilator lint_on UNUSED
  input  logic [N*32-1:0]  kv_limit_i,
  `MR_KV_AT_S(kv_),
  `MR_ERR_M(err_, 1),

  `MR_RAM_R_M(row_, TW, 48),  // {pos, kv_off}
  `MR_RAM_R_M(qkv_, QAW, 528),
  `MR_RAM_R_M(pm_, PAW, 16),
  `MR_RAM_R_M(res_m_, RAW, V*32),
  output logic             res_m_want_o,

  `MR_WR_M(, 1)
);

  localparam int LN = $clog2(N);

  localparam logic [3:0] S_IDLE = 4'd0, S_PREP = 4'd1, S_TOKEN = 4'd2, S_ROW = 4'd3, S_MUL = 4'd4,
                         S_ADD = 4'd5, S_SUM = 4'd6, S_CHECK = 4'd7, S_JOB = 4'd8, S_CODES = 4'd9,
                         S_BEAT = 4'd10, S_DATA = 4'd11, S_RES = 4'd12, S_NEXT = 4'd13,
                         S_WAIT = 4'd14;
  logic [3:0]  state_q;

  // ---- command ----------------------------------------------------------------------------------
  logic        is_res_q, is_v_q, two_pass_q, pm_q;  // pm_q: the prefix maxima's turn
  logic [15:0] layer_q, wbeats_q, rows_q, res_beats_q;
  // The high bits are zero: the words lie in the q/k/v memory.
  // verilator lint_off UNUSED
  logic [15:0] src_q;
  // verilator lint_on UNUSED
  logic [31:0] out_off_q;
  logic [15:0] sbeats_q;   // scale beats of a record
  logic [15:0] rbeats_q;   // beats of a record
  logic [31:0] layer_lo_q, layer_hi_q;  // layer * kv_layer_beats = lo + hi * 2^16

  logic [15:0] tok_q;
  logic [31:0] kv_off_q;
  logic [15:0] pos_q;
  logic [31:0] local_off_q;
  logic [49:0] part_q;     // kv_off + layer
  logic [49:0] base_off_q; // the same with the kind's offset
  logic [49:0] off_q;      // beats from the window's start
  logic [15:0] beats_q;    // of this job
  logic [49:0] res_off_q;  // residual row's place

  // ---- window of the position's channel ---------------------------------------------------------
  logic [57:0] win_base_q;
  logic [31:0] win_limit_q;
  logic        bad_q;
  logic [15:0] chan;
  assign chan = pos_q & 16'(N - 1);
  logic [15:0] local_pos, slot;
  assign local_pos = pos_q >> LN;
  assign slot      = two_pass_q ? {tok_q[14:0], 1'b0} : tok_q;
  logic [31:0] kind_off;
  assign kind_off = pm_q ? kv_pm_beats_i : is_v_q ? kv_v_beats_i : 32'd0;

  logic out_free, fill_end, data_end, res_end;
  logic [15:0] jobs_q;  // not yet acknowledged
  logic job_fire, tok_last;
  assign job_fire = job_valid_o && job_ready_i;
  assign tok_last = (tok_q + 16'd1 == rows_q);
  assign cmd_ready_o = (state_q == S_IDLE);

  logic [15:0] sb_left_q;  // scale beats of the job still to come
  logic        off_bad;
  assign off_bad = ({1'b0, off_q} + 51'(beats_q) > 51'(win_limit_q));

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      state_q <= S_IDLE;
      done_o  <= 1'b0;
      jobs_q  <= '0;
    end else begin
      done_o <= 1'b0;
      jobs_q <= jobs_q + 16'(job_fire) - 16'(job_done_i);
      unique case (state_q)
        S_IDLE: if (cmd_valid_i) state_q <= S_PREP;
        S_PREP: state_q <= S_TOKEN;
        S_TOKEN: state_q <= S_ROW;
        S_ROW: state_q <= S_MUL;
        S_MUL: state_q <= S_ADD;
        S_ADD: state_q <= S_SUM;
        S_SUM: state_q <= S_CHECK;
        S_CHECK: state_q <= S_JOB;
        S_JOB: begin
          if (bad_q) state_q <= S_WAIT;
          else if (job_ready_i) state_q <= is_res_q ? S_RES : S_CODES;
        end
        S_CODES: if (fill_end) state_q <= S_BEAT;
        S_BEAT: begin
          if (out_free) begin
            if (sb_left_q != 16'd1) state_q <= S_CODES;
            else state_q <= pm_q ? S_NEXT : S_DATA;
          end
        end
        S_DATA: if (data_end) state_q <= S_NEXT;
        S_RES: if (res_end) state_q <= S_NEXT;
        S_NEXT: begin
          if (!is_res_q && is_v_q && !pm_q) state_q <= S_ADD;
          else state_q <= tok_last ? S_WAIT : S_TOKEN;
        end
        S_WAIT: begin
          if (jobs_q == '0) begin
            state_q <= S_IDLE;
            done_o  <= 1'b1;
          end
        end
        default: state_q <= S_IDLE;
      endcase
    end
  end

  assign job_valid_o = (state_q == S_JOB) && !bad_q;
  assign job_addr_o  = {win_base_q + 58'(off_q), 6'b0};
  assign job_beats_o = beats_q;
  assign job_strb_o  = '1;

  always_ff @(posedge clk_i) begin
    unique case (state_q)
      S_IDLE: begin
        if (cmd_valid_i) begin
          is_res_q    <= cmd_res_i;
          is_v_q      <= cmd_is_v_i;
          two_pass_q  <= cmd_two_pass_i;
          layer_q     <= cmd_layer_i;
          src_q       <= cmd_src_base_i;
          wbeats_q    <= cmd_wbeats_i;
          rows_q      <= cmd_rows_i;
          out_off_q   <= cmd_out_off_i;
          res_beats_q <= cmd_res_beats_i;
          sbeats_q    <= {5'b0, cmd_wbeats_i[15:5]} + 16'(cmd_wbeats_i[4:0] != '0);
          tok_q       <= '0;
        end
      end
      S_PREP: begin
        layer_lo_q  <= 32'(layer_q) * 32'(kv_layer_beats_i[15:0]);
        layer_hi_q  <= 32'(layer_q) * 32'(kv_layer_beats_i[31:16]);
        rbeats_q    <= wbeats_q + sbeats_q;
        res_off_q   <= 50'(out_off_q);
        pm_q        <= 1'b0;
      end
      S_ROW: {pos_q, kv_off_q} <= row_rdata_i;
      S_MUL: begin
        // Both sums at once: the prefix maxima of V come after its record.
        local_off_q <= 32'(local_pos) * 32'(rbeats_q);
        part_q      <= 50'(kv_off_q) + 50'(layer_lo_q) + {2'b0, layer_hi_q, 16'b0};
      end
      S_ADD: begin
        if (pm_q) local_off_q <= 32'(local_pos) * 32'(sbeats_q);
        base_off_q <= part_q + 50'(kind_off);
        if (is_res_q) begin
          win_base_q <= res_base_i[63:6];
          beats_q    <= res_beats_q;
        end else begin
          for (int c = 0; c < N; c++) begin
            if (chan == 16'(c)) begin
              win_base_q  <= kv_base_i[c*64+6+:58];
              win_limit_q <= kv_limit_i[c*32+:32];
            end
          end
          beats_q <= pm_q ? sbeats_q : rbeats_q;
        end
      end
      S_SUM: off_q <= is_res_q ? res_off_q : base_off_q + 50'(local_off_q);
      S_CHECK: bad_q <= !is_res_q && off_bad;
      S_JOB: sb_left_q <= sbeats_q;
      S_BEAT: if (out_free) sb_left_q <= sb_left_q - 16'd1;
      S_NEXT: begin
        pm_q <= !is_res_q && is_v_q && !pm_q;
        if (is_res_q || !is_v_q || pm_q) begin
          tok_q     <= tok_q + 16'd1;
          res_off_q <= res_off_q + 50'(res_beats_q);
        end
      end
      default: ;
    endcase
  end

  assign row_ren_o   = (state_q == S_TOKEN);
  assign row_raddr_o = TW'(tok_q);

  // ---- reads ------------------------------------------------------------------------------------
  // word_q is the next word of the record, from 0 for the codes and from 0 again for the data. One
  // read is outstanding or at the RAM's output (rv_q); it is taken when `grab`.
  logic [15:0]    word_q;
  logic [5:0]     fill_q;     // codes gathered into the scale beat, in words; 32 is a beat
  logic           rv_q, ren, grab;
  logic           rv_zero_q;  // beyond the record's end: zero codes
  logic           more_q;     // words of the data are still to be read
  logic           ren_codes, ren_data;
  logic [15:0]    code_word_q;
  logic [QAW-1:0] qkv_row_q;
  logic [PAW-1:0] pm_row_q;
  logic [5:0]     issue_q;    // codes asked for

  // Whether the writer takes a beat is known late in the cycle, so little is behind it: codes never
  // wait for it.
  assign ren_codes = (state_q == S_CODES) && !issue_q[5];
  assign ren_data  = (state_q == S_DATA) && more_q && (!rv_q || out_free);
  assign ren       = ren_codes || ren_data;

  logic           code_in;
  logic [QAW-1:0] qkv_word;
  assign qkv_word      = (state_q == S_DATA) ? QAW'(word_q) : QAW'(code_word_q);
  assign code_in       = (code_word_q < wbeats_q);
  assign qkv_ren_o     = ren_data || (ren_codes && !pm_q && code_in);
  assign pm_ren_o      = ren_codes && pm_q && code_in;
  assign qkv_raddr_o   = qkv_row_q + qkv_word;
  assign pm_raddr_o    = pm_row_q + PAW'(code_word_q);

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      rv_q <= 1'b0;
    end else begin
      if (ren) rv_q <= 1'b1;
      else if (grab) rv_q <= 1'b0;
    end
  end

  always_ff @(posedge clk_i) begin
    if (state_q == S_ADD) begin
      qkv_row_q <= QAW'(32'(slot) * QKV_WORDS) + QAW'(src_q);
      pm_row_q  <= PAW'(32'(tok_q) * PM_WORDS);
    end
    if (state_q == S_JOB) begin
      word_q      <= '0;
      more_q      <= (wbeats_q != '0);
      code_word_q <= '0;
      issue_q     <= '0;
      fill_q      <= '0;
    end else if (state_q == S_BEAT) begin
      issue_q <= '0;
      fill_q  <= '0;
    end else begin
      if (ren_codes) begin
        issue_q     <= issue_q + 6'd1;
        code_word_q <= code_word_q + 16'd1;
        rv_zero_q   <= !code_in;
      end
      if (ren_data) begin
        word_q <= word_q + 16'd1;
        more_q <= (word_q + 16'd1 != wbeats_q);
      end
      if (grab && (state_q == S_CODES)) fill_q <= fill_q + 6'd1;
    end
  end

  // ---- beats ------------------------------------------------------------------------------------
  logic [511:0] asm_q, out_q;
  logic         out_valid_q;
  logic [15:0]  sent_q;  // beats of the row or record
  logic         load;
  logic [15:0]  codes;
  assign out_free = !out_valid_q || data_ready_i;
  assign codes    = rv_zero_q ? 16'd0 : pm_q ? pm_rdata_i :
                    {qkv_rdata_i[527:520], qkv_rdata_i[263:256]};
  assign fill_end = (fill_q == 6'd32);

  logic         res_valid;
  logic [511:0] res_beat;
  mr_row_beats #(.T(T), .V(V), .D_MAX(D_MAX)) u_row_beats (
    .clk_i, .rst_ni, .start_i(is_res_q && (state_q == S_JOB)), .tok_i(tok_q), .beats_i(res_beats_q),
    .ren_o(res_m_ren_o), .want_o(res_m_want_o), .raddr_o(res_m_raddr_o), .rdata_i(res_m_rdata_i),
    .out_valid_o(res_valid), .out_ready_i(out_free && (state_q == S_RES)), .out_data_o(res_beat)
  );

  always_comb begin
    unique case (state_q)
      S_CODES: begin
        grab = rv_q;
        load = 1'b0;
      end
      S_BEAT: begin
        grab = 1'b0;
        load = out_free;
      end
      S_DATA: begin
        grab = rv_q && out_free;
        load = grab;
      end
      S_RES: begin
        grab = 1'b0;
        load = res_valid && out_free;
      end
      default: begin
        grab = 1'b0;
        load = 1'b0;
      end
    endcase
  end
  assign data_end = load && (sent_q + 16'd1 == wbeats_q);
  assign res_end  = load && (sent_q + 16'd1 == res_beats_q);

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      out_valid_q <= 1'b0;
    end else begin
      if (load) out_valid_q <= 1'b1;
      else if (data_ready_i) out_valid_q <= 1'b0;
    end
  end
  always_ff @(posedge clk_i) begin
    if (state_q == S_JOB) begin
      sent_q <= '0;
    end else begin
      if (load && (state_q != S_BEAT)) sent_q <= sent_q + 16'd1;
    end
  end

  always_ff @(posedge clk_i) begin
    if (grab && (state_q == S_CODES)) asm_q <= {codes, asm_q[511:16]};
    if (load) begin
      unique case (state_q)
        S_BEAT:  out_q <= asm_q;
        S_DATA:  out_q <= {qkv_rdata_i[519:264], qkv_rdata_i[255:0]};
        default: out_q <= res_beat;
      endcase
    end
  end

  assign data_valid_o = out_valid_q;
  assign data_o       = out_q;

  // ---- errors -----------------------------------------------------------------------------------
  logic        err_q;
  logic [63:0] err_addr_q;
  always_ff @(posedge clk_i) begin
    if (!rst_ni) err_q <= 1'b0;
    else err_q <= (state_q == S_JOB) && bad_q;
  end
  always_ff @(posedge clk_i) begin
    if ((state_q == S_JOB) && bad_q) err_addr_q <= job_addr_o;
  end
  assign err_valid_o = err_q;
  assign err_code_o  = mr_pkg::DEVERR_WINDOW[7:0];
  assign err_addr_o  = err_addr_q;

  `MR_ASSERT(state, state_q <= S_WAIT)
  `MR_ASSERT_COUNT(jobs, jobs_q, job_fire, job_done_i, 65535)
  `MR_ASSERT(codes, state_q != S_CODES || fill_q <= 6'd32)

endmodule
