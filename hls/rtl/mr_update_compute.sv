// SPDX-License-Identifier: Apache-2.0
// The lanes: a tile in, AdamW of LANES elements in each cycle, the tile's new weights and moments
// out as beats, with the largest exponents of its blocks both ways.
//
// tile_   valid/ready with unit_i, decays_i, slot_i: from mr_update_load. Taken when there is room
//         for a tile in both buffers behind
// ren_o, raddr_o, rdata_i, free_o  the loader's buffer (mr_update_feed)
// factors_i, decay_i  stand during a run: scale, keep1, add1, keep2, add2, root, epsilon, rate
// wen_o   a beat of each of {v, m, w}: waddr_o {slot, beat}, wdata_o
// down_wen_o   the codes of LANES columns: down_waddr_o {slot, column / LANES}
// along_wen_o  the code of a run of 32 elements: along_waddr_o {slot, run}
// done_o  pulse with done_tile_o: the tile is written, in the order of slots. Its codes mean
//         something if it is whole
// store_free_i, blocks_free_i  pulses: a slot of those that read is free
// All outputs but ren_o and raddr_o come from registers.
module mr_update_compute #(
  parameter int LANES = 2
) (
  input  logic                             clk_i,
  input  logic                             rst_ni,

  input  logic                             tile_valid_i,
  output logic                             tile_ready_o,
  input  logic [mr_update_pkg::TILE_W-1:0] tile_i,
  input  logic [15:0]                      unit_i,
  input  logic                             decays_i,
  input  logic [1:0]                       slot_i,
  output logic                             ren_o,
  output logic [mr_update_pkg::AW-1:0]     raddr_o,
  input  logic [2047:0]                    rdata_i,
  output logic                             free_o,

  input  logic [255:0]                     factors_i,
  input  logic [31:0]                      decay_i,

  output logic                             wen_o,
  output logic [mr_update_pkg::AW-1:0]     waddr_o,
  output logic [1535:0]                    wdata_o,
  output logic                             down_wen_o,
  output logic [7-$clog2(LANES):0]         down_waddr_o,
  output logic [8*LANES-1:0]               down_wdata_o,
  output logic                             along_wen_o,
  output logic [7:0]                       along_waddr_o,
  output logic [7:0]                       along_wdata_o,

  output logic                             done_o,
  output logic [mr_update_pkg::TILE_W-1:0] done_tile_o,
  input  logic                             store_free_i,
  input  logic                             blocks_free_i
);

  localparam int SLOTS = mr_update_pkg::SLOTS;
  localparam int TILE_W = mr_update_pkg::TILE_W;
  localparam int PARTS = 16 / LANES;
  localparam int PW = $clog2(PARTS);
  localparam int GROUPS = 64 / LANES;  // of columns
  localparam int GW = $clog2(GROUPS);

  // ---- into the lanes ---------------------------------------------------------------------------
  logic        start, feed_ready, valid;
  logic [2:0]  store_free_q, blocks_free_q;
  logic        room_q;  // in both
  logic [7:0]  beats;
  logic [16:0] tag;
  // Lanes do not ask which element it is.
  // verilator lint_off UNUSEDSIGNAL
  logic [10:0] elem;
  // verilator lint_on UNUSEDSIGNAL
  logic [128*LANES-1:0] in;
  assign beats        = tile_i[mr_update_pkg::T_BEATS+:8];
  assign start        = tile_valid_i && tile_ready_o;
  assign tile_ready_o = feed_ready && room_q;
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      store_free_q  <= 3'(SLOTS);
      blocks_free_q <= 3'(SLOTS);
      room_q        <= 1'b0;
    end else begin
      if (start != store_free_i) begin
        store_free_q <= start ? store_free_q - 3'd1 : store_free_q + 3'd1;
      end
      if (start != blocks_free_i) begin
        blocks_free_q <= start ? blocks_free_q - 3'd1 : blocks_free_q + 3'd1;
      end
      room_q <= store_free_q != '0 && blocks_free_q != '0 && !start;
    end
  end
  mr_update_feed #(
    .LANES (LANES),
    .ARRAYS(4),
    .TAG   (17)
  ) u_feed (
    .clk_i,
    .rst_ni,
    .start_i(start),
    .ready_o(feed_ready),
    .slot_i,
    .last_i (7'(beats - 8'd1)),
    .tag_i  ({decays_i, unit_i}),
    .end_o  (free_o),
    .ren_o,
    .raddr_o,
    .rdata_i,
    .valid_o(valid),
    .data_o (in),
    .elem_o (elem),
    .tag_o  (tag)
  );

  // All lanes have theirs at once.
  // verilator lint_off UNUSEDSIGNAL
  logic [LANES-1:0]    valid_out;
  // verilator lint_on UNUSEDSIGNAL
  logic [96*LANES-1:0] out;  // {v, m, w}, LANES of each
  for (genvar l = 0; l < LANES; l++) begin : gen_lane
    mr_update_lane u_lane (
      .clk_i,
      .rst_ni,
      .scale_i   (factors_i[31:0]),
      .keep1_i   (factors_i[63:32]),
      .add1_i    (factors_i[95:64]),
      .keep2_i   (factors_i[127:96]),
      .add2_i    (factors_i[159:128]),
      .root_i    (factors_i[191:160]),
      .epsilon_i (factors_i[223:192]),
      .rate_i    (factors_i[255:224]),
      .valid_i   (valid),
      .w_i       (in[32*l+:32]),
      .m_i       (in[32*(LANES+l)+:32]),
      .v_i       (in[32*(2*LANES+l)+:32]),
      .gradient_i(in[32*(3*LANES+l)+:32]),
      .unit_i    (tag[15:0]),
      .decay_i   (tag[16] ? decay_i : 32'd0),
      .valid_o   (valid_out[l]),
      .w_o       (out[32*l+:32]),
      .m_o       (out[32*(LANES+l)+:32]),
      .v_o       (out[32*(2*LANES+l)+:32])
    );
  end

  // ---- out of them ------------------------------------------------------------------------------
  // Tiles in the lanes, as many as have room behind.
  logic [TILE_W-1:0] tile;
  logic              unused_in_ready, unused_valid, come;
  logic [2:0]        unused_count;
  mr_fifo #(
    .W    (TILE_W),
    .DEPTH(SLOTS)
  ) u_tiles (
    .clk_i,
    .rst_ni,
    .clear_i    (1'b0),
    .in_valid_i (start),
    .in_ready_o (unused_in_ready),
    .in_data_i  (tile_i),
    .out_valid_o(unused_valid),
    .out_ready_i(come),
    .out_data_o (tile),
    .count_o    (unused_count)
  );

  logic          last_part, done_q;
  logic [PW-1:0] part_q;
  logic [6:0]    beat_q;
  logic [1:0]    slot_q;
  assign last_part = valid_out[0] && part_q == '1;
  assign come      = last_part && beat_q == 7'(tile[mr_update_pkg::T_BEATS+:8] - 8'd1);
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      part_q <= '0;
      beat_q <= '0;
      slot_q <= '0;
      wen_o  <= 1'b0;
      done_q <= 1'b0;
      done_o <= 1'b0;
    end else begin
      if (valid_out[0]) part_q <= part_q + PW'(1);
      if (last_part) beat_q <= come ? '0 : beat_q + 7'd1;
      if (come) slot_q <= slot_q + 2'd1;
      wen_o  <= last_part;
      done_q <= come;
      done_o <= done_q;
    end
    if (valid_out[0]) begin
      for (int k = 0; k < 3; k++) begin
        wdata_o[512*k+:512] <= {out[32*LANES*k+:32*LANES], wdata_o[512*k+32*LANES+:512-32*LANES]};
      end
      waddr_o <= {slot_q, beat_q};
    end
    if (come) done_tile_o <= tile;
  end

  // ---- largest exponents ------------------------------------------------------------------------
  // Of columns: a ring, which a row of the tile turns once. Of runs: of the lanes first.
  logic [511:0]         ring_q;
  logic [8*LANES-1:0]   code;
  logic [GW-1:0]        group;
  logic [7:0]           most_q, run_q;
  logic                 run_v_q, run_first_q, run_last_q;
  logic [7:0]           run_at_q;
  assign group = GW'({beat_q, part_q});
  function automatic logic [7:0] larger(input logic [7:0] a, input logic [7:0] b);
    larger = a > b ? a : b;
  endfunction
  function automatic logic [7:0] largest(input logic [32*LANES-1:0] w);
    largest = w[30:23];
    for (int l = 1; l < LANES; l++) largest = larger(largest, w[32*l+23+:8]);
  endfunction
  always_comb begin
    for (int l = 0; l < LANES; l++) begin
      code[8*l+:8] = beat_q[6:2] == '0 ? out[32*l+23+:8] :
                     larger(ring_q[8*l+:8], out[32*l+23+:8]);
    end
  end
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      down_wen_o  <= 1'b0;
      run_v_q     <= 1'b0;
      along_wen_o <= 1'b0;
    end else begin
      down_wen_o  <= valid_out[0] && beat_q[6:2] == '1;
      run_v_q     <= valid_out[0];
      along_wen_o <= run_v_q && run_last_q;
    end
    if (valid_out[0]) begin
      ring_q       <= {code, ring_q[511:8*LANES]};
      down_waddr_o <= {slot_q, group};
      down_wdata_o <= code;
      most_q       <= largest(out[32*LANES-1:0]);
      run_first_q  <= !beat_q[0] && part_q == '0;
      run_last_q   <= beat_q[0] && part_q == '1;
      run_at_q     <= {slot_q, beat_q[6:1]};
    end
    if (run_v_q) begin
      run_q         <= run_first_q ? most_q : larger(run_q, most_q);
      along_wdata_o <= run_first_q ? most_q : larger(run_q, most_q);
      along_waddr_o <= run_at_q;
    end
  end
endmodule
