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
//   res_       RAM port of the residual; res_second_o, stable for a command: of the second memory;
//             res_want_o, from a register: a word may be read in this cycle
//   result_base_i, rows_base_i  windows of STORE_RES and SAVE_ROWS; train_i: a run of training
//   job_, data_  write jobs for mr_writer
//   cnt_       strobes, mr_attn's; ovf_o, nan_o pulses for STICKY
`include "mr_assert.svh"
`include "mr_bundles.svh"
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

  `MR_CMD_S(at_),
  `MR_CMD_S(st_),
  `MR_ERR_M(err_, 2),
  input  logic [15:0]       n_rows_i,
  input  logic              two_pass_i,
  `MR_KV_AT_S(kv_),
  input  logic [N*64-1:0]   kv_base_i,
  input  logic [N*32-1:0]   kv_limit_i,
  input  logic [63:0]       result_base_i,
  // With TRAIN.
  // verilator lint_off UNUSED
  input  logic              train_i,
  input  logic [63:0]       rows_base_i,
  // verilator lint_on UNUSED
  output logic              res_second_o,
  output logic              res_want_o,

  `MR_RAM_R_M(row_a_, TW, 65),
  `MR_RAM_R_M(row_b_, TW, 48),
  input  logic [T-1:0]      row_continues_i,

  `MR_KV_M(kv_, N),

  `MR_QKV_S(qkv_, QAW),
  `MR_PM_S(blk_, TW, BW),

  `MR_BLK_M(act_),

  `MR_RAM_W_M(keep_, RESW, V*32),
  `MR_RAM_R_M(res_, RESW, V*32),
  `MR_WR_M(, 1),

  `MR_ATTN_CNT_M(cnt_),
  `MR_FLAGS_M()
);

  // ---- q/k/v memory and prefix maxima -----------------------------------------------------------
  logic [QAW-1:0] q_raddr, kvs_raddr, qkv_raddr;
  logic [527:0]   qkv_rdata;
  logic           q_ren, kvs_ren, qkv_ren;
  assign qkv_ren   = q_ren || kvs_ren;
  assign qkv_raddr = kvs_ren ? kvs_raddr : q_raddr;
  // A semaphore stands between who writes and who reads (docs/inside/commands.md).
  mr_ram_1r1w #(.W(528), .DEPTH(T * QKV_WORDS), .WE_W(264), .APART(1)) u_qkv (
    .clk_i, .wen_i(qkv_we_i), .waddr_i(qkv_waddr_i), .wdata_i(qkv_wdata_i),
    .ren_i(qkv_ren), .raddr_i(qkv_raddr), .rdata_o(qkv_rdata)
  );

  logic           pm_ld_we, pma_ren, pmk_ren;
  logic [PAW-1:0] pm_ld_waddr, pma_raddr, pmk_raddr;
  logic [15:0]    pm_ld_wdata, pma_rdata, pmk_rdata;
  mr_prefix_max #(.T(T), .PM_WORDS(PM_WORDS), .SUBS(V > 32 ? V / 32 : 1)) u_prefix_max (
    .clk_i, .rst_ni,
    `MR_PM_S_TO(blk_, blk_),
    .row_continues_i,
    `MR_RAM_W_S_ON(ld_, pm_ld_), `MR_RAM_R_S_ON(a_, pmk_), `MR_RAM_R_S_ON(b_, pma_)
  );

  // ---- attention --------------------------------------------------------------------------------
  logic is_pm;
  assign is_pm = at_cmd_i[7:0] == mr_pkg::OP_PM_LOAD[7:0];
  assign err_code_o[15:8]   = mr_pkg::DEVERR_WINDOW[7:0];
  assign err_addr_o[127:64] = kv_base_i[63:0];
  mr_attn #(
    .N(N), .T(T), .SCORES(SCORES), .QKV_WORDS(QKV_WORDS), .PM_WORDS(PM_WORDS), .W_MAX(W_MAX),
    .HEADS_MAX(HEADS_MAX), .HP_MAX(HP_MAX), .CTX_MAX(CTX_MAX), .KV_DEPTH(KV_DEPTH), .FOLD(FOLD),
    .D_MAX(D_MAX), .TRAIN(TRAIN)
  ) u_attn (
    .clk_i(clk_attn_i), .rst_ni, .cmd_valid_i(at_cmd_valid_i), .cmd_ready_o(at_cmd_ready_o),
    .cmd_pm_i(is_pm), .cmd_to_end_i(at_cmd_i[mr_pkg::PM_LOAD_TO_END_LSB]),
    .cmd_layer_i(at_cmd_i[mr_pkg::ATTEND_LAYER_LSB+:16]),
    .cmd_pm_words_i(at_cmd_i[mr_pkg::PM_LOAD_WBEATS_LSB+:16]),
    .cmd_heads_i(at_cmd_i[mr_pkg::ATTEND_HEADS_LSB+:8]),
    .cmd_hpw_i(at_cmd_i[mr_pkg::ATTEND_HEAD_BEATS_LSB+:8]),
    .cmd_scale_i(at_cmd_i[mr_pkg::ATTEND_SCALE_LSB+:32]),
    .cmd_q_base_i(at_cmd_i[mr_pkg::ATTEND_Q_BASE_LSB+:16]),
    .cmd_dst_base_i(at_cmd_i[mr_pkg::ATTEND_DST_BASE_LSB+:16]),
    .cmd_dst_slot_i(at_cmd_i[mr_pkg::ATTEND_DST_SLOT_LSB+:2]),
    .cmd_keep_i(TRAIN != 0 && train_i && at_cmd_i[mr_pkg::ATTEND_KEEP_LSB]), .done_o(at_done_o),
    .n_rows_i, .two_pass_i,
    `MR_KV_AT_S_TO(kv_, kv_),
    .kv_limit_i(kv_limit_i[31:0]), .err_o(err_valid_o[1]),
    `MR_RAM_R_M_TO(row_, row_a_),
    .row_continues_i,
    `MR_KV_M_TO(kv_, kv_),
    .q_ren_o(q_ren), .q_raddr_o(q_raddr), .q_rdata_i(qkv_rdata),
    `MR_RAM_R_M_ON(pm_, pma_), `MR_RAM_W_M_ON(pm_, pm_ld_), `MR_BLK_M_TO(b_, act_),
    `MR_RAM_W_M_TO(keep_, keep_), `MR_ATTN_CNT_M_TO(cnt_, cnt_), `MR_FLAGS_M_TO(, )
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
      if (st_cmd_valid_i && st_cmd_ready_o) begin
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
    .N(N), .T(T), .V(V), .SLOTS(T), .QKV_WORDS(QKV_WORDS), .PM_WORDS(PM_WORDS), .D_MAX(D_MAX)
  ) u_kvstore (
    .clk_i(clk_store_i), .rst_ni, .cmd_valid_i(st_cmd_valid_i), .cmd_ready_o(st_cmd_ready_o),
    .cmd_res_i(st_cmd_i[7:0] == mr_pkg::OP_STORE_RES[7:0] || is_save),
    .cmd_layer_i(st_cmd_i[mr_pkg::STORE_KV_LAYER_LSB+:16]),
    .cmd_src_base_i(st_cmd_i[mr_pkg::STORE_KV_SRC_BASE_LSB+:16]),
    .cmd_wbeats_i(st_cmd_i[mr_pkg::STORE_KV_WBEATS_LSB+:16]),
    .cmd_is_v_i(st_cmd_i[mr_pkg::STORE_KV_IS_V_LSB]),
    .cmd_out_off_i(st_cmd_i[mr_pkg::STORE_RES_OUT_OFF_LSB+:32]),
    .cmd_res_beats_i(st_cmd_i[mr_pkg::STORE_RES_BEATS_LSB+:16]), .cmd_rows_i(n_rows_i),
    .cmd_two_pass_i(two_pass_i), .done_o(st_done_o), .kv_base_i, .res_base_i(res_base), .kv_limit_i,
    `MR_KV_AT_S_TO(kv_, kv_), `MR_ERR_M_TO_AT(err_, err_, 0), `MR_RAM_R_M_TO(row_, row_b_),
    .qkv_ren_o(kvs_ren), .qkv_raddr_o(kvs_raddr), .qkv_rdata_i(qkv_rdata),
    `MR_RAM_R_M_ON(pm_, pmk_), `MR_RAM_R_M_TO(res_m_, res_),
    .res_m_want_o(res_want_o),
    `MR_WR_M_TO(, )
  );

  `MR_ASSERT_ONEHOT0(qkv_readers, {q_ren, kvs_ren})

endmodule
