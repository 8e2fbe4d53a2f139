// SPDX-License-Identifier: Apache-2.0
// Included by mr_turn under FORMAL. A row is taken only where the row that lay there has been read;
// sets are read in their order, none twice and none that is not whole. Holds by induction, and so
// do its contracts: a set that is offered stands until it is taken.
logic f_init = 1'b1;
always_ff @(posedge clk_i) f_init <= 1'b0;
always @* if (f_init) assume (!rst_ni);

logic f_coming;  // a set's last row is on its way into the memory
assign f_coming = w_q && w_last_q;

// Sets whose last row was taken, oldest first: that which is read, the next one's half, ...
logic [2:0] f_sets;
assign f_sets = 3'(run_q) + 3'(there_q[0]) + 3'(there_q[1]) + 3'(f_coming);
always @* begin
  if (!f_init && rst_ni) begin
    assert (f_sets == {1'b0, sets_q});
    assert (half_q == (read_q ^ sets_q[0]));
    assert (run_q == (at_q != '0));
    // which half each one is in
    if (run_q && there_q[read_q]) assert (there_q[!read_q]);
    if (run_q && f_coming && w_half_q == read_q) assert (there_q[!read_q]);
    if (!run_q && sets_q != '0) assert (there_q[read_q] || (f_coming && w_half_q == read_q));
    if (f_coming) assert (!there_q[w_half_q] && half_q == !w_half_q);
    if (w_q && !w_last_q) assert (w_half_q == half_q && row_q == w_row_q + 5'd1);
    // what is written takes the place of nothing that is still to be read
    if (w_q) assert (!there_q[w_half_q] && (!run_q || w_half_q != read_q || w_row_q < at_q));
    if (sets_q == 2'd2) assert (row_q <= at_q);
    if (sets_q == 2'd3) assert (row_q == '0 && run_q);
  end
end
