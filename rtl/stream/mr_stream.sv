// SPDX-License-Identifier: Apache-2.0
// Weight stream of one channel: FIFO, splitter, MX decode, tile ring, tile FIFO, LayerNorm vectors.
//
// Parameters
//   FIFO_DEPTH  beats; the reader's W_DEPTH
//   RING        k-rows in the tile ring, a power of two
//   TILES       entries of the tile FIFO (column groups)
//   VEC_WORDS   4-float words of gain (and of bias) per channel: D_MAX / (4 N),
//               rounded up to a multiple of 4
//   PART        1: parts of matrices, see mr_splitter
//
// Beats: w_valid_i with w_data_i, never refused; w_credit_o is a pulse for each beat that left the
// FIFO.
// Command: valid/ready (ready is a register and high while no command is in work); the format is
// that of docs/inside/commands.md, per channel: cmd_vec_beats_i beats of gain and as many of bias,
// or cmd_groups_i column groups of cmd_kblocks_i k-blocks. cmd_done_o: pulse two cycles after the
// command's last beat left the FIFO, when everything of it can be read. A command with a zero count
// is done at once. One beat a cycle, whatever its kind, while there is ring space; one idle cycle
// between commands.
//
// Vectors: vec_ren_i with vec_raddr_i (word w: floats 4w..4w+3 of the channel's share; gain from 0,
// bias from VEC_WORDS) in cycle t, vec_rdata_o in t+2; held when no later read was made. Beats
// beyond VEC_WORDS are dropped.
//
// Ring: ring_count_o is the number of k-rows written since reset modulo 2^16; k-row n lies at
// address n mod RING and a read in the cycle in which ring_count_o first covers it returns it. RAM
// port: data in t+1, held. ring_free_i pulse: the oldest k-row is free (may come in the cycle after
// its last read was issued, or in the same one). ring_rdata_o: byte 32 c + e is element e of column
// c; ring_rcode_o: byte c is column c's scale code.
//
// Tiles: tile_valid_o with tile_max_o (byte c: maximum code of column c) and tile_bias_o (fp32 of
// column c in bits 32c..; zero without bias), the oldest group not popped yet; tile_pop_i is taken
// only with tile_valid_o. The entry of a group is in the FIFO before its first k-row is counted.
//
// Reset drops everything. After a flush of the reader it comes before the reader goes on.
`include "mr_assert.svh"
`include "mr_bundles.svh"
module mr_stream #(
  parameter int FIFO_DEPTH = 256,
  parameter int RING = 1024,
  parameter int TILES = 64,
  parameter int VEC_WORDS = 1024,
  parameter int PART = 0
) (
  input  logic                           clk_i,
  input  logic                           rst_ni,

  input  logic                           w_valid_i,
  input  logic [511:0]                   w_data_i,
  output logic                           w_credit_o,

  `MR_SP_S(cmd_, 1),

  `MR_RAM_R_S(vec_, $clog2(2*VEC_WORDS), 128),

  `MR_TILE_M(, 1, $clog2(RING))

);

  localparam int RW = $clog2(RING);
  localparam int VEC_BEATS = VEC_WORDS / 4;
  localparam int VW = $clog2(2 * VEC_BEATS);

  // ---- FIFO -------------------------------------------------------------------------------------
  logic beat_valid, take;
  logic [511:0] beat;
  logic credit_q;
  logic unused_ready;
  logic [$clog2(FIFO_DEPTH+1)-1:0] unused_count;
  mr_fifo #(.W(512), .DEPTH(FIFO_DEPTH)) u_fifo (
    .clk_i, .rst_ni, .clear_i(1'b0),
    .in_valid_i(w_valid_i), .in_ready_o(unused_ready),  // credits: never full with a beat coming
    .in_data_i(w_data_i),
    .out_valid_o(beat_valid), .out_ready_i(take), .out_data_o(beat), .count_o(unused_count)
  );
  always_ff @(posedge clk_i) begin
    if (!rst_ni) credit_q <= 1'b0;
    else credit_q <= take;
  end
  assign w_credit_o = credit_q;

  // ---- what the beat is -------------------------------------------------------------------------
  logic is_vec, vec_bias, is_head, is_bias, is_scale, is_group, is_data, is_row, hi, fp4, has_bias;
  logic [15:0] vec_index;
  logic full_q, tile_space, done;
  logic [3:0] row_at, group_at;
  mr_splitter #(.PART(PART)) u_splitter (
    .clk_i, .rst_ni, .cmd_valid_i, .cmd_ready_o, .cmd_vec_i, .cmd_vec_beats_i, .cmd_fp4_i,
    .cmd_bias_i, .cmd_kblocks_i, .cmd_groups_i, .cmd_first_i, .cmd_in_head_i, .done_o(done),
    .beat_valid_i(beat_valid), .beat_take_o(take), .ring_space_i(!full_q),
    .tile_space_i(tile_space), .vec_o(is_vec), .vec_bias_o(vec_bias), .vec_index_o(vec_index),
    .head_o(is_head), .bias_o(is_bias), .scale_o(is_scale), .group_o(is_group), .data_o(is_data),
    .row_o(is_row), .hi_o(hi), .fp4_o(fp4), .has_bias_o(has_bias), .row_at_o(row_at),
    .group_at_o(group_at)
  );
  if (PART == 0) begin : gen_whole
    logic unused;
    assign unused = ^{row_at, group_at};
  end

  // Everything is written one cycle after the beat was taken, so done is late by one more.
  logic done_q;
  always_ff @(posedge clk_i) begin
    if (!rst_ni) done_q <= 1'b0;
    else done_q <= done;
  end
  assign cmd_done_o = done_q;

  // ---- header and scale codes: kept as they came, with an index of the next one to use ---------
  // Not shifted: a wide register that depends on itself is copied in every simulated cycle.
  logic [511:0] max_q, scale_q;
  logic [511:0] bias_mem [0:3];
  logic [1:0] bias_w_q;  // next beat of the biases
  logic [3:0] group_q;   // inside the header
  logic [3:0] row_k_q;   // inside the section
  always_ff @(posedge clk_i) begin
    if (is_head) max_q <= beat;
    if (is_scale) scale_q <= beat;
    if (is_bias) bias_mem[bias_w_q] <= beat;
  end
  always_ff @(posedge clk_i) begin
    if (is_head) begin
      bias_w_q <= '0;
      group_q  <= (PART != 0) ? group_at : '0;
    end
    if (is_bias) bias_w_q <= bias_w_q + 1'b1;
    if (is_group) group_q <= group_q + 1'b1;
    if (is_scale) row_k_q <= (PART != 0) ? row_at : '0;
    if (is_row) row_k_q <= row_k_q + 1'b1;
  end
  logic [127:0] group_bias;
  always_comb begin
    unique case (group_q[1:0])
      2'd0:    group_bias = bias_mem[group_q[3:2]][127:0];
      2'd1:    group_bias = bias_mem[group_q[3:2]][255:128];
      2'd2:    group_bias = bias_mem[group_q[3:2]][383:256];
      default: group_bias = bias_mem[group_q[3:2]][511:384];
    endcase
    if (!has_bias) group_bias = '0;
  end

  // ---- tile FIFO --------------------------------------------------------------------------------
  logic [$clog2(TILES+1)-1:0] unused_tiles;
  mr_fifo #(.W(160), .DEPTH(TILES)) u_tiles (
    .clk_i, .rst_ni, .clear_i(1'b0),
    .in_valid_i(is_group), .in_ready_o(tile_space), .in_data_i({group_bias, max_q[32*group_q+:32]}),
    .out_valid_o(tile_valid_o), .out_ready_i(tile_pop_i), .out_data_o({tile_bias_o, tile_max_o}),
    .count_o(unused_tiles)
  );

  // ---- ring -------------------------------------------------------------------------------------
  logic [RW:0] used_q;     // k-rows taken and not freed
  logic [15:0] count_q;    // k-rows written
  logic row_q;
  logic [1023:0] row_data_q;
  logic [31:0] row_code_q;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      used_q  <= '0;
      full_q  <= 1'b0;
      count_q <= '0;
      row_q   <= 1'b0;
    end else begin
      row_q <= is_row;
      if (row_q) count_q <= count_q + 16'd1;
      if (is_row && !ring_free_i) begin
        used_q <= used_q + 1'b1;
        full_q <= (used_q == (RW + 1)'(RING - 1));
      end else if (ring_free_i && !is_row) begin
        used_q <= used_q - 1'b1;
        full_q <= 1'b0;
      end
    end
  end
  `MR_ASSERT_COUNT(ring, used_q, is_row, ring_free_i, RING)

  always_ff @(posedge clk_i) begin
    if (is_data) begin
      if (fp4) row_data_q <= mr_mx_pkg::fp4_beat(beat);
      else if (hi) row_data_q[1023:512] <= beat;
      else row_data_q[511:0] <= beat;
      row_code_q <= scale_q[32*row_k_q+:32];
    end
  end

  // The array reads rows below count_q, and frees one when it has read it.
  mr_ram_1r1w #(.W(1024), .DEPTH(RING), .APART(1)) u_ring (
    .clk_i, .wen_i(row_q), .waddr_i(count_q[RW-1:0]), .wdata_i(row_data_q),
    .ren_i(ring_ren_i), .raddr_i(ring_raddr_i), .rdata_o(ring_rdata_o)
  );
  mr_ram_1r1w #(.W(32), .DEPTH(RING), .APART(1)) u_codes (
    .clk_i, .wen_i(row_q), .waddr_i(count_q[RW-1:0]), .wdata_i(row_code_q),
    .ren_i(ring_ren_i), .raddr_i(ring_raddr_i), .rdata_o(ring_rcode_o)
  );
  assign ring_count_o = count_q;

  // ---- LayerNorm vectors ------------------------------------------------------------------------
  logic vec_wen_q, vec_ren_q;
  logic [VW-1:0] vec_waddr_q;
  logic [511:0] vec_wdata_q, vec_rword;
  logic [1:0] vec_lane_q;
  always_ff @(posedge clk_i) begin
    if (!rst_ni) vec_wen_q <= 1'b0;
    else vec_wen_q <= is_vec && 32'(vec_index) < VEC_BEATS;
  end
  always_ff @(posedge clk_i) begin
    if (is_vec) begin
      vec_wdata_q <= beat;
      vec_waddr_q <= VW'(32'(vec_index) + (vec_bias ? VEC_BEATS : 0));
    end
  end
  // A semaphore stands between STREAM_VEC and LAYERNORM (docs/inside/commands.md).
  mr_ram_1r1w #(.W(512), .DEPTH(2 * VEC_BEATS), .APART(1)) u_vec (
    .clk_i, .wen_i(vec_wen_q), .waddr_i(vec_waddr_q), .wdata_i(vec_wdata_q),
    .ren_i(vec_ren_i), .raddr_i(vec_raddr_i[VW+1:2]), .rdata_o(vec_rword)
  );
  always_ff @(posedge clk_i) begin
    if (!rst_ni) vec_ren_q <= 1'b0;
    else vec_ren_q <= vec_ren_i;
  end
  always_ff @(posedge clk_i) begin
    if (vec_ren_i) vec_lane_q <= vec_raddr_i[1:0];
    if (vec_ren_q) begin
      unique case (vec_lane_q)
        2'd0:    vec_rdata_o <= vec_rword[127:0];
        2'd1:    vec_rdata_o <= vec_rword[255:128];
        2'd2:    vec_rdata_o <= vec_rword[383:256];
        default: vec_rdata_o <= vec_rword[511:384];
      endcase
    end
  end

endmodule
