// SPDX-License-Identifier: Apache-2.0
// AXI4-Lite slave: identity, capabilities, control, first error, counters (docs/inside/commands.md,
// "Registers").
//
// Parameters: the configuration, as it is reported to the host.
//
// A write and a read at a time (mr_axil_w, mr_axil_r); unknown addresses read zero and ignore
// writes. Words are written whole whatever the strobe says: mr_kernel and mr_pcie_bar hold partial
// ones back. start_o and reset_o are pulses.
`include "mr_assert.svh"
`include "mr_bundles.svh"
module mr_regs #(
  parameter int N = 1,
  parameter int R = 4,
  parameter int T = 128,
  parameter int ACT_WORDS = 1024,
  parameter int QKV_WORDS = 256,
  parameter int D_MAX = 4096,
  parameter int ROT_MAX = 256,
  parameter int SCORES = 32768,
  parameter int W_MAX = 4096,
  parameter int HEADS_MAX = 64,
  parameter int HP_MAX = 256,
  parameter int CTX_MAX = 4096,
  parameter int RING = 1024,
  parameter int CLOCK_KHZ = 300000,
  parameter int TRAIN = 0
) (
  input  logic        clk_i,
  input  logic        rst_ni,

  `MR_AXIL_W_S(, 12),
  `MR_AXIL_R_S(, 12),

  `MR_CTL_M(),
  output logic        irq_o,
  `MR_FIRST_S(err_),
  input  logic [1:0]  sticky_i,
  output logic [4:0]  cnt_addr_o,
  input  logic [47:0] cnt_data_i
);

  // A run does not touch the registers. HOLD: the three steps of a read.
  logic clk;
  mr_clk_gate #(.HOLD(8)) u_gate (
    .clk_i,
    .active_i(!rst_ni || awvalid_i || wvalid_i || arvalid_i || bvalid_o || rvalid_o || finish_i),
    .clk_o(clk)
  );

  // ---- write side -----------------------------------------------------------------------------
  `MR_PUT_W(w_, 12);
  logic irq_enable_q, irq_status_q, unused;
  mr_axil_w #(.AW(12)) u_write (.clk_i(clk), .rst_ni, `MR_AXIL_W_S_TO(, ), `MR_PUT_M_ON(w_, w_));
  assign w_take = w_valid;
  assign w_done = w_valid;
  assign unused = ^w_strb;
  assign irq_o  = irq_enable_q && irq_status_q;

  always_ff @(posedge clk) begin
    start_o <= 1'b0;
    reset_o <= 1'b0;
    if (!rst_ni) begin
      irq_enable_q <= 1'b0;
      irq_status_q <= 1'b0;
      run_addr_o   <= '0;
      watchdog_o   <= '0;
    end else begin
      if (finish_i) irq_status_q <= 1'b1;
      if (w_valid) begin
        unique case (w_addr)
          mr_pkg::REG_CTRL[11:0]: begin
            start_o <= w_data[0] && !busy_i;
            reset_o <= w_data[1];
          end
          mr_pkg::REG_RUN_LO[11:0]:     run_addr_o[31:0] <= w_data;
          mr_pkg::REG_RUN_HI[11:0]:     run_addr_o[63:32] <= w_data;
          mr_pkg::REG_IRQ_ENABLE[11:0]: irq_enable_q <= w_data[0];
          mr_pkg::REG_IRQ_STATUS[11:0]: if (w_data[0]) irq_status_q <= 1'b0;
          mr_pkg::REG_WATCHDOG[11:0]:   watchdog_o <= w_data[5:0];
          default: ;
        endcase
      end
    end
  end

  // ---- read side: the address is held for two cycles, the counter memory answers in the second --
  `MR_GET_W(r_, 12);
  logic        arready;
  // verilator lint_off UNUSED
  logic [9:0]  cnt_word;  // bit 0 is the half of a counter, taken from the address
  // verilator lint_on UNUSED
  // The next address is not taken before the answer is.
  mr_axil_r #(.AW(12)) u_read (
    .clk_i(clk), .rst_ni, .arvalid_i(arvalid_i && !rvalid_o), .arready_o(arready), .araddr_i,
    .rvalid_o, .rready_i, .rdata_o, .rresp_o,
    `MR_GET_M_ON(r_, r_)
  );
  assign arready_o  = arready && !rvalid_o;
  assign r_take     = r_done;
  assign cnt_word   = 10'(r_addr - mr_pkg::REG_COUNTERS[11:0]) >> 2;
  assign cnt_addr_o = cnt_word[5:1];

  function automatic [31:0] value(input logic [11:0] addr, input logic [47:0] counter,
                                  input logic [2:0] status, input logic [63:0] run_addr,
                                  input logic [31:0] first_error, input logic [63:0] err_addr,
                                  input logic [9:0] misc);
    unique case (addr)
      mr_pkg::REG_MAGIC[11:0]:      value = mr_pkg::MAGIC_REG;
      mr_pkg::REG_VERSION[11:0]:    value = {mr_pkg::VERSION_MAJOR[15:0],
                                             mr_pkg::VERSION_MINOR[15:0]};
      mr_pkg::REG_GEOMETRY[11:0]:   value = {16'(T), 8'(R), 8'(N)};
      mr_pkg::REG_WORDS[11:0]:      value = {16'(QKV_WORDS), 16'(ACT_WORDS)};
      mr_pkg::REG_ROWS[11:0]:       value = {16'(ROT_MAX), 16'(D_MAX)};
      mr_pkg::REG_SCORES[11:0]:     value = 32'(SCORES);
      mr_pkg::REG_RING[11:0]:       value = {16'(CTX_MAX), 16'(RING)};
      mr_pkg::REG_FORMATS[11:0]:    value = (T > 1 ? 32'd7 : 32'd3) |
          (TRAIN != 0 ? mr_pkg::HAS_TRAINING : 32'd0);
      mr_pkg::REG_CLOCK_KHZ[11:0]:  value = 32'(CLOCK_KHZ);
      mr_pkg::REG_ATTENTION[11:0]:  value = {8'(HP_MAX / 64), 8'(HEADS_MAX), 16'(W_MAX)};
      mr_pkg::REG_STATUS[11:0]:     value = {29'd0, status};
      mr_pkg::REG_RUN_LO[11:0]:     value = run_addr[31:0];
      mr_pkg::REG_RUN_HI[11:0]:     value = run_addr[63:32];
      mr_pkg::REG_IRQ_ENABLE[11:0]: value = {31'd0, misc[0]};
      mr_pkg::REG_IRQ_STATUS[11:0]: value = {31'd0, misc[1]};
      mr_pkg::REG_STICKY[11:0]:     value = {30'd0, misc[3:2]};
      mr_pkg::REG_WATCHDOG[11:0]:   value = {26'd0, misc[9:4]};
      mr_pkg::REG_ERROR[11:0]:      value = first_error;
      mr_pkg::REG_ERROR_LO[11:0]:   value = err_addr[31:0];
      mr_pkg::REG_ERROR_HI[11:0]:   value = err_addr[63:32];
      default: value = addr < mr_pkg::REG_COUNTERS[11:0] ? 32'd0 :
                       addr[2] ? {16'd0, counter[47:32]} : counter[31:0];
    endcase
  endfunction

  always_ff @(posedge clk) begin
    r_done <= rst_ni && r_valid && !r_done;
    if (r_done) begin
      r_data <= value(r_addr, cnt_data_i, {error_i, done_i, busy_i}, run_addr_o,
                      {err_index_i, err_unit_i, err_code_i}, err_addr_i,
                      {watchdog_o, sticky_i, irq_status_q, irq_enable_q});
    end
  end

  // A run is not started again, and an address stands until its word is there.
  `MR_ASSERT(start, !start_o || !busy_i)
  `MR_ASSERT_STABLE(read, r_valid, r_done, r_addr)

endmodule
