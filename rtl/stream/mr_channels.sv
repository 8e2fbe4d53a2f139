// SPDX-License-Identifier: Apache-2.0
// The memory channels' way in: for each channel a reader and the stream behind it.
//
// A channel's mr_reader fetches weights and KV. Weights go into the channel's mr_stream, which
// decodes them into the tile ring for the array and the vector memory for LayerNorm; KV goes out
// to the channel's attention lane. All channels run in step: what a command asks for is the same
// for each of them, and the rings are read at one address.
//
// Parameters
//   N                  channels
//   W_DEPTH, KV_DEPTH  beats of the FIFOs behind a reader, which are its credits
//   RING               k-rows of a tile ring
//   VEC_WORDS          words of V floats of gain, and as many of bias
//   STASH              1: jobs with job_stash_i read another window, and parts of matrices
//
// Timing: that of mr_reader (job_, kv_, m_) and of mr_stream (sp_, vec_, ring_, tile_), whose
// headers have it; job_ and sp_ are valid/ready for each channel with one payload. w_ and kv_ base
// and limit must hold for the whole run. With STASH a job of weights with job_stash_i is in the
// window from s_base_i on, and whoever made a job has looked at its window; sp_first_i and
// sp_in_head_i are mr_stream's cmd_first_i and cmd_in_head_i.
// halt_i (level, until the reset): takes no more jobs, and drops what is outstanding as it arrives.
// idle_o: nothing is outstanding. m_rready_o is constantly 1: every beat has its place reserved.
// err_: mr_reader's of each channel. cnt_: strobes of each channel, mr_reader's.
`include "mr_assert.svh"
`include "mr_bundles.svh"
module mr_channels #(
  parameter int N = 1,
  parameter int W_DEPTH = 256,
  parameter int KV_DEPTH = 128,
  parameter int RING = 1024,
  parameter int VEC_WORDS = 1024,
  parameter int STASH = 0,
  localparam int VEC_AW = $clog2(2 * VEC_WORDS),
  localparam int RING_AW = $clog2(RING)
) (
  input  logic               clk_i,
  input  logic               rst_ni,
  input  logic               halt_i,

  // read jobs of the weights, and where the windows are
  `MR_WJOB_S(job_),
  input  logic [N*64-1:0]    s_base_i,
  input  logic [N*64-1:0]    w_base_i,
  input  logic [N*32-1:0]    w_limit_i,
  input  logic [N*64-1:0]    kv_base_i,
  input  logic [N*32-1:0]    kv_limit_i,

  // KV: read jobs and beats
  `MR_KV_S(kv_, N),

  // what the weights that come are
  `MR_SP_S(sp_, N),

  // gain and bias for LayerNorm; tiles for the array
  `MR_RAM_R_S(vec_, VEC_AW, N*128),
  `MR_TILE_M(, N, RING_AW),

  output logic [N-1:0]       idle_o,
  `MR_ERR_M(err_, N),
  `MR_READER_CNT_M(cnt_, N),

  `MR_AXI_R_M(m_ch_, N),
  output logic [N-1:0]       m_ch_rready_o
);

  // All of a reader follows it, so it comes from a register. Streams and attention go on emptying
  // their FIFOs meanwhile; the credits that they return are of no use until the reset.
  logic flush_q;
  always_ff @(posedge clk_i) flush_q <= halt_i;
  `MR_ASSERT(halt, !flush_q || halt_i)

  if (STASH == 0) begin : gen_no_stash
    logic unused;
    assign unused = ^{job_stash_i, s_base_i};
  end else begin : gen_stash
    logic unused;
    assign unused = ^w_limit_i;
  end

  logic [N-1:0] w_valid, w_credit;
  assign m_ch_rready_o = '1;
  for (genvar c = 0; c < N; c = c + 1) begin : gen_channel
    mr_reader #(.W_DEPTH(W_DEPTH), .KV_DEPTH(KV_DEPTH)) u_reader (
      .clk_i, .rst_ni, .w_job_valid_i(job_valid_i[c]), .w_job_ready_o(job_ready_o[c]),
      .w_job_off_i(job_off_i), .w_job_beats_i(job_beats_i),
      .w_base_i((STASH != 0 && job_stash_i) ? s_base_i[64*c+:64] : w_base_i[64*c+:64]),
      .w_limit_i((STASH != 0) ? '1 : w_limit_i[32*c+:32]), .w_valid_o(w_valid[c]),
      .w_credit_i(w_credit[c]), .kv_job_valid_i(kv_job_valid_i[c]),
      .kv_job_ready_o(kv_job_ready_o[c]), .kv_job_off_i(kv_job_off_i[32*c+:32]),
      .kv_job_beats_i(kv_job_beats_i[32*c+:32]), .kv_base_i(kv_base_i[64*c+:64]),
      .kv_limit_i(kv_limit_i[32*c+:32]), .kv_valid_o(kv_valid_o[c]), .kv_credit_i(kv_credit_i[c]),
      .data_o(kv_data_o[512*c+:512]), .flush_i(flush_q), .idle_o(idle_o[c]),
      .err_valid_o(err_valid_o[c]), .err_code_o(err_code_o[8*c+:8]),
      .err_addr_o(err_addr_o[64*c+:64]), .cnt_nocredit_o(cnt_nocredit_o[c]),
      .cnt_wait_o(cnt_wait_o[c]), .cnt_idle_o(cnt_idle_o[c]), .cnt_issue_o(cnt_issue_o[c]),
      .cnt_w_beat_o(cnt_w_beat_o[c]), .cnt_kv_beat_o(cnt_kv_beat_o[c]),
      .m_arvalid_o(m_ch_arvalid_o[c]), .m_arready_i(m_ch_arready_i[c]),
      .m_araddr_o(m_ch_araddr_o[64*c+:64]), .m_arlen_o(m_ch_arlen_o[8*c+:8]),
      .m_rvalid_i(m_ch_rvalid_i[c]), .m_rdata_i(m_ch_rdata_i[512*c+:512]),
      .m_rresp_i(m_ch_rresp_i[2*c+:2]), .m_rlast_i(m_ch_rlast_i[c])
    );

    mr_stream #(.FIFO_DEPTH(W_DEPTH), .RING(RING), .VEC_WORDS(VEC_WORDS), .PART(STASH)) u_stream (
      .clk_i, .rst_ni, .w_valid_i(w_valid[c]), .w_data_i(kv_data_o[512*c+:512]),
      .w_credit_o(w_credit[c]),
      `MR_SP_S_TO_AT(cmd_, sp_, c),
      .vec_ren_i, .vec_raddr_i, .vec_rdata_o(vec_rdata_o[128*c+:128]),
      .ring_count_o(ring_count_o[16*c+:16]), .ring_ren_i, .ring_raddr_i,
      .ring_rdata_o(ring_rdata_o[1024*c+:1024]), .ring_rcode_o(ring_rcode_o[32*c+:32]),
      .ring_free_i, .tile_valid_o(tile_valid_o[c]), .tile_max_o(tile_max_o[32*c+:32]),
      .tile_bias_o(tile_bias_o[128*c+:128]), .tile_pop_i
    );
  end

endmodule
