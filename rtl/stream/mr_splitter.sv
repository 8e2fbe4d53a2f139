// SPDX-License-Identifier: Apache-2.0
// Says what each beat of the weight stream is (docs/inside/commands.md, "Weight stream"), one beat
// a cycle.
// Control only: the data goes around it.
//
// Parameters
//   SECTION  k-blocks that share a beat of scale codes (16), a power of two
//   HEADER   column groups that share a header (16), a power of two
//   KW, GW   widths of the k-block and group counts (less only in proofs)
//   PART     1: cmd_first_i and cmd_in_head_i count
//
// Command: valid/ready; cmd_ready_o is a register. A command with nothing to do (no beats, no
// groups or no k-blocks) takes no beat and is done at once. done_o is a pulse in the cycle after
// the command's last beat was taken.
//
// With PART a command may be a part of a matrix without biases: its groups begin inside a section,
// at block cmd_first_i of it, and the first group is number cmd_in_head_i of its header. The beats
// of a group are then those from the first section's scale codes on. Elements before the first
// block are taken with no strobe, whatever the space. row_at_o, with scale_o: the block in its
// section that comes next. group_at_o, with head_o: the group in its header that does.
//
// Beats: beat_valid_i says that a beat is there, beat_take_o that it is taken in this cycle; the
// kind strobes are high only with beat_take_o, exactly one of them:
//   vec_o (vec_bias_o, vec_index_o: gain or bias, index of the beat), head_o, bias_o,
//   scale_o (group_o: it is the group's first, so the group's tile entry is due), data_o.
// With data_o: row_o, the beat completes its k-row; hi_o, it is the second beat of an MXINT8 row. A
// data beat is taken only with ring_space_i (there is a free k-row), a group's first scale beat
// only with tile_space_i. fp4_o, has_bias_o: of the command in work.
`include "mr_assert.svh"
module mr_splitter #(
  parameter int SECTION = 16,
  parameter int HEADER = 16,
  parameter int KW = 16,
  parameter int GW = 32,
  parameter int PART = 0
) (
  input  logic          clk_i,
  input  logic          rst_ni,

  input  logic          cmd_valid_i,
  output logic          cmd_ready_o,
  input  logic          cmd_vec_i,
  input  logic [KW-1:0] cmd_vec_beats_i,
  input  logic          cmd_fp4_i,
  input  logic          cmd_bias_i,
  input  logic [KW-1:0] cmd_kblocks_i,
  input  logic [GW-1:0] cmd_groups_i,
  input  logic [$clog2(SECTION)-1:0] cmd_first_i,
  input  logic [$clog2(HEADER)-1:0] cmd_in_head_i,
  output logic          done_o,

  input  logic          beat_valid_i,
  output logic          beat_take_o,
  input  logic          ring_space_i,
  input  logic          tile_space_i,

  output logic          vec_o,
  output logic          vec_bias_o,
  output logic [KW-1:0] vec_index_o,
  output logic          head_o,
  output logic          bias_o,
  output logic          scale_o,
  output logic          group_o,
  output logic          data_o,
  output logic          row_o,
  output logic          hi_o,
  output logic          fp4_o,
  output logic          has_bias_o,
  output logic [$clog2(SECTION)-1:0] row_at_o,
  output logic [$clog2(HEADER)-1:0] group_at_o
);

  localparam int SW = $clog2(SECTION);
  localparam int HW = $clog2(HEADER);

  localparam logic [2:0] Idle = 3'd0;
  localparam logic [2:0] Vec = 3'd1;
  localparam logic [2:0] Head = 3'd2;
  localparam logic [2:0] Bias = 3'd3;
  localparam logic [2:0] Scale = 3'd4;
  localparam logic [2:0] Data = 3'd5;

  logic [2:0] state_q, state_d;
  logic [KW-1:0] kblocks_q;    // of a group
  logic [KW-1:0] k_left_q;     // k-blocks of the group, from the current one
  logic [GW-1:0] groups_q;     // groups of the command, from the current one
  logic [SW-1:0] in_sec_q;     // k-block inside its section
  logic [HW-1:0] in_head_q;    // group inside its header
  logic [1:0] bias_q;          // beat of the four
  logic fp4_q, has_bias_q, hi_q, vec_bias_q, first_q, done_q;

  logic blocked, k_last, sec_last, group_end, cmd_empty, cmd_take, vec_last, finish;
  assign blocked     = (state_q == Data && !skip && !ring_space_i) ||
                       (first_q && state_q == Scale && !tile_space_i);
  assign beat_take_o = beat_valid_i && state_q != Idle && !blocked;
  assign vec_o       = beat_take_o && state_q == Vec;
  assign head_o      = beat_take_o && state_q == Head;
  assign bias_o      = beat_take_o && state_q == Bias;
  assign scale_o     = beat_take_o && state_q == Scale;
  assign group_o     = scale_o && first_q;
  assign data_o      = beat_take_o && state_q == Data && !skip;
  assign row_o       = data_o && (fp4_q || hi_q);
  assign hi_o        = hi_q;
  assign fp4_o       = fp4_q;
  assign has_bias_o  = has_bias_q;
  assign vec_bias_o  = vec_bias_q;
  assign vec_index_o = kblocks_q - k_left_q;
  assign cmd_ready_o = (state_q == Idle);
  assign done_o      = done_q;

  assign k_last    = (k_left_q == KW'(1));
  assign sec_last  = (in_sec_q == SW'(SECTION - 1));
  assign group_end = row_o && k_last;
  assign vec_last  = vec_o && k_last && vec_bias_q;
  assign finish    = vec_last || (group_end && groups_q == GW'(1));
  assign cmd_empty = cmd_vec_i ? cmd_vec_beats_i == '0 :
                       (cmd_kblocks_i == '0 || cmd_groups_i == '0);
  assign cmd_take  = cmd_valid_i && cmd_ready_o;

  // A part: where its groups begin, and beats of a group that are left to be dropped.
  logic [SW-1:0] first_blk;
  logic          skip;
  if (PART != 0) begin : gen_part
    logic [SW-1:0] first_blk_q;
    logic [SW:0]   skip_q;
    assign first_blk  = first_blk_q;
    assign skip       = skip_q != '0;
    assign row_at_o   = first_q ? first_blk_q : '0;
    assign group_at_o = in_head_q;
    always_ff @(posedge clk_i) begin
      if (cmd_take) first_blk_q <= cmd_vec_i ? '0 : cmd_first_i;
      if (cmd_take) skip_q <= '0;
      else if (group_o) skip_q <= {first_blk_q, 1'b0};
      else if (beat_take_o && skip) skip_q <= skip_q - 1'b1;
    end
  end else begin : gen_whole
    assign {first_blk, skip, row_at_o, group_at_o} = '0;
    logic unused;
    assign unused = ^{cmd_first_i, cmd_in_head_i};
  end

  always_comb begin
    state_d = state_q;
    unique case (state_q)
      Idle:    if (cmd_valid_i && !cmd_empty) state_d = cmd_vec_i ? Vec : Head;
      Vec:     if (vec_last) state_d = Idle;
      Head:    if (head_o) state_d = has_bias_q ? Bias : Scale;
      Bias:    if (bias_o && bias_q == 2'd3) state_d = Scale;
      Scale:   if (scale_o) state_d = Data;
      Data: begin
        if (finish) state_d = Idle;
        else if (group_end) state_d = (in_head_q == HW'(HEADER - 1)) ? Head : Scale;
        else if (row_o && sec_last) state_d = Scale;
      end
      default: state_d = Idle;
    endcase
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      state_q <= Idle;
      done_q  <= 1'b0;
    end else begin
      state_q <= state_d;
      done_q  <= finish || (cmd_take && cmd_empty);
    end
  end

  always_ff @(posedge clk_i) begin
    if (cmd_take) begin
      kblocks_q  <= cmd_vec_i ? cmd_vec_beats_i : cmd_kblocks_i;
      k_left_q   <= cmd_vec_i ? cmd_vec_beats_i : cmd_kblocks_i;
      groups_q   <= cmd_groups_i;
      fp4_q      <= cmd_fp4_i;
      has_bias_q <= cmd_bias_i;
      vec_bias_q <= 1'b0;
      in_sec_q   <= (PART != 0) ? cmd_first_i : '0;
      in_head_q  <= (PART != 0) ? cmd_in_head_i : '0;
      bias_q     <= '0;
      hi_q       <= 1'b0;
      first_q    <= 1'b1;
    end else if (beat_take_o) begin
      if (vec_o) begin
        k_left_q <= k_last ? kblocks_q : k_left_q - 1'b1;
        if (k_last) vec_bias_q <= 1'b1;
      end
      if (bias_o) bias_q <= bias_q + 1'b1;
      if (scale_o) first_q <= 1'b0;
      if (data_o && !fp4_q) hi_q <= !hi_q;
      if (row_o) begin
        k_left_q <= k_last ? kblocks_q : k_left_q - 1'b1;
        in_sec_q <= k_last ? first_blk : in_sec_q + 1'b1;
        if (k_last) begin
          first_q   <= 1'b1;
          groups_q  <= groups_q - 1'b1;
          in_head_q <= in_head_q + 1'b1;
        end
      end
    end
  end

  `MR_ASSERT(state, state_q <= Data)
  // Nothing is taken behind the last k-block or group.
  `MR_ASSERT(left, !beat_take_o || (k_left_q != '0 && (state_q == Vec || groups_q != '0)))
`ifndef FORMAL  // proofs have no parts
  // What is dropped in front of a part's first block is of MXINT8, and no biases lie there.
  `MR_ASSERT(part, !cmd_take || cmd_vec_i || (cmd_first_i == '0 && cmd_in_head_i == '0) ||
                   (PART != 0 && !cmd_fp4_i && !cmd_bias_i))
`endif

`ifdef FORMAL
  `include "mr_splitter_props.svh"
`endif

endmodule
