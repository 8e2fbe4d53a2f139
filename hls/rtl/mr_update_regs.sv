// SPDX-License-Identifier: Apache-2.0
// The host's side of `millrace_update`: an AXI4-Lite slave with the registers that Vitis gives a
// kernel with ap_ctrl_hs, and how the last run ended.
//
//   0x00  bit 0 ap_start (write 1; reads 1 until the run has ended), 1 ap_done and 3 ap_ready
//         (cleared by reading), 2 ap_idle. No auto-restart
//   0x04  GIE, 0x08 IER, 0x0C ISR (bit 0 done, bit 1 ready; write 1 toggles)
//   0x10  arguments in the order of the C++ kernel (mr_update_pkg). A pointer, or another argument
//         of 64 bits, has its low and its high word and a reserved one; one of 32 bits has its word
//         and a reserved one. 0x10 jobs .. 0x58 wt, 0x64 count, 0x6C channels, 0x74 w_channel,
//         0x80 wt_channel, 0x8C scale .. 0xCC decay
//   0xD4  read-only: 0 the run ended well, 1 an error of a read, 2 of a write, 3 a job that makes
//         no sense, 4 channels that are none of 1, 2, 4, 8, 16
//   0xD8  read-only, two words: the address that it is about: of the burst, or of the job
//
// Timing: start_o is a pulse; args_o stand from then on until done_i, if the host leaves them
// alone. done_i is a pulse; status_i and where_i stand from done_i to the next start_o.
module mr_update_regs (
  input  logic                              clk_i,
  input  logic                              rst_ni,

  input  logic                              s_axil_awvalid_i,
  output logic                              s_axil_awready_o,
  // Registers are words.
  // verilator lint_off UNUSED
  input  logic [11:0]                       s_axil_awaddr_i,
  // verilator lint_on UNUSED
  input  logic                              s_axil_wvalid_i,
  output logic                              s_axil_wready_o,
  input  logic [31:0]                       s_axil_wdata_i,
  input  logic [3:0]                        s_axil_wstrb_i,
  output logic                              s_axil_bvalid_o,
  input  logic                              s_axil_bready_i,
  output logic [1:0]                        s_axil_bresp_o,
  input  logic                              s_axil_arvalid_i,
  output logic                              s_axil_arready_o,
  // As above.
  // verilator lint_off UNUSED
  input  logic [11:0]                       s_axil_araddr_i,
  // verilator lint_on UNUSED
  output logic                              s_axil_rvalid_o,
  input  logic                              s_axil_rready_i,
  output logic [31:0]                       s_axil_rdata_o,
  output logic [1:0]                        s_axil_rresp_o,

  output logic                              irq_o,
  output logic                              start_o,
  output logic [32*mr_update_pkg::ARGS-1:0] args_o,
  input  logic                              done_i,
  input  logic [31:0]                       status_i,
  input  logic [63:0]                       where_i
);

  localparam int ARGS = mr_update_pkg::ARGS;
  // Places in words.
  localparam logic [9:0] AP_CTRL = 10'd0, GIE = 10'd1, IER = 10'd2, ISR = 10'd3, FIRST = 10'd4,
                         STATUS = FIRST + 10'(ARGS), WHERE = STATUS + 10'd1;

  // ---- writes: an address and a word, in any order, then the answer -----------------------------
  logic        aw_q, w_q, write;
  logic [9:0]  waddr_q;
  logic [31:0] wdata_q;
  logic [3:0]  wstrb_q;
  assign s_axil_awready_o = !aw_q;
  assign s_axil_wready_o  = !w_q;
  assign s_axil_bresp_o   = '0;
  assign write            = aw_q && w_q && !s_axil_bvalid_o;
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      aw_q            <= 1'b0;
      w_q             <= 1'b0;
      s_axil_bvalid_o <= 1'b0;
    end else begin
      aw_q            <= !write && (aw_q || s_axil_awvalid_i);
      w_q             <= !write && (w_q || s_axil_wvalid_i);
      s_axil_bvalid_o <= write || (s_axil_bvalid_o && !s_axil_bready_i);
    end
    if (!aw_q) waddr_q <= s_axil_awaddr_i[11:2];
    if (!w_q) begin
      wdata_q <= s_axil_wdata_i;
      wstrb_q <= s_axil_wstrb_i;
    end
  end

  // ---- reads: the address, a cycle later the word -----------------------------------------------
  logic       ar_q, read;
  logic [9:0] raddr_q;
  assign s_axil_arready_o = !ar_q && !s_axil_rvalid_o;
  assign s_axil_rresp_o   = '0;
  assign read             = ar_q;
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      ar_q            <= 1'b0;
      s_axil_rvalid_o <= 1'b0;
    end else begin
      ar_q            <= s_axil_arvalid_i && s_axil_arready_o;
      s_axil_rvalid_o <= read || (s_axil_rvalid_o && !s_axil_rready_i);
    end
    if (s_axil_arready_o) raddr_q <= s_axil_araddr_i[11:2];
  end

  // ---- arguments --------------------------------------------------------------------------------
  logic [32*ARGS-1:0] arg_q;
  logic [31:0]        argument;
  always_ff @(posedge clk_i) begin
    for (int i = 0; i < ARGS; i++) begin
      for (int b = 0; b < 4; b++) begin
        if (write && waddr_q == FIRST + 10'(i) && wstrb_q[b]) begin
          arg_q[32*i+8*b+:8] <= wdata_q[8*b+:8];
        end
      end
    end
  end
  always_comb begin
    argument = '0;
    for (int i = 0; i < ARGS; i++) begin
      if (raddr_q == FIRST + 10'(i)) argument = argument | arg_q[32*i+:32];
    end
  end
  assign args_o = arg_q;

  // ---- ap_ctrl_hs and the interrupt -------------------------------------------------------------
  logic       busy_q, done_q, ready_q, gie_q, start;
  logic [1:0] ier_q, isr_q, events, toggled;
  assign start   = write && waddr_q == AP_CTRL && wstrb_q[0] && wdata_q[0] && !busy_q;
  assign events  = done_i ? ier_q : 2'd0;
  assign toggled = write && waddr_q == ISR && wstrb_q[0] ? wdata_q[1:0] : 2'd0;
  assign irq_o   = gie_q && isr_q != '0;
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      busy_q  <= 1'b0;
      done_q  <= 1'b0;
      ready_q <= 1'b0;
      gie_q   <= 1'b0;
      ier_q   <= '0;
      isr_q   <= '0;
      start_o <= 1'b0;
    end else begin
      start_o <= start;
      busy_q  <= start || (busy_q && !done_i);
      done_q  <= done_i || (done_q && !(read && raddr_q == AP_CTRL));
      ready_q <= done_i || (ready_q && !(read && raddr_q == AP_CTRL));
      if (write && waddr_q == GIE && wstrb_q[0]) gie_q <= wdata_q[0];
      if (write && waddr_q == IER && wstrb_q[0]) ier_q <= wdata_q[1:0];
      isr_q   <= (isr_q ^ toggled) | events;
    end
    if (read) begin
      unique case (raddr_q)
        AP_CTRL:       s_axil_rdata_o <= {28'd0, ready_q, !busy_q, done_q, busy_q};
        GIE:           s_axil_rdata_o <= {31'd0, gie_q};
        IER:           s_axil_rdata_o <= {30'd0, ier_q};
        ISR:           s_axil_rdata_o <= {30'd0, isr_q};
        STATUS:        s_axil_rdata_o <= status_i;
        WHERE:         s_axil_rdata_o <= where_i[31:0];
        WHERE + 10'd1: s_axil_rdata_o <= where_i[63:32];
        default:       s_axil_rdata_o <= argument;
      endcase
    end
  end
endmodule
