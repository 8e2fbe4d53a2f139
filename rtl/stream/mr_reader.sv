// SPDX-License-Identifier: Apache-2.0
// AXI4 read master of one memory channel: two sources of jobs, weights (w_) and KV (kv_).
//
// Parameters
//   DW           beat width in bits (512; less only in proofs)
//   W_DEPTH      beats of the weight consumer's FIFO: its credits at reset
//   KV_DEPTH     beats of the KV consumer's FIFO
//   W_BURST      longest weight burst in beats, a power of two, 1..64, <= W_DEPTH
//   KV_BURST     longest KV burst: short enough that KV_DEPTH credits cover the memory's latency
//   QUANTUM      beats of KV that may be read in a row while a weight burst waits with credits
//   OUTSTANDING  bursts in flight, a power of two
//
// Jobs: valid/ready; offset and beats (> 0) in the source's window (x_base_i, 64-byte aligned, and
// x_limit_i in beats; both constant while jobs are inside). Jobs of one source are served in order.
// Data: x_valid_o with data_o, one cycle after the R beat, never refused. x_credit_i pulse: the
// consumer freed one beat. A burst is requested only with credits for all of it, so RREADY is
// constantly 1.
// Turns: KV has priority, because attention waits for it while weights lie in the ring. Its turn
// ends after QUANTUM beats, or earlier when its consumer stops taking beats as they come; then
// weights get at least one burst. Long turns, since memory opens its rows again at each change.
// AXI: one ID, INCR, 64-byte beats, never across 4 KiB, ARVALID and payload stable until ARREADY.
//
// Errors: a job outside its window (WINDOW, address of the job; nothing of it is requested), RRESP
// other than OKAY (READ, address of the beat; the beat is delivered). err_valid_o is a pulse,
// only for the first one. After it nothing is requested and no job is taken until flush_i or reset;
// outstanding bursts still arrive. idle_o: no burst is outstanding.
// flush_i (level, held until idle_o at least): takes no job, drops those of both sources and the
// outstanding beats as they arrive, returns all credits and ignores those that are pulsed. It falls
// with the consumers empty.
//
// Strobes, exactly one of these in a cycle: cnt_issue_o a beat arrived, or an address is being
// prepared with nothing outstanding; cnt_nocredit_o no beat, and a burst waits for credits that the
// consumer holds; cnt_wait_o no beat, bursts outstanding; cnt_idle_o no job and nothing
// outstanding.
// cnt_w_beat_o, cnt_kv_beat_o: a beat of that source arrived (dropped ones too).
`include "mr_assert.svh"
`include "mr_bundles.svh"
module mr_reader #(
  parameter int DW = 512,
  parameter int W_DEPTH = 256,
  parameter int KV_DEPTH = 128,
  parameter int W_BURST = 64,
  parameter int KV_BURST = 16,
  parameter int QUANTUM = 512,
  parameter int OUTSTANDING = 64
) (
  input  logic          clk_i,
  input  logic          rst_ni,

  `MR_RJOB_S(w_),
  output logic          w_valid_o,
  input  logic          w_credit_i,

  `MR_RJOB_S(kv_),
  output logic          kv_valid_o,
  input  logic          kv_credit_i,

  output logic [DW-1:0] data_o,  // of w_valid_o and kv_valid_o

  input  logic          flush_i,
  output logic          idle_o,
  `MR_ERR_M(err_, 1),

  `MR_READER_CNT_M(cnt_, 1),

  output logic          m_arvalid_o,
  input  logic          m_arready_i,
  output logic [63:0]   m_araddr_o,
  output logic [7:0]    m_arlen_o,
  input  logic          m_rvalid_i,
  input  logic [DW-1:0] m_rdata_i,
  input  logic [1:0]    m_rresp_i,
  input  logic          m_rlast_i
);

  localparam int WCW = $clog2(W_DEPTH + 1);
  localparam int KCW = $clog2(KV_DEPTH + 1);
  localparam int OW = $clog2(OUTSTANDING);
  localparam int QW = $clog2(QUANTUM + 64 + 1);
  // Beats between an R beat and the credit that a prompt consumer returns for it, about twice: a
  // source without credits whose consumer holds no more than this waits for the memory, not for the
  // consumer.
  localparam int PROMPT = 16;

  // ---- jobs to bursts ---------------------------------------------------------------------------
  logic halt_q, stop;
  assign stop  = halt_q;

