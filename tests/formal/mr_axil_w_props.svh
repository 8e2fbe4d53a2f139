// SPDX-License-Identifier: Apache-2.0
// Included by mr_axil_w under FORMAL. Whatever the master does, and as long as one pair at a time
// is taken and answered: a response stands until it is taken, there is one a pair and none before
// both halves of it, and pair k is address k and word k.
logic f_init = 1'b1;
always_ff @(posedge clk_i) f_init <= 1'b0;
always @* if (f_init) assume (!rst_ni);

(* anyconst *) logic [3:0] f_which;  // the pair that is tracked, and what it is
(* anyconst *) logic [AW-1:0] f_addr;
(* anyconst *) logic [35:0] f_word;
logic [3:0] f_aw, f_w, f_taken, f_done, f_b;  // halves, pairs and responses so far
logic       f_stood, f_b_stood;
logic [AW-1:0] f_stood_addr;
logic [35:0] f_stood_word;
logic       f_busy;
assign f_busy = f_taken != f_done;
always_ff @(posedge clk_i) begin
  if (!rst_ni) begin
    {f_aw, f_w, f_taken, f_done, f_b} <= '0;
    {f_stood, f_b_stood} <= '0;
  end else begin
    f_aw      <= f_aw + 4'(awvalid_i && awready_o);
    f_w       <= f_w + 4'(wvalid_i && wready_o);
    f_taken   <= f_taken + 4'(w_take_i);
    f_done    <= f_done + 4'(w_done_i);
    f_b       <= f_b + 4'(bvalid_o && bready_i);
    f_stood   <= w_valid_o && !w_take_i && !w_done_i;
    f_b_stood <= bvalid_o && !bready_i;
  end
  f_stood_addr <= w_addr_o;
  f_stood_word <= {w_strb_o, w_data_o};
end
always @* begin
  if (!f_init && rst_ni) begin
    if (w_take_i) assume (w_valid_o && !f_busy);
    if (w_done_i) assume (w_take_i || f_busy);
    if (awvalid_i && awready_o && f_aw == f_which) assume (awaddr_i == f_addr);
    if (wvalid_i && wready_o && f_w == f_which) assume ({wstrb_i, wdata_i} == f_word);
    if (f_b_stood) assert (bvalid_o);
    if (bvalid_o) assert (bresp_o == 2'b00 && f_aw != f_b && f_w != f_b && f_taken != f_b);
    if (f_stood) assert (w_valid_o && w_addr_o == f_stood_addr);
    if (f_stood) assert ({w_strb_o, w_data_o} == f_stood_word);
    if (w_valid_o && f_taken == f_which) assert (w_addr_o == f_addr);
    if (w_valid_o && f_taken == f_which) assert ({w_strb_o, w_data_o} == f_word);

    // By induction: the halves that wait, the pair in work, the response that stands.
    assert (f_aw - f_taken == 4'(aw_q) && f_w - f_taken == 4'(w_q));
    assert (f_done - f_b == 4'(bvalid_o));
    assert (f_taken - f_done <= 4'd1 && !(f_busy && bvalid_o));
    if (aw_q && f_taken == f_which) assert (w_addr_o == f_addr);
    if (w_q && f_taken == f_which) assert ({w_strb_o, w_data_o} == f_word);
    if (f_stood) assert (aw_q && w_q);
  end
end
