// SPDX-License-Identifier: Apache-2.0
// Included by mr_skid under FORMAL. A word that went in comes out, once, in its turn; the output is
// stable while it waits. Holds by induction for any number of cycles.
logic f_init = 1'b1;
always_ff @(posedge clk_i) f_init <= 1'b0;
always @* if (f_init) assume (!rst_ni);

(* anyseq *) logic f_pick;  // any push may be the tracked one
logic f_trk, f_wait;
logic [1:0] f_pos, f_count;  // entries before the tracked one; entries inside
logic [W-1:0] f_word, f_was;
logic f_push, f_pop;
assign f_push = in_valid_i && in_ready_o;
assign f_pop  = out_valid_o && out_ready_i;

always_ff @(posedge clk_i) begin
  if (!rst_ni) begin
    f_trk   <= 1'b0;
    f_count <= '0;
    f_wait  <= 1'b0;
  end else begin
    f_count <= f_count + {1'b0, f_push} - {1'b0, f_pop};
    f_wait  <= out_valid_o && !out_ready_i;
    f_was   <= out_data_o;
    if (!f_trk && f_push && f_pick) begin
      f_trk  <= 1'b1;
      f_word <= in_data_i;
      f_pos  <= f_count - {1'b0, f_pop};
    end else if (f_trk && f_pop) begin
      if (f_pos == 2'd0) f_trk <= 1'b0;
      else f_pos <= f_pos - 2'd1;
    end
  end
end

always @* begin
  if (!f_init && rst_ni) begin
    assert (f_count == {1'b0, out_valid_q} + {1'b0, hold_valid_q});
    assert (out_valid_q || !hold_valid_q);
    if (f_trk) begin
      assert (f_pos < f_count);
      if (f_pos == 2'd0) assert (out_valid_o && out_data_o == f_word);
      if (f_pos == 2'd1) assert (hold_valid_q && hold_q == f_word);
    end
    if (f_wait) assert (out_valid_o && out_data_o == f_was);
    cover (f_trk && f_pos == 2'd1);
  end
end
