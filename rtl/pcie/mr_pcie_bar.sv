// SPDX-License-Identifier: Apache-2.0
// BAR 0 of millrace_pcie: identity, capability list, the rings' registers, and a window to the
// engine's registers, which it shares with the executor (docs/board/pcie-function.md).
//
// Parameters: N channels; QUEUES rings; MEM_LOG2 bytes a channel, log2.
//
// AXI4-Lite slave, one access at a time; responses are always OKAY, unknown addresses read zero and
// ignore writes, as do words with a partial strobe.
// q_: register port of mr_pcie_queues. x_: the executor's accesses to the engine: x_valid_i with
// its payload until x_done_o (pulse; x_rdata_o with it). c_: AXI4-Lite master to the engine.
// scrub_: the register SCRUB. idle_o: nothing is asked for or under way.
`include "mr_assert.svh"
`include "mr_bundles.svh"
module mr_pcie_bar #(
  parameter int N = 1,
  parameter int QUEUES = 16,
  parameter int MEM_LOG2 = 30
) (
  input  logic                      clk_i,
  input  logic                      rst_ni,
  output logic                      idle_o,

  `MR_AXIL_W_S(s_, 16),
  `MR_AXIL_R_S(s_, 16),

  output logic                      scrub_en_o,
  output logic [57:0]               scrub_addr_o,  // in units of 64 bytes

  `MR_PCI_Q_M(q_, $clog2(QUEUES)),
  input  logic                      busy_i,
  input  logic [$clog2(QUEUES)-1:0] queue_i,

  `MR_PCI_X_S(x_),

  output logic                      c_awvalid_o,
  input  logic                      c_awready_i,
  output logic                      c_wvalid_o,
  input  logic                      c_wready_i,
  output logic [11:0]               c_addr_o,
  output logic [31:0]               c_wdata_o,
  input  logic                      c_bvalid_i,
  output logic                      c_arvalid_o,
  input  logic                      c_arready_i,
  input  logic                      c_rvalid_i,
  input  logic [31:0]               c_rdata_i
);

  localparam int QW = $clog2(QUEUES);

  // ---- one access: a write when its address and data are there, else a read ---------------------
  // The registers are words.
  // verilator lint_off UNUSED
  `MR_PUT_W(w_, 16);
  `MR_GET_W(r_, 16);
  // verilator lint_on UNUSED
  logic        acc_q, write_q, whole_q;
  logic [15:0] addr_q;
  logic [31:0] data_q;  // of the access in work
  logic        begin_w, begin_r, engine, rings, local_done, done;
  mr_axil_w #(.AW(16)) u_write (.clk_i, .rst_ni, `MR_AXIL_W_S_TO(, s_), `MR_PUT_M_ON(w_, w_));
  mr_axil_r #(.AW(16)) u_read (.clk_i, .rst_ni, `MR_AXIL_R_S_TO(, s_), `MR_GET_M_ON(r_, r_));
  assign begin_w     = !acc_q && w_valid;
  assign begin_r     = !acc_q && !begin_w && r_valid;
  assign w_take      = begin_w;
  assign r_take      = begin_r;
  assign w_done      = done && write_q;
  assign r_done      = done && !write_q;
  assign engine      = addr_q[15:12] == mr_pkg::PCIE_ENGINE[15:12];
  assign rings       = addr_q >= mr_pkg::PCIE_QUEUES[15:0] &&
                       addr_q < mr_pkg::PCIE_QUEUES[15:0] + 16'(QUEUES * 64);
  logic skip;
  assign skip        = write_q && !whole_q;
  assign idle_o      = !(s_awvalid_i || s_wvalid_i || s_arvalid_i || !s_awready_o || !s_wready_o ||
                         !s_arready_o || acc_q || s_bvalid_o || s_rvalid_o || x_valid_i ||
                         c_state_q != 2'd0);
  assign local_done  = acc_q && (!engine || skip);
  assign q_we_o      = local_done && rings && write_q && whole_q;
  assign q_addr_o    = addr_q[QW+5:2];
  assign q_wdata_o   = data_q;

  // ---- the engine's port: the host's access or the executor's -----------------------------------
  logic [1:0]  c_state_q;  // 0 free, 1 address, 2 response
  logic        host_q, cw_q, c_done;
  logic        aw_wait_q, w_wait_q, ar_wait_q;
  assign c_done      = c_state_q == 2'd2 && (cw_q ? c_bvalid_i : c_rvalid_i);
  assign x_done_o    = c_done && !host_q;
  assign x_rdata_o   = c_rdata_i;
  assign c_awvalid_o = aw_wait_q;
  assign c_wvalid_o  = w_wait_q;
  assign c_arvalid_o = ar_wait_q;
  assign done        = local_done || (c_done && host_q);
  logic c_host, c_go, c_write;
  assign c_host      = acc_q && engine && !skip;
  assign c_go        = c_state_q == 2'd0 && (c_host || x_valid_i);
  assign c_write     = c_host ? write_q : x_write_i;
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      c_state_q <= 2'd0;
      aw_wait_q <= 1'b0;
      w_wait_q  <= 1'b0;
      ar_wait_q <= 1'b0;
    end else begin
      if (c_go) begin
        c_state_q <= 2'd2;
        aw_wait_q <= c_write;
        w_wait_q  <= c_write;
        ar_wait_q <= !c_write;
      end else begin
        if (c_awready_i) aw_wait_q <= 1'b0;
        if (c_wready_i) w_wait_q <= 1'b0;
        if (c_arready_i) ar_wait_q <= 1'b0;
        // The cycle between two accesses lets the executor take its request back.
        if (c_done) c_state_q <= 2'd1;
        if (c_state_q == 2'd1) c_state_q <= 2'd0;
      end
    end
    if (c_go) begin
      host_q    <= c_host;
      cw_q      <= c_write;
      c_addr_o  <= c_host ? addr_q[11:0] : x_addr_i;
      c_wdata_o <= c_host ? data_q : x_wdata_i;
    end
  end

  // ---- identity and capabilities ----------------------------------------------------------------
  localparam logic [31:0] CAPS = mr_pkg::PCIE_CAPS;
  function automatic [31:0] value(input logic [15:0] addr, input logic [31:0] scratch,
                                  input logic [31:0] status, input logic [63:0] scrub);
    unique case (addr)
      mr_pkg::PCIE_REG_MAGIC[15:0]:   value = mr_pkg::PCIE_MAGIC;
      mr_pkg::PCIE_REG_VERSION[15:0]: value = {mr_pkg::PCIE_VERSION_MAJOR[15:0],
                                               mr_pkg::PCIE_VERSION_MINOR[15:0]};
      mr_pkg::PCIE_REG_CAPS[15:0]:    value = CAPS;
      mr_pkg::PCIE_REG_SCRATCH[15:0]: value = scratch;
      mr_pkg::PCIE_REG_STATUS[15:0]:  value = status;
      mr_pkg::PCIE_REG_SCRUB_LO[15:0]: value = scrub[31:0];
      mr_pkg::PCIE_REG_SCRUB_HI[15:0]: value = scrub[63:32];
      CAPS[15:0]:           value = {CAPS[15:0] + 16'h10, mr_pkg::PCIE_CAP_ENGINE[15:0]};
      CAPS[15:0] + 16'h04:  value = mr_pkg::PCIE_ENGINE;
      CAPS[15:0] + 16'h08:  value = 32'h1000;
      CAPS[15:0] + 16'h10:  value = {CAPS[15:0] + 16'h20, mr_pkg::PCIE_CAP_QUEUES[15:0]};
      CAPS[15:0] + 16'h14:  value = mr_pkg::PCIE_QUEUES;
      CAPS[15:0] + 16'h18:  value = 32'(QUEUES);
      CAPS[15:0] + 16'h1C:  value = 32'd12;  // log2 of the most entries
      CAPS[15:0] + 16'h20:  value = {CAPS[15:0] + 16'h30, mr_pkg::PCIE_CAP_MEMORY[15:0]};
      CAPS[15:0] + 16'h28:  value = 32'(N);
      CAPS[15:0] + 16'h2C:  value = 32'(MEM_LOG2);
      CAPS[15:0] + 16'h30:  value = {CAPS[15:0] + 16'h40, mr_pkg::PCIE_CAP_COPY[15:0]};
      CAPS[15:0] + 16'h38:  value = 32'd31;  // log2 of the most bytes of an entry
      CAPS[15:0] + 16'h3C:  value = 32'd24;  // log2 of the most segments
      CAPS[15:0] + 16'h40:  value = {16'd0, mr_pkg::PCIE_CAP_SCRUB[15:0]};
      CAPS[15:0] + 16'h44:  value = mr_pkg::PCIE_REG_SCRUB_LO;
      default:              value = '0;
    endcase
  endfunction

  logic [31:0] scratch_q;
  logic        own_write;  // of a register of this block
  assign own_write = local_done && write_q && whole_q;
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      acc_q      <= 1'b0;
      scratch_q  <= '0;
      scrub_en_o <= 1'b0;
    end else begin
      if (begin_w || begin_r) acc_q <= 1'b1;
      else if (done) acc_q <= 1'b0;
      if (own_write && addr_q == mr_pkg::PCIE_REG_SCRATCH[15:0]) scratch_q <= data_q;
      if (own_write && addr_q == mr_pkg::PCIE_REG_SCRUB_LO[15:0]) scrub_en_o <= data_q[0];
    end
    if (own_write && addr_q == mr_pkg::PCIE_REG_SCRUB_LO[15:0]) scrub_addr_o[25:0] <= data_q[31:6];
    if (own_write && addr_q == mr_pkg::PCIE_REG_SCRUB_HI[15:0]) scrub_addr_o[57:26] <= data_q;
    if (begin_w || begin_r) begin
      addr_q  <= {begin_w ? w_addr[15:2] : r_addr[15:2], 2'd0};
      write_q <= begin_w;
      whole_q <= w_strb == 4'hF;
      data_q  <= w_data;
    end
    if (r_done) begin
      r_data <= engine ? c_rdata_i : rings ? q_rdata_i :
                value(addr_q, scratch_q, {16'd0, 8'(queue_i), 7'd0, busy_i},
                      {scrub_addr_o, 5'd0, scrub_en_o});
    end
  end

  `MR_ASSERT(state, c_state_q <= 2'd2)
  `MR_ASSERT_STABLE(x, x_valid_i, x_done_o, {x_write_i, x_addr_i, x_wdata_i})
  `MR_ASSERT_STABLE(c_aw, c_awvalid_o, c_awready_i, c_addr_o)
  `MR_ASSERT_STABLE(c_w, c_wvalid_o, c_wready_i, c_wdata_o)
  `MR_ASSERT_STABLE(c_ar, c_arvalid_o, c_arready_i, c_addr_o)

endmodule
