// SPDX-License-Identifier: Apache-2.0
// Blocks of columns into a matrix of the stash (docs/inside/commands.md, "Training"): what mr_turn
// gives becomes elements, codes and largest codes, as mr_machine_stash_turn of the C model writes
// them.
//
// A set has one k-block of V columns: of a column group in each of the N channels, which all write
// the same beats of their windows. Sets of the same columns and the same aligned four of k-blocks
// are a run: in each channel their codes are one job and their elements another, so that a memory
// that answers late sees few long bursts. A run is written while the next one comes. A RAM keeps
// the largest codes of the columns that share a header, for two headers. A header is written where
// the set says so; where maxima of before count, it is read first.
//
// Parameters
//   N      channels; V = 4 N lanes
//   ALONE  1: every run is one set, and its elements come before it, a lane a cycle: a memory of
//          that width is an eighth of one that takes a set at once
//
// Ports
//   cmd_      valid/ready: where the matrix begins in the windows, its blocks a column, and the
//             groups a channel up to its end. One command is inside at a time, from here to done_o,
//             a pulse when all that it writes is acknowledged
//   err_      pulse beside done_o, WINDOW: the matrix does not end inside; the sets were taken, and
//             nothing was written
//   in_       valid/ready, the sets of the command: lane c of group j is column j V + c of the
//             matrix. in_more_i: the next set is these columns' next k-block, and all lanes of both
//             are written. in_mask_i: lanes that are written; in_new_i: those whose maximum begins
//             anew, in the column's first set since its header was written. in_flush_i: the header
//             is written behind this set, as is due before a set under another one; in_last_i ends
//             the command, with in_flush_i. Neither comes with in_more_i
//   elem_     with ALONE in place of in_data_i: lane elem_lane_i of the set that is taken next, or
//             in this cycle
//   s_base_i, s_limit_i   the stash windows, 64-byte aligned, and the smallest size in beats
//   rd_       a client of mr_hostrd: a header
//   job_, data_, job_done_i   a client of mr_writer
//
// Timing: a set is taken each 5 cycles while one of two runs has room. If writes are taken at once,
// a run of n sets takes 2 n + 5 cycles for each channel and two more, a header 22 for each channel;
// where maxima of before count, the header's read comes on top, behind the acknowledgement of the
// headers before.
`include "mr_assert.svh"
`include "mr_bundles.svh"
module mr_stash_put #(
  parameter int N = 1,
  parameter int ALONE = 0,
  localparam int V = 4 * N,
  localparam int LV = $clog2(V)
) (
  input  logic             clk_i,
  input  logic             rst_ni,

  input  logic             cmd_valid_i,
  output logic             cmd_ready_o,
  input  logic [31:0]      cmd_off_i,
  input  logic [15:0]      cmd_kblocks_i,
  input  logic [19:0]      cmd_groups_i,
  output logic             done_o,
  output logic             err_valid_o,
  output logic [63:0]      err_addr_o,

  input  logic             in_valid_i,
  output logic             in_ready_o,
  // Either this or elem_.
  // verilator lint_off UNUSED
  input  logic [V*256-1:0] in_data_i,
  input  logic             elem_valid_i,
  input  logic [LV-1:0]    elem_lane_i,
  input  logic [255:0]     elem_data_i,
  // verilator lint_on UNUSED
  input  logic [V*8-1:0]   in_code_i,
  input  logic [19:0]      in_group_i,
  input  logic [15:0]      in_kblock_i,
  input  logic             in_more_i,
  input  logic [V-1:0]     in_mask_i,
  input  logic [V-1:0]     in_new_i,
  input  logic             in_flush_i,
  input  logic             in_last_i,
  // The low bits are zero.
  // verilator lint_off UNUSED
  `MR_STASH_S(s_),
  // verilator lint_on UNUSED

  `MR_RD_M(rd_, 1),

  `MR_WR_M(, 1)
);

  localparam int CW = (N > 1) ? $clog2(N) : 1;

  // What comes. END until it is known where the matrix ends; SKIP: outside, sets go nowhere. SETS:
  // one is taken; AT until its place is known. ACKS until all is written.
  localparam logic [2:0] IDLE = 3'd0, END = 3'd1, SKIP = 3'd2, SETS = 3'd3, AT = 3'd4, ACKS = 3'd5;
  // What goes. Of each channel CODES and ELEMS; behind the last run of a header's groups, of each
  // channel READ where maxima of before count, MERGE, HEAD.
  localparam logic [2:0] REST = 3'd0, CODES = 3'd1, ELEMS = 3'd2, READ = 3'd3, MERGE = 3'd4,
                         HEAD = 3'd5;
  logic [2:0] state_q, out_q;
  logic [1:0] step_q;
  logic       take, at_end, run_end, run_go, job_go, beat_go, job_end, elems_end, run_out, head_end;
  logic       r_valid, r_pop, channel_last;
  assign job_go  = job_valid_o && job_ready_i;
  assign beat_go = data_valid_o && data_ready_i;

  // ---- sets, until their run is complete --------------------------------------------------------
  logic [31:0]    off_q;
  logic [17:0]    group_beats_q;
  logic [V*8-1:0] code_q;  // of the set
  logic [19:0]    group_q;
  logic [15:0]    kblock_q;
  logic [V-1:0]   mask_q, fresh_q;
  logic           more_q, flush_q, last_q;
  logic           first_q;             // no set of the run is there
  logic           in_half_q, half_q;   // the place of the run that comes, and of that that goes
  logic [1:0]     runs_q;              // places that are taken
  logic           in_bank_q;           // of the largest codes
  logic [1:0]     held_q;              // banks whose header is due
  assign cmd_ready_o = state_q == IDLE;
  assign in_ready_o  = state_q == SKIP ||
                       (state_q == SETS && (!first_q || !runs_q[1]) && !held_q[in_bank_q]);
  assign take        = in_valid_i && in_ready_o;
  assign at_end      = state_q == AT && step_q == 2'd3;
  assign run_end     = at_end && !more_q;

  // Beats of a group: a beat of codes for 16 blocks, two of elements for each.
  // verilator lint_off UNUSED
  logic [37:0] head, group;  // of what lies inside a window, 32 bits count
  // verilator lint_on UNUSED
  logic [37:0] over;
  logic [38:0] over_q;
  mr_tiles_at u_at (
    .clk_i, .group_i(group_q), .beats_i(group_beats_q), .head_o(head), .group_o(group), .end_o(over)
  );
  logic [31:0] section;
  assign section    = off_q + group[31:0] + {14'd0, mr_stash_pkg::sections(kblock_q[15:4])};
  assign err_addr_o = {s_base_i[63:6] + {26'd0, off_q}, 6'd0};

  // A run, by its first set, and what of the aligned four is there.
  logic [31:0]  head_q, codes_q, elems_q;
  logic [3:0]   first_kblock_q, there_q;
  logic [2:0]   count_q;
  logic         run_end_q;
  always_ff @(posedge clk_i) begin
    if (at_end && first_q) begin
      head_q         <= off_q + head[31:0];
      codes_q        <= section;
      elems_q        <= section + {27'd0, kblock_q[3:0], 1'b0} + 32'd1;
      first_kblock_q <= kblock_q[3:0];
    end
    if (at_end) begin
      there_q <= (first_q ? 4'd0 : there_q) | 4'd1 << kblock_q[1:0];
      count_q <= (first_q ? 3'd0 : count_q) + 3'd1;
    end
    if (take) begin
      code_q   <= in_code_i;
      group_q  <= in_group_i;
      kblock_q <= in_kblock_i;
      mask_q   <= in_mask_i;
      fresh_q  <= in_new_i;
      more_q   <= in_more_i && in_kblock_i[1:0] != '1;
      flush_q  <= in_flush_i;
      last_q   <= in_last_i;
    end else if (cmd_valid_i && cmd_ready_o) begin
      off_q         <= cmd_off_i;
      group_beats_q <= mr_stash_pkg::group_beats(cmd_kblocks_i);
      group_q       <= cmd_groups_i;
    end
    over_q <= {1'b0, over} + {7'd0, off_q};
  end

  logic [1:0] pending_q;  // complete runs whose last job, or header, has not gone
  logic [9:0] jobs_q;     // that are not acknowledged, of a cycle ago
  logic       job_q;
  always_ff @(posedge clk_i) begin
    done_o      <= 1'b0;
    err_valid_o <= 1'b0;
    if (!rst_ni) begin
      state_q   <= IDLE;
      first_q   <= 1'b1;
      in_half_q <= 1'b0;
      half_q    <= 1'b0;
      runs_q    <= '0;
      in_bank_q <= 1'b0;
      held_q    <= '0;
      pending_q <= '0;
      run_end_q <= 1'b0;
      jobs_q    <= '0;
    end else begin
      unique case (state_q)
        IDLE: if (cmd_valid_i) state_q <= END;
        END: if (step_q == 2'd3) state_q <= (over_q > {7'd0, s_limit_i}) ? SKIP : SETS;
        SKIP: if (in_valid_i && in_last_i) begin
          state_q     <= IDLE;
          done_o      <= 1'b1;
          err_valid_o <= 1'b1;
        end
        SETS: if (take) state_q <= AT;
        AT: if (at_end) state_q <= last_q ? ACKS : SETS;
        default: if (jobs_q == '0 && pending_q == '0) begin
          state_q <= IDLE;
          done_o  <= 1'b1;
        end
      endcase
      if (at_end) first_q <= run_end;
      if (run_end) in_half_q <= !in_half_q;
      if (run_out) half_q <= !half_q;
      runs_q <= runs_q + 2'(take && state_q == SETS && first_q) - 2'(run_out);
      if (at_end && flush_q) in_bank_q <= !in_bank_q;
      for (int b = 0; b < 2; b++) begin
        if (at_end && flush_q && in_bank_q == 1'(b)) held_q[b] <= 1'b1;
        else if (head_end && r_bank == 1'(b)) held_q[b] <= 1'b0;
      end
      run_end_q <= run_end;
      pending_q <= pending_q + 2'(run_end) - 2'(r_pop);
      jobs_q    <= jobs_q + 10'(job_q) - 10'(job_done_i);
    end
    job_q  <= job_go;
    step_q <= (state_q == END || state_q == AT) ? step_q + 2'd1 : '0;
  end

  // Elements of two runs, and with ALONE of the set that comes; a beat of a channel is read.
  logic [511:0] elems;
  logic [2:0]   at_q;  // {slot, second beat}: the beat that is read next
  if (ALONE != 0) begin : gen_alone
    logic [1:0] fill_q, go_q;  // the place of the set that comes, and of that that goes
    always_ff @(posedge clk_i) begin
      if (!rst_ni) begin
        fill_q <= '0;
        go_q   <= '0;
      end else begin
        fill_q <= fill_q + 2'(take && state_q == SETS);
        go_q   <= go_q + 2'(run_out);
      end
    end
    // {channel, place, beat}; with one channel the first is not there.
    logic [LV:0] waddr, raddr;
    assign waddr = (LV + 1)'({elem_lane_i >> 2, fill_q, elem_lane_i[1]});
    assign raddr = (LV + 1)'({channel_q, go_q, at_q[0]});
    for (genvar l = 0; l < 2; l++) begin : gen_elems
      (* ram_style = "distributed" *)
      logic [255:0] mem [0:2*V-1];
      always_ff @(posedge clk_i) begin
        if (elem_valid_i && elem_lane_i[0] == 1'(l)) mem[waddr] <= elem_data_i;
      end
      assign elems[256*l+:256] = mem[raddr];
    end
  end else begin : gen_sets
    logic [V*256-1:0] blocks;  // of the set that at_q is in
    for (genvar c = 0; c < N; c++) begin : gen_elems
      (* ram_style = "distributed" *)
      logic [1023:0] mem [0:7];
      always_ff @(posedge clk_i) begin
        if (take) mem[{in_half_q, in_kblock_i[1:0]}] <= in_data_i[1024*c+:1024];
      end
      assign blocks[1024*c+:1024] = mem[{half_q, at_q[2:1]}];
    end
    always_comb begin
      elems = at_q[0] ? blocks[1023:512] : blocks[511:0];
      for (int c = 1; c < N; c++) begin
        if (channel_q == CW'(c)) begin
          elems = at_q[0] ? blocks[1024*c+512+:512] : blocks[1024*c+:512];
        end
      end
    end
  end
  // Codes of two runs, of four k-blocks each; with ALONE those of one stand for all.
  localparam int SLOTS = (ALONE != 0) ? 1 : 4;
  logic [SLOTS*V*8-1:0] codes [0:1];
  for (genvar h = 0; h < 2; h++) begin : gen_codes
    for (genvar k = 0; k < SLOTS; k++) begin : gen_slot
      logic [V*8-1:0] of_slot_q;
      always_ff @(posedge clk_i) begin
        if (take && in_half_q == 1'(h) && (ALONE != 0 || in_kblock_i[1:0] == 2'(k))) begin
          of_slot_q <= in_code_i;
        end
      end
      assign codes[h][V*8*k+:V*8] = of_slot_q;
    end
  end

  // ---- runs -------------------------------------------------------------------------------------
  // Two have their places, and of one the header is due. A run's mask is that of any of its sets;
  // its bank is left with its flush.
  localparam int RUN_W = 3 * 32 + 4 + 4 + 3 + V + 2;
  logic [31:0]  r_head, r_codes, r_elems;
  logic [3:0]   r_kblock, r_there;
  logic [2:0]   r_count;
  logic [V-1:0] r_lanes;
  logic         r_flush, r_bank;
  // There is room.
  // verilator lint_off UNUSED
  logic         unused_ready;
  logic [1:0]   unused_count;
  // verilator lint_on UNUSED
  mr_fifo #(.W(RUN_W), .DEPTH(3)) u_runs (
    .clk_i, .rst_ni, .clear_i(1'b0),
    .in_valid_i(run_end_q), .in_ready_o(unused_ready),
    .in_data_i({head_q, codes_q, elems_q, first_kblock_q, there_q, count_q, mask_q, flush_q,
                in_bank_q ^ flush_q}),
    .out_valid_o(r_valid), .out_ready_i(r_pop),
    .out_data_o({r_head, r_codes, r_elems, r_kblock, r_there, r_count, r_lanes, r_flush, r_bank}),
    .count_o(unused_count)
  );

  logic [CW-1:0] channel_q;
  logic          sent_q, second_q;  // a beat is offered; elements' second job
  logic [2:0]    left_q;            // beats of the job behind this one
  logic          whole;             // the channel's elements are one job
  logic [3:0]    lanes;             // of the channel
  logic          read_end, merge_end;
  assign channel_last = channel_q == CW'(N - 1);
  assign run_go       = out_q == REST && r_valid;
  assign job_end      = beat_go && left_q == '0;
  assign elems_end    = out_q == ELEMS && job_end && (whole || second_q);
  assign run_out      = elems_end && channel_last;
  assign head_end     = out_q == HEAD && job_end && channel_last;
  assign r_pop        = head_end || (run_out && !r_flush);
  assign whole        = &lanes[1:0];

  logic       asked_q;     // the header was asked for
  logic       due_here;
  logic [9:0] ahead_q;     // jobs up to the last header that are not acknowledged
  logic       headers_in;  // those of before are in memory
  assign headers_in = channel_q != '0 || ahead_q == '0;
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      out_q       <= REST;
      sent_q      <= 1'b0;
      second_q    <= 1'b0;
      job_valid_o <= 1'b0;
      rd_valid_o  <= 1'b0;
      ahead_q     <= '0;
    end else begin
      unique case (out_q)
        REST: if (r_valid) out_q <= CODES;
        CODES: if (job_end) out_q <= ELEMS;
        ELEMS: if (elems_end) out_q <= !channel_last ? CODES : r_flush ? READ : REST;
        READ: if (read_end) out_q <= MERGE;
        MERGE: if (merge_end) out_q <= HEAD;
        default: if (job_end) out_q <= channel_last ? REST : READ;
      endcase
      // In CODES, ELEMS and HEAD until it is taken.
      job_valid_o <= job_valid_o ? !job_ready_i :
                     run_go || merge_end ||
                     (job_end && (out_q == CODES || (out_q == ELEMS && !run_out)));
      // In READ until it is taken.
      rd_valid_o <= rd_valid_o ? !rd_ready_i :
                    out_q == READ && headers_in && due_here && !asked_q;
      sent_q <= job_valid_o || (sent_q && !job_end);  // of a job that is not taken, no beat is
      if (job_end) second_q <= out_q == ELEMS && !elems_end;
      if (out_q == HEAD && job_go) ahead_q <= jobs_q + 10'(job_q) + 10'd1 - 10'(job_done_i);
      else if (ahead_q != '0) ahead_q <= ahead_q - 10'(job_done_i);
    end
    asked_q <= out_q == READ && (asked_q || rd_valid_o);
    if (job_valid_o) left_q <= (out_q == ELEMS && whole) ? {r_count[1:0], 1'b0} - 3'd1 : '0;
    else if (beat_go) left_q <= left_q - 3'd1;
    if (job_end) at_q <= {r_kblock[1:0], out_q == ELEMS && !elems_end};
    else if (job_go || beat_go) at_q <= at_q + 3'd1;
    if (out_q == REST) channel_q <= '0;
    else if (elems_end || (out_q == HEAD && job_end)) begin
      channel_q <= channel_last ? '0 : channel_q + 1'b1;
    end
  end

  // The channel's window, and that of the next one, which is chosen while this one writes:
  // addresses go on through mr_hostrd and mr_writer within the cycle.
  logic [57:0] window_q, window_next_q;
  always_ff @(posedge clk_i) begin
    window_next_q <= s_base_i[63:6];
    for (int c = 1; c < N; c++) begin
      if (channel_q == CW'(c - 1)) window_next_q <= s_base_i[64*c+6+:58];
    end
    if (out_q == REST) window_q <= s_base_i[63:6];
    else if (elems_end || (out_q == HEAD && job_end)) window_q <= window_next_q;
  end

  // ---- largest codes ----------------------------------------------------------------------------
  // Of each of a header's 16 groups a word: of each lane its largest code, whether it begins anew,
  // and whether there is one. A set's word is read and written in AT; a header's words are read one
  // after the other, but not in that cycle.
  localparam int WORD = V * 10;
  logic [31:0]     had_q;   // words that count
  logic [2*N-1:0]  due_q;   // of each bank: channels with a column whose maximum of before counts,
                            // the one whose header it is first
  logic [4:0]      turn_q;  // words of a header that were asked for, the first one in READ
  logic            put, put_ask, ask, lanes_v_q, got_q, valid_q;
  logic [4:0]      put_word, word;
  logic [WORD-1:0] was, now;
  assign put_ask   = state_q == AT && step_q == 2'd0;
  assign put       = state_q == AT && step_q == 2'd1;
  assign put_word  = {in_bank_q, group_q[3:0]};
  assign due_here  = r_bank ? due_q[N] : due_q[0];
  assign read_end  = out_q == READ && headers_in && (!due_here || rd_data_valid_i);
  assign ask       = !put_ask && (read_end || (out_q == MERGE && !turn_q[4]));
  assign merge_end = got_q && !lanes_v_q && turn_q[4];
  assign word      = put_ask ? put_word : {r_bank, turn_q[3:0]};
  mr_ram_1r1w #(.W(WORD), .DEPTH(32)) u_most (
    .clk_i, .wen_i(put), .waddr_i(put_word), .wdata_i(now),
    .ren_i(put_ask || ask), .raddr_i(word), .rdata_o(was)
  );

  function automatic logic [7:0] larger(input logic [7:0] a, input logic [7:0] b);
    larger = (a > b) ? a : b;
  endfunction
  logic [V-1:0] used;  // of the word that was read
  logic [N-1:0] due;   // of the set
  always_comb begin
    due = '0;
    for (int l = 0; l < V; l++) begin
      used[l] = valid_q && was[10*l+9];
      now[10*l+:10] = {used[l], was[10*l+:9]};
      if (mask_q[l] && used[l]) begin
        now[10*l+:8] = larger(was[10*l+:8], code_q[8*l+:8]);
      end else if (mask_q[l]) begin
        now[10*l+:10] = {1'b1, fresh_q[l], code_q[8*l+:8]};
        if (!fresh_q[l]) due[l/4] = 1'b1;
      end
    end
  end
  always_ff @(posedge clk_i) begin
    for (int b = 0; b < 2; b++) begin
      if (!rst_ni || (head_end && r_bank == 1'(b))) begin
        had_q[16*b+:16] <= '0;
        due_q[N*b+:N]   <= '0;
      end else if (put && in_bank_q == 1'(b)) begin
        had_q[{b[0], group_q[3:0]}] <= 1'b1;
        due_q[N*b+:N]               <= due_q[N*b+:N] | due;
      end else if (out_q == HEAD && job_end && r_bank == 1'(b)) begin
        due_q[N*b+:N] <= due_q[N*b+:N] >> 1;
      end
    end
    if (put_ask || ask) valid_q <= had_q[word];
    lanes_v_q <= ask;
    got_q     <= lanes_v_q;
    turn_q    <= (out_q == MERGE || read_end) ? turn_q + 5'(ask) : '0;
  end

  // A channel's header goes round once, and meets the words on its way, each from a register; it
  // was read where maxima of before count.
  logic [511:0] head_beat_q;
  logic [63:0]  head_used_q;
  logic [31:0]  merged;
  logic [39:0]  most;
  logic [35:0]  most_q;
  logic [3:0]   most_used, merged_used_q;
  always_comb begin
    most      = was[39:0];
    most_used = used[3:0];
    for (int c = 1; c < N; c++) begin
      if (channel_q == CW'(c)) begin
        most      = was[40*c+:40];
        most_used = used[4*c+:4];
      end
    end
    for (int l = 0; l < 4; l++) begin
      merged[8*l+:8] = most_q[9*l+8] ? most_q[9*l+:8] :
                       larger(most_q[9*l+:8], head_beat_q[8*l+:8]);
    end
  end
  always_ff @(posedge clk_i) begin
    if (lanes_v_q) begin
      for (int l = 0; l < 4; l++) most_q[9*l+:9] <= most[10*l+:9];
      merged_used_q <= most_used;
    end
    if (out_q == READ) head_beat_q <= rd_data_i;
    else if (got_q) head_beat_q <= {merged, head_beat_q[511:32]};
    if (got_q) head_used_q <= {merged_used_q, head_used_q[63:4]};
  end

  // ---- memory -----------------------------------------------------------------------------------
  // A beat is chosen while its job is asked for, or while the one before goes.
  logic [31:0]  place;
  logic [15:0]  codes_strb;
  logic [63:0]  elems_strb;
  logic [127:0] four_codes;
  assign place      = (out_q == CODES) ? r_codes :
                      (out_q == ELEMS) ? r_elems + 32'(second_q) : r_head;
  assign elems_strb = (whole || second_q) ? {{32{lanes[3]}}, {32{lanes[2]}}} :
                                            {{32{lanes[1]}}, {32{lanes[0]}}};
  always_comb begin
    lanes = r_lanes[3:0];
    for (int k = 0; k < 4; k++) four_codes[32*k+:32] = codes[half_q][V*8*(k%SLOTS)+:32];
    for (int c = 1; c < N; c++) begin
      if (channel_q == CW'(c)) begin
        lanes = r_lanes[4*c+:4];
        for (int k = 0; k < 4; k++) begin
          four_codes[32*k+:32] = codes[half_q][V*8*(k%SLOTS)+32*c+:32];
        end
      end
    end
    for (int k = 0; k < 4; k++) codes_strb[4*k+:4] = r_there[k] ? lanes : 4'd0;
  end
  assign rd_addr_o    = {window_q + {26'd0, r_head}, 6'd0};
  assign rd_beats_o   = 16'd1;
  assign job_addr_o   = {window_q + {26'd0, place}, 6'd0};
  assign job_beats_o  = (out_q == ELEMS && whole) ? {12'd0, r_count, 1'b0} : 16'd1;
  assign job_strb_o   = (out_q == CODES) ? {48'd0, codes_strb} << {r_kblock[3:2], 4'd0} :
                        (out_q == HEAD) ? head_used_q : elems_strb;
  assign data_valid_o = sent_q;
  always_ff @(posedge clk_i) begin
    if (job_valid_o || beat_go) begin
      data_o <= (out_q == CODES) ? {4{four_codes}} : (out_q == HEAD) ? head_beat_q : elems;
    end
  end

  `MR_ASSERT(state, state_q <= ACKS)
  `MR_ASSERT(out, out_q <= HEAD)
  `MR_ASSERT_STABLE(in, in_valid_i, in_ready_o,
                    {in_data_i, in_code_i, in_group_i, in_kblock_i, in_more_i, in_mask_i, in_new_i,
                     in_flush_i, in_last_i})
  `MR_ASSERT(alone, ALONE == 0 || !(in_valid_i && in_more_i))
  `MR_ASSERT(more, !(take && in_more_i) || (&in_mask_i && !in_flush_i && !in_last_i))
  `MR_ASSERT(next, !(take && state_q == SETS && !first_q) ||
                   (&in_mask_i && in_group_i == group_q && in_kblock_i == kblock_q + 16'd1))
  `MR_ASSERT_COUNT(jobs, jobs_q, job_q, job_done_i, 1023)
  `MR_ASSERT_COUNT(runs, runs_q, take && state_q == SETS && first_q, run_out, 2)
  `MR_ASSERT_COUNT(pending, pending_q, run_end, r_pop, 3)

endmodule
