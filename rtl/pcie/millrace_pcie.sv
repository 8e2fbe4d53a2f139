// SPDX-License-Identifier: Apache-2.0
// The engine as a PCI function's inside: BAR 0, command rings in host memory, copies between host
// and card memory, completions, interrupts. docs/board/pcie-function.md says what the host sees,
// and what a PCIe core has to provide around it.
//
// Parameters: those of millrace_core; QUEUES command rings, a power of two; MEM_LOG2 bytes of each
// memory channel, log2.
//
// Ports
//   s_bar_   AXI4-Lite slave: BAR 0 without the MSI-X table, which the PCIe core has
//   m_pci_   AXI4 master: host memory at bus addresses, 64-byte beats
//   m_ch_, m_host_  the engine's ports: memory channels, and all of them at channel << 36 | offset;
//            nothing here adds a cycle to them
//   m_card_  AXI4 master of the copies, addresses as m_host_
//   irq_o    a pulse for each interrupt vector: message signalled, never acknowledged
// Every master: one ID, INCR bursts of at most 64 beats inside 4 KiB. A response other than OKAY
// ends the entry or the run with an error; nothing is retried. One clock; rst_ni (synchronous,
// active low) is the function's reset: by FLR, hot reset and power-up.
`include "mr_assert.svh"
`include "mr_bundles.svh"
module millrace_pcie #(
  parameter int QUEUES = 16,
  parameter int MEM_LOG2 = 34,
  `include "core_params.svh"
) (
  input  logic              clk_i,
  input  logic              rst_ni,

  `MR_AXIL_W_S(s_bar_, 16),
  `MR_AXIL_R_S(s_bar_, 16),

  `MR_AXI_CR_M(m_pci_),
  `MR_AXI_W_M(m_pci_, 1),

  `MR_AXI_CR_M(m_card_),
  `MR_AXI_W_M(m_card_, 1),

  output logic [QUEUES-1:0] irq_o,
  output logic              busy_o,  // high from a doorbell to the last completion

  `include "core_memory_ports.svh"
);

  localparam int QW = $clog2(QUEUES);
  localparam logic [1:0] HOST = 2'd0, CARD = 2'd1, LOCAL = 2'd2;

  // While the engine runs and nobody asks, all but the engine rests. The executor is not idle while
  // the copier works, so what is between them has this clock too.
  logic ctl_clk, bar_idle, exec_idle;
  mr_clk_gate #(.HOLD(8)) u_ctl_gate (
    .clk_i, .active_i(!rst_ni || !bar_idle || !exec_idle), .clk_o(ctl_clk)
  );

  // ---- BAR 0 and rings --------------------------------------------------------------------------
  `MR_PCI_JOB_W(job_, QW);
  `MR_PCI_Q_W(q_, QW);
  `MR_PCI_X_W(x_);
  logic        scrub_en, job_busy;
  logic [57:0] scrub_addr;
  logic [11:0] c_addr;
  `include "core_wires.svh"

  mr_pcie_bar #(.N(N), .QUEUES(QUEUES), .MEM_LOG2(MEM_LOG2)) u_bar (
    .clk_i(ctl_clk), .rst_ni, .idle_o(bar_idle),
    `MR_AXIL_W_S_TO(s_, s_bar_), `MR_AXIL_R_S_TO(s_, s_bar_),
    .scrub_en_o(scrub_en), .scrub_addr_o(scrub_addr),
    `MR_PCI_Q_M_ON(q_, q_),
    .busy_i(job_busy), .queue_i(job_queue),
    `MR_PCI_X_S_ON(x_, x_),
    .c_awvalid_o(core_awvalid), .c_awready_i(core_awready), .c_wvalid_o(core_wvalid),
    .c_wready_i(core_wready), .c_addr_o(c_addr), .c_wdata_o(core_wdata), .c_bvalid_i(core_bvalid),
    .c_arvalid_o(core_arvalid), .c_arready_i(core_arready), .c_rvalid_i(core_rvalid),
    .c_rdata_i(core_rdata)
  );

  mr_pcie_queues #(.QUEUES(QUEUES)) u_queues (
    .clk_i(ctl_clk), .rst_ni,
    `MR_PCI_Q_S_ON(, q_), `MR_PCI_JOB_M_ON(job_, job_),
    .job_busy_o(job_busy), .irq_o, .busy_o
  );

  // ---- executor, local memory, copier -----------------------------------------------------------
  logic [1:0]   src, dst;
  logic         zero, cp_valid, cp_ready, cp_idle, rerr, werr;
  logic [63:0]  cp_src, cp_dst, rerr_addr, werr_addr;
  logic [31:0]  cp_bytes;
  logic         e_ren, e_wen;
  logic [5:0]   e_raddr, e_waddr;
  logic [511:0] e_wdata, l_rdata;
  mr_pcie_exec #(.N(N), .QUEUES(QUEUES), .MEM_LOG2(MEM_LOG2)) u_exec (
    .clk_i(ctl_clk), .rst_ni, .busy_i(core_busy), .idle_o(exec_idle),
    `MR_PCI_JOB_S_ON(q_, job_),
    .scrub_en_i(scrub_en), .scrub_addr_i(scrub_addr),
    `MR_PCI_X_M_ON(x_, x_),
    .cp_src_o(src), .cp_dst_o(dst), .cp_zero_o(zero), .cp_valid_o(cp_valid), .cp_ready_i(cp_ready),
    .cp_src_addr_o(cp_src), .cp_dst_addr_o(cp_dst), .cp_bytes_o(cp_bytes), .cp_idle_i(cp_idle),
    .cp_rerr_i(rerr), .cp_werr_i(werr), .cp_rerr_addr_i(rerr_addr), .cp_werr_addr_i(werr_addr),
    .l_ren_o(e_ren), .l_raddr_o(e_raddr), .l_rdata_i(l_rdata), .l_wen_o(e_wen), .l_waddr_o(e_waddr),
    .l_wdata_o(e_wdata)
  );

  // The read side may be some segments ahead of the write side.
  localparam int AHEAD = 8;
  logic        src_ready, dfifo_ready, dst_valid, dst_ready, copy_idle;
  logic [95:0] dst_seg;
  logic [3:0]  dst_count;
  `MR_AXI_CR_W();
  `MR_AXI_W_W(, 1);
  assign cp_ready = src_ready && dfifo_ready;
  assign cp_idle  = copy_idle && dst_count == '0;
  mr_fifo #(.W(96), .DEPTH(AHEAD)) u_ahead (
    .clk_i(ctl_clk), .rst_ni, .clear_i(1'b0),
    .in_valid_i(cp_valid && src_ready), .in_ready_o(dfifo_ready), .in_data_i({cp_bytes, cp_dst}),
    .out_valid_o(dst_valid), .out_ready_i(dst_ready), .out_data_o(dst_seg), .count_o(dst_count)
  );
  logic copy_clk;  // its shifters are wide, and idle while the engine runs
  mr_clk_gate #(.HOLD(8)) u_copy_gate (
    .clk_i, .active_i(!rst_ni || cp_valid || !cp_idle), .clk_o(copy_clk)
  );
  mr_copy u_copy (
    .clk_i(copy_clk), .rst_ni, .zero_i(zero), .src_valid_i(cp_valid && dfifo_ready),
    .src_ready_o(src_ready), .src_addr_i(cp_src), .src_bytes_i(cp_bytes), .dst_valid_i(dst_valid),
    .dst_ready_o(dst_ready), .dst_addr_i(dst_seg[63:0]), .dst_bytes_i(dst_seg[95:64]),
    .idle_o(copy_idle), .rerr_o(rerr), .werr_o(werr), .rerr_addr_o(rerr_addr),
    .werr_addr_o(werr_addr),
    `MR_AXI_CR_M_ON(m_, ), `MR_AXI_W_M_ON(m_, )
  );

  // ---- where the copier's ports go --------------------------------------------------------------
  assign m_pci_arvalid_o  = arvalid && src == HOST;
  assign m_pci_araddr_o   = araddr;
  assign m_pci_arlen_o    = arlen;
  assign m_pci_rready_o   = rready && src == HOST;
  assign m_card_arvalid_o = arvalid && src == CARD;
  assign m_card_araddr_o  = araddr;
  assign m_card_arlen_o   = arlen;
  assign m_card_rready_o  = rready && src == CARD;
  assign m_pci_awvalid_o  = awvalid && dst == HOST;
  assign m_pci_awaddr_o   = awaddr;
  assign m_pci_awlen_o    = awlen;
  assign m_pci_wvalid_o   = wvalid && dst == HOST;
  assign m_pci_wdata_o    = wdata;
  assign m_pci_wstrb_o    = wstrb;
  assign m_pci_wlast_o    = wlast;
  assign m_pci_bready_o   = bready;
  assign m_card_awvalid_o = awvalid && dst == CARD;
  assign m_card_awaddr_o  = awaddr;
  assign m_card_awlen_o   = awlen;
  assign m_card_wvalid_o  = wvalid && dst == CARD;
  assign m_card_wdata_o   = wdata;
  assign m_card_wstrb_o   = wstrb;
  assign m_card_wlast_o   = wlast;
  assign m_card_bready_o  = bready;

  // The local memory as a slave: reads of one burst at a time; a write's address comes before its
  // data, and nothing is refused.
  logic       lr_q, lrv_q, l_ren, lb_q, l_wen;
  logic [5:0] lr_addr_q, lw_addr_q;
  logic [7:0] lr_left_q;
  assign l_ren = e_ren || (lr_q && (!lrv_q || rready));
  assign l_wen = e_wen || (wvalid && dst == LOCAL);
  always_ff @(posedge ctl_clk) begin
    if (!rst_ni) begin
      lr_q  <= 1'b0;
      lrv_q <= 1'b0;
      lb_q  <= 1'b0;
    end else begin
      if (arvalid && src == LOCAL && !lr_q) lr_q <= 1'b1;
      else if (lr_q && (!lrv_q || rready) && lr_left_q == '0) lr_q <= 1'b0;
      if (lr_q && (!lrv_q || rready)) lrv_q <= 1'b1;
      else if (rready) lrv_q <= 1'b0;
      lb_q <= wvalid && wlast && dst == LOCAL;
    end
    if (arvalid && src == LOCAL && !lr_q) begin
      lr_addr_q <= araddr[11:6];
      lr_left_q <= arlen;
    end else if (lr_q && (!lrv_q || rready)) begin
      lr_addr_q <= lr_addr_q + 6'd1;
      lr_left_q <= lr_left_q - 8'd1;
    end
    if (awvalid && dst == LOCAL) lw_addr_q <= awaddr[11:6];
    else if (wvalid && dst == LOCAL) lw_addr_q <= lw_addr_q + 6'd1;
  end
  mr_ram_1r1w #(.W(512), .DEPTH(64)) u_local (
    .clk_i(ctl_clk), .wen_i(l_wen), .waddr_i(e_wen ? e_waddr : lw_addr_q),
    .wdata_i(e_wen ? e_wdata : wdata),
    .ren_i(l_ren), .raddr_i(e_ren ? e_raddr : lr_addr_q), .rdata_o(l_rdata)
  );

  assign arready = src == HOST ? m_pci_arready_i : src == CARD ? m_card_arready_i : !lr_q;
  assign rvalid  = src == HOST ? m_pci_rvalid_i : src == CARD ? m_card_rvalid_i : lrv_q;
  assign rresp   = src == HOST ? m_pci_rresp_i : src == CARD ? m_card_rresp_i : 2'b00;
  assign rdata   = src == HOST ? m_pci_rdata_i : src == CARD ? m_card_rdata_i : l_rdata;
  assign awready = dst == HOST ? m_pci_awready_i : dst == CARD ? m_card_awready_i : 1'b1;
  assign wready  = dst == HOST ? m_pci_wready_i : dst == CARD ? m_card_wready_i : 1'b1;
  assign bvalid  = dst == HOST ? m_pci_bvalid_i : dst == CARD ? m_card_bvalid_i : lb_q;
  assign bresp   = dst == HOST ? m_pci_bresp_i : dst == CARD ? m_card_bresp_i : 2'b00;

  // ---- the engine -------------------------------------------------------------------------------
  assign core_awaddr   = c_addr;
  assign core_araddr   = c_addr;
  assign core_wstrb    = 4'hF;
  assign core_bready   = 1'b1;
  assign core_rready   = 1'b1;
  assign m_ch_araddr_o = core_ch_araddr;
  millrace_core #(
    `include "core_params_pass.svh"
  ) u_core (
    `include "core_pass.svh"
  );

  `MR_ASSERT(local_read, !(e_ren && lr_q))
  `MR_ASSERT(local_write, !(e_wen && wvalid && dst == LOCAL))

endmodule
