// SPDX-License-Identifier: Apache-2.0
// The epilogue's staging memory: gathers a unit, and sends it on when it is whole.
//
// Tokens come column group by column group; the quantiser wants a block of 32 columns of one token,
// and mr_writer a span of a row. So a token's words wait here until their unit, a block or a span,
// is complete. Blocks are sent to the quantiser from here; spans are read by mr_epi_out through
// this module's read port.
//
// Parameters: N, T, TRAIN as mr_epilogue.
//
// Ports
//   d_v_i, d_, val_i   at K_DST: a beat for the staging memory (d_stg_i), its address, and whether
//           it completes a unit (d_final_i) and a command (d_last_i)
//   u_      look-up of a unit's command in mr_epi_cmds: data in the next cycle, held
//   t_room_i   with TRAIN: a block of a command with u_tiles_i is sent on only if it is there.
//   t_take_o   pulse: a block begins; t_tiles_o: of such a command
//   q_      valid/ready, 32/V beats a block; the tag is mr_vec_pkg's
//   o_      a RESULT unit is at work (o_valid_o): the memory is mr_epi_out's, whose o_ren_i reads
//           the next word into o_rdata_o, and o_end_i ends it. o_take_o pulse: the next unit
//           begins, token and group beside it
//   blk_o, two_o   pulse: a block went out, in both passes; last_o pulse with out_o: a command's
//           last unit has gone out
//   rd_o    pulse, from a register: a unit has left in the cycle before
`include "mr_assert.svh"
`include "mr_bundles.svh"
module mr_epi_stage #(
  parameter int N = 1,
  parameter int T = 8,
  parameter int TRAIN = 0,
  localparam int V = 4 * N,
  localparam int SAW = $clog2(T * (64 / V))
) (
  input  logic                         clk_i,
  input  logic                         rst_ni,

  input  logic                         d_v_i,
  `MR_EPI_STG_S(),
  input  logic                         d_last_i,
  input  logic [15:0]                  d_tok_i,
  input  logic [15:0]                  d_grp_i,
  input  logic [V*32-1:0]              val_i,

  // With TRAIN.
  // verilator lint_off UNUSED
  `MR_EPI_U_M(u_),
  input  logic                         t_room_i,
  // verilator lint_on UNUSED
  output logic                         t_take_o,
  output logic                         t_tiles_o,

  output logic                         q_valid_o,
  input  logic                         q_ready_i,
  output logic [V*32-1:0]              q_data_o,
  output logic [mr_vec_pkg::TAG_W-1:0] q_tag_o,

  `MR_EPI_UNIT_M(o_),

  `MR_EPI_GONE_M()
);

  localparam int W64 = 64 / V;                 // words of 64 columns
  localparam int LW = $clog2(W64);
  localparam int WPU = (V < 32) ? 32 / V : 1;  // words of a block
  localparam int BPU = (V > 32) ? V / 32 : 1;  // blocks of a word
  localparam int DEPTH = T * W64;

  logic            stg_ren;
  logic [SAW-1:0]  stg_raddr;
  logic [V*32-1:0] stg_rdata;
  // mr_epi_take has no place for a beat before the unit that lies there has left.
  mr_ram_1r1w #(.W(V * 32), .DEPTH(DEPTH), .APART(1)) u_staging (
    .clk_i, .wen_i(d_v_i && d_stg_i), .waddr_i(d_stg_addr_i), .wdata_i(val_i),
    .ren_i(stg_ren), .raddr_i(stg_raddr), .rdata_o(stg_rdata)
  );

  logic        f_valid, f_take, f_last;
  logic [2:0]  f_idx;
  logic [15:0] f_tok, f_grp;
  // No more than JOBS units are inside.
  // verilator lint_off PINCONNECTEMPTY
  mr_fifo #(.W(36), .DEPTH(mr_epi_pkg::JOBS)) u_units (
    .clk_i, .rst_ni, .clear_i(1'b0),
    .in_valid_i(d_v_i && d_stg_i && d_final_i), .in_ready_o(),
    .in_data_i({d_last_i, d_idx_i, d_tok_i, d_grp_i}),
    .out_valid_o(f_valid), .out_ready_i(f_take), .out_data_o({f_last, f_idx, f_tok, f_grp}),
    .count_o()
  );
  // verilator lint_on PINCONNECTEMPTY

  // ---- units: read and sent on ------------------------------------------------------------------
  // A token's word of the staging memory.
  function automatic [SAW-1:0] stage_addr(input logic [15:0] tok, input logic [1:0] span,
                                          input logic [15:0] grp);
    stage_addr = SAW'(32'(tok) << (3'(LW) + 3'(span))) +
                 SAW'(grp & ((16'(W64) << span) - 16'd1));
  endfunction

  // Its command, read one cycle after the queue has it.
  logic        n_valid_q, n_load, n_last_q;
  logic [2:0]  n_idx_q, j_idx_q;
  logic [15:0] n_tok_q, n_grp_q;
  logic        j_take;
  assign n_load = f_valid && (!n_valid_q || j_take);
  assign f_take = n_load;
  always_ff @(posedge clk_i) begin
    if (!rst_ni) n_valid_q <= 1'b0;
    else if (n_load) n_valid_q <= 1'b1;
    else if (j_take) n_valid_q <= 1'b0;
  end
  always_ff @(posedge clk_i) begin
    if (n_load) begin
      n_last_q <= f_last;
      n_idx_q  <= f_idx;
      n_tok_q  <= f_tok;
      n_grp_q  <= f_grp;
    end
  end

  // The unit at work.
  logic                         j_valid_q, j_out_q, j_last_q, j_two_q;
  logic [SAW-1:0]               j_addr_q;   // next word
  logic [3:0]                   j_left_q;   // words of a block still to read
  logic [mr_vec_pkg::TAG_W-1:0] j_tag_q;
  logic                         ov_q;       // the memory's output register holds a beat for q_
  logic                         q_ren, q_end;
  logic [mr_vec_pkg::TAG_W-1:0] tag_q;
  logic                         unit_end;

  function automatic [mr_vec_pkg::TAG_W-1:0] tag_of(
      input logic qkv, input logic pmax, input logic two, input logic [1:0] region,
      input logic [15:0] base, input logic [15:0] tok, input logic [15:0] grp);
    logic [15:0] blk;
    begin
      blk = (V < 32) ? grp / 16'(WPU) : grp * 16'(BPU);
      tag_of = {1'b1, blk[11:0], pmax, qkv, blk[0], two ? {tok[14:0], 1'b0} : tok,
                qkv ? base + {1'b0, blk[15:1]} : base + blk, region, blk == '0};
    end
  endfunction

  assign unit_end = q_end || o_end_i;
  if (TRAIN != 0) begin : gen_tiles
    assign j_take    = n_valid_q && (!j_valid_q || unit_end) && (!u_tiles_i || t_room_i);
    assign t_take_o  = j_take && u_dst_i != mr_pkg::DST_RESULT[1:0];
    assign t_tiles_o = u_tiles_i;
  end else begin : gen_no_tiles
    assign j_take    = n_valid_q && (!j_valid_q || unit_end);
    assign {t_take_o, t_tiles_o} = '0;
  end
  assign q_ren    = j_valid_q && !j_out_q && (!ov_q || q_ready_i);
  assign q_end    = q_ren && (j_left_q == 4'd1);
  assign stg_ren   = q_ren || o_ren_i;
  assign stg_raddr = j_addr_q;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      j_valid_q <= 1'b0;
      ov_q      <= 1'b0;
      rd_o      <= 1'b0;
    end else begin
      if (j_take) j_valid_q <= 1'b1;
      else if (unit_end) j_valid_q <= 1'b0;
      if (q_ren) ov_q <= 1'b1;
      else if (q_ready_i) ov_q <= 1'b0;
      rd_o <= unit_end;
    end
  end
  always_ff @(posedge clk_i) begin
    if (j_take) begin
      j_out_q  <= (u_dst_i == mr_pkg::DST_RESULT[1:0]);
      j_last_q <= n_last_q;
      j_idx_q  <= n_idx_q;
      j_two_q  <= u_two_i;
      j_tag_q  <= tag_of(u_dst_i == mr_pkg::DST_QKV[1:0], u_pmax_i, u_two_i, u_slot_i, u_dbase_i,
                         n_tok_q, n_grp_q);
      j_left_q <= 4'(WPU);
      // A block's words end with the one that completed it; a span starts at its first.
      j_addr_q <= stage_addr(n_tok_q, u_span_i, (u_dst_i == mr_pkg::DST_RESULT[1:0]) ? 16'd0 :
                             n_grp_q & 16'(W64 - WPU));
    end else if (stg_ren) begin
      j_left_q <= j_left_q - 4'd1;
      j_addr_q <= j_addr_q + SAW'(1);
    end
    if (q_ren) tag_q <= j_tag_q;
  end
  assign q_valid_o = ov_q;
  assign q_data_o  = stg_rdata;
  assign q_tag_o   = tag_q;
  assign u_ren_o = n_load;
  assign u_idx_o = f_idx;

  // The memory's output register must be free of q_ beats before it is mr_epi_out's.
  assign o_take_o  = j_take;
  assign o_idx_o   = j_idx_q;
  assign o_tok_o   = n_tok_q;
  assign o_grp_o   = n_grp_q;
  assign o_valid_o = j_valid_q && j_out_q && !ov_q;
  assign o_rdata_o = stg_rdata;
  assign blk_o     = q_end;
  assign two_o     = j_two_q;
  assign last_o    = unit_end && j_last_q;
  assign out_o     = j_out_q;

  `MR_ASSERT(span, !(o_ren_i || o_end_i) || o_valid_o)
  `MR_ASSERT_STABLE(q, q_valid_o, q_ready_i, {q_data_o, q_tag_o})

endmodule
