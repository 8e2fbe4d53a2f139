// SPDX-License-Identifier: Apache-2.0
// The 64 multipliers of a channel, which both passes use, and PV's accumulators. A step of QK makes
// two dot products of 32 elements of K and q; a step of PV adds 64 products of elements of V with
// probabilities to a word of 64 x 48-bit accumulators, from which the drain takes the sums.
//
// PV: acc += ((p * v) << 12) >>> min(38, pm - ev), floor. A word is {row, word of the row's head
// group}.
//
// Parameters
//   V     lanes of the drain (divides 64)
//   AA    address bits of the accumulator memory
//   FOLD  cycles of a step: 1; or 64 / V (portable), with V multipliers for both passes, whose
//         lanes take turns, and a word of V sums
//
// There are two forms with the same bits in the same cycles. The portable one has multipliers for
// each pass and shifts each product of PV. The other is for DSP48E2 (mr_tech_pkg), whose
// multipliers have 27 bits: PV's probability is shifted left by 0..10 before it is multiplied, once
// for 32 lanes, and each product right by a multiple of 11, which is one LUT a bit instead of
// three. QK adds four products in a cascade (mr_dot_cascade), PV its terms in mr_dot_add.
//
// Timing: pre_valid_i with kv_i and what else has no st_ belongs to the step that follows in the
// next cycle, which is of QK (st_qk_i) or PV (st_pv_i, with the other st_*). A step a cycle, of
// either kind. QK: d0_o and d1_o belong to it in the third cycle behind st_qk_i, until the next
// step's. PV: the sum is in the memory 3 cycles after st_pv_i. The same word must not come in two
// consecutive cycles (in between there is always a scale beat), two cycles apart is right. Drain:
// dr_step_i in t (with dr_load_i: a new word at dr_addr_i; without: the next V values of the word),
// dr_o in t+2 has the V accumulators. No steps of PV while draining.
// With FOLD > 1 steps come FOLD cycles apart at least, and what comes with a step stays until the
// next one. What follows a step comes FOLD - 1 cycles later than said; d0_o and d1_o are there in
// that one cycle.
`include "mr_assert.svh"
module mr_attn_mac #(
  parameter int V = 4,
  parameter int AA = 8,
  parameter int FOLD = 1
) (
  input  logic            clk_i,
  input  logic            rst_ni,
  input  logic            pre_valid_i,
  input  logic [511:0]    kv_i,        // 64 x int8
  input  logic [527:0]    q_i,         // QK: {code1, 32 x int8, code0, 32 x int8}
  input  logic [15:0]     vcode_i,     // PV
  input  logic [15:0]     pm_i,
  input  logic            st_qk_i,
  input  logic            st_pv_i,
  input  logic            st_first_i,  // first position: starts the sum
  input  logic [AA-1:0]   st_addr_i,
  input  logic [15:0]     st_p_i,
  output logic [20:0]     d0_o,
  output logic [20:0]     d1_o,
  output logic            busy_o,      // steps of PV inside
  input  logic            dr_step_i,
  input  logic            dr_load_i,
  input  logic [AA-1:0]   dr_addr_i,
  output logic [V*48-1:0] dr_o
);
  /*verilator no_inline_module*/

  function automatic logic [5:0] clamp38(input logic [7:0] pm, input logic [7:0] ev);
    logic [7:0] s;
    begin
      s = pm - ev;
      clamp38 = (s > 8'd38) ? 6'd38 : s[5:0];
    end
  endfunction

  localparam int G = 64 / FOLD;            // lanes of a cycle
  localparam int AM = AA + $clog2(FOLD);   // address bits of their sums: {word, turn}
  logic st_qk, st_pv;                      // a turn of a step
  logic [AM-1:0] st_addr, dr_addr;
  logic s3_qk_q, s4_qk_q, s3_pv_q, s4_pv_q, s3_first_q, s4_first_q;
  logic [AM-1:0] s3_addr_q, s4_addr_q;
  // Accumulator of lane k: low half in bits [32k +: 32], high half in [32L + 16k +: 16]: aligned
  // slices are what the simulator is fast at; hardware does not mind.
  logic [48*G-1:0] mem [0:(1<<AM)-1];
  logic [48*G-1:0] rd_q;
  logic dr_step_q;

  assign busy_o = st_pv || s3_pv_q || s4_pv_q;
  logic unused_codes;
  assign unused_codes = ^{q_i[527:520], q_i[263:256]};

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      s3_qk_q   <= 1'b0;
      s4_qk_q   <= 1'b0;
      s3_pv_q   <= 1'b0;
      s4_pv_q   <= 1'b0;
      dr_step_q <= 1'b0;
    end else begin
      s3_qk_q   <= st_qk;
      s4_qk_q   <= s3_qk_q;
      s3_pv_q   <= st_pv;
      s4_pv_q   <= s3_pv_q;
      dr_step_q <= dr_step_i;
    end
  end

  always_ff @(posedge clk_i) begin
    if (st_pv) begin
      s3_first_q <= st_first_i;
      s3_addr_q  <= st_addr;
    end
    if (s3_pv_q) begin
      s4_first_q <= s3_first_q;
      s4_addr_q  <= s3_addr_q;
    end
  end

  // ---- turns: in turn t, lanes G t to G t + G - 1 of the step. The operands' turn is one ahead
  localparam int TW = (FOLD > 1) ? $clog2(FOLD) : 1;
  logic pre_valid, pv;  // operands; the turn is one of PV, if it is one
  logic [TW-1:0] pre_turn, turn;
  if (FOLD > 1) begin : gen_turns
    logic valid_q, pv_q;
    logic [TW-1:0] pre_q, turn_q;
    assign pre_valid = pre_valid_i || pre_q != '0;
    assign pre_turn  = pre_q;
    assign turn      = turn_q;
    assign pv        = st_pv_i || (pv_q && !st_qk_i);
    assign st_qk     = valid_q && !pv;
    assign st_pv     = valid_q && pv;
    assign st_addr   = {st_addr_i, turn};
    always_ff @(posedge clk_i) begin
      if (!rst_ni) begin
        valid_q <= 1'b0;
        pre_q   <= '0;
      end else begin
        valid_q <= pre_valid;
        if (pre_valid) pre_q <= pre_q + 1'b1;
      end
    end
    always_ff @(posedge clk_i) begin
      turn_q <= pre_q;
      pv_q   <= pv;
    end
    logic [AM-1:0] next_q;
    assign dr_addr = dr_load_i ? {dr_addr_i, TW'(0)} : next_q;
    always_ff @(posedge clk_i) begin
      if (dr_step_i) next_q <= dr_addr + 1'b1;
    end
  end else begin : gen_whole
    assign pre_valid = pre_valid_i;
    assign pre_turn  = '0;
    assign turn      = '0;
    assign pv        = st_pv_i;
    assign st_qk     = st_qk_i;
    assign st_pv     = st_pv_i;
    assign st_addr   = st_addr_i;
    assign dr_addr   = dr_addr_i;
  end

  if (FOLD == 1 && mr_tech_pkg::Have != 0) begin : gen_dsp48e2
    logic unused_turn;
    assign unused_turn = ^{pre_valid, pv, pre_turn, turn};
    // floor(p * v * 2^12 / 2^s) = floor((p * 2^f) * v * 2^2 / 2^(11 c)), f = 10 - s + 11 c. {c, f}:
    function automatic logic [5:0] split(input logic [5:0] s);
      // Modulo 16, which is enough for f.
      if (s > 6'd32) split = {2'd3, 4'd11 - s[3:0]};
      else if (s > 6'd21) split = {2'd2, 4'd0 - s[3:0]};
      else if (s > 6'd10) split = {2'd1, 4'd5 - s[3:0]};
      else split = {2'd0, 4'd10 - s[3:0]};
    endfunction
    function automatic logic [47:0] right(input logic signed [34:0] prod, input logic [1:0] c);
      if (c[1]) right = c[0] ? 48'($signed(prod[34:31])) : 48'($signed(prod[34:20]));
      else right = c[0] ? 48'($signed(prod[34:9])) : 48'($signed({prod, 2'd0}));
    endfunction

    logic [11:0] cf_q;  // of block 0, block 1
    logic [3:0] c3_q, c4_q;
    logic s3_link_q;  // a register: four adders are behind it
    always_ff @(posedge clk_i) begin
      s3_link_q <= !st_pv_i;
      if (pre_valid_i) cf_q <= {split(clamp38(pm_i[15:8], vcode_i[15:8])),
                                split(clamp38(pm_i[7:0], vcode_i[7:0]))};
      if (st_pv_i) c3_q <= {cf_q[11:10], cf_q[5:4]};
      if (s3_pv_q) c4_q <= c3_q;
    end

    // QK's two sums of products have no common factor: the upper half of each DSP stays empty.
    logic [8*36-1:0] sums;
    logic [3071:0] word;
    for (genvar b = 0; b < 2; b++) begin : gen_block
      logic [26:0] p;
      assign p = {11'd0, st_p_i} << cf_q[6*b+:4];
      for (genvar g = 0; g < 8; g++) begin : gen_cascade
        localparam int L = 32 * b + 4 * g;
        logic [47:0] up;
        logic [191:0] prod;
        logic unused;
        mr_dot_cascade #(.BIAS(48'h1_0000), .ALONE(1)) u_cascade (
          .clk_i, .v_i({s3_qk_q || s3_pv_q, st_qk_i || st_pv_i, pre_valid_i}), .alone_i(st_pv_i),
          .link_i(s3_link_q), .a_i(kv_i[8*L+:32]), .lo_i(q_i[8*L+8*b+:32]), .hi_i(32'd0), .p_i(p),
          .up_o(up), .p_o(prod)
        );
        assign sums[36*g+18*b+:18] = up[17:0];
        assign unused = ^{up[47:18], prod};
        for (genvar j = 0; j < 4; j++) begin : gen_add
          // The last product of a cascade comes a cycle later, and its term has no register.
          localparam int K = L + j;
          localparam int Early = (j < 3) ? 1 : 0;
          logic [1:0] c;
          assign c = (Early != 0) ? c3_q[2*b+:2] : c4_q[2*b+:2];
          mr_dot_add #(.TERM_REG(Early)) u_add (
            .clk_i, .v_i(s3_pv_q), .first_i(s4_first_q),
            .sum_i({rd_q[2048+16*K+:16], rd_q[32*K+:32]}), .term_i(right(prod[48*j+:35], c)),
            .sum_o({word[2048+16*K+:16], word[32*K+:32]})
          );
        end
      end
    end
    always_ff @(posedge clk_i) begin
      if (s4_pv_q) mem[s4_addr_q] <= word;
    end

    logic [19:0] lo, hi, lo_q, hi_q;
    mr_dot_halves u_halves (.sums_i(sums), .lo_o(lo), .hi_o(hi));
    always_ff @(posedge clk_i) begin
      if (s4_qk_q) begin
        lo_q <= lo;
        hi_q <= hi;
      end
    end
    assign d0_o = {lo_q[19], lo_q};
    assign d1_o = {hi_q[19], hi_q};
  end else begin : gen_portable
    function automatic logic signed [63:0] align(input logic signed [31:0] prod,
                                                 input logic [5:0] sh);
      logic signed [63:0] x;
      begin
        x = {{20{prod[31]}}, prod, 12'd0};
        align = x >>> sh;
      end
    endfunction

    // 32 and 64 bits: no masks in the simulator, trimmed by synthesis.
    logic signed [31:0] d0_q, d1_q;
    logic signed [31:0] prod_q [0:G-1];  // of PV; with turns of both passes
    logic signed [63:0] term_q [0:G-1];
    logic [5:0] sh0_q, sh1_q;            // of blocks 0 and 1; with turns sh0_q of the turn's
    if (FOLD > 1) begin : gen_turn
      logic [511:0] q;
      logic [8*G-1:0] kv_q, q_q;
      logic [5:0] pre_sh_q;
      logic signed [31:0] sum, sum_q;
      logic first, s3_new_q, s4_new_q;  // a block's first turn
      assign q     = {q_i[519:264], q_i[255:0]};
      assign first = turn[TW-2:0] == '0;
      always_comb begin
        sum = '0;
        for (int k = 0; k < G; k++) sum = sum + prod_q[k];
      end
      always_ff @(posedge clk_i) begin
        if (pre_valid) begin
          kv_q     <= kv_i[8*G*32'(pre_turn)+:8*G];
          q_q      <= q[8*G*32'(pre_turn)+:8*G];
          pre_sh_q <= pre_turn[TW-1] ? clamp38(pm_i[15:8], vcode_i[15:8]) :
                                       clamp38(pm_i[7:0], vcode_i[7:0]);
        end
        if (st_qk || st_pv) begin
          for (int k = 0; k < G; k++) begin
            prod_q[k] <= $signed(kv_q[8*k+:8]) *
                         $signed(pv ? {1'b0, st_p_i} : {{9{q_q[8*k+7]}}, q_q[8*k+:8]});
          end
          sh0_q    <= pre_sh_q;
          s3_new_q <= first;
        end
        if (s3_qk_q) begin
          sum_q    <= sum;
          s4_new_q <= s3_new_q;
        end
        if (s4_qk_q) begin
          d1_q <= sum_q + (s4_new_q ? 32'sd0 : d1_q);
          if (s4_new_q) d0_q <= d1_q;
        end
      end
      assign sh1_q = '0;
    end else begin : gen_step
      logic [511:0] kv_q, q_q;
      logic signed [31:0] p_q [0:63];
      logic signed [31:0] s_q [0:15];
      always_ff @(posedge clk_i) begin
        if (pre_valid_i) begin
          kv_q <= kv_i;
          q_q  <= {q_i[519:264], q_i[255:0]};
        end
        if (st_qk_i) begin
          for (int i = 0; i < 64; i++) p_q[i] <= $signed(kv_q[8*i+:8]) * $signed(q_q[8*i+:8]);
        end
        if (s3_qk_q) begin
          for (int i = 0; i < 16; i++)
            s_q[i] <= (p_q[4*i] + p_q[4*i+1]) + (p_q[4*i+2] + p_q[4*i+3]);
        end
        if (s4_qk_q) begin
          d0_q <= ((s_q[0] + s_q[1]) + (s_q[2] + s_q[3])) +
                  ((s_q[4] + s_q[5]) + (s_q[6] + s_q[7]));
          d1_q <= ((s_q[8] + s_q[9]) + (s_q[10] + s_q[11])) +
                  ((s_q[12] + s_q[13]) + (s_q[14] + s_q[15]));
        end
      end

      logic [5:0] pre0_q, pre1_q;
      always_ff @(posedge clk_i) begin
        if (pre_valid_i) begin
          pre0_q <= clamp38(pm_i[7:0], vcode_i[7:0]);
          pre1_q <= clamp38(pm_i[15:8], vcode_i[15:8]);
        end
        if (st_pv_i) begin
          for (int k = 0; k < 64; k++)
            prod_q[k] <= $signed({1'b0, st_p_i}) * $signed(kv_q[8*k+:8]);
          sh0_q <= pre0_q;
          sh1_q <= pre1_q;
        end
      end
      logic unused_turn;
      assign unused_turn = ^{pre_valid, pv, pre_turn, turn};
    end
    assign d0_o = d0_q[20:0];
    assign d1_o = d1_q[20:0];
    logic unused;
    assign unused = ^{d0_q[31:21], d1_q[31:21]};  // sign extension only

    always_ff @(posedge clk_i) begin
      if (s3_pv_q) begin
        for (int k = 0; k < G; k++) term_q[k] <= align(prod_q[k], k < 32 ? sh0_q : sh1_q);
      end
    end

    // The addition, with blocking assignments to `word` alone (one wide write).
    logic [48*G-1:0] word;
    logic [47:0] acc;
    always_ff @(posedge clk_i) begin
      if (s4_pv_q) begin
        /* verilator lint_off BLKSEQ */  // temporaries of this block
        for (int k = 0; k < G; k++) begin
          acc = {rd_q[32*G+16*k+:16], rd_q[32*k+:32]};
          // The carry chain takes the term as it is; clearing the sum is a LUT a bit of its own.
          acc = term_q[k][47:0] + (s4_first_q ? 48'd0 : acc);
          word[32*k+:32] = acc[31:0];
          word[32*G+16*k+:16] = acc[47:32];
        end
        /* verilator lint_on BLKSEQ */
        mem[s4_addr_q] <= word;
      end
    end
  end

  always_ff @(posedge clk_i) begin
    if (s3_pv_q || (dr_step_i && (dr_load_i || FOLD > 1))) begin
      rd_q <= mem[s3_pv_q ? s3_addr_q : dr_addr];
    end
  end

  // ---- drain: V values at a time of the word that was read ----
  localparam int Groups = G / V;
  localparam int GW = (Groups > 1) ? $clog2(Groups) : 1;
  logic [GW-1:0] group_q;
  logic [32*V-1:0] out_lo_q;
  logic [16*V-1:0] out_hi_q;
  always_ff @(posedge clk_i) begin
    // The select comes from a register, with no LUT before it: the multiplexer of 48 V bits
    // would be on the module's longest path else, where Yosys takes three times the LUTs.
    if (dr_step_i) group_q <= (dr_load_i || Groups == 1) ? '0 : group_q + 1'b1;
    if (dr_step_q) begin
      out_lo_q <= rd_q[32*V*32'(group_q)+:32*V];
      out_hi_q <= rd_q[32*G+16*V*32'(group_q)+:16*V];
    end
  end

  for (genvar i = 0; i < V; i++) begin : gen_out
    assign dr_o[48*i+:48] = {out_hi_q[16*i+:16], out_lo_q[32*i+:32]};
  end

  `MR_ASSERT_ONEHOT0(pass, {st_qk_i, st_pv_i})
  `MR_ASSERT(apart, !(st_pv && s3_pv_q) || st_addr != s3_addr_q)
  `MR_ASSERT(drain, !(dr_step_i && busy_o))

endmodule
