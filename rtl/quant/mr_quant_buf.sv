// SPDX-License-Identifier: Apache-2.0
//
// Gathers beats of floats into blocks of 32 and finds each block's scale code: a FIFO of beats and
// beside it a FIFO of {tag, code} of the blocks that are complete. Part of mr_quant.
//
// L: floats a beat, a divisor of 32 and at least 4. TAG: width of the tag. DEPTH: beats held, a
// power of two, at least one block and the four beats on their way.
//
// Timing: a beat is taken in each cycle with wr_valid_i; there is no ready, the writer keeps at
// most DEPTH beats between its writes and the reads. wr_last_i: the beat completes a block, tag_i
// is the block's. Four cycles later blk_valid_o with blk_code_o and blk_tag_o of the oldest
// complete block, until blk_pop_i. rd_i reads the oldest beat: rd_data_o in the next cycle, held
// while rd_i is low.
`include "mr_assert.svh"
module mr_quant_buf #(
    parameter int L = 4,
    parameter int TAG = 8,
    parameter int DEPTH = 16
) (
    input  logic            clk_i,
    input  logic            rst_ni,
    input  logic            wr_valid_i,
    input  logic            wr_last_i,
    input  logic [L*32-1:0] wr_data_i,
    input  logic [TAG-1:0]  tag_i,
    output logic            blk_valid_o,
    output logic [7:0]      blk_code_o,
    output logic [TAG-1:0]  blk_tag_o,
    input  logic            blk_pop_i,
    input  logic            rd_i,
    output logic [L*32-1:0] rd_data_o
);
  localparam int PTR = $clog2(DEPTH);
  localparam int PAIRS = L / 2;
  localparam int HALVES = L > 4 ? 2 : 1;
  localparam int HALF = PAIRS / HALVES;

  function automatic [7:0] max2(input [7:0] a, input [7:0] b);
    max2 = a > b ? a : b;
  endfunction

  // The largest exponent field: of two lanes, then of each half of the beat, then of the block.
  // Beats come from a memory, so the first step is one comparison; the second has at most three in
  // series, for 32 lanes.
  logic v1_q, v2_q, last1_q, last2_q, first_q, done_q;
  logic [L*32-1:0] data_q;
  logic [PAIRS*8-1:0] pair_q;
  logic [HALVES*8-1:0] half_q;
  logic [7:0] block_q, beat;
  logic [TAG-1:0] tag1_q, tag2_q, tag3_q;

  // Of up to eight codes.
  function automatic [7:0] max8(input [63:0] x);
    max8 = max2(max2(max2(x[7:0], x[15:8]), max2(x[23:16], x[31:24])),
                max2(max2(x[39:32], x[47:40]), max2(x[55:48], x[63:56])));
  endfunction

  assign beat = HALVES == 1 ? half_q[7:0] : max2(half_q[7:0], half_q[HALVES*8-1-:8]);

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      v1_q <= 1'b0;
      v2_q <= 1'b0;
      done_q <= 1'b0;
      first_q <= 1'b1;
    end else begin
      v1_q <= wr_valid_i;
      v2_q <= v1_q;
      done_q <= v2_q && last2_q;
      if (v2_q) first_q <= last2_q;
    end
  end

  always_ff @(posedge clk_i) begin
    if (wr_valid_i) begin
      last1_q <= wr_last_i;
      tag1_q <= tag_i;
      data_q <= wr_data_i;
      for (int p = 0; p < PAIRS; p++) begin
        pair_q[8*p+:8] <= max2(wr_data_i[64*p+55+:8], wr_data_i[64*p+23+:8]);
      end
    end
    if (v1_q) begin
      last2_q <= last1_q;
      tag2_q <= tag1_q;
      for (int h = 0; h < HALVES; h++) half_q[8*h+:8] <= max8(64'(pair_q[8*HALF*h+:8*HALF]));
    end
    if (v2_q) begin
      tag3_q <= tag2_q;
      block_q <= first_q ? beat : max2(block_q, beat);
    end
  end

  // Beats and blocks in order. Blocks never outnumber beats. No beat is read in the cycle in which
  // it is written: some block RAM could not do that alone.
  (* no_rw_check = 1 *)
  logic [L*32-1:0] beat_mem[0:DEPTH-1];
  logic [TAG+7:0] blk_mem[0:DEPTH-1];
  logic [PTR-1:0] wptr_q, rptr_q, bwptr_q, brptr_q;
  logic [PTR:0] blocks_q;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      wptr_q <= '0;
      rptr_q <= '0;
      bwptr_q <= '0;
      brptr_q <= '0;
      blocks_q <= '0;
    end else begin
      if (v1_q) wptr_q <= wptr_q + PTR'(1);
      if (rd_i) rptr_q <= rptr_q + PTR'(1);
      if (done_q) bwptr_q <= bwptr_q + PTR'(1);
      if (blk_pop_i) brptr_q <= brptr_q + PTR'(1);
      if (done_q && !blk_pop_i) blocks_q <= blocks_q + (PTR + 1)'(1);
      if (!done_q && blk_pop_i) blocks_q <= blocks_q - (PTR + 1)'(1);
    end
  end

  always_ff @(posedge clk_i) begin
    if (v1_q) beat_mem[wptr_q] <= data_q;
    if (rd_i) rd_data_o <= beat_mem[rptr_q];
    if (done_q) blk_mem[bwptr_q] <= {tag3_q, block_q};
  end

  `MR_ASSERT(apart, !(v1_q && rd_i) || wptr_q != rptr_q)

  assign blk_valid_o = blocks_q != '0;
  assign {blk_tag_o, blk_code_o} = blk_mem[brptr_q];
endmodule
