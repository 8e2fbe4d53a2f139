// SPDX-License-Identifier: Apache-2.0
// Array controller: takes commands, issues one step a cycle, frees k-rows and tile entries, and
// counts.
//
// Parameters
//   R     token rows (power of two)
//   T     row slots; ACT_WORDS  words a slot; both powers of two, T a multiple of R
//   RING  k-rows of the weight ring (power of two, <= 2^15)
//   N     channels
//   DF    tokens of the result FIFO: credits
//   FOLD  cycles of a step (mr_array_ch): the next one fires no earlier
//   GRAD  1: cmd_grad_i and cmd_g_i count, and go with the steps and the results
//
// Order of the steps: groups, then row groups of R slots, then k-blocks. A step waits for its k-row
// in all rings, the first step of a tile also for its tile entry in all channels, the last step of
// a sum for space in the result FIFO and for the shadows to be empty when it gets there. Nothing
// behind the issue ever stalls.
//
// Timing: fire (internal) in cycle f; ring, act, rmax reads and tile_pop_o in f+1 (rmax only for
// the first step of a row group: its data is held); f+2: RAM data, v_o (a bit per live row),
// first_o, last_o, cmax_o, grad_o, g_o; tile entries are copied at the end of f+1. ring_free_o in
// f+2: the k-row has been read. meta_n_o (slots of the finished row group, 0 if none) with
// meta_valid_o in f+2 too. A command accepted in cycle a has its first step in a+2 at the earliest;
// one command waits behind the running one.
`include "mr_assert.svh"
`include "mr_bundles.svh"
module mr_array_ctrl #(
  parameter int N = 1,
  parameter int R = 4,
  parameter int T = 128,
  parameter int ACT_WORDS = 64,
  parameter int RING = 1024,
  parameter int DF = 32,
  parameter int FOLD = 1,
  parameter int GRAD = 0,
  parameter int ACT_AW = $clog2(T / R * ACT_WORDS),
  parameter int RMAX_AW = $clog2(T / R * 4)
) (
  input  logic                    clk_i,
  input  logic                    rst_ni,
  // commands
  `MR_ARRAY_CMD_S(cmd_),
  // rings
  input  logic [        N*16-1:0] ring_count_i,
  output logic                    ring_ren_o,
  output logic [$clog2(RING)-1:0] ring_raddr_o,
  output logic                    ring_free_o,
  input  logic [           N-1:0] tile_valid_i,
  input  logic [        N*32-1:0] tile_max_i,
  input  logic [       N*128-1:0] tile_bias_i,
  output logic                    tile_pop_o,
  // activation memory
  output logic [           R-1:0] act_ren_o,
  output logic [      ACT_AW-1:0] act_raddr_o,
  output logic                    rmax_ren_o,
  output logic [     RMAX_AW-1:0] rmax_raddr_o,
  // array
  output logic [           R-1:0] v_o,
  output logic                    first_o,
  output logic                    last_o,
  output logic [        N*32-1:0] cmax_o,
  `MR_ARRAY_OUT_M(meta_),
  output logic                    grad_o,
  output logic [            15:0] g_o,
  // drain
  // counters
  `MR_ARRAY_CNT_M(cnt_)
);

  localparam int LR = $clog2(R);
  localparam int LP = (R >= 2) ? LR - 1 : 0;  // tokens of a row group in pairs
  localparam int LA = $clog2(ACT_WORDS);
  localparam int LT = $clog2(T / R);
  localparam int CW = 8;

  // ---- command queue: the waiting command n_*, the running one c_* ------------------------------
  logic n_valid_q, n_fp4_q, n_two_q, c_valid_q, c_fp4_q, c_two_q;
  logic [15:0] n_base_q, n_kb_q, c_base_q, c_kb_q;  // k-blocks less one
  logic [31:0] n_groups_q;                          // groups less one
  logic [ 1:0] n_slot_q, c_slot_q;
  logic [16:0] n_slots_q, c_slots_q;

  logic load, cmd_end;
  assign cmd_ready_o = !n_valid_q;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      n_valid_q <= 1'b0;
      c_valid_q <= 1'b0;
    end else begin
      if (cmd_valid_i && !n_valid_q) n_valid_q <= 1'b1;
      else if (load) n_valid_q <= 1'b0;
      if (load) c_valid_q <= 1'b1;
      else if (cmd_end) c_valid_q <= 1'b0;
    end
  end

  always_ff @(posedge clk_i) begin
    if (cmd_valid_i && !n_valid_q) begin
      n_base_q   <= cmd_src_base_i;
      n_kb_q     <= cmd_kblocks_i - 16'd1;
      n_groups_q <= cmd_groups_i - 32'd1;
      n_slot_q   <= cmd_src_slot_i;
      n_fp4_q    <= cmd_fp4_i;
      n_two_q    <= cmd_two_pass_i;
      n_slots_q  <= cmd_two_pass_i ? {cmd_rows_i, 1'b0} : {1'b0, cmd_rows_i};
    end
  end

  // ---- position ---------------------------------------------------------------------------------
  logic [15:0] kleft_q, word_q, group_q, g_q;
  logic [31:0] left_q;                // groups after this one
  logic [16:0] slots_q;               // slots from this row group on
  logic glast_q;                      // there is no row group behind: slots_q <= R
  logic [15:0] krow_q, krow0_q;       // ring index of this step and of the tile's first
  logic kfirst_q, tfirst_q;           // first step of a row group, of a tile

  logic klast, odd_pass, acc_first, acc_last, pair;
  logic [5:0] live;
  assign klast     = (kleft_q == 16'd0);
  assign live      = glast_q ? slots_q[5:0] : 6'(R);
  assign pair      = (R >= 2) && c_two_q;
  // R = 1: the second slot of a token goes on with the first one's sum.
  assign odd_pass  = (R == 1) && c_two_q && g_q[0];
  assign acc_first = kfirst_q && !odd_pass;
  assign acc_last  = klast && !((R == 1) && c_two_q && !g_q[0]);

  // ---- what a step waits for --------------------------------------------------------------------
  // k-rows that every channel has: follows the slowest ring, one row a cycle, which no ring
  // exceeds.
  logic [15:0] common_q;
  logic [N-1:0] ahead;
  for (genvar n = 0; n < N; n++) begin : gen_ahead
    assign ahead[n] = (ring_count_i[16*n+:16] != common_q);
  end
  always_ff @(posedge clk_i) begin
    if (!rst_ni) common_q <= 16'd0;
    else if (&ahead) common_q <= common_q + 16'd1;
  end

  logic [CW-1:0] credit_q;  // free tokens of the result FIFO
  logic back_q;             // and one more, which came in the cycle before
  logic [5:0] busy_q;       // cycles for which the shadows would still be full at capture
  logic have_w, have_d, room, fire, fire_last;
  logic [5:0] tokens;
  assign tokens = pair ? {1'b0, live[5:1]} : live;
  assign have_w = (common_q != krow_q) && (!tfirst_q || ((&tile_valid_i) && !tile_pop_o));
  assign room   = credit_q >= CW'(tokens) || (back_q && credit_q + CW'(1) == CW'(tokens));
  assign have_d = !acc_last || (busy_q == 6'd0 && room);
  logic folded;  // the step before still takes its columns
  if (FOLD > 1) begin : gen_fold
    localparam int LF = $clog2(FOLD);
    logic [LF-1:0] fold_q;
    assign folded = fold_q != '0;
    always_ff @(posedge clk_i) begin
      if (!rst_ni) fold_q <= '0;
      else if (fire) fold_q <= LF'(FOLD - 1);
      else if (folded) fold_q <= fold_q - 1'b1;
    end
  end else begin : gen_no_fold
    assign folded = 1'b0;
  end
  assign fire = c_valid_q && have_w && have_d && !folded;
  assign fire_last = fire && acc_last;
  assign cmd_end = fire && klast && glast_q && (left_q == 32'd0);
  assign load = n_valid_q && (cmd_end || !c_valid_q);

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      credit_q <= CW'(DF);
      back_q   <= 1'b0;
      busy_q   <= 6'd0;
    end else begin
      credit_q <= credit_q - (fire_last ? CW'(tokens) : CW'(0)) + CW'(back_q);
      back_q   <= meta_credit_i;
      if (fire_last) busy_q <= (live == 6'd0) ? 6'd0 : live - 6'd1;
      else if (busy_q != 6'd0) busy_q <= busy_q - 6'd1;
    end
  end

  // ---- stepping ---------------------------------------------------------------------------------
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      krow_q  <= 16'd0;
      krow0_q <= 16'd0;
    end else if (fire) begin
      if (!klast) begin
        krow_q <= krow_q + 16'd1;
      end else if (glast_q) begin
        krow_q  <= krow_q + 16'd1;
        krow0_q <= krow_q + 16'd1;
      end else begin
        krow_q <= krow0_q;
      end
    end
  end

  always_ff @(posedge clk_i) begin
    if (load) begin
      c_base_q  <= n_base_q;
      c_kb_q    <= n_kb_q;
      c_slot_q  <= n_slot_q;
      c_fp4_q   <= n_fp4_q;
      c_two_q   <= n_two_q;
      c_slots_q <= n_slots_q;
      kleft_q   <= n_kb_q;
      word_q    <= n_base_q;
      g_q       <= 16'd0;
      slots_q   <= n_slots_q;
      glast_q   <= (n_slots_q <= 17'(R));
      group_q   <= 16'd0;
      left_q    <= n_groups_q;
      kfirst_q  <= 1'b1;
      tfirst_q  <= 1'b1;
    end else if (fire) begin
      kfirst_q <= klast;
      tfirst_q <= klast && glast_q;
      if (!klast) begin
        kleft_q <= kleft_q - 16'd1;
        word_q  <= word_q + 16'd1;
      end else begin
        kleft_q <= c_kb_q;
        word_q  <= c_base_q;
        g_q     <= glast_q ? 16'd0 : g_q + 16'd1;
        slots_q <= glast_q ? c_slots_q : slots_q - 17'(R);
        glast_q <= glast_q ? (c_slots_q <= 17'(R)) : (slots_q <= 17'(2 * R));
        if (glast_q) begin
          group_q <= group_q + 16'd1;
          left_q  <= left_q - 32'd1;
        end
      end
    end
  end

  // ---- f+1: reads -------------------------------------------------------------------------------
  logic first1_q, last1_q, free1_q;
  logic [5:0] n1_q;
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      ring_ren_o <= 1'b0;
      rmax_ren_o <= 1'b0;
      tile_pop_o <= 1'b0;
      free1_q    <= 1'b0;
      act_ren_o  <= '0;
      last1_q    <= 1'b0;
      n1_q       <= 6'd0;
    end else begin
      ring_ren_o <= fire;
      rmax_ren_o <= fire && kfirst_q;
      tile_pop_o <= fire && tfirst_q;
      free1_q    <= fire && glast_q;
      last1_q    <= fire_last;
      n1_q       <= fire_last ? live : 6'd0;
      // Rows without a live slot are not even read.
      for (int r = 0; r < R; r++) act_ren_o[r] <= fire && (!glast_q || slots_q > 17'(r));
    end
  end
  always_ff @(posedge clk_i) begin
    if (fire) begin
      first1_q     <= acc_first;
      ring_raddr_o <= krow_q[$clog2(RING)-1:0];
      act_raddr_o  <= (ACT_AW'(g_q) << LA) | ACT_AW'(word_q);
      rmax_raddr_o <= (RMAX_AW'(c_slot_q) << LT) | RMAX_AW'(g_q);
    end
  end

  // ---- f+2: operands ----------------------------------------------------------------------------
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      v_o          <= '0;
      last_o       <= 1'b0;
      meta_n_o     <= 6'd0;
      meta_valid_o <= 1'b0;
      ring_free_o  <= 1'b0;
    end else begin
      v_o          <= act_ren_o;
      last_o       <= last1_q;
      meta_n_o     <= n1_q;
      meta_valid_o <= (n1_q != 6'd0);
      ring_free_o  <= free1_q;
    end
  end
  always_ff @(posedge clk_i) begin
    if (ring_ren_o) first_o <= first1_q;
    if (tile_pop_o) begin
      cmax_o      <= tile_max_i;
      meta_bias_o <= tile_bias_i;
    end
  end

  // What the drain must know of a finished row group.
  logic pair1_q, fp4_1_q, end1_q;
  logic [15:0] token1_q, group1_q;
  always_ff @(posedge clk_i) begin
    if (fire_last) begin
      pair1_q  <= pair;
      fp4_1_q  <= c_fp4_q;
      end1_q   <= glast_q && (left_q == 32'd0);
      group1_q <= group_q;
      token1_q <= (R == 1) ? (c_two_q ? g_q >> 1 : g_q) : (c_two_q ? g_q << LP : g_q << LR);
    end
    if (last1_q) begin
      meta_pair_o  <= pair1_q;
      meta_fp4_o   <= fp4_1_q;
      meta_last_o  <= end1_q;
      meta_group_o <= group1_q;
      meta_token_o <= token1_q;
    end
  end

  // ---- sums of gradients ------------------------------------------------------------------------
  if (GRAD != 0) begin : gen_grad
    logic n_grad_q, c_grad_q, grad1_q, end_grad_q;
    logic [15:0] n_g_q, c_g_q, g1_q;
    always_ff @(posedge clk_i) begin
      if (cmd_valid_i && !n_valid_q) {n_grad_q, n_g_q} <= {cmd_grad_i, cmd_g_i};
      if (load) {c_grad_q, c_g_q} <= {n_grad_q, n_g_q};
      if (fire) {grad1_q, g1_q} <= {c_grad_q, c_g_q};
      if (ring_ren_o) {grad_o, g_o} <= {grad1_q, g1_q};
      if (fire_last) end_grad_q <= c_grad_q;
      if (last1_q) meta_grad_o <= end_grad_q;
    end
  end else begin : gen_no_grad
    assign {grad_o, g_o, meta_grad_o} = '0;
    logic unused;
    assign unused = ^{cmd_grad_i, cmd_g_i};
  end

  // ---- counters ---------------------------------------------------------------------------------
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      cnt_busy_o    <= 1'b0;
      cnt_weights_o <= 1'b0;
      cnt_drain_o   <= 1'b0;
      cnt_idle_o    <= 1'b1;
      cnt_blocks_o  <= 16'd0;
    end else begin
      cnt_busy_o    <= fire || folded;
      cnt_weights_o <= c_valid_q && !have_w && !folded;
      cnt_drain_o   <= c_valid_q && have_w && !have_d && !folded;
      cnt_idle_o    <= !c_valid_q && !folded;
      cnt_blocks_o  <= fire ? 16'(live) * 16'(4 * N) : 16'd0;
    end
  end

  `MR_ASSERT_COUNT(credit, credit_q, back_q, fire_last ? tokens : 6'd0, DF)
  `MR_ASSERT(ring, 32'(16'(common_q - (glast_q ? krow_q : krow0_q))) <= RING)
  `MR_ASSERT(tile, !tile_pop_o || &tile_valid_i)

endmodule
