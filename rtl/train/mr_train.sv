// SPDX-License-Identifier: Apache-2.0
// What a device with TRAIN has beside the other parts: LOAD_ACT, MOVE_ROWS, the results of GRAD,
// those of MATMUL that go to the stash, turned or as tiles, and functions' slopes.
//
// Parameters: N, T, D_MAX as everywhere; VEC_WORDS as mr_layernorm's.
//
// Ports
//   vq_      LOAD_ACT and MOVE_ROWS, of one queue: valid/ready with the 512-bit command and the
//            run's rows, done pulse; vq_err_ up to it
//   c_       LOAD_ACT's blocks, for mr_matmul
//   mv_, mq_   MOVE_ROWS: ports of mr_row_copy and mr_row_alu at mr_vector, mv_on_o: COPY works;
//            to the quantiser; mv_ovf_o, mv_nan_o: mr_row_alu's
//   gr_      GRAD: the command when mr_matmul issues it, with its rows; its sums; done pulse
//   mm_cmd_i the command that the array has, GRAD or MATMUL; mm_rows_i its rows
//   side_    what MATMUL gives to mr_turned, mr_tiles and mr_slopes; side_busy_o: they work
//   s_       stash windows, and the size of the smallest; grad_base_i the gradient window,
//            rows_base_i the rows window
//   rd_      six clients of mr_host_port: 0 LOAD_ACT, 1 records, 2 headers for TURNED, 3 for TILES,
//            4 SLOPE, 5 headers for COPY
//   job_, data_   five clients of its writer: 0 GRAD, 1 TURNED, 2 TILES, 3 KEEP_SLOPE, 4 COPY
`include "mr_assert.svh"
`include "mr_bundles.svh"
module mr_train #(
  parameter int N = 1,
  parameter int T = 32,
  parameter int D_MAX = 256,
  parameter int VEC_WORDS = 64,
  localparam int V = 4 * N,
  localparam int TW = $clog2(T),
  localparam int RESW = $clog2(T * (D_MAX / V)),
  localparam int VEC_AW = $clog2(2 * VEC_WORDS)
) (
  input  logic            clk_i,
  input  logic            rst_ni,

  `MR_CMD_S(vq_),
  input  logic [15:0]     vq_rows_i,
  `MR_ERR_M(vq_err_, 1),

  `MR_BLK_SET_M(c_),

  `MR_MV_M(mv_),
  `MR_RAM_R_M(mv_vec_, VEC_AW, V*32),
  `MR_RAM_R_M(mv_row_, TW, 16),
  `MR_LN_M(mq_, mr_vec_pkg::TAG_LN_W),
  `MR_FLAGS_M(mv_),

  `MR_GR_S(gr_),
  // Bits of a command that have no meaning here.
  // verilator lint_off UNUSED
  input  logic [511:0]    mm_cmd_i,
  // verilator lint_on UNUSED
  input  logic [15:0]     mm_rows_i,
  input  logic [V*48-1:0] gr_acc_i,
  input  logic            gr_last_i,
  output logic            gr_done_o,

  `MR_SIDE_S(side_),
  input  logic [263:0]    side_block_i,
  output logic            side_busy_o,

  `MR_STASH_S(s_),
  input  logic [63:0]     grad_base_i,
  input  logic [63:0]     rows_base_i,
  `MR_RD_M(rd_, 6),
  `MR_WR_M(, 5)
);

  localparam int LN = $clog2(N);

  // ---- clocks -----------------------------------------------------------------------------------
  // One clock; see mr_clk_gate. A unit without a command rests; mr_slopes gives what it has read
  // behind its command too. HOLD: more than mr_row_lanes is long; the others come to rest sooner.
  logic clk_la, clk_cp, clk_alu, clk_gr, clk_tn, clk_tl, clk_sl;
  logic act_la, act_cp, act_alu, act_gr, act_tn, act_tl, act_sl;
  mr_clk_gate u_gate_la (.clk_i, .active_i(!rst_ni || act_la), .clk_o(clk_la));
  mr_clk_gate u_gate_cp (.clk_i, .active_i(!rst_ni || act_cp), .clk_o(clk_cp));
  mr_clk_gate u_gate_alu (.clk_i, .active_i(!rst_ni || act_alu), .clk_o(clk_alu));
  mr_clk_gate u_gate_gr (.clk_i, .active_i(!rst_ni || act_gr), .clk_o(clk_gr));
  mr_clk_gate u_gate_tn (.clk_i, .active_i(!rst_ni || act_tn), .clk_o(clk_tn));
  mr_clk_gate u_gate_tl (.clk_i, .active_i(!rst_ni || act_tl), .clk_o(clk_tl));
  mr_clk_gate u_gate_sl (.clk_i, .active_i(!rst_ni || act_sl), .clk_o(clk_sl));

  // ---- the vector queue -------------------------------------------------------------------------
  logic        is_move, is_copy, la_ready, la_done, la_err, cp_ready, cp_done, cp_err, alu_ready;
  logic        alu_done;
  logic [7:0]  la_err_code;
  logic [63:0] la_err_addr, cp_err_addr;
  assign is_move        = vq_cmd_i[7:0] == mr_pkg::OP_MOVE_ROWS[7:0];
  assign is_copy        = vq_cmd_i[mr_pkg::MOVE_ROWS_WORK_LSB+:8] == mr_pkg::MOVE_COPY[7:0];
  assign vq_cmd_ready_o = !is_move ? la_ready : is_copy ? cp_ready : alu_ready;
  assign vq_done_o      = la_done || cp_done || alu_done;
  assign vq_err_valid_o = la_err || cp_err;
  assign vq_err_code_o  = cp_err ? mr_pkg::DEVERR_WINDOW[7:0] : la_err_code;
  assign vq_err_addr_o  = cp_err ? cp_err_addr : la_err_addr;
  assign act_la         = (vq_cmd_valid_i && !is_move) || !la_ready;

  mr_load_act #(.N(N)) u_load_act (
    .clk_i(clk_la), .rst_ni, .cmd_valid_i(vq_cmd_valid_i && !is_move), .cmd_ready_o(la_ready),
    .cmd_kblocks_i(vq_cmd_i[mr_pkg::LOAD_ACT_KBLOCKS_LSB+:16]),
    .cmd_all_kblocks_i(vq_cmd_i[mr_pkg::LOAD_ACT_ALL_KBLOCKS_LSB+:16]),
    .cmd_dst_base_i(vq_cmd_i[mr_pkg::LOAD_ACT_DST_BASE_LSB+:16]),
    .cmd_dst_slot_i(vq_cmd_i[mr_pkg::LOAD_ACT_DST_SLOT_LSB+:2]),
    .cmd_off_i(vq_cmd_i[mr_pkg::LOAD_ACT_OFF_LSB+:32]),
    .cmd_first_kblock_i(vq_cmd_i[mr_pkg::LOAD_ACT_FIRST_KBLOCK_LSB+:16]),
    .cmd_rows_i(vq_cmd_i[mr_pkg::LOAD_ACT_ROWS_LSB+:16]),
    .cmd_first_col_i(vq_cmd_i[mr_pkg::LOAD_ACT_FIRST_COL_LSB+:32]), .base_i(s_base_i),
    .limit_i(s_limit_i), .done_o(la_done), .err_valid_o(la_err), .err_code_o(la_err_code),
    .err_addr_o(la_err_addr),
    `MR_RD_M_TO_AT(rd_, rd_, 0), `MR_BLK_SET_M_TO(b_, c_)
  );

  // ---- MOVE_ROWS --------------------------------------------------------------------------------
  logic            cp_busy, cp_ren, cp_second, alu_busy;
  logic [1:0]      alu_ren;
  logic [RESW-1:0] cp_raddr, alu_raddr;
  // Its first word to the quantiser comes later, and LayerNorm's is far behind its last.
  always_ff @(posedge clk_i) mv_on_o <= rst_ni && cp_busy;
  assign mv_ren_o   = cp_busy ? {cp_ren && cp_second, cp_ren && !cp_second} : alu_ren;
  assign mv_raddr_o = cp_busy ? cp_raddr : alu_raddr;
  assign act_cp     = (vq_cmd_valid_i && is_move && is_copy) || cp_busy;
  assign act_alu    = (vq_cmd_valid_i && is_move && !is_copy) || alu_busy;
  mr_row_copy #(.N(N), .T(T), .D_MAX(D_MAX)) u_row_copy (
    .clk_i(clk_cp), .rst_ni, .cmd_valid_i(vq_cmd_valid_i && is_move && is_copy),
    .cmd_ready_o(cp_ready), .cmd_i(vq_cmd_i), .cmd_rows_i(vq_rows_i), .done_o(cp_done),
    .err_valid_o(cp_err), .err_addr_o(cp_err_addr), .busy_o(cp_busy), .res_ren_o(cp_ren),
    .res_raddr_o(cp_raddr),
    .res_rdata_i(cp_second ? mv_rdata_i[V*64-1:V*32] : mv_rdata_i[V*32-1:0]),
    .res_second_o(cp_second), .res_grant_i(cp_second ? mv_rd_grant_i[1] : mv_rd_grant_i[0]),
    `MR_LN_M_TO(q_, mq_), `MR_STASH_S_TO(s_, s_), `MR_RD_M_TO_AT(rd_, rd_, 5), `MR_WR_M_TO_AT(, , 4)
  );

  mr_row_alu #(.N(N), .T(T), .D_MAX(D_MAX), .VEC_WORDS(VEC_WORDS)) u_row_alu (
    .clk_i(clk_alu), .rst_ni, .cmd_valid_i(vq_cmd_valid_i && is_move && !is_copy),
    .cmd_ready_o(alu_ready), .cmd_i(vq_cmd_i), .cmd_rows_i(vq_rows_i), .done_o(alu_done),
    .busy_o(alu_busy),
    `MR_RAM_R_M_TO(row_, mv_row_),
    .res_ren_o(alu_ren), .res_grant_i(mv_rd_grant_i), .res_raddr_o(alu_raddr),
    .res1_rdata_i(mv_rdata_i[V*32-1:0]), .res2_rdata_i(mv_rdata_i[V*64-1:V*32]),
    `MR_RAM_R_M_TO(vec_, mv_vec_),
    .wr_en_o(mv_we_o), .wr_addr_o(mv_waddr_o), .wr_data_o(mv_wdata_o),
    `MR_FLAGS_M_TO(, mv_)
  );

  // ---- the array's results ----------------------------------------------------------------------
  logic gr_idle;
  assign act_gr = gr_cmd_valid_i || !gr_idle;
  mr_grad_out #(.N(N), .T(T)) u_grad_out (
    .clk_i(clk_gr), .rst_ni, .cmd_valid_i(gr_cmd_valid_i), .cmd_ready_o(gr_idle),
    .cmd_rows_i(mm_rows_i), .cmd_cols_i(mm_cmd_i[mr_pkg::GRAD_COLS_LSB+:32]),
    .cmd_limit_i(mm_cmd_i[mr_pkg::GRAD_LIMIT_LSB+:32]),
    .cmd_off_i(mm_cmd_i[mr_pkg::GRAD_OFF_LSB+:32]),
    .cmd_record_i(mm_cmd_i[mr_pkg::GRAD_RECORD_LSB+:32]),
    .cmd_begin_i(mm_cmd_i[mr_pkg::GRAD_BEGIN_LSB]), .done_o(gr_done_o), .dr_valid_i(gr_valid_i),
    .dr_ready_o(gr_ready_o), .dr_acc_i(gr_acc_i), .dr_flags_i(gr_flags_i),
    .dr_last_i(gr_last_i), .base_i(grad_base_i),
    `MR_RD_M_TO_AT(rd_, rd_, 1), `MR_WR_M_TO_AT(, , 0)
  );

  // ---- what MATMUL gives ----------------------------------------------------------------------
  logic [2:0]  has, told, busy;
  logic [1:0]  bad;
  logic [63:0] tn_bad_addr, tl_bad_addr;
  logic        slope;
  // A MATMUL is here a cycle after it was issued, which comes late in a cycle; its first beat comes
  // no sooner than its command.
  logic         push_q;
  logic [511:0] mm_cmd_q;
  logic [15:0]  mm_rows_q;
  always_ff @(posedge clk_i) begin
    push_q <= rst_ni && side_push_i;
    if (side_push_i) {mm_cmd_q, mm_rows_q} <= {mm_cmd_i, mm_rows_i};
  end
  assign has   = {mm_cmd_q[mr_pkg::MATMUL_KEEP_SLOPE_LSB], mm_cmd_q[mr_pkg::MATMUL_TILES_LSB],
                  mm_cmd_q[mr_pkg::MATMUL_TURNED_LSB]};
  assign slope = mm_cmd_q[mr_pkg::MATMUL_SLOPE_LSB];
  assign side_busy_o = busy != '0;
  assign act_tn      = busy[0];
  assign act_tl      = busy[1];
  assign act_sl      = busy[2] || side_take_i[3] || side_pop_i;
  mr_train_done u_done (
    .clk_i, .rst_ni, .push_i(push_q), .has_i(has), .next_i(side_next_i), .told_i(told), .bad_i(bad),
    .bad_addr_i({tl_bad_addr, tn_bad_addr}), .ok_o(side_ok_o), .bad_o(side_bad_o),
    .bad_addr_o(side_bad_addr_o)
  );

  // Of 32 columns 8 groups, of all channels.
  mr_turned #(.N(N)) u_turned (
    .clk_i(clk_tn), .rst_ni, .cmd_valid_i(push_q && has[0]),
    .cmd_off_i(mm_cmd_q[mr_pkg::MATMUL_TURNED_OFF_LSB+:32]),
    .cmd_kblocks_i(mm_cmd_q[mr_pkg::MATMUL_ALL_KBLOCKS_LSB+:16]),
    .cmd_at_i(mm_cmd_q[mr_pkg::MATMUL_AT_ROW_LSB+5+:11]),
    .cmd_first_i(20'({1'b0, mm_cmd_q[mr_pkg::MATMUL_FIRST_KBLOCK_LSB+:16], 3'd0} >> LN)),
    .cmd_groups_i(20'(mm_cmd_q[mr_pkg::MATMUL_COLS_LSB+:22] >> (2 + LN))),
    .cmd_begin_i({!mm_cmd_q[mr_pkg::MATMUL_BEGIN_LSB], 16'd0}), .cmd_rows_i(mm_rows_q),
    .take_i(side_take_i[0]), .room_o(side_room_o[0]), .b_valid_i(side_valid_i[0]),
    .b_data_i(side_data_i), .b_token_i(side_token_i), .b_group_i(side_group_i),
    .b_last_i(side_last_i), .done_o(told[0]), .err_valid_o(bad[0]), .err_addr_o(tn_bad_addr),
    .busy_o(busy[0]),
    `MR_STASH_S_TO(s_, s_), `MR_RD_M_TO_AT(rd_, rd_, 2), `MR_WR_M_TO_AT(, , 1)
  );

  mr_tiles #(.N(N)) u_tiles (
    .clk_i(clk_tl), .rst_ni, .cmd_valid_i(push_q && has[1]), .cmd_i(mm_cmd_q),
    .cmd_rows_i(mm_rows_q), .take_i(side_take_i[1]), .room_o(side_room_o[1]),
    .b_valid_i(side_valid_i[1]), .b_data_i(side_block_i), .done_o(told[1]), .err_valid_o(bad[1]),
    .err_addr_o(tl_bad_addr), .busy_o(busy[1]),
    `MR_STASH_S_TO(s_, s_), `MR_RD_M_TO_AT(rd_, rd_, 3), `MR_WR_M_TO_AT(, , 2)
  );

  mr_slopes #(.N(N)) u_slopes (
    .clk_i(clk_sl), .rst_ni, .cmd_valid_i(push_q && (has[2] || slope)), .cmd_i(mm_cmd_q),
    .cmd_rows_i(mm_rows_q), .take_i(side_take_i[2]), .room_o(side_room_o[2]),
    .x_valid_i(side_valid_i[2]), .x_i(side_x_i), .x_fn_i(side_x_fn_i), .use_i(side_take_i[3]),
    .has_o(side_room_o[3]), .pop_i(side_pop_i), .f_o(side_f_o), .done_o(told[2]), .busy_o(busy[2]),
    .base_i(rows_base_i),
    `MR_RD_M_TO_AT(rd_, rd_, 4), `MR_WR_M_TO_AT(, , 3)
  );

  // Works of MOVE_ROWS share the ports of the row memories.
  `MR_ASSERT_ONEHOT0(works, {cp_busy, alu_busy})

endmodule
