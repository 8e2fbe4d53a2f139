// SPDX-License-Identifier: Apache-2.0
// Where the array's results go: the epilogue, and the quantiser that it shares with LayerNorm.
//
// mr_epilogue makes floats of the sums and adds them to the residual, writes them to the host, or
// hands them to mr_vec_out. That quantises them, and LayerNorm's output with them, and puts the
// blocks into activation memory or q/k/v memory.
//
// Parameters: N, T, D_MAX, ROT_MAX, QKV_WORDS, TRAIN as everywhere; PM_WORDS words a token of the
// prefix maxima.
//
// Ports
//   train_i  a run of training
//   cfg_    the MATMUL command (cmd_i) that mr_matmul issues in this cycle; done_o pulse when all
//           of it is stored
//   dr_     the array's results, valid/ready
//   ln_     LayerNorm's floats, valid/ready, ln_ack_o a pulse per block that has been written
//   rot_, res_, rexp_  RAM ports: rotary and residual memory (res_second_o: the second one), the
//           exponents of the rows
//   act_, qkv_, pm_    blocks out: mr_vec_out's
//   job_, data_        write jobs for mr_writer; the window of results is result_base_i (64-byte
//                      aligned) and result_limit_i (beats)
//   tn_, tl_  with TRAIN: MATMUL's TURNED, to mr_turned, and TILES, to mr_tiles. tn_cmd_o, tl_cmd_o
//           beside cfg_: the command has it
//   sl_     with TRAIN: KEEP_SLOPE and SLOPE of MATMUL, to mr_slopes, the same
//   acks_o  what the epilogue's own writes in activation or q/k/v memory count as progress
//   busy_o  a block is between the units or a span is at work, for the clock gate
//   ovf_o, nan_o  pulses: a finite operation overflowed, a result is NaN
`include "mr_bundles.svh"
module mr_results #(
  parameter int N = 1,
  parameter int T = 128,
  parameter int D_MAX = 4096,
  parameter int ROT_MAX = 256,
  parameter int QKV_WORDS = 256,
  parameter int PM_WORDS = 64,
  parameter int TRAIN = 0,
  localparam int V = 4 * N,
  localparam int TW = $clog2(T),
  localparam int RESW = $clog2(T * (D_MAX / V)),
  localparam int ROTW = $clog2(T * (ROT_MAX / V)),
  localparam int QAW = $clog2(T * QKV_WORDS),
  localparam int BW = $clog2(PM_WORDS) + 1
) (
  input  logic                            clk_i,
  input  logic                            rst_ni,

  input  logic                            cfg_valid_i,
  output logic                            cfg_ready_o,
  input  logic [15:0]                     cfg_rows_i,
  // The epilogue takes its fields; the other bits of a command have no meaning for it.
  // verilator lint_off UNUSED
  input  logic [511:0]                    cmd_i,
  // verilator lint_on UNUSED
  input  logic                            two_pass_i,
  input  logic                            train_i,
  output logic                            done_o,

  `MR_DR_S(dr_),

  `MR_LN_S(ln_),

  `MR_RAM_R_M(rot_, ROTW, V*32),
  output logic                            res_second_o,
  `MR_RAM_R_M(res_, RESW, V*32),
  `MR_RAM_W_M(res_, RESW, V*32),
  `MR_RAM_W_S(rexp_, TW, 8),
  `MR_RAM_R_S(rexp_, TW, 8),

  `MR_BLK_M(act_),
  output logic [1:0]                      qkv_we_o,
  output logic [QAW-1:0]                  qkv_waddr_o,
  output logic [527:0]                    qkv_wdata_o,
  `MR_PM_M(pm_, TW, BW),

  input  logic [63:0]                     result_base_i,
  input  logic [31:0]                     result_limit_i,
  `MR_WR_M(, 1),

  output logic                            tn_cmd_o,
  output logic                            tn_take_o,
  input  logic                            tn_room_i,
  output logic                            tn_valid_o,
  output logic [V*32-1:0]                 tn_data_o,
  output logic [15:0]                     tn_token_o,
  output logic [15:0]                     tn_group_o,
  output logic                            tn_last_o,
  input  logic                            tn_done_i,
  input  logic                            tn_bad_i,
  input  logic [63:0]                     tn_bad_addr_i,
  output logic                            tl_cmd_o,
  output logic                            tl_take_o,
  // With TRAIN.
  // verilator lint_off UNUSED
  input  logic                            tl_room_i,
  // verilator lint_on UNUSED
  output logic                            tl_valid_o,
  output logic [263:0]                    tl_data_o,
  input  logic                            tl_done_i,
  input  logic                            tl_bad_i,
  input  logic [63:0]                     tl_bad_addr_i,

  output logic                            sl_cmd_o,
  output logic                            sl_take_o,
  input  logic                            sl_room_i,
  output logic                            sl_x_valid_o,
  output logic [V*32-1:0]                 sl_x_o,
  input  logic                            sl_done_i,
  output logic                            sl_use_o,
  input  logic                            sl_has_i,
  output logic                            sl_pop_o,
  input  logic [V*32-1:0]                 sl_f_i,

  `MR_ERR_M(err_, 1),
  output logic                            acks_o,
  output logic                            busy_o,
  output logic                            ovf_o,
  output logic                            nan_o
);

  logic                         epi_valid, epi_ready, epi_ack;
  logic [V*32-1:0]              epi_data;
  logic [mr_vec_pkg::TAG_W-1:0] epi_tag;
  logic                         turned, tiles, keep, slope, blk_take, blk_tiles;
  assign tiles    = TRAIN != 0 && train_i && cmd_i[mr_pkg::MATMUL_TILES_LSB];
  assign tl_cmd_o = cfg_valid_i && cfg_ready_o && tiles;
  assign turned   = TRAIN != 0 && train_i && cmd_i[mr_pkg::MATMUL_TURNED_LSB];
  assign tn_cmd_o = cfg_valid_i && cfg_ready_o && turned;
  assign keep     = TRAIN != 0 && train_i && cmd_i[mr_pkg::MATMUL_KEEP_SLOPE_LSB];
  assign slope    = TRAIN != 0 && train_i && cmd_i[mr_pkg::MATMUL_SLOPE_LSB];
  assign sl_cmd_o = cfg_valid_i && cfg_ready_o && (keep || slope);
  assign acks_o   = epi_ack;
  logic                         out_busy;
  assign busy_o = epi_valid || epi_ack || act_valid_o || pm_valid_o || out_busy;
  mr_epilogue #(
    .N      (N),
    .T      (T),
    .D_MAX  (D_MAX),
    .ROT_MAX(ROT_MAX),
    .TRAIN  (TRAIN)
  ) u_epilogue (
    .clk_i,
    .rst_ni,
    .cfg_valid_i,
    .cfg_ready_o,
    .cfg_cols_i      (cmd_i[mr_pkg::MATMUL_COLS_LSB+:32]),
    .cfg_rows_i,
    .cfg_dst_i       (cmd_i[mr_pkg::MATMUL_DST_LSB+:2]),
    .cfg_dst_base_i  (cmd_i[mr_pkg::MATMUL_DST_BASE_LSB+:16]),
    .cfg_dst_slot_i  (cmd_i[mr_pkg::MATMUL_DST_SLOT_LSB+:2]),
    .cfg_bias_i      (cmd_i[mr_pkg::MATMUL_BIAS_LSB]),
    .cfg_rotary_i    (cmd_i[mr_pkg::MATMUL_ROTARY_LSB]),
    .cfg_gelu_i      (cmd_i[mr_pkg::MATMUL_GELU_LSB]),
    .cfg_prefix_max_i(cmd_i[mr_pkg::MATMUL_PREFIX_MAX_LSB]),
    .cfg_track_exp_i (cmd_i[mr_pkg::MATMUL_TRACK_EXP_LSB]),
    .cfg_rotary_dim_i(cmd_i[mr_pkg::MATMUL_ROTARY_DIM_LSB+:16]),
    .cfg_head_lanes_i(cmd_i[mr_pkg::MATMUL_HEAD_LANES_LSB+:16]),
    .cfg_out_cols_i  (cmd_i[mr_pkg::MATMUL_OUT_COLS_LSB+:32]),
    .cfg_out_off_i   (cmd_i[mr_pkg::MATMUL_OUT_OFF_LSB+:32]),
    .cfg_out_stride_i(cmd_i[mr_pkg::MATMUL_OUT_STRIDE_LSB+:32]),
    .cfg_two_pass_i  (two_pass_i),
    .cfg_second_i    (TRAIN != 0 && train_i && cmd_i[mr_pkg::MATMUL_ROW_LSB]),
    .cfg_set_i       (TRAIN != 0 && train_i && cmd_i[mr_pkg::MATMUL_SET_LSB]),
    .cfg_turned_i    (turned),
    .cfg_tiles_i     (tiles),
    .cfg_keep_i      (keep),
    .cfg_slope_i     (slope),
    .done_o,
    `MR_DR_S_TO(dr_, dr_),
    `MR_RAM_R_M_TO(rot_, rot_),
    .res_second_o,
    `MR_RAM_R_M_TO(res_, res_),
    `MR_RAM_W_M_TO(res_, res_),
    `MR_RAM_W_S_TO(rexp_, rexp_),
    `MR_RAM_R_S_TO(rexp_, rexp_),
    .q_valid_o       (epi_valid),
    .q_ready_i       (epi_ready),
    .q_data_o        (epi_data),
    .q_tag_o         (epi_tag),
    .q_ack_i         (epi_ack),
    .out_base_i      (result_base_i),
    .out_limit_i     (result_limit_i),
    `MR_WR_M_TO(, ),
    .tn_take_o,
    .tn_room_i,
    .tn_valid_o,
    .tn_data_o,
    .tn_token_o,
    .tn_group_o,
    .tn_last_o,
    .tn_done_i,
    .tn_bad_i,
    .tn_bad_addr_i,
    .tl_take_o       (blk_take),
    .tl_tiles_o      (blk_tiles),
    .tl_room_i,
    .tl_done_i,
    .tl_bad_i,
    .tl_bad_addr_i,
    .sl_take_o,
    .sl_room_i,
    .sl_x_valid_o,
    .sl_x_o,
    .sl_done_i,
    .sl_use_o,
    .sl_has_i,
    .sl_pop_o,
    .sl_f_i,
    .out_busy_o      (out_busy),
    `MR_ERR_M_TO(err_, err_),
    .sticky_ovf_o    (ovf_o),
    .sticky_nan_o    (nan_o)
  );

  if (TRAIN != 0) begin : gen_tiles
    // Blocks in the quantiser, oldest first: whether mr_tiles wants it. Of two passes, the first.
    logic         f_valid, f_ready, f_tiles, f_in, lo_q;
    logic [4:0]   f_count;
    logic [263:0] act_q;
    logic         unused;  // an acknowledgement is of a block that is there
    assign unused = ^{f_valid, f_in, f_count};
    assign f_ready = epi_ack && (lo_q || !two_pass_i);
    mr_fifo #(
      .W    (1),
      .DEPTH(16)
    ) u_blocks (
      .clk_i,
      .rst_ni,
      .clear_i    (1'b0),
      .in_valid_i (blk_take),
      .in_ready_o (f_in),
      .in_data_i  (blk_tiles),
      .out_valid_o(f_valid),
      .out_ready_i(f_ready),
      .out_data_o (f_tiles),
      .count_o    (f_count)
    );
    always_ff @(posedge clk_i) begin
      if (!rst_ni) lo_q <= 1'b0;
      else if (epi_ack && two_pass_i) lo_q <= !lo_q;
      act_q <= act_data_o;
    end
    assign tl_take_o  = blk_take && blk_tiles;
    assign tl_valid_o = epi_ack && f_tiles && !lo_q;
    assign tl_data_o  = (qkv_we_o != '0) ? qkv_wdata_o[263:0] : act_q;
  end else begin : gen_no_tiles
    assign {tl_take_o, tl_valid_o, tl_data_o} = '0;
    logic unused;
    assign unused = ^{blk_take, blk_tiles};
  end

  mr_vec_out #(
    .V        (V),
    .T        (T),
    .SLOTS    (T),
    .QKV_WORDS(QKV_WORDS),
    .PM_WORDS (PM_WORDS),
    .TWO_PASS (T > 1 ? 1 : 0)
  ) u_vec_out (
    .clk_i,
    .rst_ni,
    .two_pass_i,
    .epi_valid_i(epi_valid),
    .epi_ready_o(epi_ready),
    .epi_data_i (epi_data),
    .epi_tag_i  (epi_tag),
    .epi_ack_o  (epi_ack),
    `MR_LN_S_TO(ln_, ln_),
    `MR_BLK_M_TO(act_, act_),
    .qkv_we_o,
    .qkv_waddr_o,
    .qkv_wdata_o,
    `MR_PM_M_TO(pm_, pm_)
  );

endmodule
