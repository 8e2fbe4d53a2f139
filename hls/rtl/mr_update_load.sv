// SPDX-License-Identifier: Apache-2.0
// Reads tiles: two requests each, weights with both moments and the gradients, up to SLOTS tiles
// ahead of the lanes.
//
// job_    valid/ready, layout of mr_update_pkg (L_)
// old_i, gradients_i, new_i  in beats; stand during a run
// req_, data_  a client of mr_hostrd
// tile_valid_o  a whole tile is there, the oldest one: tile_o (T_), unit_o, decays_o, slot_o;
//         tile_ready_i takes it
// ren_i, raddr_i  {slot, beat}; rdata_o {gradients, v, m, w} in the next cycle, held without ren_i
// free_i  pulse: the oldest tile that was taken has been read
// begin_o pulse: a tile more is under way
// idle_o  no job, and no tile on its way
module mr_update_load (
  input  logic                             clk_i,
  input  logic                             rst_ni,

  input  logic                             job_valid_i,
  output logic                             job_ready_o,
  input  logic [mr_update_pkg::LOAD_W-1:0] job_i,
  input  logic [57:0]                      old_i,
  input  logic [57:0]                      gradients_i,
  input  logic [57:0]                      new_i,

  output logic                             req_valid_o,
  input  logic                             req_ready_i,
  output logic [63:0]                      req_addr_o,
  output logic [15:0]                      req_beats_o,
  input  logic                             data_valid_i,
  input  logic [511:0]                     data_i,

  output logic                             tile_valid_o,
  input  logic                             tile_ready_i,
  output logic [mr_update_pkg::TILE_W-1:0] tile_o,
  output logic [15:0]                      unit_o,
  output logic                             decays_o,
  output logic [1:0]                       slot_o,
  input  logic                             ren_i,
  input  logic [mr_update_pkg::AW-1:0]     raddr_i,
  output logic [2047:0]                    rdata_o,
  input  logic                             free_i,

  output logic                             begin_o,
  output logic                             idle_o
);

  localparam int AW = mr_update_pkg::AW;
  localparam int TILE_BEATS = mr_update_pkg::TILE_BEATS;
  localparam int SLOTS = mr_update_pkg::SLOTS;
  localparam int DESC_W = mr_update_pkg::TILE_W + 17;

  // ---- a job, tile by tile ----------------------------------------------------------------------
  // COUNT: its elements are multiplied. TILE: how many beats the next one has; it waits for a slot.
  // STATE, GRADS: its requests. NEXT: places of the one behind.
  localparam logic [2:0] IDLE = 3'd0, COUNT = 3'd1, SUM = 3'd2, TILE = 3'd3, STATE = 3'd4,
                         GRADS = 3'd5, NEXT = 3'd6;
  logic [2:0]  state_q;
  logic [9:0]  rows_q;
  logic [19:0] cols_q;
  // Elements; beats have sixteen.
  // verilator lint_off UNUSEDSIGNAL
  logic [29:0] product_q;
  // verilator lint_on UNUSEDSIGNAL
  logic [25:0] left_q;  // beats of w
  logic [57:0] from_q, to_q, gradients_q;
  logic [15:0] unit_q;
  logic        decays_q, patch_q, vector_q, last_q, row_end_q;
  logic [2:0]  col_q;
  logic [3:0]  row_q;
  logic [7:0]  beats_q;
  logic [9:0]  three_q;  // of w, m and v
  logic [2:0]  free_q;   // slots

  logic [1:0]  kind;
  assign kind = job_i[mr_update_pkg::L_KIND+:2];
  assign job_ready_o = state_q == IDLE;
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      state_q <= IDLE;
      free_q  <= 3'(SLOTS);
    end else begin
      unique case (state_q)
        IDLE:    if (job_valid_i && kind != mr_update_pkg::HEADERS) state_q <= COUNT;
        COUNT:   state_q <= SUM;
        SUM:     state_q <= TILE;
        TILE:    if (free_q != '0) state_q <= STATE;
        STATE:   if (req_ready_i) state_q <= GRADS;
        GRADS:   if (req_ready_i) state_q <= NEXT;
        NEXT:    state_q <= last_q ? IDLE : TILE;
        default: state_q <= IDLE;
      endcase
      if ((state_q == NEXT) != free_i) free_q <= free_i ? free_q + 3'd1 : free_q - 3'd1;
    end
  end
  always_ff @(posedge clk_i) begin
    unique case (state_q)
      IDLE: begin
        rows_q      <= job_i[mr_update_pkg::L_ROWS+:10];
        cols_q      <= job_i[mr_update_pkg::L_COLS+:20];
        from_q      <= job_i[mr_update_pkg::L_FROM+:58] + old_i;
        to_q        <= job_i[mr_update_pkg::L_TO+:58] + new_i;
        gradients_q <= job_i[mr_update_pkg::L_GRADIENTS+:58] + gradients_i;
        unit_q      <= job_i[mr_update_pkg::L_UNIT+:16];
        decays_q    <= job_i[mr_update_pkg::L_DECAYS];
        patch_q     <= kind == mr_update_pkg::PATCH;
        vector_q    <= kind == mr_update_pkg::VECTOR;
        col_q       <= '0;
        row_q       <= '0;
      end
      COUNT: product_q <= rows_q * 30'(cols_q);
      SUM:   left_q <= product_q[29:4];
      TILE: begin
        beats_q   <= left_q > 26'(TILE_BEATS) ? 8'(TILE_BEATS) : left_q[7:0];
        three_q   <= left_q > 26'(TILE_BEATS) ? 10'(3 * TILE_BEATS) :
                     {2'd0, left_q[7:0]} + {1'b0, left_q[7:0], 1'b0};
        last_q    <= left_q <= 26'(TILE_BEATS);
        row_end_q <= 4'(col_q) == cols_q[9:6] - 4'd1;
      end
      NEXT: begin
        left_q      <= left_q - 26'(TILE_BEATS);
        from_q      <= from_q + 58'(three_q);
        to_q        <= to_q + 58'(three_q);
        gradients_q <= gradients_q + 58'(beats_q);
        col_q       <= row_end_q ? '0 : col_q + 3'd1;
        if (row_end_q) row_q <= row_q + 4'd1;
      end
      default: ;
    endcase
  end
  assign req_valid_o = state_q == STATE || state_q == GRADS;
  assign req_addr_o  = {state_q == STATE ? from_q : gradients_q, 6'd0};
  assign req_beats_o = state_q == STATE ? 16'(three_q) : 16'(beats_q);
  assign begin_o     = state_q == NEXT;

  // ---- tiles that were asked for ----------------------------------------------------------------
  logic [DESC_W-1:0] desc;
  logic              desc_valid, unused_desc_ready, unused_size_ready, unused_size_valid;
  logic [2:0]        unused_desc, unused_size;
  logic [7:0]        size;  // of the one that is coming
  logic              come;
  mr_fifo #(
    .W    (DESC_W),
    .DEPTH(SLOTS)
  ) u_desc (
    .clk_i,
    .rst_ni,
    .clear_i    (1'b0),
    .in_valid_i (state_q == NEXT),
    .in_ready_o (unused_desc_ready),
    .in_data_i  ({decays_q, unit_q, to_q, beats_q, vector_q, patch_q, last_q, row_end_q, row_q,
                  col_q}),
    .out_valid_o(desc_valid),
    .out_ready_i(tile_valid_o && tile_ready_i),
    .out_data_o (desc),
    .count_o    (unused_desc)
  );
  mr_fifo #(
    .W    (8),
    .DEPTH(SLOTS)
  ) u_size (
    .clk_i,
    .rst_ni,
    .clear_i    (1'b0),
    .in_valid_i (state_q == STATE && req_ready_i),
    .in_ready_o (unused_size_ready),
    .in_data_i  (beats_q),
    .out_valid_o(unused_size_valid),
    .out_ready_i(come),
    .out_data_o (size),
    .count_o    (unused_size)
  );

  // ---- beats that come: w, m, v, gradients ------------------------------------------------------
  logic [1:0] which_q, slot_q;
  logic [6:0] beat_q;
  logic       end_of_one;
  logic [2:0] whole_q;  // tiles that are there
  assign end_of_one = data_valid_i && beat_q == 7'(size - 8'd1);
  assign come       = end_of_one && which_q == 2'd3;
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      which_q <= '0;
      slot_q  <= '0;
      beat_q  <= '0;
      whole_q <= '0;
      slot_o  <= '0;
    end else begin
      if (data_valid_i) beat_q <= end_of_one ? '0 : beat_q + 7'd1;
      if (end_of_one) which_q <= which_q + 2'd1;
      if (come) slot_q <= slot_q + 2'd1;
      if (come != (tile_valid_o && tile_ready_i)) begin
        whole_q <= come ? whole_q + 3'd1 : whole_q - 3'd1;
      end
      if (tile_valid_o && tile_ready_i) slot_o <= slot_o + 2'd1;
    end
  end
  for (genvar k = 0; k < 4; k++) begin : gen_of
    mr_ram_1r1w #(
      .W    (512),
      .DEPTH(SLOTS * TILE_BEATS)
    ) u_ram (
      .clk_i,
      .wen_i  (data_valid_i && which_q == 2'(k)),
      .waddr_i({slot_q, beat_q}),
      .wdata_i(data_i),
      .ren_i,
      .raddr_i(raddr_i[AW-1:0]),
      .rdata_o(rdata_o[512*k+:512])
    );
  end
  assign tile_valid_o              = whole_q != '0 && desc_valid;
  assign {decays_o, unit_o, tile_o} = desc;
  assign idle_o                    = state_q == IDLE;
endmodule
