// SPDX-License-Identifier: Apache-2.0
// Takes the array's results, a beat (a token's next C columns) a cycle, and knows where each goes.
//
// A beat is taken when there is a command for it and a place in the staging memory, or, for a
// residual command, when the one before is written. What is taken runs through mr_epi_lanes without
// a stall; its token, group and destination wait here and come out beside it.
//
// Parameters: N, T, D_MAX, TRAIN as mr_epilogue.
//
// Ports
//   c_      the command at work: mr_epi_cmds'
//   room_i   with TRAIN: a beat is taken only if there is room for what c_turned_i (bit 0) and
//           c_keep_i (1) leave, and what c_slope_i (2) needs
//   dr_     valid/ready and token, group and last of the beat, as mr_array; dr_ready_o depends on
//           registers only
//   take_o  the beat is taken; beside it its word in the head and the lanes of it that rotate
//   v_i     stages K_PICK-3 to K_PICK hold a beat (mr_epi_lanes)
//   p_      at K_PICK-1: it goes to the residual, and where. p_read_o, with TRAIN: such a beat is
//           there and its word is read, from a register
//   second_o, set_o   with TRAIN: of the residual command whose beats are inside. There is one at a
//           time, since the next one's beats wait until it is written
//   d_      at K_DST: destination (residual, or staging and its address), first group of its row,
//           last beat of its command, completes a unit, track its exponent, number of the command
//   rd_i    pulse, from a register: in the cycle before a unit has left the staging memory
//   fin_i   pulse: a residual command is written
`include "mr_assert.svh"
`include "mr_bundles.svh"
module mr_epi_take #(
  parameter int N = 1,
  parameter int T = 8,
  parameter int D_MAX = 64,
  parameter int TRAIN = 0,
  localparam int V = 4 * N,
  localparam int RESW = $clog2(T * (D_MAX / V)),
  localparam int SAW = $clog2(T * (64 / V)),
  localparam int PW = $clog2(2 * T + 1)
) (
  input  logic            clk_i,
  input  logic            rst_ni,

  // With TRAIN.
  // verilator lint_off UNUSED
  `MR_EPI_C_S(c_, PW),
  input  logic [2:0]      room_i,
  // verilator lint_on UNUSED

  input  logic            dr_valid_i,
  output logic            dr_ready_o,
  input  logic [15:0]     dr_token_i,
  input  logic [15:0]     dr_group_i,
  input  logic            dr_last_i,
  output logic            take_o,
  output logic [15:0]     head_word_o,
  output logic [6:0]      rotate_o,

  input  logic [3:0]      v_i,
  `MR_EPI_RES_M(),
  `MR_EPI_STG_M(),
  output logic            d_last_o,
  output logic [15:0]     d_tok_o,
  output logic [15:0]     d_grp_o,
  output logic            second_o

);

  localparam int W64 = 64 / V;                 // words of 64 columns
  localparam int LW = $clog2(W64);
  localparam int WPU = (V < 32) ? 32 / V : 1;  // words of a block
  localparam int RES_TOK = D_MAX / V;

  // ---- beats ------------------------------------------------------------------------------------
  logic        staged, final_w, tok_last, side_ok;
  logic [1:0]  p_dst_q;         // of the beat at K_PICK - 2
  logic [15:0] w_mask;          // last word of the unit
  logic [15:0] hw_q;            // word inside the head
  assign staged   = TRAIN != 0 ? c_staged_i : (c_dst_i != mr_pkg::DST_RES[1:0]);
  assign take_o   = dr_valid_i && dr_ready_o;
  assign c_end_o  = c_valid_i && (c_empty_i || (take_o && dr_last_i));
  assign tok_last = (dr_token_i == c_rows_m1_i);
  // (W64 << c_span_i) - 1, without a subtraction: the span is 0 to 2.
  assign w_mask   = (c_dst_i == mr_pkg::DST_RESULT[1:0]) ?
                    (16'(W64 - 1) << c_span_i) | {14'd0, c_span_i[1], c_span_i != 2'd0} :
                    16'(WPU - 1);
  assign final_w  = ((w_mask & ~dr_group_i) == '0) || (dr_group_i == c_groups_m1_i);

  mr_epi_place #(.T(T), .TRAIN(TRAIN)) u_place (
    .clk_i, .rst_ni, .c_valid_i, .c_empty_i, .c_staged_i(staged), .c_fn_i, .c_change_i, .c_room_i,
    .side_i(side_ok), .ready_o(dr_ready_o), .take_i(take_o), .tok_last_i(tok_last),
    .final_i(final_w), .last_i(dr_last_i), .rd_i, .res_i(fin_i)
  );

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      hw_q <= '0;
    end else if (take_o) begin
      if (dr_last_i) hw_q <= '0;
      else if (tok_last) hw_q <= (hw_q == c_head_m1_i) ? '0 : hw_q + 16'd1;
    end
  end

  if (TRAIN != 0) begin : gen_second
    assign side_ok = (!c_turned_i || room_i[0]) && (!c_keep_i || room_i[1]) &&
                     (!c_slope_i || room_i[2]);
    always_ff @(posedge clk_i) begin
      if (take_o && !staged) {second_o, set_o} <= {c_second_i, c_set_i};
      p_read_o <= rst_ni && v_i[1] && p_dst_q == mr_pkg::DST_RES[1:0] && !set_o;
    end
  end else begin : gen_one
    assign side_ok = 1'b1;
    assign {second_o, set_o, p_read_o} = 3'b000;
  end

  // Lanes of word hw of a head that rotate.
  function automatic [6:0] rot_lanes(input logic [15:0] dim, input logic [15:0] hw);
    logic [16:0] left;
    begin
      left = {1'b0, dim} - 17'(hw * 16'(V));
      if (left[16]) rot_lanes = 7'd0;
      else if (left >= 17'(V)) rot_lanes = 7'(V);
      else rot_lanes = left[6:0];
    end
  endfunction
  assign head_word_o = hw_q;
  assign rotate_o    = rot_lanes(c_rot_dim_i, hw_q);

  // ---- what goes beside the data: written here, read when its beat is at K_PICK - 3 -------------
  localparam int E_W = 2 + 1 + 2 + 1 + 1 + 3 + 16 + 16;
  logic [E_W-1:0] ring [0:31];
  logic [4:0]     wptr_q, rptr_q;
  always_ff @(posedge clk_i) begin
    if (take_o) begin
      ring[wptr_q] <= {c_dst_i, c_track_i, c_span_i, dr_last_i, final_w, c_idx_i, dr_token_i,
                       dr_group_i};
    end
  end
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      wptr_q <= '0;
      rptr_q <= '0;
    end else begin
      if (take_o) wptr_q <= wptr_q + 5'd1;
      if (v_i[0]) rptr_q <= rptr_q + 5'd1;
    end
  end

  // p_: at K_PICK - 2; p2_ and the residual's address: at K_PICK - 1; p3_: at K_PICK; d_: at K_DST.
  logic            p_track_q, p_last_q, p_final_q;
  logic [1:0]      p_span_q;
  logic [2:0]      p_idx_q;
  logic [15:0]     p_tok_q, p_grp_q;
  logic            p2_stg_q, p2_track_q, p2_last_q, p2_final_q, p2_first_q;
  logic [2:0]      p2_idx_q;
  logic [15:0]     p2_tok_q, p2_grp_q;
  logic [SAW-1:0]  p2_stg_addr_q;
  localparam int D_W = 6 + 3 + 16 + 16 + RESW + SAW;
  logic [D_W-1:0]  p3_q;

  // A token's word of the staging memory.
  function automatic [SAW-1:0] stage_addr(input logic [15:0] tok, input logic [1:0] span,
                                          input logic [15:0] grp);
    stage_addr = SAW'(32'(tok) << (3'(LW) + 3'(span))) +
                 SAW'(grp & ((16'(W64) << span) - 16'd1));
  endfunction

  always_ff @(posedge clk_i) begin
    if (v_i[0]) begin
      {p_dst_q, p_track_q, p_span_q, p_last_q, p_final_q, p_idx_q, p_tok_q, p_grp_q} <=
          ring[rptr_q];
    end
    if (v_i[1]) begin
      p_res_o       <= (p_dst_q == mr_pkg::DST_RES[1:0]);
      p2_stg_q      <= (p_dst_q != mr_pkg::DST_RES[1:0]);
      p2_track_q    <= p_track_q;
      p2_last_q     <= p_last_q;
      p2_final_q    <= p_final_q;
      p2_first_q    <= (p_grp_q == '0);
      p2_idx_q      <= p_idx_q;
      p2_tok_q      <= p_tok_q;
      p2_grp_q      <= p_grp_q;
      p_res_addr_o  <= RESW'(32'(p_tok_q) * RES_TOK + 32'(p_grp_q));
      p2_stg_addr_q <= stage_addr(p_tok_q, p_span_q, p_grp_q);
    end
    if (v_i[2]) begin
      p3_q <= {p_res_o, p2_stg_q, p2_track_q, p2_last_q, p2_final_q, p2_first_q, p2_idx_q, p2_tok_q,
               p2_grp_q, p_res_addr_o, p2_stg_addr_q};
    end
    if (v_i[3]) begin
      {d_res_o, d_stg_o, d_track_o, d_last_o, d_final_o, d_first_o, d_idx_o, d_tok_o, d_grp_o,
       d_res_addr_o, d_stg_addr_o} <= p3_q;
    end
  end

  `MR_ASSERT(beside, !v_i[0] || rptr_q != wptr_q)

endmodule
