// SPDX-License-Identifier: Apache-2.0
// Command rings of millrace_pcie: their registers, and which of them has work
// (docs/board/pcie-function.md).
//
// Parameters
//   QUEUES  rings, a power of two, 2..64
//
// Register port: we_i writes wdata_i to word addr_i; rdata_o is the word at addr_i, combinational.
// A ring's addresses, size and vector may only be written while it is neither enabled nor busy;
// later writes are ignored. Enabling starts at entry 0. Indices count entries modulo 2^16. A
// doorbell further ahead than the ring's size is a fault: the ring stops.
//
// Executor port: with job_any_o, job_take_i makes the ring whose turn it is the one in work, whose
// state is on the job_ ports, until job_done_i: one entry further, and with job_fault_i != 0 the
// ring stops.
// job_enabled_o falls when the host disables the ring in work. job_owner_o: what the engine's
// memories hold is this ring's: job_own_i says so, until another ring's job_own_i or its enabling.
// irq_o: pulse on the ring's vector with job_irq_i, and with each fault. busy_o stays high from a
// doorbell to the end of the last entry.
`include "mr_assert.svh"
`include "mr_bundles.svh"
module mr_pcie_queues #(
  parameter int QUEUES = 16
) (
  input  logic                      clk_i,
  input  logic                      rst_ni,

  `MR_PCI_Q_S(, $clog2(QUEUES)),

  `MR_PCI_JOB_M(job_, $clog2(QUEUES)),
  output logic                      job_busy_o,

  output logic [QUEUES-1:0]         irq_o,
  output logic                      busy_o
);

  localparam int QW = $clog2(QUEUES);

  logic [57:0] ring_q [0:QUEUES-1];
  logic [55:0] cpl_q  [0:QUEUES-1];
  logic [3:0]  size_q [0:QUEUES-1];
  logic [15:0] tail_q [0:QUEUES-1];
  logic [31:0] head_q [0:QUEUES-1];
  logic [7:0]  fault_q [0:QUEUES-1];
  logic [QW-1:0] vector_q [0:QUEUES-1];
  logic [QUEUES-1:0] enabled_q, work_q;
  logic        look_q;  // work_q follows in the next cycle
  logic        owned_q;
  logic [QW-1:0] owner_q;

  logic [QW-1:0] at;
  logic [3:0]    word;
  logic          idle, bad_bell;
  logic [15:0]   ahead, most;
  assign at       = addr_i[QW+3:4];
  assign word     = addr_i[3:0];
  assign idle     = !enabled_q[at] && !(job_busy_o && job_queue_o == at);
  assign ahead    = wdata_i[15:0] - head_q[at][15:0];
  // The host may have seen the completion of the entry in work, whose place is then free.
  assign most     = (16'd1 << size_q[at]) + 16'(job_busy_o && job_queue_o == at);
  assign bad_bell = we_i && word == mr_pkg::PCIE_Q_DOORBELL[5:2] && enabled_q[at] && ahead > most;

  logic [QW-1:0] next;
  // The ring after the last one taken comes first.
  always_comb begin
    next      = job_queue_o;
    job_any_o = 1'b0;
    for (int i = QUEUES - 1; i >= 0; i--) begin
      if (work_q[i] && QW'(i) <= job_queue_o) begin
        next      = QW'(i);
        job_any_o = 1'b1;
      end
    end
    for (int i = QUEUES - 1; i >= 0; i--) begin
      if (work_q[i] && QW'(i) > job_queue_o) begin
        next      = QW'(i);
        job_any_o = 1'b1;
      end
    end
  end

  logic [15:0] place;
  assign place         = head_q[job_queue_o][15:0] & ((16'd1 << size_q[job_queue_o]) - 16'd1);
  assign job_entry_o   = {ring_q[job_queue_o], 6'd0} + {42'd0, place, 6'd0};
  assign job_cpl_o     = {cpl_q[job_queue_o], 8'd0} + {40'd0, place, 8'd0};
  assign job_seq_o     = head_q[job_queue_o] + 32'd1;
  assign job_enabled_o = enabled_q[job_queue_o];
  assign job_owner_o   = owned_q && owner_q == job_queue_o;
  assign busy_o        = job_busy_o || job_any_o || look_q;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      enabled_q   <= '0;
      work_q      <= '0;
      job_busy_o  <= 1'b0;
      job_queue_o <= '0;
      irq_o       <= '0;
      look_q      <= 1'b0;
      owned_q     <= 1'b0;
    end else begin
      irq_o  <= '0;
      look_q <= job_done_i || we_i;
      for (int i = 0; i < QUEUES; i++) begin
        work_q[i] <= enabled_q[i] && tail_q[i] != head_q[i][15:0];
      end
      if (job_take_i) begin
        job_busy_o  <= 1'b1;
        job_queue_o <= next;
      end
      if (job_done_i) begin
        job_busy_o          <= 1'b0;
        work_q[job_queue_o] <= 1'b0;  // looked at again in the next cycle
        if (job_fault_i != '0) enabled_q[job_queue_o] <= 1'b0;
        if (job_irq_i || job_fault_i != '0) irq_o[vector_q[job_queue_o]] <= 1'b1;
      end
      if (we_i && word == mr_pkg::PCIE_Q_CTRL[5:2] && (idle || !wdata_i[0])) begin
        enabled_q[at] <= wdata_i[0];
        work_q[at]    <= 1'b0;
        if (wdata_i[0] && owner_q == at) owned_q <= 1'b0;  // it may be somebody else's now
      end
      if (job_own_i) owned_q <= 1'b1;
      if (bad_bell) begin
        enabled_q[at] <= 1'b0;
        work_q[at]    <= 1'b0;
        irq_o[vector_q[at]] <= 1'b1;
      end
    end
  end

  always_ff @(posedge clk_i) begin
    if (job_own_i) owner_q <= job_queue_o;
    if (job_done_i) begin
      head_q[job_queue_o] <= head_q[job_queue_o] + 32'd1;
      if (job_fault_i != '0) fault_q[job_queue_o] <= job_fault_i;
    end
    if (we_i) begin
      unique case (word)
        mr_pkg::PCIE_Q_RING_LO[5:2]: if (idle) ring_q[at][25:0] <= wdata_i[31:6];
        mr_pkg::PCIE_Q_RING_HI[5:2]: if (idle) ring_q[at][57:26] <= wdata_i;
        mr_pkg::PCIE_Q_CPL_LO[5:2]:  if (idle) cpl_q[at][23:0] <= wdata_i[31:8];
        mr_pkg::PCIE_Q_CPL_HI[5:2]:  if (idle) cpl_q[at][55:24] <= wdata_i;
        mr_pkg::PCIE_Q_SIZE[5:2]:    if (idle) size_q[at] <= wdata_i[3:0];
        mr_pkg::PCIE_Q_VECTOR[5:2]:  if (idle) vector_q[at] <= wdata_i[QW-1:0];
        mr_pkg::PCIE_Q_CTRL[5:2]: begin
          if (idle && wdata_i[0]) begin
            head_q[at]  <= '0;
            tail_q[at]  <= '0;
            fault_q[at] <= '0;
          end
        end
        mr_pkg::PCIE_Q_DOORBELL[5:2]: begin
          if (bad_bell) fault_q[at] <= mr_pkg::PCIE_E_DOORBELL[7:0];
          else if (enabled_q[at]) tail_q[at] <= wdata_i[15:0];
        end
        default: ;
      endcase
    end
  end

  always_comb begin
    unique case (word)
      mr_pkg::PCIE_Q_RING_LO[5:2]:  rdata_o = {ring_q[at][25:0], 6'd0};
      mr_pkg::PCIE_Q_RING_HI[5:2]:  rdata_o = ring_q[at][57:26];
      mr_pkg::PCIE_Q_CPL_LO[5:2]:   rdata_o = {cpl_q[at][23:0], 8'd0};
      mr_pkg::PCIE_Q_CPL_HI[5:2]:   rdata_o = cpl_q[at][55:24];
      mr_pkg::PCIE_Q_SIZE[5:2]:     rdata_o = {28'd0, size_q[at]};
      mr_pkg::PCIE_Q_VECTOR[5:2]:   rdata_o = 32'(vector_q[at]);
      mr_pkg::PCIE_Q_DOORBELL[5:2]: rdata_o = {16'd0, tail_q[at]};
      mr_pkg::PCIE_Q_HEAD[5:2]:     rdata_o = head_q[at];
      mr_pkg::PCIE_Q_CTRL[5:2]:     rdata_o = {31'd0, enabled_q[at]};
      mr_pkg::PCIE_Q_STATUS[5:2]:   rdata_o = {16'd0, fault_q[at], 6'd0,
                                               job_busy_o && job_queue_o == at, enabled_q[at]};
      default:                      rdata_o = '0;
    endcase
  end

  `MR_ASSERT(take, !job_take_i || (job_any_o && !job_busy_o))
  `MR_ASSERT(done, !(job_done_i || job_own_i) || job_busy_o)

endmodule
