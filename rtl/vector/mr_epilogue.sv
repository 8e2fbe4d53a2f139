// SPDX-License-Identifier: Apache-2.0
// What happens to the array's results: accumulator to fp32, bias, rotary, a function, then one of
// four destinations. One drain beat (a token's next C columns) a cycle, without a stall inside.
//
//   mr_epi_cmds   the commands, from configuration to done
//   mr_epi_take   takes beats, and knows where each goes
//   mr_epi_lanes  the arithmetic: a pipeline of fixed length, stages in mr_epi_pkg
//   mr_epi_res    destination RES: sum with the residual, row exponents
//   mr_epi_stage  destinations ACT and QKV: gathers blocks and sends them to the quantiser
//   mr_epi_out    destination RESULT: write jobs, out of mr_epi_stage's memory
//
// Parameters
//   N        channels; V = C = 4N lanes, a divisor or a multiple of 32
//   T        tokens
//   D_MAX    floats a token in the residual memory, a multiple of V
//   ROT_MAX  floats a token in the rotary memory, a multiple of V
//   TRAIN    1: in a run of training (train_i) fields ROW, SET, TURNED, TILES, KEEP_SLOPE and SLOPE
//            have a meaning
//
// Configuration (cmd_, valid/ready): a MATMUL and cfg_rows_i, the tokens that the array drains for
// it (0 allowed: done at once, no beats). Eight commands from there to done. COLS is a
// multiple of 64, HEAD_LANES of V. two_pass_i and train_i are the run's flags. done_o: pulse per
// command, in command order, when all of it is stored: ACT, QKV: three cycles and more after the
// last q_ack_i; RES: residual and exponent written; RESULT: acknowledged by mr_writer.
//
// Drain (dr_): valid/ready, as mr_array; lane c of group j is column j * C + c. dr_ready_o depends
// on registers only. A beat is taken when a configuration is there, its place in the staging memory
// is free and, with a function, no residual's beat was taken four cycles before (they share an
// adder); what is taken never stalls.
// Latency from the handshake: 26 cycles to the staging memory, 29 to the residual write.
// A residual command's first beat waits until the RES command before it is written.
//
// Memories (RAM ports, data one cycle after ren): rot_raddr_o = token * (ROT_MAX/V) + word of the
// head, res_raddr_o, res_waddr_o = token * (D_MAX/V) + group. The row exponents are inside:
// rexp_we_i for mr_rows, rexp_ren_i for mr_layernorm; neither may overlap a RES command with
// track_exp (the commands' semaphores see to that). res_second_o: which of two row memories is
// meant, stable from a command's first read to its last write.
//
// ACT, QKV: q_ (valid/ready) to mr_vec_out, 32/V beats a block (V = 64: a beat is two blocks), tag
// as in mr_vec_pkg; q_ack_i pulse per block written, both passes counted.
// RESULT: per token up to 256 columns (256 if rows <= T/4, 128 if rows <= T/2, else 64) are
// gathered into one job of mr_writer (job_, data_, job_done_i), columns >= OUT_COLS are left
// out. Window out_base_i (64-byte aligned), out_limit_i (beats): a job outside is not written, and
// err_valid_o, WINDOW, comes beside the command's done_o with the address of such a job.
// side_ (rtl/spec/bundles.def): TURNED: valid 26 cycles after take. TILES, with ACT and QKV: valid
// beside the block's q_ack_i. KEEP_SLOPE, with a function: valid 15 cycles after take. SLOPE,
// without rotary: pop five cycles after take. If something of a command cannot be stored,
// err_valid_o comes beside its done_o, with side_bad_addr_i unless a job was outside and tiles were
// stored.
// out_busy_o: such a job is looked at or written.
// ovf_o, nan_o: pulses, a finite operation overflowed, a result is NaN.
`include "mr_assert.svh"
`include "mr_bundles.svh"
module mr_epilogue #(
  parameter int N = 1,
  parameter int T = 8,
  parameter int D_MAX = 64,
  parameter int ROT_MAX = 64,
  parameter int TRAIN = 0,
  localparam int V = 4 * N,
  localparam int TW = $clog2(T),
  localparam int RESW = $clog2(T * (D_MAX / V)),
  localparam int ROTW = $clog2(T * (ROT_MAX / V))
) (
  input  logic                         clk_i,
  input  logic                         rst_ni,

  `MR_CMD_S(),
  input  logic [15:0]                  cfg_rows_i,
  input  logic                         two_pass_i,
  input  logic                         train_i,

  `MR_DR_S(dr_),

  `MR_RAM_R_M(rot_, ROTW, V*32),
  output logic                         res_second_o,
  `MR_RAM_R_M(res_, RESW, V*32),
  `MR_RAM_W_M(res_, RESW, V*32),
  `MR_RAM_W_S(rexp_, TW, 8),
  `MR_RAM_R_S(rexp_, TW, 8),

  `MR_LN_M(q_, mr_vec_pkg::TAG_W),

  input  logic [63:0]                  out_base_i,
  input  logic [31:0]                  out_limit_i,
  `MR_WR_M(, 1),

  `MR_SIDE_M(side_),
  output logic                         out_busy_o,
  `MR_ERR_M(err_, 1),
  `MR_FLAGS_M()
);

  localparam int SAW = $clog2(T * (64 / V)), PW = $clog2(2 * T + 1);
  localparam int K_PICK = mr_epi_pkg::K_PICK, K_DST = mr_epi_pkg::K_DST, K_TOP = mr_epi_pkg::K_TOP;

  // The command whose beats are taken, that of the unit that goes out, and where that goes.
  `MR_EPI_C_W(c_, PW);
  `MR_EPI_U_W(u_);
  `MR_EPI_TO_W(u_);
  logic        c_bias, t_take, t_tiles, x_valid, err_side;
  logic [63:0] o_bad_addr;
  // verilator lint_off UNUSED
  logic [7:0]  turned;  // with TRAIN: of each command
  // verilator lint_on UNUSED
  // A beat's way: taken, in the lanes, at its destination.
  `MR_EPI_RES_W();
  `MR_EPI_STG_W();
  `MR_EPI_ADD_W();
  logic            take, d_last, lanes_ovf, res_ovf;
  logic [15:0]     head_word, d_tok, d_grp;
  logic [6:0]      rotate;
  logic [V*32-1:0] val;
  // The stages between are the lanes' own.
  // verilator lint_off UNUSED
  logic [K_TOP:1]  v;
  // verilator lint_on UNUSED
  // What has gone out.
  `MR_EPI_GONE_W();
  `MR_EPI_UNIT_W(o_);
  logic o_bad;

  mr_epi_cmds #(.N(N), .T(T), .TRAIN(TRAIN)) u_cmds (
    .clk_i, .rst_ni,
    `MR_CMD_S_TO(, ),
    .cfg_rows_i, .two_pass_i, .train_i, .side_ok_i, .side_bad_i, .side_next_o,
    `MR_EPI_C_M_ON(c_, c_),
    .c_bias_o(c_bias), .turned_o(turned),
    `MR_EPI_U_S_ON(u_, u_), `MR_EPI_TO_M_ON(u_, u_), `MR_EPI_GONE_S_ON(, ),
    .blk_ack_i(q_ack_i), .job_i(job_valid_o && job_ready_i), .job_ack_i(job_done_i), .res_i(fin),
    .bad_i(o_bad), .bad_idx_i(o_idx), .err_o(err_valid_o), .err_side_o(err_side)
  );

  mr_epi_take #(.N(N), .T(T), .D_MAX(D_MAX), .TRAIN(TRAIN)) u_take (
    .clk_i, .rst_ni,
    `MR_EPI_C_S_ON(c_, c_),
    .room_i({side_room_i[3:2], side_room_i[0]}), .dr_valid_i, .dr_ready_o, .dr_token_i, .dr_group_i,
    .dr_last_i, .take_o(take), .head_word_o(head_word), .rotate_o(rotate),
    .v_i({v[K_PICK], v[K_PICK-1], v[K_PICK-2], v[K_PICK-3]}),
    `MR_EPI_RES_M_ON(, ), `MR_EPI_STG_M_ON(, ),
    .d_last_o(d_last), .d_tok_o(d_tok), .d_grp_o(d_grp), .second_o(res_second_o)
  );

  mr_epi_lanes #(.N(N), .T(T), .ROT_MAX(ROT_MAX), .TRAIN(TRAIN)) u_lanes (
    .clk_i, .rst_ni, .take_i(take), .bias_on_i(c_bias), .fn_i(c_fn), .head_word_i(head_word),
    .rotate_i(rotate), .keep_on_i(c_keep), .slope_on_i(c_slope), .sl_f_i(side_f_i),
    .sl_pop_o(side_pop_o), .x_valid_o(x_valid), .x_o(side_x_o), .x_fn_o(side_x_fn_o), .dr_acc_i,
    .dr_base_i, .dr_nan_i, .dr_bias_i, .dr_token_i, .dr_fp4_i,
    `MR_RAM_R_M_TO(rot_, rot_),
    .v_o(v), .val_o(val),
    `MR_EPI_ADD_M_ON(, ),
    .ovf_o(lanes_ovf), .nan_o
  );

  mr_epi_res #(.N(N), .T(T), .D_MAX(D_MAX), .TRAIN(TRAIN)) u_res (
    .clk_i, .rst_ni, .p_v_i(v[K_PICK-1]),
    `MR_EPI_RES_S_ON(, ),
    .d_v_i(v[K_DST]), .d_last_i(d_last), .d_tok_i(d_tok[TW-1:0]), .val_i(val),
    `MR_EPI_ADD_S_ON(, ), `MR_RAM_R_M_TO(res_, res_), `MR_RAM_W_M_TO(res_, res_),
    `MR_RAM_W_S_TO(rexp_, rexp_), `MR_RAM_R_S_TO(rexp_, rexp_),
    .ovf_o(res_ovf)
  );

  mr_epi_stage #(.N(N), .T(T), .TRAIN(TRAIN)) u_stage (
    .clk_i, .rst_ni, .d_v_i(v[K_DST]),
    `MR_EPI_STG_S_ON(, ),
    .d_last_i(d_last), .d_tok_i(d_tok), .d_grp_i(d_grp), .val_i(val),
    `MR_EPI_U_M_ON(u_, u_),
    .t_room_i(side_room_i[1]), .t_take_o(t_take), .t_tiles_o(t_tiles), .q_valid_o, .q_ready_i,
    .q_data_o, .q_tag_o,
    `MR_EPI_UNIT_M_ON(o_, o_), `MR_EPI_GONE_M_ON(, )
  );

  mr_epi_out #(.N(N)) u_out (
    .clk_i, .rst_ni,
    `MR_EPI_UNIT_S_ON(o_, o_),
    .u_span_i(u_span),
    `MR_EPI_TO_S_ON(u_, u_),
    .base_i(out_base_i), .limit_i(out_limit_i), .job_valid_o, .job_ready_i, .job_addr_o,
    .job_beats_o, .job_strb_o, .data_valid_o, .data_ready_i, .data_o, .busy_o(out_busy_o),
    .bad_o(o_bad), .bad_addr_o(o_bad_addr), .clear_i(err_valid_o)
  );
  assign err_code_o = mr_pkg::DEVERR_WINDOW[7:0];

  assign err_addr_o = err_side ? side_bad_addr_i : o_bad_addr;

  assign {side_data_o, side_token_o, side_group_o, side_last_o} = {val, d_tok, d_grp, d_last};
  if (TRAIN != 0) begin : gen_side
    // Blocks in the quantiser, oldest first: whether mr_tiles wants it. Of two passes, the first.
    // While nobody takes any, it has 16 that are finished, up to 16 beats, and a few on their way.
    logic       f_valid, f_ready, f_tiles, f_in, lo_q;
    logic [5:0] f_count;
    logic       unused;  // an acknowledgement is of a block that is there
    assign unused  = ^{f_valid, f_in, f_count};
    assign f_ready = q_ack_i && (lo_q || !two_pass_i);
    mr_fifo #(.W(1), .DEPTH(40)) u_blocks (
      .clk_i, .rst_ni, .clear_i(1'b0),
      .in_valid_i(t_take), .in_ready_o(f_in), .in_data_i(t_tiles),
      .out_valid_o(f_valid), .out_ready_i(f_ready), .out_data_o(f_tiles), .count_o(f_count)
    );
    always_ff @(posedge clk_i) begin
      if (!rst_ni) lo_q <= 1'b0;
      else if (q_ack_i && two_pass_i) lo_q <= !lo_q;
    end
    `MR_ASSERT(ack, !q_ack_i || f_valid)
    assign side_push_o  = train_i && cmd_valid_i && cmd_ready_o;
    assign side_take_o  = {take && c_slope, take && c_keep, t_take && t_tiles, take && c_turned};
    assign side_valid_o = {x_valid, q_ack_i && f_tiles && !lo_q, v[K_DST] && turned[d_idx]};
  end else begin : gen_no_side
    assign {side_push_o, side_take_o, side_valid_o} = '0;
    logic unused;
    assign unused = ^{c_turned, c_keep, c_slope, t_take, t_tiles, x_valid};
  end

  logic ovf_q;
  always_ff @(posedge clk_i) begin
    if (!rst_ni) ovf_q <= 1'b0;
    else ovf_q <= lanes_ovf || res_ovf;
  end
  assign ovf_o = ovf_q;

endmodule
