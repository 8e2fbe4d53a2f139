// SPDX-License-Identifier: Apache-2.0
// The quantiser that the epilogue and LayerNorm share, and the way of its blocks into the memories.
//
// Parameters
//   V          vector lanes, 4..64, a power of two
//   T          tokens
//   SLOTS      row slots of the q/k/v memory
//   QKV_WORDS  528-bit words a row slot
//   PM_WORDS   16-bit words a token in the prefix-maximum memory
//   TWO_PASS   0 leaves out the second pass
//
// Inputs epi_ and ln_: valid/ready, V floats a beat, tag as in mr_vec_pkg, constant over a block; a
// source keeps the quantiser for the beats of a block, LayerNorm first otherwise. two_pass_i (run
// flag): each block is followed by its residue, to row slot + 1.
// act_*: port a_ of mr_act_mem. qkv_we_o, one bit for each half of the word, with
// qkv_waddr_o = slot * QKV_WORDS + word and the block in both halves of qkv_wdata_o. pm_valid_o
// pulse: a block for mr_prefix_max. epi_ack_o, ln_ack_o: pulse per block written, one cycle after
// the write (two passes: two blocks). All outputs but q_ready come from registers, act_* from
// mr_quant's.
`include "mr_assert.svh"
`include "mr_bundles.svh"
module mr_vec_out #(
  parameter int V = 4,
  parameter int T = 8,
  parameter int SLOTS = T,
  parameter int QKV_WORDS = 32,
  parameter int PM_WORDS = 8,
  parameter int TWO_PASS = 1,
  localparam int TW = $clog2(T),
  localparam int BW = $clog2(PM_WORDS) + 1,
  localparam int QAW = $clog2(SLOTS * QKV_WORDS)
) (
  input  logic                         clk_i,
  input  logic                         rst_ni,
  input  logic                         two_pass_i,

  `MR_LN_S(epi_, mr_vec_pkg::TAG_W),

  `MR_LN_S(ln_, mr_vec_pkg::TAG_LN_W),

  `MR_BLK_M(act_),

  `MR_QKV_M(qkv_, QAW),

  `MR_PM_M(pm_, TW, BW)
);

  localparam int BEATS = (V < 32) ? 32 / V : 1;
  localparam int TAG = mr_vec_pkg::TAG_W;

  // ---- who has the quantiser --------------------------------------------------------------------
  logic           sel_q, sel, mid_q;  // 1: LayerNorm; mid_q: inside a block
  logic [2:0]     cnt_q;
  logic           in_valid, in_ready;
  logic [TAG-1:0] in_tag;
  assign sel         = mid_q ? sel_q : ln_valid_i;
  assign in_valid    = sel ? ln_valid_i : epi_valid_i;
  assign in_tag      = sel ? {{(TAG - mr_vec_pkg::TAG_LN_W) {1'b0}}, ln_tag_i} : epi_tag_i;
  assign epi_ready_o = in_ready && !sel;
  assign ln_ready_o  = in_ready && sel;

  // A beat that has been offered stays offered: the choice must not change before it is taken.
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      mid_q <= 1'b0;
      sel_q <= 1'b0;
      cnt_q <= '0;
    end else if (in_valid) begin
      sel_q <= sel;
      mid_q <= !in_ready || (cnt_q != 3'(BEATS - 1));
      if (in_ready) cnt_q <= (cnt_q == 3'(BEATS - 1)) ? '0 : cnt_q + 3'd1;
    end
  end

  logic           q_valid, q_ready, q_lo, q_sub;
  logic [263:0]   q_data;
  logic [TAG-1:0] q_tag;
  mr_quant #(.V(V), .TAG(TAG), .TWO_PASS(TWO_PASS)) u_quant (
    .clk_i, .rst_ni, .in_valid_i(in_valid), .in_ready_o(in_ready),
    .in_data_i(sel ? ln_data_i : epi_data_i), .in_two_pass_i(two_pass_i), .in_tag_i(in_tag),
    .out_valid_o(q_valid), .out_ready_i(q_ready), .out_data_o(q_data), .out_tag_o(q_tag),
    .out_sub_o(q_sub), .out_lo_o(q_lo)
  );

  // ---- blocks -----------------------------------------------------------------------------------
  logic        is_qkv, fire, sub;
  logic [15:0] slot, word;
  assign is_qkv  = q_tag[mr_vec_pkg::TAG_QKV];
  assign sub     = (V > 32) && q_sub;
  assign slot    = q_tag[mr_vec_pkg::TAG_SLOT+:16] | 16'(q_lo);
  assign word    = q_tag[mr_vec_pkg::TAG_WORD+:16];
  assign q_ready = is_qkv || act_ready_i;
  assign fire    = q_valid && q_ready;

  assign act_valid_o  = q_valid && !is_qkv;
  assign act_slot_o   = slot;
  assign act_word_o   = word + 16'(sub);
  assign act_region_o = q_tag[mr_vec_pkg::TAG_REGION+:2];
  assign act_first_o  = q_tag[mr_vec_pkg::TAG_FIRST] && !sub;
  assign act_lo_o     = q_lo;
  assign act_data_o   = q_data;

  logic [1:0]     we_q;
  logic [QAW-1:0] waddr_q;
  logic [263:0]   wdata_q;
  logic           pm_valid_q, epi_ack_q, ln_ack_q, half;
  logic [TW-1:0]  pm_token_q;
  logic [BW-1:0]  pm_index_q;
  assign half = q_tag[mr_vec_pkg::TAG_HALF] || sub;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      we_q       <= '0;
      pm_valid_q <= 1'b0;
      epi_ack_q  <= 1'b0;
      ln_ack_q   <= 1'b0;
    end else begin
      we_q       <= (fire && is_qkv) ? {half, !half} : 2'b00;
      pm_valid_q <= fire && is_qkv && q_tag[mr_vec_pkg::TAG_PMAX] && !q_lo;
      epi_ack_q  <= fire && q_tag[mr_vec_pkg::TAG_EPI];
      ln_ack_q   <= fire && !q_tag[mr_vec_pkg::TAG_EPI];
    end
  end
  always_ff @(posedge clk_i) begin
    if (q_valid && is_qkv) begin
      waddr_q    <= QAW'(32'(slot) * QKV_WORDS) + QAW'(word);
      wdata_q    <= q_data;
      pm_token_q <= TW'(two_pass_i ? {1'b0, slot[15:1]} : slot);
      pm_index_q <= BW'(q_tag[mr_vec_pkg::TAG_BLOCK+:12] + 12'(sub));
    end
  end
  assign qkv_we_o    = we_q;
  assign qkv_waddr_o = waddr_q;
  assign qkv_wdata_o = {wdata_q, wdata_q};
  assign pm_valid_o  = pm_valid_q;
  assign pm_token_o  = pm_token_q;
  assign pm_index_o  = pm_index_q;
  assign pm_code_o   = wdata_q[263:256];
  assign epi_ack_o   = epi_ack_q;
  assign ln_ack_o    = ln_ack_q;

  // Acknowledgements go to the block's source; what lies in q/k/v memory has a place there.
  `MR_ASSERT(source, !epi_valid_i || epi_tag_i[mr_vec_pkg::TAG_EPI])
  `MR_ASSERT(place, !(q_valid && is_qkv) || (32'(slot) < SLOTS && 32'(word) < QKV_WORDS))
  `MR_ASSERT(maximum, !(q_valid && is_qkv && q_tag[mr_vec_pkg::TAG_PMAX]) ||
                      32'(q_tag[mr_vec_pkg::TAG_BLOCK+:12]) + 32'(sub) < 2 * PM_WORDS)

endmodule
