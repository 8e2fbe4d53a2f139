// SPDX-License-Identifier: Apache-2.0
// Included by mr_splitter under FORMAL. A second description of the stream's format: where a beat
// of the running command stands (vector beat, or group, k-block and part), and what must come next.
// The splitter must name every beat accordingly, take one whenever it may, and end exactly at the
// last one.
logic f_init = 1'b1;
always_ff @(posedge clk_i) f_init <= 1'b0;
always @* if (f_init) assume (!rst_ni);

logic f_run;                       // a command is in work
logic f_vec, f_fp4, f_bias;        // its fields
logic [KW-1:0] f_kblocks;
logic [GW-1:0] f_groups;
logic [KW:0] f_v;                  // beat of the vectors
logic [KW-1:0] f_k;                // k-block, ascending
logic [GW-1:0] f_g;                // group, ascending
logic [2:0] f_head;                // 0: header is due, 1..4: bias beat, 5: done
logic f_scaled, f_half;

logic f_w_head, f_w_bias, f_w_scale, f_w_data, f_end_row;
assign f_w_head  = !f_vec && f_head == 3'd0;
assign f_w_bias  = !f_vec && f_head > 3'd0 && f_head < 3'd5;
assign f_w_scale = !f_vec && f_head == 3'd5 && !f_scaled;
assign f_w_data  = !f_vec && f_head == 3'd5 && f_scaled;
assign f_end_row = f_fp4 || f_half;

logic f_last, f_last_q;  // this beat is the command's last one
assign f_last = f_run && beat_take_o && (f_vec ? f_v + 1'b1 == {f_kblocks, 1'b0} :
    f_w_data && f_end_row && f_k + 1'b1 == f_kblocks && f_g + 1'b1 == f_groups);

always_ff @(posedge clk_i) begin
  if (!rst_ni) begin
    f_run    <= 1'b0;
    f_last_q <= 1'b0;
  end else begin
    f_last_q <= f_last || (cmd_valid_i && cmd_ready_o &&
        (cmd_vec_i ? cmd_vec_beats_i == '0 : cmd_groups_i == '0 || cmd_kblocks_i == '0));
    if (cmd_valid_i && cmd_ready_o) begin
      f_run     <= cmd_vec_i ? cmd_vec_beats_i != '0 : cmd_groups_i != '0 && cmd_kblocks_i != '0;
      f_vec     <= cmd_vec_i;
      f_fp4     <= cmd_fp4_i;
      f_bias    <= cmd_bias_i;
      f_kblocks <= cmd_vec_i ? cmd_vec_beats_i : cmd_kblocks_i;
      f_groups  <= cmd_groups_i;
      f_v       <= '0;
      f_k       <= '0;
      f_g       <= '0;
      f_head    <= 3'd0;
      f_scaled  <= 1'b0;
      f_half    <= 1'b0;
    end else if (beat_take_o) begin
      if (f_last) f_run <= 1'b0;
      if (f_vec) f_v <= f_v + 1'b1;
      if (f_w_head) f_head <= f_bias ? 3'd1 : 3'd5;
      if (f_w_bias) f_head <= f_head + 3'd1;
      if (f_w_scale) f_scaled <= 1'b1;
      if (f_w_data) begin
        f_half <= !f_end_row;
        if (f_end_row) begin
          f_k <= f_k + 1'b1;
          if (f_k[SW-1:0] == SW'(SECTION - 1)) f_scaled <= 1'b0;
          if (f_k + 1'b1 == f_kblocks) begin
            f_k      <= '0;
            f_g      <= f_g + 1'b1;
            f_scaled <= 1'b0;
            if (f_g[HW-1:0] == HW'(HEADER - 1)) f_head <= 3'd0;
          end
        end
      end
    end
  end
end

always @* begin
  if (!f_init && rst_ni) begin
    assert (cmd_ready_o == !f_run);
    assert (done_o == f_last_q);
    if (!f_run) assert (!beat_take_o);
    if (f_run) begin
      // taken exactly when it may be
      assert (beat_take_o == (beat_valid_i && (!f_w_data || ring_space_i) &&
                              (!(f_w_scale && f_k == '0) || tile_space_i)));
      if (beat_take_o) begin
        assert (vec_o == f_vec && head_o == f_w_head && bias_o == f_w_bias);
        assert (scale_o == f_w_scale && data_o == f_w_data);
        assert (group_o == (f_w_scale && f_k == '0));
        assert (row_o == (f_w_data && f_end_row));
        if (f_w_data) assert (hi_o == f_half && fp4_o == f_fp4);
        if (f_vec) assert (vec_bias_o == (f_v >= {1'b0, f_kblocks}) &&
                           {1'b0, vec_index_o} == f_v - (vec_bias_o ? {1'b0, f_kblocks} : '0));
        assert (has_bias_o == f_bias || f_vec);
      end
      // the two descriptions agree (needed by the induction)
      assert (kblocks_q == f_kblocks && fp4_q == f_fp4 && has_bias_q == f_bias);
      assert (f_kblocks != '0);
      if (f_vec) begin
        assert (state_q == Vec && f_v < {f_kblocks, 1'b0});
        assert (vec_bias_q == (f_v >= {1'b0, f_kblocks}));
        assert ({1'b0, k_left_q} == (vec_bias_q ? {f_kblocks, 1'b0} : {1'b0, f_kblocks}) - f_v);
      end else begin
        assert (state_q == (f_w_head ? Head : f_w_bias ? Bias : f_w_scale ? Scale : Data));
        assert (f_k < f_kblocks && f_g < f_groups);
        assert (k_left_q == f_kblocks - f_k && groups_q == f_groups - f_g);
        assert (in_sec_q == f_k[SW-1:0] && in_head_q == f_g[HW-1:0]);
        assert (first_q == (f_k == '0 && !f_w_data));
        assert (hi_q == f_half && (!f_half || (!f_fp4 && f_w_data)));
        assert (bias_q == (f_w_bias ? f_head[1:0] - 2'd1 : 2'd0));
        assert (f_head <= 3'd5 && (f_bias || !f_w_bias));
        if (f_head < 3'd5) assert (f_k == '0 && !f_scaled && f_g[HW-1:0] == '0);
        if (f_k[SW-1:0] != '0) assert (f_scaled);
      end
    end
    cover (f_run && f_g == 3 && f_w_scale);
  end
end
