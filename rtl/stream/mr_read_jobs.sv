// SPDX-License-Identifier: Apache-2.0
// Jobs {offset, beats} of one source of a reader -> bursts {address, beats} inside the source's
// window.
//
// Parameters
//   BURST  longest burst in beats, a power of two, 1..64
//
// Timing: job_* is valid/ready. bst_* is valid/ready as well: a burst at most every second cycle,
// also from one job to the next. A job that does not lie inside the window (or has no beats) gives
// a pulse on err_o with its byte address and no burst; stop_i must follow from it. stop_i: takes no
// job and makes no burst (level; a burst that is offered is withdrawn). clear_i: drops everything
// (level).
// busy_o: a job is inside. bad_o: one that will give err_o is inside, err_addr_o is its address;
// known earlier in the cycle than err_o.
`include "mr_assert.svh"
`include "mr_bundles.svh"
module mr_read_jobs #(
  parameter int BURST = 64
) (
  input  logic        clk_i,
  input  logic        rst_ni,
  input  logic        stop_i,
  input  logic        clear_i,
  `MR_RJOB_S(),
  output logic        bst_valid_o,
  input  logic        bst_ready_i,
  output logic [57:0] bst_addr_o,   // in beats
  output logic [ 6:0] bst_beats_o,  // 1..BURST
  output logic        busy_o,
  output logic        err_o,
  output logic        bad_o,
  output logic [63:0] err_addr_o
`ifdef FORMAL
  ,
  output logic [11:0] f_emit_o  // proofs: where the next burst must begin
`endif
);

  // a: address and end computed; u_cut: the job in work; b: burst.
  logic        a_valid_q, b_valid_q;
  logic [57:0] a_addr_q, b_addr_q;
  logic [32:0] a_end_q;
  logic [31:0] a_beats_q;
  logic [6:0]  b_len_q;

  logic        a_bad, a_move, c_busy, n_valid, n_move, n_last;
  logic [57:0] c_addr;
  logic [6:0]  n_len;
  assign a_bad  = (a_end_q > {1'b0, limit_i}) || (a_beats_q == '0);
  assign n_move = n_valid && (!b_valid_q || bst_ready_i);
  // One that lies inside follows at once; one that does not waits until the cutter is empty, so
  // that an error does not depend on bst_ready_i.
  assign a_move = a_valid_q && (!c_busy || (n_move && n_last && !a_bad));
  assign err_o  = a_valid_q && a_bad && !c_busy && !stop_i;

  assign job_ready_o = !a_valid_q && !stop_i && !clear_i;
  assign bst_valid_o = b_valid_q && !stop_i;
  assign bst_addr_o  = b_addr_q;
  assign bst_beats_o = b_len_q;
  assign busy_o      = a_valid_q || c_busy || b_valid_q;
  assign bad_o       = a_valid_q && a_bad;
  assign err_addr_o  = {a_addr_q, 6'b0};

`ifdef FORMAL
  logic [31:0] c_rem;
`endif
  mr_cut_4k #(.PAGE_LOG2(6), .ADDR(58), .LEFT(32), .MOST(BURST), .STAGE(1)) u_cut (
    .clk_i, .rst_ni, .clear_i, .load_i(a_move && !a_bad && !stop_i && !clear_i), .addr_i(a_addr_q),
    .left_i(a_beats_q), .busy_o(c_busy), .valid_o(n_valid), .next_i(n_move && !stop_i),
    .addr_o(c_addr), .n_o(n_len), .last_o(n_last)
`ifdef FORMAL
    , .f_left_o(c_rem)
`endif
  );

  always_ff @(posedge clk_i) begin
    if (!rst_ni || clear_i) begin
      a_valid_q <= 1'b0;
      b_valid_q <= 1'b0;
    end else if (!stop_i) begin
      if (job_valid_i && job_ready_o) a_valid_q <= 1'b1;
      else if (a_move) a_valid_q <= 1'b0;

      if (n_move) b_valid_q <= 1'b1;
      else if (bst_ready_i) b_valid_q <= 1'b0;
    end
  end

  always_ff @(posedge clk_i) begin
    if (job_valid_i && job_ready_o) begin
      a_addr_q  <= base_i[63:6] + {26'b0, job_off_i};
      a_end_q   <= {1'b0, job_off_i} + {1'b0, job_beats_i};
      a_beats_q <= job_beats_i;
    end
    if (n_move) begin
      b_addr_q <= c_addr;
      b_len_q  <= n_len;
    end
  end

  logic unused;
  assign unused = ^base_i[5:0];

`ifndef FORMAL  // proofs of this unit alone have any stop_i
  `MR_ASSERT_STABLE(stop, err_o || stop_i, clear_i, 1'b1)
`endif
  // One that is withdrawn is kept until it is dropped.
  `MR_ASSERT_STABLE(burst, b_valid_q, bst_ready_i || clear_i, {b_addr_q, b_len_q})

`ifdef FORMAL
  `include "mr_read_jobs_props.svh"
`endif

endmodule
