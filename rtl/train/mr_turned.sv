// SPDX-License-Identifier: Apache-2.0
// TURNED of MATMUL and of COPY: columns go to a matrix of the stash, in blocks along the rows.
// mr_turn makes the blocks and mr_stash_put writes them.
//
// Parameters
//   N  channels; V = 4 N columns a beat
//
// Ports
//   cmd_     pulse: a command; as many are inside as mr_epilogue has room for. Where the matrix
//            begins in the windows, its blocks a column, the block that row 0 is in; the first
//            column's group in its channel, groups a channel; rows. cmd_begin_i: from which of the
//            command's columns on maxima begin anew; bit 16: of none
//   take_i   pulse: a beat of it is taken, which comes some cycles later; room_o: it may be
//   b_       that beat: V floats of a token, its group, the command's last. Commands come one after
//            the other, tokens of a group in their order
//   done_o   pulse when all that a command writes is acknowledged, in the order of commands. err_
//            beside it, WINDOW: its matrix does not end inside, and nothing was written
//   busy_o   commands are inside, or done_o
//   s_, rd_, job_, data_   as mr_stash_put
//
// Timing: a beat a cycle, as long as writes keep up: 32 cycles a set of V columns and 32 rows, of
// fewer rows too.
`include "mr_assert.svh"
`include "mr_bundles.svh"
module mr_turned #(
  parameter int N = 1,
  localparam int V = 4 * N
) (
  input  logic            clk_i,
  input  logic            rst_ni,

  input  logic            cmd_valid_i,
  input  logic [31:0]     cmd_off_i,
  input  logic [15:0]     cmd_kblocks_i,
  input  logic [10:0]     cmd_at_i,
  input  logic [19:0]     cmd_first_i,
  input  logic [19:0]     cmd_groups_i,
  input  logic [16:0]     cmd_begin_i,
  input  logic [15:0]     cmd_rows_i,
  input  logic            take_i,
  output logic            room_o,
  input  logic            b_valid_i,
  input  logic [V*32-1:0] b_data_i,
  input  logic [15:0]     b_token_i,
  input  logic [15:0]     b_group_i,
  input  logic            b_last_i,
  output logic            done_o,
  output logic            err_valid_o,
  output logic [63:0]     err_addr_o,
  output logic            busy_o,

  `MR_STASH_S(s_),
  `MR_RD_M(rd_, 1),
  `MR_WR_M(, 1)
);

  localparam int LV = $clog2(V);
  localparam int COMMANDS = 8;
  localparam int BEATS = 64;  // taken and not in mr_turn: more than the epilogue's stages

  // ---- commands ---------------------------------------------------------------------------------
  localparam int CMD_W = 32 + 17 + 16 + 11 + 20 + 20;
  logic              c_valid, c_ready, p_ready, run_q;
  logic [CMD_W-1:0]  cmd, c;
  logic [31:0]       c_off;
  logic [16:0]       c_begin;
  logic [15:0]       c_kblocks;
  logic [10:0]       c_at;
  logic [19:0]       c_first, c_groups;
  logic [3:0]        c_count;
  logic [6:0]        used_q;         // beats that are taken and not in mr_turn
  // verilator lint_off UNUSED
  logic              unused_ready;   // there is room
  // verilator lint_on UNUSED
  assign cmd = {cmd_off_i, cmd_begin_i, cmd_kblocks_i, cmd_at_i, cmd_first_i,
                cmd_first_i + cmd_groups_i};
  assign {c_off, c_begin, c_kblocks, c_at, c_first, c_groups} = c;
  mr_fifo #(.W(CMD_W), .DEPTH(COMMANDS)) u_cmds (
    .clk_i, .rst_ni, .clear_i(1'b0),
    .in_valid_i(cmd_valid_i), .in_ready_o(unused_ready), .in_data_i(cmd),
    .out_valid_o(c_valid), .out_ready_i(done_o), .out_data_o(c), .count_o(c_count)
  );
  always_ff @(posedge clk_i) begin
    if (!rst_ni) run_q <= 1'b0;
    else if (c_valid && p_ready && !done_o) run_q <= 1'b1;
    else if (done_o) run_q <= 1'b0;
  end
  assign c_ready = c_valid && !run_q && !done_o;
  assign busy_o  = cmd_valid_i || c_count != '0 || used_q != '0 || done_o;

  // ---- beats, until mr_turn takes them ----------------------------------------------------------
  localparam int TAG = 16 + 11 + 1 + 1;  // group, k-block, last of its group, of its command
  logic [15:0]         rows_m1_q;
  logic                end_row, f_valid, f_ready, f_last, pop;
  logic [V*32-1:0]     f_data;
  logic [TAG-1:0]      f_tag, t_tag;
  // verilator lint_off UNUSED
  logic                f_unused_ready;  // used_q sees to it
  logic [6:0]          f_unused_count;
  // verilator lint_on UNUSED
  assign end_row = b_token_i == rows_m1_q;
  assign pop     = f_valid && f_ready;
  // take_i comes late, and asks for room_o: there are 64 places.
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      used_q <= '0;
      room_o <= 1'b1;
    end else begin
      used_q <= used_q + 7'(take_i) - 7'(pop);
      room_o <= pop || (!used_q[6] && (used_q[5:0] != 6'd63 || !take_i));
    end
    if (cmd_valid_i) rows_m1_q <= cmd_rows_i - 16'd1;
  end
  mr_fifo #(.W(V * 32 + 1 + TAG), .DEPTH(BEATS)) u_beats (
    .clk_i, .rst_ni, .clear_i(1'b0),
    .in_valid_i(b_valid_i), .in_ready_o(f_unused_ready),
    .in_data_i({b_data_i, end_row || &b_token_i[4:0], b_group_i, b_token_i[15:5], end_row,
                b_last_i}),
    .out_valid_o(f_valid), .out_ready_i(f_ready), .out_data_o({f_data, f_last, f_tag}),
    .count_o(f_unused_count)
  );

  // ---- blocks -----------------------------------------------------------------------------------
  logic             t_valid, t_ready, t_end, t_last;
  logic [V*256-1:0] t_data;
  logic [V*8-1:0]   t_code;
  logic [15:0]      t_group;
  logic [10:0]      t_kblock;
  mr_turn #(.V(V), .TAG(TAG)) u_turn (
    .clk_i, .rst_ni, .in_valid_i(f_valid), .in_ready_o(f_ready), .in_data_i(f_data),
    .in_last_i(f_last), .in_tag_i(f_tag), .out_valid_o(t_valid), .out_ready_i(t_ready),
    .out_data_o(t_data), .out_code_o(t_code), .out_tag_o(t_tag)
  );
  logic [19:0]      group;
  assign {t_group, t_kblock, t_end, t_last} = t_tag;
  assign group = c_first + {4'd0, t_group};
  logic [15:0]      new_group;  // that begins anew in a part of its columns
  logic [V-1:0]     fresh;
  assign new_group = c_begin[15:0] >> LV;
  assign fresh     = (c_begin[16] || t_group < new_group) ? '0 :
                     (t_group == new_group) ? {V{1'b1}} << c_begin[LV-1:0] : '1;

  mr_stash_put #(.N(N)) u_put (
    .clk_i, .rst_ni, .cmd_valid_i(c_ready), .cmd_ready_o(p_ready), .cmd_off_i(c_off),
    .cmd_kblocks_i(c_kblocks), .cmd_groups_i(c_groups), .done_o, .err_valid_o, .err_addr_o,
    .in_valid_i(t_valid), .in_ready_o(t_ready), .in_data_i(t_data), .elem_valid_i(1'b0),
    .elem_lane_i('0), .elem_data_i('0), .in_code_i(t_code),
    .in_group_i(group), .in_kblock_i({5'd0, c_at} + {5'd0, t_kblock}), .in_more_i(!t_end),
    .in_mask_i({V{1'b1}}),
    .in_new_i(fresh), .in_flush_i(t_end && (t_last || group[3:0] == '1)), .in_last_i(t_last),
    `MR_STASH_S_TO(s_, s_), `MR_RD_M_TO(rd_, rd_), `MR_WR_M_TO(, )
  );

  `MR_ASSERT_COUNT(used, used_q, take_i, pop, BEATS)

endmodule
