// SPDX-License-Identifier: Apache-2.0
//
// For tests/rtl/update/tb.cpp: millrace_update with the benches' names of ports, and whether what
// stands still on the memory port is as it has to be.
module mr_update_bench #(
  parameter int LANES = 2
) (
  input  logic         clk_i,
  input  logic         rst_ni,
  output logic [31:0]  lanes_o,

  input  logic         s_axil_awvalid_i,
  output logic         s_axil_awready_o,
  input  logic [11:0]  s_axil_awaddr_i,
  input  logic         s_axil_wvalid_i,
  output logic         s_axil_wready_o,
  input  logic [31:0]  s_axil_wdata_i,
  input  logic [3:0]   s_axil_wstrb_i,
  output logic         s_axil_bvalid_o,
  input  logic         s_axil_bready_i,
  output logic [1:0]   s_axil_bresp_o,
  input  logic         s_axil_arvalid_i,
  output logic         s_axil_arready_o,
  input  logic [11:0]  s_axil_araddr_i,
  output logic         s_axil_rvalid_o,
  input  logic         s_axil_rready_i,
  output logic [31:0]  s_axil_rdata_o,
  output logic [1:0]   s_axil_rresp_o,
  output logic         irq_o,

  output logic         fixed_o,
  output logic         m_arvalid_o,
  input  logic         m_arready_i,
  output logic [63:0]  m_araddr_o,
  output logic [7:0]   m_arlen_o,
  input  logic         m_rvalid_i,
  output logic         m_rready_o,
  input  logic [511:0] m_rdata_i,
  input  logic [1:0]   m_rresp_i,
  input  logic         m_rlast_i,
  output logic         m_awvalid_o,
  input  logic         m_awready_i,
  output logic [63:0]  m_awaddr_o,
  output logic [7:0]   m_awlen_o,
  output logic         m_wvalid_o,
  input  logic         m_wready_i,
  output logic [511:0] m_wdata_o,
  output logic [63:0]  m_wstrb_o,
  output logic         m_wlast_o,
  input  logic         m_bvalid_i,
  output logic         m_bready_o,
  input  logic [1:0]   m_bresp_i
);

  logic [2:0] awsize, arsize, awprot, arprot;
  logic [1:0] awburst, arburst;
  logic       awid, arid, awlock, arlock;
  logic [3:0] awcache, arcache, awqos, arqos, awregion, arregion;
  assign lanes_o = LANES;
  assign fixed_o = {awsize, arsize, awburst, arburst, awid, arid, awlock, arlock, awcache, arcache,
                    awprot, arprot, awqos, arqos, awregion, arregion} ==
                   {3'd6, 3'd6, 2'd1, 2'd1, 4'd0, 4'd3, 4'd3, 22'd0};

  millrace_update #(
    .LANES(LANES)
  ) u_dut (
    .ap_clk               (clk_i),
    .ap_rst_n             (rst_ni),
    .s_axi_control_awvalid(s_axil_awvalid_i),
    .s_axi_control_awready(s_axil_awready_o),
    .s_axi_control_awaddr (s_axil_awaddr_i),
    .s_axi_control_wvalid (s_axil_wvalid_i),
    .s_axi_control_wready (s_axil_wready_o),
    .s_axi_control_wdata  (s_axil_wdata_i),
    .s_axi_control_wstrb  (s_axil_wstrb_i),
    .s_axi_control_bvalid (s_axil_bvalid_o),
    .s_axi_control_bready (s_axil_bready_i),
    .s_axi_control_bresp  (s_axil_bresp_o),
    .s_axi_control_arvalid(s_axil_arvalid_i),
    .s_axi_control_arready(s_axil_arready_o),
    .s_axi_control_araddr (s_axil_araddr_i),
    .s_axi_control_rvalid (s_axil_rvalid_o),
    .s_axi_control_rready (s_axil_rready_i),
    .s_axi_control_rdata  (s_axil_rdata_o),
    .s_axi_control_rresp  (s_axil_rresp_o),
    .m_axi_gmem_awvalid   (m_awvalid_o),
    .m_axi_gmem_awready   (m_awready_i),
    .m_axi_gmem_awaddr    (m_awaddr_o),
    .m_axi_gmem_awlen     (m_awlen_o),
    .m_axi_gmem_awsize    (awsize),
    .m_axi_gmem_awburst   (awburst),
    .m_axi_gmem_awid      (awid),
    .m_axi_gmem_awlock    (awlock),
    .m_axi_gmem_awcache   (awcache),
    .m_axi_gmem_awprot    (awprot),
    .m_axi_gmem_awqos     (awqos),
    .m_axi_gmem_awregion  (awregion),
    .m_axi_gmem_wvalid    (m_wvalid_o),
    .m_axi_gmem_wready    (m_wready_i),
    .m_axi_gmem_wdata     (m_wdata_o),
    .m_axi_gmem_wstrb     (m_wstrb_o),
    .m_axi_gmem_wlast     (m_wlast_o),
    .m_axi_gmem_bvalid    (m_bvalid_i),
    .m_axi_gmem_bready    (m_bready_o),
    .m_axi_gmem_bresp     (m_bresp_i),
    .m_axi_gmem_bid       (1'b0),
    .m_axi_gmem_arvalid   (m_arvalid_o),
    .m_axi_gmem_arready   (m_arready_i),
    .m_axi_gmem_araddr    (m_araddr_o),
    .m_axi_gmem_arlen     (m_arlen_o),
    .m_axi_gmem_arsize    (arsize),
    .m_axi_gmem_arburst   (arburst),
    .m_axi_gmem_arid      (arid),
    .m_axi_gmem_arlock    (arlock),
    .m_axi_gmem_arcache   (arcache),
    .m_axi_gmem_arprot    (arprot),
    .m_axi_gmem_arqos     (arqos),
    .m_axi_gmem_arregion  (arregion),
    .m_axi_gmem_rvalid    (m_rvalid_i),
    .m_axi_gmem_rready    (m_rready_o),
    .m_axi_gmem_rdata     (m_rdata_i),
    .m_axi_gmem_rlast     (m_rlast_i),
    .m_axi_gmem_rresp     (m_rresp_i),
    .m_axi_gmem_rid       (1'b0),
    .interrupt            (irq_o)
  );
endmodule
