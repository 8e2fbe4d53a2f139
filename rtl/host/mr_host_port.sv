// SPDX-License-Identifier: Apache-2.0
// The host's memory port: reads of the program and of rows, writes of KV, residual and results.
//
// Parameters
//   READERS  clients of mr_hostrd
//   WRITERS  clients of mr_writer
//
// Timing: rd_ as mr_hostrd's req_ and data, a bit or word a client; job_ and data_ as mr_writer's;
// m_ is AXI4. flush_i (level): nothing more is requested or taken; what is on its way ends.
// rd_idle_o, wr_idle_o: nothing is left and nothing outstanding.
// err_: the low part is of reads (UNIT_HOST_READ), the high part of writes (UNIT_HOST_WRITE).
`include "mr_bundles.svh"
module mr_host_port #(
  parameter int READERS = 2,
  parameter int WRITERS = 2
) (
  input  logic                   clk_i,
  input  logic                   rst_ni,
  input  logic                   flush_i,

  `MR_RD_S(rd_, READERS),

  `MR_WR_S(, WRITERS),

  output logic                   rd_idle_o,
  output logic                   wr_idle_o,
  `MR_ERR_M(err_, 2),
  output logic                   cnt_read_beat_o,
  output logic                   cnt_write_beat_o,

  `MR_AXI_R_M(m_host_, 1),
  output logic                   m_host_rready_o,
  `MR_AXI_W_M(m_host_, 1)
);

  logic unused_last;
  mr_hostrd #(.CLIENTS(READERS)) u_hostrd (
    .clk_i, .rst_ni, .flush_i, .req_valid_i(rd_valid_i), .req_ready_o(rd_ready_o),
    .req_addr_i(rd_addr_i), .req_beats_i(rd_beats_i), .valid_o(rd_data_valid_o),
    .last_o(unused_last), .data_o(rd_data_o), .idle_o(rd_idle_o),
    `MR_ERR_M_TO_AT(err_, err_, 0),
    .cnt_beat_o(cnt_read_beat_o),
    `MR_AXI_R_M_TO(m_, m_host_)
  );
  assign m_host_rready_o = 1'b1;

  mr_writer #(.CLIENTS(WRITERS)) u_writer (
    .clk_i, .rst_ni, .flush_i, .job_valid_i, .job_ready_o, .job_addr_i, .job_beats_i, .job_strb_i,
    .data_valid_i, .data_ready_o, .data_i, .done_o(job_done_o), .idle_o(wr_idle_o),
    `MR_ERR_M_TO_AT(err_, err_, 1),
    .cnt_beat_o(cnt_write_beat_o),
    `MR_AXI_W_M_TO(m_, m_host_)
  );

endmodule
