// SPDX-License-Identifier: Apache-2.0
// Attention and the KV store: the queues of ATTENTION (PM_LOAD, ATTEND) and WRITER (STORE_KV,
// STORE_RES), and the memories between them: q/k/v of the current layer, prefix maxima of V.
//
// mr_vec_out writes q, k and v and the scale codes of v. mr_kvstore puts k, v and the prefix maxima
// into the KV store (and residual rows into the result); mr_attn reads q here and K and V as they
// come from the channels, and writes blocks to activation memory.
//
// With TRAIN the store has SAVE_ROWS, a STORE_RES of either row memory to another window, and
// ATTEND has KEEP.
//
// Parameters: TRAIN, N, T, SCORES, QKV_WORDS, W_MAX, CTX_MAX, D_MAX as everywhere; HEADS_MAX,
// HP_MAX, PM_WORDS, KV_DEPTH, FOLD as mr_attn's.
//
// Ports
//   clk_i      of the memories; clk_attn_i of mr_attn, clk_store_i of mr_kvstore
//   at_, st_   commands of the two queues: valid/ready, 512 bits, done pulse
//   err_       the low part is mr_kvstore's (UNIT_STORE), the high part an attention command whose
//              records do not lie in the KV windows' smallest (UNIT_ATTENTION)
//   n_rows_i .. kv_pm_beats_i, kv_base_i ..  of the run, stable while a command works
//   row_a_ (attention), row_b_ (store)  RAM ports of the row table
//   kv_        jobs, beats and credits by channel: mr_reader's
//   qkv_, blk_ from mr_vec_out: writes of the q/k/v memory; block codes for the prefix maxima
//   act_       blocks to activation memory, valid/ready
//   keep_      write port of the second row memory: what ATTEND keeps
//   res_       RAM port of the residual; res_second_o, stable for a command: of the second memory
//   result_base_i, rows_base_i  windows of STORE_RES and SAVE_ROWS; train_i: a run of training
//   job_, data_  write jobs for mr_writer
//   cnt_       strobes, mr_attn's; ovf_o, nan_o pulses for STICKY
module mr_kv #(
  parameter int N = 1,
  parameter int T = 128,
  parameter int SCORES = 32768,
  parameter int QKV_WORDS = 256,
  parameter int D_MAX = 4096,
  parameter int W_MAX = 4096,
  parameter int CTX_MAX = 4096,
  parameter int HEADS_MAX = 64,
  parameter int HP_MAX = 256,
  parameter int PM_WORDS = 64,
  parameter int KV_DEPTH = 128,
  parameter int FOLD = 1,
  parameter int TRAIN = 0,
  localparam int V = 4 * N,
  localparam int TW = $clog2(T),
  localparam int RESW = $clog2(T * (D_MAX / V)),
  localparam int QAW = $clog2(T * QKV_WORDS),
  localparam int PAW = $clog2(T * PM_WORDS),
  localparam int BW = $clog2(PM_WORDS) + 1
) (
  input  logic              clk_i,
  input  logic              clk_attn_i,
  input  logic              clk_store_i,
  input  logic              rst_ni,

  // Each unit takes its fields; the other bits of a command have no meaning for it.
  // verilator lint_off UNUSED
  input  logic              at_valid_i,
  output logic              at_ready_o,
  input  logic [511:0]      at_cmd_i,
  output logic              at_done_o,
  input  logic              st_valid_i,
  output logic              st_ready_o,
  input  logic [511:0]      st_cmd_i,
  output logic              st_done_o,
  // verilator lint_on UNUSED
  output logic [1:0]        err_valid_o,
  output logic [15:0]       err_code_o,
  output logic [127:0]      err_addr_o,
  input  logic [15:0]       n_rows_i,
  input  logic              two_pass_i,
  input  logic [31:0]       kv_layer_beats_i,
  input  logic [31:0]       kv_v_beats_i,
  input  logic [31:0]       kv_pm_beats_i,
  input  logic [N*64-1:0]   kv_base_i,
  input  logic [N*32-1:0]   kv_limit_i,
  input  logic [63:0]       result_base_i,
  // With TRAIN.
  // verilator lint_off UNUSED
  input  logic              train_i,
  input  logic [63:0]       rows_base_i,
  // verilator lint_on UNUSED
  output logic              res_second_o,

  output logic              row_a_ren_o,
  output logic [TW-1:0]     row_a_raddr_o,
  input  logic [47:0]       row_a_rdata_i,
  output logic              row_b_ren_o,
  output logic [TW-1:0]     row_b_raddr_o,
  input  logic [47:0]       row_b_rdata_i,
  input  logic [T-1:0]      row_continues_i,

  output logic [N-1:0]      kv_job_valid_o,
  input  logic [N-1:0]      kv_job_ready_i,
  output logic [N*32-1:0]   kv_job_off_o,
  output logic [N*32-1:0]   kv_job_beats_o,
  input  logic [N-1:0]      kv_valid_i,
  input  logic [N*512-1:0]  kv_data_i,
  output logic [N-1:0]      kv_credit_o,

  input  logic [1:0]        qkv_we_i,
  input  logic [QAW-1:0]    qkv_waddr_i,
  input  logic [527:0]      qkv_wdata_i,
  input  logic              blk_valid_i,
  input  logic [TW-1:0]     blk_token_i,
  input  logic [BW-1:0]     blk_index_i,
  input  logic [7:0]        blk_code_i,

  output logic              act_valid_o,
  input  logic              act_ready_i,
  output logic [15:0]       act_slot_o,
  output logic [15:0]       act_word_o,
  output logic [1:0]        act_region_o,
  output logic              act_first_o,
  output logic              act_lo_o,
  output logic [263:0]      act_data_o,

  output logic              keep_we_o,
  output logic [RESW-1:0]   keep_waddr_o,
  output logic [V*32-1:0]   keep_wdata_o,
  output logic              res_ren_o,
  output logic [RESW-1:0]   res_raddr_o,
  input  logic [V*32-1:0]   res_rdata_i,
  output logic              job_valid_o,
  input  logic              job_ready_i,
  output logic [63:0]       job_addr_o,
  output logic [15:0]       job_beats_o,
  output logic [63:0]       job_strb_o,
  output logic              data_valid_o,
  input  logic              data_ready_i,
  output logic [511:0]      data_o,
  input  logic              job_done_i,

  output logic              cnt_busy_o,
  output logic              cnt_idle_o,
  output logic              cnt_wait_kv_o,
  output logic              ovf_o,
  output logic              nan_o
);

  // ---- q/k/v memory and prefix maxima -----------------------------------------------------------
  logic [QAW-1:0] q_raddr, kvs_raddr, qkv_raddr;
  logic [527:0]   qkv_rdata;
  logic           q_ren, kvs_ren, qkv_ren;
  assign qkv_ren   = q_ren || kvs_ren;
  assign qkv_raddr = kvs_ren ? kvs_raddr : q_raddr;
  mr_ram_1r1w #(
    .W    (528),
    .DEPTH(T * QKV_WORDS),
    .WE_W (264)
  ) u_qkv (
    .clk_i,
    .wen_i  (qkv_we_i),
    .waddr_i(qkv_waddr_i),
    .wdata_i(qkv_wdata_i),
    .ren_i  (qkv_ren),
    .raddr_i(qkv_raddr),
    .rdata_o(qkv_rdata)
  );

  logic           pm_ld_we, pma_ren, pmk_ren;
  logic [PAW-1:0] pm_ld_waddr, pma_raddr, pmk_raddr;
  logic [15:0]    pm_ld_wdata, pma_rdata, pmk_rdata;
  mr_prefix_max #(
    .T       (T),
    .PM_WORDS(PM_WORDS),
    .SUBS    (V > 32 ? V / 32 : 1)
  ) u_prefix_max (
    .clk_i,
    .rst_ni,
    .blk_valid_i,
    .blk_token_i,
    .blk_index_i,
    .blk_code_i,
    .row_continues_i,
    .ld_we_i   (pm_ld_we),
    .ld_waddr_i(pm_ld_waddr),
    .ld_wdata_i(pm_ld_wdata),
    .a_ren_i   (pmk_ren),
    .a_raddr_i (pmk_raddr),
    .a_rdata_o (pmk_rdata),
    .b_ren_i   (pma_ren),
    .b_raddr_i (pma_raddr),
    .b_rdata_o (pma_rdata)
  );

  // ---- attention --------------------------------------------------------------------------------
  logic is_pm;
  assign is_pm = at_cmd_i[7:0] == mr_pkg::OP_PM_LOAD[7:0];
  assign err_code_o[15:8]   = mr_pkg::DEVERR_WINDOW[7:0];
  assign err_addr_o[127:64] = kv_base_i[63:0];
  mr_attn #(
    .N        (N),
    .T        (T),
    .SCORES   (SCORES),
    .QKV_WORDS(QKV_WORDS),
    .PM_WORDS (PM_WORDS),
    .W_MAX    (W_MAX),
    .HEADS_MAX(HEADS_MAX),
    .HP_MAX   (HP_MAX),
    .CTX_MAX  (CTX_MAX),
    .KV_DEPTH (KV_DEPTH),
    .FOLD     (FOLD),
    .D_MAX    (D_MAX),
    .TRAIN    (TRAIN)
  ) u_attn (
    .clk_i         (clk_attn_i),
    .rst_ni,
    .cmd_valid_i   (at_valid_i),
    .cmd_ready_o   (at_ready_o),
    .cmd_pm_i      (is_pm),
    .cmd_layer_i   (at_cmd_i[mr_pkg::ATTEND_LAYER_LSB+:16]),
    .cmd_pm_words_i(at_cmd_i[mr_pkg::PM_LOAD_WBEATS_LSB+:16]),
    .cmd_heads_i   (at_cmd_i[mr_pkg::ATTEND_HEADS_LSB+:8]),
    .cmd_hpw_i     (at_cmd_i[mr_pkg::ATTEND_HEAD_BEATS_LSB+:8]),
    .cmd_scale_i   (at_cmd_i[mr_pkg::ATTEND_SCALE_LSB+:32]),
    .cmd_q_base_i  (at_cmd_i[mr_pkg::ATTEND_Q_BASE_LSB+:16]),
    .cmd_dst_base_i(at_cmd_i[mr_pkg::ATTEND_DST_BASE_LSB+:16]),
    .cmd_dst_slot_i(at_cmd_i[mr_pkg::ATTEND_DST_SLOT_LSB+:2]),
    .cmd_keep_i    (TRAIN != 0 && train_i && at_cmd_i[mr_pkg::ATTEND_KEEP_LSB]),
    .done_o        (at_done_o),
    .n_rows_i,
    .two_pass_i,
    .kv_layer_beats_i,
    .kv_v_beats_i,
    .kv_pm_beats_i,
    .kv_limit_i    (kv_limit_i[31:0]),
    .err_o         (err_valid_o[1]),
    .row_ren_o     (row_a_ren_o),
    .row_raddr_o   (row_a_raddr_o),
    .row_rdata_i   (row_a_rdata_i),
    .row_continues_i,
    .kv_job_valid_o,
    .kv_job_ready_i,
    .kv_job_off_o,
    .kv_job_beats_o,
    .kv_valid_i,
    .kv_data_i,
    .kv_credit_o,
    .q_ren_o       (q_ren),
    .q_raddr_o     (q_raddr),
    .q_rdata_i     (qkv_rdata),
    .pm_ren_o      (pma_ren),
    .pm_raddr_o    (pma_raddr),
    .pm_rdata_i    (pma_rdata),
    .pm_we_o       (pm_ld_we),
    .pm_waddr_o    (pm_ld_waddr),
    .pm_wdata_o    (pm_ld_wdata),
    .b_valid_o     (act_valid_o),
    .b_ready_i     (act_ready_i),
    .b_slot_o      (act_slot_o),
    .b_word_o      (act_word_o),
    .b_region_o    (act_region_o),
    .b_first_o     (act_first_o),
    .b_lo_o        (act_lo_o),
    .b_data_o      (act_data_o),
    .keep_we_o,
    .keep_waddr_o,
    .keep_wdata_o,
    .cnt_busy_o,
    .cnt_idle_o,
    .cnt_wait_kv_o,
    .ovf_o,
    .nan_o
  );

  // ---- store ------------------------------------------------------------------------------------
  logic        is_save;
  logic [63:0] res_base;
  if (TRAIN != 0) begin : gen_save
    logic save_q, second_q;
    assign is_save      = st_cmd_i[7:0] == mr_pkg::OP_SAVE_ROWS[7:0];
    assign res_base     = save_q ? rows_base_i : result_base_i;
    assign res_second_o = second_q;
    always_ff @(posedge clk_store_i) begin
      if (st_valid_i && st_ready_o) begin
        save_q   <= is_save;
        second_q <= is_save && st_cmd_i[mr_pkg::SAVE_ROWS_ROW_LSB];
      end
    end
  end else begin : gen_no_save
    assign is_save      = 1'b0;
    assign res_base     = result_base_i;
    assign res_second_o = 1'b0;
  end

  mr_kvstore #(
    .N        (N),
    .T        (T),
    .V        (V),
    .SLOTS    (T),
    .QKV_WORDS(QKV_WORDS),
    .PM_WORDS (PM_WORDS),
    .D_MAX    (D_MAX)
  ) u_kvstore (
    .clk_i          (clk_store_i),
    .rst_ni,
    .cmd_valid_i    (st_valid_i),
    .cmd_ready_o    (st_ready_o),
    .cmd_res_i      (st_cmd_i[7:0] == mr_pkg::OP_STORE_RES[7:0] || is_save),
    .cmd_layer_i    (st_cmd_i[mr_pkg::STORE_KV_LAYER_LSB+:16]),
    .cmd_src_base_i (st_cmd_i[mr_pkg::STORE_KV_SRC_BASE_LSB+:16]),
    .cmd_wbeats_i   (st_cmd_i[mr_pkg::STORE_KV_WBEATS_LSB+:16]),
    .cmd_is_v_i     (st_cmd_i[mr_pkg::STORE_KV_IS_V_LSB]),
    .cmd_out_off_i  (st_cmd_i[mr_pkg::STORE_RES_OUT_OFF_LSB+:32]),
    .cmd_res_beats_i(st_cmd_i[mr_pkg::STORE_RES_BEATS_LSB+:16]),
    .cmd_rows_i     (n_rows_i),
    .cmd_two_pass_i (two_pass_i),
    .done_o         (st_done_o),
    .kv_base_i,
    .res_base_i     (res_base),
    .kv_limit_i,
    .kv_layer_beats_i,
    .kv_v_beats_i,
    .kv_pm_beats_i,
    .err_valid_o    (err_valid_o[0]),
    .err_code_o     (err_code_o[7:0]),
    .err_addr_o     (err_addr_o[63:0]),
    .row_ren_o      (row_b_ren_o),
    .row_raddr_o    (row_b_raddr_o),
    .row_rdata_i    (row_b_rdata_i),
    .qkv_ren_o      (kvs_ren),
    .qkv_raddr_o    (kvs_raddr),
    .qkv_rdata_i    (qkv_rdata),
    .pm_ren_o       (pmk_ren),
    .pm_raddr_o     (pmk_raddr),
    .pm_rdata_i     (pmk_rdata),
    .res_m_ren_o    (res_ren_o),
    .res_m_raddr_o  (res_raddr_o),
    .res_m_rdata_i  (res_rdata_i),
    .job_valid_o,
    .job_ready_i,
    .job_addr_o,
    .job_beats_o,
    .job_strb_o,
    .data_valid_o,
    .data_ready_i,
    .data_o,
    .job_done_i
  );

endmodule
