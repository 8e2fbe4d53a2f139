// SPDX-License-Identifier: Apache-2.0
// Millrace: the weight-streaming engine. Here its parts are put together, and their clocks gated;
// docs/inside/rtl.md says how they fit, docs/inside/commands.md what the ports carry.
//
//   mr_control    registers, sequencer, counters
//   mr_channels   readers of the memory channels, decode, tile rings
//   mr_host_port  reads and writes of the host's memory
//   mr_matmul     array and activation memory
//   mr_results    epilogue and quantiser
//   mr_vector     rows, LayerNorm, residual and rotary memory
//   mr_kv         attention, KV store, q/k/v memory
//   mr_train      with TRAIN: LOAD_ACT, MOVE_ROWS, results of GRAD, what goes to the stash turned
//
// Parameters and ports: rtl/spec/core_ports.def, from which they are included; configurations:
// rtl/spec/configs.def. AXI4-Lite slave s_axil_; N AXI4 read masters m_ch_ packed by channel; AXI4
// read/write master m_host_. One clock; rst_ni is synchronous. done_* name completed commands per
// queue.
`include "mr_bundles.svh"
module millrace_core #(
  `include "core_params.svh"
) (
  `include "core_ports.svh"
);

  localparam int V = 4 * N;
  localparam int HEADS_MAX = W_MAX / 64;
  localparam int HP_LIMIT = mr_pkg::HEAD_LANES_MAX;
  localparam int HP_MAX = W_MAX < HP_LIMIT ? W_MAX : HP_LIMIT;
  localparam int PM_WORDS = W_MAX / 64;
  localparam int VEC_WORDS = D_MAX / V;
  localparam int KV_DEPTH = 128;
  localparam int W_DEPTH = 256;
  localparam int TW = $clog2(T);
  localparam int RESW = $clog2(T * (D_MAX / V));
  localparam int ROTW = $clog2(T * (ROT_MAX / V));
  localparam int QAW = $clog2(T * QKV_WORDS);
  localparam int BW = $clog2(PM_WORDS) + 1;
  localparam int VEC_AW = $clog2(2 * VEC_WORDS);
  localparam int RING_AW = $clog2(RING);

  // An illegal configuration names a module that does not exist, since the tools' common subset has
  // no elaboration-time error.
  generate
    if ((N & (N - 1)) != 0 || N > 16 || (R & (R - 1)) != 0 || R > 32 || (T & (T - 1)) != 0 ||
        T < 2 || T % R != 0 || D_MAX % 64 != 0 || W_MAX % 64 != 0 || ROT_MAX % 64 != 0 ||
        CTX_MAX > 4096 || SCORES < CTX_MAX || (PAIR != 0 && R % 2 != 0) || D_MAX / 32 > RING / 2 ||
        (FOLD != 1 && (FOLD != 4 || N > 4 || PAIR != 0 || TRAIN != 0)) ||
        W_MAX / 32 > RING / 2 || RING > 1024 || (TRAIN != 0 && N > 8)) begin : gen_illegal
      millrace_illegal_configuration u_illegal ();
    end
  endgenerate

  // ---- wires, by what they carry ----------------------------------------------------------------
  // the run and its commands, by queue
  localparam int ARRAY = mr_pkg::QUEUE_ARRAY, VECTOR = mr_pkg::QUEUE_VECTOR,
                 ATTENTION = mr_pkg::QUEUE_ATTENTION, WRITER = mr_pkg::QUEUE_WRITER;
  // verilator lint_off UNUSED
  `MR_RUN_W();  // the last are of a run of training
  `MR_UNITS_W();  // the counters do not ask for every queue
  // verilator lint_on UNUSED
  logic            halt, unit_rst_n;
  logic [15:0]     n_logit_rows;
  logic [N*32-1:0] w_limit, kv_limit;

  // errors, by unit
  localparam int E_HOST = N + mr_pkg::UNIT_HOST_READ - 1, E_ROWS = N + mr_pkg::UNIT_LOAD_ROWS - 1,
                 E_MATMUL = N + mr_pkg::UNIT_MATMUL - 1, E_STORE = N + mr_pkg::UNIT_STORE - 1,
                 E_EPILOGUE = N + mr_pkg::UNIT_EPILOGUE - 1,
                 E_ATTENTION = N + mr_pkg::UNIT_ATTENTION - 1,
                 E_LOAD_ACT = N + mr_pkg::UNIT_LOAD_ACT - 1,
                 ERRORS = N + mr_pkg::UNITS + (TRAIN != 0 ? mr_pkg::TRAINING_UNITS : 0);
  `MR_ERR_W(e_, ERRORS);

  // the host's port: client 0 of the reads is the sequencer, 1 LOAD_ROWS, 2 LOAD_ACT, 3 records of
  // GRAD, 4 headers for TURNED, 5 for TILES, 6 SLOPE, 7 headers for COPY; of the writes 0 the
  // results, 1 the store, 2 GRAD, 3 TURNED, 4 TILES, 5 KEEP_SLOPE, 6 COPY
  localparam int READERS = (TRAIN != 0) ? 8 : 2, WRITERS = (TRAIN != 0) ? 7 : 2;
  `MR_RD_W(hr_, READERS);
  `MR_WR_W(wr_, WRITERS);
  logic hr_idle, wr_idle;

  // channels
  `MR_WJOB_W(job_);
  `MR_SP_W(sp_, N);
  `MR_TILE_W(, N, RING_AW);
  `MR_KV_W(kv_, N);
  `MR_RAM_R_W(vec_, VEC_AW, N*128);
  logic [N-1:0] rd_idle;

  // array to results
  `MR_DR_W(dr_);
  logic        cfg_valid, cfg_ready;
  logic [15:0] cfg_rows;

  // LOAD_ACT, MOVE_ROWS and GRAD; vq_op: the command at the head of the vector queue is mr_train's
  // verilator lint_off UNUSED
  logic vq_last_q;  // so was the one that was issued last; for the clock gates alone
  // verilator lint_on UNUSED
  logic vq_op, vq_ready, vq_done, vec_ready, vec_done, gr_done, gr_in, epi_done;
  `MR_GR_W(gr_);
  `MR_BLK_SET_W(ac_);

  // what MATMUL gives to units of training
  `MR_SIDE_W(side_);
  logic         side_busy;
  logic [263:0] side_block;

  // blocks into activation memory (aa_ vector path, ab_ attention), q/k/v memory, prefix maxima
  `MR_BLK_W(aa_);
  `MR_BLK_W(ab_);
  `MR_QKV_W(qkv_, QAW);
  `MR_PM_W(pmb_, TW, BW);

  // rows: table, exponents, residual, rotary; LayerNorm's output; what attention keeps
  `MR_RAM_R_W(row_a_, TW, 65);
  `MR_RAM_R_W(row_b_, TW, 48);
  `MR_RAM_W_W(rexp_, TW, 8);
  `MR_RAM_R_W(rexp_, TW, 8);
  `MR_RAM_R_W(rot_, ROTW, V*32);
  `MR_RAM_R_W(epi_res_, RESW, V*32);
  `MR_RAM_W_W(epi_res_, RESW, V*32);
  `MR_RAM_R_W(kv_res_, RESW, V*32);
  `MR_RAM_W_W(keep_, RESW, V*32);
  `MR_LN_W(ln_, mr_vec_pkg::TAG_LN_W);
  logic         epi_second, kv_second, kv_want, ln_busy, epi_ack, epi_busy;
  logic [T-1:0] row_continues;

  // MOVE_ROWS: words of the row memories, positions, gains, and its way to the quantiser
  `MR_MV_W(mv_);
  `MR_RAM_R_W(mv_vec_, VEC_AW, V*32);
  `MR_RAM_R_W(mv_row_, TW, 16);
  `MR_LN_W(mq_, mr_vec_pkg::TAG_LN_W);
  `MR_FLAGS_W(mv_);
  logic mv_read_q;

  // what is counted
  logic [N-1:0] c_w_beat, c_kv_beat;
  // Stall causes are counted for channel 0: the channels run in step.
  // verilator lint_off UNUSED
  logic [N-1:0] c_nocredit, c_wait, c_idle, c_issue;
  logic         cnt_run;
  // verilator lint_on UNUSED
  `MR_ARRAY_CNT_W(c_arr_);
  `MR_TRAIN_CNT_W(c_tr_);
  `MR_ATTN_CNT_W(c_at_);
  logic c_hr_beat, c_wr_beat;
  `MR_FLAGS_W(epi_);
  `MR_FLAGS_W(ln_);
  `MR_FLAGS_W(at_);

  // ---- clocks -----------------------------------------------------------------------------------
  // One clock; see mr_clk_gate.
  logic clk_at, clk_vec, clk_host, clk_res, clk_epi, act_at, act_vec, act_host, act_res, act_epi;
  mr_clk_gate u_gate_at (.clk_i, .active_i(act_at), .clk_o(clk_at));
  mr_clk_gate u_gate_vec (.clk_i, .active_i(act_vec), .clk_o(clk_vec));
  mr_clk_gate #(.HOLD(40)) u_gate_epi (.clk_i, .active_i(act_epi), .clk_o(clk_epi));
  // In inference these sleep with the others, and a gate has its price in each cycle.
  if (TRAIN != 0) begin : gen_gates
    mr_clk_gate u_gate_host (.clk_i, .active_i(act_host), .clk_o(clk_host));
    mr_clk_gate #(.HOLD(40)) u_gate_res (.clk_i, .active_i(act_res), .clk_o(clk_res));
  end else begin : gen_no_gates
    assign clk_host = clk_vec;
    assign clk_res  = clk_epi;
  end
`ifdef MILLRACE_CLK_GATE
  localparam bit WIRES = 1'b0;
`else
  localparam bit WIRES = 1'b1;  // the gates are wires: what follows costs no cell
`endif
  logic wake;
  assign wake     = WIRES || !unit_rst_n || halt;
  assign act_at   = wake || issue_valid[ATTENTION] || unit_busy[ATTENTION] || kv_valid != '0;
  // Of the vector queue one command is at work at a time; those of mr_train have their own clocks.
  assign act_vec  = wake || act_at || (issue_valid[VECTOR] && !vq_op) ||
                    (unit_busy[VECTOR] && !vq_last_q) || ln_busy || issue_valid[WRITER] ||
                    unit_busy[WRITER] || mv_row_ren || (TRAIN == 0 && act_host);
  assign act_host = wake || !hr_idle || hr_valid != '0 || !wr_idle || wr_job_valid != '0 ||
                    wr_data_valid != '0;
  assign act_res  = wake || cfg_valid || dr_valid || ln_valid || rexp_we || rexp_ren || epi_busy ||
                    wr_job_done[0] || side_busy;
  assign act_epi  = act_vec || act_host || act_res || issue_valid[VECTOR] || unit_busy[VECTOR];
  // LayerNorm reads in every other cycle, counted from the reset and not from its command: a unit
  // whose state stands still when it is idle cannot count that itself.
  logic ln_phase_q;
  always_ff @(posedge clk_i) ln_phase_q <= unit_rst_n && !ln_phase_q;

  // For the watchdog.
  logic progress;
  assign progress = c_w_beat != '0 || c_kv_beat != '0 || c_hr_beat || c_wr_beat || c_arr_busy ||
                    c_at_busy || ln_ack || epi_ack || mv_read_q;

  // ---- the parts --------------------------------------------------------------------------------
  mr_control #(
    .N(N), .R(R), .T(T), .ACT_WORDS(ACT_WORDS), .QKV_WORDS(QKV_WORDS), .D_MAX(D_MAX),
    .ROT_MAX(ROT_MAX), .SCORES(SCORES), .W_MAX(W_MAX), .HEADS_MAX(HEADS_MAX), .HP_MAX(HP_MAX),
    .CTX_MAX(CTX_MAX), .RING(RING), .CLOCK_KHZ(CLOCK_KHZ), .TRAIN(TRAIN)
  ) u_control (
    .clk_i, .rst_ni,
    // the host
    `MR_AXIL_W_S_TO(s_axil_, s_axil_), `MR_AXIL_R_S_TO(s_axil_, s_axil_),
    .irq_o, .busy_o, .finish_o,
    // reading the program
    `MR_RD_M_ON_AT(rd_, hr_, 0),
    // the run
    `MR_RUN_M_ON(, ),
    .w_limit_o(w_limit), .kv_limit_o(kv_limit), .halt_o(halt), .unit_rst_no(unit_rst_n),
    // commands
    `MR_UNITS_M_ON(, ),
    .done_valid_o, .done_index_o,
    // read jobs
    `MR_WJOB_M_ON(job_, job_), `MR_SP_M_ON(sp_, sp_),
    // errors and progress
    `MR_ERR_S_ON(err_, e_),
    .axi_idle_i(&rd_idle && hr_idle && wr_idle), .progress_i(progress),
    .ovf_i(ln_ovf || at_ovf || epi_ovf || mv_ovf), .nan_i(ln_nan || at_nan || epi_nan || mv_nan),
    // counters
    .cnt_w_beat_i(c_w_beat), .cnt_kv_beat_i(c_kv_beat), .cnt_read_beat_i(c_hr_beat),
    .cnt_write_beat_i(c_wr_beat), .cnt_blocks_i(c_arr_blocks),
    .cnt_array_i({c_arr_idle, c_arr_drain, c_arr_weights, c_arr_busy}),
    .cnt_vector_i(unit_busy[VECTOR] || ln_busy),
    .cnt_attention_i({c_at_wait_kv, c_at_idle, c_at_busy}), .cnt_writer_i(unit_busy[WRITER]),
    .cnt_reader_i({c_issue[0], c_idle[0], c_wait[0], c_nocredit[0]}),
    `MR_TRAIN_CNT_S_ON(cnt_train_, c_tr_),
    .cnt_run_o(cnt_run)
  );

  mr_channels #(
    .N(N), .W_DEPTH(W_DEPTH), .KV_DEPTH(KV_DEPTH), .RING(RING), .VEC_WORDS(VEC_WORDS), .STASH(TRAIN)
  ) u_channels (
    .clk_i, .rst_ni(unit_rst_n), .halt_i(halt),
    `MR_WJOB_S_ON(job_, job_),
    .s_base_i(s_base), .w_base_i(w_base), .w_limit_i(w_limit), .kv_base_i(kv_base),
    .kv_limit_i(kv_limit),
    `MR_KV_S_ON(kv_, kv_), `MR_SP_S_ON(sp_, sp_), `MR_RAM_R_S_ON(vec_, vec_), `MR_TILE_M_ON(, ),
    .idle_o(rd_idle), .err_valid_o(e_valid[N-1:0]), .err_code_o(e_code[8*N-1:0]),
    .err_addr_o(e_addr[64*N-1:0]),
    `MR_READER_CNT_M_ON(cnt_, c_), `MR_AXI_R_M_TO(m_ch_, m_ch_),
    .m_ch_rready_o
  );

  mr_host_port #(.READERS(READERS), .WRITERS(WRITERS)) u_host (
    .clk_i(clk_host), .rst_ni(unit_rst_n), .flush_i(halt),
    `MR_RD_S_ON(rd_, hr_), `MR_WR_S_ON(, wr_),
    .rd_idle_o(hr_idle), .wr_idle_o(wr_idle), .err_valid_o(e_valid[E_HOST+:2]),
    .err_code_o(e_code[8*E_HOST+:16]), .err_addr_o(e_addr[64*E_HOST+:128]),
    .cnt_read_beat_o(c_hr_beat), .cnt_write_beat_o(c_wr_beat),
    `MR_AXI_R_M_TO(m_host_, m_host_),
    .m_host_rready_o,
    `MR_AXI_W_M_TO(m_host_, m_host_)
  );

  mr_matmul #(
    .N(N), .R(R), .T(T), .ACT_WORDS(ACT_WORDS), .RING(RING), .PAIR(PAIR), .FOLD(FOLD), .TRAIN(TRAIN)
  ) u_matmul (
    .clk_i, .rst_ni(unit_rst_n), .cmd_valid_i(issue_valid[ARRAY]), .cmd_ready_o(issue_ready[ARRAY]),
    .cmd_i(cmd[511:0]), .n_rows_i(n_rows), .n_logit_rows_i(n_logit_rows), .two_pass_i(two_pass),
    .busy_i(unit_busy[ARRAY]), .cfg_valid_o(cfg_valid), .cfg_ready_i(cfg_ready),
    .cfg_rows_o(cfg_rows),
    `MR_ERR_M_ON_AT(err_, e_, E_MATMUL), `MR_TILE_S_ON(, ), `MR_DR_M_ON(dr_, dr_),
    `MR_BLK_S_ON(a_, aa_), `MR_BLK_S_ON(b_, ab_), `MR_BLK_SET_S_ON(c_, ac_), `MR_GR_M_ON(gr_, gr_),
    .gr_in_o(gr_in),
    `MR_ARRAY_CNT_M_ON(cnt_, c_arr_)
  );

  mr_results #(
    .N(N), .T(T), .D_MAX(D_MAX), .ROT_MAX(ROT_MAX), .QKV_WORDS(QKV_WORDS), .PM_WORDS(PM_WORDS),
    .TRAIN(TRAIN)
  ) u_results (
    .clk_i(clk_res), .rst_ni(unit_rst_n), .cmd_valid_i(cfg_valid), .cmd_ready_o(cfg_ready),
    .cfg_rows_i(cfg_rows), .cmd_i(cmd[511:0]), .two_pass_i(two_pass), .train_i(train),
    .done_o(epi_done),
    `MR_DR_S_ON(dr_, dr_), `MR_LN_S_ON(ln_, ln_), `MR_RAM_R_M_ON(rot_, rot_),
    .res_second_o(epi_second),
    `MR_RAM_R_M_ON(res_, epi_res_), `MR_RAM_W_M_ON(res_, epi_res_), `MR_RAM_W_S_ON(rexp_, rexp_),
    `MR_RAM_R_S_ON(rexp_, rexp_), `MR_BLK_M_ON(act_, aa_), `MR_QKV_M_ON(qkv_, qkv_),
    `MR_PM_M_ON(pm_, pmb_),
    .result_base_i(result_base), .result_limit_i(result_limit),
    `MR_WR_M_ON_AT(, wr_, 0), `MR_SIDE_M_ON(side_, side_),
    .side_block_o(side_block),
    `MR_ERR_M_ON_AT(err_, e_, E_EPILOGUE),
    .acks_o(epi_ack), .busy_o(epi_busy),
    `MR_FLAGS_M_ON(, epi_)
  );

  mr_vector #(
    .N(N), .T(T), .D_MAX(D_MAX), .ROT_MAX(ROT_MAX), .CTX_MAX(CTX_MAX), .VEC_WORDS(VEC_WORDS),
    .TRAIN(TRAIN)
  ) u_vector (
    .clk_i(clk_vec), .clk_mem_i(clk_epi), .rst_ni(unit_rst_n),
    .cmd_valid_i(issue_valid[VECTOR] && !vq_op), .cmd_ready_o(vec_ready), .cmd_i(cmd[1023:512]),
    .done_o(vec_done), .busy_o(ln_busy), .n_rows_i(n_rows), .two_pass_i(two_pass),
    .input_base_i(input_base), .train_i(train), .rows_base_i(rows_base),
    `MR_ERR_M_ON_AT(err_, e_, E_ROWS), `MR_FLAGS_M_ON(, ln_), `MR_RD_M_ON_AT(rd_, hr_, 1),
    `MR_RAM_R_S_ON(row_a_, row_a_), `MR_RAM_R_S_ON(row_b_, row_b_),
    .row_continues_o(row_continues), .n_logit_rows_o(n_logit_rows),
    `MR_RAM_W_M_ON(rexp_, rexp_), `MR_RAM_R_M_ON(rexp_, rexp_),
    .phase_i(ln_phase_q),
    `MR_RAM_R_M_ON(vec_, vec_), `MR_LN_M_ON(ln_, ln_), `MR_RAM_R_S_ON(rot_, rot_),
    .epi_second_i(epi_second),
    `MR_RAM_R_S_ON(epi_res_, epi_res_), `MR_RAM_W_S_ON(epi_res_, epi_res_),
    `MR_RAM_R_S_ON(kv_res_, kv_res_),
    .kv_second_i(kv_second), .kv_want_i(kv_want),
    `MR_RAM_W_S_ON(at_keep_, keep_), `MR_MV_S_ON(mv_, mv_), `MR_RAM_R_S_ON(mv_vec_, mv_vec_),
    `MR_RAM_R_S_ON(mv_row_, mv_row_), `MR_LN_S_ON(mq_, mq_)
  );

  mr_kv #(
    .N(N), .T(T), .SCORES(SCORES), .QKV_WORDS(QKV_WORDS), .D_MAX(D_MAX), .W_MAX(W_MAX),
    .CTX_MAX(CTX_MAX), .HEADS_MAX(HEADS_MAX), .HP_MAX(HP_MAX), .PM_WORDS(PM_WORDS),
    .KV_DEPTH(KV_DEPTH), .FOLD(FOLD), .TRAIN(TRAIN)
  ) u_kv (
    .clk_i(clk_epi), .clk_attn_i(clk_at), .clk_store_i(clk_vec), .rst_ni(unit_rst_n),
    .at_cmd_valid_i(issue_valid[ATTENTION]), .at_cmd_ready_o(issue_ready[ATTENTION]),
    .at_cmd_i(cmd[1535:1024]), .at_done_o(unit_done[ATTENTION]),
    .st_cmd_valid_i(issue_valid[WRITER]), .st_cmd_ready_o(issue_ready[WRITER]),
    .st_cmd_i(cmd[2047:1536]), .st_done_o(unit_done[WRITER]),
    .err_valid_o({e_valid[E_ATTENTION], e_valid[E_STORE]}),
    .err_code_o({e_code[8*E_ATTENTION+:8], e_code[8*E_STORE+:8]}),
    .err_addr_o({e_addr[64*E_ATTENTION+:64], e_addr[64*E_STORE+:64]}), .n_rows_i(n_rows),
    .two_pass_i(two_pass),
    `MR_KV_AT_S_ON(kv_, kv_),
    .kv_base_i(kv_base), .kv_limit_i(kv_limit), .result_base_i(result_base), .train_i(train),
    .rows_base_i(rows_base),
    `MR_RAM_W_M_ON(keep_, keep_),
    .res_second_o(kv_second), .res_want_o(kv_want),
    `MR_RAM_R_M_ON(row_a_, row_a_), `MR_RAM_R_M_ON(row_b_, row_b_),
    .row_continues_i(row_continues),
    `MR_KV_M_ON(kv_, kv_), `MR_QKV_S_ON(qkv_, qkv_), `MR_PM_S_ON(blk_, pmb_),
    `MR_BLK_M_ON(act_, ab_), `MR_RAM_R_M_ON(res_, kv_res_), `MR_WR_M_ON_AT(, wr_, 1),
    `MR_ATTN_CNT_M_ON(cnt_, c_at_), `MR_FLAGS_M_ON(, at_)
  );

  // ---- training ---------------------------------------------------------------------------------
  assign issue_ready[VECTOR]     = vq_op ? vq_ready : vec_ready;
  assign unit_done[VECTOR]       = vec_done || vq_done;
  assign unit_done[ARRAY]        = epi_done || gr_done;
  if (TRAIN != 0) begin : gen_train
    always_ff @(posedge clk_i) begin
      mv_read_q <= (mv_ren & mv_rd_grant) != 2'd0;
      if (issue_valid[VECTOR] && issue_ready[VECTOR]) vq_last_q <= vq_op;
    end
    assign vq_op = train && (cmd[512+:8] == mr_pkg::OP_LOAD_ACT[7:0] ||
                             cmd[512+:8] == mr_pkg::OP_MOVE_ROWS[7:0]);
    mr_train #(.N(N), .T(T), .D_MAX(D_MAX), .VEC_WORDS(VEC_WORDS)) u_train (
      .clk_i, .rst_ni(unit_rst_n), .vq_cmd_valid_i(issue_valid[VECTOR] && vq_op),
      .vq_cmd_ready_o(vq_ready), .vq_cmd_i(cmd[1023:512]), .vq_rows_i(n_rows), .vq_done_o(vq_done),
      `MR_ERR_M_ON_AT(vq_err_, e_, E_LOAD_ACT), `MR_MV_M_ON(mv_, mv_),
      `MR_RAM_R_M_ON(mv_vec_, mv_vec_), `MR_RAM_R_M_ON(mv_row_, mv_row_), `MR_LN_M_ON(mq_, mq_),
      `MR_FLAGS_M_ON(mv_, mv_), `MR_BLK_SET_M_ON(c_, ac_),
      .mm_cmd_i(cmd[511:0]), .mm_rows_i(cfg_rows),
      `MR_GR_S_ON(gr_, gr_),
      .gr_acc_i(dr_acc), .gr_last_i(dr_last), .gr_done_o(gr_done),
      `MR_SIDE_S_ON(side_, side_),
      .side_block_i(side_block), .side_busy_o(side_busy), .rows_base_i(rows_base),
      `MR_STASH_S_ON(s_, s_),
      .grad_base_i(grad_base), .rd_valid_o(hr_valid[READERS-1:2]),
      .rd_ready_i(hr_ready[READERS-1:2]), .rd_addr_o(hr_addr[READERS*64-1:128]),
      .rd_beats_o(hr_beats[READERS*16-1:32]), .rd_data_valid_i(hr_data_valid[READERS-1:2]),
      .rd_data_i(hr_data), .job_valid_o(wr_job_valid[WRITERS-1:2]),
      .job_ready_i(wr_job_ready[WRITERS-1:2]), .job_addr_o(wr_job_addr[WRITERS*64-1:128]),
      .job_beats_o(wr_job_beats[WRITERS*16-1:32]), .job_strb_o(wr_job_strb[WRITERS*64-1:128]),
      .data_valid_o(wr_data_valid[WRITERS-1:2]), .data_ready_i(wr_data_ready[WRITERS-1:2]),
      .data_o(wr_data[WRITERS*512-1:1024]), .job_done_i(wr_job_done[WRITERS-1:2])
    );
    mr_train_counts u_counts (
      .clk_i, .rst_ni(unit_rst_n), .train_i(train),
      .vec_issue_i(issue_valid[VECTOR] && issue_ready[VECTOR]), .vec_op_i(cmd[512+:8]),
      .vec_busy_i(unit_busy[VECTOR]), .wr_issue_i(issue_valid[WRITER] && issue_ready[WRITER]),
      .wr_op_i(cmd[1536+:8]), .wr_busy_i(unit_busy[WRITER]), .gr_in_i(gr_in),
      .blocks_i(c_arr_blocks), .gr_valid_i(gr_valid), .gr_ready_i(gr_ready),
      .job_take_i(job_valid[0] && job_ready[0]), .job_stash_i(job_stash),
      .job_beats_i(job_beats << $clog2(N)),
      // TURNED, TILES, COPY
      .put_i(wr_data_valid[3] && wr_data_ready[3] || wr_data_valid[4] && wr_data_ready[4] ||
             wr_data_valid[6] && wr_data_ready[6]),
      `MR_TRAIN_CNT_M_ON(cnt_, c_tr_)
    );
  end else begin : gen_no_train
    assign {vq_op, vq_last_q, vq_ready, vq_done, ac_valid, ac_slot, ac_word, ac_region, ac_max,
            ac_data, gr_ready, gr_done, side_bad, side_bad_addr, side_room, side_f,
            side_busy, mv_on, mv_read_q, mv_ren, mv_raddr, mv_we, mv_waddr, mv_wdata, mv_vec_ren,
            mv_vec_raddr, mv_row_ren, mv_row_raddr, mq_valid, mq_data, mq_tag, mv_ovf, mv_nan,
            c_tr_stash_beats, c_tr_grad_blocks, c_tr_cycles} = '0;
    assign side_ok = 1'b1;
    logic unused;
    assign unused = ^{train, ac_ready, gr_cmd_valid, gr_valid, gr_flags, side_push, side_next,
                      side_take, side_valid, side_data, side_token, side_group, side_last, side_x,
                      side_x_fn, side_pop, side_block, mv_rd_grant, mv_rdata, mv_vec_rdata,
                      mv_row_rdata, mq_ready, mq_ack, gr_in};
  end

