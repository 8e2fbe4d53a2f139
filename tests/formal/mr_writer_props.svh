// SPDX-License-Identifier: Apache-2.0
// Included by mr_writer under FORMAL, with two bursts in flight, a data buffer of which pointers
// alone are looked at (any_ram.sv), and a memory that answers a burst once it has all of it. Of any
// burst: AW has its address and length, W its beats and, with the last one, its byte enables; its
// response ends its job if it is the job's last, and names its address if it is an error. None
// crosses 4 KiB, and what W reads of the buffer is there. Holds by induction, and so do its
// contracts. That bursts are the whole of a job is mr_cut_4k's proof.
logic f_init = 1'b1;
always_ff @(posedge clk_i) f_init <= 1'b0;
always @* if (f_init) assume (!rst_ni);
always @* begin
  for (int i = 0; i < CLIENTS; i++) if (job_valid_i[i]) assume (job_beats_i[16*i+:16] != '0);
end

// Bursts without their response whose AW, whose last beat the memory has; beats of the next one.
logic [BW:0] f_aw, f_w;
logic [6:0]  f_beats;
always @* if (f_aw == '0 || f_w == '0) assume (!m_bvalid_i);
always_ff @(posedge clk_i) begin
  if (!rst_ni) begin
    f_aw    <= '0;
    f_w     <= '0;
    f_beats <= '0;
  end else begin
    f_aw <= f_aw + (BW + 1)'(awv_q && m_awready_i) - (BW + 1)'(m_bvalid_i);
    f_w  <= f_w + (BW + 1)'(wv_q && m_wready_i && wlast_q) - (BW + 1)'(m_bvalid_i);
    if (wv_q && m_wready_i) f_beats <= wlast_q ? '0 : f_beats + 7'd1;
  end
end

// ---- one burst, any: f_before are in the ring before it -----------------------------------------
(* anyseq *) logic f_pick;
logic        f_trk, f_due, f_end, f_err;
logic [BW:0] f_before;
logic [57:0] f_addr;
logic [6:0]  f_len;
logic [63:0] f_strb;
logic [IW:0] f_tag;
always_ff @(posedge clk_i) begin
  if (!rst_ni) begin
    f_trk <= 1'b0;
    f_due <= 1'b0;
  end else begin
    f_due <= f_trk && b_beat && f_before == '0;
    f_end <= f_tag[IW] && !flush_i;
    f_err <= m_bresp_i != 2'b00;
    if (f_trk && b_beat) begin
      f_before <= f_before - 1'b1;
      if (f_before == '0) f_trk <= 1'b0;
    end
    if (push_ok && f_pick && !f_trk && !f_due) begin
      f_trk    <= 1'b1;
      f_before <= ring_q - (BW + 1)'(b_beat);
      {f_addr, f_len, f_tag} <= {baddr_q, blen_q, blast_q, who_q};
      f_strb   <= blast_q ? strb_q : '1;
    end
  end
end

logic [BW-1:0] f_at, f_w_at;  // the tracked burst's place; that of the beat at W
logic [BW:0]   f_to_w;        // bursts whose last beat has not been read
logic [FW:0]   f_part;        // beats of the burst that is not complete
assign f_at   = b_q + f_before[BW-1:0];
assign f_w_at = w_q - BW'(wv_q && wlast_q);
assign f_to_w = aw_cnt_q + w_cnt_q;
assign f_part = state_q == S_FILL ? (FW + 1)'(blen_q) - (FW + 1)'(need_q) : '0;
always @* begin
  if (!f_init && rst_ni) begin
    if (f_due) begin
      assert (done_o == (f_end ? CLIENTS'(1) << f_tag[IW-1:0] : '0));
      assert (err_valid_o == f_err && err_addr_q == f_addr);
    end
    if (awv_q) assert ({1'b0, awaddr_q[5:0]} + awlen_q < 7'd64 && awlen_q < 7'd64);
    if (f_trk) begin
      assert (!f_due && f_before < ring_q);
      assert (ring_addr[f_at] == f_addr && ring_len[f_at] == f_len && ring_tag[f_at] == f_tag &&
              ring_strb[f_at] == f_strb);
      if (awv_q && f_before + aw_cnt_q + 1'b1 == ring_q)
        assert (awaddr_q == f_addr && awlen_q == f_len - 7'd1);
    end
    if (wv_q) begin
      assert (wlast_q == (f_beats + 7'd1 == ring_len[f_w_at]));
      assert (m_wstrb_o == (wlast_q ? ring_strb[f_w_at] : '1));
    end
    // how it holds together: the job
    assert (state_q <= S_FILL);
    assert (unused_busy == (state_q == S_CUT || (state_q == S_FILL && !blast_q)));
    if (unused_busy) assert (f_left != '0);
    if (state_q == S_FILL) begin
      assert (need_q != '0 && need_q <= blen_q && blen_q <= 7'd64);
      assert ({1'b0, baddr_q[5:0]} + blen_q <= 7'd64 && !ring_q[BW]);
    end
    for (int i = 0; i < CLIENTS; i++)
      if (ready_q[i]) assert (state_q == S_FILL && who_q == IW'(i) && !fill_q[FW]);
    // the ring
    assert (ring_q <= BURSTS && aw_cnt_q <= ring_q && 32'(f_to_w) == 32'(aw_cnt_q) + 32'(w_cnt_q));
    assert (32'(ring_q) == 32'(aw_cnt_q) + 32'(awv_q) + 32'(f_aw));
    assert (32'(ring_q) == 32'(f_to_w) + 32'(wv_q && wlast_q) + 32'(f_w));
    assert (rw_q == b_q + ring_q[BW-1:0] && rw_q == aw_q + aw_cnt_q[BW-1:0] &&
            aw_q == w_q + w_cnt_q[BW-1:0]);
    for (int i = 0; i < 2; i++)
      if (i < ring_q) begin
        assert (ring_len[BW'(b_q+BW'(i))] != '0 && ring_len[BW'(b_q+BW'(i))] <= 7'd64);
        assert ({1'b0, ring_addr[BW'(b_q+BW'(i))][5:0]} + ring_len[BW'(b_q+BW'(i))] <= 7'd64);
      end
    // beats
    assert (f_beats < 7'd64);
    assert (wbeat_q == (wv_q && wlast_q ? 7'd0 : f_beats + 7'(wv_q)));
    if (wbeat_q != '0) assert (w_cnt_q != '0);
    if (wv_q && wlast_q) assert (ring_q != f_to_w);
    if (f_to_w != '0) assert (wbeat_q < ring_len[w_q]);
    assert (comm_q == (f_to_w != '0 ? (FW + 1)'(ring_len[w_q]) : '0) - (FW + 1)'(wbeat_q) +
                      (f_to_w > 1 ? (FW + 1)'(ring_len[w_q+1'b1]) : '0));
    assert (fill_q == comm_q + f_part && fill_q <= FIFO && comm_q <= fill_q);
    assert (cptr_q == rptr_q + comm_q[FW-1:0] && wptr_q == rptr_q + fill_q[FW-1:0]);
  end
end
