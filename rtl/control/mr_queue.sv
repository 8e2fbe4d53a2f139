// SPDX-License-Identifier: Apache-2.0
// One command queue: holds commands until the semaphores that they wait for are there and the unit
// takes them, and signals when the unit has finished.
//
// Parameters
//   DEPTH     commands waiting
//   INFLIGHT  room for commands that the unit has taken and not finished (a power of two)
//   LIMIT     most of them at a time: 1 where commands of a queue go to different units, which
//             would overtake each other
//
// Timing: in_valid_i/in_ready_o and issue_valid_o/issue_ready_i are valid/ready; nobody else takes
// the semaphores that this queue waits for. In the cycle behind a transfer issue_ready_i is low:
// issue_valid_o may be high there for semaphores that are taken. Else only a transfer ends it.
// take_o is the mask of semaphores consumed in this cycle. done_i is a pulse of the unit, in the
// order of issue; in the next cycle signal_o carries the command's mask and
// done_valid_o/done_index_o name it.
`include "mr_assert.svh"
module mr_queue #(
  parameter int DEPTH = 16,
  parameter int INFLIGHT = 8,
  parameter int LIMIT = INFLIGHT
) (
  input  logic         clk_i,
  input  logic         rst_ni,

  input  logic         in_valid_i,
  output logic         in_ready_o,
  input  logic [511:0] in_cmd_i,
  input  logic [15:0]  in_index_i,

  input  logic [15:0]  sem_i,      // semaphores above zero
  output logic [15:0]  take_o,
  output logic [15:0]  signal_o,

  output logic         issue_valid_o,
  input  logic         issue_ready_i,
  output logic [511:0] cmd_o,
  output logic [15:0]  index_o,
  input  logic         done_i,

  output logic         waiting_o,  // a command has not been issued
  output logic         busy_o,     // the unit has a command
  output logic [15:0]  oldest_o,   // index of the oldest command in the unit, for error reports
  output logic         done_valid_o,
  output logic [15:0]  done_index_o
);

  localparam int IW = $clog2(INFLIGHT);

  logic         head_valid, fire, room;
  logic [$clog2(DEPTH+1)-1:0] count;
  logic [527:0] head;
  mr_fifo #(.W(528), .DEPTH(DEPTH)) u_fifo (
    .clk_i, .rst_ni, .clear_i(1'b0),
    .in_valid_i, .in_ready_o, .in_data_i({in_index_i, in_cmd_i}),
    .out_valid_o(head_valid), .out_ready_i(fire), .out_data_o(head), .count_o(count)
  );

  assign waiting_o = count != '0;

  logic [15:0] wait_mask;
  assign wait_mask     = head[mr_pkg::CMD_WAIT_LSB +: 16];
  assign room          = count_q < (IW + 1)'(LIMIT);
  assign issue_valid_o = head_valid && room && (wait_mask & ~sem_i) == '0;
  assign fire          = issue_valid_o && issue_ready_i;
  assign take_o        = fire ? wait_mask : '0;
  assign cmd_o         = head[511:0];
  assign index_o       = head[527:512];

  // {index, signal mask} of the commands in the unit
  logic [31:0] mem[INFLIGHT];
  logic [IW-1:0] wptr_q, rptr_q;
  logic [IW:0]   count_q;
  assign busy_o   = count_q != '0;
  assign oldest_o = busy_o ? mem[rptr_q][31:16] : index_o;

  always_ff @(posedge clk_i) begin
    if (fire) mem[wptr_q] <= {index_o, head[mr_pkg::CMD_SIGNAL_LSB +: 16]};
    if (!rst_ni) begin
      wptr_q       <= '0;
      rptr_q       <= '0;
      count_q      <= '0;
      signal_o     <= '0;
      done_valid_o <= 1'b0;
    end else begin
      if (fire) wptr_q <= wptr_q + 1'b1;
      if (done_i) rptr_q <= rptr_q + 1'b1;
      if (fire && !done_i) count_q <= count_q + 1'b1;
      if (!fire && done_i) count_q <= count_q - 1'b1;
      signal_o     <= done_i ? mem[rptr_q][15:0] : '0;
      done_valid_o <= done_i;
    end
    if (done_i) done_index_o <= mem[rptr_q][31:16];
  end

  `MR_ASSERT_STABLE(issue, issue_valid_o && !busy_o, issue_ready_i, index_o)
  `MR_ASSERT_COUNT(count, count_q, fire, done_i, LIMIT)

`ifdef MILLRACE_VIEW
  // For timelines (sim/verilator/observer.h): what finishes and what is issued in this cycle, and
  // what the command at the head waits for.
  logic [63:0] view /*verilator public_flat_rd*/;
  assign view = {mem[rptr_q][31:16], index_o, 12'd0, done_i, fire, room, head_valid,
                 wait_mask & ~sem_i};
`endif

endmodule
