// SPDX-License-Identifier: Apache-2.0
// The engine as a Vitis RTL kernel: ap_ctrl_hs in front of millrace_core's registers, and
// weight pages. gen_kernel.awk wraps it in millrace_kernel, whose ports have the names that the
// Vitis linker wants.
//
// Parameters: those of millrace_core; PAGES weight pages a channel (rtl/spec/kernel.def).
//
// Control port: 0x00 ap_start (write 1; reads 1 until the run has ended), ap_done and ap_ready
// (cleared by reading), ap_idle; 0x04 GIE, 0x08 IER, 0x0C ISR (bit 0 done, bit 1 ready; write 1
// toggles). There is no auto-restart. Writing zeros there changes nothing but GIE and IER. The
// other registers are the core's (docs/inside/commands.md) except that CTRL cannot start a run,
// with the arguments of kernel.def between them: 0x05C page_log2, 0x300.. the weight pages; the
// remaining ones only tell the linker and XRT which memory a buffer must lie in, and are
// ignored: the run descriptor has the addresses. Arguments and words with a partial strobe read
// and write as nothing. A start waits until the core can take it.
//
// A run has ended when the core says so, well or not (STATUS, ERROR), or when a soft reset has
// ended it.
//
// Weight pages: a read at an address with bit 63 set goes to page p = address >> page_log2
// (0..3) of the channel, at that page's own address. So a weight window may lie in several
// buffers of 2^page_log2 bytes. With bit 8 of page_log2 the pages take turns, 4 KiB at a time:
// page (address >> 12) % 4 has the address without these two bits, modulo 2^page_log2. So
// consecutive addresses lie in four memories. No cycle is added to the engine's memory ports.
`include "mr_assert.svh"
`include "mr_bundles.svh"
module mr_kernel #(
  `include "core_params.svh"
) (
  input  logic             clk_i,
  input  logic             rst_ni,

  output logic             irq_o,
  output logic             idle_o,  // ap_idle

  `include "core_bus_ports.svh"
);

  localparam logic [11:0] AP_CTRL = 12'h000, GIE = 12'h004, IER = 12'h008, ISR = 12'h00C;
  localparam int PAGES = mr_pkg::WEIGHT_PAGES;
  localparam int CHANNEL_LSB = $clog2(mr_pkg::KARG_CHANNEL_STRIDE);

  // Registers of this module: all others are the core's.
  function automatic logic own(input logic [11:0] addr);
    own = addr < 12'h010 || addr == mr_pkg::KARG_PAGE_LOG2[11:0] ||
          addr >= mr_pkg::KARG_CHANNEL[11:0];
  endfunction

  // ---- write side: one write at a time, either answered here or passed on to the core ---------
  `MR_PUT_W(w_, 12);
  logic sent_q, own_q;  // a write is under way in the core; it is the host's
  logic whole, is_local, local_write, core_write;
  mr_axil_w #(.AW(12)) u_write (.clk_i, .rst_ni, `MR_AXIL_W_S_TO(, s_axil_), `MR_PUT_M_ON(w_, w_));
  assign whole       = w_strb == 4'hF;
  assign is_local    = own(w_addr) || !whole;
  assign local_write = w_valid && is_local;
  assign core_write  = w_valid && !is_local;
  assign w_done      = local_write || (sent_q && core_bvalid && own_q);
  assign w_take      = w_done;

  // The core's write port: the host's, or the start of a run when the core can take it.
  `include "core_wires.svh"
  logic        start_q, seen_q, starting_q, c_go, c_start;
  assign c_start   = starting_q && !core_busy;
  assign c_go      = !sent_q && (c_start || core_write);
  assign core_awvalid = c_go;
  assign core_wvalid  = c_go;
  // Both are ready together: the core takes one write at a time, address and data at once.
  logic c_ready;
  assign c_ready   = core_awready && core_wready;
  assign core_awaddr  = c_start ? mr_pkg::REG_CTRL[11:0] : w_addr;
  assign core_wdata   = c_start ? 32'd1 :
                     w_addr == mr_pkg::REG_CTRL[11:0] ? w_data & ~32'd1 : w_data;

  // A soft reset takes back a start that waits for a core whose memory does not answer.
  logic done_event, cancel;
  assign cancel     = starting_q && c_go && c_ready && !c_start &&
                      w_addr == mr_pkg::REG_CTRL[11:0] && w_data[1];
  assign done_event = cancel || (start_q && seen_q && (core_finish || !core_busy));
  assign idle_o     = !start_q;

  // While the core runs nothing changes here until the host or the core's end comes: one test then
  // leaves out all others in a simulator.
  logic awake;
  assign awake = !rst_ni || r_valid || w_valid || sent_q || starting_q ||
                 (start_q && !seen_q) || done_event;

  always_ff @(posedge clk_i) if (awake) begin
    if (!rst_ni) begin
      sent_q     <= 1'b0;
      own_q      <= 1'b0;
      start_q    <= 1'b0;
      starting_q <= 1'b0;
      seen_q     <= 1'b0;
    end else begin
      if (c_go && c_ready) begin
        sent_q <= 1'b1;
        own_q  <= !c_start;
        if (c_start || cancel) starting_q <= 1'b0;
      end
      if (sent_q && core_bvalid) sent_q <= 1'b0;
      if (done_event) start_q <= 1'b0;
      else if (local_write && whole && w_addr == AP_CTRL && w_data[0] && !start_q) begin
        start_q    <= 1'b1;
        starting_q <= 1'b1;
      end
      seen_q <= start_q && !starting_q && !done_event && (seen_q || core_busy);
    end
  end

  // ---- ap_ctrl_hs and interrupt ---------------------------------------------------------------
  logic       done_q, ready_q, gie_q, read_ctrl;
  logic [1:0] ier_q, isr_q;
  assign irq_o = gie_q && isr_q != '0;
  always_ff @(posedge clk_i) if (awake) begin
    if (!rst_ni) begin
      done_q  <= 1'b0;
      ready_q <= 1'b0;
      gie_q   <= 1'b0;
      ier_q   <= '0;
      isr_q   <= '0;
    end else begin
      done_q  <= done_event || (done_q && !read_ctrl);
      ready_q <= done_event || (ready_q && !read_ctrl);
      if (local_write && whole && w_addr == GIE) gie_q <= w_data[0];
      if (local_write && whole && w_addr == IER) ier_q <= w_data[1:0];
      isr_q <= (local_write && whole && w_addr == ISR ? isr_q ^ w_data[1:0] : isr_q) |
               (done_event ? ier_q : 2'd0);
    end
  end

  // ---- read side ------------------------------------------------------------------------------
  `MR_GET_W(r_, 12);
  logic asked_q;  // the core has the address
  mr_axil_r #(.AW(12)) u_read (.clk_i, .rst_ni, `MR_AXIL_R_S_TO(, s_axil_), `MR_GET_M_ON(r_, r_));
  assign core_arvalid = r_valid && !own(r_addr) && !asked_q;
  assign r_done       = r_valid && (own(r_addr) || core_rvalid);
  assign r_take       = r_done;
  assign read_ctrl    = r_done && r_addr == AP_CTRL;
  always_ff @(posedge clk_i) if (awake) begin
    asked_q <= rst_ni && ((core_arvalid && core_arready) || (asked_q && !core_rvalid));
    if (r_done) begin
      unique case (r_addr)
        AP_CTRL: r_data <= {28'd0, ready_q, !start_q, done_q, start_q};
        GIE:     r_data <= {31'd0, gie_q};
        IER:     r_data <= {30'd0, ier_q};
        ISR:     r_data <= {30'd0, isr_q};
        default: r_data <= own(r_addr) ? '0 : core_rdata;
      endcase
    end
  end

  // ---- weight pages ---------------------------------------------------------------------------
  logic                  turns_q;
  logic [63:0]           page_bit_q, page_mask_q;  // 2^page_log2, and one less
  logic [N*PAGES*64-1:0] page_q;
  logic [11:0]           page_at;
  // verilator lint_off UNUSED
  logic [11:0]           page_off;  // its low bits say which word of the channel's arguments it is
  // verilator lint_on UNUSED
  assign page_off = w_addr - mr_pkg::KARG_CHANNEL[11:0];
  assign page_at  = page_off & 12'(mr_pkg::KARG_CHANNEL_STRIDE - 32'd1);
  logic page_write;
  assign page_write = local_write && whole && w_addr >= mr_pkg::KARG_CHANNEL[11:0];
  always_ff @(posedge clk_i) if (awake) begin
    if (local_write && whole && w_addr == mr_pkg::KARG_PAGE_LOG2[11:0]) begin
      turns_q     <= (w_data & mr_pkg::PAGES_IN_TURN) != '0;
      page_bit_q  <= 64'd1 << w_data[5:0];
      page_mask_q <= (64'd1 << w_data[5:0]) - 64'd1;
    end
    for (int w = 0; w < N * PAGES * 2; w++) begin
      if (page_write && page_off[11:CHANNEL_LSB] == (12-CHANNEL_LSB)'(w / (2 * PAGES)) &&
          page_at == mr_pkg::KARG_WEIGHTS[11:0] + 12'(4 * (w % (2 * PAGES)))) begin
        page_q[32*w+:32] <= w_data;
      end
    end
  end

  // A page's address replaces the bits above the page's size.
  function automatic [63:0] paged(input logic [63:0] addr, input logic [64*PAGES-1:0] pages,
                                  input logic turns, input logic [63:0] page_bit,
                                  input logic [63:0] mask);
    logic [1:0]  p;
    logic [63:0] off;
    p     = turns ? addr[13:12] : {(addr & (page_bit << 1)) != '0, (addr & page_bit) != '0};
    off   = turns ? {2'd0, addr[63:14], addr[11:0]} : addr;
    paged = !addr[63] ? addr :
            (off & mask) + (p == 2'd0 ? pages[63:0] : p == 2'd1 ? pages[127:64] :
                             p == 2'd2 ? pages[191:128] : pages[255:192]);
  endfunction

  genvar c;
  generate
    for (c = 0; c < N; c = c + 1) begin : gen_page
      assign m_ch_araddr_o[64*c+:64] = paged(core_ch_araddr[64*c+:64], page_q[64*PAGES*c+:64*PAGES],
                                             turns_q, page_bit_q, page_mask_q);
    end
  endgenerate

  // ---- the engine -----------------------------------------------------------------------------
  assign core_wstrb  = 4'hF;
  assign core_bready = 1'b1;
  assign core_araddr = r_addr;
  assign core_rready = 1'b1;
  millrace_core #(
    `include "core_params_pass.svh"
  ) u_core (
    `include "core_pass.svh"
  );

  `MR_ASSERT(one_write, !c_go || c_ready)

endmodule
