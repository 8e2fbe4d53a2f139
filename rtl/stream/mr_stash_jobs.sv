// SPDX-License-Identifier: Apache-2.0
// STREAM_STASH: read jobs for a part of a matrix of the stash, beside those of the weight stream in
// mr_stream_ctl.
//
// A command is looked at when it is dealt out, and waits here for its turn among the streams. Of
// each header that its columns have one beat is read, then its groups: all of them in one job
// where the part has all blocks of the matrix; otherwise a job a group, from the codes of the
// first section that is wanted to the last element. All channels read the same beats of their
// windows.
//
// Parameters
//   N      channels
//   DEPTH  commands that wait
//
// Ports
//   cmd_      the fields of a legal STREAM_STASH, and in the cycle behind them cmd_valid_i, which
//             comes from a register. Neither while busy_o. limit_i: its smallest window in beats
//   busy_o    a command is being looked at, from the cycle behind cmd_valid_i on: its verdict is
//             known some cycles later, by a pulse.
//             good_o: it waits for its turn; bad_o: the matrix does not end inside, and it is
//             forgotten. off_o is where it begins
//   go_i      pulse, with next_o and no jobs left: the turn of the oldest one that waits. Its jobs
//             follow, job_valid_o/job_ready_i, those of a header two cycles after the one before;
//             last_o with the last one
//   next_o    one waits; waits_o: the oldest one has semaphores to wait for, so that its turn
//             begins when it is issued
`include "mr_assert.svh"
module mr_stash_jobs #(
  parameter int N = 1,
  parameter int DEPTH = 32
) (
  input  logic        clk_i,
  input  logic        rst_ni,

  input  logic        cmd_valid_i,
  input  logic [15:0] cmd_kblocks_i,
  input  logic [15:0] cmd_all_kblocks_i,
  // Both at most COLS_MAX.
  // verilator lint_off UNUSED
  input  logic [31:0] cmd_cols_i,
  input  logic [31:0] cmd_first_col_i,
  // verilator lint_on UNUSED
  input  logic [31:0] cmd_off_i,
  input  logic [15:0] cmd_first_kblock_i,
  input  logic        cmd_waits_i,
  input  logic [31:0] limit_i,
  output logic        busy_o,
  output logic        good_o,
  output logic        bad_o,
  output logic [31:0] off_o,

  input  logic        go_i,
  output logic        next_o,
  output logic        waits_o,
  output logic        job_valid_o,
  input  logic        job_ready_i,
  output logic [31:0] job_off_o,
  output logic [31:0] job_beats_o,
  output logic        last_o
);

  localparam int LN = $clog2(N);

  // ---- a command that is dealt out --------------------------------------------------------------
  localparam logic [1:0] IDLE = 2'd0, END = 2'd1, AT = 2'd2;
  logic [1:0]  state_q;
  logic [1:0]  step_q;
  logic [15:0] kblocks_q, all_q, first_q;
  logic [13:0] from_64_q, cols_64_q;  // in 64 columns
  logic        waits_q;
  logic [17:0] group_beats_q, from_q, span_q;
  logic [19:0] at_q;
  logic [37:0] over;
  // verilator lint_off UNUSED
  logic [37:0] head, group;  // of what lies inside a window, 32 bits count
  // verilator lint_on UNUSED
  logic [38:0] end_q;
  mr_tiles_at u_at (
    .clk_i, .group_i(at_q), .beats_i(group_beats_q), .head_o(head), .group_o(group), .end_o(over)
  );

  // Groups a channel of n times 64 columns.
  function automatic logic [19:0] groups(input logic [14:0] n);
    groups = 20'({5'd0, n} << (4 - LN));
  endfunction
  logic [15:0] last_k;
  assign last_k = first_q + kblocks_q - 16'd1;
  assign bad_o  = state_q == AT && step_q == '0 && end_q > {7'd0, limit_i};
  assign good_o = state_q == AT && step_q == 2'd3;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      state_q <= IDLE;
      busy_o  <= 1'b0;
    end else begin
      unique case (state_q)
        IDLE: if (cmd_valid_i) begin
          state_q <= END;
          busy_o  <= 1'b1;
        end
        END: if (step_q == 2'd3) state_q <= AT;
        default: if (bad_o || good_o) begin
          state_q <= IDLE;
          busy_o  <= 1'b0;
        end
      endcase
    end
    step_q <= (state_q == END || state_q == AT) ? step_q + 2'd1 : '0;
    if (!busy_o && !cmd_valid_i) begin
      kblocks_q <= cmd_kblocks_i;
      all_q     <= cmd_all_kblocks_i;
      first_q   <= cmd_first_kblock_i;
      off_o     <= cmd_off_i;
      from_64_q <= cmd_first_col_i[19:6];
      cols_64_q <= cmd_cols_i[19:6];
      waits_q   <= cmd_waits_i;
    end
    if (cmd_valid_i) begin
      group_beats_q <= mr_stash_pkg::group_beats(all_q);
      from_q        <= mr_stash_pkg::sections(first_q[15:4]);
      span_q        <= mr_stash_pkg::to_block(last_k);
      at_q          <= groups({1'b0, from_64_q} + {1'b0, cols_64_q});
    end
    if (state_q == END) begin
      end_q <= {1'b0, over} + {7'd0, off_o};
      if (step_q == 2'd3) begin
        at_q   <= groups({1'b0, from_64_q});
        span_q <= span_q - from_q;
      end
    end
  end

  // ---- those that wait --------------------------------------------------------------------------
  localparam int W = 1 + 1 + 4 + 20 + 18 * 3 + 32 * 2;
  logic         whole, unused_ready, h_valid;
  logic [W-1:0] h;
  assign whole = first_q == '0 && kblocks_q == all_q;
  logic [$clog2(DEPTH+1)-1:0] unused_count;
  mr_fifo #(.W(W), .DEPTH(DEPTH)) u_waiting (
    .clk_i, .rst_ni, .clear_i(1'b0),
    .in_valid_i(good_o), .in_ready_o(unused_ready),  // as many as the reader's queue holds
    .in_data_i({waits_q, whole, at_q[3:0], groups({1'b0, cols_64_q}), group_beats_q, from_q,
                span_q, head[31:0] + off_o, group[31:0] + off_o}),
    .out_valid_o(h_valid), .out_ready_i(go_i), .out_data_o(h), .count_o(unused_count)
  );
  assign next_o  = h_valid;
  assign waits_o = h[W-1];

  // ---- jobs of the one in work ------------------------------------------------------------------
  logic        run_q, whole_q, body_q;  // body_q: the header's beat has been asked for
  logic [3:0]  in_head_q;
  logic [19:0] left_q;                  // groups left
  logic [4:0]  here_q;                  // of them under this header, when body_q
  logic [17:0] g_beats_q, g_from_q, g_span_q;
  logic [31:0] head_q, group_q;
  // Groups under the header, from the first one on, and their beats: each has a cycle, prep_q of
  // them are left when a header begins.
  logic [4:0]  under, under_q;
  logic [21:0] all_beats_q;
  logic [1:0]  prep_q;
  logic        take, one, part;
  assign under     = (left_q < 20'd16 - {16'd0, in_head_q}) ? left_q[4:0] :
                     5'd16 - {1'b0, in_head_q};
  assign one       = whole_q && in_head_q == '0;  // header and groups lie side by side
  assign part      = body_q && !whole_q;          // a job a group
  assign take      = job_valid_o && job_ready_i;

  assign job_valid_o = run_q && prep_q == '0;
  assign job_off_o   = !body_q ? head_q : whole_q ? group_q : group_q + {14'd0, g_from_q};
  assign job_beats_o = !body_q ? (one ? {10'd0, all_beats_q} + 32'd1 : 32'd1) :
                       whole_q ? {10'd0, all_beats_q} : {14'd0, g_span_q};
  logic header_end;  // this job is the last one under its header
  assign header_end  = one || (body_q && (whole_q || here_q == 5'd1));
  assign last_o      = header_end && (part ? left_q == 20'd1 : left_q == {15'd0, under_q});

  always_ff @(posedge clk_i) begin
    if (!rst_ni) run_q <= 1'b0;
    else if (go_i) run_q <= 1'b1;
    else if (take && last_o) run_q <= 1'b0;
    under_q     <= under;
    all_beats_q <= 22'(under_q) * 22'(g_beats_q);
    if (go_i || (take && header_end)) prep_q <= 2'd2;
    else if (prep_q != '0) prep_q <= prep_q - 2'd1;
    if (go_i) begin
      {whole_q, in_head_q, left_q, g_beats_q, g_from_q, g_span_q, head_q, group_q} <= h[W-2:0];
      body_q <= 1'b0;
    end else if (take) begin
      body_q <= !header_end;
      if (!body_q) here_q <= under_q;
      if (part) begin
        here_q  <= here_q - 5'd1;
        left_q  <= left_q - 20'd1;
        group_q <= group_q + {14'd0, g_beats_q} + 32'(header_end);
      end else if (header_end) begin
        left_q  <= left_q - {15'd0, under_q};
        group_q <= group_q + {10'd0, all_beats_q} + 32'd1;
      end
      if (header_end) begin
        in_head_q <= '0;
        head_q    <= group_q + (part ? {14'd0, g_beats_q} : {10'd0, all_beats_q});
      end
    end
  end

  `MR_ASSERT(state, state_q <= AT)
  `MR_ASSERT(room, !good_o || unused_ready)
  `MR_ASSERT(go, !go_i || (next_o && !run_q))
  `MR_ASSERT(beats, !job_valid_o || job_beats_o != '0)
  `MR_ASSERT_STABLE(job, job_valid_o, job_ready_i, {job_off_o, job_beats_o, last_o})

endmodule
