// SPDX-License-Identifier: Apache-2.0
// Blocks of columns into a matrix of the stash (docs/inside/commands.md, "Training"): what mr_turn
// gives becomes elements, codes and largest codes, as mr_machine_stash_turn of the C model writes
// them.
//
// A set has one k-block of V columns: of a column group in each of the N channels, which all write
// the same beats of their windows. Of each channel a set makes three writes: a part of a beat of
// codes, and two beats of elements. A RAM keeps the largest codes of the columns that share a
// header. They are written where the set says so; where maxima of before count, the header is read
// first.
//
// Parameters
//   N  channels; V = 4 N lanes
//
// Ports
//   cmd_      valid/ready: where the matrix begins in the windows, its blocks a column, and the
//             groups a channel up to its end. One command is inside at a time, from here to done_o,
//             a pulse when all that it writes is acknowledged
//   err_      pulse beside done_o, WINDOW: the matrix does not end inside; the sets were taken, and
//             nothing was written
//   in_       valid/ready, the sets of the command: lane c of group j is column j V + c of the
//             matrix. in_mask_i: lanes that are written; in_new_i: those whose maximum begins anew,
//             in the column's first set since its header was written. in_flush_i: the header is
//             written behind this set, as is due before a set under another one; in_last_i ends the
//             command, with in_flush_i
//   s_base_i, s_limit_i   the stash windows, 64-byte aligned, and the smallest size in beats
//   rd_       a client of mr_hostrd: a header
//   job_, data_, job_done_i   a client of mr_writer
//
// Timing: a set takes 5 cycles and 9 for each channel, a header 22 for each channel, if writes are
// taken at once; where maxima of before count, the header's read comes on top.
`include "mr_assert.svh"
`include "mr_bundles.svh"
module mr_stash_put #(
  parameter int N = 1,
  localparam int V = 4 * N
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
  input  logic [V*256-1:0] in_data_i,
  input  logic [V*8-1:0]   in_code_i,
  input  logic [19:0]      in_group_i,
  input  logic [15:0]      in_kblock_i,
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

  // END until it is known where the matrix ends; SKIP: outside, sets go nowhere. A set: AT until
  // its place is known; then of each channel CODES and ELEMS. Behind the last set of a header's
  // groups, of each channel: READ where maxima of before count, MERGE, HEAD.
  localparam logic [3:0] IDLE = 4'd0, END = 4'd1, SKIP = 4'd2, SETS = 4'd3, AT = 4'd4, CODES = 4'd5,
                         ELEMS = 4'd6, READ = 4'd7, MERGE = 4'd8, HEAD = 4'd9, ACKS = 4'd10;
  logic [3:0]       state_q;
  logic [1:0]       step_q;
  logic             sent_q, second_q;  // a beat is offered; the second beat of elements
  logic [CW-1:0]    channel_q;
  logic [31:0]      off_q;
  logic [17:0]      group_beats_q;
  logic [V*256-1:0] data_q;
  logic [V*8-1:0]   code_q;
  logic [19:0]      group_q;
  logic [15:0]      kblock_q;
  logic [V-1:0]     mask_q, fresh_q;   // the first of the channels that are left; of all
  logic             flush_q, last_q;
  logic [9:0]       jobs_q;            // that are not acknowledged, of a cycle ago
  logic             job_q;

  logic channel_last, take, job_go, beat_go, part_end;
  assign channel_last = channel_q == CW'(N - 1);
  assign cmd_ready_o  = state_q == IDLE;
  assign in_ready_o   = state_q == SETS || state_q == SKIP;
  assign take         = in_valid_i && in_ready_o;
  assign job_go       = job_valid_o && job_ready_i;
  assign beat_go      = data_valid_o && data_ready_i;
  assign part_end     = beat_go && (state_q != ELEMS || second_q);  // its last beat

  // ---- places -----------------------------------------------------------------------------------
  // Beats of a group: a beat of codes for 16 blocks, two of elements for each.
  // verilator lint_off UNUSED
  logic [37:0] head, group;  // of what lies inside a window, 32 bits count
  // verilator lint_on UNUSED
  logic [37:0] over;
  logic [38:0] over_q;
  mr_tiles_at u_at (
    .clk_i, .group_i(group_q), .beats_i(group_beats_q), .head_o(head), .group_o(group), .end_o(over)
  );
  logic [31:0] head_q, codes_q, elems_q, section;
  logic [3:0]  in_sec;
  assign in_sec     = kblock_q[3:0];
  assign section    = off_q + group[31:0] + {14'd0, mr_stash_pkg::sections(kblock_q[15:4])};
  assign err_addr_o = {s_base_i[63:6] + {26'd0, off_q}, 6'd0};

  // The channel's window, and that of the next one, which is chosen while this one writes:
  // addresses go on through mr_hostrd and mr_writer within the cycle.
  logic [57:0] window_q, window_next_q;
  always_ff @(posedge clk_i) begin
    window_next_q <= s_base_i[63:6];
    for (int c = 1; c < N; c++) begin
      if (channel_q == CW'(c - 1)) window_next_q <= s_base_i[64*c+6+:58];
    end
  end

  // ---- largest codes ----------------------------------------------------------------------------
  // Of each of a header's 16 groups a word: of each lane its largest code, whether it begins anew,
  // and whether there is one.
  // A set's word is read in AT, and written at its end; a header's words one after the other.
  localparam int WORD = V * 10;
  logic [15:0]     had_q;   // groups whose words count
  logic [N-1:0]    due_q;   // channels with a column whose maximum of before counts; due_here: of
  logic            due_here, due_next;  // the channel whose header it is, and the next one
  logic [4:0]      turn_q;  // words of a header that were asked for, the first one in READ
  logic            put, ask, read_end, merge_end, lanes_v_q, got_q, valid_q;
  logic [3:0]      word;
  logic [WORD-1:0] was, now;
  assign put       = state_q == AT && step_q == 2'd3;
  assign due_here  = due_q[0];
  assign due_next  = 1'(due_q >> 1);
  assign read_end  = state_q == READ && (!due_here || rd_data_valid_i);
  assign merge_end = got_q && !lanes_v_q;
  assign ask       = (state_q == AT && step_q == '0) || read_end ||
                     (state_q == MERGE && !turn_q[4]);
  assign word      = (state_q == AT) ? group_q[3:0] : turn_q[3:0];
  mr_ram_1r1w #(.W(WORD), .DEPTH(16)) u_most (
    .clk_i, .wen_i(put), .waddr_i(group_q[3:0]), .wdata_i(now),
    .ren_i(ask), .raddr_i(word), .rdata_o(was)
  );

  function automatic logic [7:0] larger(input logic [7:0] a, input logic [7:0] b);
    larger = (a > b) ? a : b;
  endfunction
  logic [V-1:0] used;  // of the word that was read
  logic [N-1:0] due;
  always_comb begin
    due = due_q;
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
  logic head_end;
  assign head_end = state_q == HEAD && part_end && channel_last;
  always_ff @(posedge clk_i) begin
    if (!rst_ni || head_end) begin
      had_q <= '0;
      due_q <= '0;
    end else if (put) begin
      had_q[group_q[3:0]] <= 1'b1;
      due_q               <= due;
    end else if (state_q == HEAD && part_end) begin
      due_q <= due_q >> 1;
    end
    if (ask) valid_q <= had_q[word];
    lanes_v_q <= ask && state_q != AT;
    got_q     <= lanes_v_q;
    turn_q    <= (state_q == MERGE || read_end) ? turn_q + 5'(ask) : '0;
  end

  // A channel's header goes round once, and meets the words on its way, each from a register; it
  // was read where maxima of before count.
  logic [511:0] head_beat_q;
  logic [63:0]  head_used_q;
  logic [31:0]  merged;
  logic [39:0]  lanes;
  logic [35:0]  lanes_q;
  logic [3:0]   lanes_used, merged_used_q;
  always_comb begin
    lanes      = was[39:0];
    lanes_used = used[3:0];
    for (int c = 1; c < N; c++) begin
      if (channel_q == CW'(c)) begin
        lanes      = was[40*c+:40];
        lanes_used = used[4*c+:4];
      end
    end
    for (int l = 0; l < 4; l++) begin
      merged[8*l+:8] = lanes_q[9*l+8] ? lanes_q[9*l+:8] :
                       larger(lanes_q[9*l+:8], head_beat_q[8*l+:8]);
    end
  end
  always_ff @(posedge clk_i) begin
    if (lanes_v_q) begin
      for (int l = 0; l < 4; l++) lanes_q[9*l+:9] <= lanes[10*l+:9];
      merged_used_q <= lanes_used;
    end
    if (state_q == READ) head_beat_q <= rd_data_i;
    else if (got_q) head_beat_q <= {merged, head_beat_q[511:32]};
    if (got_q) head_used_q <= {merged_used_q, head_used_q[63:4]};
  end

  // ---- memory -----------------------------------------------------------------------------------
  // A beat is chosen while its job is asked for.
  logic [31:0]   place;
  logic [63:0]   elems_strb;
  logic [1023:0] elems;  // of the channel
  assign place       = (state_q == CODES) ? codes_q :
                       (state_q == ELEMS) ? elems_q + 32'(second_q) : head_q;
  assign elems_strb  = second_q ? {{32{mask_q[3]}}, {32{mask_q[2]}}} :
                       {{32{mask_q[1]}}, {32{mask_q[0]}}};
  always_comb begin
    elems = data_q[1023:0];
    for (int c = 1; c < N; c++) if (channel_q == CW'(c)) elems = data_q[1024*c+:1024];
  end
  assign rd_addr_o    = {window_q + {26'd0, head_q}, 6'd0};
  assign rd_beats_o   = 16'd1;
  assign job_addr_o   = {window_q + {26'd0, place}, 6'd0};
  assign job_beats_o  = 16'd1;
  assign job_strb_o   = (state_q == CODES) ? {60'd0, mask_q[3:0]} << {in_sec, 2'd0} :
                        (state_q == HEAD) ? head_used_q : elems_strb;
  assign data_valid_o = sent_q;
  always_ff @(posedge clk_i) begin
    if (job_valid_o) begin  // the last time when the job is taken
      data_o <= (state_q == CODES) ? {16{code_q[31:0]}} : (state_q == HEAD) ? head_beat_q :
                second_q ? elems[1023:512] : elems[511:0];
    end
  end

  always_ff @(posedge clk_i) begin
    done_o      <= 1'b0;
    err_valid_o <= 1'b0;
    if (!rst_ni) begin
      state_q     <= IDLE;
      sent_q      <= 1'b0;
      second_q    <= 1'b0;
      jobs_q      <= '0;
      job_valid_o <= 1'b0;
      rd_valid_o  <= 1'b0;
    end else begin
      unique case (state_q)
        IDLE: if (cmd_valid_i) state_q <= END;
        END: if (step_q == 2'd3) state_q <= (over_q > {7'd0, s_limit_i}) ? SKIP : SETS;
        SKIP: if (in_valid_i && in_last_i) begin
          state_q     <= IDLE;
          done_o      <= 1'b1;
          err_valid_o <= 1'b1;
        end
        SETS: if (in_valid_i) state_q <= AT;
        AT: if (step_q == 2'd3) state_q <= CODES;
        CODES: if (part_end) state_q <= ELEMS;
        ELEMS: if (part_end) state_q <= !channel_last ? CODES : !flush_q ? SETS : READ;
        READ: if (read_end) state_q <= MERGE;
        MERGE: if (merge_end) state_q <= HEAD;
        HEAD: if (part_end) state_q <= !channel_last ? READ : last_q ? ACKS : SETS;
        default: if (jobs_q == '0) begin
          state_q <= IDLE;
          done_o  <= 1'b1;
        end
      endcase
      // In CODES, ELEMS and HEAD until it is taken.
      job_valid_o <= job_valid_o ? !job_ready_i :
                     (state_q == AT && step_q == 2'd3) ||
                     merge_end ||
                     (beat_go && (state_q == CODES ||
                                  (state_q == ELEMS && !(second_q && channel_last))));
      // In READ until it is taken.
      rd_valid_o <= rd_valid_o ? !rd_ready_i :
                    part_end && (state_q == ELEMS ? channel_last && flush_q && due_here :
                                 state_q == HEAD && !channel_last && due_next);
      sent_q <= job_valid_o || (sent_q && !beat_go);  // of a job that is not taken, no beat is
      if (beat_go) second_q <= state_q == ELEMS && !second_q;
      jobs_q <= jobs_q + 10'(job_q) - 10'(job_done_i);
    end
    job_q   <= job_go;
    step_q  <= (state_q == END || state_q == AT) ? step_q + 2'd1 : '0;
  end

  always_ff @(posedge clk_i) begin
    if (cmd_valid_i && cmd_ready_o) begin
      off_q         <= cmd_off_i;
      group_beats_q <= mr_stash_pkg::group_beats(cmd_kblocks_i);
      group_q       <= cmd_groups_i;
    end
    if (take) begin
      data_q   <= in_data_i;
      code_q   <= in_code_i;
      group_q  <= in_group_i;
      kblock_q <= in_kblock_i;
      mask_q   <= in_mask_i;
      fresh_q  <= in_new_i;
      flush_q  <= in_flush_i;
      last_q   <= in_last_i;
    end else if (N > 1 && state_q == ELEMS && part_end) begin
      code_q <= code_q >> 32;
      mask_q <= mask_q >> 4;
    end
    over_q <= {1'b0, over} + {7'd0, off_q};
    if (state_q == AT && step_q == 2'd3) begin
      head_q  <= off_q + head[31:0];
      codes_q <= section;
      elems_q <= section + {27'd0, in_sec, 1'b0} + 32'd1;
    end
    if (take) begin
      channel_q <= '0;
      window_q  <= s_base_i[63:6];
    end else if (part_end && (state_q == ELEMS || state_q == HEAD)) begin
      channel_q <= channel_last ? '0 : channel_q + 1'b1;
      window_q  <= window_next_q;
    end
  end

  `MR_ASSERT_STABLE(in, in_valid_i, in_ready_o,
                    {in_data_i, in_code_i, in_group_i, in_kblock_i, in_mask_i, in_new_i,
                     in_flush_i, in_last_i})
  `MR_ASSERT_COUNT(jobs, jobs_q, job_q, job_done_i, 1023)

endmodule
