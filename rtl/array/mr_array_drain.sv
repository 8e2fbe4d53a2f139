// SPDX-License-Identifier: Apache-2.0
// Drain of the array: moves the shadows into the result FIFO (a memory slice in each channel, the
// pointers here) and presents one token a beat with what belongs to it.
//
// Parameters
//   N   channels; R  token rows; DF  depth of the FIFO in tokens (power of two)
//   FOLD  cycles of a step (mr_array_ch): the sums are there FOLD - 1 cycles later than said below
//   GRAD  1: meta_grad_i and flags_i, two bits a channel, go with the results
//
// A row group's description (meta_) comes in cycle f+2 of its last step (see mr_array_ctrl), its
// sums are in the shadows from f+9 on. meta_n_i slots are taken in consecutive cycles; with
// meta_pair_i two slots are added to one token. The controller has reserved FIFO space and the
// shadows, so nothing here ever refuses. meta_credit_o: a token has left the FIFO's memory.
//
// Timing: dr_valid_o and all dr_* from registers, stable while dr_valid_o && !dr_ready_i; first
// beat 13 cycles after the last step's fire (one more with meta_pair_i), then one a cycle. busy_o:
// from the first slot taken to the last beat.
`include "mr_assert.svh"
`include "mr_bundles.svh"
module mr_array_drain #(
  parameter int N = 1,
  parameter int R = 4,
  parameter int DF = 32,
  parameter int FOLD = 1,
  parameter int GRAD = 0
) (
  input  logic                  clk_i,
  input  logic                  rst_ni,
  `MR_ARRAY_OUT_S(meta_),
  input  logic [       R*8-1:0] rmax_i,
  input  logic [      N*32-1:0] cmax_i,
  output logic                  busy_o,
  // the channels' shadows and memories
  `MR_ARRAY_SHADOW_M(),
  input  logic [     N*192-1:0] rdata_i,
  input  logic [       N*2-1:0] flags_i,
  // results
  `MR_DR_M(dr_),
  output logic                  dr_grad_o,
  output logic [           1:0] dr_flags_o
);

  localparam int C = 4 * N;
  localparam int FW = $clog2(DF);
  localparam int MW = 35 + R * 8 + C * 40 + (GRAD != 0 ? 1 : 0);  // meta_grad_i is the highest bit

  // ---- descriptions of row groups in flight -----------------------------------------------------
  // Every row group in flight holds at least one token of credit, so DF entries are enough.
  logic [FW-1:0] mw_q, mr_q;
  logic meta_ren;
  logic [MW-1:0] meta;
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      mw_q <= '0;
      mr_q <= '0;
    end else begin
      if (meta_valid_i) mw_q <= mw_q + 1'b1;
      if (meta_ren) mr_q <= mr_q + 1'b1;
    end
  end
  mr_ram_1r1w #(.W(MW), .DEPTH(DF)) u_meta (
    .clk_i, .wen_i(meta_valid_i), .waddr_i(mw_q),
    .wdata_i(MW'({meta_grad_i, meta_bias_i, cmax_i, rmax_i, meta_group_i, meta_token_i,
             meta_pair_i, meta_fp4_i, meta_last_i})),
    .ren_i(meta_ren), .raddr_i(mr_q), .rdata_o(meta)
  );

  // ---- emptying the shadows ---------------------------------------------------------------------
  // {pair, slots} of a row group travels beside its last step: from f+2 to f+8, the cycle of
  // capture.
  localparam int PW = 7 * (5 + FOLD);
  logic [PW-1:0] pipe_q;
  logic cap, pair_q, odd_q, push_q, endf_q;
  logic [5:0] slots_q;  // slots left
  logic [5:0] slot_q;   // row of the next one
  assign cap = (pipe_q[PW-2-:6] != 6'd0);
  always_ff @(posedge clk_i) begin
    if (!rst_ni) pipe_q <= '0;
    else pipe_q <= {pipe_q[PW-8:0], meta_pair_i, meta_n_i};
  end

  assign take_o = (slots_q != 6'd0);
  assign add_o = odd_q;
  assign row_o = slot_q;
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      slots_q <= 6'd0;
      push_q  <= 1'b0;
      waddr_o <= '0;
    end else begin
      if (cap) slots_q <= pipe_q[PW-2-:6];
      else if (take_o) slots_q <= slots_q - 6'd1;
      push_q <= take_o && (!pair_q || odd_q);
      if (push_q) waddr_o <= waddr_o + 1'b1;
    end
  end
  always_ff @(posedge clk_i) begin
    if (cap) begin
      pair_q <= pipe_q[PW-1];
      odd_q  <= 1'b0;
      slot_q <= 6'd0;
    end else if (take_o) begin
      odd_q  <= pair_q && !odd_q;
      slot_q <= slot_q + 6'd1;
    end
    if (take_o) endf_q <= (slots_q == 6'd1);
  end
  assign wen_o = push_q;

  // One bit a token beside the memories: the last one of its row group.
  logic [DF-1:0] end_q;
  always_ff @(posedge clk_i) begin
    if (push_q) end_q[waddr_o] <= endf_q;
  end

  // ---- reading the FIFO -------------------------------------------------------------------------
  logic [FW:0] count_q;  // tokens in the memory
  logic a_valid_q, a_end_q, a_start_q, out_go;
  assign out_go        = !dr_valid_o || dr_ready_i;
  assign ren_o         = (count_q != '0) && (!a_valid_q || out_go);
  assign meta_credit_o = ren_o;
  assign busy_o        = take_o || count_q != '0 || a_valid_q || dr_valid_o;
  // The token that was read last tells whether the next one belongs to another row group.
  assign meta_ren = ren_o && a_end_q;
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      count_q   <= '0;
      raddr_o   <= '0;
      a_valid_q <= 1'b0;
      a_end_q   <= 1'b1;
    end else begin
      if (push_q && !ren_o) count_q <= count_q + 1'b1;
      if (ren_o && !push_q) count_q <= count_q - 1'b1;
      if (ren_o) begin
        raddr_o   <= raddr_o + 1'b1;
        a_valid_q <= 1'b1;
        a_end_q   <= end_q[raddr_o];
      end else if (out_go) begin
        a_valid_q <= 1'b0;
      end
    end
  end
  always_ff @(posedge clk_i) begin
    if (ren_o) a_start_q <= a_end_q;
  end

  // ---- output -----------------------------------------------------------------------------------
  localparam int RM = 35;
  localparam int CM = RM + R * 8;
  localparam int BM = CM + C * 8;

  logic [5:0] row;  // row of the token's (first) slot
  logic [5:0] row_q;
  assign row = a_start_q ? 6'd0 : row_q;

  function automatic logic [7:0] pick(input logic [R*8-1:0] all, input logic [5:0] r);
    pick = 8'(all >> {r, 3'd0});
  endfunction
  function automatic logic [8:0] add9(input logic [7:0] a, input logic [7:0] b);
    add9 = {1'b0, a} + {1'b0, b};
  endfunction

  always_ff @(posedge clk_i) begin
    if (!rst_ni) dr_valid_o <= 1'b0;
    else if (out_go) dr_valid_o <= a_valid_q;
  end
  always_ff @(posedge clk_i) begin
    if (out_go && a_valid_q) begin
      for (int c = 0; c < C; c++) begin
        dr_base_o[9*c+:9] <= add9(pick(meta[RM+:R*8], row), meta[CM+8*c+:8]);
        dr_nan_o[c] <= (&pick(meta[RM+:R*8], row)) || (&meta[CM+8*c+:8]);
      end
      dr_acc_o   <= rdata_i;
      dr_bias_o  <= meta[BM+:C*32];
      dr_token_o <= a_start_q ? meta[18:3] : dr_token_o + 16'd1;
      dr_group_o <= meta[34:19];
      dr_fp4_o   <= meta[1];
      dr_last_o  <= meta[0] && a_end_q;
      row_q      <= row + (meta[2] ? 6'd2 : 6'd1);
    end
  end

  if (GRAD != 0) begin : gen_grad
    always_ff @(posedge clk_i) begin
      if (out_go && a_valid_q) begin
        dr_grad_o  <= meta[MW-1];
        dr_flags_o <= '0;
        for (int n = 0; n < N; n++) begin
          if (flags_i[2*n]) dr_flags_o[0] <= 1'b1;
          if (flags_i[2*n+1]) dr_flags_o[1] <= 1'b1;
        end
      end
    end
  end else begin : gen_no_grad
    assign dr_grad_o  = 1'b0;
    assign dr_flags_o = '0;
    logic unused;
    assign unused = ^{meta_grad_i, flags_i};
  end

  `MR_ASSERT(shadows, !cap || slots_q <= 6'd1)
  `MR_ASSERT_COUNT(tokens, count_q, push_q, ren_o, DF)
  `MR_ASSERT_STABLE(dr, dr_valid_o, dr_ready_i,
                    {dr_acc_o, dr_base_o, dr_nan_o, dr_bias_o, dr_token_o, dr_group_o, dr_fp4_o,
                     dr_last_o, dr_grad_o, dr_flags_o})

endmodule
