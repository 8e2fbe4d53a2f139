// SPDX-License-Identifier: Apache-2.0
// New tiles on their way back to memory: a buffer of SLOTS of them, one write job for each.
//
// wen_i   a beat of each of {v, m, w}: waddr_i {slot, beat}, wdata_i
// tile_i  with tile_valid_i, a pulse: the next slot's tile is whole; there is room for every slot
// job_, data_  a client of mr_writer
// free_o  pulse: a slot has been read
module mr_update_store (
  input  logic                             clk_i,
  input  logic                             rst_ni,

  input  logic                             wen_i,
  input  logic [mr_update_pkg::AW-1:0]     waddr_i,
  input  logic [1535:0]                    wdata_i,
  input  logic                             tile_valid_i,
  // Where it goes and how long it is.
  // verilator lint_off UNUSEDSIGNAL
  input  logic [mr_update_pkg::TILE_W-1:0] tile_i,
  // verilator lint_on UNUSEDSIGNAL
  output logic                             free_o,

  output logic                             job_valid_o,
  input  logic                             job_ready_i,
  output logic [63:0]                      job_addr_o,
  output logic [15:0]                      job_beats_o,
  output logic                             data_valid_o,
  input  logic                             data_ready_i,
  output logic [511:0]                     data_o
);

  localparam int SLOTS = mr_update_pkg::SLOTS;

  logic        valid, unused_ready, next;
  logic [2:0]  unused_count;
  logic [57:0] to;
  logic [7:0]  beats;
  mr_fifo #(
    .W    (66),
    .DEPTH(SLOTS)
  ) u_tiles (
    .clk_i,
    .rst_ni,
    .clear_i    (1'b0),
    .in_valid_i (tile_valid_i),
    .in_ready_o (unused_ready),
    .in_data_i  ({tile_i[mr_update_pkg::T_TO+:58], tile_i[mr_update_pkg::T_BEATS+:8]}),
    .out_valid_o(valid),
    .out_ready_i(next),
    .out_data_o ({to, beats}),
    .count_o    (unused_count)
  );

  // ---- one job, then its beats: all of w, of m, of v --------------------------------------------
  logic        busy_q, ren, last, rd_valid_q, rd_ready;
  logic [1:0]  which_q, rd_which_q, slot_q;
  logic [6:0]  beat_q, end_q;
  logic [2:0]  read;
  logic [1535:0] rdata;
  assign next = job_valid_o && job_ready_i;
  assign ren  = busy_q && (!rd_valid_q || rd_ready);
  assign last = beat_q == end_q;
  assign read = ren ? 3'd1 << which_q : '0;
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      job_valid_o <= 1'b0;
      busy_q      <= 1'b0;
      rd_valid_q  <= 1'b0;
      slot_q      <= '0;
      free_o      <= 1'b0;
    end else begin
      job_valid_o <= valid && !busy_q && !next;
      if (next) busy_q <= 1'b1;
      else if (ren && last && which_q == 2'd2) busy_q <= 1'b0;
      rd_valid_q <= ren || (rd_valid_q && !rd_ready);
      free_o     <= ren && last && which_q == 2'd2;
      if (ren && last && which_q == 2'd2) slot_q <= slot_q + 2'd1;
    end
    if (!job_valid_o) begin
      job_addr_o  <= {to, 6'd0};
      job_beats_o <= 16'(beats) + 16'({beats, 1'b0});
    end
    if (next) begin
      end_q   <= 7'(beats - 8'd1);
      which_q <= '0;
      beat_q  <= '0;
    end else if (ren) begin
      beat_q <= last ? '0 : beat_q + 7'd1;
      if (last) which_q <= which_q + 2'd1;
    end
    if (ren) rd_which_q <= which_q;
  end
  for (genvar k = 0; k < 3; k++) begin : gen_of
    mr_ram_1r1w #(
      .W    (512),
      .DEPTH(mr_update_pkg::SLOT_BEATS)
    ) u_ram (
      .clk_i,
      .wen_i,
      .waddr_i,
      .wdata_i(wdata_i[512*k+:512]),
      .ren_i  (read[k]),
      .raddr_i({slot_q, beat_q}),
      .rdata_o(rdata[512*k+:512])
    );
  end

  logic [511:0] chosen;
  assign chosen = rd_which_q == 2'd0 ? rdata[511:0] : rd_which_q == 2'd1 ? rdata[1023:512] :
                                                                           rdata[1535:1024];
  mr_update_slice u_out (
    .clk_i,
    .rst_ni,
    .in_valid_i (rd_valid_q),
    .in_ready_o (rd_ready),
    .in_data_i  (chosen),
    .out_valid_o(data_valid_o),
    .out_ready_i(data_ready_i),
    .out_data_o (data_o)
  );
endmodule
