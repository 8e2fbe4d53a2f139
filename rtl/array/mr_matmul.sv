// SPDX-License-Identifier: Apache-2.0
// MATMUL and GRAD: the array and the activation memory that it works on.
//
// The epilogue (mr_results) takes each command together with the array: cfg_valid_o comes when the
// command has rows and the array takes it, cfg_rows_o are its tokens. One without rows is not
// issued. When no other is inside, it gives err_, DEVERR_COMMAND, in the next cycle.
//
// With TRAIN the array takes GRAD too. A GRAD is alone inside: it waits for all MATMULs before it,
// and those behind wait for it. Its sums leave by gr_.
//
// Parameters: those of mr_array; TRAIN.
//
// Ports
//   cmd_      valid/ready, the 512-bit command: taken when array and epilogue take it
//   n_rows_i, n_logit_rows_i, two_pass_i  of the run, stable while a command waits or runs
//   ring_, tile_  of all channels: mr_array's
//   dr_       the results, valid/ready: mr_array's
//   a_, b_    blocks into activation memory from the vector path and from attention: mr_act_mem's
//   c_        blocks with their row maxima from mr_load_act, behind those of attention
//   gr_       of GRAD: gr_cmd_valid_o when it is issued (cmd_i, rows in cfg_rows_o), none is inside
//             then; the sums, valid/ready, with dr_acc_o, dr_token_o, dr_group_o and dr_last_o as
//             for a MATMUL; gr_in_o: a GRAD is inside, strobes of cnt_ are its
//   cnt_      strobes: mr_array's
`include "mr_assert.svh"
`include "mr_bundles.svh"
module mr_matmul #(
  parameter int N = 1,
  parameter int R = 4,
  parameter int T = 128,
  parameter int ACT_WORDS = 1024,
  parameter int RING = 1024,
  parameter int PAIR = 0,
  parameter int FOLD = 1,
  parameter int TRAIN = 0,
  localparam int RING_AW = $clog2(RING)
) (
  input  logic               clk_i,
  input  logic               rst_ni,

  input  logic               cmd_valid_i,
  output logic               cmd_ready_o,
  // The array takes its fields; the other bits of a command have no meaning for it.
  // verilator lint_off UNUSED
  input  logic [511:0]       cmd_i,
  // verilator lint_on UNUSED
  input  logic [15:0]        n_rows_i,
  input  logic [15:0]        n_logit_rows_i,
  input  logic               two_pass_i,
  input  logic               busy_i,      // commands are inside, up to the epilogue's end
  output logic               cfg_valid_o,
  input  logic               cfg_ready_i,
  output logic [15:0]        cfg_rows_o,
  `MR_ERR_M(err_, 1),

  `MR_TILE_S(, N, RING_AW),

  `MR_DR_M(dr_),

  `MR_BLK_S(a_),
  `MR_BLK_S(b_),
  `MR_BLK_SET_S(c_),

  `MR_GR_M(gr_),
  output logic               gr_in_o,

  `MR_ARRAY_CNT_M(cnt_)
);

  localparam int LN = $clog2(N);
  localparam int ACT_AW = $clog2(T / R * ACT_WORDS);
  localparam int RMAX_AW = $clog2(T / R * 4);

  logic array_ready, bad, logit_rows, is_grad, turn, may, a_dr_valid, a_dr_ready, dr_grad;

  // The array and the epilogue take a MATMUL together. One without rows is an error and is not
  // issued: how many want logits the program does not know. It is reported when those before it are
  // done. All else is looked at before a command is dealt out (mr_legal).
  assign logit_rows  = cmd_i[mr_pkg::MATMUL_LOGIT_ROWS_LSB];
  assign cfg_rows_o  = is_grad ? cmd_i[mr_pkg::GRAD_ROWS_LSB+:16] :
                       logit_rows ? n_logit_rows_i : n_rows_i;
  assign bad         = cfg_rows_o == '0;
  // cmd_valid_i comes late.
  assign may         = is_grad ? !busy_i : turn && !bad && cfg_ready_i;
  assign cfg_valid_o = cmd_valid_i && !is_grad && turn && !bad && array_ready && cfg_ready_i;
  assign cmd_ready_o = cmd_valid_i && array_ready && may;
  always_ff @(posedge clk_i) err_valid_o <= rst_ni && cmd_valid_i && bad && !busy_i;
  assign err_code_o  = mr_pkg::DEVERR_COMMAND[7:0];
  assign err_addr_o  = '0;

  // turn: a MATMUL may be issued. Blocks go to port b, those of attention first.
  logic         b_ready, b_valid;
  logic [15:0]  b_slot, b_word;
  logic [1:0]   b_region;
  logic [263:0] b_data;
  if (TRAIN != 0) begin : gen_train
    logic grad_in_q;  // what was issued last is a GRAD
    always_ff @(posedge clk_i) begin
      if (!rst_ni) grad_in_q <= 1'b0;
      else if (cmd_ready_o) grad_in_q <= is_grad;
    end
    assign is_grad        = cmd_i[7:0] == mr_pkg::OP_GRAD[7:0];
    assign turn           = !grad_in_q || !busy_i;
    assign gr_in_o        = grad_in_q && busy_i;
    assign gr_cmd_valid_o = cmd_valid_i && is_grad && !busy_i && array_ready;
    assign gr_valid_o     = a_dr_valid && dr_grad;
    assign dr_valid_o     = a_dr_valid && !dr_grad;
    assign a_dr_ready     = gr_ready_i || dr_ready_i;  // each only with a command of its own
    `MR_ASSERT(taker, !a_dr_valid || (dr_grad ? !dr_ready_i : !gr_ready_i))
    assign b_valid        = b_valid_i || c_valid_i;
    assign c_ready_o      = b_ready && !b_valid_i;
    assign {b_slot, b_word, b_region, b_data} = b_valid_i ?
        {b_slot_i, b_word_i, b_region_i, b_data_i} : {c_slot_i, c_word_i, c_region_i, c_data_i};
  end else begin : gen_no_train
    assign {is_grad, gr_cmd_valid_o, gr_valid_o, gr_in_o, c_ready_o} = '0;
    assign turn        = 1'b1;
    assign dr_valid_o = a_dr_valid;
    assign a_dr_ready = dr_ready_i;
    assign b_valid    = b_valid_i;
    assign {b_slot, b_word, b_region, b_data} = {b_slot_i, b_word_i, b_region_i, b_data_i};
    logic unused;
    assign unused = ^{dr_grad, gr_ready_i, c_valid_i, c_slot_i, c_word_i, c_region_i, c_data_i};
  end
  assign b_ready_o = b_ready;

  `MR_ACT_R_W(act_, R, ACT_AW);
  logic               rmax_ren;
  logic [RMAX_AW-1:0] rmax_raddr;
  logic [R*8-1:0]     rmax_rdata;
  mr_array #(
    .N(N), .R(R), .T(T), .ACT_WORDS(ACT_WORDS), .RING(RING), .PAIR(PAIR), .FOLD(FOLD), .GRAD(TRAIN)
  ) u_array (
    .clk_i, .rst_ni,
    .cmd_valid_i(cmd_valid_i && may),
    .cmd_ready_o(array_ready), .cmd_src_base_i(cmd_i[mr_pkg::MATMUL_SRC_BASE_LSB+:16]),
    .cmd_kblocks_i(cmd_i[mr_pkg::MATMUL_KBLOCKS_LSB+:16]),
    .cmd_groups_i(cmd_i[mr_pkg::MATMUL_COLS_LSB+:32] >> (2 + LN)),
    .cmd_src_slot_i(cmd_i[mr_pkg::MATMUL_SRC_SLOT_LSB+:2]),
    .cmd_fp4_i(cmd_i[mr_pkg::MATMUL_FP4_LSB] && !is_grad), .cmd_rows_i(cfg_rows_o),
    .cmd_two_pass_i(two_pass_i), .cmd_grad_i(is_grad), .cmd_g_i(cmd_i[mr_pkg::GRAD_G_LSB+:16]),
    `MR_TILE_S_TO(, ), `MR_ACT_R_M_ON(act_, act_), `MR_RAM_R_M_ON(rmax_, rmax_),
    .dr_valid_o(a_dr_valid), .dr_ready_i(a_dr_ready), .dr_acc_o, .dr_base_o, .dr_nan_o, .dr_bias_o,
    .dr_token_o, .dr_group_o, .dr_fp4_o, .dr_last_o, .dr_grad_o(dr_grad), .dr_flags_o(gr_flags_o),
    `MR_ARRAY_CNT_M_TO(cnt_, cnt_)
  );

  mr_act_mem #(.R(R), .T(T), .ACT_WORDS(ACT_WORDS), .SET(TRAIN)) u_act_mem (
    .clk_i, .rst_ni,
    `MR_BLK_S_TO(a_, a_),
    .b_valid_i(b_valid), .b_ready_o(b_ready), .b_slot_i(b_slot), .b_word_i(b_word),
    .b_region_i(b_region), .b_first_i(b_first_i), .b_lo_i(b_lo_i && (TRAIN == 0 || b_valid_i)),
    .b_data_i(b_data), .b_set_i(TRAIN != 0 && !b_valid_i), .b_max_i(c_max_i),
    `MR_ACT_R_S_ON(act_, act_), `MR_RAM_R_S_ON(rmax_, rmax_)
  );

endmodule
