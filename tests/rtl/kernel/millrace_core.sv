// SPDX-License-Identifier: Apache-2.0
// Stands in for the engine in the kernel's bench: its real registers, and a sequencer that does what the
// run address says: [7:0] cycles of the run, [8] it ends in an error, [9] and then stays busy for 100
// cycles, [10] it does not end by itself. Channel c's AR address is the run address with c added at bit 4.
module millrace_core #(
  `include "core_params.svh"
) (
  // It need not know every port.
  // verilator lint_off UNUSED
  // verilator lint_off UNDRIVEN
  `include "core_ports.svh"
  // verilator lint_on UNUSED
  // verilator lint_on UNDRIVEN
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
    .CLOCK_KHZ(CLOCK_KHZ), .TRAIN(TRAIN)
  ) u_regs (
    .clk_i, .rst_ni, .awvalid_i(s_axil_awvalid_i), .awready_o(s_axil_awready_o),
    .awaddr_i(s_axil_awaddr_i), .wvalid_i(s_axil_wvalid_i), .wready_o(s_axil_wready_o),
    .wdata_i(s_axil_wdata_i), .wstrb_i(s_axil_wstrb_i), .bvalid_o(s_axil_bvalid_o),
    .bready_i(s_axil_bready_i), .bresp_o(s_axil_bresp_o), .arvalid_i(s_axil_arvalid_i),
    .arready_o(s_axil_arready_o), .araddr_i(s_axil_araddr_i), .rvalid_o(s_axil_rvalid_o),
    .rready_i(s_axil_rready_i), .rdata_o(s_axil_rdata_o), .rresp_o(s_axil_rresp_o), .start_o(start),
    .reset_o(soft_reset), .run_addr_o(run_addr), .watchdog_o(watchdog), .irq_o, .busy_i(busy_q),
    .done_i(done_q), .error_i(error_q), .finish_i(finish_o), .err_code_i(error_q ? 8'd4 : 8'd0),
    .err_unit_i(error_q ? 8'd1 : 8'd0), .err_index_i(error_q ? 16'd7 : 16'd0),
    .err_addr_i(64'h123456789ABC), .sticky_i(2'd0), .cnt_addr_o(cnt_addr),
    .cnt_data_i({43'd0, cnt_addr})
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
  assign unused = PAIR != 0 || FOLD != 1;

endmodule
