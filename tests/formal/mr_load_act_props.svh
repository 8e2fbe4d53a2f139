// SPDX-License-Identifier: Apache-2.0
// Included by mr_load_act under FORMAL, with a buffer that may hand out anything at any time while
// it has beats (any_fifo.sv: mr_fifo has proofs of its own). Where no more beats come than were
// asked for, the buffer never gets one that it has no room for. Holds by induction, and so do its
// contracts: a request, and a block, stand until they are taken.
logic f_init = 1'b1;
always_ff @(posedge clk_i) f_init <= 1'b0;
always @* if (f_init) assume (!rst_ni);

logic [7:0]  f_owed, f_count;  // beats that are to come, that are in the buffer
always_ff @(posedge clk_i) begin
  if (!rst_ni) begin
    f_owed  <= '0;
    f_count <= '0;
  end else begin
    f_owed  <= f_owed + (rd_valid_o && rd_ready_i ? 8'(rd_beats_o) : 8'd0) - 8'(rd_data_valid_i);
    f_count <= f_count + 8'(rd_data_valid_i) - 8'(pop);
  end
end
always @* begin
  if (!f_init && rst_ni) begin
    if (rd_data_valid_i) assume (f_owed != '0);
    if (f_valid) assume (f_count != '0);
    assert (8'(room_q) + (req_q ? 8'(req_beats_q) : 8'd0) + f_owed + f_count == 8'(BUF));
    assert (f_owed <= 8'(BUF) && f_count <= 8'(BUF));
    assert (room_q <= 7'(BUF) && want_q <= 6'(PIECE) && (!req_q || req_beats_q <= 6'(PIECE)));
    if (rd_data_valid_i) assert (f_count < 8'(BUF));
  end
end
