// SPDX-License-Identifier: Apache-2.0
// Stands in for the engine in the kernel's bench: its real registers, and a sequencer that does what the
// run address says: [7:0] cycles of the run, [8] it ends in an error, [9] and then stays busy for 100
// cycles, [10] it does not end by itself. Channel c's AR address is the run address with c added at bit 4.
module millrace_core #(
  parameter int N = 1,
  parameter int R = 4,
  parameter int T = 128,
  parameter int ACT_WORDS = 1024,
  parameter int QKV_WORDS = 256,
  parameter int D_MAX = 4096,
  parameter int ROT_MAX = 256,
  parameter int SCORES = 32768,
  parameter int W_MAX = 4096,
  parameter int CTX_MAX = 4096,
  parameter int RING = 1024,
  parameter int PAIR = 0,
  parameter int CLOCK_KHZ = 300000
) (
  input  logic             clk_i,
  input  logic             rst_ni,
  input  logic             s_axil_awvalid_i,
  output logic             s_axil_awready_o,
  input  logic [11:0]      s_axil_awaddr_i,
  input  logic             s_axil_wvalid_i,
  output logic             s_axil_wready_o,
  input  logic [31:0]      s_axil_wdata_i,
  input  logic [3:0]       s_axil_wstrb_i,
  output logic             s_axil_bvalid_o,
  input  logic             s_axil_bready_i,
  output logic [1:0]       s_axil_bresp_o,
  input  logic             s_axil_arvalid_i,
  output logic             s_axil_arready_o,
  input  logic [11:0]      s_axil_araddr_i,
  output logic             s_axil_rvalid_o,
  input  logic             s_axil_rready_i,
  output logic [31:0]      s_axil_rdata_o,
  output logic [1:0]       s_axil_rresp_o,
  output logic [N-1:0]     m_ch_arvalid_o,
  input  logic [N-1:0]     m_ch_arready_i,
  output logic [N*64-1:0]  m_ch_araddr_o,
  output logic [N*8-1:0]   m_ch_arlen_o,
  input  logic [N-1:0]     m_ch_rvalid_i,
  output logic [N-1:0]     m_ch_rready_o,
  input  logic [N*512-1:0] m_ch_rdata_i,
  input  logic [N*2-1:0]   m_ch_rresp_i,
  input  logic [N-1:0]     m_ch_rlast_i,
  output logic             m_host_arvalid_o,
  input  logic             m_host_arready_i,
  output logic [63:0]      m_host_araddr_o,
  output logic [7:0]       m_host_arlen_o,
  input  logic             m_host_rvalid_i,
  output logic             m_host_rready_o,
  input  logic [511:0]     m_host_rdata_i,
  input  logic [1:0]       m_host_rresp_i,
  input  logic             m_host_rlast_i,
  output logic             m_host_awvalid_o,
  input  logic             m_host_awready_i,
  output logic [63:0]      m_host_awaddr_o,
  output logic [7:0]       m_host_awlen_o,
  output logic             m_host_wvalid_o,
  input  logic             m_host_wready_i,
  output logic [511:0]     m_host_wdata_o,
  output logic [63:0]      m_host_wstrb_o,
  output logic             m_host_wlast_o,
  input  logic             m_host_bvalid_i,
  output logic             m_host_bready_o,
  input  logic [1:0]       m_host_bresp_i,
  output logic             irq_o,
  output logic             busy_o,
  output logic             finish_o,
  output logic [4:0]       done_valid_o,
  output logic [79:0]      done_index_o
);

  logic        start, soft_reset, busy_q, done_q, error_q;
  logic [63:0] run_addr;
  logic [7:0]  left_q;
  logic [7:0]  linger_q;
  logic        over;
  // verilator lint_off UNUSED
  logic [5:0]  watchdog;
  logic [4:0]  cnt_addr;
  // verilator lint_on UNUSED
  assign busy_o = busy_q;
  assign over   = left_q == '0 && !run_addr[10];
  mr_regs #(
    .N(N), .R(R), .T(T), .ACT_WORDS(ACT_WORDS), .QKV_WORDS(QKV_WORDS), .D_MAX(D_MAX),
    .ROT_MAX(ROT_MAX), .SCORES(SCORES), .W_MAX(W_MAX), .CTX_MAX(CTX_MAX), .RING(RING),
    .CLOCK_KHZ(CLOCK_KHZ)
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
    .busy_i     (busy_q),
    .done_i     (done_q),
    .error_i    (error_q),
    .finish_i   (finish_o),
    .err_code_i (error_q ? 8'd4 : 8'd0),
    .err_unit_i (error_q ? 8'd1 : 8'd0),
    .err_index_i(error_q ? 16'd7 : 16'd0),
    .err_addr_i (64'h123456789ABC),
    .sticky_i   (2'd0),
    .cnt_addr_o (cnt_addr),
    .cnt_data_i ({43'd0, cnt_addr})
  );

  always_ff @(posedge clk_i) begin
    finish_o <= 1'b0;
    if (!rst_ni) begin
      busy_q   <= 1'b0;
      done_q   <= 1'b0;
      error_q  <= 1'b0;
      linger_q <= '0;
    end else if (!busy_q) begin
      if (start) begin
        busy_q  <= 1'b1;
        done_q  <= 1'b0;
        error_q <= 1'b0;
        left_q  <= run_addr[7:0];
      end
    end else if (linger_q != '0) begin
      linger_q <= linger_q - 8'd1;
      if (linger_q == 8'd1) busy_q <= 1'b0;
    end else if (soft_reset) begin
      busy_q <= 1'b0;  // without a finish, as the sequencer does it
    end else if (over) begin
      finish_o <= 1'b1;
      done_q   <= !run_addr[8];
      error_q  <= run_addr[8];
      if (run_addr[9]) linger_q <= 8'd100;
      else busy_q <= 1'b0;
    end else begin
      left_q <= left_q - 8'd1;
    end
  end

  genvar c;
  generate
    for (c = 0; c < N; c = c + 1) begin : gen_channel
      assign m_ch_araddr_o[64*c+:64] = run_addr + 64'(16 * c);
    end
  endgenerate
  assign {m_ch_arvalid_o, m_ch_arlen_o, m_ch_rready_o} = '0;
  assign {m_host_arvalid_o, m_host_araddr_o, m_host_arlen_o, m_host_rready_o} = '0;
  assign {m_host_awvalid_o, m_host_awaddr_o, m_host_awlen_o, m_host_wvalid_o, m_host_wdata_o,
          m_host_wstrb_o, m_host_wlast_o, m_host_bready_o} = '0;
  assign {done_valid_o, done_index_o} = '0;
  logic unused;
  assign unused = &{1'b0, m_ch_arready_i, m_ch_rvalid_i, m_ch_rdata_i, m_ch_rresp_i, m_ch_rlast_i,
                    m_host_arready_i, m_host_rvalid_i, m_host_rdata_i, m_host_rresp_i,
                    m_host_rlast_i, m_host_awready_i, m_host_wready_i, m_host_bvalid_i,
                    m_host_bresp_i, PAIR != 0};

endmodule
