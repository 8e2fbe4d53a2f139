// SPDX-License-Identifier: Apache-2.0
// The epilogue's commands, from their configuration to done.
//
// A MATMUL waits here in order, is given to the drain side while its beats are taken, is looked up
// by the staging side for each of its units, and is done when all that came of it is stored. Up to
// eight are inside.
//
// Parameters: N, T, TRAIN as mr_epilogue.
//
// Ports
//   cmd_, cfg_rows_i  valid/ready with the command, its rows and the run's flags: see mr_epilogue
//   c_      the command whose beats are taken, its fields from registers. c_valid_o: there is one;
//           c_end_i pulse: its last beat is taken (or it has none), the next one may be there in
//           the following cycle. c_empty_o: it has no rows; c_change_o: it is staged in another
//           layout than the staged one before it. c_idx_o is its number. span: columns of a RESULT
//           unit, log2 less 6; head_m1: words of a head less 1; room: units that fit the staging
//           memory. second .. slope: fields ROW .. SLOPE, with TRAIN. turned_o: of each number
//   u_      look-up by number u_idx_i under u_ren_i, held from the next cycle on. tiles: with TRAIN
//   blk_i (two_i: both passes), job_i   pulses: blocks went to the quantiser, a write job to
//           mr_writer; blk_ack_i, job_ack_i: they are stored
//   last_i  pulse, out_i: the command's last unit has gone out, by job or (blk_i in the same cycle
//           or before) as blocks
//   res_i   pulse: a residual command is written
//   bad_i   pulse: something of command bad_idx_i could not be stored
//   side_   see rtl/spec/bundles.def
//   done_o  pulse per command, in order; err_o beside it: bad_i or side_bad_i came for the command.
//           err_side_o: it is the side's address that counts
`include "mr_assert.svh"
`include "mr_bundles.svh"
module mr_epi_cmds #(
  parameter int N = 1,
  parameter int T = 8,
  parameter int TRAIN = 0,
  localparam int V = 4 * N,
  localparam int PW = $clog2(2 * T + 1)
) (
  input  logic              clk_i,
  input  logic              rst_ni,

  `MR_CMD_S(),
  input  logic [15:0]       cfg_rows_i,
  input  logic              two_pass_i,
  input  logic              train_i,
  input  logic              side_ok_i,
  input  logic [1:0]        side_bad_i,
  output logic              side_next_o,

  `MR_EPI_C_M(c_, PW),
  output logic              c_bias_o,
  output logic [7:0]        turned_o,

  `MR_EPI_U_S(u_),
  `MR_EPI_TO_M(u_),

  `MR_EPI_GONE_S(),
  input  logic              blk_ack_i,
  input  logic              job_i,
  input  logic              job_ack_i,
  input  logic              res_i,
  input  logic              bad_i,
  input  logic [2:0]        bad_idx_i,
  output logic              err_o,
  output logic              err_side_o
);

  logic [31:0] cols;
  logic [15:0] rotary_dim, head_lanes;
  logic [1:0]  dst;
  assign cols       = cmd_i[mr_pkg::MATMUL_COLS_LSB+:32];
  assign dst        = cmd_i[mr_pkg::MATMUL_DST_LSB+:2];
  assign rotary_dim = cmd_i[mr_pkg::MATMUL_ROTARY_DIM_LSB+:16];
  assign head_lanes = cmd_i[mr_pkg::MATMUL_HEAD_LANES_LSB+:16];

  localparam int BPU = (V > 32) ? V / 32 : 1;  // blocks of a word
  localparam int UNITS = (V > 32) ? 1 : 2;     // blocks (or pairs) a token in the staging memory

  // A command's entry lives from cfg to done: wr_q, cur_q (being drained), fr_q (oldest not done).
  // Memories for the drain side and for the staging side, bits for the end.
  localparam int CD_W = 2 + 2 + 1 + 2 + 3 + 16 * 4 + PW;
  localparam int CU_W = 2 + 2 + 2 + 2 + 16 + 32 * 3;
  logic [CD_W-1:0] cfg_d_mem [0:7];
  logic [CU_W-1:0] cfg_u_mem [0:7];
  logic [7:0]      cfg_res_q, cfg_out_q, cfg_empty_q;
  logic [3:0]      wr_q, cur_q, fr_q;
  logic            push;
  assign cmd_ready_o = (wr_q - fr_q) != 4'd8;
  assign push        = cmd_valid_i && cmd_ready_o;

  // RESULT: columns of a span, log2 less 6.
  function automatic [1:0] span_of(input logic [15:0] rows);
    if (32'(rows) * 4 <= T) span_of = 2'd2;
    else if (32'(rows) * 2 <= T) span_of = 2'd1;
    else span_of = 2'd0;
  endfunction
  function automatic [31:0] min32(input logic [31:0] a, input logic [31:0] b);
    min32 = (a < b) ? a : b;
  endfunction

  // How units lie in the staging memory: {RESULT, span, rows}; of the last staged command.
  logic [18:0] layout, layout_q;
  assign layout = (dst == mr_pkg::DST_RESULT[1:0]) ? {1'b1, span_of(cfg_rows_i), cfg_rows_i} :
                  {3'b0, cfg_rows_i};
  always_ff @(posedge clk_i) begin
    if (!rst_ni) layout_q <= '0;
    else if (push && dst != mr_pkg::DST_RES[1:0] && cfg_rows_i != '0) layout_q <= layout;
  end

  always_ff @(posedge clk_i) begin
    if (push) begin
      cfg_d_mem[wr_q[2:0]] <= {
        cfg_rows_i == '0, layout != layout_q, dst,
        cmd_i[mr_pkg::MATMUL_TRACK_EXP_LSB] && (dst == mr_pkg::DST_RES[1:0]),
        (dst == mr_pkg::DST_RESULT[1:0]) ? span_of(cfg_rows_i) : 2'd0,
        cmd_i[mr_pkg::MATMUL_BIAS_LSB], cmd_i[mr_pkg::MATMUL_FUNCTION_LSB+:2],
        cmd_i[mr_pkg::MATMUL_ROTARY_LSB] ? rotary_dim : 16'd0, (head_lanes / 16'(V)) - 16'd1,
        cfg_rows_i - 16'd1, 16'(cols / V) - 16'd1,
        (dst == mr_pkg::DST_RESULT[1:0] || UNITS == 1) ? PW'(cfg_rows_i) :
            PW'({cfg_rows_i[14:0], 1'b0})};
      cfg_u_mem[wr_q[2:0]] <= {
        dst, cmd_i[mr_pkg::MATMUL_DST_SLOT_LSB+:2],
        (dst == mr_pkg::DST_RESULT[1:0]) ? span_of(cfg_rows_i) : 2'd0,
        cmd_i[mr_pkg::MATMUL_PREFIX_MAX_LSB] && (dst == mr_pkg::DST_QKV[1:0]), two_pass_i,
        cmd_i[mr_pkg::MATMUL_DST_BASE_LSB+:16],
        min32(cmd_i[mr_pkg::MATMUL_OUT_COLS_LSB+:32], cols),
        cmd_i[mr_pkg::MATMUL_OUT_OFF_LSB+:32], cmd_i[mr_pkg::MATMUL_OUT_STRIDE_LSB+:32]};
      cfg_res_q[wr_q[2:0]]   <= (dst == mr_pkg::DST_RES[1:0]);
      cfg_out_q[wr_q[2:0]]   <= (dst == mr_pkg::DST_RESULT[1:0]);
      cfg_empty_q[wr_q[2:0]] <= (cfg_rows_i == '0);
    end
  end

  // The command that is being drained, loaded when the one before has given its last beat.
  logic       c_valid_q, c_load;
  logic [3:0] c_next;
  assign c_next = c_valid_q ? cur_q + 4'd1 : cur_q;
  assign c_load = (!c_valid_q || c_end_i) && (c_next != wr_q);
  always_ff @(posedge clk_i) begin
    if (c_load) begin
      {c_empty_o, c_change_o, c_dst_o, c_track_o, c_span_o, c_bias_o, c_fn_o, c_rot_dim_o,
       c_head_m1_o, c_rows_m1_o, c_groups_m1_o, c_room_o} <= cfg_d_mem[c_next[2:0]];
    end
  end
  if (TRAIN != 0) begin : gen_second
    logic [7:0] second_q, set_q, turned_q, tiles_q, keep_q, slope_q;
    always_ff @(posedge clk_i) begin
      if (push) begin
        {second_q[wr_q[2:0]], set_q[wr_q[2:0]], turned_q[wr_q[2:0]]} <=
            {train_i && cmd_i[mr_pkg::MATMUL_ROW_LSB], train_i && cmd_i[mr_pkg::MATMUL_SET_LSB],
             train_i && cmd_i[mr_pkg::MATMUL_TURNED_LSB]};
      end
      if (c_load) begin
        {c_second_o, c_set_o, c_turned_o} <=
            {second_q[c_next[2:0]], set_q[c_next[2:0]], turned_q[c_next[2:0]]};
      end
    end
    always_ff @(posedge clk_i) begin
      if (push) begin
        {tiles_q[wr_q[2:0]], keep_q[wr_q[2:0]], slope_q[wr_q[2:0]]} <=
            {train_i && cmd_i[mr_pkg::MATMUL_TILES_LSB],
             train_i && cmd_i[mr_pkg::MATMUL_KEEP_SLOPE_LSB],
             train_i && cmd_i[mr_pkg::MATMUL_SLOPE_LSB]};
      end
      if (c_load) begin
        {c_keep_o, c_slope_o} <= {keep_q[c_next[2:0]], slope_q[c_next[2:0]]};
        c_staged_o <= !cfg_res_q[c_next[2:0]];
      end
      if (u_ren_i) u_tiles_o <= tiles_q[u_idx_i];
    end
    assign turned_o = turned_q;
  end else begin : gen_one
    assign {c_second_o, c_set_o, c_turned_o, c_keep_o, c_slope_o, c_staged_o, turned_o,
            u_tiles_o} = '0;
  end
  assign c_valid_o = c_valid_q;
  assign c_idx_o   = cur_q[2:0];
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      wr_q      <= '0;
      cur_q     <= '0;
      c_valid_q <= 1'b0;
    end else begin
      if (push) wr_q <= wr_q + 4'd1;
      if (c_end_i) cur_q <= cur_q + 4'd1;
      if (c_load) c_valid_q <= 1'b1;
      else if (c_end_i) c_valid_q <= 1'b0;
    end
  end

  // The command of a unit that the staging side sends on.
  always_ff @(posedge clk_i) begin
    if (u_ren_i) begin
      {u_dst_o, u_slot_o, u_span_o, u_pmax_o, u_two_o, u_dbase_o, u_ocols_o, u_ooff_o,
       u_ostride_o} <= cfg_u_mem[u_idx_i];
    end
  end

  // ---- done -------------------------------------------------------------------------------------
  // Blocks and jobs are counted modulo 2^24 when they go out and when they are acknowledged; a
  // command is stored when the acknowledgements reach the count at its last unit.
  logic [23:0] blk_out_q, blk_ack_q, job_out_q, job_ack_q, blk_next;
  logic [23:0] mark_mem [0:7];
  logic [2:0]  mark_w_q, mark_r_q;
  logic [3:0]  mark_n_q, res_fin_q;
  logic [7:0]  bad_q;
  logic        fr_res, fr_out, fr_empty, fr_none, reached, fr_done;
  logic [23:0] fr_mark;
  // Only the sign counts.
  // verilator lint_off UNUSED
  logic [23:0] fr_ahead;
  // verilator lint_on UNUSED
  assign fr_res    = cfg_res_q[fr_q[2:0]];
  assign fr_out    = cfg_out_q[fr_q[2:0]];
  assign fr_empty  = cfg_empty_q[fr_q[2:0]];
  assign fr_none   = (fr_q == cur_q);
  assign blk_next  = blk_out_q + (two_i ? 24'(2 * BPU) : 24'(BPU));
  assign fr_mark   = mark_mem[mark_r_q];
  // Ahead of the mark, or at it, modulo 2^24.
  assign fr_ahead  = (fr_out ? job_ack_q : blk_ack_q) - fr_mark;
  assign reached   = (mark_n_q != '0) && !fr_ahead[23];
  assign fr_done   = !fr_none && (fr_empty || (fr_res ? (res_fin_q != '0) : reached)) && side_ok_i;

  assign side_next_o = TRAIN != 0 && train_i && fr_done;
  always_ff @(posedge clk_i) err_side_o <= side_bad_i[1] || (side_bad_i[0] && !bad_q[fr_q[2:0]]);

  always_ff @(posedge clk_i) begin
    if (last_i) mark_mem[mark_w_q] <= out_i ? job_out_q : blk_next;
  end
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      fr_q      <= '0;
      done_o    <= 1'b0;
      err_o     <= 1'b0;
      bad_q     <= '0;
      blk_out_q <= '0;
      blk_ack_q <= '0;
      job_out_q <= '0;
      job_ack_q <= '0;
      mark_w_q  <= '0;
      mark_r_q  <= '0;
      mark_n_q  <= '0;
      res_fin_q <= '0;
    end else begin
      done_o <= fr_done;
      err_o  <= fr_done && (bad_q[fr_q[2:0]] || side_bad_i != '0);
      if (push) bad_q[wr_q[2:0]] <= 1'b0;
      if (bad_i) bad_q[bad_idx_i] <= 1'b1;
      if (fr_done) fr_q <= fr_q + 4'd1;
      if (blk_i) blk_out_q <= blk_next;
      blk_ack_q <= blk_ack_q + 24'(blk_ack_i);
      job_out_q <= job_out_q + 24'(job_i);
      job_ack_q <= job_ack_q + 24'(job_ack_i);
      if (last_i) mark_w_q <= mark_w_q + 3'd1;
      if (fr_done && !fr_empty && !fr_res) mark_r_q <= mark_r_q + 3'd1;
      mark_n_q  <= mark_n_q + 4'(last_i) - 4'(fr_done && !fr_empty && !fr_res);
      res_fin_q <= res_fin_q + 4'(res_i) - 4'(fr_done && !fr_empty && fr_res);
    end
  end

  `MR_ASSERT(last_beat, !c_end_i || c_valid_q)
  `MR_ASSERT_COUNT(marks, mark_n_q, last_i, fr_done && !fr_empty && !fr_res, 8)
  `MR_ASSERT_COUNT(sums, res_fin_q, res_i, fr_done && !fr_empty && fr_res, 8)
  `MR_ASSERT(blocks, 24'(blk_out_q - blk_ack_q) >= 24'(blk_ack_i))
  `MR_ASSERT(jobs, 24'(job_out_q - job_ack_q) >= 24'(job_ack_i))

endmodule
