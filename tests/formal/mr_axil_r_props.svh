// SPDX-License-Identifier: Apache-2.0
// Included by mr_axil_r under FORMAL. Whatever the master does, and as long as one address at a
// time is taken and answered: an answer stands as it is until it is taken, there is one an address
// and none before it, and answer k is what was given for address k.
logic f_init = 1'b1;
always_ff @(posedge clk_i) f_init <= 1'b0;
always @* if (f_init) assume (!rst_ni);

(* anyconst *) logic [3:0] f_which;  // the read that is tracked, its address and its answer
(* anyconst *) logic [AW-1:0] f_addr;
(* anyconst *) logic [31:0] f_word;
logic [3:0] f_ar, f_taken, f_done, f_r;  // addresses, reads and answers so far
logic       f_stood, f_r_stood, f_busy;
logic [AW-1:0] f_stood_addr;
logic [31:0] f_stood_word;
logic       f_answered;  // in the cycle before
assign f_busy = f_taken != f_done;
always_ff @(posedge clk_i) begin
  if (!rst_ni) begin
    {f_ar, f_taken, f_done, f_r} <= '0;
    {f_stood, f_r_stood} <= '0;
  end else begin
    f_ar      <= f_ar + 4'(arvalid_i && arready_o);
    f_taken   <= f_taken + 4'(r_take_i);
    f_done    <= f_done + 4'(r_done_i);
    f_r       <= f_r + 4'(rvalid_o && rready_i);
    f_stood   <= r_valid_o && !r_take_i && !r_done_i;
    f_r_stood <= rvalid_o && !rready_i;
  end
  f_answered   <= r_done_i;
  f_stood_addr <= r_addr_o;
  f_stood_word <= r_data_i;
end
always @* begin
  if (!f_init && rst_ni) begin
    if (r_take_i) assume (r_valid_o && !f_busy);
    if (r_done_i) assume (r_take_i || f_busy);
    if (arvalid_i && arready_o && f_ar == f_which) assume (araddr_i == f_addr);
    if (f_answered && f_done == f_which + 4'd1) assume (r_data_i == f_word);
    if (!f_answered) assume (r_data_i == f_stood_word);
    if (f_r_stood) assert (rvalid_o && rdata_o == f_stood_word);
    if (rvalid_o) assert (rresp_o == 2'b00 && f_ar != f_r && f_taken != f_r);
    if (f_stood) assert (r_valid_o && r_addr_o == f_stood_addr);
    if (r_valid_o && f_taken == f_which) assert (r_addr_o == f_addr);
    if (rvalid_o && f_r == f_which) assert (rdata_o == f_word);

    // By induction: the address that waits, the read in work, the answer that stands.
    assert (f_ar - f_taken == 4'(ar_q) && f_done - f_r == 4'(rvalid_o));
    assert (f_taken - f_done <= 4'd1 && !(f_busy && rvalid_o));
    if (ar_q && f_taken == f_which) assert (r_addr_o == f_addr);
    if (f_stood) assert (ar_q);
  end
end
