// SPDX-License-Identifier: Apache-2.0
// Included by mr_reader under FORMAL, with a memory and two consumers around it. Proved with
// OUTSTANDING 2 and small depths, otherwise as it is (window errors, read errors and flushes
// included):
//  - every beat reaches its consumer, once and in order (the memory answers with the beat's
//    address), but what a flush drops;
//  - a consumer's FIFO never overflows, credits never run negative;
//  - no burst crosses 4 KiB.
// Progress: see reader_progress.sv.
logic f_init = 1'b1;
always_ff @(posedge clk_i) f_init <= 1'b0;
always @* if (f_init) assume (!rst_ni);
logic f_flush;  // one that may not end yet
always_ff @(posedge clk_i) f_flush <= rst_ni && flush_i && !idle_o;
always @* if (f_flush) assume (flush_i);

// ---- memory: what was accepted on AR, one answer after the other --------------------------------
logic [11:0] f_m_addr0, f_m_addr1;
logic [7:0] f_m_len0, f_m_len1;
logic f_m_w, f_m_r;
logic [1:0] f_m_n;
logic [7:0] f_m_i;
logic f_ar;
logic [11:0] f_head_addr;
logic [7:0] f_head_len;
assign f_ar        = m_arvalid_o && m_arready_i;
assign f_head_addr = f_m_r ? f_m_addr1 : f_m_addr0;
assign f_head_len  = f_m_r ? f_m_len1 : f_m_len0;
always @* begin
  if (f_m_n == 2'd0) assume (!m_rvalid_i);
  if (m_rvalid_i) begin
    assume (m_rdata_i == f_head_addr + {4'b0, f_m_i});
    assume (m_rlast_i == (f_m_i == f_head_len));
  end
end
always_ff @(posedge clk_i) begin
  if (!rst_ni) begin
    f_m_w <= 1'b0;
    f_m_r <= 1'b0;
    f_m_n <= 2'd0;
    f_m_i <= '0;
  end else begin
    if (f_ar) begin
      f_m_w <= !f_m_w;
      if (f_m_w) f_m_addr1 <= m_araddr_o[17:6];
      else f_m_addr0 <= m_araddr_o[17:6];
      if (f_m_w) f_m_len1 <= m_arlen_o;
      else f_m_len0 <= m_arlen_o;
    end
    if (m_rvalid_i) f_m_i <= m_rlast_i ? '0 : f_m_i + 1'b1;
    if (m_rvalid_i && m_rlast_i) f_m_r <= !f_m_r;
    f_m_n <= f_m_n + {1'b0, f_ar} - {1'b0, m_rvalid_i && m_rlast_i};
  end
end

// ---- consumers ----------------------------------------------------------------------------------
logic [7:0] f_w_held, f_k_held;
logic [11:0] f_w_exp, f_k_exp;  // the beat that must come next
always @* begin
  if (f_w_held == '0 && !flush_i) assume (!w_credit_i);
  if (f_k_held == '0 && !flush_i) assume (!kv_credit_i);
end
always_ff @(posedge clk_i) begin
  if (!rst_ni) begin
    f_w_held <= '0;
    f_k_held <= '0;
    f_w_exp  <= 12'd61;
    f_k_exp  <= 12'd61;
  end else if (flush_i) begin
    f_w_held <= '0;
    f_k_held <= '0;
    f_w_exp  <= f_w_emit;
    f_k_exp  <= f_k_emit;
  end else begin
    f_w_held <= f_w_held + {7'b0, w_valid_o} - {7'b0, w_credit_i};
    f_k_held <= f_k_held + {7'b0, kv_valid_o} - {7'b0, kv_credit_i};
    if (w_valid_o) f_w_exp <= f_w_exp + 1'b1;
    if (kv_valid_o) f_k_exp <= f_k_exp + 1'b1;
  end
end

always @* begin
  if (!f_init && rst_ni) begin
    assert (!(w_valid_o && kv_valid_o));
    if (w_valid_o) assert (data_o == f_w_exp);
    if (kv_valid_o) assert (data_o == f_k_exp);
    assert (f_w_held + {7'b0, w_valid_o} <= 8'(W_DEPTH));
    assert (f_k_held + {7'b0, kv_valid_o} <= 8'(KV_DEPTH));
    if (m_arvalid_o) assert ({2'b0, m_araddr_o[11:6]} + m_arlen_o < 8'd64);
    cover (f_w_held == 8'(W_DEPTH) && f_k_held == 8'(KV_DEPTH));
  end
end

// ---- how it holds together (for the induction) --------------------------------------------------
logic [7:0] f_len0, f_len1, f_len_h, f_len_n, f_left_h;  // beats in flight; head, next
logic f_kv_h, f_kv_n;
logic [7:0] f_w_flight, f_k_flight;
logic [11:0] f_w_pos, f_k_pos, f_addr_h, f_addr_n;
always_ff @(posedge clk_i) begin
  if (w_take || k_take) begin
    if (wptr_q[0]) f_len1 <= {1'b0, take_beats};
    else f_len0 <= {1'b0, take_beats};
  end
end
assign f_len_h    = rptr_q[0] ? f_len1 : f_len0;
assign f_len_n    = rptr_q[0] ? f_len0 : f_len1;
assign f_left_h   = f_len_h - {2'b0, r_index_q};
assign f_kv_h     = order_kv_q[rptr_q];
assign f_kv_n     = order_kv_q[rptr_q + 1'b1];
assign f_addr_h   = order_mem[rptr_q][11:0];
assign f_addr_n   = order_mem[rptr_q + 1'b1][11:0];
assign f_w_flight = (out_q != '0 && !f_kv_h ? f_left_h : 8'd0) +
                    (out_q[OW] && !f_kv_n ? f_len_n : 8'd0);
assign f_k_flight = (out_q != '0 && f_kv_h ? f_left_h : 8'd0) +
                    (out_q[OW] && f_kv_n ? f_len_n : 8'd0);
assign f_w_pos    = f_w_exp + {11'b0, w_valid_q};  // of the next beat from the memory
assign f_k_pos    = f_k_exp + {11'b0, k_valid_q};

always @* begin
  if (!f_init && rst_ni) begin
    assert (out_q <= 2'd2 && f_m_n == out_q - {1'b0, ar_valid_q} && out_q >= {1'b0, ar_valid_q});
    assert (f_m_r == rptr_q[0] && f_m_w == (wptr_q[0] ^ ar_valid_q));
    assert (wptr_q[0] == (rptr_q[0] ^ out_q[0]));
    assert (f_m_i == {2'b0, r_index_q});
    if (out_q == '0 || f_m_n == 2'd0) assert (r_index_q == '0);
    if (out_q != '0) begin
      assert (f_len_h <= 8'd4 && {2'b0, r_index_q} < f_len_h);
      if (!flush_i) assert (f_addr_h + {6'b0, r_index_q} == (f_kv_h ? f_k_pos : f_w_pos));
      if (f_m_n != 2'd0) assert (f_head_addr == f_addr_h && f_head_len + 1'b1 == f_len_h);
      else assert (ar_addr_q[11:0] == f_addr_h && {1'b0, ar_len_q} + 1'b1 == f_len_h);
    end
    if (out_q == 2'd2) begin
      assert (f_len_n <= 8'd4 && f_len_n != '0);
      if (!flush_i)
        assert (f_addr_n == (f_kv_n ? f_k_pos : f_w_pos) +
                            (f_kv_n == f_kv_h ? {4'b0, f_left_h} : 12'd0));
      if (f_m_n == 2'd2)
        assert ((f_m_r ? f_m_addr0 : f_m_addr1) == f_addr_n &&
                (f_m_r ? f_m_len0 : f_m_len1) + 1'b1 == f_len_n);
      else assert (ar_addr_q[11:0] == f_addr_n && {1'b0, ar_len_q} + 1'b1 == f_len_n);
    end
    if (!flush_i) begin
      assert (f_w_emit == f_w_pos + {4'b0, f_w_flight});
      assert (f_k_emit == f_k_pos + {4'b0, f_k_flight});
      assert ({7'b0, w_valid_q} + f_w_held + f_w_flight + 8'(w_credit_q) == 8'(W_DEPTH));
      assert ({7'b0, k_valid_q} + f_k_held + f_k_flight + 8'(k_credit_q) == 8'(KV_DEPTH));
    end
    assert (f_w_held <= 8'(W_DEPTH) && f_k_held <= 8'(KV_DEPTH));
    assert (!(w_valid_q && k_valid_q));
    if (w_valid_q) assert (data_q == f_w_exp);
    if (k_valid_q) assert (data_q == f_k_exp);
    if (w_ok_q && w_bst_valid) assert (8'(w_credit_q) >= {1'b0, w_bst_beats});
    if (k_ok_q && k_bst_valid) assert (8'(k_credit_q) >= {1'b0, k_bst_beats});
    if (ar_valid_q) assert ({1'b0, ar_addr_q[5:0]} + ar_len_q < 7'd64);
  end
end