`ifdef FORMAL
  logic [11:0] f_w_emit, f_k_emit;
`endif
  logic w_bst_valid, w_take, w_busy, w_err, w_bad;
  logic [57:0] w_bst_addr;
  logic [6:0] w_bst_beats;
  logic [63:0] w_err_addr;
  mr_read_jobs #(.BURST(W_BURST)) u_w_jobs (
    .clk_i, .rst_ni, .stop_i(stop), .clear_i(flush_i),
    `MR_RJOB_S_TO(, w_),
    .bst_valid_o(w_bst_valid), .bst_ready_i(w_take), .bst_addr_o(w_bst_addr),
    .bst_beats_o(w_bst_beats), .busy_o(w_busy), .err_o(w_err), .bad_o(w_bad),
    .err_addr_o(w_err_addr)
`ifdef FORMAL
    , .f_emit_o(f_w_emit)
`endif
  );

  logic k_bst_valid, k_take, k_busy, k_err, k_bad;
  logic [57:0] k_bst_addr;
  logic [6:0] k_bst_beats;
  logic [63:0] k_err_addr;
  mr_read_jobs #(.BURST(KV_BURST)) u_kv_jobs (
    .clk_i, .rst_ni, .stop_i(stop), .clear_i(flush_i),
    `MR_RJOB_S_TO(, kv_),
    .bst_valid_o(k_bst_valid), .bst_ready_i(k_take), .bst_addr_o(k_bst_addr),
    .bst_beats_o(k_bst_beats), .busy_o(k_busy), .err_o(k_err), .bad_o(k_bad),
    .err_addr_o(k_err_addr)
