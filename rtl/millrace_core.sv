// SPDX-License-Identifier: Apache-2.0
// Millrace: the weight-streaming engine. Here its parts are put together, and their clocks gated;
// docs/rtl.md says how they fit, docs/commands.md what the ports carry.
//
//   mr_control    registers, sequencer, counters
//   mr_channels   readers of the memory channels, decode, tile rings
//   mr_host_port  reads and writes of the host's memory
//   mr_matmul     array and activation memory
//   mr_results    epilogue and quantiser
//   mr_vector     rows, LayerNorm, residual and rotary memory
//   mr_kv         attention, KV store, q/k/v memory
//   mr_train      with TRAIN: LOAD_ACT, COPY, results of GRAD, those that go to the stash turned
//
// Parameters and ports: rtl/spec/core_ports.def, from which they are included; configurations:
// rtl/spec/configs.def. AXI4-Lite slave s_axil_; N AXI4 read masters m_ch_ packed by channel; AXI4
// read/write master m_host_. One clock; rst_ni is synchronous. done_* name completed commands per
// queue.
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
  logic             halt, unit_rst_n, two_pass, train;
  logic [15:0]      n_rows, n_logit_rows;
  logic [63:0]      input_base, result_base;
  logic [31:0]      result_limit, kv_layer_beats, kv_v_beats, kv_pm_beats;
  logic [N*64-1:0]  w_base, kv_base;
  logic [N*32-1:0]  w_limit, kv_limit;
  // Of a run of training.
  // verilator lint_off UNUSED
  logic [63:0]      rows_base, grad_base;
  logic [N*64-1:0]  s_base;
  logic [31:0]      s_limit;
  // verilator lint_on UNUSED
  logic [4:1]       issue_valid, issue_ready, unit_done;
  logic [2047:0]    cmds;
  // The counters do not ask for every queue.
  // verilator lint_off UNUSED
  logic [4:0]       unit_busy;
  // verilator lint_on UNUSED

  // errors, by unit
  localparam int E_HOST = N + mr_pkg::UNIT_HOST_READ - 1, E_ROWS = N + mr_pkg::UNIT_LOAD_ROWS - 1,
                 E_MATMUL = N + mr_pkg::UNIT_MATMUL - 1, E_STORE = N + mr_pkg::UNIT_STORE - 1,
                 E_EPILOGUE = N + mr_pkg::UNIT_EPILOGUE - 1,
                 E_ATTENTION = N + mr_pkg::UNIT_ATTENTION - 1,
                 E_LOAD_ACT = N + mr_pkg::UNIT_LOAD_ACT - 1,
                 ERRORS = N + mr_pkg::UNITS + (TRAIN != 0 ? mr_pkg::TRAINING_UNITS : 0);
  logic [ERRORS-1:0]    e_valid;
  logic [ERRORS*8-1:0]  e_code;
  logic [ERRORS*64-1:0] e_addr;

  // the host's port: client 0 of the reads is the sequencer, 1 LOAD_ROWS, 2 LOAD_ACT, 3 records of
  // GRAD, 4 headers for TURNED, 5 for TILES, 6 SLOPE, 7 headers for COPY; of the writes 0 the
  // results, 1 the store, 2 GRAD, 3 TURNED, 4 TILES, 5 KEEP_SLOPE, 6 COPY
  localparam int READERS = (TRAIN != 0) ? 8 : 2, WRITERS = (TRAIN != 0) ? 7 : 2;
  logic [READERS-1:0]     hr_req_valid, hr_req_ready, hr_valid;
  logic [WRITERS-1:0]     wj_valid, wj_ready, wd_valid, wd_ready, wj_done;
  logic [READERS*64-1:0]  hr_req_addr;
  logic [WRITERS*64-1:0]  wj_addr, wj_strb;
  logic [READERS*16-1:0]  hr_req_beats;
  logic [WRITERS*16-1:0]  wj_beats;
  logic [511:0]           hr_data;
  logic [WRITERS*512-1:0] wd_data;
  logic          hr_idle, wr_idle;

  // channels
  logic [N-1:0]       job_valid, job_ready, sp_valid, sp_ready, sp_done, rd_idle, tile_valid;
  logic [N-1:0]       kv_job_valid, kv_job_ready, kv_valid, kv_credit;
  logic [31:0]        job_off, job_beats, sp_groups;
  logic               job_stash;
  logic [3:0]         sp_first, sp_in_head;
  logic [15:0]        sp_vec_beats, sp_kblocks;
  logic               sp_vec, sp_fp4, sp_bias, vec_ren, ring_ren, ring_free, tile_pop;
  logic [N*32-1:0]    kv_job_off, kv_job_beats, ring_rcode, tile_max;
  logic [N*512-1:0]   kv_data;
  logic [VEC_AW-1:0]  vec_raddr;
  logic [N*128-1:0]   vec_rdata, tile_bias;
  logic [RING_AW-1:0] ring_raddr;
  logic [N*16-1:0]    ring_count;
  logic [N*1024-1:0]  ring_rdata;

  // array to results
  logic             cfg_valid, cfg_ready, dr_valid, dr_ready, dr_fp4, dr_last;
  logic [15:0]      cfg_rows, dr_token, dr_group;
  logic [N*192-1:0] dr_acc;
  logic [N*36-1:0]  dr_base;
  logic [N*4-1:0]   dr_nan;
  logic [N*128-1:0] dr_bias;

  // LOAD_ACT, COPY and GRAD; vq_op: the command at the head of the vector queue is mr_train's
  logic         vq_op, vq_ready, vq_done, vec_ready, vec_done;
  logic         ac_valid, ac_ready, gr_cmd_valid, gr_cmd_ready, gr_valid, gr_ready, gr_done;
  logic         epi_done;
  logic [15:0]  ac_slot, ac_word;
  logic [1:0]   ac_region, gr_flags;
  logic [7:0]   ac_max;
  logic [263:0] ac_data;

  // results that go to the stash turned: of the command that is issued; a beat is taken; it comes
  logic            tn_cmd, tn_take, tn_room, tn_valid, tn_last, tn_done, tn_bad, tn_busy;
  logic [V*32-1:0] tn_data;
  logic [15:0]     tn_token, tn_group;
  logic [63:0]     tn_bad_addr;

  // blocks that go to the stash too: of the command that is issued; one begins; it comes
  logic         tl_cmd, tl_take, tl_room, tl_valid, tl_done, tl_bad, tl_busy;
  logic [263:0] tl_data;
  logic [63:0]  tl_bad_addr;

  // slopes: of the command that is issued; a beat is taken that leaves some, or needs some; values
  // of which they are; factors
  logic            sl_cmd, sl_take, sl_room, sl_x_valid, sl_done, sl_use, sl_has, sl_pop, sl_busy;
  logic [V*32-1:0] sl_x, sl_f;

  // blocks into activation memory (aa_ vector path, ab_ attention), q/k/v memory, prefix maxima
  logic           aa_valid, aa_ready, aa_first, aa_lo, ab_valid, ab_ready, ab_first, ab_lo;
  logic [15:0]    aa_slot, aa_word, ab_slot, ab_word;
  logic [1:0]     aa_region, ab_region, qkv_we;
  logic [263:0]   aa_data, ab_data;
  logic [QAW-1:0] qkv_waddr;
  logic [527:0]   qkv_wdata;
  logic           pmb_valid;
  logic [TW-1:0]  pmb_token;
  logic [BW-1:0]  pmb_index;
  logic [7:0]     pmb_code;

  // rows: table, exponents, residual, rotary; LayerNorm's output; what attention keeps
  logic            row_a_ren, row_b_ren, rexp_we, rexp_ren, rot_ren;
  logic            epi_res_ren, epi_res_we, kv_res_ren, epi_second, kv_second, keep_we;
  logic [TW-1:0]   row_a_raddr, row_b_raddr, rexp_waddr, rexp_raddr;
  logic [47:0]     row_a_rdata, row_b_rdata;
  logic [T-1:0]    row_continues;
  logic [7:0]      rexp_wdata, rexp_rdata;
  logic [ROTW-1:0] rot_raddr;
  logic [RESW-1:0] epi_res_raddr, epi_res_waddr, kv_res_raddr, keep_waddr;
  logic [V*32-1:0] rot_rdata, epi_res_rdata, kv_res_rdata, epi_res_wdata, ln_data, keep_wdata;
  logic            ln_valid, ln_ready, ln_ack, ln_busy, epi_ack, epi_busy;
  logic [mr_vec_pkg::TAG_LN_W-1:0] ln_tag;

  // COPY: words of a row memory, and its way to the quantiser
  logic            cp_on, cp_ren, cp_second, cp_grant, cp_valid;
  logic [RESW-1:0] cp_raddr;
  logic [V*32-1:0] cp_rdata, cp_data;
  logic [mr_vec_pkg::TAG_LN_W-1:0] cp_tag;

  // what is counted
  logic [N-1:0] c_w_beat, c_kv_beat;
  // Stall causes are counted for channel 0: the channels run in step.
  // verilator lint_off UNUSED
  logic [N-1:0] c_nocredit, c_wait, c_idle, c_issue;
  logic         cnt_run;
  // verilator lint_on UNUSED
  logic         c_hr_beat, c_wr_beat, c_arr_busy, c_arr_weights, c_arr_drain, c_arr_idle;
  logic         c_at_busy, c_at_idle, c_at_kv, ln_ovf, ln_nan, at_ovf, at_nan, epi_ovf, epi_nan;
  logic [15:0]  c_blocks;

  // ---- clocks -----------------------------------------------------------------------------------
  // One clock; see mr_clk_gate.
  logic clk_at, clk_vec, clk_epi, act_at, act_vec, act_epi;
  mr_clk_gate u_gate_at (.clk_i, .active_i(act_at), .clk_o(clk_at));
  mr_clk_gate u_gate_vec (.clk_i, .active_i(act_vec), .clk_o(clk_vec));
  mr_clk_gate #(
    .HOLD(40)
  ) u_gate_epi (
    .clk_i,
    .active_i(act_epi),
    .clk_o   (clk_epi)
  );
  assign act_at  = !unit_rst_n || issue_valid[ATTENTION] || unit_busy[ATTENTION] || kv_valid != '0;
  assign act_vec = !unit_rst_n || halt || act_at || issue_valid[VECTOR] || unit_busy[VECTOR] ||
                   ln_busy || issue_valid[WRITER] || unit_busy[WRITER] || !hr_idle ||
                   hr_req_valid != '0 || !wr_idle || wj_valid != '0 || wd_valid != '0;
  assign act_epi = act_vec || cfg_valid || dr_valid || epi_busy || wj_done[0] || tn_busy ||
                   tl_busy || sl_busy;
  // LayerNorm reads in every other cycle, counted from the reset and not from its command: a unit
  // whose state stands still when it is idle cannot count that itself.
  logic ln_phase_q;
  always_ff @(posedge clk_i) ln_phase_q <= unit_rst_n && !ln_phase_q;

  // For the watchdog.
  logic progress;
  assign progress = c_w_beat != '0 || c_kv_beat != '0 || c_hr_beat || c_wr_beat || c_arr_busy ||
                    c_at_busy || ln_ack || epi_ack;

  // ---- the parts --------------------------------------------------------------------------------
  mr_control #(
    .N(N), .R(R), .T(T), .ACT_WORDS(ACT_WORDS), .QKV_WORDS(QKV_WORDS), .D_MAX(D_MAX),
    .ROT_MAX(ROT_MAX), .SCORES(SCORES), .W_MAX(W_MAX), .HEADS_MAX(HEADS_MAX), .HP_MAX(HP_MAX),
    .CTX_MAX(CTX_MAX), .RING(RING), .CLOCK_KHZ(CLOCK_KHZ),
    .TRAIN(TRAIN)
  ) u_control (
    .clk_i, .rst_ni,
    // the host
    .s_axil_awvalid_i, .s_axil_awready_o, .s_axil_awaddr_i, .s_axil_wvalid_i, .s_axil_wready_o,
    .s_axil_wdata_i, .s_axil_wstrb_i, .s_axil_bvalid_o, .s_axil_bready_i, .s_axil_bresp_o,
    .s_axil_arvalid_i, .s_axil_arready_o, .s_axil_araddr_i, .s_axil_rvalid_o, .s_axil_rready_i,
    .s_axil_rdata_o, .s_axil_rresp_o, .irq_o, .busy_o, .finish_o,
    // reading the program
    .rd_valid_o(hr_req_valid[0]), .rd_ready_i(hr_req_ready[0]), .rd_addr_o(hr_req_addr[63:0]),
    .rd_beats_o(hr_req_beats[15:0]), .rd_data_valid_i(hr_valid[0]), .rd_data_i(hr_data),
    // the run
    .n_rows_o(n_rows), .two_pass_o(two_pass), .input_base_o(input_base),
    .result_base_o(result_base), .result_limit_o(result_limit),
    .kv_layer_beats_o(kv_layer_beats), .kv_v_beats_o(kv_v_beats), .kv_pm_beats_o(kv_pm_beats),
    .w_base_o(w_base), .w_limit_o(w_limit), .kv_base_o(kv_base), .kv_limit_o(kv_limit),
    .train_o(train), .rows_base_o(rows_base), .grad_base_o(grad_base), .s_base_o(s_base),
    .s_limit_o(s_limit),
    .halt_o(halt), .unit_rst_no(unit_rst_n),
    // commands
    .issue_valid_o(issue_valid), .issue_ready_i(issue_ready), .cmd_o(cmds),
    .unit_done_i(unit_done), .unit_busy_o(unit_busy), .done_valid_o, .done_index_o,
    // read jobs
    .job_valid_o(job_valid), .job_ready_i(job_ready), .job_off_o(job_off), .job_beats_o(job_beats),
    .job_stash_o(job_stash),
    .sp_valid_o(sp_valid), .sp_ready_i(sp_ready), .sp_vec_o(sp_vec), .sp_vec_beats_o(sp_vec_beats),
    .sp_fp4_o(sp_fp4), .sp_bias_o(sp_bias), .sp_kblocks_o(sp_kblocks), .sp_groups_o(sp_groups),
    .sp_first_o(sp_first), .sp_in_head_o(sp_in_head),
    .sp_done_i(sp_done),
    // errors and progress
    .err_valid_i(e_valid), .err_code_i(e_code), .err_addr_i(e_addr),
    .axi_idle_i(&rd_idle && hr_idle && wr_idle), .progress_i(progress),
    .ovf_i(ln_ovf || at_ovf || epi_ovf), .nan_i(ln_nan || at_nan || epi_nan),
    // counters
    .cnt_w_beat_i(c_w_beat), .cnt_kv_beat_i(c_kv_beat), .cnt_read_beat_i(c_hr_beat),
    .cnt_write_beat_i(c_wr_beat), .cnt_blocks_i(c_blocks),
    .cnt_array_i({c_arr_idle, c_arr_drain, c_arr_weights, c_arr_busy}),
    .cnt_vector_i(unit_busy[VECTOR] || ln_busy), .cnt_attention_i({c_at_kv, c_at_idle, c_at_busy}),
    .cnt_writer_i(unit_busy[WRITER]),
    .cnt_reader_i({c_issue[0], c_idle[0], c_wait[0], c_nocredit[0]}), .cnt_run_o(cnt_run)
  );

  mr_channels #(
    .N(N), .W_DEPTH(W_DEPTH), .KV_DEPTH(KV_DEPTH), .RING(RING), .VEC_WORDS(VEC_WORDS),
    .STASH(TRAIN)
  ) u_channels (
    .clk_i, .rst_ni(unit_rst_n), .halt_i(halt),
    .job_valid_i(job_valid), .job_ready_o(job_ready), .job_off_i(job_off), .job_beats_i(job_beats),
    .job_stash_i(job_stash), .s_base_i(s_base),
    .w_base_i(w_base), .w_limit_i(w_limit), .kv_base_i(kv_base), .kv_limit_i(kv_limit),
    .kv_job_valid_i(kv_job_valid), .kv_job_ready_o(kv_job_ready), .kv_job_off_i(kv_job_off),
    .kv_job_beats_i(kv_job_beats), .kv_valid_o(kv_valid), .kv_data_o(kv_data),
    .kv_credit_i(kv_credit),
    .sp_valid_i(sp_valid), .sp_ready_o(sp_ready), .sp_vec_i(sp_vec), .sp_vec_beats_i(sp_vec_beats),
    .sp_fp4_i(sp_fp4), .sp_bias_i(sp_bias), .sp_kblocks_i(sp_kblocks), .sp_groups_i(sp_groups),
    .sp_first_i(sp_first), .sp_in_head_i(sp_in_head),
    .sp_done_o(sp_done),
    .vec_ren_i(vec_ren), .vec_raddr_i(vec_raddr), .vec_rdata_o(vec_rdata),
    .ring_count_o(ring_count), .ring_ren_i(ring_ren), .ring_raddr_i(ring_raddr),
    .ring_rdata_o(ring_rdata), .ring_rcode_o(ring_rcode), .ring_free_i(ring_free),
    .tile_valid_o(tile_valid), .tile_max_o(tile_max), .tile_bias_o(tile_bias),
    .tile_pop_i(tile_pop),
    .idle_o(rd_idle), .err_valid_o(e_valid[N-1:0]), .err_code_o(e_code[8*N-1:0]),
    .err_addr_o(e_addr[64*N-1:0]),
    .cnt_nocredit_o(c_nocredit), .cnt_wait_o(c_wait), .cnt_idle_o(c_idle), .cnt_issue_o(c_issue),
    .cnt_w_beat_o(c_w_beat), .cnt_kv_beat_o(c_kv_beat),
    .m_ch_arvalid_o, .m_ch_arready_i, .m_ch_araddr_o, .m_ch_arlen_o, .m_ch_rvalid_i,
    .m_ch_rready_o, .m_ch_rdata_i, .m_ch_rresp_i, .m_ch_rlast_i
  );

  mr_host_port #(
    .READERS(READERS), .WRITERS(WRITERS)
  ) u_host (
    .clk_i(clk_vec), .rst_ni(unit_rst_n), .flush_i(halt),
    .rd_valid_i(hr_req_valid), .rd_ready_o(hr_req_ready), .rd_addr_i(hr_req_addr),
    .rd_beats_i(hr_req_beats), .rd_data_valid_o(hr_valid), .rd_data_o(hr_data),
    .job_valid_i(wj_valid), .job_ready_o(wj_ready), .job_addr_i(wj_addr), .job_beats_i(wj_beats),
    .job_strb_i(wj_strb), .data_valid_i(wd_valid), .data_ready_o(wd_ready), .data_i(wd_data),
    .job_done_o(wj_done),
    .rd_idle_o(hr_idle), .wr_idle_o(wr_idle), .err_valid_o(e_valid[E_HOST+:2]),
    .err_code_o(e_code[8*E_HOST+:16]), .err_addr_o(e_addr[64*E_HOST+:128]),
    .cnt_read_beat_o(c_hr_beat), .cnt_write_beat_o(c_wr_beat),
    .m_host_arvalid_o, .m_host_arready_i, .m_host_araddr_o, .m_host_arlen_o, .m_host_rvalid_i,
    .m_host_rready_o, .m_host_rdata_i, .m_host_rresp_i, .m_host_rlast_i, .m_host_awvalid_o,
    .m_host_awready_i, .m_host_awaddr_o, .m_host_awlen_o, .m_host_wvalid_o, .m_host_wready_i,
    .m_host_wdata_o, .m_host_wstrb_o, .m_host_wlast_o, .m_host_bvalid_i, .m_host_bready_o,
    .m_host_bresp_i
  );

  mr_matmul #(
    .N(N), .R(R), .T(T), .ACT_WORDS(ACT_WORDS), .RING(RING), .PAIR(PAIR), .FOLD(FOLD),
    .TRAIN(TRAIN)
  ) u_matmul (
    .clk_i, .rst_ni(unit_rst_n),
    .cmd_valid_i(issue_valid[ARRAY]), .cmd_ready_o(issue_ready[ARRAY]), .cmd_i(cmds[511:0]),
    .n_rows_i(n_rows), .n_logit_rows_i(n_logit_rows), .two_pass_i(two_pass),
    .busy_i(unit_busy[ARRAY]),
    .cfg_valid_o(cfg_valid), .cfg_ready_i(cfg_ready), .cfg_rows_o(cfg_rows),
    .err_valid_o(e_valid[E_MATMUL]), .err_code_o(e_code[8*E_MATMUL+:8]),
    .err_addr_o(e_addr[64*E_MATMUL+:64]),
    .ring_count_i(ring_count), .ring_ren_o(ring_ren), .ring_raddr_o(ring_raddr),
    .ring_rdata_i(ring_rdata), .ring_rcode_i(ring_rcode), .ring_free_o(ring_free),
    .tile_valid_i(tile_valid), .tile_max_i(tile_max), .tile_bias_i(tile_bias),
    .tile_pop_o(tile_pop),
    .dr_valid_o(dr_valid), .dr_ready_i(dr_ready), .dr_acc_o(dr_acc), .dr_base_o(dr_base),
    .dr_nan_o(dr_nan), .dr_bias_o(dr_bias), .dr_token_o(dr_token), .dr_group_o(dr_group),
    .dr_fp4_o(dr_fp4), .dr_last_o(dr_last),
    .a_valid_i(aa_valid), .a_ready_o(aa_ready), .a_slot_i(aa_slot), .a_word_i(aa_word),
    .a_region_i(aa_region), .a_first_i(aa_first), .a_lo_i(aa_lo), .a_data_i(aa_data),
    .b_valid_i(ab_valid), .b_ready_o(ab_ready), .b_slot_i(ab_slot), .b_word_i(ab_word),
    .b_region_i(ab_region), .b_first_i(ab_first), .b_lo_i(ab_lo), .b_data_i(ab_data),
    .c_valid_i(ac_valid), .c_ready_o(ac_ready), .c_slot_i(ac_slot), .c_word_i(ac_word),
    .c_region_i(ac_region), .c_max_i(ac_max), .c_data_i(ac_data),
    .gr_cmd_valid_o(gr_cmd_valid), .gr_cmd_ready_i(gr_cmd_ready), .gr_valid_o(gr_valid),
    .gr_ready_i(gr_ready), .gr_flags_o(gr_flags),
    .cnt_busy_o(c_arr_busy), .cnt_weights_o(c_arr_weights), .cnt_drain_o(c_arr_drain),
    .cnt_idle_o(c_arr_idle), .cnt_blocks_o(c_blocks)
  );

  mr_results #(
    .N(N), .T(T), .D_MAX(D_MAX), .ROT_MAX(ROT_MAX), .QKV_WORDS(QKV_WORDS), .PM_WORDS(PM_WORDS),
    .TRAIN(TRAIN)
  ) u_results (
    .clk_i(clk_epi), .rst_ni(unit_rst_n),
    .cfg_valid_i(cfg_valid), .cfg_ready_o(cfg_ready), .cfg_rows_i(cfg_rows), .cmd_i(cmds[511:0]),
    .two_pass_i(two_pass), .train_i(train), .done_o(epi_done),
    .dr_valid_i(dr_valid), .dr_ready_o(dr_ready), .dr_acc_i(dr_acc), .dr_base_i(dr_base),
    .dr_nan_i(dr_nan), .dr_bias_i(dr_bias), .dr_token_i(dr_token), .dr_group_i(dr_group),
    .dr_fp4_i(dr_fp4), .dr_last_i(dr_last),
    .ln_valid_i(ln_valid), .ln_ready_o(ln_ready), .ln_data_i(ln_data), .ln_tag_i(ln_tag),
    .ln_ack_o(ln_ack),
    .rot_ren_o(rot_ren), .rot_raddr_o(rot_raddr), .rot_rdata_i(rot_rdata),
    .res_second_o(epi_second), .res_ren_o(epi_res_ren), .res_raddr_o(epi_res_raddr),
    .res_rdata_i(epi_res_rdata), .res_we_o(epi_res_we), .res_waddr_o(epi_res_waddr),
    .res_wdata_o(epi_res_wdata),
    .rexp_we_i(rexp_we), .rexp_waddr_i(rexp_waddr), .rexp_wdata_i(rexp_wdata),
    .rexp_ren_i(rexp_ren), .rexp_raddr_i(rexp_raddr), .rexp_rdata_o(rexp_rdata),
    .act_valid_o(aa_valid), .act_ready_i(aa_ready), .act_slot_o(aa_slot), .act_word_o(aa_word),
    .act_region_o(aa_region), .act_first_o(aa_first), .act_lo_o(aa_lo), .act_data_o(aa_data),
    .qkv_we_o(qkv_we), .qkv_waddr_o(qkv_waddr), .qkv_wdata_o(qkv_wdata), .pm_valid_o(pmb_valid),
    .pm_token_o(pmb_token), .pm_index_o(pmb_index), .pm_code_o(pmb_code),
    .result_base_i(result_base), .result_limit_i(result_limit),
    .job_valid_o(wj_valid[0]), .job_ready_i(wj_ready[0]), .job_addr_o(wj_addr[0+:64]),
    .job_beats_o(wj_beats[0+:16]), .job_strb_o(wj_strb[0+:64]), .data_valid_o(wd_valid[0]),
    .data_ready_i(wd_ready[0]), .data_o(wd_data[0+:512]), .job_done_i(wj_done[0]),
    .tn_cmd_o(tn_cmd), .tn_take_o(tn_take), .tn_room_i(tn_room), .tn_valid_o(tn_valid),
    .tn_data_o(tn_data), .tn_token_o(tn_token), .tn_group_o(tn_group), .tn_last_o(tn_last),
    .tn_done_i(tn_done), .tn_bad_i(tn_bad), .tn_bad_addr_i(tn_bad_addr),
    .sl_cmd_o(sl_cmd), .sl_take_o(sl_take), .sl_room_i(sl_room), .sl_x_valid_o(sl_x_valid),
    .sl_x_o(sl_x), .sl_done_i(sl_done), .sl_use_o(sl_use), .sl_has_i(sl_has), .sl_pop_o(sl_pop),
    .sl_f_i(sl_f),
    .tl_cmd_o(tl_cmd), .tl_take_o(tl_take), .tl_room_i(tl_room), .tl_valid_o(tl_valid),
    .tl_data_o(tl_data), .tl_done_i(tl_done), .tl_bad_i(tl_bad), .tl_bad_addr_i(tl_bad_addr),
    .err_valid_o(e_valid[E_EPILOGUE]), .err_code_o(e_code[8*E_EPILOGUE+:8]),
    .err_addr_o(e_addr[64*E_EPILOGUE+:64]),
    .acks_o(epi_ack), .busy_o(epi_busy), .ovf_o(epi_ovf), .nan_o(epi_nan)
  );

  mr_vector #(
    .N(N), .T(T), .D_MAX(D_MAX), .ROT_MAX(ROT_MAX), .CTX_MAX(CTX_MAX),
    .VEC_WORDS(VEC_WORDS), .TRAIN(TRAIN)
  ) u_vector (
    .clk_i(clk_vec), .clk_mem_i(clk_epi), .rst_ni(unit_rst_n),
    .cmd_valid_i(issue_valid[VECTOR] && !vq_op), .cmd_ready_o(vec_ready), .cmd_i(cmds[1023:512]),
    .done_o(vec_done), .busy_o(ln_busy), .n_rows_i(n_rows), .two_pass_i(two_pass),
    .input_base_i(input_base), .train_i(train), .rows_base_i(rows_base),
    .err_valid_o(e_valid[E_ROWS]), .err_code_o(e_code[8*E_ROWS+:8]),
    .err_addr_o(e_addr[64*E_ROWS+:64]),
    .ovf_o(ln_ovf), .nan_o(ln_nan),
    .rd_valid_o(hr_req_valid[1]), .rd_ready_i(hr_req_ready[1]), .rd_addr_o(hr_req_addr[127:64]),
    .rd_beats_o(hr_req_beats[31:16]), .rd_data_valid_i(hr_valid[1]), .rd_data_i(hr_data),
    .row_a_ren_i(row_a_ren), .row_a_raddr_i(row_a_raddr), .row_a_rdata_o(row_a_rdata),
    .row_b_ren_i(row_b_ren), .row_b_raddr_i(row_b_raddr), .row_b_rdata_o(row_b_rdata),
    .row_continues_o(row_continues), .n_logit_rows_o(n_logit_rows),
    .rexp_we_o(rexp_we), .rexp_waddr_o(rexp_waddr), .rexp_wdata_o(rexp_wdata),
    .rexp_ren_o(rexp_ren), .rexp_raddr_o(rexp_raddr), .rexp_rdata_i(rexp_rdata),
    .phase_i(ln_phase_q), .vec_ren_o(vec_ren), .vec_raddr_o(vec_raddr), .vec_rdata_i(vec_rdata),
    .ln_valid_o(ln_valid), .ln_ready_i(ln_ready), .ln_data_o(ln_data), .ln_tag_o(ln_tag),
    .ln_ack_i(ln_ack),
    .rot_ren_i(rot_ren), .rot_raddr_i(rot_raddr), .rot_rdata_o(rot_rdata),
    .epi_second_i(epi_second), .epi_res_rdata_o(epi_res_rdata),
    .epi_res_ren_i(epi_res_ren), .epi_res_raddr_i(epi_res_raddr), .epi_res_we_i(epi_res_we),
    .epi_res_waddr_i(epi_res_waddr), .epi_res_wdata_i(epi_res_wdata), .kv_res_ren_i(kv_res_ren),
    .kv_res_raddr_i(kv_res_raddr), .kv_second_i(kv_second), .kv_res_rdata_o(kv_res_rdata),
    .at_keep_we_i(keep_we), .at_keep_waddr_i(keep_waddr), .at_keep_wdata_i(keep_wdata),
    .cp_on_i(cp_on), .cp_ren_i(cp_ren), .cp_second_i(cp_second), .cp_raddr_i(cp_raddr),
    .cp_valid_i(cp_valid), .cp_data_i(cp_data), .cp_tag_i(cp_tag), .cp_grant_o(cp_grant),
    .cp_rdata_o(cp_rdata)
  );

  mr_kv #(
    .N(N), .T(T), .SCORES(SCORES), .QKV_WORDS(QKV_WORDS), .D_MAX(D_MAX),
    .W_MAX(W_MAX), .CTX_MAX(CTX_MAX), .HEADS_MAX(HEADS_MAX), .HP_MAX(HP_MAX), .PM_WORDS(PM_WORDS),
    .KV_DEPTH(KV_DEPTH), .FOLD(FOLD), .TRAIN(TRAIN)
  ) u_kv (
    .clk_i(clk_epi), .clk_attn_i(clk_at), .clk_store_i(clk_vec), .rst_ni(unit_rst_n),
    .at_valid_i(issue_valid[ATTENTION]), .at_ready_o(issue_ready[ATTENTION]),
    .at_cmd_i(cmds[1535:1024]), .at_done_o(unit_done[ATTENTION]),
    .st_valid_i(issue_valid[WRITER]), .st_ready_o(issue_ready[WRITER]), .st_cmd_i(cmds[2047:1536]),
    .st_done_o(unit_done[WRITER]),
    .err_valid_o({e_valid[E_ATTENTION], e_valid[E_STORE]}),
    .err_code_o({e_code[8*E_ATTENTION+:8], e_code[8*E_STORE+:8]}),
    .err_addr_o({e_addr[64*E_ATTENTION+:64], e_addr[64*E_STORE+:64]}),
    .n_rows_i(n_rows), .two_pass_i(two_pass), .kv_layer_beats_i(kv_layer_beats),
    .kv_v_beats_i(kv_v_beats), .kv_pm_beats_i(kv_pm_beats), .kv_base_i(kv_base),
    .kv_limit_i(kv_limit), .result_base_i(result_base), .train_i(train), .rows_base_i(rows_base),
    .keep_we_o(keep_we), .keep_waddr_o(keep_waddr), .keep_wdata_o(keep_wdata),
    .res_second_o(kv_second),
    .row_a_ren_o(row_a_ren), .row_a_raddr_o(row_a_raddr), .row_a_rdata_i(row_a_rdata),
    .row_b_ren_o(row_b_ren), .row_b_raddr_o(row_b_raddr), .row_b_rdata_i(row_b_rdata),
    .row_continues_i(row_continues),
    .kv_job_valid_o(kv_job_valid), .kv_job_ready_i(kv_job_ready), .kv_job_off_o(kv_job_off),
    .kv_job_beats_o(kv_job_beats), .kv_valid_i(kv_valid), .kv_data_i(kv_data),
    .kv_credit_o(kv_credit),
    .qkv_we_i(qkv_we), .qkv_waddr_i(qkv_waddr), .qkv_wdata_i(qkv_wdata), .blk_valid_i(pmb_valid),
    .blk_token_i(pmb_token), .blk_index_i(pmb_index), .blk_code_i(pmb_code),
    .act_valid_o(ab_valid), .act_ready_i(ab_ready), .act_slot_o(ab_slot), .act_word_o(ab_word),
    .act_region_o(ab_region), .act_first_o(ab_first), .act_lo_o(ab_lo), .act_data_o(ab_data),
    .res_ren_o(kv_res_ren), .res_raddr_o(kv_res_raddr), .res_rdata_i(kv_res_rdata),
    .job_valid_o(wj_valid[1]), .job_ready_i(wj_ready[1]), .job_addr_o(wj_addr[64+:64]),
    .job_beats_o(wj_beats[16+:16]), .job_strb_o(wj_strb[64+:64]), .data_valid_o(wd_valid[1]),
    .data_ready_i(wd_ready[1]), .data_o(wd_data[512+:512]), .job_done_i(wj_done[1]),
    .cnt_busy_o(c_at_busy), .cnt_idle_o(c_at_idle), .cnt_wait_kv_o(c_at_kv), .ovf_o(at_ovf),
    .nan_o(at_nan)
  );

  // ---- training ---------------------------------------------------------------------------------
  assign issue_ready[VECTOR]     = vq_op ? vq_ready : vec_ready;
  assign unit_done[VECTOR]       = vec_done || vq_done;
  assign unit_done[ARRAY]        = epi_done || gr_done;
  if (TRAIN != 0) begin : gen_train
    assign vq_op = train && (cmds[512+:8] == mr_pkg::OP_LOAD_ACT[7:0] ||
                             cmds[512+:8] == mr_pkg::OP_MOVE_ROWS[7:0]);
    mr_train #(
      .N(N), .T(T), .D_MAX(D_MAX)
    ) u_train (
      .clk_i, .rst_ni(unit_rst_n),
      .vq_valid_i(issue_valid[VECTOR] && vq_op), .vq_ready_o(vq_ready), .vq_cmd_i(cmds[1023:512]),
      .vq_rows_i(n_rows), .vq_done_o(vq_done), .vq_err_valid_o(e_valid[E_LOAD_ACT]),
      .vq_err_code_o(e_code[8*E_LOAD_ACT+:8]), .vq_err_addr_o(e_addr[64*E_LOAD_ACT+:64]),
      .cp_on_o(cp_on), .cp_ren_o(cp_ren), .cp_second_o(cp_second), .cp_grant_i(cp_grant),
      .cp_raddr_o(cp_raddr), .cp_rdata_i(cp_rdata), .cp_valid_o(cp_valid), .cp_ready_i(ln_ready),
      .cp_data_o(cp_data), .cp_tag_o(cp_tag), .cp_ack_i(ln_ack),
      .c_valid_o(ac_valid), .c_ready_i(ac_ready), .c_slot_o(ac_slot), .c_word_o(ac_word),
      .c_region_o(ac_region), .c_max_o(ac_max), .c_data_o(ac_data),
      .mm_cmd_i(cmds[511:0]), .mm_rows_i(cfg_rows),
      .gr_cmd_valid_i(gr_cmd_valid), .gr_cmd_ready_o(gr_cmd_ready), .gr_valid_i(gr_valid),
      .gr_ready_o(gr_ready), .gr_acc_i(dr_acc), .gr_flags_i(gr_flags), .gr_token_i(dr_token),
      .gr_group_i(dr_group), .gr_last_i(dr_last), .gr_done_o(gr_done),
      .tn_cmd_valid_i(tn_cmd), .tn_take_i(tn_take), .tn_room_o(tn_room), .tn_valid_i(tn_valid),
      .tn_data_i(tn_data), .tn_token_i(tn_token), .tn_group_i(tn_group), .tn_last_i(tn_last),
      .tn_done_o(tn_done), .tn_err_valid_o(tn_bad), .tn_err_addr_o(tn_bad_addr),
      .tn_busy_o(tn_busy),
      .tl_cmd_valid_i(tl_cmd), .tl_take_i(tl_take), .tl_room_o(tl_room), .tl_valid_i(tl_valid),
      .tl_data_i(tl_data), .tl_done_o(tl_done), .tl_err_valid_o(tl_bad),
      .tl_err_addr_o(tl_bad_addr), .tl_busy_o(tl_busy),
      .sl_cmd_valid_i(sl_cmd), .sl_take_i(sl_take), .sl_room_o(sl_room), .sl_x_valid_i(sl_x_valid),
      .sl_x_i(sl_x), .sl_done_o(sl_done), .sl_use_i(sl_use), .sl_has_o(sl_has), .sl_pop_i(sl_pop),
      .sl_f_o(sl_f), .sl_busy_o(sl_busy), .rows_base_i(rows_base),
      .s_base_i(s_base), .s_limit_i(s_limit), .grad_base_i(grad_base),
      .rd_valid_o(hr_req_valid[READERS-1:2]), .rd_ready_i(hr_req_ready[READERS-1:2]),
      .rd_addr_o(hr_req_addr[READERS*64-1:128]), .rd_beats_o(hr_req_beats[READERS*16-1:32]),
      .rd_data_valid_i(hr_valid[READERS-1:2]), .rd_data_i(hr_data),
      .job_valid_o(wj_valid[WRITERS-1:2]), .job_ready_i(wj_ready[WRITERS-1:2]),
      .job_addr_o(wj_addr[WRITERS*64-1:128]), .job_beats_o(wj_beats[WRITERS*16-1:32]),
      .job_strb_o(wj_strb[WRITERS*64-1:128]), .data_valid_o(wd_valid[WRITERS-1:2]),
      .data_ready_i(wd_ready[WRITERS-1:2]), .data_o(wd_data[WRITERS*512-1:1024]),
      .job_done_i(wj_done[WRITERS-1:2])
    );
  end else begin : gen_no_train
    assign {vq_op, vq_ready, vq_done, ac_valid, ac_slot, ac_word, ac_region, ac_max, ac_data,
            gr_cmd_ready, gr_ready, gr_done, tn_room, tn_done, tn_bad, tn_bad_addr, tn_busy,
            tl_room, tl_done, tl_bad, tl_bad_addr, tl_busy, sl_room, sl_done, sl_has, sl_f,
            sl_busy, cp_on, cp_ren, cp_second, cp_raddr, cp_valid, cp_data, cp_tag} = '0;
    logic unused;
    assign unused = ^{train, ac_ready, gr_cmd_valid, gr_valid, gr_flags, tn_cmd, tn_take, tn_valid,
                      tn_data, tn_token, tn_group, tn_last, tl_cmd, tl_take, tl_valid, tl_data,
                      sl_cmd, sl_take, sl_x_valid, sl_x, sl_use, sl_pop, cp_grant, cp_rdata};
  end

`ifdef MILLRACE_VIEW
  // What is counted in this cycle, for timelines (sim/verilator/observer.h has the layout).
  logic [63:0] view_units /*verilator public_flat_rd*/;
  logic [63:0] view_readers /*verilator public_flat_rd*/;
  logic [63:0] view_beats /*verilator public_flat_rd*/;
  assign view_units = {
    32'd0, c_blocks, wr_idle, c_wr_beat, hr_idle, c_hr_beat,
    !unit_busy[WRITER], unit_busy[WRITER], c_at_kv, c_at_idle, c_at_busy,
    !(unit_busy[VECTOR] || ln_busy), unit_busy[VECTOR] || ln_busy,
    c_arr_idle, c_arr_drain, c_arr_weights, c_arr_busy, cnt_run
  };
  assign view_readers = {16'(c_issue), 16'(c_idle), 16'(c_wait), 16'(c_nocredit)};
  assign view_beats   = {32'd0, 16'(c_kv_beat), 16'(c_w_beat)};
`endif

endmodule
