// SPDX-License-Identifier: Apache-2.0
// The vector queue: LOAD_ROWS and LAYERNORM, and the memories of rows that they fill and read.
//
// mr_rows loads a run's row table, rotary rows and residual rows from the host; mr_layernorm
// normalises residual rows for the quantiser. The residual and rotary memories are here; the
// epilogue and mr_kvstore use them through ports. The residual has one reader and one writer at a
// time, which the program's order sees to, so its users need no arbiter.
//
// With BACK mr_layernorm's output takes the place of the row that it read, by way of mr_rows, which
// finds its exponent; that takes less time than the quantiser's blocks, on whose end done_o waits.
//
// With TRAIN FETCH_ROWS too, and a second row memory with the same users, except that mr_layernorm
// only writes it, and attention too: what KEEP keeps.
//
// Parameters: N, T, D_MAX, ROT_MAX, CTX_MAX, TRAIN as everywhere; VEC_WORDS as mr_layernorm's.
//
// Ports
//   clk_i     of the units; clk_mem_i of the memories, which run for the epilogue too
//   cmd_      valid/ready, the 512-bit command, done pulse; busy_o: LayerNorm works
//   err_      LOAD_ROWS' (UNIT_LOAD_ROWS). What can be wrong with a LAYERNORM is known before it is
//             dealt out (mr_legal).
//   rd_       a client of mr_host_port: request valid/ready, data never refused
//   row_a_, row_b_  RAM ports of the row table, {pos, kv_off} by token; row_continues_o and
//             n_logit_rows_o stand from LOAD_ROWS' end on
//   rexp_     row exponents, kept in the epilogue: a write port and a RAM port
//   vec_      gain and bias: RAM port, two cycles
//   phase_i   alternates every cycle: LayerNorm reads gain and bias in every other one
//   ln_       to the quantiser, valid/ready; ln_ack_i a pulse per block written
//   rot_, epi_res_, kv_res_  RAM ports of the memories. epi_second_i, kv_second_i: the second row
//             memory, stable from a command's first read to its last write. kv_want_i, from a
//             register: the store may read in this cycle
//   at_keep_  a write port of the second row memory, one cycle late
//   mv_, mq_   MOVE_ROWS, when mr_layernorm and mr_rows rest: of both row memories, bit 0 the
//            first, a RAM port of one address, in cycles in which the store does not have it, as
//            mv_rd_grant_o says, and a write port; RAM ports of gains and positions; LayerNorm's
//            way to the quantiser, while mv_on_i
//   train_i      a run of training: KEEP has a meaning; rows_base_i  FETCH_ROWS' window
`include "mr_assert.svh"
`include "mr_bundles.svh"
module mr_vector #(
  parameter int N = 1,
  parameter int T = 128,
  parameter int D_MAX = 4096,
  parameter int ROT_MAX = 256,
  parameter int CTX_MAX = 4096,
  parameter int VEC_WORDS = 1024,
  parameter int TRAIN = 0,
  localparam int V = 4 * N,
  localparam int TW = $clog2(T),
  localparam int RESW = $clog2(T * (D_MAX / V)),
  localparam int ROTW = $clog2(T * (ROT_MAX / V)),
  localparam int VEC_AW = $clog2(2 * VEC_WORDS)
) (
  input  logic                            clk_i,
  input  logic                            clk_mem_i,
  input  logic                            rst_ni,

  `MR_CMD_S(),
  output logic                            busy_o,
  input  logic [15:0]                     n_rows_i,
  input  logic                            two_pass_i,
  input  logic [63:0]                     input_base_i,
  // With TRAIN.
  // verilator lint_off UNUSED
  input  logic                            train_i,
  input  logic [63:0]                     rows_base_i,
  // verilator lint_on UNUSED
  `MR_ERR_M(err_, 1),
  `MR_FLAGS_M(),

  `MR_RD_M(rd_, 1),

  `MR_RAM_R_S(row_a_, TW, 65),
  `MR_RAM_R_S(row_b_, TW, 48),
  output logic [T-1:0]                    row_continues_o,
  output logic [15:0]                     n_logit_rows_o,

  `MR_RAM_W_M(rexp_, TW, 8),
  `MR_RAM_R_M(rexp_, TW, 8),

  input  logic                            phase_i,
  `MR_RAM_R_M(vec_, VEC_AW, V*32),
  `MR_LN_M(ln_, mr_vec_pkg::TAG_LN_W),

  `MR_RAM_R_S(rot_, ROTW, V*32),
  // With TRAIN.
  // verilator lint_off UNUSED
  input  logic                            epi_second_i,
  // verilator lint_on UNUSED
  `MR_RAM_R_S(epi_res_, RESW, V*32),
  `MR_RAM_W_S(epi_res_, RESW, V*32),
  `MR_RAM_R_S(kv_res_, RESW, V*32),
  // With TRAIN.
  // verilator lint_off UNUSED
  input  logic                            kv_second_i,
  input  logic                            kv_want_i,
  `MR_RAM_W_S(at_keep_, RESW, V*32),
  `MR_MV_S(mv_),
  `MR_RAM_R_S(mv_vec_, VEC_AW, V*32),
  `MR_RAM_R_S(mv_row_, TW, 16),
  `MR_LN_S(mq_, mr_vec_pkg::TAG_LN_W)
  // verilator lint_on UNUSED
);

  // ---- commands ---------------------------------------------------------------------------------
  logic is_load, is_fetch, ld_cmd_ready, ln_cmd_ready, ld_done, ln_done;
  assign is_load     = cmd_i[7:0] == mr_pkg::OP_LOAD_ROWS[7:0] || is_fetch;
  assign cmd_ready_o = is_load ? ld_cmd_ready : ln_cmd_ready;
  assign done_o      = ld_done || ln_done;

  // ---- LOAD_ROWS, FETCH_ROWS --------------------------------------------------------------------
  logic        second;  // FETCH_ROWS fills the second row memory
  logic [31:0] res_off;
  logic [15:0] res_beats, rot_beats;
  logic [63:0] ld_base;
  if (TRAIN != 0) begin : gen_fetch
    logic fetch_q, second_q;
    assign is_fetch  = cmd_i[7:0] == mr_pkg::OP_FETCH_ROWS[7:0];
    assign res_off   = is_fetch ? cmd_i[mr_pkg::FETCH_ROWS_OFF_LSB+:32] :
                       cmd_i[mr_pkg::LOAD_ROWS_RES_OFF_LSB+:32];
    assign res_beats = is_fetch ? cmd_i[mr_pkg::FETCH_ROWS_BEATS_LSB+:16] :
                       cmd_i[mr_pkg::LOAD_ROWS_RES_BEATS_LSB+:16];
    assign rot_beats = is_fetch ? 16'd0 : cmd_i[mr_pkg::LOAD_ROWS_ROT_BEATS_LSB+:16];
    assign ld_base   = fetch_q ? rows_base_i : input_base_i;
    assign second    = second_q;
    always_ff @(posedge clk_i) begin
      if (cmd_valid_i && cmd_ready_o) begin
        fetch_q  <= is_fetch;
        second_q <= is_fetch && cmd_i[mr_pkg::FETCH_ROWS_ROW_LSB];
      end
    end
  end else begin : gen_no_fetch
    assign is_fetch  = 1'b0;
    assign res_off   = cmd_i[mr_pkg::LOAD_ROWS_RES_OFF_LSB+:32];
    assign res_beats = cmd_i[mr_pkg::LOAD_ROWS_RES_BEATS_LSB+:16];
    assign rot_beats = cmd_i[mr_pkg::LOAD_ROWS_ROT_BEATS_LSB+:16];
    assign ld_base   = input_base_i;
    assign second    = 1'b0;
  end

  logic            ld_rexp_we;
  logic [T-1:0]    row_logit;
  logic            rot_we, ld_res_ren, ld_res_we, ld_ovf, ln_ovf;
  logic [ROTW-1:0] rot_waddr;
  logic [RESW-1:0] ld_res_raddr, ld_res_waddr;
  logic [V*32-1:0] rot_wdata, ld_res_rdata, ld_res_wdata, res_rdata;  // the last: of memory 1
  mr_rows #(
    .T(T), .V(V), .D_MAX(D_MAX), .ROT_MAX(ROT_MAX), .CTX_MAX(CTX_MAX), .TRAIN(TRAIN)
  ) u_rows (
    .clk_i, .rst_ni, .cmd_valid_i(cmd_valid_i && is_load), .cmd_ready_o(ld_cmd_ready),
    .cmd_fetch_i(is_fetch), .cmd_add_i(cmd_i[mr_pkg::FETCH_ROWS_ADD_LSB]),
    .cmd_table_off_i(cmd_i[mr_pkg::LOAD_ROWS_TABLE_OFF_LSB+:32]),
    .cmd_rot_off_i(cmd_i[mr_pkg::LOAD_ROWS_ROT_OFF_LSB+:32]), .cmd_res_off_i(res_off),
    .cmd_res_beats_i(res_beats), .cmd_rot_beats_i(rot_beats), .cmd_rows_i(n_rows_i),
    .done_o(ld_done), .base_i(ld_base),
    `MR_ERR_M_TO(err_, err_), `MR_RD_M_TO(hr_, rd_), `MR_RAM_R_S_TO(row_a_, row_a_),
    `MR_RAM_R_S_TO(row_b_, row_b_), `MR_RAM_R_S_TO(row_c_, mv_row_),
    .row_logit_o(row_logit), .row_continues_o, .n_logit_rows_o,
    `MR_RAM_W_M_ON(rot_, rot_), `MR_RAM_R_M_ON(res_, ld_res_), `MR_RAM_W_M_ON(res_, ld_res_),
    .ovf_o(ld_ovf), .back_we_i(ln_keep_we && ln_back_q), .back_waddr_i(ln_keep_waddr),
    .back_tok_i(ln_keep_tok), .back_first_i(ln_keep_first), .back_last_i(ln_keep_last),
    .back_data_i(ln_data), .rexp_we_o(ld_rexp_we), .rexp_waddr_o, .rexp_wdata_o
  );

  // Exponents are those of the first memory's rows.
  assign rexp_we_o = ld_rexp_we && !second;

  // ---- LAYERNORM --------------------------------------------------------------------------------
  logic            ln_vec_ren;
  logic [VEC_AW-1:0] ln_vec_raddr;
  logic            ln_back, ln_back_q, ln_keep, ln_res_ren, unused_two_pass, ln_valid, ln_ack;
  logic [V*32-1:0] ln_data;
  logic [mr_vec_pkg::TAG_LN_W-1:0] ln_tag;
  logic [RESW-1:0] ln_res_raddr;
  `MR_ROW_AT_W(ln_keep_, RESW, TW);
  assign ln_back = cmd_i[mr_pkg::LAYERNORM_BACK_LSB];
  assign ln_keep = TRAIN != 0 && train_i && cmd_i[mr_pkg::LAYERNORM_KEEP_LSB];
  always_ff @(posedge clk_i) begin
    if (cmd_valid_i && !is_load && ln_cmd_ready) ln_back_q <= ln_back;
  end
  mr_layernorm #(.V(V), .T(T), .D_MAX(D_MAX), .VEC_WORDS(VEC_WORDS)) u_layernorm (
    .clk_i, .rst_ni, .cmd_valid_i(cmd_valid_i && !is_load), .cmd_ready_o(ln_cmd_ready),
    .cmd_dst_base_i(cmd_i[mr_pkg::LAYERNORM_DST_BASE_LSB+:16]),
    .cmd_dblocks_i(cmd_i[mr_pkg::LAYERNORM_DBLOCKS_LSB+:16]),
    .cmd_n_i(cmd_i[mr_pkg::LAYERNORM_N_LSB+:16]),
    .cmd_dst_slot_i(cmd_i[mr_pkg::LAYERNORM_DST_SLOT_LSB+:2]),
    .cmd_logit_rows_i(cmd_i[mr_pkg::LAYERNORM_LOGIT_ROWS_LSB]), .cmd_keep_i(ln_back || ln_keep),
    .cmd_inv_n_i(cmd_i[mr_pkg::LAYERNORM_INV_N_LSB+:32]),
    .cmd_inv_n2_i(cmd_i[mr_pkg::LAYERNORM_INV_N2_LSB+:32]),
    .cmd_eps_i(cmd_i[mr_pkg::LAYERNORM_EPS_LSB+:32]), .cmd_rows_i(n_rows_i),
    .cmd_two_pass_i(two_pass_i), .row_logit_i(row_logit), .phase_i,
    `MR_RAM_R_M_TO(rexp_, rexp_),
    .res_ren_o(ln_res_ren), .res_raddr_o(ln_res_raddr), .res_rdata_i(res_rdata),
    .vec_ren_o(ln_vec_ren), .vec_raddr_o(ln_vec_raddr), .vec_rdata_i, .q_valid_o(ln_valid),
    .q_ready_i(ln_ready_i), .q_data_o(ln_data), .q_two_pass_o(unused_two_pass), .q_tag_o(ln_tag),
    `MR_ROW_AT_M_ON(keep_, ln_keep_),
    .wr_ack_i(ln_ack), .done_o(ln_done), .busy_o, .ovf_o(ln_ovf), .nan_o
  );
  assign ovf_o = ln_ovf || (TRAIN != 0 && ld_ovf);

  // ---- residual and rotary memory ---------------------------------------------------------------
  logic            res_ren, res_we, epi_ren, epi_we, ld_ren, kv_ren;  // the last four: of memory 1
  logic            mv_ren, mv_we;
  logic [RESW-1:0] res_raddr, res_waddr;
  logic [V*32-1:0] res_wdata;
  assign res_ren   = epi_ren || ln_res_ren || ld_ren || kv_ren || mv_ren;
  assign res_raddr = epi_ren ? epi_res_raddr_i : ln_res_ren ? ln_res_raddr :
                     ld_ren ? ld_res_raddr : (TRAIN != 0 && !kv_ren) ? mv_raddr_i : kv_res_raddr_i;
  assign res_we    = epi_we || (ld_res_we && !second) || mv_we;
  assign res_waddr = epi_we ? epi_res_waddr_i : mv_we ? mv_waddr_i : ld_res_waddr;
  assign res_wdata = epi_we ? epi_res_wdata_i : mv_we ? mv_wdata_i : ld_res_wdata;
  // A semaphore stands between who writes a row and who reads it (docs/inside/commands.md); a
  // command reads a word well before it writes it.
  mr_ram_1r1w #(.W(V * 32), .DEPTH(T * (D_MAX / V)), .APART(1)) u_residual (
    .clk_i(clk_mem_i), .wen_i(res_we), .waddr_i(res_waddr), .wdata_i(res_wdata),
    .ren_i(res_ren), .raddr_i(res_raddr), .rdata_o(res_rdata)
  );

  if (TRAIN != 0) begin : gen_second
    logic            epi_ren2, epi_we2, ld_ren2, kv_ren2;
    logic [V*32-1:0] rdata;
    // What is kept comes from far, and has time.
    logic            ln_keep_q, ln_we, keep_we_q;
    logic [RESW-1:0] keep_waddr_q;
    logic [V*32-1:0] keep_q;
    assign ln_we = ln_keep_we && ln_keep_q;
    always_ff @(posedge clk_i) begin
      if (cmd_valid_i && !is_load && ln_cmd_ready) ln_keep_q <= ln_keep;
      if (!rst_ni) keep_we_q <= 1'b0;
      else keep_we_q <= ln_we || at_keep_we_i;
      if (ln_we || at_keep_we_i) begin
        keep_waddr_q <= ln_we ? ln_keep_waddr : at_keep_waddr_i;
        keep_q       <= ln_we ? ln_data : at_keep_wdata_i;
      end
    end
    assign epi_ren          = epi_res_ren_i && !epi_second_i;
    assign epi_ren2         = epi_res_ren_i && epi_second_i;
    assign epi_we           = epi_res_we_i && !epi_second_i;
    assign epi_we2          = epi_res_we_i && epi_second_i;
    assign ld_ren           = ld_res_ren && !second;
    assign ld_ren2          = ld_res_ren && second;
    assign kv_ren           = kv_res_ren_i && !kv_second_i;
    assign kv_ren2          = kv_res_ren_i && kv_second_i;
    assign mv_ren           = mv_ren_i[0];
    assign mv_we            = mv_we_i[0];
    // MATMUL adds to no rows that MOVE_ROWS reads meanwhile.
    assign mv_rd_grant_o    = {!(kv_want_i && kv_second_i), !(kv_want_i && !kv_second_i)};
    assign mv_rdata_o       = {rdata, res_rdata};
    assign vec_ren_o        = ln_vec_ren || mv_vec_ren_i;
    assign vec_raddr_o      = mv_vec_ren_i ? mv_vec_raddr_i : ln_vec_raddr;
    assign mv_vec_rdata_o   = vec_rdata_i;
    assign ln_valid_o       = mq_valid_i || ln_valid;  // the other one rests
    assign ln_data_o        = mv_on_i ? mq_data_i : ln_data;
    assign ln_tag_o         = mv_on_i ? mq_tag_i : ln_tag;
    assign mq_ready_o       = ln_ready_i;
    assign mq_ack_o         = ln_ack_i;
    assign ln_ack           = ln_ack_i && !mv_on_i;
    assign epi_res_rdata_o  = epi_second_i ? rdata : res_rdata;
    // The store may leave its word in the memory's output, and MOVE_ROWS reads on.
    logic            kv_read_q;
    logic [V*32-1:0] kv_word, kv_word_q;
    assign kv_word          = kv_second_i ? rdata : res_rdata;
    assign kv_res_rdata_o   = kv_read_q ? kv_word : kv_word_q;
    always_ff @(posedge clk_i) begin
      if (!rst_ni) kv_read_q <= 1'b0;
      else kv_read_q <= kv_res_ren_i;
      if (kv_read_q) kv_word_q <= kv_word;
    end
    assign ld_res_rdata     = second ? rdata : res_rdata;
    mr_ram_1r1w #(.W(V * 32), .DEPTH(T * (D_MAX / V))) u_second (
      .clk_i(clk_mem_i), .wen_i(epi_we2 || keep_we_q || mv_we_i[1] || (ld_res_we && second)),
      .waddr_i(epi_we2 ? epi_res_waddr_i : keep_we_q ? keep_waddr_q : mv_we_i[1] ? mv_waddr_i :
               ld_res_waddr),
      .wdata_i(epi_we2 ? epi_res_wdata_i : keep_we_q ? keep_q : mv_we_i[1] ? mv_wdata_i :
               ld_res_wdata),
      .ren_i(epi_ren2 || ld_ren2 || kv_ren2 || mv_ren_i[1]),
      .raddr_i(epi_ren2 ? epi_res_raddr_i : ld_ren2 ? ld_res_raddr : kv_ren2 ? kv_res_raddr_i :
               mv_raddr_i),
      .rdata_o(rdata)
    );

    // The same of the second memory, and of what is kept, a cycle before it is written.
    `MR_ASSERT_ONEHOT0(readers2, {epi_ren2, ld_ren2, kv_ren2, mv_ren_i[1] && mv_rd_grant_o[1]})
    `MR_ASSERT_ONEHOT0(writers2, {epi_we2, ld_res_we && second, keep_we_q, mv_we_i[1]})
    `MR_ASSERT_ONEHOT0(keepers, {ln_we, at_keep_we_i})
  end else begin : gen_no_second
    assign epi_ren         = epi_res_ren_i;
    assign epi_we          = epi_res_we_i;
    assign ld_ren          = 1'b0;
    assign kv_ren          = kv_res_ren_i;
    assign epi_res_rdata_o = res_rdata;
    assign kv_res_rdata_o  = res_rdata;
    assign ld_res_rdata    = '0;
    assign ln_valid_o      = ln_valid;
    assign ln_data_o       = ln_data;
    assign ln_tag_o        = ln_tag;
    assign ln_ack          = ln_ack_i;
    assign vec_ren_o       = ln_vec_ren;
    assign vec_raddr_o     = ln_vec_raddr;
    assign {mv_ren, mv_we, mv_rd_grant_o, mv_rdata_o, mv_vec_rdata_o, mq_ready_o,
            mq_ack_o} = '0;
    logic unused;
    assign unused = ^{ld_res_ren, ld_res_raddr};
  end

  mr_ram_1r1w #(.W(V * 32), .DEPTH(T * (ROT_MAX / V)), .APART(1)) u_rotary (
    .clk_i(clk_mem_i), .wen_i(rot_we), .waddr_i(rot_waddr), .wdata_i(rot_wdata),
    .ren_i(rot_ren_i), .raddr_i(rot_raddr_i), .rdata_o(rot_rdata_o)
  );

  // A memory of rows has one reader in a cycle; MOVE_ROWS gives way.
  `MR_ASSERT_ONEHOT0(readers, {epi_ren, ln_res_ren, ld_ren, kv_ren, mv_ren && mv_rd_grant_o[0]})
  // It has one writer: each command begins at its first word, so two at once would race.
  `MR_ASSERT_ONEHOT0(writers, {epi_we, ld_res_we && !second, mv_we})

endmodule
