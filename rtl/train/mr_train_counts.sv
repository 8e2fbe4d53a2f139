// SPDX-License-Identifier: Apache-2.0
// What the counters of training count (docs/inside/counters.md), as strobes a cycle behind what
// they tell.
//
// Ports
//   train_i   the run is one of training
//   vec_, wr_ vector and writer queue: a command is issued (its opcode), the queue's unit works
//   gr_in_i   a GRAD is in the array; blocks_i: what the array has multiplied in this cycle;
//             gr_valid_i, gr_ready_i: its sums
//   job_      read jobs of channel 0, which those of the others equal: taken, of the stash, beats
//             of all channels
//   put_i     a beat of TURNED, TILES or COPY goes into the writer
//   cnt_      the strobes; cycles: GRAD without a block, GRAD waits for the band before, LOAD_ACT,
//             a beat put, MOVE_ROWS, FETCH_ROWS or SAVE_ROWS
`include "mr_bundles.svh"
module mr_train_counts (
  input  logic        clk_i,
  input  logic        rst_ni,
  input  logic        train_i,

  input  logic        vec_issue_i,
  input  logic [7:0]  vec_op_i,
  input  logic        vec_busy_i,
  input  logic        wr_issue_i,
  input  logic [7:0]  wr_op_i,
  input  logic        wr_busy_i,

  input  logic        gr_in_i,
  input  logic [15:0] blocks_i,
  input  logic        gr_valid_i,
  input  logic        gr_ready_i,

  input  logic        job_take_i,
  input  logic        job_stash_i,
  input  logic [31:0] job_beats_i,
  input  logic        put_i,

  `MR_TRAIN_CNT_M(cnt_)
);

  // The command that was issued last is the one in work: of these queues one is inside at a time.
  logic [7:0] vec_q, wr_q;
  logic       vec_on_q, wr_on_q;
  always_ff @(posedge clk_i) begin
    if (vec_issue_i) vec_q <= vec_op_i;
    if (wr_issue_i) wr_q <= wr_op_i;
    vec_on_q <= rst_ni && train_i && vec_busy_i;
    wr_on_q  <= rst_ni && train_i && wr_busy_i;
  end

  always_ff @(posedge clk_i) begin
    cnt_stash_beats_o <= rst_ni && job_take_i && job_stash_i ? job_beats_i : '0;
    cnt_grad_blocks_o <= rst_ni && gr_in_i ? blocks_i : '0;
    cnt_cycles_o      <= {
      (vec_on_q && vec_q == mr_pkg::OP_FETCH_ROWS[7:0]) ||
      (wr_on_q && wr_q == mr_pkg::OP_SAVE_ROWS[7:0]),
      vec_on_q && vec_q == mr_pkg::OP_MOVE_ROWS[7:0],
      rst_ni && put_i,
      vec_on_q && vec_q == mr_pkg::OP_LOAD_ACT[7:0],
      rst_ni && gr_in_i && gr_valid_i && !gr_ready_i,
      rst_ni && gr_in_i && blocks_i == '0
    };
  end

endmodule
