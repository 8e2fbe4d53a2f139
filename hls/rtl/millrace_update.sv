// SPDX-License-Identifier: Apache-2.0
// The kernel `millrace_update` with the names that Vitis gives the ports of a kernel; mr_update
// says what it does.
//
// LANES  weights in a cycle: 1, 2 or 4
module millrace_update #(
  parameter int LANES = 2
) (
  input  logic         ap_clk,
  input  logic         ap_rst_n,

  input  logic         s_axi_control_awvalid,
  output logic         s_axi_control_awready,
  input  logic [11:0]  s_axi_control_awaddr,
  input  logic         s_axi_control_wvalid,
  output logic         s_axi_control_wready,
  input  logic [31:0]  s_axi_control_wdata,
  input  logic [3:0]   s_axi_control_wstrb,
  output logic         s_axi_control_bvalid,
  input  logic         s_axi_control_bready,
  output logic [1:0]   s_axi_control_bresp,
  input  logic         s_axi_control_arvalid,
  output logic         s_axi_control_arready,
  input  logic [11:0]  s_axi_control_araddr,
  output logic         s_axi_control_rvalid,
  input  logic         s_axi_control_rready,
  output logic [31:0]  s_axi_control_rdata,
  output logic [1:0]   s_axi_control_rresp,

  output logic         m_axi_gmem_awvalid,
  input  logic         m_axi_gmem_awready,
  output logic [63:0]  m_axi_gmem_awaddr,
  output logic [7:0]   m_axi_gmem_awlen,
  output logic [2:0]   m_axi_gmem_awsize,
  output logic [1:0]   m_axi_gmem_awburst,
  output logic         m_axi_gmem_awid,
  output logic         m_axi_gmem_awlock,
  output logic [3:0]   m_axi_gmem_awcache,
  output logic [2:0]   m_axi_gmem_awprot,
  output logic [3:0]   m_axi_gmem_awqos,
  output logic [3:0]   m_axi_gmem_awregion,
  output logic         m_axi_gmem_wvalid,
  input  logic         m_axi_gmem_wready,
  output logic [511:0] m_axi_gmem_wdata,
  output logic [63:0]  m_axi_gmem_wstrb,
  output logic         m_axi_gmem_wlast,
  input  logic         m_axi_gmem_bvalid,
  output logic         m_axi_gmem_bready,
  input  logic [1:0]   m_axi_gmem_bresp,
  input  logic         m_axi_gmem_bid,
  output logic         m_axi_gmem_arvalid,
  input  logic         m_axi_gmem_arready,
  output logic [63:0]  m_axi_gmem_araddr,
  output logic [7:0]   m_axi_gmem_arlen,
  output logic [2:0]   m_axi_gmem_arsize,
  output logic [1:0]   m_axi_gmem_arburst,
  output logic         m_axi_gmem_arid,
  output logic         m_axi_gmem_arlock,
  output logic [3:0]   m_axi_gmem_arcache,
  output logic [2:0]   m_axi_gmem_arprot,
  output logic [3:0]   m_axi_gmem_arqos,
  output logic [3:0]   m_axi_gmem_arregion,
  input  logic         m_axi_gmem_rvalid,
  output logic         m_axi_gmem_rready,
  input  logic [511:0] m_axi_gmem_rdata,
  input  logic         m_axi_gmem_rlast,
  input  logic [1:0]   m_axi_gmem_rresp,
  input  logic         m_axi_gmem_rid,

  // The name is Vitis'.
  // verilator lint_off SYMRSVDWORD
  output logic         interrupt
  // verilator lint_on SYMRSVDWORD
);

  // Beats of 64 bytes, INCR, bufferable and modifiable, unprivileged data, one ID.
  assign m_axi_gmem_awsize   = 3'd6;
  assign m_axi_gmem_awburst  = 2'b01;
  assign m_axi_gmem_awcache  = 4'b0011;
  assign m_axi_gmem_awid     = '0;
  assign m_axi_gmem_awlock   = '0;
  assign m_axi_gmem_awprot   = '0;
  assign m_axi_gmem_awqos    = '0;
  assign m_axi_gmem_awregion = '0;
  assign m_axi_gmem_arsize   = 3'd6;
  assign m_axi_gmem_arburst  = 2'b01;
  assign m_axi_gmem_arcache  = 4'b0011;
  assign m_axi_gmem_arid     = '0;
  assign m_axi_gmem_arlock   = '0;
  assign m_axi_gmem_arprot   = '0;
  assign m_axi_gmem_arqos    = '0;
  assign m_axi_gmem_arregion = '0;

  // There is one ID.
  logic unused;
  assign unused = &{1'b0, m_axi_gmem_bid, m_axi_gmem_rid};

  mr_update #(
    .LANES(LANES)
  ) u_update (
    .clk_i (ap_clk),
    .rst_ni(ap_rst_n),
    .s_axil_awvalid_i(s_axi_control_awvalid),
    .s_axil_awready_o(s_axi_control_awready),
    .s_axil_awaddr_i (s_axi_control_awaddr),
    .s_axil_wvalid_i (s_axi_control_wvalid),
    .s_axil_wready_o (s_axi_control_wready),
    .s_axil_wdata_i  (s_axi_control_wdata),
    .s_axil_wstrb_i  (s_axi_control_wstrb),
    .s_axil_bvalid_o (s_axi_control_bvalid),
    .s_axil_bready_i (s_axi_control_bready),
    .s_axil_bresp_o  (s_axi_control_bresp),
    .s_axil_arvalid_i(s_axi_control_arvalid),
    .s_axil_arready_o(s_axi_control_arready),
    .s_axil_araddr_i (s_axi_control_araddr),
    .s_axil_rvalid_o (s_axi_control_rvalid),
    .s_axil_rready_i (s_axi_control_rready),
    .s_axil_rdata_o  (s_axi_control_rdata),
    .s_axil_rresp_o  (s_axi_control_rresp),
    .irq_o           (interrupt),
    .m_arvalid_o(m_axi_gmem_arvalid),
    .m_arready_i(m_axi_gmem_arready),
    .m_araddr_o (m_axi_gmem_araddr),
    .m_arlen_o  (m_axi_gmem_arlen),
    .m_rvalid_i (m_axi_gmem_rvalid),
    .m_rready_o (m_axi_gmem_rready),
    .m_rdata_i  (m_axi_gmem_rdata),
    .m_rresp_i  (m_axi_gmem_rresp),
    .m_rlast_i  (m_axi_gmem_rlast),
    .m_awvalid_o(m_axi_gmem_awvalid),
    .m_awready_i(m_axi_gmem_awready),
    .m_awaddr_o (m_axi_gmem_awaddr),
    .m_awlen_o  (m_axi_gmem_awlen),
    .m_wvalid_o (m_axi_gmem_wvalid),
    .m_wready_i (m_axi_gmem_wready),
    .m_wdata_o  (m_axi_gmem_wdata),
    .m_wstrb_o  (m_axi_gmem_wstrb),
    .m_wlast_o  (m_axi_gmem_wlast),
    .m_bvalid_i (m_axi_gmem_bvalid),
    .m_bready_o (m_axi_gmem_bready),
    .m_bresp_i  (m_axi_gmem_bresp)
  );
endmodule
