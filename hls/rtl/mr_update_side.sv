// SPDX-License-Identifier: Apache-2.0
// The sections of a patch in one of its directions, buffer by buffer as they become complete, group
// by group of four columns: which one is next, and where it goes.
//
// Parameters
//   GROUPS  1: a buffer has the patch's groups; else it has so many, and the patch several buffers
//
// start_i   pulse, under idle_o alone: takes side_i, base_i, channel_i, channels_log2_i, groups_i
//           (of the patch), blocks_i
// full_i    pulse: a buffer more is complete. free_o: the oldest one has been read
// ask_o     the section of buf_o, group_o has blocks_o blocks and goes to addr_o (in beats), its
//           largest codes to word_o of turned_o; they stand until done_i, a pulse: it has been read
// Outputs come from registers, ask_o, idle_o and free_o through a gate.
module mr_update_side #(
  parameter int GROUPS = 1
) (
  input  logic                             clk_i,
  input  logic                             rst_ni,

  input  logic                             start_i,
  input  logic [mr_update_pkg::SIDE_W-1:0] side_i,
  input  logic [57:0]                      base_i,
  input  logic [57:0]                      channel_i,
  input  logic [2:0]                       channels_log2_i,
  input  logic [9:0]                       groups_i,
  input  logic [4:0]                       blocks_i,
  output logic                             idle_o,

  input  logic                             full_i,
  output logic                             free_o,

  output logic                             ask_o,
  input  logic                             done_i,
  output logic                             buf_o,
  output logic [6:0]                       group_o,
  output logic [4:0]                       blocks_o,
  output logic [57:0]                      addr_o,
  output logic [13:0]                      word_o,
  output logic                             turned_o
);

  logic       busy_q, place_ready, last, buffer_end;
  logic [1:0] full_q;
  logic [9:0] left_q;
  logic [3:0] unused_nth;
  assign last       = left_q == 10'd1;
  assign buffer_end = GROUPS == 1 ? last : group_o == 7'(GROUPS - 1);
  assign ask_o      = busy_q && place_ready && full_q != '0;
  assign idle_o     = !busy_q;
  assign free_o     = done_i && buffer_end;
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      busy_q <= 1'b0;
      full_q <= '0;
      buf_o  <= 1'b0;
    end else begin
      busy_q <= start_i || (busy_q && !(done_i && last));
      if (full_i != free_o) full_q <= full_i ? full_q + 2'd1 : full_q - 2'd1;
      if (free_o) buf_o <= !buf_o;
    end
    if (start_i) begin
      left_q   <= groups_i;
      blocks_o <= blocks_i;
      turned_o <= side_i[mr_update_pkg::TURNED];
      word_o   <= side_i[mr_update_pkg::TOP+:14] + side_i[mr_update_pkg::FIRST+:14];
      group_o  <= '0;
    end else if (done_i) begin
      left_q  <= left_q - 10'd1;
      word_o  <= word_o + 14'd1;
      group_o <= buffer_end ? '0 : group_o + 7'd1;
    end
  end
  mr_update_place u_place (
    .clk_i,
    .rst_ni,
    .start_i,
    .base_i,
    .channel_i,
    .channels_log2_i,
    .side_i,
    .pieces_i(1'b0),
    .ready_o (place_ready),
    .next_i  (done_i),
    .addr_o,
    .nth_o   (unused_nth)
  );
endmodule
