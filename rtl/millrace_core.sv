// SPDX-License-Identifier: Apache-2.0
// Millrace: the weight-streaming engine. Wiring of the blocks of docs/rtl.md; what the ports carry
// is in docs/commands.md.
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
  localparam int TWO_PASS = T > 1 ? 1 : 0;
  localparam int LN = $clog2(N);
  localparam int TW = $clog2(T);
  localparam int RESW = $clog2(T * (D_MAX / V));
  localparam int ROTW = $clog2(T * (ROT_MAX / V));
  localparam int QAW = $clog2(T * QKV_WORDS);
  localparam int PAW = $clog2(T * PM_WORDS);
  localparam int VEC_AW = $clog2(2 * VEC_WORDS);
  localparam int ACT_AW = $clog2(T / R * ACT_WORDS);
  localparam int RMAX_AW = $clog2(T / R * 4);
  localparam int RING_AW = $clog2(RING);

  // An illegal configuration names a module that does not exist, since the tools' common subset has
  // no elaboration-time error.
  generate
    if ((N & (N - 1)) != 0 || N > 16 || (R & (R - 1)) != 0 || R > 32 || (T & (T - 1)) != 0 ||
        T < 2 || T % R != 0 || D_MAX % 64 != 0 || W_MAX % 64 != 0 || ROT_MAX % 64 != 0 ||
        CTX_MAX > 4096 || SCORES < CTX_MAX || (PAIR != 0 && R % 2 != 0) || D_MAX / 32 > RING / 2 ||
        W_MAX / 32 > RING / 2 || RING > 1024) begin : gen_illegal
      millrace_illegal_configuration u_illegal ();
    end
  endgenerate

  // ---- registers and sequencer ------------------------------------------------------------------
  logic            start, soft_reset, busy, run_done, run_error, finish, halt, unit_rst_n;
  assign busy_o   = busy;
  assign finish_o = finish;
  logic [63:0]     run_addr, err_addr;
  logic [5:0]      watchdog;
  logic [7:0]      err_code, err_unit;
  logic [15:0]     err_index;
  logic [1:0]      sticky_q;
  logic [4:0]      cnt_addr;
  logic [47:0]     cnt_data;
  logic            cnt_clear, cnt_run;
  mr_regs #(
    .N(N), .R(R), .T(T), .ACT_WORDS(ACT_WORDS), .QKV_WORDS(QKV_WORDS), .D_MAX(D_MAX),
    .ROT_MAX(ROT_MAX), .SCORES(SCORES), .W_MAX(W_MAX), .HEADS_MAX(HEADS_MAX), .HP_MAX(HP_MAX),
    .CTX_MAX(CTX_MAX), .RING(RING), .CLOCK_KHZ(CLOCK_KHZ)
  ) u_regs (
    .clk_i,
    .rst_ni,
    .awvalid_i  (s_axil_awvalid_i),
    .awready_o  (s_axil_awready_o),
    .awaddr_i   (s_axil_awaddr_i),
    .wvalid_i   (s_axil_wvalid_i),
    .wready_o   (s_axil_wready_o),
    .wdata_i    (s_axil_wdata_i),
    .wstrb_i    (s_axil_wstrb_i),
    .bvalid_o   (s_axil_bvalid_o),
    .bready_i   (s_axil_bready_i),
    .bresp_o    (s_axil_bresp_o),
    .arvalid_i  (s_axil_arvalid_i),
    .arready_o  (s_axil_arready_o),
    .araddr_i   (s_axil_araddr_i),
    .rvalid_o   (s_axil_rvalid_o),
    .rready_i   (s_axil_rready_i),
    .rdata_o    (s_axil_rdata_o),
    .rresp_o    (s_axil_rresp_o),
    .start_o    (start),
    .reset_o    (soft_reset),
    .run_addr_o (run_addr),
    .watchdog_o (watchdog),
    .irq_o,
    .busy_i     (busy),
    .done_i     (run_done),
    .error_i    (run_error),
    .finish_i   (finish),
    .err_code_i (err_code),
    .err_unit_i (err_unit),
    .err_index_i(err_index),
    .err_addr_i (err_addr),
    .sticky_i   (sticky_q),
    .cnt_addr_o (cnt_addr),
    .cnt_data_i (cnt_data)
  );

  logic            f_req_valid, f_req_ready, f_valid;
  logic [63:0]     f_req_addr;
  logic [15:0]     f_req_beats;
  logic [511:0]    hr_data;
  logic [15:0]     n_rows;
  logic            two_pass;
  logic [63:0]     input_base, result_base;
  logic [31:0]     input_limit, result_limit, kv_layer_beats, kv_v_beats, kv_pm_beats;
  logic [N*64-1:0] w_base, kv_base;
  logic [N*32-1:0] w_limit, kv_limit;
  logic [4:1]      issue_valid, issue_ready, unit_done;
  // Each unit takes its fields; the other bits of a command have no meaning for it.
  // verilator lint_off UNUSED
  logic [2047:0]   cmds;
  logic [4:0]      unit_busy;
  // verilator lint_on UNUSED
  logic [N-1:0]    job_valid, job_ready, sp_valid, sp_ready, sp_done;
  logic [31:0]     job_off, job_beats, sp_groups;
  logic            sp_vec, sp_fp4, sp_bias;
  logic [15:0]     sp_vec_beats, sp_kblocks;
  localparam int ERRORS = N + 8;
  logic [ERRORS-1:0]    e_valid;
  logic [ERRORS*8-1:0]  e_code;
  logic [ERRORS*3-1:0]  e_queue;
  logic [ERRORS*64-1:0] e_addr;
  logic            progress, axi_idle;
  mr_seq #(
    .N     (N),
    .T     (T),
    .D_MAX (D_MAX),
    .RING  (RING),
    .ERRORS(ERRORS)
  ) u_seq (
    .clk_i,
    .rst_ni,
    .start_i         (start),
    .reset_i         (soft_reset),
    .run_addr_i      (run_addr),
    .watchdog_i      (watchdog),
    .busy_o          (busy),
    .done_o          (run_done),
    .error_o         (run_error),
    .finish_o        (finish),
    .err_code_o      (err_code),
    .err_unit_o      (err_unit),
    .err_index_o     (err_index),
    .err_addr_o      (err_addr),
    .counters_clear_o(cnt_clear),
    .counters_run_o  (cnt_run),
    .hr_req_valid_o  (f_req_valid),
    .hr_req_ready_i  (f_req_ready),
    .hr_req_addr_o   (f_req_addr),
    .hr_req_beats_o  (f_req_beats),
    .hr_valid_i      (f_valid),
    .hr_data_i       (hr_data),
    .n_rows_o        (n_rows),
    .two_pass_o      (two_pass),
    .input_base_o    (input_base),
    .input_limit_o   (input_limit),
    .result_base_o   (result_base),
    .result_limit_o  (result_limit),
    .kv_layer_beats_o(kv_layer_beats),
    .kv_v_beats_o    (kv_v_beats),
    .kv_pm_beats_o   (kv_pm_beats),
    .w_base_o        (w_base),
    .w_limit_o       (w_limit),
    .kv_base_o       (kv_base),
    .kv_limit_o      (kv_limit),
    .issue_valid_o   (issue_valid),
    .issue_ready_i   (issue_ready),
    .cmd_o           (cmds),
    .done_i          (unit_done),
    .unit_busy_o     (unit_busy),
    .job_valid_o     (job_valid),
    .job_ready_i     (job_ready),
    .job_off_o       (job_off),
    .job_beats_o     (job_beats),
    .sp_valid_o      (sp_valid),
    .sp_ready_i      (sp_ready),
    .sp_vec_o        (sp_vec),
    .sp_vec_beats_o  (sp_vec_beats),
    .sp_fp4_o        (sp_fp4),
    .sp_bias_o       (sp_bias),
    .sp_kblocks_o    (sp_kblocks),
    .sp_groups_o     (sp_groups),
    .sp_done_i       (sp_done),
    .err_valid_i     (e_valid),
    .err_code_i      (e_code),
    .err_queue_i     (e_queue),
    .err_addr_i      (e_addr),
    .progress_i      (progress),
    .axi_idle_i      (axi_idle),
    .halt_o          (halt),
    .unit_rst_no     (unit_rst_n),
    .done_valid_o,
    .done_index_o
  );

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

  // ---- channels: reader and stream --------------------------------------------------------------
  logic [N-1:0]     w_valid, w_credit, kv_valid, kv_credit, kv_job_valid, kv_job_ready;
  logic [N*32-1:0]  kv_job_off, kv_job_beats;
  logic [N*512-1:0] ch_data;
  logic [N-1:0]     rd_idle, c_w_beat, c_kv_beat;
  // Stall causes are counted for channel 0: the channels run in step.
  // verilator lint_off UNUSED
  logic [N-1:0]     c_nocredit, c_wait, c_idle, c_issue;
  // verilator lint_on UNUSED
  logic             vec_ren, ring_ren, ring_free, tile_pop;
  logic [VEC_AW-1:0] vec_raddr;
  logic [N*128-1:0] vec_rdata, tile_bias;
  logic [RING_AW-1:0] ring_raddr;
  logic [N*16-1:0]  ring_count;
  logic [N*1024-1:0] ring_rdata;
  logic [N*32-1:0]  ring_rcode, tile_max;
  logic [N-1:0]     tile_valid;
  // A reader drops what is outstanding on a pulse and then waits for jobs, which halt holds back.
  logic halt_q;
  always_ff @(posedge clk_i) halt_q <= halt;
  genvar c;
  generate
    for (c = 0; c < N; c = c + 1) begin : gen_channel
      mr_reader #(
        .W_DEPTH (W_DEPTH),
        .KV_DEPTH(KV_DEPTH)
      ) u_reader (
        .clk_i,
        .rst_ni        (unit_rst_n),
        .w_job_valid_i (job_valid[c] && !halt),
        .w_job_ready_o (job_ready[c]),
        .w_job_off_i   (job_off),
        .w_job_beats_i (job_beats),
        .w_base_i      (w_base[64*c+:64]),
        .w_limit_i     (w_limit[32*c+:32]),
        .w_valid_o     (w_valid[c]),
        .w_credit_i    (w_credit[c]),
        .kv_job_valid_i(kv_job_valid[c] && !halt),
        .kv_job_ready_o(kv_job_ready[c]),
        .kv_job_off_i  (kv_job_off[32*c+:32]),
        .kv_job_beats_i(kv_job_beats[32*c+:32]),
        .kv_base_i     (kv_base[64*c+:64]),
        .kv_limit_i    (kv_limit[32*c+:32]),
        .kv_valid_o    (kv_valid[c]),
        .kv_credit_i   (kv_credit[c]),
        .data_o        (ch_data[512*c+:512]),
        .flush_i       (halt && !halt_q),
        .idle_o        (rd_idle[c]),
        .err_valid_o   (e_valid[c]),
        .err_code_o    (e_code[8*c+:8]),
        .err_addr_o    (e_addr[64*c+:64]),
        .cnt_nocredit_o(c_nocredit[c]),
        .cnt_wait_o    (c_wait[c]),
        .cnt_idle_o    (c_idle[c]),
        .cnt_issue_o   (c_issue[c]),
        .cnt_w_beat_o  (c_w_beat[c]),
        .cnt_kv_beat_o (c_kv_beat[c]),
        .m_arvalid_o   (m_ch_arvalid_o[c]),
        .m_arready_i   (m_ch_arready_i[c]),
        .m_araddr_o    (m_ch_araddr_o[64*c+:64]),
        .m_arlen_o     (m_ch_arlen_o[8*c+:8]),
        .m_rvalid_i    (m_ch_rvalid_i[c]),
        .m_rdata_i     (m_ch_rdata_i[512*c+:512]),
        .m_rresp_i     (m_ch_rresp_i[2*c+:2]),
        .m_rlast_i     (m_ch_rlast_i[c])
      );
      assign e_queue[3*c+:3] = mr_pkg::QUEUE_READER[2:0];

      mr_stream #(
        .FIFO_DEPTH(W_DEPTH),
        .RING      (RING),
        .VEC_WORDS (VEC_WORDS)
      ) u_stream (
        .clk_i,
        .rst_ni         (unit_rst_n),
        .w_valid_i      (w_valid[c]),
        .w_data_i       (ch_data[512*c+:512]),
        .w_credit_o     (w_credit[c]),
        .cmd_valid_i    (sp_valid[c]),
        .cmd_ready_o    (sp_ready[c]),
        .cmd_vec_i      (sp_vec),
        .cmd_vec_beats_i(sp_vec_beats),
        .cmd_fp4_i      (sp_fp4),
        .cmd_bias_i     (sp_bias),
        .cmd_kblocks_i  (sp_kblocks),
        .cmd_groups_i   (sp_groups),
        .cmd_done_o     (sp_done[c]),
        .vec_ren_i      (vec_ren),
        .vec_raddr_i    (vec_raddr),
        .vec_rdata_o    (vec_rdata[128*c+:128]),
        .ring_count_o   (ring_count[16*c+:16]),
        .ring_ren_i     (ring_ren),
        .ring_raddr_i   (ring_raddr),
        .ring_rdata_o   (ring_rdata[1024*c+:1024]),
        .ring_rcode_o   (ring_rcode[32*c+:32]),
        .ring_free_i    (ring_free),
        .tile_valid_o   (tile_valid[c]),
        .tile_max_o     (tile_max[32*c+:32]),
        .tile_bias_o    (tile_bias[128*c+:128]),
        .tile_pop_i     (tile_pop)
      );
    end
  endgenerate
  assign m_ch_rready_o = '1;  // every beat has its place reserved

  // ---- host port --------------------------------------------------------------------------------
  logic        r_req_valid, r_req_ready, r_valid, unused_hr_last, hr_idle, c_hr_beat;
  logic [63:0] r_req_addr;
  logic [15:0] r_req_beats;
  mr_hostrd #(
    .CLIENTS(2)
  ) u_hostrd (
    .clk_i(clk_vec),
    .rst_ni     (unit_rst_n),
    .flush_i    (halt),
    .req_valid_i({r_req_valid, f_req_valid}),
    .req_ready_o({r_req_ready, f_req_ready}),
    .req_addr_i ({r_req_addr, f_req_addr}),
    .req_beats_i({r_req_beats, f_req_beats}),
    .valid_o    ({r_valid, f_valid}),
    .last_o     (unused_hr_last),
    .data_o     (hr_data),
    .idle_o     (hr_idle),
    .err_valid_o(e_valid[N]),
    .err_code_o (e_code[8*N+:8]),
    .err_addr_o (e_addr[64*N+:64]),
    .cnt_beat_o (c_hr_beat),
    .m_arvalid_o(m_host_arvalid_o),
    .m_arready_i(m_host_arready_i),
    .m_araddr_o (m_host_araddr_o),
    .m_arlen_o  (m_host_arlen_o),
    .m_rvalid_i (m_host_rvalid_i),
    .m_rdata_i  (m_host_rdata_i),
    .m_rresp_i  (m_host_rresp_i),
    .m_rlast_i  (m_host_rlast_i)
  );
  assign e_queue[3*N+:3]  = mr_pkg::QUEUE_VECTOR[2:0];
  assign m_host_rready_o  = 1'b1;

  // Writer clients: 0 the epilogue's logits, 1 the KV store.
  logic [1:0]    wj_valid, wj_ready, wd_valid, wd_ready, wj_done;
  logic [127:0]  wj_addr, wj_strb;
  logic [31:0]   wj_beats;
  logic [1023:0] wd_data;
  logic          wr_idle, c_wr_beat;
  mr_writer #(
    .CLIENTS(2)
  ) u_writer (
    .clk_i(clk_vec),
    .rst_ni      (unit_rst_n),
    .flush_i     (halt),
    .job_valid_i (wj_valid),
    .job_ready_o (wj_ready),
    .job_addr_i  (wj_addr),
    .job_beats_i (wj_beats),
    .job_strb_i  (wj_strb),
    .data_valid_i(wd_valid),
    .data_ready_o(wd_ready),
    .data_i      (wd_data),
    .done_o      (wj_done),
    .idle_o      (wr_idle),
    .err_valid_o (e_valid[N+1]),
    .err_code_o  (e_code[8*(N+1)+:8]),
    .err_addr_o  (e_addr[64*(N+1)+:64]),
    .cnt_beat_o  (c_wr_beat),
    .m_awvalid_o (m_host_awvalid_o),
    .m_awready_i (m_host_awready_i),
    .m_awaddr_o  (m_host_awaddr_o),
    .m_awlen_o   (m_host_awlen_o),
    .m_wvalid_o  (m_host_wvalid_o),
    .m_wready_i  (m_host_wready_i),
    .m_wdata_o   (m_host_wdata_o),
    .m_wstrb_o   (m_host_wstrb_o),
    .m_wlast_o   (m_host_wlast_o),
    .m_bvalid_i  (m_host_bvalid_i),
    .m_bready_o  (m_host_bready_o),
    .m_bresp_i   (m_host_bresp_i)
  );
  assign e_queue[3*(N+1)+:3] = mr_pkg::QUEUE_WRITER[2:0];

  // ---- vector queue: LOAD_ROWS and LAYERNORM ----------------------------------------------------
  // verilator lint_off UNUSED
  logic [511:0] vc, mc, ac, wc;
  // verilator lint_on UNUSED
  assign mc = cmds[0+:512];
  assign vc = cmds[512+:512];
  assign ac = cmds[1024+:512];
  assign wc = cmds[1536+:512];

  logic            vec_is_load, ld_ready, ln_ready, ld_done, ln_done;
  logic            row_a_ren, row_b_ren;
  logic [TW-1:0]   row_a_raddr, row_b_raddr;
  logic [47:0]     row_a_rdata, row_b_rdata;
  logic [T-1:0]    row_logit, row_continues;
  logic [15:0]     n_logit_rows;
  logic            rot_we, ld_res_we, ld_rexp_we;
  logic [ROTW-1:0] rot_waddr;
  logic [RESW-1:0] ld_res_waddr;
  logic [V*32-1:0] ld_wdata;
  logic [TW-1:0]   ld_rexp_waddr;
  logic [7:0]      ld_rexp_wdata;
  assign vec_is_load    = vc[7:0] == mr_pkg::OP_LOAD_ROWS[7:0];
  assign issue_ready[2] = vec_is_load ? ld_ready : ln_ready && !ln_bad;

  // A LAYERNORM whose row does not fit the memories is an error and is not issued.
  logic ln_bad;
  assign ln_bad = vc[mr_pkg::LAYERNORM_DBLOCKS_LSB+:16] == '0 ||
                  vc[mr_pkg::LAYERNORM_DBLOCKS_LSB] ||
                  vc[mr_pkg::LAYERNORM_DBLOCKS_LSB+:16] > 16'(D_MAX / 32) ||
                  17'(vc[mr_pkg::LAYERNORM_DST_BASE_LSB+:16]) +
                      17'(vc[mr_pkg::LAYERNORM_DBLOCKS_LSB+:16]) > 17'(ACT_WORDS);
  assign e_valid[N+6]         = issue_valid[2] && !vec_is_load && ln_bad;
  assign e_code[8*(N+6)+:8]   = mr_pkg::DEVERR_COMMAND[7:0];
  assign e_addr[64*(N+6)+:64] = '0;
  assign e_queue[3*(N+6)+:3]  = mr_pkg::QUEUE_VECTOR[2:0];
  assign unit_done[2]   = ld_done || ln_done;
  mr_rows #(
    .T      (T),
    .V      (V),
    .D_MAX  (D_MAX),
    .ROT_MAX(ROT_MAX),
    .CTX_MAX(CTX_MAX)
  ) u_rows (
    .clk_i(clk_vec),
    .rst_ni         (unit_rst_n),
    .cmd_valid_i    (issue_valid[2] && vec_is_load),
    .cmd_ready_o    (ld_ready),
    .cmd_table_off_i(vc[mr_pkg::LOAD_ROWS_TABLE_OFF_LSB+:32]),
    .cmd_rot_off_i  (vc[mr_pkg::LOAD_ROWS_ROT_OFF_LSB+:32]),
    .cmd_res_off_i  (vc[mr_pkg::LOAD_ROWS_RES_OFF_LSB+:32]),
    .cmd_res_beats_i(vc[mr_pkg::LOAD_ROWS_RES_BEATS_LSB+:16]),
    .cmd_rot_beats_i(vc[mr_pkg::LOAD_ROWS_ROT_BEATS_LSB+:16]),
    .cmd_rows_i     (n_rows),
    .done_o         (ld_done),
    .base_i         (input_base),
    .limit_i        (input_limit),
    .err_valid_o    (e_valid[N+2]),
    .err_code_o     (e_code[8*(N+2)+:8]),
    .err_addr_o     (e_addr[64*(N+2)+:64]),
    .hr_req_valid_o (r_req_valid),
    .hr_req_ready_i (r_req_ready),
    .hr_req_addr_o  (r_req_addr),
    .hr_req_beats_o (r_req_beats),
    .hr_valid_i     (r_valid),
    .hr_data_i      (hr_data),
    .row_a_ren_i    (row_a_ren),
    .row_a_raddr_i  (row_a_raddr),
    .row_a_rdata_o  (row_a_rdata),
    .row_b_ren_i    (row_b_ren),
    .row_b_raddr_i  (row_b_raddr),
    .row_b_rdata_o  (row_b_rdata),
    .row_logit_o    (row_logit),
    .row_continues_o(row_continues),
    .n_logit_rows_o (n_logit_rows),
    .rot_we_o       (rot_we),
    .rot_waddr_o    (rot_waddr),
    .res_we_o       (ld_res_we),
    .res_waddr_o    (ld_res_waddr),
    .wdata_o        (ld_wdata),
    .rexp_we_o      (ld_rexp_we),
    .rexp_waddr_o   (ld_rexp_waddr),
    .rexp_wdata_o   (ld_rexp_wdata)
  );
  assign e_queue[3*(N+2)+:3] = mr_pkg::QUEUE_VECTOR[2:0];

  logic            ln_rexp_ren, ln_res_ren;
  logic [TW-1:0]   ln_rexp_raddr;
  logic [7:0]      rexp_rdata;
  logic [RESW-1:0] ln_res_raddr;
  logic [V*32-1:0] res_rdata, ln_q_data;
  logic            ln_q_valid, ln_q_ready, ln_ack, ln_busy, ln_ovf, ln_nan, unused_ln_two_pass;
  logic [mr_vec_pkg::TAG_LN_W-1:0] ln_q_tag;
  // LayerNorm reads in every other cycle, counted from the reset and not from its command: a unit
  // whose state stands still when it is idle cannot count that itself.
  logic ln_phase_q;
  always_ff @(posedge clk_i) ln_phase_q <= unit_rst_n && !ln_phase_q;
  mr_layernorm #(
    .V        (V),
    .T        (T),
    .D_MAX    (D_MAX),
    .VEC_WORDS(VEC_WORDS)
  ) u_layernorm (
    .clk_i(clk_vec),
    .rst_ni          (unit_rst_n),
    .cmd_valid_i     (issue_valid[2] && !vec_is_load && !ln_bad),
    .cmd_ready_o     (ln_ready),
    .cmd_dst_base_i  (vc[mr_pkg::LAYERNORM_DST_BASE_LSB+:16]),
    .cmd_dblocks_i   (vc[mr_pkg::LAYERNORM_DBLOCKS_LSB+:16]),
    .cmd_n_i         (vc[mr_pkg::LAYERNORM_N_LSB+:16]),
    .cmd_dst_slot_i  (vc[mr_pkg::LAYERNORM_DST_SLOT_LSB+:2]),
    .cmd_logit_rows_i(vc[mr_pkg::LAYERNORM_LOGIT_ROWS_LSB]),
    .cmd_inv_n_i     (vc[mr_pkg::LAYERNORM_INV_N_LSB+:32]),
    .cmd_inv_n2_i    (vc[mr_pkg::LAYERNORM_INV_N2_LSB+:32]),
    .cmd_eps_i       (vc[mr_pkg::LAYERNORM_EPS_LSB+:32]),
    .cmd_rows_i      (n_rows),
    .cmd_two_pass_i  (two_pass),
    .row_logit_i     (row_logit),
    .phase_i         (ln_phase_q),
    .rexp_ren_o      (ln_rexp_ren),
    .rexp_raddr_o    (ln_rexp_raddr),
    .rexp_rdata_i    (rexp_rdata),
    .res_ren_o       (ln_res_ren),
    .res_raddr_o     (ln_res_raddr),
    .res_rdata_i     (res_rdata),
    .vec_ren_o       (vec_ren),
    .vec_raddr_o     (vec_raddr),
    .vec_rdata_i     (vec_rdata),
    .q_valid_o       (ln_q_valid),
    .q_ready_i       (ln_q_ready),
    .q_data_o        (ln_q_data),
    .q_two_pass_o    (unused_ln_two_pass),
    .q_tag_o         (ln_q_tag),
    .wr_ack_i        (ln_ack),
    .done_o          (ln_done),
    .busy_o          (ln_busy),
    .ovf_o           (ln_ovf),
    .nan_o           (ln_nan)
  );

  // ---- array ------------------------------------------------------------------------------------
  logic              mm_ready, cfg_ready, mm_issue;
  logic [15:0]       mm_rows;
  logic [R-1:0]      act_ren;
  logic [ACT_AW-1:0] act_raddr;
  logic [R*256-1:0]  act_rdata;
  logic [R*8-1:0]    act_rcode;
  logic              rmax_ren;
  logic [RMAX_AW-1:0] rmax_raddr;
  logic [R*8-1:0]    rmax_rdata;
  logic              dr_valid, dr_ready, dr_fp4, dr_last;
  logic [N*192-1:0]  dr_acc;
  logic [N*36-1:0]   dr_base;
  logic [N*4-1:0]    dr_nan;
  logic [N*128-1:0]  dr_bias;
  logic [15:0]       dr_token, dr_group, c_blocks;
  logic              c_arr_busy, c_arr_weights, c_arr_drain, c_arr_idle;
  logic              mm_bad, mm_logit;

  // The array and the epilogue take a MATMUL together. One whose regions do not lie in the
  // memories, or that has no rows, is an error and is not issued.
  assign mm_logit = mc[mr_pkg::MATMUL_LOGIT_ROWS_LSB];
  assign mm_rows  = mm_logit ? n_logit_rows : n_rows;
  assign mm_bad   = mm_rows == '0 ||
      17'(mc[mr_pkg::MATMUL_SRC_BASE_LSB+:16]) + 17'(mc[mr_pkg::MATMUL_KBLOCKS_LSB+:16]) >
          17'(ACT_WORDS) ||
      mc[mr_pkg::MATMUL_KBLOCKS_LSB+:16] == '0 ||
      mc[mr_pkg::MATMUL_KBLOCKS_LSB+:16] > 16'(RING / 2) ||
      mc[mr_pkg::MATMUL_COLS_LSB+:6] != '0 || mc[mr_pkg::MATMUL_COLS_LSB+:32] == '0 ||
      (mc[mr_pkg::MATMUL_DST_LSB+:2] == mr_pkg::DST_ACT[1:0] &&
       28'(mc[mr_pkg::MATMUL_DST_BASE_LSB+:16]) + {1'b0, mc[mr_pkg::MATMUL_COLS_LSB+5+:27]} >
           28'(ACT_WORDS)) ||
      (mc[mr_pkg::MATMUL_DST_LSB+:2] == mr_pkg::DST_QKV[1:0] &&
       27'(mc[mr_pkg::MATMUL_DST_BASE_LSB+:16]) + {1'b0, mc[mr_pkg::MATMUL_COLS_LSB+6+:26]} >
           27'(QKV_WORDS)) ||
      (mc[mr_pkg::MATMUL_DST_LSB+:2] == mr_pkg::DST_RES[1:0] &&
       mc[mr_pkg::MATMUL_COLS_LSB+:32] > 32'(D_MAX)) ||
      (mc[mr_pkg::MATMUL_ROTARY_LSB] &&
       (mc[mr_pkg::MATMUL_HEAD_LANES_LSB+:6] != '0 || mc[mr_pkg::MATMUL_HEAD_LANES_LSB+:16] == '0 ||
        mc[mr_pkg::MATMUL_ROTARY_DIM_LSB+:16] > 16'(ROT_MAX)));
  assign mm_issue       = issue_valid[1] && !mm_bad && mm_ready && cfg_ready;
  assign issue_ready[1] = mm_issue;
  assign e_valid[N+3]            = issue_valid[1] && mm_bad;
  assign e_code[8*(N+3)+:8]      = mr_pkg::DEVERR_COMMAND[7:0];
  assign e_addr[64*(N+3)+:64]    = '0;
  assign e_queue[3*(N+3)+:3]     = mr_pkg::QUEUE_ARRAY[2:0];

  mr_array #(
    .N        (N),
    .R        (R),
    .T        (T),
    .ACT_WORDS(ACT_WORDS),
    .RING     (RING),
    .PAIR     (PAIR)
  ) u_array (
    .clk_i,
    .rst_ni        (unit_rst_n),
    .cmd_valid_i   (issue_valid[1] && !mm_bad && cfg_ready),
    .cmd_ready_o   (mm_ready),
    .cmd_src_base_i(mc[mr_pkg::MATMUL_SRC_BASE_LSB+:16]),
    .cmd_kblocks_i (mc[mr_pkg::MATMUL_KBLOCKS_LSB+:16]),
    .cmd_groups_i  (mc[mr_pkg::MATMUL_COLS_LSB+:32] >> (2 + LN)),
    .cmd_src_slot_i(mc[mr_pkg::MATMUL_SRC_SLOT_LSB+:2]),
    .cmd_fp4_i     (mc[mr_pkg::MATMUL_FP4_LSB]),
    .cmd_rows_i    (mm_rows),
    .cmd_two_pass_i(two_pass),
    .ring_count_i  (ring_count),
    .ring_ren_o    (ring_ren),
    .ring_raddr_o  (ring_raddr),
    .ring_rdata_i  (ring_rdata),
    .ring_rcode_i  (ring_rcode),
    .ring_free_o   (ring_free),
    .tile_valid_i  (tile_valid),
    .tile_max_i    (tile_max),
    .tile_bias_i   (tile_bias),
    .tile_pop_o    (tile_pop),
    .act_ren_o     (act_ren),
    .act_raddr_o   (act_raddr),
    .act_rdata_i   (act_rdata),
    .act_rcode_i   (act_rcode),
    .rmax_ren_o    (rmax_ren),
    .rmax_raddr_o  (rmax_raddr),
    .rmax_rdata_i  (rmax_rdata),
    .dr_valid_o    (dr_valid),
    .dr_ready_i    (dr_ready),
    .dr_acc_o      (dr_acc),
    .dr_base_o     (dr_base),
    .dr_nan_o      (dr_nan),
    .dr_bias_o     (dr_bias),
    .dr_token_o    (dr_token),
    .dr_group_o    (dr_group),
    .dr_fp4_o      (dr_fp4),
    .dr_last_o     (dr_last),
    .cnt_busy_o    (c_arr_busy),
    .cnt_weights_o (c_arr_weights),
    .cnt_drain_o   (c_arr_drain),
    .cnt_idle_o    (c_arr_idle),
    .cnt_blocks_o  (c_blocks)
  );

  // ---- activation memory ------------------------------------------------------------------------
  logic         aa_valid, aa_ready, aa_first, aa_lo, ab_valid, ab_ready, ab_first, ab_lo;
  logic [15:0]  aa_slot, aa_word, ab_slot, ab_word;
  logic [1:0]   aa_region, ab_region;
  logic [263:0] aa_data, ab_data;
  mr_act_mem #(
    .R        (R),
    .T        (T),
    .ACT_WORDS(ACT_WORDS)
  ) u_act_mem (
    .clk_i,
    .rst_ni      (unit_rst_n),
    .a_valid_i   (aa_valid),
    .a_ready_o   (aa_ready),
    .a_slot_i    (aa_slot),
    .a_word_i    (aa_word),
    .a_region_i  (aa_region),
    .a_first_i   (aa_first),
    .a_lo_i      (aa_lo),
    .a_data_i    (aa_data),
    .b_valid_i   (ab_valid),
    .b_ready_o   (ab_ready),
    .b_slot_i    (ab_slot),
    .b_word_i    (ab_word),
    .b_region_i  (ab_region),
    .b_first_i   (ab_first),
    .b_lo_i      (ab_lo),
    .b_data_i    (ab_data),
    .act_ren_i   (act_ren),
    .act_raddr_i (act_raddr),
    .act_rdata_o (act_rdata),
    .act_rcode_o (act_rcode),
    .rmax_ren_i  (rmax_ren),
    .rmax_raddr_i(rmax_raddr),
    .rmax_rdata_o(rmax_rdata)
  );

  // ---- memories of the vector path --------------------------------------------------------------
  // Residual: one reader and one writer at a time, by the program's order.
  logic            epi_res_ren, epi_res_we, kv_res_ren, res_ren, res_we;
  logic [RESW-1:0] epi_res_raddr, epi_res_waddr, kv_res_raddr, res_raddr, res_waddr;
  logic [V*32-1:0] epi_res_wdata, res_wdata;
  assign res_ren   = epi_res_ren || ln_res_ren || kv_res_ren;
  assign res_raddr = epi_res_ren ? epi_res_raddr : ln_res_ren ? ln_res_raddr : kv_res_raddr;
  assign res_we    = epi_res_we || ld_res_we;
  assign res_waddr = epi_res_we ? epi_res_waddr : ld_res_waddr;
  assign res_wdata = epi_res_we ? epi_res_wdata : ld_wdata;
  mr_ram_1r1w #(
    .W    (V * 32),
    .DEPTH(T * (D_MAX / V))
  ) u_residual (
    .clk_i(clk_epi),
    .wen_i  (res_we),
    .waddr_i(res_waddr),
    .wdata_i(res_wdata),
    .ren_i  (res_ren),
    .raddr_i(res_raddr),
    .rdata_o(res_rdata)
  );

  logic            rot_ren;
  logic [ROTW-1:0] rot_raddr;
  logic [V*32-1:0] rot_rdata;
  mr_ram_1r1w #(
    .W    (V * 32),
    .DEPTH(T * (ROT_MAX / V))
  ) u_rotary (
    .clk_i(clk_epi),
    .wen_i  (rot_we),
    .waddr_i(rot_waddr),
    .wdata_i(ld_wdata),
    .ren_i  (rot_ren),
    .raddr_i(rot_raddr),
    .rdata_o(rot_rdata)
  );

  logic [1:0]      qkv_we;
  logic [QAW-1:0]  qkv_waddr, q_raddr, kvs_raddr, qkv_raddr;
  logic [527:0]    qkv_wdata, qkv_rdata;
  logic            q_ren, kvs_ren, qkv_ren;
  assign qkv_ren   = q_ren || kvs_ren;
  assign qkv_raddr = kvs_ren ? kvs_raddr : q_raddr;
  mr_ram_1r1w #(
    .W    (528),
    .DEPTH(T * QKV_WORDS),
    .WE_W (264)
  ) u_qkv (
    .clk_i(clk_epi),
    .wen_i  (qkv_we),
    .waddr_i(qkv_waddr),
    .wdata_i(qkv_wdata),
    .ren_i  (qkv_ren),
    .raddr_i(qkv_raddr),
    .rdata_o(qkv_rdata)
  );

  // ---- prefix maxima ----------------------------------------------------------------------------
  localparam int BW = $clog2(PM_WORDS) + 1;
  logic           pmb_valid, pm_ld_we, pma_ren, pmk_ren;
  logic [TW-1:0]  pmb_token;
  logic [BW-1:0]  pmb_index;
  logic [7:0]     pmb_code;
  logic [PAW-1:0] pm_ld_waddr, pma_raddr, pmk_raddr;
  logic [15:0]    pm_ld_wdata, pma_rdata, pmk_rdata;
  mr_prefix_max #(
    .T       (T),
    .PM_WORDS(PM_WORDS),
    .SUBS    (V > 32 ? V / 32 : 1)
  ) u_prefix_max (
    .clk_i(clk_epi),
    .rst_ni         (unit_rst_n),
    .blk_valid_i    (pmb_valid),
    .blk_token_i    (pmb_token),
    .blk_index_i    (pmb_index),
    .blk_code_i     (pmb_code),
    .row_continues_i(row_continues),
    .ld_we_i        (pm_ld_we),
    .ld_waddr_i     (pm_ld_waddr),
    .ld_wdata_i     (pm_ld_wdata),
    .a_ren_i        (pmk_ren),
    .a_raddr_i      (pmk_raddr),
    .a_rdata_o      (pmk_rdata),
    .b_ren_i        (pma_ren),
    .b_raddr_i      (pma_raddr),
    .b_rdata_o      (pma_rdata)
  );

  // ---- attention --------------------------------------------------------------------------------
  logic at_done, c_at_busy, c_at_idle, c_at_kv, at_ovf, at_nan;
  assign unit_done[3] = at_done;

  // Widths and regions of PM_LOAD and ATTEND, checked like MATMUL's.
  logic        at_bad, at_pm, at_ready;
  logic [15:0] at_words;
  assign at_pm    = ac[7:0] == mr_pkg::OP_PM_LOAD[7:0];
  assign at_words = at_pm ? ac[mr_pkg::PM_LOAD_WBEATS_LSB+:16] :
                    16'(ac[mr_pkg::ATTEND_HEADS_LSB+:8]) *
                    16'(ac[mr_pkg::ATTEND_HEAD_BEATS_LSB+:8]);
  assign at_bad   = at_words == '0 || at_words > 16'(W_MAX / 64) ||
      (!at_pm && (ac[mr_pkg::ATTEND_HEAD_BEATS_LSB+:8] > 8'(HP_MAX / 64) ||
                  ac[mr_pkg::ATTEND_MASK_LSB+:2] != '0 ||
                  17'(ac[mr_pkg::ATTEND_Q_BASE_LSB+:16]) + 17'(at_words) > 17'(QKV_WORDS) ||
                  17'(ac[mr_pkg::ATTEND_DST_BASE_LSB+:16]) + {at_words, 1'b0} > 17'(ACT_WORDS)));
  assign issue_ready[3]       = at_ready && !at_bad;
  assign e_valid[N+7]         = issue_valid[3] && at_bad;
  assign e_code[8*(N+7)+:8]   = mr_pkg::DEVERR_COMMAND[7:0];
  assign e_addr[64*(N+7)+:64] = '0;
  assign e_queue[3*(N+7)+:3]  = mr_pkg::QUEUE_ATTENTION[2:0];
  mr_attn #(
    .N        (N),
    .T        (T),
    .SCORES   (SCORES),
    .QKV_WORDS(QKV_WORDS),
    .PM_WORDS (PM_WORDS),
    .W_MAX    (W_MAX),
    .HEADS_MAX(HEADS_MAX),
    .HP_MAX   (HP_MAX),
    .CTX_MAX  (CTX_MAX),
    .KV_DEPTH (KV_DEPTH)
  ) u_attn (
    .clk_i(clk_at),
    .rst_ni          (unit_rst_n),
    .cmd_valid_i     (issue_valid[3] && !at_bad),
    .cmd_ready_o     (at_ready),
    .cmd_pm_i        (at_pm),
    .cmd_layer_i     (ac[mr_pkg::ATTEND_LAYER_LSB+:16]),
    .cmd_pm_words_i  (ac[mr_pkg::PM_LOAD_WBEATS_LSB+:16]),
    .cmd_heads_i     (ac[mr_pkg::ATTEND_HEADS_LSB+:8]),
    .cmd_hpw_i       (ac[mr_pkg::ATTEND_HEAD_BEATS_LSB+:8]),
    .cmd_scale_i     (ac[mr_pkg::ATTEND_SCALE_LSB+:32]),
    .cmd_q_base_i    (ac[mr_pkg::ATTEND_Q_BASE_LSB+:16]),
    .cmd_dst_base_i  (ac[mr_pkg::ATTEND_DST_BASE_LSB+:16]),
    .cmd_dst_slot_i  (ac[mr_pkg::ATTEND_DST_SLOT_LSB+:2]),
    .done_o          (at_done),
    .n_rows_i        (n_rows),
    .two_pass_i      (two_pass),
    .kv_layer_beats_i(kv_layer_beats),
    .kv_v_beats_i    (kv_v_beats),
    .kv_pm_beats_i   (kv_pm_beats),
    .row_ren_o       (row_a_ren),
    .row_raddr_o     (row_a_raddr),
    .row_rdata_i     (row_a_rdata),
    .row_continues_i (row_continues),
    .kv_job_valid_o  (kv_job_valid),
    .kv_job_ready_i  (kv_job_ready),
    .kv_job_off_o    (kv_job_off),
    .kv_job_beats_o  (kv_job_beats),
    .kv_valid_i      (kv_valid),
    .kv_data_i       (ch_data),
    .kv_credit_o     (kv_credit),
    .q_ren_o         (q_ren),
    .q_raddr_o       (q_raddr),
    .q_rdata_i       (qkv_rdata),
    .pm_ren_o        (pma_ren),
    .pm_raddr_o      (pma_raddr),
    .pm_rdata_i      (pma_rdata),
    .pm_we_o         (pm_ld_we),
    .pm_waddr_o      (pm_ld_waddr),
    .pm_wdata_o      (pm_ld_wdata),
    .b_valid_o       (ab_valid),
    .b_ready_i       (ab_ready),
    .b_slot_o        (ab_slot),
    .b_word_o        (ab_word),
    .b_region_o      (ab_region),
    .b_first_o       (ab_first),
    .b_lo_o          (ab_lo),
    .b_data_o        (ab_data),
    .cnt_busy_o      (c_at_busy),
    .cnt_idle_o      (c_at_idle),
    .cnt_wait_kv_o   (c_at_kv),
    .ovf_o           (at_ovf),
    .nan_o           (at_nan)
  );

  // ---- writer queue: STORE_KV, STORE_RES --------------------------------------------------------
  mr_kvstore #(
    .N        (N),
    .T        (T),
    .V        (V),
    .SLOTS    (T),
    .QKV_WORDS(QKV_WORDS),
    .PM_WORDS (PM_WORDS),
    .D_MAX    (D_MAX)
  ) u_kvstore (
    .clk_i(clk_vec),
    .rst_ni          (unit_rst_n),
    .cmd_valid_i     (issue_valid[4]),
    .cmd_ready_o     (issue_ready[4]),
    .cmd_res_i       (wc[7:0] == mr_pkg::OP_STORE_RES[7:0]),
    .cmd_layer_i     (wc[mr_pkg::STORE_KV_LAYER_LSB+:16]),
    .cmd_src_base_i  (wc[mr_pkg::STORE_KV_SRC_BASE_LSB+:16]),
    .cmd_wbeats_i    (wc[mr_pkg::STORE_KV_WBEATS_LSB+:16]),
    .cmd_is_v_i      (wc[mr_pkg::STORE_KV_IS_V_LSB]),
    .cmd_out_off_i   (wc[mr_pkg::STORE_RES_OUT_OFF_LSB+:32]),
    .cmd_res_beats_i (wc[mr_pkg::STORE_RES_BEATS_LSB+:16]),
    .cmd_rows_i      (n_rows),
    .cmd_two_pass_i  (two_pass),
    .done_o          (unit_done[4]),
    .kv_base_i       (kv_base),
    .res_base_i      (result_base),
    .kv_limit_i      (kv_limit),
    .res_limit_i     (result_limit),
    .kv_layer_beats_i(kv_layer_beats),
    .kv_v_beats_i    (kv_v_beats),
    .kv_pm_beats_i   (kv_pm_beats),
    .err_valid_o     (e_valid[N+4]),
    .err_code_o      (e_code[8*(N+4)+:8]),
    .err_addr_o      (e_addr[64*(N+4)+:64]),
    .row_ren_o       (row_b_ren),
    .row_raddr_o     (row_b_raddr),
    .row_rdata_i     (row_b_rdata),
    .qkv_ren_o       (kvs_ren),
    .qkv_raddr_o     (kvs_raddr),
    .qkv_rdata_i     (qkv_rdata),
    .pm_ren_o        (pmk_ren),
    .pm_raddr_o      (pmk_raddr),
    .pm_rdata_i      (pmk_rdata),
    .res_m_ren_o     (kv_res_ren),
    .res_m_raddr_o   (kv_res_raddr),
    .res_m_rdata_i   (res_rdata),
    .job_valid_o     (wj_valid[1]),
    .job_ready_i     (wj_ready[1]),
    .job_addr_o      (wj_addr[64+:64]),
    .job_beats_o     (wj_beats[16+:16]),
    .job_strb_o      (wj_strb[64+:64]),
    .data_valid_o    (wd_valid[1]),
    .data_ready_i    (wd_ready[1]),
    .data_o          (wd_data[512+:512]),
    .job_done_i      (wj_done[1])
  );
  assign e_queue[3*(N+4)+:3] = mr_pkg::QUEUE_WRITER[2:0];

  // ---- epilogue and the quantiser that it shares with LayerNorm ---------------------------------
  logic                         epi_valid, epi_ready, epi_ack, epi_done, epi_ovf, epi_nan;
  logic [V*32-1:0]              epi_data;
  logic [mr_vec_pkg::TAG_W-1:0] epi_tag;
  assign unit_done[1] = epi_done;
  mr_epilogue #(
    .N      (N),
    .T      (T),
    .D_MAX  (D_MAX),
    .ROT_MAX(ROT_MAX)
  ) u_epilogue (
    .clk_i(clk_epi),
    .rst_ni          (unit_rst_n),
    .cfg_valid_i     (mm_issue),
    .cfg_ready_o     (cfg_ready),
    .cfg_cols_i      (mc[mr_pkg::MATMUL_COLS_LSB+:32]),
    .cfg_rows_i      (mm_rows),
    .cfg_dst_i       (mc[mr_pkg::MATMUL_DST_LSB+:2]),
    .cfg_dst_base_i  (mc[mr_pkg::MATMUL_DST_BASE_LSB+:16]),
    .cfg_dst_slot_i  (mc[mr_pkg::MATMUL_DST_SLOT_LSB+:2]),
    .cfg_bias_i      (mc[mr_pkg::MATMUL_BIAS_LSB]),
    .cfg_rotary_i    (mc[mr_pkg::MATMUL_ROTARY_LSB]),
    .cfg_gelu_i      (mc[mr_pkg::MATMUL_GELU_LSB]),
    .cfg_prefix_max_i(mc[mr_pkg::MATMUL_PREFIX_MAX_LSB]),
    .cfg_track_exp_i (mc[mr_pkg::MATMUL_TRACK_EXP_LSB]),
    .cfg_rotary_dim_i(mc[mr_pkg::MATMUL_ROTARY_DIM_LSB+:16]),
    .cfg_head_lanes_i(mc[mr_pkg::MATMUL_HEAD_LANES_LSB+:16]),
    .cfg_out_cols_i  (mc[mr_pkg::MATMUL_OUT_COLS_LSB+:32]),
    .cfg_out_off_i   (mc[mr_pkg::MATMUL_OUT_OFF_LSB+:32]),
    .cfg_out_stride_i(mc[mr_pkg::MATMUL_OUT_STRIDE_LSB+:32]),
    .cfg_two_pass_i  (two_pass),
    .done_o          (epi_done),
    .dr_valid_i      (dr_valid),
    .dr_ready_o      (dr_ready),
    .dr_acc_i        (dr_acc),
    .dr_base_i       (dr_base),
    .dr_nan_i        (dr_nan),
    .dr_bias_i       (dr_bias),
    .dr_token_i      (dr_token),
    .dr_group_i      (dr_group),
    .dr_fp4_i        (dr_fp4),
    .dr_last_i       (dr_last),
    .rot_ren_o       (rot_ren),
    .rot_raddr_o     (rot_raddr),
    .rot_rdata_i     (rot_rdata),
    .res_ren_o       (epi_res_ren),
    .res_raddr_o     (epi_res_raddr),
    .res_rdata_i     (res_rdata),
    .res_we_o        (epi_res_we),
    .res_waddr_o     (epi_res_waddr),
    .res_wdata_o     (epi_res_wdata),
    .rexp_we_i       (ld_rexp_we),
    .rexp_waddr_i    (ld_rexp_waddr),
    .rexp_wdata_i    (ld_rexp_wdata),
    .rexp_ren_i      (ln_rexp_ren),
    .rexp_raddr_i    (ln_rexp_raddr),
    .rexp_rdata_o    (rexp_rdata),
    .q_valid_o       (epi_valid),
    .q_ready_i       (epi_ready),
    .q_data_o        (epi_data),
    .q_tag_o         (epi_tag),
    .q_ack_i         (epi_ack),
    .out_base_i      (result_base),
    .out_limit_i     (result_limit),
    .job_valid_o     (wj_valid[0]),
    .job_ready_i     (wj_ready[0]),
    .job_addr_o      (wj_addr[63:0]),
    .job_beats_o     (wj_beats[15:0]),
    .job_strb_o      (wj_strb[63:0]),
    .data_valid_o    (wd_valid[0]),
    .data_ready_i    (wd_ready[0]),
    .data_o          (wd_data[511:0]),
    .job_done_i      (wj_done[0]),
    .err_valid_o     (e_valid[N+5]),
    .err_code_o      (e_code[8*(N+5)+:8]),
    .err_addr_o      (e_addr[64*(N+5)+:64]),
    .sticky_ovf_o    (epi_ovf),
    .sticky_nan_o    (epi_nan)
  );
  assign e_queue[3*(N+5)+:3] = mr_pkg::QUEUE_ARRAY[2:0];

  mr_vec_out #(
    .V        (V),
    .T        (T),
    .SLOTS    (T),
    .QKV_WORDS(QKV_WORDS),
    .PM_WORDS (PM_WORDS),
    .TWO_PASS (TWO_PASS)
  ) u_vec_out (
    .clk_i(clk_epi),
    .rst_ni      (unit_rst_n),
    .two_pass_i  (two_pass),
    .epi_valid_i (epi_valid),
    .epi_ready_o (epi_ready),
    .epi_data_i  (epi_data),
    .epi_tag_i   (epi_tag),
    .epi_ack_o   (epi_ack),
    .ln_valid_i  (ln_q_valid),
    .ln_ready_o  (ln_q_ready),
    .ln_data_i   (ln_q_data),
    .ln_tag_i    (ln_q_tag),
    .ln_ack_o    (ln_ack),
    .act_valid_o (aa_valid),
    .act_ready_i (aa_ready),
    .act_slot_o  (aa_slot),
    .act_word_o  (aa_word),
    .act_region_o(aa_region),
    .act_first_o (aa_first),
    .act_lo_o    (aa_lo),
    .act_data_o  (aa_data),
    .qkv_we_o    (qkv_we),
    .qkv_waddr_o (qkv_waddr),
    .qkv_wdata_o (qkv_wdata),
    .pm_valid_o  (pmb_valid),
    .pm_token_o  (pmb_token),
    .pm_index_o  (pmb_index),
    .pm_code_o   (pmb_code)
  );

  // ---- activity, for mr_clk_gate ----------------------------------------------------------------
  assign act_at  = !unit_rst_n || issue_valid[3] || unit_busy[3] || kv_valid != '0;
  assign act_vec = !unit_rst_n || halt || act_at || issue_valid[2] || unit_busy[2] || ln_busy ||
                   issue_valid[4] || unit_busy[4] || !hr_idle || r_req_valid || f_req_valid ||
                   !wr_idle || wj_valid != '0 || wd_valid != '0;
  assign act_epi = act_vec || mm_issue || dr_valid || epi_valid || epi_ack || wj_done[0] ||
                   aa_valid || pmb_valid;

  // ---- counters, sticky flags, progress ---------------------------------------------------------
  logic [4:0] done_q;
  assign axi_idle = &rd_idle && hr_idle && wr_idle;
  assign progress = c_w_beat != '0 || c_kv_beat != '0 || c_hr_beat || c_wr_beat || c_arr_busy ||
                    c_at_busy || ln_ack || epi_ack;
  always_ff @(posedge clk_i) begin
    done_q <= done_valid_o;
    if (!rst_ni || cnt_clear) sticky_q <= '0;
    else sticky_q <= sticky_q | {ln_nan || at_nan || epi_nan, ln_ovf || at_ovf || epi_ovf};
  end
  logic [2:0] done_count;
  always_comb begin
    done_count = '0;
    for (int i = 0; i < 5; i++) done_count = done_count + {2'd0, done_q[i]};
  end
  mr_counters #(
    .N(N)
  ) u_counters (
    .clk_i,
    .rst_ni,
    .clear_i     (cnt_clear),
    .run_i       (cnt_run),
    .commands_i  (done_count),
    .w_beat_i    (c_w_beat),
    .kv_beat_i   (c_kv_beat),
    .host_beat_i (c_hr_beat),
    .write_beat_i(c_wr_beat),
    .mac_blocks_i(c_blocks),
    .array_i     ({c_arr_idle, c_arr_drain, c_arr_weights, c_arr_busy}),
    .vector_i    ({!(unit_busy[2] || ln_busy), unit_busy[2] || ln_busy}),
    .attention_i ({c_at_kv, c_at_idle, c_at_busy}),
    .writer_i    ({!unit_busy[4], unit_busy[4]}),
    .reader_i    ({c_issue[0], c_idle[0], c_wait[0], c_nocredit[0]}),
    .rd_addr_i   (cnt_addr),
    .rd_data_o   (cnt_data)
  );

`ifdef MILLRACE_VIEW
  // What is counted in this cycle, for timelines (sim/verilator/observer.h has the layout).
  logic [63:0] view_units /*verilator public_flat_rd*/;
  logic [63:0] view_readers /*verilator public_flat_rd*/;
  logic [63:0] view_beats /*verilator public_flat_rd*/;
  assign view_units = {
    32'd0, c_blocks, wr_idle, c_wr_beat, hr_idle, c_hr_beat,
    !unit_busy[4], unit_busy[4], c_at_kv, c_at_idle, c_at_busy,
    !(unit_busy[2] || ln_busy), unit_busy[2] || ln_busy,
    c_arr_idle, c_arr_drain, c_arr_weights, c_arr_busy, cnt_run
  };
  assign view_readers = {16'(c_issue), 16'(c_idle), 16'(c_wait), 16'(c_nocredit)};
  assign view_beats   = {32'd0, 16'(c_kv_beat), 16'(c_w_beat)};
`endif

endmodule
