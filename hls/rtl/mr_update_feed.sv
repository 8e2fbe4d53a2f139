// SPDX-License-Identifier: Apache-2.0
// Goes through a tile in a buffer: LANES elements of each of its arrays in every cycle, from the
// first to the last one, tiles without a gap between them.
//
// Parameters
//   LANES   elements in a cycle: 1, 2, 4
//   ARRAYS  side by side in the buffer, 512 bits each
//   TAG     bits that go along
//
// start_i, under ready_o alone, with slot_i, last_i (the tile's beats less one) and tag_i
// ready_o  nothing is inside, or this is the cycle of the last elements: comes from registers
// ren_o, raddr_o {slot, beat}; rdata_i in the next cycle, held until the next ren_o
// end_o    with the read of the last beat's last elements: the tile is not read any more
// valid_o, two cycles behind: data_o (element l of array a at 32 (a LANES + l)), elem_o, the first
//   one's number in the tile, tag_o
module mr_update_feed #(
  parameter int LANES = 2,
  parameter int ARRAYS = 1,
  parameter int TAG = 1
) (
  input  logic                         clk_i,
  input  logic                         rst_ni,

  input  logic                         start_i,
  output logic                         ready_o,
  input  logic [1:0]                   slot_i,
  input  logic [6:0]                   last_i,
  input  logic [TAG-1:0]               tag_i,
  output logic                         end_o,

  output logic                         ren_o,
  output logic [mr_update_pkg::AW-1:0] raddr_o,
  input  logic [512*ARRAYS-1:0]        rdata_i,

  output logic                         valid_o,
  output logic [32*LANES*ARRAYS-1:0]   data_o,
  output logic [10:0]                  elem_o,
  output logic [TAG-1:0]               tag_o
);

  localparam int PARTS = 16 / LANES;  // of a beat
  localparam int PW = $clog2(PARTS);
  localparam int LW = 4 - PW;

  logic           busy_q, last_q;  // last_q: the tile's last elements are being read
  logic [1:0]     slot_q;
  logic [6:0]     beat_q, end_q;
  logic [PW-1:0]  part_q;
  logic [TAG-1:0] tag_q;
  logic           last_d;
  assign last_d = part_q == PW'(PARTS - 2) && beat_q == end_q;
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      busy_q <= 1'b0;
      last_q <= 1'b0;
    end else begin
      busy_q <= start_i || (busy_q && !last_q);
      last_q <= busy_q && last_d;
    end
    if (start_i) begin
      slot_q <= slot_i;
      end_q  <= last_i;
      tag_q  <= tag_i;
      beat_q <= '0;
      part_q <= '0;
    end else if (busy_q) begin
      part_q <= part_q + PW'(1);
      if (part_q == '1) beat_q <= beat_q + 7'd1;
    end
  end
  assign ready_o = !busy_q || last_q;
  assign end_o   = last_q;
  assign ren_o   = busy_q && part_q == '0;
  assign raddr_o = {slot_q, beat_q};

  // The beat is there one cycle after its read, its parts follow.
  logic           v1_q, first1_q, v2_q;
  logic [10:0]    elem1_q, elem2_q;
  logic [TAG-1:0] tag1_q, tag2_q;
  logic [512*ARRAYS-1:0] beat2_q;
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      v1_q <= 1'b0;
      v2_q <= 1'b0;
    end else begin
      v1_q <= busy_q;
      v2_q <= v1_q;
    end
    if (busy_q) begin
      first1_q <= part_q == '0;
      elem1_q  <= 11'({beat_q, part_q}) << LW;
      tag1_q   <= tag_q;
    end
    if (v1_q) begin
      elem2_q <= elem1_q;
      tag2_q  <= tag1_q;
      for (int a = 0; a < ARRAYS; a++) begin
        beat2_q[512*a+:512] <= first1_q ? rdata_i[512*a+:512] :
                               512'(beat2_q[512*a+:512] >> (32 * LANES));
      end
    end
  end
  assign valid_o = v2_q;
  assign elem_o  = elem2_q;
  assign tag_o   = tag2_q;
  for (genvar a = 0; a < ARRAYS; a++) begin : gen_array
    assign data_o[32*LANES*a+:32*LANES] = beat2_q[512*a+:32*LANES];
  end
endmodule
