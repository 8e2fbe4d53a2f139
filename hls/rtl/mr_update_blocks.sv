// SPDX-License-Identifier: Apache-2.0
// MXINT8 both ways: goes through a tile's new weights a second time, LANES elements in a cycle, and
// makes each an element of the block down its column and of the one along its row. A vector's
// weights are handed out as they are; a table's tile is passed over.
//
// wen_i .. along_wdata_i  weights and codes as mr_update_compute gives them
// tile_valid_i  pulse with tile_i: the next slot's tile is whole; there is room for every slot
// free_o  pulse: a slot has been read
// vec_    valid/ready: a vector's beats, tile by tile; vec_data_o from a register
// Sections, mr_update_sections: two buffers each way. Down has a patch, along a row of tiles.
//   dn_wen_o, one bit a bank: byte dn_row_o of each column's half of the beat dn_addr_o {buffer,
//     group, block, pair}; with two banks, pairs are banks. dn_data_o has a byte for each column
//   al_wen_o: half al_half_o of beat al_addr_o {buffer, group, block, pair}
//   dn_code_o: codes of a group's four columns for block dn_code_block_o; dn_code_addr_o {buffer,
//     group}. al_code_o: the code of row al_code_row_o of a group, of block al_code_block_o
// dn_full_o, al_full_o  pulses: a buffer is complete. dn_free_i, al_free_i: one is free again
// All outputs come from registers.
module mr_update_blocks #(
  parameter int LANES = 2,
  localparam int BANKS = (LANES > 2) ? LANES / 2 : 1,
  localparam int COLS = (LANES > 1) ? 2 : 1  // of a bank in a cycle
) (
  input  logic                             clk_i,
  input  logic                             rst_ni,

  input  logic                             wen_i,
  input  logic [mr_update_pkg::AW-1:0]     waddr_i,
  input  logic [511:0]                     wdata_i,
  input  logic                             down_wen_i,
  input  logic [7-$clog2(LANES):0]         down_waddr_i,
  input  logic [8*LANES-1:0]               down_wdata_i,
  input  logic                             along_wen_i,
  input  logic [7:0]                       along_waddr_i,
  input  logic [7:0]                       along_wdata_i,
  input  logic                             tile_valid_i,
  // Not where it goes.
  // verilator lint_off UNUSEDSIGNAL
  input  logic [mr_update_pkg::TILE_W-1:0] tile_i,
  // verilator lint_on UNUSEDSIGNAL
  output logic                             free_o,

  output logic                             vec_valid_o,
  input  logic                             vec_ready_i,
  output logic [511:0]                     vec_data_o,

  output logic                             dn_wen_o,
  output logic [12:0]                      dn_addr_o,
  output logic [5:0]                       dn_row_o,   // with one column: also which half
  output logic [8*COLS*BANKS-1:0]          dn_data_o,
  output logic                             al_wen_o,
  output logic [8:0]                       al_addr_o,
  output logic                             al_half_o,
  output logic [255:0]                     al_data_o,
  output logic                             dn_code_wen_o,
  output logic [7:0]                       dn_code_addr_o,
  output logic [3:0]                       dn_code_block_o,
  output logic [31:0]                      dn_code_o,
  output logic                             al_code_wen_o,
  output logic [3:0]                       al_code_addr_o,
  output logic [3:0]                       al_code_block_o,
  output logic [1:0]                       al_code_row_o,
  output logic [7:0]                       al_code_o,
  output logic                             dn_full_o,
  input  logic                             dn_free_i,
  output logic                             al_full_o,
  input  logic                             al_free_i
);

  localparam int SLOTS = mr_update_pkg::SLOTS;
  localparam int GROUPS = 64 / LANES;
  localparam int LAT = mr_hls_pkg::QUANTISE_LAT;

  // ---- tiles that wait --------------------------------------------------------------------------
  logic [18:0] tile;
  logic        valid, unused_ready, next;
  logic [2:0]  unused_count;
  mr_fifo #(
    .W    (19),
    .DEPTH(SLOTS)
  ) u_tiles (
    .clk_i,
    .rst_ni,
    .clear_i    (1'b0),
    .in_valid_i (tile_valid_i),
    .in_ready_o (unused_ready),
    .in_data_i  (tile_i[18:0]),
    .out_valid_o(valid),
    .out_ready_i(next),
    .out_data_o (tile),
    .count_o    (unused_count)
  );
  logic [7:0] beats;
  logic [3:0] row;
  logic [2:0] col;
  logic       is_patch, is_vector, ends, row_ends;
  assign beats     = tile[mr_update_pkg::T_BEATS+:8];
  assign is_vector = tile[mr_update_pkg::T_VECTOR];
  assign is_patch  = tile[mr_update_pkg::T_PATCH];
  assign ends      = tile[mr_update_pkg::T_END];
  assign row_ends  = tile[mr_update_pkg::T_ROW_END];
  assign row       = tile[mr_update_pkg::T_ROW+:4];
  assign col       = tile[mr_update_pkg::T_COL+:3];

  // ---- buffers behind ---------------------------------------------------------------------------
  logic       dn_buf_q, al_buf_q, start, ready, feed_end, needs_dn, needs_al, pass, vec_end;
  logic [1:0] dn_free_q, al_free_q;
  assign needs_al = col == '0;
  assign needs_dn = col == '0 && row == '0;
  assign start    = valid && is_patch && ready && (!needs_al || al_free_q != '0) &&
                    (!needs_dn || dn_free_q != '0);
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      dn_buf_q  <= 1'b0;
      al_buf_q  <= 1'b0;
      dn_free_q <= 2'd2;
      al_free_q <= 2'd2;
    end else begin
      if (start && ends) dn_buf_q <= !dn_buf_q;
      if (start && row_ends) al_buf_q <= !al_buf_q;
      if ((start && needs_dn) != dn_free_i) begin
        dn_free_q <= dn_free_i ? dn_free_q + 2'd1 : dn_free_q - 2'd1;
      end
      if ((start && needs_al) != al_free_i) begin
        al_free_q <= al_free_i ? al_free_q + 2'd1 : al_free_q - 2'd1;
      end
    end
  end

  // ---- reading ----------------------------------------------------------------------------------
  // A vector's beats leave one by one, a table's tile at once; both wait until the feed is empty.
  localparam logic [1:0] NONE = 2'd0, READ = 2'd1, WAIT = 2'd2, HAND = 2'd3;
  logic [1:0]   vec_q, slot_q;
  logic [6:0]   vec_beat_q;
  logic         feed_ren, feed_idle_q, feed_valid;
  logic [mr_update_pkg::AW-1:0] feed_raddr;
  logic [511:0] rdata;
  logic [10:0]  elem;
  logic [12:0]  tag;
  logic [32*LANES-1:0] w;
  assign pass    = valid && !is_patch && !is_vector && feed_idle_q;
  assign vec_end = vec_q == HAND && vec_ready_i && vec_beat_q == 7'(beats - 8'd1);
  assign next    = start || pass || vec_end;
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      vec_q       <= NONE;
      slot_q      <= '0;
      free_o      <= 1'b0;
      feed_idle_q <= 1'b0;
      vec_valid_o <= 1'b0;
    end else begin
      unique case (vec_q)
        NONE:    if (valid && is_vector && feed_idle_q) vec_q <= READ;
        READ:    vec_q <= WAIT;
        WAIT:    vec_q <= HAND;
        default: if (vec_ready_i) vec_q <= vec_end ? NONE : READ;
      endcase
      vec_valid_o <= vec_q == WAIT || (vec_q == HAND && !vec_ready_i);
      feed_idle_q <= ready && !start && !feed_end && !next;
      // A patch's slot is free when it has been read; the next one is counted when it is taken.
      if (next) slot_q <= slot_q + 2'd1;
      free_o <= feed_end || pass || vec_end;
    end
    if (vec_q == NONE) vec_beat_q <= '0;
    else if (vec_q == HAND && vec_ready_i) vec_beat_q <= vec_beat_q + 7'd1;
    if (vec_q == WAIT) vec_data_o <= rdata;
  end
  mr_ram_1r1w #(
    .W    (512),
    .DEPTH(mr_update_pkg::SLOT_BEATS)
  ) u_ram (
    .clk_i,
    .wen_i,
    .waddr_i,
    .wdata_i,
    .ren_i  (feed_ren || vec_q == READ),
    .raddr_i(vec_q == READ ? {slot_q, vec_beat_q} : feed_raddr),
    .rdata_o(rdata)
  );
  mr_update_feed #(
    .LANES (LANES),
    .ARRAYS(1),
    .TAG   (13)
  ) u_feed (
    .clk_i,
    .rst_ni,
    .start_i(start),
    .ready_o(ready),
    .slot_i (slot_q),
    .last_i (7'(beats - 8'd1)),
    .tag_i  ({slot_q, ends, row_ends, dn_buf_q, al_buf_q, row, col}),
    .end_o  (feed_end),
    .ren_o  (feed_ren),
    .raddr_o(feed_raddr),
    .rdata_i(rdata),
    .valid_o(feed_valid),
    .data_o (w),
    .elem_o (elem),
    .tag_o  (tag)
  );

  // ---- codes, one cycle behind ------------------------------------------------------------------
  logic [8*LANES-1:0]  dn_code;
  logic [7:0]          al_code;
  logic                b_valid_q;
  logic [10:0]         b_elem_q;
  logic [12:0]         b_tag_q;
  logic [32*LANES-1:0] b_w_q;
  mr_ram_1r1w #(
    .W    (8 * LANES),
    .DEPTH(SLOTS * GROUPS)
  ) u_down (
    .clk_i,
    .wen_i  (down_wen_i),
    .waddr_i(down_waddr_i),
    .wdata_i(down_wdata_i),
    .ren_i  (feed_valid),
    .raddr_i({tag[12:11], elem[5:$clog2(LANES)]}),
    .rdata_o(dn_code)
  );
  mr_ram_1r1w #(
    .W    (8),
    .DEPTH(SLOTS * 64)
  ) u_along (
    .clk_i,
    .wen_i  (along_wen_i),
    .waddr_i(along_waddr_i),
    .wdata_i(along_wdata_i),
    .ren_i  (feed_valid),
    .raddr_i({tag[12:11], elem[10:5]}),
    .rdata_o(al_code)
  );
  always_ff @(posedge clk_i) begin
    if (!rst_ni) b_valid_q <= 1'b0;
    else b_valid_q <= feed_valid;
    if (feed_valid) begin
      b_elem_q <= elem;
      b_tag_q  <= tag;
      b_w_q    <= w;
    end
  end
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      dn_code_wen_o <= 1'b0;
      al_code_wen_o <= 1'b0;
    end else begin
      dn_code_wen_o <= b_valid_q && b_elem_q[10:6] == '0 && b_elem_q[1:0] == 2'(4 - LANES);
      al_code_wen_o <= b_valid_q && b_elem_q[4:0] == '0;
    end
    if (b_valid_q) begin
      dn_code_o       <= 32'({dn_code, dn_code_o} >> (8 * LANES));
      dn_code_addr_o  <= {b_tag_q[8], b_tag_q[2:0], b_elem_q[5:2]};
      dn_code_block_o <= b_tag_q[6:3];
      al_code_o       <= al_code;
      al_code_addr_o  <= {b_tag_q[7], b_elem_q[10:8]};
      al_code_row_o   <= b_elem_q[7:6];
      al_code_block_o <= {b_tag_q[2:0], b_elem_q[5]};
    end
  end

  // ---- elements ---------------------------------------------------------------------------------
  logic [8*LANES-1:0] dn_q, al_q;
  for (genvar l = 0; l < LANES; l++) begin : gen_lane
    mr_hls_quantise u_down (
      .clk_i,
      .a_i   (b_w_q[32*l+:32]),
      .code_i(dn_code[8*l+:8]),
      .y_o   (dn_q[8*l+:8])
    );
    mr_hls_quantise u_along (
      .clk_i,
      .a_i   (b_w_q[32*l+:32]),
      .code_i(al_code),
      .y_o   (al_q[8*l+:8])
    );
  end
  logic [LAT-1:0] valid_q;
  logic           f_valid;
  logic [10:0]    f_elem;
  // The slot is not needed any more.
  // verilator lint_off UNUSEDSIGNAL
  logic [12:0]    f_tag;
  // verilator lint_on UNUSEDSIGNAL
  mr_hls_delay #(
    .W(24),
    .N(LAT)
  ) u_late (
    .clk_i,
    .d_i({b_elem_q, b_tag_q}),
    .q_o({f_elem, f_tag})
  );
  assign f_valid = valid_q[LAT-1];
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      valid_q   <= '0;
      dn_wen_o  <= 1'b0;
      al_wen_o  <= 1'b0;
      dn_full_o <= 1'b0;
      al_full_o <= 1'b0;
    end else begin
      valid_q   <= {valid_q[LAT-2:0], b_valid_q};
      dn_wen_o  <= f_valid;
      al_wen_o  <= f_valid && f_elem[4:0] == 5'(32 - LANES);
      dn_full_o <= f_valid && f_elem == 11'(2048 - LANES) && f_tag[10];
      al_full_o <= f_valid && f_elem == 11'(2048 - LANES) && f_tag[9];
    end
    if (f_valid) begin
      dn_addr_o <= {f_tag[8], f_tag[2:0], f_elem[5:2], f_tag[6:3], f_elem[1]};
      dn_row_o  <= {(LANES == 1) && f_elem[0], f_elem[10:6]};
      dn_data_o <= dn_q;
      al_addr_o <= {f_tag[7], f_elem[10:8], f_tag[2:0], f_elem[5], f_elem[7]};
      al_half_o <= f_elem[6];
      al_data_o <= {al_q, al_data_o[255:8*LANES]};
    end
  end
endmodule
