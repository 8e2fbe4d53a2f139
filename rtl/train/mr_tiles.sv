// SPDX-License-Identifier: Apache-2.0
// MATMUL's TILES: the blocks that the quantiser makes for the command's destination go to matrices
// of rows in the stash too, a column a token. Block b of the result is block FIRST_KBLOCK + b of
// matrices of TILES_KBLOCKS, one behind the other; 4 N tokens of a block are a set of mr_stash_put.
//
// Parameters
//   N  channels, at most 8: with more two blocks of a token would come side by side
//
// Ports
//   cmd_     pulse: such a MATMUL is issued, with its rows; as many are inside as mr_epilogue has
//            room for
//   take_i   pulse: a block of it is sent to the quantiser, from where it comes later; room_o: it
//            may
//   b_       that block: {code, 32 elements}. Commands come one after the other, of a block all
//            tokens in their order
//   done_o   pulse when all that a command writes is acknowledged, in the order of commands. err_
//            beside it, WINDOW: a matrix that it has to do with does not end inside, and nothing
//            was written
//   busy_o   commands are inside, or done_o
//   s_, rd_, job_, data_   as mr_stash_put
//
// Timing: some 50 cycles a command before its first set, and one for each matrix.
`include "mr_assert.svh"
`include "mr_bundles.svh"
module mr_tiles #(
  parameter int N = 1
) (
  input  logic            clk_i,
  input  logic            rst_ni,

  input  logic            cmd_valid_i,
  // The fields of TILES have a meaning here.
  // verilator lint_off UNUSED
  input  logic [511:0]    cmd_i,
  // verilator lint_on UNUSED
  input  logic [15:0]     cmd_rows_i,
  input  logic            take_i,
  output logic            room_o,
  input  logic            b_valid_i,
  input  logic [263:0]    b_data_i,
  output logic            done_o,
  output logic            err_valid_o,
  output logic [63:0]     err_addr_o,
  output logic            busy_o,

  `MR_STASH_S(s_),
  `MR_RD_M(rd_, 1),
  `MR_WR_M(, 1)
);

  localparam int V = 4 * N;
  localparam int VW = $clog2(V);
  localparam int COMMANDS = 8;
  localparam int BLOCKS = 16;  // on their way from the staging memory, or waiting here

  // ---- commands ---------------------------------------------------------------------------------
  localparam int CMD_W = 32 + 16 * 6;
  logic             c_valid;
  logic [CMD_W-1:0] cmd, c;
  logic [31:0]      c_off;
  logic [15:0]      c_kblocks, c_first, c_blocks_m1, c_cols, c_row, c_rows_m1;
  logic [3:0]       c_count;
  // There is room.
  // verilator lint_off UNUSED
  logic             unused_ready;
  // verilator lint_on UNUSED
  assign cmd = {cmd_i[mr_pkg::MATMUL_TILES_OFF_LSB+:32],
                cmd_i[mr_pkg::MATMUL_TILES_KBLOCKS_LSB+:16],
                cmd_i[mr_pkg::MATMUL_FIRST_KBLOCK_LSB+:16],
                cmd_i[mr_pkg::MATMUL_COLS_LSB+5+:16] - 16'd1,
                cmd_i[mr_pkg::MATMUL_ALL_COLS_LSB+:16], cmd_i[mr_pkg::MATMUL_AT_ROW_LSB+:16],
                cmd_rows_i - 16'd1};
  assign {c_off, c_kblocks, c_first, c_blocks_m1, c_cols, c_row, c_rows_m1} = c;
  mr_fifo #(.W(CMD_W), .DEPTH(COMMANDS)) u_cmds (
    .clk_i, .rst_ni, .clear_i(1'b0),
    .in_valid_i(cmd_valid_i), .in_ready_o(unused_ready), .in_data_i(cmd),
    .out_valid_o(c_valid), .out_ready_i(done_o), .out_data_o(c), .count_o(c_count)
  );

  // DIV: which matrix the first block is of. SIZE: beats of a matrix. MUL: where that one begins.
  // ENDS: where the last one ends. PUT, SETS: a matrix after the other. SKIP: blocks go nowhere.
  localparam logic [3:0] IDLE = 4'd0, DIV = 4'd1, SIZE = 4'd2, MUL = 4'd3, ENDS = 4'd4, PUT = 4'd5,
                         SETS = 4'd6, ACKS = 4'd7, SKIP = 4'd8;
  logic [3:0]  state_q;
  logic [3:0]  step_q;
  logic [15:0] matrix_q, block_q;   // of DIV quotient and remainder; then the block of its matrix
  logic [55:0] at_q, end_q, part_q; // beats from the windows' beginning
  logic [37:0] size_q, over;
  logic [17:0] left_q;               // blocks behind end_q, counted from the matrix' beginning
  logic        last_q;               // the matrix at work is the command's last
  logic        bad, ends, p_ready, p_done, set_go, row_end, matrix_end, command_end;
  logic [16:0] rest;
  assign rest = {block_q, matrix_q[15]} - {1'b0, c_kblocks};
  assign ends = left_q[17] || left_q == '0;
  assign bad  = end_q > {24'd0, s_limit_i};
  // The end alone is asked for.
  // verilator lint_off UNUSED
  logic [37:0] unused_head, unused_group;
  // verilator lint_on UNUSED
  // A matrix' last block, groups of it in a channel and beats of one, known long before DIV ends.
  logic [19:0] groups_q;
  logic [17:0] group_beats_q;
  logic [15:0] kblocks_m1_q;
  always_ff @(posedge clk_i) begin
    kblocks_m1_q  <= c_kblocks - 16'd1;
    groups_q      <= {4'd0, c_cols} >> VW;
    group_beats_q <= mr_stash_pkg::group_beats(c_kblocks);
  end
  mr_tiles_at u_at (
    .clk_i, .group_i(groups_q), .beats_i(group_beats_q), .head_o(unused_head),
    .group_o(unused_group), .end_o(over)
  );

  // ---- blocks: tokens side by side until they are a set -----------------------------------------
  logic [4:0]       used_q;
  logic             f_valid, pop;
  logic [263:0]     f_data;
  logic [15:0]      token_q, blocks_q;  // blocks_q: those behind this one
  logic             set_q;
  logic [V*8-1:0]   code_q;
  logic [V-1:0]     mask_q;
  logic             elem_q;             // a block's elements go to mr_stash_put
  logic [VW-1:0]    elem_lane_q;
  logic [255:0]     elem_data_q;
  logic [15:0]      col, set_col_q;
  logic             end_row_q;          // the set has the last token
  // verilator lint_off UNUSED
  logic             f_unused_ready;
  logic [4:0]       f_unused_count;
  // verilator lint_on UNUSED
  mr_fifo #(.W(264), .DEPTH(BLOCKS)) u_blocks (
    .clk_i, .rst_ni, .clear_i(1'b0),
    .in_valid_i(b_valid_i), .in_ready_o(f_unused_ready),  // used_q sees to it
    .in_data_i(b_data_i),
    .out_valid_o(f_valid), .out_ready_i(pop), .out_data_o(f_data), .count_o(f_unused_count)
  );
  assign room_o  = !used_q[4];
  assign busy_o  = cmd_valid_i || c_count != '0 || used_q != '0 || done_o;
  assign col     = c_row + token_q;
  assign row_end = token_q == c_rows_m1;
  // Of the next command no block is taken before this one is done.
  assign pop     = f_valid && ((state_q == SETS && (!set_q || (set_go && !command_end))) ||
                               state_q == SKIP);
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      used_q  <= '0;
      set_q   <= 1'b0;
      token_q <= '0;
    end else begin
      used_q <= used_q + 5'(take_i) - 5'(pop);
      if (pop && state_q == SETS && (row_end || &col[VW-1:0])) set_q <= 1'b1;
      else if (set_go) set_q <= 1'b0;
      if (pop) token_q <= row_end ? '0 : token_q + 16'd1;
    end
    if (set_go || state_q == IDLE) mask_q <= '0;  // those of SKIP do not count
    if (pop) begin
      for (int l = 0; l < V; l++) begin
        if (col[VW-1:0] == VW'(l)) begin
          code_q[8*l+:8] <= f_data[263:256];
          mask_q[l]      <= 1'b1;
        end
      end
      set_col_q   <= col;
      end_row_q   <= row_end;
      elem_lane_q <= col[VW-1:0];
      elem_data_q <= f_data[255:0];
    end
    elem_q <= pop;
  end

  // ---- sets -------------------------------------------------------------------------------------
  logic [15:0] group;
  logic [11:0] first_header;
  logic        under_next;  // the next set is under another header
  assign group        = set_col_q >> VW;
  assign first_header = 12'(c_row >> (VW + 4));
  assign matrix_end   = end_row_q && block_q == kblocks_m1_q;
  assign command_end  = end_row_q && blocks_q == '0;
  assign under_next   = end_row_q ? first_header != group[15:4] : group[3:0] == '1;

  always_ff @(posedge clk_i) begin
    done_o      <= 1'b0;
    err_valid_o <= 1'b0;
    if (!rst_ni) begin
      state_q <= IDLE;
    end else begin
      unique case (state_q)
        IDLE: if (c_valid && !done_o) state_q <= DIV;
        DIV: if (step_q == 4'd15) state_q <= SIZE;
        SIZE: if (step_q == 4'd3) state_q <= MUL;
        MUL: if (step_q == 4'd15) state_q <= ENDS;
        ENDS: if (ends) state_q <= bad ? SKIP : PUT;
        PUT: if (p_ready) state_q <= SETS;
        SETS: if (set_go && (matrix_end || command_end)) state_q <= ACKS;
        ACKS: if (p_done) begin
          state_q <= last_q ? IDLE : PUT;
          done_o  <= last_q;
        end
        default: if (pop && row_end && blocks_q == '0) begin
          state_q     <= IDLE;
          done_o      <= 1'b1;
          err_valid_o <= 1'b1;
        end
      endcase
    end
    step_q <= (state_q == DIV || state_q == SIZE || state_q == MUL) &&
              !(state_q == SIZE && step_q == 4'd3) ? step_q + 4'd1 : '0;
  end
  always_ff @(posedge clk_i) begin
    unique case (state_q)
      IDLE: begin
        matrix_q <= c_first;
        block_q  <= '0;
        blocks_q <= c_blocks_m1;
      end
      DIV: begin
        block_q  <= rest[16] ? {block_q[14:0], matrix_q[15]} : rest[15:0];
        matrix_q <= {matrix_q[14:0], !rest[16]};
      end
      SIZE: begin
        size_q <= over;
        at_q   <= {24'd0, c_off};
        part_q <= {18'd0, over};
        left_q <= {2'd0, block_q} + {2'd0, c_blocks_m1} + 18'd1;
      end
      MUL: begin
        if (matrix_q[0]) at_q <= at_q + part_q;
        part_q   <= part_q << 1;
        matrix_q <= matrix_q >> 1;
        end_q    <= matrix_q[0] ? at_q + part_q : at_q;
      end
      ENDS: if (!ends) begin
        end_q  <= end_q + {18'd0, size_q};
        left_q <= left_q - {2'd0, c_kblocks};
      end
      SETS: if (set_go) begin
        last_q <= command_end;
        if (end_row_q) begin
          block_q  <= block_q + 16'd1;
          blocks_q <= blocks_q - 16'd1;
        end
      end
      ACKS: if (p_done) begin
        block_q <= '0;
        at_q    <= at_q + {18'd0, size_q};
      end
      default: if (pop && row_end) blocks_q <= blocks_q - 16'd1;  // SKIP; else nothing comes
    endcase
  end
  assign err_addr_o = {s_base_i[63:6] + {26'd0, c_off}, 6'd0};

  // The matrices were looked at above.
  // verilator lint_off UNUSED
  logic        unused_err;
  logic [63:0] unused_addr;
  // verilator lint_on UNUSED
  logic p_take;
  assign set_go = set_q && p_take && state_q == SETS;
  mr_stash_put #(.N(N), .ALONE(1)) u_put (
    .clk_i, .rst_ni, .cmd_valid_i(state_q == PUT), .cmd_ready_o(p_ready), .cmd_off_i(at_q[31:0]),
    .cmd_kblocks_i(c_kblocks), .cmd_groups_i(groups_q), .done_o(p_done), .err_valid_o(unused_err),
    .err_addr_o(unused_addr), .in_valid_i(set_q && state_q == SETS), .in_ready_o(p_take),
    .in_data_i('0), .elem_valid_i(elem_q), .elem_lane_i(elem_lane_q), .elem_data_i(elem_data_q),
    .in_code_i(code_q), .in_group_i({4'd0, group}), .in_kblock_i(block_q),
    .in_more_i(1'b0), .in_mask_i(mask_q), .in_new_i({V{block_q == '0}}),
    .in_flush_i(matrix_end || command_end || under_next), .in_last_i(matrix_end || command_end),
    `MR_STASH_S_TO(s_, s_), `MR_RD_M_TO(rd_, rd_), `MR_WR_M_TO(, )
  );

  `MR_ASSERT(state, state_q <= SKIP)
  `MR_ASSERT_COUNT(used, used_q, take_i, pop, BLOCKS)

endmodule
