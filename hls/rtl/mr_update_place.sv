// SPDX-License-Identifier: Apache-2.0
// Where one group of four columns after the other lies in a stream of N channels. Group j is group
// j / N of channel j mod N; 16 groups of a channel with their header are a piece:
//
//   base + at + (j mod N) channel + (j / N / 16) piece + header + (j / N mod 16) group + section
//
// start_i   pulse: takes base_i and channel_i (beats), channels_log2_i and side_i (layout of
//           mr_update_pkg); j begins at side_i's first. 33 section_i beats come before the section.
//           pieces_i: it goes from piece to piece, not from group to group
// ready_o   addr_o (in beats) and nth_o, j / N mod 16, are those of group j; low for some 60 cycles
//           after start_i, for three after next_i
// next_i    pulse, under ready_o alone: j + 1
// Outputs come from registers.
module mr_update_place (
  input  logic                             clk_i,
  input  logic                             rst_ni,

  input  logic                             start_i,
  input  logic [57:0]                      base_i,
  input  logic [57:0]                      channel_i,
  input  logic [2:0]                       channels_log2_i,
  // Not the words of its columns' largest codes.
  // verilator lint_off UNUSEDSIGNAL
  input  logic [mr_update_pkg::SIDE_W-1:0] side_i,
  // verilator lint_on UNUSEDSIGNAL
  input  logic                             pieces_i,
  output logic                             ready_o,
  input  logic                             next_i,
  output logic [57:0]                      addr_o,
  output logic [3:0]                       nth_o
);

  // ---- the first group: products by adding, a bit of the factor in each cycle -------------------
  localparam logic [2:0] FACTOR_SECTION = 3'd0, FACTOR_PIECE = 3'd1, FACTOR_GROUP = 3'd2,
                         FACTOR_CHANNEL = 3'd3, THERE = 3'd4;
  localparam logic [57:0] SECTION_BEATS = 58'd33;
  logic        busy_q, pieces_q;
  logic [2:0]  step_q, log2_q;
  logic [57:0] channel_q, sum_q, times_q;
  logic [23:0] piece_q, group_q, factor_q, i_q;
  logic [9:0]  section_q;
  logic [3:0]  ch_q;  // j mod N
  logic [3:0]  last_ch;
  logic [57:0] in_pieces_q, in_channels_q;
  logic [27:0] in_groups_q;
  logic [23:0] j;
  assign j       = side_i[mr_update_pkg::FIRST+:24];
  assign last_ch = 4'((5'd1 << log2_q) - 5'd1);

  // ---- from group to group ----------------------------------------------------------------------
  logic       wraps, turns;
  logic [1:0] wait_q;
  assign wraps = ch_q == last_ch;
  assign turns = pieces_q || nth_o == '1;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      busy_q  <= 1'b0;
      ready_o <= 1'b0;
      wait_q  <= '0;
    end else if (start_i) begin
      busy_q  <= 1'b1;
      ready_o <= 1'b0;
      wait_q  <= '0;
    end else if (busy_q) begin
      if (step_q == THERE && factor_q == '0) begin
        busy_q <= 1'b0;
        wait_q <= 2'd2;
      end
    end else begin
      if (next_i) wait_q <= 2'd2;
      else if (wait_q != '0) wait_q <= wait_q - 2'd1;
      ready_o <= next_i ? 1'b0 : ready_o || wait_q == 2'd1;
    end
  end
  logic [57:0] in_piece_q;
  always_ff @(posedge clk_i) begin
    if (start_i) begin
      channel_q <= channel_i;
      log2_q    <= channels_log2_i;
      pieces_q  <= pieces_i;
      piece_q   <= side_i[mr_update_pkg::PIECE+:24];
      group_q   <= side_i[mr_update_pkg::GROUP+:24];
      section_q <= side_i[mr_update_pkg::SECTION+:10];
      ch_q      <= j[3:0] & 4'((5'd1 << channels_log2_i) - 5'd1);
      i_q       <= j >> channels_log2_i;
      sum_q     <= base_i + side_i[mr_update_pkg::AT+:58];
      times_q   <= 58'(side_i[mr_update_pkg::HEADER+:24]);
      factor_q  <= 24'd1;
      step_q    <= FACTOR_SECTION;
    end else if (busy_q && factor_q != '0) begin
      if (factor_q[0]) sum_q <= sum_q + times_q;
      times_q  <= {times_q[56:0], 1'b0};
      factor_q <= {1'b0, factor_q[23:1]};
    end else if (busy_q) begin
      step_q <= step_q + 3'd1;
      unique case (step_q)
        FACTOR_SECTION: begin
          times_q  <= SECTION_BEATS;
          factor_q <= 24'(section_q);
        end
        FACTOR_PIECE: begin
          times_q  <= 58'(piece_q);
          factor_q <= {4'd0, i_q[23:4]};
        end
        FACTOR_GROUP: begin
          in_pieces_q <= sum_q;
          sum_q       <= '0;
          times_q     <= 58'(group_q);
          factor_q    <= 24'(i_q[3:0]);
        end
        FACTOR_CHANNEL: begin
          in_groups_q <= sum_q[27:0];
          sum_q       <= '0;
          times_q     <= channel_q;
          factor_q    <= 24'(ch_q);
        end
        default: begin
          in_channels_q <= sum_q;
          nth_o         <= i_q[3:0];
        end
      endcase
    end else if (next_i) begin
      ch_q          <= wraps ? '0 : ch_q + 4'd1;
      in_channels_q <= wraps ? '0 : in_channels_q + channel_q;
      if (wraps) begin
        nth_o       <= turns ? '0 : nth_o + 4'd1;
        in_groups_q <= turns ? '0 : in_groups_q + 28'(group_q);
        if (turns) in_pieces_q <= in_pieces_q + 58'(piece_q);
      end
    end
    in_piece_q <= in_pieces_q + 58'(in_groups_q);
    addr_o     <= in_piece_q + in_channels_q;
  end
endmodule
