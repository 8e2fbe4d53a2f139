// SPDX-License-Identifier: Apache-2.0
// Included by mr_fifo under FORMAL. A word that went in comes out, once, in its turn; no overflow;
// the count is right. Holds by induction.
logic f_init = 1'b1;
always_ff @(posedge clk_i) f_init <= 1'b0;
always @* if (f_init) assume (!rst_ni);

(* anyseq *) logic f_pick;
logic f_trk;
logic [CW-1:0] f_pos, f_count;
logic [W-1:0] f_word;
logic f_push, f_pop;
assign f_push = in_valid_i && in_ready_o;
assign f_pop  = out_valid_o && out_ready_i;

always_ff @(posedge clk_i) begin
  if (!rst_ni || clear_i) begin
    f_trk   <= 1'b0;
    f_count <= '0;
  end else begin
    f_count <= f_count + CW'(f_push) - CW'(f_pop);
    if (!f_trk && f_push && f_pick) begin
      f_trk  <= 1'b1;
      f_word <= in_data_i;
      f_pos  <= f_count - CW'(f_pop);
    end else if (f_trk && f_pop) begin
      if (f_pos == '0) f_trk <= 1'b0;
      else f_pos <= f_pos - 1'b1;
    end
  end
end

// Where the tracked word lies: at the output, or in the RAM (f_index entries after the read
// pointer).
logic f_at_out;
logic [AW+1:0] f_index, f_wrap;
assign f_at_out = (f_pos == '0) && out_valid_q;
assign f_index  = (AW + 2)'(f_pos) - (AW + 2)'(out_valid_q) + (AW + 2)'(rptr_q);
assign f_wrap   = (f_index >= (AW + 2)'(DEPTH)) ? f_index - (AW + 2)'(DEPTH) : f_index;
assign f_addr   = f_wrap[AW-1:0];
logic [AW+1:0] f_end;
logic [CW-1:0] f_ram;  // entries in the RAM
assign f_ram = count_q - CW'(out_valid_q);
assign f_end = (AW + 2)'(rptr_q) + (AW + 2)'(f_ram);

always @* begin
  if (!f_init && rst_ni) begin
    assert (f_count == count_q && count_q <= CW'(DEPTH));
    assert (f_ram <= count_q && ram_q == (f_ram != '0));
    assert (32'(wptr_q) < DEPTH && 32'(rptr_q) < DEPTH);
    assert ((AW + 2)'(wptr_q) == ((f_end >= (AW + 2)'(DEPTH)) ? f_end - (AW + 2)'(DEPTH) : f_end));
    assert (!(push && fetch && wptr_q == rptr_q));  // what mr_ram_1r1w's APART says
    if (f_trk) begin
      assert (f_pos < f_count);
      if (f_at_out) assert (out_data_o == f_word);
      else assert (f_data == f_word);
    end
    cover (f_trk && 32'(f_pos) == DEPTH - 1);
  end
end
