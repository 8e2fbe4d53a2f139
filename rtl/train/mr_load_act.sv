// SPDX-License-Identifier: Apache-2.0
// LOAD_ACT: columns of a matrix of the stash become rows of activation memory, a block a cycle. The
// largest code of a column, from the matrix' header, becomes the row's maximum.
//
// Four columns lie side by side in a group. Of each group its header is read, and then the beats
// from the codes of the first section that is wanted to the last element; what of them lies before
// the first block is dropped.
//
// Parameters
//   N  channels
//
// Ports
//   cmd_     valid/ready, the fields of a legal LOAD_ACT; done_o pulse when all blocks are in
//            activation memory
//   base_i, limit_i   stash windows of the channels, 64-byte aligned, and the smallest size in
//            beats
//   err_     pulse beside done_o, WINDOW: the matrix does not end inside; nothing of it is read
//   rd_      a client of mr_hostrd; no more is asked for than the buffer has room for
//   b_       valid/ready, blocks for mr_act_mem. b_max_o is the row's maximum, with each of its
//            blocks
// Timing: with a memory that answers at once ROWS x KBLOCKS cycles and about 20.
`include "mr_assert.svh"
`include "mr_bundles.svh"
module mr_load_act #(
  parameter int N = 1
) (
  input  logic            clk_i,
  input  logic            rst_ni,

  input  logic            cmd_valid_i,
  output logic            cmd_ready_o,
  input  logic [15:0]     cmd_kblocks_i,
  input  logic [15:0]     cmd_all_kblocks_i,
  input  logic [15:0]     cmd_dst_base_i,
  input  logic [1:0]      cmd_dst_slot_i,
  input  logic [31:0]     cmd_off_i,
  input  logic [15:0]     cmd_first_kblock_i,
  input  logic [15:0]     cmd_rows_i,
  // At most COLS_MAX.
  // verilator lint_off UNUSED
  input  logic [31:0]     cmd_first_col_i,
  // The low bits are zero.
  input  logic [N*64-1:0] base_i,
  // verilator lint_on UNUSED
  input  logic [31:0]     limit_i,
  output logic            done_o,
  `MR_ERR_M(err_, 1),

  `MR_RD_M(rd_, 1),

  `MR_BLK_SET_M(b_)
);

  localparam int LN = $clog2(N);
  localparam int CW = (N > 1) ? LN : 1;
  localparam int BUF = 64;    // beats
  localparam int PIECE = 32;  // of a request, at most

  // ---- command ----------------------------------------------------------------------------------
  // SIZE, END: where the matrix ends is computed; FROM, AT: where the first group is; RUN.
  localparam logic [2:0] IDLE = 3'd0, SIZE = 3'd1, END = 3'd2, FROM = 3'd3, AT = 3'd4, RUN = 3'd5;
  logic [2:0]  state_q;
  logic [1:0]  step_q;
  logic [15:0] kblocks_q, all_q, word_base_q, rows_q, first_q;
  logic [1:0]  region_q;
  logic [31:0] off_q;
  logic [21:0] col_q;        // the first column
  logic [17:0] group_beats_q;
  logic [19:0] at_q;         // group whose place is computed
  logic [37:0] head, group, over;
  logic [38:0] end_q;
  mr_tiles_at u_at (
    .clk_i, .group_i(at_q), .beats_i(group_beats_q), .head_o(head), .group_o(group), .end_o(over)
  );

  logic [15:0] last_k;
  logic [17:0] from_q, span_q;  // beats of a group before what is wanted; wanted
  // verilator lint_off UNUSED
  logic [22:0] col_end;  // what is left of four or of 64 columns does not count
  logic [16:0] lanes;    // of all groups, those of the first one before the first column too
  // verilator lint_on UNUSED
  assign last_k  = first_q + kblocks_q - 16'd1;
  assign col_end = {1'b0, col_q} + {7'd0, rows_q} + 23'd63;

  logic bad, finish;
  assign bad         = end_q > {7'd0, limit_i};
  assign cmd_ready_o = state_q == IDLE;
  assign err_code_o  = mr_pkg::DEVERR_WINDOW[7:0];

  always_ff @(posedge clk_i) begin
    done_o      <= 1'b0;
    err_valid_o <= 1'b0;
    step_q      <= (state_q == END || state_q == AT) ? step_q + 2'd1 : '0;
    if (!rst_ni) begin
      state_q <= IDLE;
    end else begin
      unique case (state_q)
        IDLE: if (cmd_valid_i) state_q <= SIZE;
        SIZE: state_q <= END;
        END: if (step_q == 2'd3) state_q <= FROM;
        FROM: begin
          state_q     <= bad ? IDLE : AT;
          err_valid_o <= bad;
          done_o      <= bad;
        end
        AT: if (step_q == 2'd3) state_q <= RUN;
        default: if (finish) begin
          state_q <= IDLE;
          done_o  <= 1'b1;
        end
      endcase
    end
  end
  always_ff @(posedge clk_i) begin
    if (cmd_valid_i && cmd_ready_o) begin
      kblocks_q   <= cmd_kblocks_i;
      all_q       <= cmd_all_kblocks_i;
      word_base_q <= cmd_dst_base_i;
      region_q    <= cmd_dst_slot_i;
      off_q       <= cmd_off_i;
      first_q     <= cmd_first_kblock_i;
      rows_q      <= cmd_rows_i;
      col_q       <= cmd_first_col_i[21:0];
    end
    if (state_q == SIZE) begin
      group_beats_q <= mr_stash_pkg::group_beats(all_q);
      from_q        <= mr_stash_pkg::sections(first_q[15:4]);
      span_q        <= mr_stash_pkg::to_block(last_k);
      at_q          <= 20'({3'd0, col_end[22:6]} << (4 - LN));
    end
    if (state_q == END) begin
      end_q      <= {1'b0, over} + {7'd0, off_q};
      err_addr_o <= {base_i[63:6] + {26'd0, off_q}, 6'd0};
      if (step_q == 2'd3) at_q <= 20'(col_q >> (2 + LN));
      if (step_q == 2'd3) span_q <= span_q - from_q;
    end
  end

  // ---- requests: a group's header, then its beats in pieces -------------------------------------
  logic          begun_q;      // of the command
  logic [CW-1:0] c_q;          // channel of the group
  logic [3:0]    in_head_q;    // groups of its header before it
  logic [37:0]   head_q, group_q;
  logic [15:0]   groups_q;     // left to ask for
  logic          body_q;       // the header has been asked for
  logic [17:0]   asked_q;      // beats of the group that have been
  logic          req_q;
  logic [57:0]   req_addr_q;
  logic [5:0]    req_beats_q;
  logic [6:0]    room_q;
  logic          ask, group_end, pop;
  // The next request, two cycles behind the last one, which is never sooner: its beats, whether the
  // group ends with it, and its place.
  logic          ready_q, last_q;
  logic [17:0]   rest_q;       // beats of the group that have not been asked for
  logic [5:0]    want_q;
  logic [37:0]   body_at_q, place_q;
  logic [57:0]   bases, base_q;
  assign ask       = ready_q && begun_q && groups_q != '0 && !req_q && room_q >= {1'b0, want_q};
  assign group_end = ask && body_q && last_q;
  always_comb begin
    bases = base_i[63:6];
    for (int c = 1; c < N; c++) if (c_q == CW'(c)) bases = base_i[64*c+6+:58];
  end
  always_ff @(posedge clk_i) begin
    ready_q   <= begun_q;
    last_q    <= rest_q <= 18'(PIECE);
    want_q    <= !body_q ? 6'd1 : (rest_q > 18'(PIECE)) ? 6'(PIECE) : rest_q[5:0];
    body_at_q <= group_q + 38'(from_q);
    place_q   <= body_q ? body_at_q + 38'(asked_q) : head_q;
    base_q    <= bases + {26'd0, off_q};
  end

  assign lanes = {1'b0, rows_q} + {15'd0, col_q[1:0]} + 17'd3;
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      begun_q <= 1'b0;
      req_q   <= 1'b0;
      room_q  <= 7'(BUF);
    end else begin
      begun_q <= state_q == RUN && !finish;
      if (ask) req_q <= 1'b1;
      else if (rd_ready_i) req_q <= 1'b0;
      room_q <= room_q - (ask ? {1'b0, want_q} : 7'd0) + {6'd0, pop};
    end
    if (state_q == RUN && !begun_q) begin
      c_q       <= (N > 1) ? CW'(col_q >> 2) : '0;
      in_head_q <= 4'(col_q >> (2 + LN));
      head_q    <= head;
      group_q   <= group;
      groups_q  <= {1'b0, lanes[16:2]};
      body_q    <= 1'b0;
      asked_q   <= '0;
      rest_q    <= span_q;
    end else if (ask) begin
      body_q      <= !group_end;
      asked_q     <= body_q && !group_end ? asked_q + 18'(PIECE) : '0;
      rest_q      <= body_q && !group_end ? rest_q - 18'(PIECE) : span_q;
      req_addr_q  <= base_q + 58'(place_q);
      req_beats_q <= want_q;
      if (group_end) begin
        groups_q <= groups_q - 16'd1;
        c_q      <= c_q + CW'(N > 1);
        if (c_q == CW'(N - 1)) begin
          c_q       <= '0;
          in_head_q <= in_head_q + 4'd1;
          group_q   <= group_q + 38'(group_beats_q) + 38'(in_head_q == 4'd15);
          if (in_head_q == 4'd15) head_q <= group_q + 38'(group_beats_q);
        end
      end
    end
  end
  assign rd_valid_o = req_q;
  assign rd_addr_o  = {req_addr_q, 6'd0};
  assign rd_beats_o = {10'd0, req_beats_q};

  // ---- beats ------------------------------------------------------------------------------------
  logic         f_valid;
  logic [511:0] f_data;
  // The buffer has room for all that is requested.
  // verilator lint_off PINCONNECTEMPTY
  mr_fifo #(.W(512), .DEPTH(BUF)) u_buf (
    .clk_i, .rst_ni, .clear_i(1'b0),
    .in_valid_i(rd_data_valid_i), .in_ready_o(), .in_data_i(rd_data_i),
    .out_valid_o(f_valid), .out_ready_i(pop), .out_data_o(f_data), .count_o()
  );
  // verilator lint_on PINCONNECTEMPTY

  // What the next beat is: a header, codes, the first or the second half of a k-row.
  localparam logic [1:0] HEAD = 2'd0, CODES = 2'd1, LOW = 2'd2, HIGH = 2'd3;
  logic [1:0]    kind_q;
  logic [CW-1:0] t_c_q;         // channel, number in its header and lanes of the group
  logic [3:0]    t_in_head_q;
  logic [1:0]    t_lane_q;
  logic [15:0]   t_rows_q;      // rows left, with the group's
  logic [15:0]   t_slot_q;      // the group's first row
  logic [3:0]    k_q;           // block in its section
  logic [15:0]   k_left_q;      // blocks of the group left
  logic [15:0]   word_q;
  logic          row_valid_q;   // a k-row is being written
  logic          row_last;
  logic [511:0]  codes_q, low_q;
  logic [31:0]   max_q;
  logic          drop, t_end;
  logic [2:0]    t_lanes;       // of the group
  assign t_lanes = (t_rows_q + {14'd0, t_lane_q} > 16'd4) ? 3'd4 - {1'b0, t_lane_q} : t_rows_q[2:0];
  assign drop    = k_left_q == kblocks_q && k_q != first_q[3:0];
  assign t_end   = kind_q == HIGH && !drop && k_left_q == 16'd1;
  assign pop     = f_valid && begun_q && (kind_q != HIGH || drop || !row_valid_q || row_last);

  always_ff @(posedge clk_i) begin
    if (!begun_q) begin
      kind_q      <= HEAD;
      t_c_q       <= (N > 1) ? CW'(col_q >> 2) : '0;
      t_in_head_q <= 4'(col_q >> (2 + LN));
      t_lane_q    <= col_q[1:0];
      t_rows_q    <= rows_q;
      t_slot_q    <= '0;
    end else if (pop) begin
      unique case (kind_q)
        HEAD: begin
          kind_q   <= CODES;
          max_q    <= f_data[32*t_in_head_q+:32];
          k_left_q <= kblocks_q;
          k_q      <= '0;
          word_q   <= word_base_q;
        end
        CODES: begin
          kind_q  <= LOW;
          codes_q <= f_data;
        end
        LOW: begin
          kind_q <= HIGH;
          low_q  <= f_data;
        end
        default: begin
          kind_q <= t_end ? HEAD : k_q == 4'd15 ? CODES : LOW;
          k_q    <= k_q + 4'd1;
          if (!drop) begin
            k_left_q <= k_left_q - 16'd1;
            word_q   <= word_q + 16'd1;
          end
          if (t_end) begin
            t_lane_q <= '0;
            t_rows_q <= t_rows_q - {13'd0, t_lanes};
            t_slot_q <= t_slot_q + {13'd0, t_lanes};
            t_c_q    <= (t_c_q == CW'(N - 1)) ? '0 : t_c_q + CW'(N > 1);
            if (t_c_q == CW'(N - 1)) t_in_head_q <= t_in_head_q + 4'd1;
          end
        end
      endcase
    end
  end

  // ---- blocks: the lanes of a k-row, one a cycle ------------------------------------------------
  logic [1023:0] row_q;
  logic [31:0]   row_codes_q, row_max_q;
  logic [2:0]    row_left_q;
  logic [15:0]   slot_q, row_word_q;
  logic          all_rows_q;  // no k-row comes behind
  logic          load, lane_out;
  assign load       = pop && kind_q == HIGH && !drop;
  assign lane_out   = row_valid_q && b_ready_i;
  assign row_last   = lane_out && row_left_q == 3'd1;
  assign finish     = row_last && all_rows_q;
  assign b_valid_o  = row_valid_q;
  assign b_slot_o   = slot_q;
  assign b_word_o   = row_word_q;
  assign b_region_o = region_q;
  assign b_max_o    = row_max_q[7:0];
  assign b_data_o   = {row_codes_q[7:0], row_q[255:0]};
  always_ff @(posedge clk_i) begin
    if (!rst_ni) row_valid_q <= 1'b0;
    else if (load) row_valid_q <= 1'b1;
    else if (row_last) row_valid_q <= 1'b0;
    if (load) begin
      // From the group's first lane on.
      row_q       <= {f_data, low_q} >> {t_lane_q, 8'd0};
      row_codes_q <= 32'(codes_q[32*k_q+:32] >> {t_lane_q, 3'd0});
      row_max_q   <= max_q >> {t_lane_q, 3'd0};
      row_left_q  <= t_lanes;
      slot_q      <= t_slot_q;
      row_word_q  <= word_q;
      all_rows_q  <= t_end && t_rows_q == {13'd0, t_lanes};
    end else if (lane_out) begin
      row_q       <= row_q >> 256;
      row_codes_q <= row_codes_q >> 8;
      row_max_q   <= row_max_q >> 8;
      row_left_q  <= row_left_q - 3'd1;
      slot_q      <= slot_q + 16'd1;
    end
  end

  `MR_ASSERT(state, state_q <= RUN)
  `MR_ASSERT_STABLE(b, b_valid_o, b_ready_i, {b_slot_o, b_word_o, b_max_o, b_data_o})
  `MR_ASSERT_STABLE(rd, rd_valid_o, rd_ready_i, {rd_addr_o, rd_beats_o})
  `MR_ASSERT_COUNT(room, room_q, pop, ask ? want_q : 6'd0, BUF)

`ifdef FORMAL
  `include "mr_load_act_props.svh"
`endif

endmodule
