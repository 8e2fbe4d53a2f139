// SPDX-License-Identifier: Apache-2.0
// The matmul array: R token rows x 4 N columns of 32-lane dot product elements over resident
// activations (mr_act_mem) and the weights that stream past (mr_stream, one per channel).
//
// Parameters
//   N          channels (1..16), 4 columns each
//   R          token rows (power of two, 1..32)
//   T          resident row slots (power of two, multiple of R)
//   ACT_WORDS  words of activation memory a slot (power of two)
//   RING       k-rows of the weight ring (power of two, <= 2^15)
//   PAIR       1: two products a DSP48E2, columns in pairs (mr_dot); same bits
//   DF         depth of the result FIFO in tokens (power of two, >= 2 R; 2 R + 14 and more hide
//              the drain)
//   FOLD       cycles of a step: 1, or 4 with a PE a row and channel, whose columns take turns.
//              Then what follows a step or the last one comes FOLD - 1 cycles later than said
//              below. With 4, PAIR and GRAD are 0
//   GRAD       1: commands with cmd_grad_i too (training; not in a configuration yet)
//   ACT_AW, RMAX_AW, RING_AW  (derived) address widths
//
// For each group j = 0.., each row group g (R slots), each k: one step a cycle,
//   d = sum of 32 products, acc += (d << 18) >>> min(38, (rmax - ea) + (cmax - ew)).
//
// With cmd_grad_i (GRAD, docs/inside/numerics.md rule 16; one pass, no FP4) the sums are gradients
// in units of 2^cmd_g_i, signed: acc += RNE((d << 18) / 2^s), s = g + 284 - ea - ew, nothing for
// s > 38. Maxima are not looked at. dr_grad_o says so beside the results, dr_flags_o[0] that an s
// of the token's sums was negative, dr_flags_o[1] that a code was 255: its terms add nothing.
//
// Command: valid/ready, one command waits behind the running one, and its first step follows the
// running one's last step without a bubble. cmd_groups_i >= 1, cmd_kblocks_i >= 1, cmd_rows_i
// tokens (0: the weights are consumed, there are no result beats). Two-pass: slots 2i, 2i+1 of
// token i; with R >= 2 they lie in neighbouring rows and are added at the drain, with R = 1 the
// second slot's k-blocks go on in the first one's accumulator.
//
// Rings: ring_count_i per channel; one ring_ren_o/ring_raddr_o for all, data in the next cycle,
// held. ring_free_o: the oldest k-row is free in every channel (its read was in the cycle before).
// Tile entries are copied and popped by a tile's first step; tile_pop_o pops all channels (pop of a
// valid head).
// Activation memory: act_ren_o one enable a bank (only rows with a live slot), one address;
// rmax_ren_o in the first step of a row group; both RAM ports. A command sees every block that
// mr_act_mem accepted no later than in the cycle that accepts the command.
//
// Drain: valid/ready, one token a beat from registers, tokens ascending within a group, groups
// ascending. By column c: dr_acc_o its 48-bit sum, dr_base_o row maximum + column maximum (9 bits),
// dr_nan_o one of the two is 255, dr_bias_o the bias of its tile. Beside them the token, the group
// and the command's fp4; dr_last_o marks the command's last beat.
// The last step of a sum reserves its place in the shadow registers and the result FIFO. So a row
// group takes max(kblocks, live slots) cycles as long as the drain is ready. Latency, when nothing
// stalls: command accepted in cycle a, first step in a+2; a row group's last step in f, its first
// token's dr_valid_o in f+13 (f+14 for a pair). No bubbles as long as the drain takes a token a
// cycle (two-pass in row pairs: one in two).
//
// Counters (registered strobes): exactly one of busy (a step), weights (waits for a k-row or tile
// entry), drain (waits for result space), idle (no command) each cycle; cnt_blocks_o: live rows x C
// per step.
`include "mr_bundles.svh"
module mr_array #(
  parameter int N = 1,
  parameter int R = 4,
  parameter int T = 128,
  parameter int ACT_WORDS = 64,
  parameter int RING = 1024,
  parameter int PAIR = 0,
  parameter int DF = 1 << $clog2(2 * R + 14),
  parameter int FOLD = 1,
  parameter int GRAD = 0,
  parameter int ACT_AW = $clog2(T / R * ACT_WORDS),
  parameter int RMAX_AW = $clog2(T / R * 4),
  parameter int RING_AW = $clog2(RING)
) (
  input  logic                clk_i,
  input  logic                rst_ni,

  `MR_ARRAY_CMD_S(cmd_),

  `MR_TILE_S(, N, RING_AW),

  `MR_ACT_R_M(act_, R, ACT_AW),
  `MR_RAM_R_M(rmax_, RMAX_AW, R*8),

  `MR_DR_M(dr_),
  output logic                dr_grad_o,
  output logic [         1:0] dr_flags_o,

  `MR_ARRAY_CNT_M(cnt_)
);

  logic [R-1:0] v;
  `MR_ARRAY_OUT_W(meta_);
  logic first, last, grad;
  logic [15:0] g;
  logic [N*32-1:0] cmax;

  mr_array_ctrl #(
    .N(N), .R(R), .T(T), .ACT_WORDS(ACT_WORDS), .RING(RING), .DF(DF), .FOLD(FOLD), .GRAD(GRAD)
  ) u_ctrl (
    .clk_i, .rst_ni,
    `MR_ARRAY_CMD_S_TO(cmd_, cmd_),
    .ring_count_i, .ring_ren_o, .ring_raddr_o, .ring_free_o, .tile_valid_i, .tile_max_i,
    .tile_bias_i, .tile_pop_o, .act_ren_o, .act_raddr_o, .rmax_ren_o, .rmax_raddr_o, .v_o(v),
    .first_o(first), .last_o(last), .cmax_o(cmax),
    `MR_ARRAY_OUT_M_ON(meta_, meta_),
    .grad_o(grad), .g_o(g),
    `MR_ARRAY_CNT_M_TO(cnt_, cnt_)
  );

  // first and last of a step, delayed to the accumulator (f+7) and to the capture (f+8). first is
  // only looked at under a row's enable, so it needs no reset.
  logic [4:0] first_q;
  logic [4+FOLD:0] last_q;
  always_ff @(posedge clk_i) begin
    first_q <= {first_q[3:0], first};
    if (!rst_ni) last_q <= '0;
    else last_q <= {last_q[3+FOLD:0], last};
  end

  `MR_ARRAY_SHADOW_W(f_);
  logic [N*192-1:0] f_rdata;
  logic [N*2-1:0] f_flags;

  // Rows that are live only in prefill and batches; shadows and drain, which work for some cycles
  // after a row group. HOLD: the seven stages of a row; those from meta_valid to the first slot.
  logic clk_rows, clk_drain, later, drain_busy;
  if (R > 1) begin : gen_rows
    assign later = v[R-1:1] != '0;
  end else begin : gen_no_rows
    assign later = 1'b0;
  end
  mr_clk_gate #(.HOLD(7 + FOLD)) u_gate_rows (
    .clk_i, .active_i(!rst_ni || later), .clk_o(clk_rows)
  );
  mr_clk_gate #(.HOLD(11 + FOLD)) u_gate_drain (
    .clk_i, .active_i(!rst_ni || meta_valid || drain_busy), .clk_o(clk_drain)
  );

  for (genvar n = 0; n < N; n++) begin : gen_ch
    mr_array_ch #(.R(R), .PAIR(PAIR), .DF(DF), .FOLD(FOLD), .GRAD(GRAD)) u_ch (
      .clk_i, .clk_rows_i(clk_rows), .clk_drain_i(clk_drain), .rst_ni, .v_i(v),
      .first_i(first_q[4]), .last_i(last_q[4+FOLD]), .act_i(act_rdata_i), .acode_i(act_rcode_i),
      .rmax_i(rmax_rdata_i), .w_i(ring_rdata_i[1024*n+:1024]), .wcode_i(ring_rcode_i[32*n+:32]),
      .cmax_i(cmax[32*n+:32]), .grad_i(grad), .g_i(g),
      `MR_ARRAY_SHADOW_S_ON(, f_),
      .rdata_o(f_rdata[192*n+:192]), .flags_o(f_flags[2*n+:2])
    );
  end

  mr_array_drain #(.N(N), .R(R), .DF(DF), .FOLD(FOLD), .GRAD(GRAD)) u_drain (
    .clk_i(clk_drain), .rst_ni,
    `MR_ARRAY_OUT_S_ON(meta_, meta_),
    .busy_o(drain_busy), .rmax_i(rmax_rdata_i), .cmax_i(cmax),
    `MR_ARRAY_SHADOW_M_ON(, f_),
    .rdata_i(f_rdata), .flags_i(f_flags),
    `MR_DR_M_TO(dr_, dr_),
    .dr_grad_o, .dr_flags_o
  );

endmodule
