// SPDX-License-Identifier: Apache-2.0
// Included by mr_cut_4k under FORMAL. As long as its user has kept the contract (f_ok): pieces have
// a length, stay inside their page and below MOST, are as long as that allows, follow each other
// without a gap, and end where the run ends.
logic f_init = 1'b1;
always_ff @(posedge clk_i) f_init <= 1'b0;
always @* if (f_init) assume (!rst_ni);

logic f_ok;
logic [ADDR-1:0] f_next, f_end;  // where the next piece must begin, and the run's end
always_ff @(posedge clk_i) begin
  if (!rst_ni) begin
    f_ok <= 1'b1;
  end else begin
    if (load_i && (left_i == '0 || clear_i || (busy_o && !(next_i && last_o)))) f_ok <= 1'b0;
    if (next_i && !valid_o) f_ok <= 1'b0;
  end
  if (load_i) begin
    f_next <= addr_i;
    f_end  <= addr_i + ADDR'(left_i);
  end else if (next_i) begin
    f_next <= f_next + ADDR'(n_o);
  end
end
always @* begin
  if (!f_init && rst_ni && f_ok) begin
    if (valid_o) begin
      assert (busy_o && n_o != '0 && n_o <= MOST);
      assert ({1'b0, addr_o[PAGE_LOG2-1:0]} + n_o <= 1 << PAGE_LOG2);
      assert (last_o == (n_o == left_q) && n_o <= left_q);
      assert (last_o || n_o == MOST || {1'b0, addr_o[PAGE_LOG2-1:0]} + n_o == 1 << PAGE_LOG2);
    end
    if (busy_o) begin
      assert (left_q != '0);
      assert (addr_o == f_next && addr_o + ADDR'(left_q) == f_end);
    end
  end
end
