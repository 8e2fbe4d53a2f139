// SPDX-License-Identifier: Apache-2.0
// The write half of the vector path as the top has it: epilogue, shared quantiser, prefix maxima.
// LayerNorm's side of the quantiser and all memories belong to the bench.
`include "mr_bundles.svh"
module epilogue_tb #(
  parameter int N = 1,
  parameter int T = 8,
  parameter int D_MAX = 256,
  parameter int ROT_MAX = 128,
  parameter int QKV_WORDS = 32,
  parameter int PM_WORDS = 8,
  parameter int TRAIN = 0,
  localparam int V = 4 * N,
  localparam int TW = $clog2(T),
  localparam int RESW = $clog2(T * (D_MAX / V)),
  localparam int ROTW = $clog2(T * (ROT_MAX / V)),
  localparam int QAW = $clog2(T * QKV_WORDS),
  localparam int PAW = $clog2(T * PM_WORDS)
) (
  input  logic                         clk_i,
  input  logic                         rst_ni,

  input  logic                         cfg_valid_i,
  output logic                         cfg_ready_o,
  input  logic [15:0]                  cfg_rows_i,
  input  logic [511:0]                 cmd_i,
  input  logic                         two_pass_i,
  output logic                         done_o,

  `MR_DR_S(dr_),

  `MR_RAM_R_M(rot_, ROTW, V*32),
  output logic                         res_second_o,
  `MR_RAM_R_M(res_, RESW, V*32),
  `MR_RAM_W_M(res_, RESW, V*32),
  `MR_RAM_W_S(rexp_, TW, 8),
  `MR_RAM_R_S(rexp_, TW, 8),


  input  logic [63:0]                  out_base_i,
  input  logic [31:0]                  out_limit_i,
  `MR_WR_M(, 1),

  output logic                         tn_take_o,
  input  logic                         tn_room_i,
  output logic                         tn_valid_o,
  output logic [V*32-1:0]              tn_data_o,
  output logic [15:0]                  tn_token_o,
  output logic [15:0]                  tn_group_o,
  output logic                         tn_last_o,
  input  logic                         tn_done_i,
  input  logic                         tn_bad_i,
  input  logic [63:0]                  tn_bad_addr_i,
  output logic                         tl_take_o,
  input  logic                         tl_room_i,
  input  logic                         tl_done_i,
  input  logic                         tl_bad_i,
  input  logic [63:0]                  tl_bad_addr_i,
  output logic                         sl_take_o,
  input  logic                         sl_room_i,
  output logic                         sl_x_valid_o,
  output logic [V*32-1:0]              sl_x_o,
  output logic [1:0]                   sl_x_fn_o,
  input  logic                         sl_done_i,
  output logic                         sl_use_o,
  input  logic                         sl_has_i,
  output logic                         sl_pop_o,
  input  logic [V*32-1:0]              sl_f_i,

  `MR_ERR_M(err_, 1),
  output logic                         sticky_ovf_o,
  output logic                         sticky_nan_o,

  `MR_LN_S(ln_, mr_vec_pkg::TAG_LN_W),
  `MR_BLK_M(act_),
  output logic [1:0]                      qkv_we_o,
  output logic [QAW-1:0]                  qkv_waddr_o,
  output logic [527:0]                    qkv_wdata_o,
  input  logic [T-1:0]                    row_continues_i,
  `MR_RAM_W_S(ld_, PAW, 16),
  `MR_RAM_R_S(pm_a_, PAW, 16),
  `MR_RAM_R_S(pm_b_, PAW, 16)
);

  localparam int BW = $clog2(PM_WORDS) + 1;
  logic q_valid, q_ready, q_ack, pm_valid;
  logic [V*32-1:0] q_data;
  logic [mr_vec_pkg::TAG_W-1:0] q_tag;
  logic [TW-1:0] pm_token;
  logic [BW-1:0] pm_index;
  logic [7:0] pm_code;

  logic            side_push, side_next, side_ok;
  logic [1:0]      side_bad;
  logic [2:0]      side_valid;
  logic [3:0]      side_take, side_room;
  logic [15:0]     side_token, side_group;
  logic [63:0]     side_bad_addr;
  logic [V*32-1:0] side_data, side_x, side_f;
  logic [1:0] side_x_fn;
  logic            side_last, side_pop, unused_tl_valid;  // blocks come by q_
  assign {sl_use_o, sl_take_o, tl_take_o, tn_take_o} = side_take;
  assign {sl_x_valid_o, unused_tl_valid, tn_valid_o} = side_valid;
  assign {tn_data_o, tn_token_o, tn_group_o, tn_last_o} = {side_data, side_token, side_group,
                                                           side_last};
  assign {sl_x_o, sl_x_fn_o, sl_pop_o} = {side_x, side_x_fn, side_pop};
  assign side_room = {sl_has_i, sl_room_i, tl_room_i, tn_room_i};
  assign side_f    = sl_f_i;
  mr_train_done u_done (
    .clk_i, .rst_ni, .push_i(side_push),
    .has_i({cmd_i[mr_pkg::MATMUL_KEEP_SLOPE_LSB], cmd_i[mr_pkg::MATMUL_TILES_LSB], cmd_i[mr_pkg::MATMUL_TURNED_LSB]}),
    .next_i(side_next), .told_i({sl_done_i, tl_done_i, tn_done_i}), .bad_i({tl_bad_i, tn_bad_i}),
    .bad_addr_i({tl_bad_addr_i, tn_bad_addr_i}), .ok_o(side_ok), .bad_o(side_bad),
    .bad_addr_o(side_bad_addr)
  );

  logic unused_busy;
  mr_epilogue #(.N(N), .T(T), .D_MAX(D_MAX), .ROT_MAX(ROT_MAX), .TRAIN(TRAIN)) u_epilogue (
    .clk_i, .rst_ni, .cmd_valid_i(cfg_valid_i), .cmd_ready_o(cfg_ready_o), .cfg_rows_i, .cmd_i,
    .two_pass_i, .train_i(TRAIN != 0), .done_o,
    `MR_DR_S_TO(dr_, dr_), `MR_RAM_R_M_TO(rot_, rot_),
    .res_second_o,
    `MR_RAM_R_M_TO(res_, res_), `MR_RAM_W_M_TO(res_, res_), `MR_RAM_W_S_TO(rexp_, rexp_),
    `MR_RAM_R_S_TO(rexp_, rexp_),
    .out_base_i, .out_limit_i,
    `MR_WR_M_TO(, ), `MR_SIDE_M_ON(side_, side_),
    .out_busy_o(unused_busy),
    `MR_ERR_M_TO(err_, err_),
    .ovf_o(sticky_ovf_o), .nan_o(sticky_nan_o),
    `MR_LN_M_ON(q_, q_)
  );

  mr_vec_out #(
    .V(V), .T(T), .SLOTS(T), .QKV_WORDS(QKV_WORDS), .PM_WORDS(PM_WORDS), .TWO_PASS(1)
  ) u_out (
    .clk_i, .rst_ni, .two_pass_i,
    `MR_LN_S_ON(epi_, q_), `MR_LN_S_TO(ln_, ln_), `MR_BLK_M_TO(act_, act_),
    .qkv_we_o, .qkv_waddr_o, .qkv_wdata_o,
    `MR_PM_M_ON(pm_, pm_)
  );

  mr_prefix_max #(.T(T), .PM_WORDS(PM_WORDS), .SUBS(V > 32 ? V / 32 : 1)) u_pm (
    .clk_i, .rst_ni,
    `MR_PM_S_ON(blk_, pm_),
    .row_continues_i,
    `MR_RAM_W_S_TO(ld_, ld_), `MR_RAM_R_S_TO(a_, pm_a_), `MR_RAM_R_S_TO(b_, pm_b_)
  );

endmodule
