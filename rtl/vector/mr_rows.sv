// SPDX-License-Identifier: Apache-2.0
// LOAD_ROWS: row table, rotary rows and residual rows of all tokens from the input window. With
// TRAIN FETCH_ROWS too: residual rows alone.
//
// Parameters
//   T        tokens
//   V        vector lanes: floats of a rotary or residual word, 4..64, a power of two
//   D_MAX    floats a token in the residual memory, a multiple of V
//   ROT_MAX  floats a token in the rotary memory, a multiple of V
//   CTX_MAX  positions are below it
//   TRAIN    1: cmd_fetch_i and cmd_add_i are looked at
//
// Command: cmd_valid_i/cmd_ready_o, fields of LOAD_ROWS and cmd_rows_i tokens (1..T); done_o pulse
// when all is in the memories and registers, or is written in this cycle. base_i (64-byte aligned):
// the input window. Fields and what is read of the window are legal (mr_legal). cmd_fetch_i: the
// row table is not read and what it has left stays; cmd_rot_beats_i is 0 then. With cmd_add_i the
// words are sums of the residual memory's and the window's: the memory is read by res_ren_o, its
// word comes a cycle later.
// Errors: err_valid_o pulse before done_o, COMMAND, address of the beat; loading goes on. Reserved
// bits in the row table, pos >= CTX_MAX, an end that is not above pos or is above CTX_MAX,
// continues on the first row or where region, position and end do not. Only the first error is
// reported.
// Host reads: one client of mr_hostrd; no more is requested than the buffer of 128 beats has room
// for.
// LayerNorm's words on their way back into the residual memory come by back_, with back_data_i,
// while no command runs; like a command's they leave by res_, a cycle later, and rexp_.
// Outputs: row_b_: RAM port {pos[15:0], kv_off[31:0]} by token; row_c_: of pos, with TRAIN; row_a_:
// {has an end, last[15:0]} above row_b_'s, the last position that the token sees: end - 1 or pos.
// row_logit_o, row_continues_o: bit per token, n_logit_rows_o: all stable from done_o on, bits of
// tokens not loaded are 0. rot_we_o: rot_wdata_o to rotary memory, address token * (ROT_MAX/V) +
// word; res_we_o, res_wdata_o the same with D_MAX; rexp_we_o: largest exponent field of the token's
// residual row, after its last word. ovf_o: pulse, a sum of finite values overflowed.
`include "mr_assert.svh"
`include "mr_bundles.svh"
module mr_rows #(
  parameter int T = 8,
  parameter int V = 4,
  parameter int D_MAX = 64,
  parameter int ROT_MAX = 64,
  parameter int CTX_MAX = 4096,
  parameter int TRAIN = 0,
  localparam int TW = $clog2(T),
  localparam int RESW = $clog2(T * (D_MAX / V)),
  localparam int ROTW = $clog2(T * (ROT_MAX / V))
) (
  input  logic             clk_i,
  input  logic             rst_ni,

  input  logic             cmd_valid_i,
  output logic             cmd_ready_o,
  // Without TRAIN nobody asks.
  // verilator lint_off UNUSED
  input  logic             cmd_fetch_i,
  input  logic             cmd_add_i,
  // verilator lint_on UNUSED
  input  logic [31:0]      cmd_table_off_i,
  input  logic [31:0]      cmd_rot_off_i,
  input  logic [31:0]      cmd_res_off_i,
  input  logic [15:0]      cmd_res_beats_i,
  input  logic [15:0]      cmd_rot_beats_i,
  input  logic [15:0]      cmd_rows_i,
  output logic             done_o,

  // The low bits are zero.
  // verilator lint_off UNUSED
  input  logic [63:0]      base_i,
  // verilator lint_on UNUSED
  `MR_ERR_M(err_, 1),

  `MR_RD_M(hr_, 1),

  `MR_RAM_R_S(row_a_, TW, 65),
  `MR_RAM_R_S(row_b_, TW, 48),
  // With TRAIN.
  // verilator lint_off UNUSED
  `MR_RAM_R_S(row_c_, TW, 16),
  // verilator lint_on UNUSED
  output logic [T-1:0]     row_logit_o,
  output logic [T-1:0]     row_continues_o,
  output logic [15:0]      n_logit_rows_o,

  `MR_RAM_W_M(rot_, ROTW, V*32),
  // Without TRAIN nobody asks.
  // verilator lint_off UNUSED
  `MR_RAM_R_M(res_, RESW, V*32),
  // verilator lint_on UNUSED
  `MR_RAM_W_M(res_, RESW, V*32),
  output logic             ovf_o,
  `MR_ROW_AT_S(back_, RESW, TW),
  input  logic [V*32-1:0]  back_data_i,
  `MR_RAM_W_M(rexp_, TW, 8)
);

  localparam int BUF = 128;
  localparam int PARTS = (V < 16) ? 16 / V : 1;   // words of a beat
  localparam int RES_TOK = D_MAX / V;
  localparam int ROT_TOK = ROT_MAX / V;

  localparam logic [2:0] S_IDLE = 3'd0, S_MUL = 3'd1, S_WAIT = 3'd2, S_START = 3'd3, S_RUN = 3'd4,
                         S_DRAIN = 3'd5;
  localparam logic [1:0] P_TABLE = 2'd0, P_ROT = 2'd1, P_RES = 2'd2;

  // ---- command ----------------------------------------------------------------------------------
  logic [2:0]  state_q;
  logic [1:0]  phase_q;
  logic [31:0] off_q    [0:2];
  logic [31:0] beats_q  [0:2];
  logic [15:0] rows_q, res_beats_q, rot_beats_q;
  logic [3:0]  drain_q;

  logic [31:0] cur_off, cur_beats;
  always_comb begin
    unique case (phase_q)
      P_TABLE: {cur_off, cur_beats} = {off_q[0], beats_q[0]};
      P_ROT:   {cur_off, cur_beats} = {off_q[1], beats_q[1]};
      default: {cur_off, cur_beats} = {off_q[2], beats_q[2]};
    endcase
  end

  logic fetch, fetch_q;
  if (TRAIN != 0) begin : gen_fetch
    assign fetch = cmd_fetch_i;
    always_ff @(posedge clk_i) if (cmd_valid_i && cmd_ready_o) fetch_q <= cmd_fetch_i;
  end else begin : gen_no_fetch
    assign {fetch, fetch_q} = '0;
  end

  logic phase_end;  // the phase's last part has been taken from the buffer
  assign cmd_ready_o = (state_q == S_IDLE);

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      state_q <= S_IDLE;
      done_o  <= 1'b0;
    end else begin
      done_o <= 1'b0;
      unique case (state_q)
        S_IDLE: if (cmd_valid_i) state_q <= S_MUL;
        S_MUL: state_q <= S_WAIT;
        // A cycle for each window, as long as a look at it once took: runs' cycles stay.
        S_WAIT: if (phase_q == P_RES) state_q <= S_START;
        S_START: begin
          if (cur_beats != '0) state_q <= S_RUN;
          else if (phase_q == P_RES) state_q <= S_DRAIN;
        end
        S_RUN: if (phase_end) state_q <= (phase_q == P_RES) ? S_DRAIN : S_START;
        S_DRAIN: begin
          if (drain_q[3]) begin
            state_q <= S_IDLE;
            done_o  <= 1'b1;
          end
        end
        default: state_q <= S_IDLE;
      endcase
    end
  end

  always_ff @(posedge clk_i) begin
    unique case (state_q)
      S_IDLE: begin
        if (cmd_valid_i) begin
          off_q[0]    <= cmd_table_off_i;
          off_q[1]    <= cmd_rot_off_i;
          off_q[2]    <= cmd_res_off_i;
          rows_q      <= cmd_rows_i;
          res_beats_q <= cmd_res_beats_i;
          rot_beats_q <= cmd_rot_beats_i;
          phase_q     <= P_TABLE;
          drain_q     <= '0;
        end
      end
      S_MUL: begin
        beats_q[0]  <= fetch_q ? '0 : (32'(rows_q) + 32'd3) >> 2;
        beats_q[1]  <= 32'(rows_q) * 32'(rot_beats_q);
        beats_q[2]  <= 32'(rows_q) * 32'(res_beats_q);
      end
      S_WAIT: begin
        if (phase_q != P_RES) phase_q <= phase_q + 2'd1;
        else phase_q <= P_TABLE;
      end
      S_START: if (cur_beats == '0) phase_q <= phase_q + 2'd1;
      S_RUN: if (phase_end) phase_q <= phase_q + 2'd1;
      S_DRAIN: drain_q <= drain_q + 4'd1;
      default: ;
    endcase
  end

  // ---- requests ---------------------------------------------------------------------------------
  logic [57:0] req_addr_q;
  logic [31:0] req_left_q;
  logic        req_v_q;
  logic [6:0]  req_beats_q;
  logic [7:0]  room_q;  // beats of the buffer that are not promised
  logic        req_fire, req_next, pop;
  logic [6:0]  want_q;  // the next burst; not looked at while one is offered
  logic [31:0] want_of;
  assign want_of  = (state_q == S_START) ? cur_beats : req_left_q;
  assign req_next = (state_q == S_RUN) && !req_v_q && (want_q != '0) && (room_q >= 8'(want_q));
  assign req_fire = req_v_q && hr_ready_i;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      req_v_q <= 1'b0;
      room_q  <= 8'(BUF);
    end else begin
      if (req_next) req_v_q <= 1'b1;
      else if (req_fire) req_v_q <= 1'b0;
      room_q <= room_q - (req_next ? 8'(want_q) : '0) + 8'(pop);
    end
  end
  always_ff @(posedge clk_i) begin
    if (state_q == S_START || req_v_q) begin
      want_q <= (want_of > 32'd64) ? 7'd64 : want_of[6:0];
    end
    if (state_q == S_START) begin
      req_addr_q <= base_i[63:6] + 58'(cur_off);
      req_left_q <= cur_beats;
    end else if (req_next) begin
      req_left_q  <= req_left_q - 32'(want_q);
      req_beats_q <= want_q;
    end else if (req_fire) begin
      req_addr_q <= req_addr_q + 58'(req_beats_q);
    end
  end
  assign hr_valid_o = req_v_q;
  assign hr_addr_o  = {req_addr_q, 6'b0};
  assign hr_beats_o = 16'(req_beats_q);

  // ---- buffer -----------------------------------------------------------------------------------
  logic         f_valid, f_ready;
  logic [511:0] f_data;
  // The buffer has room for all that is requested.
  // verilator lint_off PINCONNECTEMPTY
  mr_fifo #(.W(512), .DEPTH(BUF)) u_buf (
    .clk_i, .rst_ni, .clear_i(1'b0),
    .in_valid_i(hr_data_valid_i), .in_ready_o(), .in_data_i(hr_data_i),
    .out_valid_o(f_valid), .out_ready_i(f_ready), .out_data_o(f_data), .count_o()
  );
  // verilator lint_on PINCONNECTEMPTY

  // Rows of the table have 128 bits; the other phases' words have V floats. With V = 4 that is the
  // same.
  logic            run, step, word_v, w_valid;
  logic [127:0]    row_data;
  logic [V*32-1:0] w_data;
  assign run = state_q == S_RUN;
  if (V == 4) begin : gen_one_width
    mr_width #(.IN(512), .OUT(128)) u_width (
      .clk_i, .rst_ni, .clear_i(phase_end),
      .in_valid_i(f_valid), .in_ready_o(f_ready), .in_data_i(f_data),
      .out_valid_o(w_valid), .out_ready_i(run), .out_data_o(w_data)
    );
    assign row_data = w_data;
    assign step     = w_valid && run;
    assign word_v   = step && phase_q != P_TABLE;
  end else begin : gen_two_widths
    logic t_ready, w_ready, t_valid;
    mr_width #(.IN(512), .OUT(128)) u_table (
      .clk_i, .rst_ni, .clear_i(phase_end),
      .in_valid_i(f_valid && phase_q == P_TABLE), .in_ready_o(t_ready), .in_data_i(f_data),
      .out_valid_o(t_valid), .out_ready_i(run && phase_q == P_TABLE), .out_data_o(row_data)
    );
    mr_width #(.IN(512), .OUT(V * 32)) u_width (
      .clk_i, .rst_ni, .clear_i(phase_end),
      .in_valid_i(f_valid && run && phase_q != P_TABLE), .in_ready_o(w_ready), .in_data_i(f_data),
      .out_valid_o(w_valid), .out_ready_i(run && phase_q != P_TABLE), .out_data_o(w_data)
    );
    assign f_ready = (phase_q == P_TABLE) ? t_ready : run && w_ready;
    assign word_v  = w_valid && run && phase_q != P_TABLE;
    // What is counted: rows, words, or beats of a word that is longer than a beat.
    assign step    = (phase_q == P_TABLE) ? t_valid && run :
                     (V > 16) ? f_valid && run : word_v;
  end
  assign pop = f_valid && f_ready;

  logic [15:0] tok_q, word_q;  // token, and part of it, of this step
  logic [15:0] word_last_q;    // last step of a token
  logic        tok_end;
  assign tok_end   = (word_q == word_last_q);
  assign phase_end = step && tok_end && (tok_q + 16'd1 == rows_q);

  always_ff @(posedge clk_i) begin
    if (state_q == S_START) begin
      tok_q  <= '0;
      word_q <= '0;
      unique case (phase_q)
        P_TABLE: word_last_q <= '0;
        P_ROT:   word_last_q <= rot_beats_q * 16'(PARTS) - 16'd1;
        default: word_last_q <= res_beats_q * 16'(PARTS) - 16'd1;
      endcase
    end else if (step) begin
      word_q <= tok_end ? '0 : word_q + 16'd1;
      if (tok_end) tok_q <= tok_q + 16'd1;
    end
  end

  // ---- row table --------------------------------------------------------------------------------
  logic         row_v_q;
  logic [TW-1:0] row_tok_q;
  logic [127:0] row_q;
  logic [57:0]  row_beat_q;
  always_ff @(posedge clk_i) begin
    if (!rst_ni) row_v_q <= 1'b0;
    else row_v_q <= step && (phase_q == P_TABLE);
  end
  always_ff @(posedge clk_i) begin
    if (step && (phase_q == P_TABLE)) begin
      row_tok_q  <= TW'(tok_q);
      row_q      <= row_data;
      row_beat_q <= base_i[63:6] + 58'(off_q[0]) + 58'(tok_q[15:2]);
    end
  end

  logic [T-1:0] logit_q, cont_q;
  logic [15:0]  n_logit_q;
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      logit_q   <= '0;
      cont_q    <= '0;
      n_logit_q <= '0;
    end else if (cmd_valid_i && cmd_ready_o && !fetch) begin
      logit_q   <= '0;
      cont_q    <= '0;
      n_logit_q <= '0;
    end else if (row_v_q) begin
      logit_q[row_tok_q] <= row_q[64];
      cont_q[row_tok_q]  <= row_q[65];
      n_logit_q          <= n_logit_q + 16'(row_q[64]);
    end
  end
  assign row_logit_o     = logit_q;
  assign row_continues_o = cont_q;
  assign n_logit_rows_o  = n_logit_q;

  logic        has_end;
  logic [15:0] last;
  assign has_end = row_q[127:96] != '0;
  assign last    = has_end ? row_q[111:96] - 16'd1 : row_q[47:32];

  // One copy for each reader.
  mr_ram_1r1w #(.W(65), .DEPTH(T)) u_row_a (
    .clk_i, .wen_i(row_v_q), .waddr_i(row_tok_q), .wdata_i({has_end, last, row_q[47:0]}),
    .ren_i(row_a_ren_i), .raddr_i(row_a_raddr_i), .rdata_o(row_a_rdata_o)
  );
  mr_ram_1r1w #(.W(48), .DEPTH(T)) u_row_b (
    .clk_i, .wen_i(row_v_q), .waddr_i(row_tok_q), .wdata_i(row_q[47:0]),
    .ren_i(row_b_ren_i), .raddr_i(row_b_raddr_i), .rdata_o(row_b_rdata_o)
  );
  if (TRAIN != 0) begin : gen_row_c
    mr_ram_1r1w #(.W(16), .DEPTH(T)) u_row_c (
      .clk_i, .wen_i(row_v_q), .waddr_i(row_tok_q), .wdata_i(row_q[47:32]),
      .ren_i(row_c_ren_i), .raddr_i(row_c_raddr_i), .rdata_o(row_c_rdata_o)
    );
  end else begin : gen_no_row_c
    assign row_c_rdata_o = '0;
  end

  // A row that continues is of the same region as the row before, one position on.
  logic        row_bad, apart;
  logic [95:0] before_q;  // end, position and region of the row before
  always_ff @(posedge clk_i) begin
    if (row_v_q) before_q <= {row_q[127:96], row_q[63:0]};
  end
  assign apart   = (row_tok_q == '0) || (row_q[31:0] != before_q[31:0]) ||
                   (row_q[63:32] != before_q[63:32] + 32'd1) || (row_q[127:96] != before_q[95:64]);
  assign row_bad = (row_q[63:32] >= 32'(CTX_MAX)) || (row_q[95:66] != '0) ||
                   (row_q[127:96] > 32'(CTX_MAX)) ||
                   (has_end && row_q[127:96] <= row_q[63:32]) || (row_q[65] && apart);

  // ---- words ------------------------------------------------------------------------------------
  logic            rot_we_q, res_we_q;
  logic [V*32-1:0] wdata_q;
  always_ff @(posedge clk_i) begin
    if (word_v) wdata_q <= w_data;
    else if (back_we_i) wdata_q <= back_data_i;
  end

  logic [RESW-1:0] res_addr_q;
  logic [ROTW-1:0] rot_addr_q;
  logic [RESW-1:0] res_tok_q;  // first word of the token
  logic [ROTW-1:0] rot_tok_q;
  logic [TW-1:0]   we_tok_q;
  logic [15:0]     wcount_q;   // word inside the token
  logic            we_first_q, we_last_q;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      rot_we_q <= 1'b0;
      res_we_q <= 1'b0;
    end else begin
      rot_we_q <= word_v && (phase_q == P_ROT);
      res_we_q <= back_we_i || (word_v && (phase_q == P_RES));
    end
  end
  always_ff @(posedge clk_i) begin
    if (state_q == S_START) begin
      res_tok_q <= '0;
      rot_tok_q <= '0;
      wcount_q  <= '0;
    end else if (word_v) begin
      wcount_q <= tok_end ? '0 : wcount_q + 16'd1;
      if (tok_end) begin
        res_tok_q <= res_tok_q + RESW'(RES_TOK);
        rot_tok_q <= rot_tok_q + ROTW'(ROT_TOK);
      end
    end
    if (word_v) begin
      res_addr_q <= res_tok_q + RESW'(wcount_q);
      rot_addr_q <= rot_tok_q + ROTW'(wcount_q);
      we_tok_q   <= TW'(tok_q);
      we_first_q <= (wcount_q == '0);
      we_last_q  <= tok_end;
    end else if (back_we_i) begin
      res_addr_q <= back_waddr_i;
      we_tok_q   <= back_tok_i;
      we_first_q <= back_first_i;
      we_last_q  <= back_last_i;
    end
  end
  assign rot_we_o    = rot_we_q;
  assign rot_waddr_o = rot_addr_q;
  assign rot_wdata_o = wdata_q;

  // A sum is written FADD_LAT + 2 cycles after the word that comes from the host would be: its
  // memory's output, one of two, has a register before the adder. The words of a command have
  // different addresses, so nothing is read that is still to be written.
  logic            w_v, w_first, w_last;
  logic [TW-1:0]   w_tok;
  logic [V*32-1:0] w_word;
  if (TRAIN != 0) begin : gen_add
    localparam int LATE = 2 + mr_fp_pkg::FADD_LAT;
    localparam int TAG_W = RESW + TW + 2;
    logic                  add_q, sum_v;
    logic [1:0]            read_q;
    logic [V*32-1:0]       host_q, add_a_q, add_b_q, sum;
    logic [TAG_W-1:0]      tag;
    logic [TAG_W*LATE-1:0] tags_q;
    assign tag         = {res_addr_q, we_tok_q, we_first_q, we_last_q};
    assign res_ren_o   = res_we_q && add_q;
    assign res_raddr_o = res_addr_q;
    always_ff @(posedge clk_i) begin
      if (!rst_ni) read_q <= '0;
      else read_q <= {read_q[0], res_ren_o};
    end
    always_ff @(posedge clk_i) begin
      if (back_we_i) add_q <= 1'b0;
      else if (cmd_valid_i && cmd_ready_o) add_q <= cmd_fetch_i && cmd_add_i;
      host_q  <= wdata_q;
      add_a_q <= res_rdata_i;
      add_b_q <= host_q;
      tags_q  <= {tags_q[TAG_W*(LATE-1)-1:0], tag};
    end
    mr_vfadd #(.LANES(V)) u_add (
      .clk_i, .rst_ni, .valid_i(read_q[1]), .a_i(add_a_q), .b_i(add_b_q), .valid_o(sum_v),
      .y_o(sum), .ovf_o
    );
    assign res_we_o    = add_q ? sum_v : res_we_q;
    assign res_wdata_o = add_q ? sum : wdata_q;
    // The word is one of two. It has a register before exponents are compared.
    logic [TW+1:0]   late, late_q;
    logic            late_v_q;
    logic [V*32-1:0] late_word_q;
    assign {res_waddr_o, late} = add_q ? tags_q[TAG_W*(LATE-1)+:TAG_W] : tag;
    always_ff @(posedge clk_i) begin
      if (!rst_ni) late_v_q <= 1'b0;
      else late_v_q <= res_we_o;
      late_q <= late;
      if (res_we_o) late_word_q <= res_wdata_o;
    end
    assign {w_v, w_word, w_tok, w_first, w_last} = {late_v_q, late_word_q, late_q};
  end else begin : gen_no_add
    assign {res_ren_o, res_raddr_o, ovf_o} = '0;
    assign res_we_o    = res_we_q;
    assign res_wdata_o = wdata_q;
    assign res_waddr_o = res_addr_q;
    assign {w_v, w_word, w_tok, w_first, w_last} = {res_we_q, wdata_q, we_tok_q, we_first_q,
                                                    we_last_q};
  end

  // ---- largest exponent of the row --------------------------------------------------------------
  logic          ex_v, ex1_first_q, ex1_last_q, ex2_first_q, ex2_last_q;
  logic [7:0]    ex_max, acc_q;
  logic [TW-1:0] ex1_tok_q, ex2_tok_q, rexp_tok_q;
  logic          rexp_we_q;
  mr_expmax #(.LANES(V)) u_expmax (
    .clk_i, .rst_ni, .valid_i(w_v), .data_i(w_word), .valid_o(ex_v), .max_o(ex_max)
  );
  always_ff @(posedge clk_i) begin
    ex1_first_q <= w_first;
    ex1_last_q  <= w_last;
    ex1_tok_q   <= w_tok;
    ex2_first_q <= ex1_first_q;
    ex2_last_q  <= ex1_last_q;
    ex2_tok_q   <= ex1_tok_q;
    if (ex_v) begin
      acc_q      <= (ex2_first_q || (ex_max > acc_q)) ? ex_max : acc_q;
      rexp_tok_q <= ex2_tok_q;
    end
  end
  always_ff @(posedge clk_i) begin
    if (!rst_ni) rexp_we_q <= 1'b0;
    else rexp_we_q <= ex_v && ex2_last_q;
  end
  assign rexp_we_o    = rexp_we_q;
  assign rexp_waddr_o = rexp_tok_q;
  assign rexp_wdata_o = acc_q;

  // ---- errors -----------------------------------------------------------------------------------
  logic        err_q, seen_q, row_err;
  logic [63:0] err_addr_q;
  assign row_err = row_v_q && row_bad;
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      err_q  <= 1'b0;
      seen_q <= 1'b0;
    end else begin
      err_q <= row_err && !seen_q;
      if (row_err) seen_q <= 1'b1;
      else if (state_q == S_IDLE) seen_q <= 1'b0;
    end
  end
  always_ff @(posedge clk_i) begin
    if (row_err && !seen_q) err_addr_q <= {row_beat_q, 6'b0};
  end
  assign err_valid_o = err_q;
  assign err_code_o  = mr_pkg::DEVERR_COMMAND[7:0];
  assign err_addr_o  = err_addr_q;

  `MR_ASSERT(state, state_q <= S_DRAIN)
  `MR_ASSERT(phase, state_q == S_IDLE || state_q == S_DRAIN || phase_q <= P_RES)
  `MR_ASSERT_STABLE(hr, hr_valid_o, hr_ready_i, {hr_addr_o, hr_beats_o})
  `MR_ASSERT_COUNT(room, room_q, pop, req_next ? want_q : 7'd0, BUF)
  `MR_ASSERT(back, !back_we_i || state_q == S_IDLE)

endmodule