`ifdef MILLRACE_VIEW
  // What is counted in this cycle, for timelines (sim/verilator/observer.h has the layout).
  logic [63:0] view_units /*verilator public_flat_rd*/;
  logic [63:0] view_readers /*verilator public_flat_rd*/;
  logic [63:0] view_beats /*verilator public_flat_rd*/;
  logic [63:0] view_train /*verilator public_flat_rd*/;
  logic [N-1:0] job_take;
  assign job_take = job_valid & job_ready;
  assign view_units = {
    32'd0, c_arr_blocks, wr_idle, c_wr_beat, hr_idle, c_hr_beat,
    !unit_busy[WRITER], unit_busy[WRITER], c_at_wait_kv, c_at_idle, c_at_busy,
    !(unit_busy[VECTOR] || ln_busy), unit_busy[VECTOR] || ln_busy,
    c_arr_idle, c_arr_drain, c_arr_weights, c_arr_busy, cnt_run
  };
  assign view_readers = {16'(c_issue), 16'(c_idle), 16'(c_wait), 16'(c_nocredit)};
  assign view_beats   = {32'd0, 16'(c_kv_beat), 16'(c_w_beat)};
  assign view_train   = {
    job_beats[28:0], 16'(job_take), job_stash, c_tr_grad_blocks[11:0], c_tr_cycles
  };
`endif

endmodule
