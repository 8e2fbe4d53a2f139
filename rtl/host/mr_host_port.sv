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
module mr_host_port #(
  parameter int READERS = 2,
  parameter int WRITERS = 2
) (
  input  logic                   clk_i,
  input  logic                   rst_ni,
  input  logic                   flush_i,

  input  logic [READERS-1:0]     rd_valid_i,
  output logic [READERS-1:0]     rd_ready_o,
  input  logic [READERS*64-1:0]  rd_addr_i,
  input  logic [READERS*16-1:0]  rd_beats_i,
  output logic [READERS-1:0]     rd_data_valid_o,
  output logic [511:0]           rd_data_o,

  input  logic [WRITERS-1:0]     job_valid_i,
  output logic [WRITERS-1:0]     job_ready_o,
  input  logic [WRITERS*64-1:0]  job_addr_i,
  input  logic [WRITERS*16-1:0]  job_beats_i,
  input  logic [WRITERS*64-1:0]  job_strb_i,
  input  logic [WRITERS-1:0]     data_valid_i,
  output logic [WRITERS-1:0]     data_ready_o,
  input  logic [WRITERS*512-1:0] data_i,
  output logic [WRITERS-1:0]     job_done_o,

  output logic                   rd_idle_o,
  output logic                   wr_idle_o,
  output logic [1:0]             err_valid_o,
  output logic [15:0]            err_code_o,
  output logic [127:0]           err_addr_o,
  output logic                   cnt_read_beat_o,
  output logic                   cnt_write_beat_o,

  output logic                   m_host_arvalid_o,
  input  logic                   m_host_arready_i,
  output logic [63:0]            m_host_araddr_o,
  output logic [7:0]             m_host_arlen_o,
  input  logic                   m_host_rvalid_i,
  output logic                   m_host_rready_o,
  input  logic [511:0]           m_host_rdata_i,
  input  logic [1:0]             m_host_rresp_i,
  input  logic                   m_host_rlast_i,
  output logic                   m_host_awvalid_o,
  input  logic                   m_host_awready_i,
  output logic [63:0]            m_host_awaddr_o,
  output logic [7:0]             m_host_awlen_o,
  output logic                   m_host_wvalid_o,
  input  logic                   m_host_wready_i,
  output logic [511:0]           m_host_wdata_o,
  output logic [63:0]            m_host_wstrb_o,
  output logic                   m_host_wlast_o,
  input  logic                   m_host_bvalid_i,
  output logic                   m_host_bready_o,
  input  logic [1:0]             m_host_bresp_i
);

  logic unused_last;
  mr_hostrd #(
    .CLIENTS(READERS)
  ) u_hostrd (
    .clk_i,
    .rst_ni,
    .flush_i,
    .req_valid_i(rd_valid_i),
    .req_ready_o(rd_ready_o),
    .req_addr_i (rd_addr_i),
    .req_beats_i(rd_beats_i),
    .valid_o    (rd_data_valid_o),
    .last_o     (unused_last),
    .data_o     (rd_data_o),
    .idle_o     (rd_idle_o),
    .err_valid_o(err_valid_o[0]),
    .err_code_o (err_code_o[7:0]),
    .err_addr_o (err_addr_o[63:0]),
    .cnt_beat_o (cnt_read_beat_o),
    .m_arvalid_o(m_host_arvalid_o),
    .m_arready_i(m_host_arready_i),
    .m_araddr_o (m_host_araddr_o),
    .m_arlen_o  (m_host_arlen_o),
    .m_rvalid_i (m_host_rvalid_i),
    .m_rdata_i  (m_host_rdata_i),
    .m_rresp_i  (m_host_rresp_i),
    .m_rlast_i  (m_host_rlast_i)
  );
  assign m_host_rready_o = 1'b1;

  mr_writer #(
    .CLIENTS(WRITERS)
  ) u_writer (
    .clk_i,
    .rst_ni,
    .flush_i,
    .job_valid_i,
    .job_ready_o,
    .job_addr_i,
    .job_beats_i,
    .job_strb_i,
    .data_valid_i,
    .data_ready_o,
    .data_i,
    .done_o     (job_done_o),
    .idle_o     (wr_idle_o),
    .err_valid_o(err_valid_o[1]),
    .err_code_o (err_code_o[15:8]),
    .err_addr_o (err_addr_o[127:64]),
    .cnt_beat_o (cnt_write_beat_o),
    .m_awvalid_o(m_host_awvalid_o),
    .m_awready_i(m_host_awready_i),
    .m_awaddr_o (m_host_awaddr_o),
    .m_awlen_o  (m_host_awlen_o),
    .m_wvalid_o (m_host_wvalid_o),
    .m_wready_i (m_host_wready_i),
    .m_wdata_o  (m_host_wdata_o),
    .m_wstrb_o  (m_host_wstrb_o),
    .m_wlast_o  (m_host_wlast_o),
    .m_bvalid_i (m_host_bvalid_i),
    .m_bready_o (m_host_bready_o),
    .m_bresp_i  (m_host_bresp_i)
  );

endmodule