`ifdef FORMAL
    , .f_emit_o(f_k_emit)
`endif
  );

  // ---- credits ----------------------------------------------------------------------------------
  // Whether a burst has its credits is decided one cycle before it may be granted; that is safe
  // because only the source's own grant takes credits away.
  logic [WCW-1:0] w_credit_q;
  logic [KCW-1:0] k_credit_q;
  logic w_ok_q, k_ok_q, w_short_q, k_short_q;
  logic k_block_q;  // short, and not for beats that are still to come
  logic w_have, k_have;
  // Beats that the consumers hold.
  logic [WCW-1:0] w_held_q;
  logic [KCW-1:0] k_held_q;
  assign w_have = 32'(w_credit_q) >= 32'(w_bst_beats);
  assign k_have = 32'(k_credit_q) >= 32'(k_bst_beats);

  always_ff @(posedge clk_i) begin
    if (!rst_ni || flush_i) begin
      w_credit_q <= WCW'(W_DEPTH);
      k_credit_q <= KCW'(KV_DEPTH);
      w_ok_q     <= 1'b0;
      k_ok_q     <= 1'b0;
      w_short_q  <= 1'b0;
      k_short_q  <= 1'b0;
      k_block_q  <= 1'b0;
    end else begin
      w_credit_q <= w_credit_q + WCW'(w_credit_i) - (w_take ? WCW'(w_bst_beats) : '0);
      k_credit_q <= k_credit_q + KCW'(kv_credit_i) - (k_take ? KCW'(k_bst_beats) : '0);
      w_ok_q     <= w_bst_valid && w_have && !w_take;
      k_ok_q     <= k_bst_valid && k_have && !k_take;
      w_short_q  <= w_bst_valid && !w_have && !w_take;
      k_short_q  <= k_bst_valid && !k_have && !k_take;
      k_block_q  <= k_bst_valid && !k_have && !k_take &&
                    (32'(k_held_q) > PROMPT || 32'(k_held_q) + 32'(k_credit_q) == KV_DEPTH);
    end
  end

  // ---- arbitration ------------------------------------------------------------------------------
  logic sel_q;  // 0 weights, 1 KV
  logic [QW-1:0] quota_q;
  logic used, w_can, k_can, slot, ar_valid_q;
  logic [OW:0] out_q;  // bursts in flight, the one in the AR register included
  assign used = (quota_q >= QW'(QUANTUM));
  assign slot = (!ar_valid_q || m_arready_i) && !out_q[OW] && !stop && !flush_i;
  // KV goes first: its FIFO holds little, and what attention works on is waited for, while weights
  // lie in the ring. Its turn lasts as long as its consumer takes beats as they come (then credits
  // come back and those in flight cover the time), at most QUANTUM beats: long turns, because
  // memory has to open its rows again at each change. Between two bursts (neither ok nor short) it
  // goes on.
  assign w_can = w_ok_q && w_bst_valid &&
                 (!sel_q ? !k_ok_q : (used || !k_busy || k_block_q));
  assign k_can = k_ok_q && k_bst_valid && !(sel_q && used && w_ok_q);
  logic [57:0] take_addr;
  logic [6:0] take_beats;
  assign take_addr  = k_take ? k_bst_addr : w_bst_addr;
  assign take_beats = k_take ? k_bst_beats : w_bst_beats;
  assign w_take = slot && w_can;
  assign k_take = slot && k_can && !w_can;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      ar_valid_q <= 1'b0;
    end else begin
      if (w_take || k_take) ar_valid_q <= 1'b1;
      else if (m_arready_i) ar_valid_q <= 1'b0;
    end
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni || flush_i) begin
      sel_q   <= 1'b0;
      quota_q <= '0;
    end else if (w_take || k_take) begin
      sel_q   <= k_take;
      // Beyond the quantum the exact number does not matter.
      if (sel_q != k_take) quota_q <= QW'(take_beats);
      else if (!used) quota_q <= quota_q + QW'(take_beats);
    end
  end

  logic [57:0] ar_addr_q;
  logic [6:0] ar_len_q;
  always_ff @(posedge clk_i) begin
    if (w_take || k_take) begin
      ar_addr_q <= take_addr;
      ar_len_q  <= take_beats - 7'd1;
    end
  end
  assign m_arvalid_o = ar_valid_q;
  assign m_araddr_o  = {ar_addr_q, 6'b0};
  assign m_arlen_o   = {1'b0, ar_len_q};

  // ---- order of the bursts in flight ------------------------------------------------------------
  logic [57:0] order_mem [0:OUTSTANDING-1];  // address in beats
  logic [OUTSTANDING-1:0] order_kv_q;
  logic [OW-1:0] wptr_q, rptr_q;
  logic [5:0] r_index_q;  // beat inside its burst
  logic r_beat, r_done, r_kv;
  assign r_beat = m_rvalid_i && (out_q != '0);
  assign r_done = r_beat && m_rlast_i;
  assign r_kv   = order_kv_q[rptr_q];

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      wptr_q    <= '0;
      rptr_q    <= '0;
      out_q     <= '0;
      r_index_q <= '0;
    end else begin
      if (w_take || k_take) wptr_q <= wptr_q + 1'b1;
      if (r_done) rptr_q <= rptr_q + 1'b1;
      if ((w_take || k_take) && !r_done) out_q <= out_q + 1'b1;
      if (r_done && !(w_take || k_take)) out_q <= out_q - 1'b1;
      if (r_beat) r_index_q <= m_rlast_i ? '0 : r_index_q + 1'b1;
    end
  end
  always_ff @(posedge clk_i) begin
    if (w_take || k_take) begin
      order_mem[wptr_q]  <= take_addr;
      order_kv_q[wptr_q] <= k_take;
    end
  end

  // ---- data -------------------------------------------------------------------------------------
  logic w_valid_q, k_valid_q, cnt_w_q, cnt_k_q;
  logic [DW-1:0] data_q;
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      w_valid_q <= 1'b0;
      k_valid_q <= 1'b0;
      cnt_w_q   <= 1'b0;
      cnt_k_q   <= 1'b0;
    end else begin
      w_valid_q <= r_beat && !r_kv && !flush_i;
      k_valid_q <= r_beat && r_kv && !flush_i;
      cnt_w_q   <= r_beat && !r_kv;
      cnt_k_q   <= r_beat && r_kv;
    end
  end
  always_ff @(posedge clk_i) begin
    if (m_rvalid_i) data_q <= m_rdata_i;
  end
  assign w_valid_o     = w_valid_q;
  assign kv_valid_o    = k_valid_q;
  assign data_o        = data_q;
  assign cnt_w_beat_o  = cnt_w_q;
  assign cnt_kv_beat_o = cnt_k_q;

  // ---- errors and flush -------------------------------------------------------------------------
  logic err_valid_q, r_err, any_err;
  logic [7:0] err_code_q;
  logic [63:0] err_addr_q;
  assign r_err   = r_beat && (m_rresp_i != 2'b00);
  assign any_err = (r_err || w_err || k_err) && !halt_q && !flush_i;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      halt_q      <= 1'b0;
      err_valid_q <= 1'b0;
    end else begin
      err_valid_q <= any_err;
      if (flush_i) halt_q <= 1'b0;
      else if (any_err) halt_q <= 1'b1;
    end
  end
  always_ff @(posedge clk_i) begin
    // Without waiting for whose turn it is: what is here at the first error stays.
    if (!halt_q && (r_err || w_bad || k_bad)) begin
      err_code_q <= r_err ? mr_pkg::DEVERR_READ[7:0] : mr_pkg::DEVERR_WINDOW[7:0];
      if (r_err) err_addr_q <= {order_mem[rptr_q] + {52'b0, r_index_q}, 6'b0};
      else err_addr_q <= w_err ? w_err_addr : k_err_addr;
    end
  end
  assign err_valid_o = err_valid_q;
  assign err_code_o  = err_code_q;
  assign err_addr_o  = err_addr_q;
  assign idle_o      = out_q == '0;

  // ---- counters ---------------------------------------------------------------------------------
  logic starved;
  assign starved = (w_short_q && 32'(w_held_q) > PROMPT) || (k_short_q && 32'(k_held_q) > PROMPT);
  always_ff @(posedge clk_i) begin
    if (!rst_ni || flush_i) begin
      w_held_q <= '0;
      k_held_q <= '0;
    end else begin
      w_held_q <= w_held_q + WCW'(r_beat && !r_kv) - WCW'(w_credit_i);
      k_held_q <= k_held_q + KCW'(r_beat && r_kv) - KCW'(kv_credit_i);
    end
  end
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      cnt_issue_o    <= 1'b0;
      cnt_nocredit_o <= 1'b0;
      cnt_wait_o     <= 1'b0;
      cnt_idle_o     <= 1'b0;
    end else begin
      cnt_issue_o    <= r_beat || (!starved && out_q == '0 && (w_busy || k_busy));
      cnt_nocredit_o <= !r_beat && starved;
      cnt_wait_o     <= !r_beat && !starved && out_q != '0;
      cnt_idle_o     <= !r_beat && !starved && out_q == '0 && !(w_busy || k_busy);
    end
  end

  `MR_ASSERT_STABLE(ar, m_arvalid_o, m_arready_i, {m_araddr_o, m_arlen_o})
  `MR_ASSERT_COUNT(flight, out_q, w_take || k_take, r_done, OUTSTANDING)
  `MR_ASSERT_COUNT(w_credit, w_credit_q, w_credit_i && !flush_i, w_take ? w_bst_beats : 7'd0,
                   W_DEPTH)
  `MR_ASSERT_COUNT(k_credit, k_credit_q, kv_credit_i && !flush_i, k_take ? k_bst_beats : 7'd0,
                   KV_DEPTH)

`ifdef FORMAL
  `include "mr_reader_props.svh"
`endif

endmodule
