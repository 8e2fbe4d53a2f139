// SPDX-License-Identifier: Apache-2.0
// Included by mr_read_jobs under FORMAL: bursts have a length, end inside their 4 KiB page and
// inside the job, and stay as they are while they wait.
logic f_init = 1'b1;
always_ff @(posedge clk_i) f_init <= 1'b0;
always @* if (f_init) assume (!rst_ni);

always @* begin
  if (!f_init && rst_ni && !stop_i) begin  // a stopped generator offers nothing until it is cleared
    if (b_valid_q) begin
      assert (b_len_q != '0 && 32'(b_len_q) <= BURST);
      assert ({1'b0, b_addr_q[5:0]} + b_len_q <= 7'd64);
    end
    if (c_busy) assert (c_rem != '0);
    if (n_valid) begin
      assert (c_busy && n_len != '0 && 32'(n_len) <= BURST);
      assert ({1'b0, c_addr[5:0]} + n_len <= 7'd64);
      assert (32'(n_len) <= c_rem && n_last == (32'(n_len) == c_rem));
    end
  end
end

// Order: with jobs that continue where the one before ended (from beat 61, so that a page ends
// soon), the bursts continue as well: no beat is left out, doubled or moved. Addresses modulo 4096
// beats.
logic [11:0] f_next, f_emit, f_pos_c, f_pos_a, f_pos_end;
assign f_emit_o  = clear_i ? f_next : f_emit;
assign f_pos_c   = f_emit + (b_valid_q ? {5'b0, b_len_q} : 12'd0);
assign f_pos_a   = f_pos_c + (c_busy ? c_rem[11:0] : 12'd0);
assign f_pos_end = f_pos_a + (a_valid_q ? a_beats_q[11:0] : 12'd0);
always @* begin
  assume (base_i == '0);
  if (job_valid_i) assume (job_off_i[11:0] == f_next);
end
always_ff @(posedge clk_i) begin
  if (!rst_ni) begin
    f_next <= 12'd61;
    f_emit <= 12'd61;
  end else begin
    if (job_valid_i && job_ready_o) f_next <= f_next + job_beats_i[11:0];
    if (clear_i) f_emit <= f_next;
    else if (bst_valid_o && bst_ready_i) f_emit <= f_emit + {5'b0, b_len_q};
  end
end
always @* begin
  if (!f_init && rst_ni && !stop_i) begin
    if (b_valid_q) assert (b_addr_q[11:0] == f_emit);
    if (c_busy) assert (c_addr[11:0] == f_pos_c);
    if (a_valid_q) assert (a_addr_q[11:0] == f_pos_a);
    assert (f_next == f_pos_end);
  end
end
