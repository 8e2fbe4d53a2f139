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
//   cmd_, cfg_rows_i  the MATMUL command that mr_matmul issues in this cycle, and its rows; done_o
//           pulse when all of it is stored
//   dr_     the array's results, valid/ready
//   ln_     LayerNorm's floats, valid/ready, ln_ack_o a pulse per block that has been written
//   rot_, res_, rexp_  RAM ports: rotary and residual memory (res_second_o: the second one), the
//           exponents of the rows
//   act_, qkv_, pm_    blocks out: mr_vec_out's
//   job_, data_        write jobs for mr_writer; the window of results is result_base_i (64-byte
//                      aligned) and result_limit_i (beats)
//   side_   with TRAIN: what MATMUL gives to units of training, and the block of mr_tiles
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

  `MR_CMD_S(),
  input  logic [15:0]                     cfg_rows_i,
  input  logic                            two_pass_i,
  input  logic                            train_i,

  `MR_DR_S(dr_),

  `MR_LN_S(ln_, mr_vec_pkg::TAG_LN_W),

  `MR_RAM_R_M(rot_, ROTW, V*32),
  output logic                            res_second_o,
  `MR_RAM_R_M(res_, RESW, V*32),
  `MR_RAM_W_M(res_, RESW, V*32),
  `MR_RAM_W_S(rexp_, TW, 8),
  `MR_RAM_R_S(rexp_, TW, 8),

  `MR_BLK_M(act_),
  `MR_QKV_M(qkv_, QAW),
  `MR_PM_M(pm_, TW, BW),

  input  logic [63:0]                     result_base_i,
  input  logic [31:0]                     result_limit_i,
  `MR_WR_M(, 1),

  `MR_SIDE_M(side_),
  output logic [263:0]                    side_block_o,

  `MR_ERR_M(err_, 1),
  output logic                            acks_o,
  output logic                            busy_o,
  `MR_FLAGS_M()
);

  `MR_LN_W(epi_, mr_vec_pkg::TAG_W);
  logic out_busy;
  assign acks_o = epi_ack;
  assign busy_o = epi_valid || epi_ack || act_valid_o || pm_valid_o || out_busy;
  mr_epilogue #(.N(N), .T(T), .D_MAX(D_MAX), .ROT_MAX(ROT_MAX), .TRAIN(TRAIN)) u_epilogue (
    .clk_i, .rst_ni,
    `MR_CMD_S_TO(, ),
    .cfg_rows_i, .two_pass_i, .train_i,
    `MR_DR_S_TO(dr_, dr_), `MR_RAM_R_M_TO(rot_, rot_),
    .res_second_o,
    `MR_RAM_R_M_TO(res_, res_), `MR_RAM_W_M_TO(res_, res_), `MR_RAM_W_S_TO(rexp_, rexp_),
    `MR_RAM_R_S_TO(rexp_, rexp_), `MR_LN_M_ON(q_, epi_),
    .out_base_i(result_base_i), .out_limit_i(result_limit_i),
    `MR_WR_M_TO(, ), `MR_SIDE_M_TO(side_, side_),
    .out_busy_o(out_busy),
    `MR_ERR_M_TO(err_, err_), `MR_FLAGS_M_TO(, )
  );

  // A block as it is written: the clock before for activation memory.
  if (TRAIN != 0) begin : gen_block
    logic [263:0] act_q;
    always_ff @(posedge clk_i) act_q <= act_data_o;
    assign side_block_o = (qkv_we_o != '0) ? qkv_wdata_o[263:0] : act_q;
  end else begin : gen_no_block
    assign side_block_o = '0;
  end

  mr_vec_out #(
    .V(V), .T(T), .SLOTS(T), .QKV_WORDS(QKV_WORDS), .PM_WORDS(PM_WORDS), .TWO_PASS(T > 1 ? 1 : 0)
  ) u_vec_out (
    .clk_i, .rst_ni, .two_pass_i,
    `MR_LN_S_ON(epi_, epi_), `MR_LN_S_TO(ln_, ln_), `MR_BLK_M_TO(act_, act_),
    `MR_QKV_M_TO(qkv_, qkv_), `MR_PM_M_TO(pm_, pm_)
  );

endmodule
