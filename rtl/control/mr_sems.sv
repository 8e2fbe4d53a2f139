// SPDX-License-Identifier: Apache-2.0
// The 16 counting semaphores. All adds and takes of a cycle count; clear_i sets all to
// zero.
//
// Parameters
//   QUEUES  command queues, packed in take_i and signal_i (16 bits each)
//
// take_i: zero in cycles without a command that is issued.
// nonzero_o is registered state. An add in cycle t can be taken from t+1 on. A take in cycle t is
// seen from t+2 on, because take_i comes late, behind what the queues decide from nonzero_o. That
// is early enough: one queue at most waits for a semaphore (mr_legal), and no queue issues in two
// cycles in a row.
// In program order a count is at most 15 (mr_legal). Here it may be ahead by the commands of the
// one queue that waits for it which have been dealt out and have not taken theirs: fewer than 48.
`include "mr_assert.svh"
module mr_sems #(
  parameter int QUEUES = 5
) (
  input  logic                 clk_i,
  input  logic                 rst_ni,
  input  logic                 clear_i,
  input  logic [QUEUES*16-1:0] take_i,
  input  logic [QUEUES*16-1:0] signal_i,
  output logic [15:0]          nonzero_o
);

  logic [5:0]           count_q[16];
  logic [QUEUES*16-1:0] take_q;
  logic                 active;
  assign active = (take_q != '0) || (signal_i != '0);
  always_ff @(posedge clk_i) begin
    if (!rst_ni || clear_i) take_q <= '0;
    else take_q <= take_i;
  end

  `MR_ASSERT(gap, (take_q & take_i) == '0)

  // How many bits are set, without carry chains: each bit is a function of a few inputs.
  function automatic [2:0] ones(input logic [QUEUES-1:0] x);
    logic c0, c1;
    begin
      ones = '0;
      for (int q = 0; q < QUEUES; q++) begin
        c0   = ones[0] & x[q];
        c1   = ones[1] & c0;
        ones = ones ^ {c1, c0, x[q]};
      end
    end
  endfunction

  // {above zero, count}. Called where it is needed only: simulation computes nets in every cycle.
  function automatic [6:0] counted(input logic [5:0] count, input logic [QUEUES-1:0] up,
                                   input logic [QUEUES-1:0] down);
    logic [5:0] next;
    begin
      next    = count + 6'(ones(up)) - 6'(ones(down));
      counted = {next != '0, next};
    end
  endfunction

  genvar g, h;
  generate
    for (g = 0; g < 16; g = g + 1) begin : gen_sem
      logic [QUEUES-1:0] up, down;
      for (h = 0; h < QUEUES; h = h + 1) begin : gen_queue
        assign up[h]   = signal_i[16*h+g];
        assign down[h] = take_q[16*h+g];
      end
      logic nonzero_q;
      assign nonzero_o[g] = nonzero_q;

      always_ff @(posedge clk_i) begin
        if (!rst_ni || clear_i) {nonzero_q, count_q[g]} <= '0;
        else if (active) {nonzero_q, count_q[g]} <= counted(count_q[g], up, down);
      end
      `MR_ASSERT_COUNT(count, count_q[g], ones(up), ones(down), 15 + 47)
      `MR_ASSERT_ONEHOT0(taker, down)
    end
  endgenerate

endmodule
