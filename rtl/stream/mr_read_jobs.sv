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
// busy_o: a job is inside.
module mr_read_jobs #(
  parameter int BURST = 64
) (
  input  logic        clk_i,
  input  logic        rst_ni,
  input  logic        stop_i,
  input  logic        clear_i,
  input  logic [63:0] base_i,
  input  logic [31:0] limit_i,
  input  logic        job_valid_i,
  output logic        job_ready_o,
  input  logic [31:0] job_off_i,
  input  logic [31:0] job_beats_i,
  output logic        bst_valid_o,
  input  logic        bst_ready_i,
  output logic [57:0] bst_addr_o,   // in beats
  output logic [ 6:0] bst_beats_o,  // 1..BURST
  output logic        busy_o,
  output logic        err_o,
  output logic [63:0] err_addr_o
`ifdef FORMAL
  ,
  output logic [11:0] f_emit_o  // proofs: where the next burst must begin
`endif
);

  // a: address and end computed; c: cursor of the job in work; n: length of its next burst; b:
  // burst.
  logic a_valid_q, c_valid_q, n_valid_q, b_valid_q;
  logic [57:0] a_addr_q, c_addr_q, b_addr_q;
  logic [32:0] a_end_q;
  logic [31:0] a_beats_q, c_rem_q;
  logic [6:0] n_len_q, b_len_q;
  logic n_last_q;

  logic a_bad, a_move, n_move, c_done;
  assign a_bad  = (a_end_q > {1'b0, limit_i}) || (a_beats_q == '0);
  assign n_move = n_valid_q && (!b_valid_q || bst_ready_i);
  assign c_done = n_move && n_last_q;
  assign a_move = a_valid_q && (!c_valid_q || c_done);

  assign job_ready_o = !a_valid_q && !stop_i && !clear_i;
  assign bst_valid_o = b_valid_q && !stop_i;
  assign bst_addr_o  = b_addr_q;
  assign bst_beats_o = b_len_q;
  assign busy_o      = a_valid_q || c_valid_q || b_valid_q;
  assign err_o       = a_move && a_bad && !stop_i;
  assign err_addr_o  = {a_addr_q, 6'b0};

  // A 4 KiB page is 64 beats, so a burst that ends with its page never crosses one.
  logic [6:0] room, most, left;
  assign room = 7'd64 - {1'b0, c_addr_q[5:0]};
  assign most = (room < 7'(BURST)) ? room : 7'(BURST);
  assign left = (c_rem_q[31:6] != '0) ? 7'd64 : {1'b0, c_rem_q[5:0]};

  always_ff @(posedge clk_i) begin
    if (!rst_ni || clear_i) begin
      a_valid_q <= 1'b0;
      c_valid_q <= 1'b0;
      n_valid_q <= 1'b0;
      b_valid_q <= 1'b0;
    end else if (!stop_i) begin
      if (job_valid_i && job_ready_o) a_valid_q <= 1'b1;
      else if (a_move) a_valid_q <= 1'b0;

      if (a_move) c_valid_q <= !a_bad;
      else if (c_done) c_valid_q <= 1'b0;

      if (n_valid_q) n_valid_q <= !n_move;
      else n_valid_q <= c_valid_q;

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
    if (a_move) begin
      c_addr_q <= a_addr_q;
      c_rem_q  <= a_beats_q;
    end else if (n_move) begin
      c_addr_q <= c_addr_q + {51'b0, n_len_q};
      c_rem_q  <= c_rem_q - {25'b0, n_len_q};
    end
    if (c_valid_q && !n_valid_q) begin
      n_len_q  <= (left <= most) ? left : most;
      // left is capped at 64: a remainder of exactly 64 is told from a longer one here.
      n_last_q <= (left <= most) && ((c_rem_q[31:6] == '0) || (c_rem_q == 32'd64));
    end
    if (n_move) begin
      b_addr_q <= c_addr_q;
      b_len_q  <= n_len_q;
    end
  end

  logic unused;
  assign unused = ^base_i[5:0];

`ifdef FORMAL
  `include "mr_read_jobs_props.svh"
`endif

endmodule
