// SPDX-License-Identifier: Apache-2.0
// Copies bytes between two AXI4 ports: from a list of source segments to a list of destination
// segments, both of any alignment and length.
//
// Parameters
//   BURSTS  bursts that may be outstanding, of reads and of writes; a power of two
//
// Segments: src_valid_i/src_ready_o and dst_valid_i/dst_ready_o, {address, bytes > 0}. The n-th
// byte of all source segments goes to the n-th byte of all destination segments; the owner sees to
// it that both lists have the same sum. Data that is read is taken from the port at any pace; the
// write side never waits for anything but the source's data. `zero_i` (level, while idle): source
// segments read as zeros, without an access.
//
// idle_o: no segment in work, all reads answered, all writes acknowledged. A response other than
// OKAY gives rerr_o or werr_o (pulse) with the burst's address on rerr_addr_o or werr_addr_o; the
// copy goes on to its end, so that there is nothing to take back.
// AXI: one ID, INCR, <= 64 beats of 64 bytes, never across 4 KiB; AW comes with the burst's first
// W beat at the earliest.
`include "mr_assert.svh"
`include "mr_bundles.svh"
module mr_copy #(
  parameter int BURSTS = 8
) (
  input  logic         clk_i,
  input  logic         rst_ni,
  input  logic         zero_i,

  input  logic         src_valid_i,
  output logic         src_ready_o,
  input  logic [63:0]  src_addr_i,
  input  logic [31:0]  src_bytes_i,
  input  logic         dst_valid_i,
  output logic         dst_ready_o,
  input  logic [63:0]  dst_addr_i,
  input  logic [31:0]  dst_bytes_i,

  output logic         idle_o,
  output logic         rerr_o,
  output logic         werr_o,
  output logic [63:0]  rerr_addr_o,
  output logic [63:0]  werr_addr_o,

  `MR_AXI_CR_M(m_),
  `MR_AXI_W_M(m_, 1)
);

  function automatic [6:0] burst_beats(input logic [5:0] offset, input logic [12:0] bytes);
    burst_beats = 7'((13'(offset) + bytes + 13'd63) >> 6);
  endfunction
  // Bytes of a beat that begins at `lo` with `left` bytes of its burst to come.
  function automatic [6:0] beat_bytes(input logic [5:0] lo, input logic [12:0] left);
    logic [6:0] room;
    room       = 7'd64 - {1'b0, lo};
    beat_bytes = left < 13'(room) ? left[6:0] : room;
  endfunction
  function automatic [511:0] down(input logic [511:0] d, input logic [5:0] bytes);
    down = d;
    for (int s = 0; s < 6; s++) if (bytes[s]) down = down >> (8 << s);
  endfunction
  function automatic [511:0] up(input logic [511:0] d, input logic [5:0] bytes);
    up = d;
    for (int s = 0; s < 6; s++) if (bytes[s]) up = up << (8 << s);
  endfunction
  function automatic [63:0] lanes(input logic [5:0] lo, input logic [6:0] n);
    lanes = (n[6] ? '1 : (64'd1 << n[5:0]) - 64'd1) << lo;
  endfunction

  // ---- source: addresses ------------------------------------------------------------------------
  localparam int BW = $clog2(BURSTS);
  logic        src_busy, unused_s_last, unused_s_valid;  // a segment is in work
  logic [63:0] sa;
  logic [12:0] sb;
  logic        s_go, ar_free, meta_full;
  logic [76:0] meta [0:BURSTS-1];  // {first byte, bytes} of bursts whose data has not all come
  logic [BW-1:0] mw_q, mr_q;
  logic [BW:0] mn_q;
  mr_cut_4k #(.PAGE_LOG2(12), .ADDR(64), .LEFT(32), .MOST(4096)) u_src_cut (
    .clk_i, .rst_ni, .clear_i(1'b0), .load_i(src_valid_i && src_ready_o), .addr_i(src_addr_i),
    .left_i(src_bytes_i), .busy_o(src_busy), .valid_o(unused_s_valid), .next_i(s_go), .addr_o(sa),
    .n_o(sb), .last_o(unused_s_last)
  );
  assign src_ready_o = !src_busy;
  assign ar_free     = !m_arvalid_o || m_arready_i;
  assign meta_full   = mn_q[BW];
  assign s_go        = src_busy && !meta_full && (zero_i || ar_free);
  logic        r_valid, r_take, r_end;
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      m_arvalid_o <= 1'b0;
      mw_q        <= '0;
      mr_q        <= '0;
      mn_q        <= '0;
    end else begin
      if (s_go && !zero_i) m_arvalid_o <= 1'b1;
      else if (m_arready_i) m_arvalid_o <= 1'b0;
      if (s_go) mw_q <= mw_q + 1'b1;
      if (r_end) mr_q <= mr_q + 1'b1;
      mn_q <= mn_q + (BW + 1)'(s_go) - (BW + 1)'(r_end);
    end
    if (s_go) meta[mw_q] <= {sa, sb};
    if (s_go && ar_free) begin
      m_araddr_o <= {sa[63:6], 6'd0};
      m_arlen_o  <= {1'b0, burst_beats(sa[5:0], sb) - 7'd1};
    end
  end

  // ---- source: data, shifted down to byte 0 -----------------------------------------------------
  logic         first_q;                    // the next beat begins a burst
  logic [12:0]  rl_q, r_left;               // bytes of the burst still to come
  logic [5:0]   r_lo;
  logic [6:0]   r_n;
  logic         in_q, in_free;              // a beat waits for its place in the buffer
  logic [511:0] in_data_q;
  logic [6:0]   in_n_q;
  assign r_valid    = mn_q != '0 && (zero_i || m_rvalid_i);
  assign m_rready_o = mn_q != '0 && !zero_i && in_free;
  assign r_take     = r_valid && in_free;
  assign r_lo       = first_q ? meta[mr_q][18:13] : 6'd0;
  assign r_left     = first_q ? meta[mr_q][12:0] : rl_q;
  assign r_n        = beat_bytes(r_lo, r_left);
  assign r_end      = r_take && r_left == 13'(r_n);
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      first_q <= 1'b1;
      in_q    <= 1'b0;
      rerr_o  <= 1'b0;
    end else begin
      if (r_take) first_q <= r_end;
      if (r_take) in_q <= 1'b1;
      else if (in_free) in_q <= 1'b0;
      rerr_o <= r_take && !zero_i && m_rresp_i != 2'b00;
    end
    if (r_take) begin
      rerr_addr_o <= meta[mr_q][76:13];
      rl_q      <= r_left - 13'(r_n);
      in_n_q    <= r_n;
      in_data_q <= zero_i ? '0 : down(m_rdata_i, r_lo);
    end
  end

  // ---- buffer: up to 128 bytes, the oldest at the bottom ----------------------------------------
  // Functions, called where the clock is: a simulator looks at them in the copier's cycles only.
  function automatic [1023:0] dropped(input logic [1023:0] d, input logic [6:0] bytes);
    dropped = d;
    for (int s = 0; s < 7; s++) if (bytes[s]) dropped = dropped >> (8 << s);
  endfunction
  function automatic [1023:0] placed(input logic [511:0] d, input logic [6:0] n,
                                     input logic [7:0] at);
    placed = {512'd0, d & (n[6] ? '1 : ~({512{1'b1}} << {n[5:0], 3'd0}))};
    for (int s = 0; s < 7; s++) if (at[s]) placed = placed << (8 << s);
  endfunction
  logic [1023:0] buf_q;
  logic [7:0]    cnt_q, kept;
  logic          pop, push;
  logic [6:0]    pop_n;
  // A new beat is added above what stays: room for 64 bytes before the pop is enough.
  assign in_free = !in_q || cnt_q <= 8'd64;
  assign kept    = cnt_q - (pop ? 8'(pop_n) : 8'd0);
  assign push    = in_q && cnt_q <= 8'd64;
  always_ff @(posedge clk_i) begin
    if (!rst_ni) cnt_q <= '0;
    else cnt_q <= kept + (push ? 8'(in_n_q) : 8'd0);
    if (!rst_ni) buf_q <= '0;
    else if (push || pop) begin
      buf_q <= (pop ? dropped(buf_q, pop_n) : buf_q) |
               (push ? placed(in_data_q, in_n_q, kept) : '0);
    end
  end

  // ---- destination ------------------------------------------------------------------------------
  logic        dst_q, burst_q;   // a segment is in work; a burst of it has begun
  logic        more, unused_d_valid, unused_d_last;  // there are bytes behind the burst
  logic [63:0] da;
  logic [12:0] db, wl_q;         // of the burst still to come
  logic [5:0]  lo_q;
  logic [6:0]  n;
  logic        d_go, w_free, w_end;
  logic [63:0] open [0:BURSTS-1];  // addresses of bursts without a response
  logic [BW-1:0] ow_q, or_q;
  logic [BW:0] open_q;
  mr_cut_4k #(.PAGE_LOG2(12), .ADDR(64), .LEFT(32), .MOST(4096)) u_dst_cut (
    .clk_i, .rst_ni, .clear_i(1'b0), .load_i(dst_valid_i && dst_ready_o), .addr_i(dst_addr_i),
    .left_i(dst_bytes_i), .busy_o(more), .valid_o(unused_d_valid), .next_i(d_go), .addr_o(da),
    .n_o(db), .last_o(unused_d_last)
  );
  assign dst_ready_o = !dst_q;
  assign d_go        = dst_q && !burst_q && more && !m_awvalid_o && !open_q[BW];
  assign n           = beat_bytes(lo_q, wl_q);
  assign w_free      = !m_wvalid_o || m_wready_i;
  assign pop         = burst_q && w_free && cnt_q >= 8'(n);
  assign pop_n       = n;
  assign w_end       = pop && wl_q == 13'(n);
  assign m_bready_o  = 1'b1;
  logic b_take;
  assign b_take      = m_bvalid_i && open_q != '0;
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      dst_q       <= 1'b0;
      burst_q     <= 1'b0;
      m_awvalid_o <= 1'b0;
      m_wvalid_o  <= 1'b0;
      open_q      <= '0;
      ow_q        <= '0;
      or_q        <= '0;
      werr_o      <= 1'b0;
    end else begin
      if (dst_valid_i && dst_ready_o) dst_q <= 1'b1;
      else if (w_end && !more) dst_q <= 1'b0;
      if (d_go) burst_q <= 1'b1;
      else if (w_end) burst_q <= 1'b0;
      if (d_go) m_awvalid_o <= 1'b1;
      else if (m_awready_i) m_awvalid_o <= 1'b0;
      if (pop) m_wvalid_o <= 1'b1;
      else if (m_wready_i) m_wvalid_o <= 1'b0;
      open_q <= open_q + (BW + 1)'(d_go) - (BW + 1)'(b_take);
      if (d_go) ow_q <= ow_q + 1'b1;
      if (b_take) or_q <= or_q + 1'b1;
      werr_o <= b_take && m_bresp_i != 2'b00;
    end
    if (d_go) open[ow_q] <= da;
    if (b_take) werr_addr_o <= open[or_q];
    if (d_go) begin
      m_awaddr_o <= {da[63:6], 6'd0};
      m_awlen_o  <= {1'b0, burst_beats(da[5:0], db) - 7'd1};
      wl_q       <= db;
      lo_q       <= da[5:0];
    end else if (pop) begin
      wl_q <= wl_q - 13'(n);
      lo_q <= '0;
    end
    if (pop) begin
      m_wdata_o <= up(buf_q[511:0], lo_q);
      m_wstrb_o <= lanes(lo_q, n);
      m_wlast_o <= w_end;
    end
  end

  assign idle_o = !src_busy && mn_q == '0 && !in_q && !m_arvalid_o && !dst_q && !m_awvalid_o &&
                  !m_wvalid_o && open_q == '0 && cnt_q == '0;

  `MR_ASSERT_STABLE(ar, m_arvalid_o, m_arready_i, {m_araddr_o, m_arlen_o})
  `MR_ASSERT_STABLE(aw, m_awvalid_o, m_awready_i, {m_awaddr_o, m_awlen_o})
  `MR_ASSERT_STABLE(w, m_wvalid_o, m_wready_i, {m_wdata_o, m_wstrb_o, m_wlast_o})
  `MR_ASSERT_COUNT(reads, mn_q, s_go, r_end, BURSTS)
  `MR_ASSERT_COUNT(writes, open_q, d_go, b_take, BURSTS)
  `MR_ASSERT_COUNT(bytes, cnt_q, push ? in_n_q : 7'd0, pop ? pop_n : 7'd0, 128)

endmodule
