// SPDX-License-Identifier: Apache-2.0
// Control: the host's registers, the sequencer that runs a program, and what is counted of it.
//
// mr_regs starts a run; mr_seq fetches descriptor and commands through the host's read port, hands
// commands to the queues' units and read jobs to the channels, and ends the run, well or with its
// first error. mr_counters counts while it runs.
//
// Parameters: those of millrace_core, and HEADS_MAX, HP_MAX of mr_attn: most are here for the
// registers, which report them.
//
// Ports
//   s_axil_   AXI4-Lite slave; irq_o level, busy_o STATUS.busy, finish_o pulse at a run's end
//   rd_       a client of mr_host_port
//   n_rows_o .. s_limit_o    of the run: they hold while it lasts; from train_o on with TRAIN
//   issue_, cmd_, unit_done_i, unit_busy_o   queue q at bit q, 512 bits of cmd_o a queue from the
//             array's on: mr_seq's. Q_ARRAY is the lowest: reader commands do not leave mr_seq
//   job_, sp_ read jobs and what they bring, by channel: mr_channels'
//   err_      pulses with code and address, one a unit by number: N readers, then UNIT_HOST_READ,
//             UNIT_HOST_WRITE .. of rtl/spec/device.def
//   halt_o    the run ends: no unit may begin a burst. unit_rst_no resets all units, at the start
//             and the end of a run, when axi_idle_i says that nothing is outstanding
//   progress_i  something moved: the watchdog waits again
//   cnt_      strobes, each a cycle; cnt_array_i {idle, drain, weights, busy}, cnt_attention_i
//             {wait for KV, idle, busy}, cnt_reader_i {issue, idle, wait, no credit}; cnt_vector_i,
//             cnt_writer_i: the unit works; cnt_train_: mr_train_counts'; cnt_run_o: they count
//   ovf_i, nan_i  pulses for STICKY
`include "mr_bundles.svh"
module mr_control #(
  parameter int N = 1,
  parameter int R = 4,
  parameter int T = 128,
  parameter int ACT_WORDS = 1024,
  parameter int QKV_WORDS = 256,
  parameter int D_MAX = 4096,
  parameter int ROT_MAX = 256,
  parameter int SCORES = 32768,
  parameter int W_MAX = 4096,
  parameter int HEADS_MAX = 64,
  parameter int HP_MAX = 256,
  parameter int CTX_MAX = 4096,
  parameter int RING = 1024,
  parameter int CLOCK_KHZ = 300000,
  parameter int TRAIN = 0,
  localparam int ERRORS = N + mr_pkg::UNITS + (TRAIN != 0 ? mr_pkg::TRAINING_UNITS : 0)
) (
  input  logic                 clk_i,
  input  logic                 rst_ni,

  `MR_AXIL_W_S(s_axil_, 12),
  `MR_AXIL_R_S(s_axil_, 12),
  output logic                 irq_o,
  output logic                 busy_o,
  output logic                 finish_o,

  `MR_RD_M(rd_, 1),

  `MR_RUN_M(),
  output logic [N*32-1:0]      w_limit_o,
  output logic [N*32-1:0]      kv_limit_o,

  `MR_UNITS_M(),
  output logic [4:0]           done_valid_o,
  output logic [79:0]          done_index_o,

  `MR_WJOB_M(job_),
  `MR_SP_M(sp_, N),

  `MR_ERR_S(err_, ERRORS),
  output logic                 halt_o,
  output logic                 unit_rst_no,
  input  logic                 axi_idle_i,
  input  logic                 progress_i,

  `MR_CNT_S(cnt_),
  input  logic                 cnt_vector_i,
  input  logic                 cnt_writer_i,
  `MR_TRAIN_CNT_S(cnt_train_),
  output logic                 cnt_run_o,
  input  logic                 ovf_i,
  input  logic                 nan_i
);

  // ---- registers --------------------------------------------------------------------------------
  `MR_CTL_W(ctl_);
  logic [63:0] err_addr;
  logic [7:0]  err_code, err_unit;
  logic [15:0] err_index;
  logic [1:0]  sticky_q;
  logic [4:0]  cnt_addr;
  logic [47:0] cnt_data;
  logic        cnt_clear;
  mr_regs #(
    .N(N), .R(R), .T(T), .ACT_WORDS(ACT_WORDS), .QKV_WORDS(QKV_WORDS), .D_MAX(D_MAX),
    .ROT_MAX(ROT_MAX), .SCORES(SCORES), .W_MAX(W_MAX), .HEADS_MAX(HEADS_MAX), .HP_MAX(HP_MAX),
    .CTX_MAX(CTX_MAX), .RING(RING), .CLOCK_KHZ(CLOCK_KHZ), .TRAIN(TRAIN)
  ) u_regs (
    .clk_i, .rst_ni,
    `MR_AXIL_W_S_TO(, s_axil_), `MR_AXIL_R_S_TO(, s_axil_), `MR_CTL_M_ON(, ctl_),
    .irq_o,
    `MR_FIRST_S_ON(err_, err_),
    .sticky_i(sticky_q), .cnt_addr_o(cnt_addr), .cnt_data_i(cnt_data)
  );

  assign {busy_o, finish_o} = {ctl_busy, ctl_finish};

  // ---- sequencer --------------------------------------------------------------------------------
  mr_seq #(
    .N(N), .T(T), .ACT_WORDS(ACT_WORDS), .QKV_WORDS(QKV_WORDS), .D_MAX(D_MAX), .ROT_MAX(ROT_MAX),
    .W_MAX(W_MAX), .RING(RING), .TRAIN(TRAIN)
  ) u_seq (
    .clk_i, .rst_ni,
    `MR_CTL_S_ON(, ctl_), `MR_FIRST_M_ON(err_, err_),
    .counters_clear_o(cnt_clear), .counters_run_o(cnt_run_o),
    `MR_RD_M_TO(hr_, rd_), `MR_RUN_M_TO(, ),
    .w_limit_o, .kv_limit_o,
    `MR_UNITS_M_TO(, ), `MR_WJOB_M_TO(job_, job_), `MR_SP_M_TO(sp_, sp_), `MR_ERR_S_TO(err_, err_),
    .progress_i, .axi_idle_i, .halt_o, .unit_rst_no, .done_valid_o, .done_index_o
  );

  // ---- counters and sticky flags ----------------------------------------------------------------
  logic [4:0] done_q;
  logic [1:0] flags_q;  // they come late, from every unit
  always_ff @(posedge clk_i) begin
    done_q  <= done_valid_o;
    flags_q <= {nan_i, ovf_i};
    if (!rst_ni || cnt_clear) sticky_q <= '0;
    else sticky_q <= sticky_q | flags_q;
  end
  logic [2:0] done_count;
  always_comb begin
    done_count = '0;
    for (int i = 0; i < mr_pkg::QUEUES; i++) done_count = done_count + {2'd0, done_q[i]};
  end
  mr_counters #(.N(N), .TRAIN(TRAIN)) u_counters (
    .clk_i, .rst_ni, .clear_i(cnt_clear), .run_i(cnt_run_o), .commands_i(done_count),
    `MR_CNT_S_TO(, cnt_),
    .vector_i({!cnt_vector_i, cnt_vector_i}), .writer_i({!cnt_writer_i, cnt_writer_i}),
    `MR_TRAIN_CNT_S_TO(train_, cnt_train_),
    .rd_addr_i(cnt_addr), .rd_data_o(cnt_data)
  );

endmodule
