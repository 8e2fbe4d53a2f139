// SPDX-License-Identifier: Apache-2.0
// Included by mr_hostrd under FORMAL, with a memory that answers the bursts that it has taken, in
// their order, each with any number of beats. Of any burst, flushed or not: its beats go to the
// client whose request it was cut from, last_o comes with the last one of the request's last burst,
// and an error names its address; nothing else arrives, and none crosses 4 KiB. Holds by induction,
// and so do its contracts. That bursts are the whole of a request is mr_cut_4k's proof.
logic f_init = 1'b1;
always_ff @(posedge clk_i) f_init <= 1'b0;
always @* if (f_init) assume (!rst_ni);
always @* begin
  for (int i = 0; i < CLIENTS; i++) if (req_valid_i[i]) assume (req_beats_i[16*i+:16] != '0);
end

logic [OW:0] f_taken;  // bursts that the memory has, and has not answered to the end
always @* if (f_taken == '0) assume (!m_rvalid_i);
always_ff @(posedge clk_i) begin
  if (!rst_ni) f_taken <= '0;
  else f_taken <= f_taken + (OW + 1)'(m_arvalid_o && m_arready_i) - (OW + 1)'(r_done);
end

// ---- one burst, any: f_before are in flight before it -------------------------------------------
(* anyseq *) logic f_pick;
logic        f_trk, f_due, f_drop, f_last, f_err;
logic [OW:0] f_before;
logic [6:0]  f_len;
logic [IW+58:0] f_burst;
always_ff @(posedge clk_i) begin
  if (!rst_ni) begin
    f_trk <= 1'b0;
    f_due <= 1'b0;
    f_drop <= 1'b0;
  end else begin
    f_due  <= f_trk && f_before == '0 && m_rvalid_i;
    f_drop <= flush_i || !m_rvalid_i;
    f_last <= m_rlast_i && f_burst[58+IW];
    f_err  <= m_rresp_i != 2'b00;
    if (f_trk && r_done) begin
      f_before <= f_before - 1'b1;
      if (f_before == '0) f_trk <= 1'b0;
    end
    if (issue && f_pick && !f_trk && !f_due) begin
      f_trk    <= 1'b1;
      f_before <= out_q - (OW + 1)'(r_done);
      f_burst  <= {cut, who_q, addr};
      f_len    <= blen;
    end
  end
end
always @* begin
  if (!f_init && rst_ni) begin
    if (f_due && !f_drop) assert (valid_o == CLIENTS'(1) << f_burst[58+:IW] && last_o == f_last);
    if (f_due) assert (err_valid_o == f_err && err_addr_q == f_burst[57:0]);
    if (f_drop) assert (valid_o == '0);
    if (m_arvalid_o) assert (7'(m_araddr_o[11:6]) + m_arlen_o[6:0] < 7'd64 && m_arlen_o < 8'd64);
    // how it holds together
    assert (32'(out_q) == 32'(f_taken) + 32'(ar_valid_q) && out_q <= OUTSTANDING);
    assert (wptr_q == rptr_q + out_q[OW-1:0]);
    assert (!busy || f_left != '0);
    assert (32'(who_q) < CLIENTS || !busy);
    if (f_trk) begin
      assert (!f_due || f_before == '0);
      assert (f_before < out_q && 32'(f_burst[58+:IW]) < CLIENTS);
      assert (order_mem[OW'(rptr_q + f_before[OW-1:0])] == f_burst);
      if (ar_valid_q && f_before + 1'b1 == out_q)
        assert (ar_addr_q == f_burst[57:0] && ar_len_q == f_len - 7'd1);
    end
    if (f_due) assert (32'(f_burst[58+:IW]) < CLIENTS);
  end
end
