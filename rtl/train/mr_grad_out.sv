// SPDX-License-Identifier: Apache-2.0
// GRAD's results: sums of mr_array become tiles of 32-bit integers in the gradient window, and the
// record of what was noted on the way (docs/inside/commands.md, "Training"; numerics.md, rule 16).
//
// A sum is clamped to 32 bits, compared with the limit, and its size goes into the peak. Sums of 64
// columns of all rows (a stripe) are gathered in a memory. A band of 32 rows of it leaves as one
// write of 8 KiB, a beat a cycle, as soon as it is complete, while the array works on the next
// band; rows behind the command's last are zeros.
//
// Parameters
//   N  channels; V = 4 N lanes, at most 64
//   T  rows, a multiple of 32
//
// Ports
//   cmd_     valid/ready, the fields of a legal GRAD: rows 1..T, cols a multiple of 64. One command
//            is inside at a time, from here to done_o, a pulse when all that it writes is
//            acknowledged
//   dr_      valid/ready, mr_array's results of the command: all rows of a group, then the next
//            one's; lane c of group j is column j V + c, flags as mr_array's. dr_ready_o comes from
//            a register; it is high with a command, and where the beat's place is free: its row of
//            the stripe before has been read
//   base_i   the gradient window, 64-byte aligned; the command lies in it (mr_legal)
//   rd_      a client of mr_hostrd: the record as it was, without begin
//   job_, data_   a client of mr_writer
`include "mr_assert.svh"
`include "mr_bundles.svh"
module mr_grad_out #(
  parameter int N = 1,
  parameter int T = 32,
  localparam int V = 4 * N
) (
  input  logic            clk_i,
  input  logic            rst_ni,

  input  logic            cmd_valid_i,
  output logic            cmd_ready_o,
  input  logic [15:0]     cmd_rows_i,
  // A multiple of 64.
  // verilator lint_off UNUSED
  input  logic [31:0]     cmd_cols_i,
  // verilator lint_on UNUSED
  input  logic [31:0]     cmd_limit_i,
  input  logic [31:0]     cmd_off_i,
  input  logic [31:0]     cmd_record_i,
  input  logic            cmd_begin_i,
  output logic            done_o,

  input  logic            dr_valid_i,
  output logic            dr_ready_o,
  input  logic [V*48-1:0] dr_acc_i,
  input  logic [1:0]      dr_flags_i,
  input  logic            dr_last_i,

  // The low bits are zero.
  // verilator lint_off UNUSED
  input  logic [63:0]     base_i,
  // verilator lint_on UNUSED
  // verilator lint_off UNUSED
  `MR_RD_M(rd_, 1),  // a record has two words
  // verilator lint_on UNUSED

  `MR_WR_M(, 1)
);

  localparam int TW = $clog2(T);
  localparam int W64 = 64 / V;                        // words of V columns a row
  localparam int LW = $clog2(W64);
  localparam int GW = (W64 > 1) ? LW : 1;
  localparam int NB = (V < 16) ? 16 / V : 1;  // side by side: a beat is read at once
  localparam int LB = $clog2(NB);
  localparam int BANDS = T / 32;
  localparam int SB = (BANDS > 1) ? $clog2(BANDS) : 1;
  localparam int AW = $clog2(T * W64 / NB);
  localparam int BAND_WORDS = 32 * W64 / NB;
  localparam int RW = $clog2(BAND_WORDS);
  localparam int TILE_BEATS = 128;
  localparam int VW = $clog2(V);

  // ---- command ----------------------------------------------------------------------------------
  // TILES until the last one is handed out, ACKS until memory has all of them, then the record:
  // PEAK gathers the lanes' largest sizes, OLD waits for what was there, NEW writes, LAST waits.
  localparam logic [2:0] IDLE = 3'd0, TILES = 3'd1, ACKS = 3'd2, PEAK = 3'd3, OLD = 3'd4,
                         NEW = 3'd5, LAST = 3'd6;
  logic [2:0]    state_q;
  logic [15:0]   rows_q;
  logic [TW-1:0] row_end_q;   // the last row
  logic [SB-1:0] band_end_q;  // and its band
  logic [25:0]   tiles_q;     // of a band
  logic [31:0]   limit_q, record_q;
  logic          begin_q, taken_q, asked_q, sent_q;
  logic [7:0]    jobs_q;      // tiles that are not acknowledged
  logic [VW-1:0] lane_q;

  logic take, tile_go, tile_end;
  assign cmd_ready_o = state_q == IDLE;

  // The band that is being read.
  logic          copy_q;
  logic [SB-1:0] out_band_q;
  logic [AW-1:0] raddr_q;

  // ---- taking beats -----------------------------------------------------------------------------
  // Where a beat belongs is known before it comes, so whether its place is free is looked at a
  // cycle early: of the one that is waited for, and of the one behind (n_).
  logic [BANDS-1:0] full_q;  // complete, and not written yet
  logic [TW-1:0]    row_q, n_row_q;
  logic [GW-1:0]    group_q, n_group_q;  // of the stripe
  logic [SB-1:0]    band, n_band;
  logic             last, n_last;  // it completes its band
  if (BANDS > 1) begin : gen_band
    assign band   = row_q[5+:SB];
    assign n_band = n_row_q[5+:SB];
  end else begin : gen_one_band
    assign band   = '0;
    assign n_band = '0;
  end
  function automatic logic completes(input logic [TW-1:0] row, input logic [GW-1:0] group,
                                     input logic [TW-1:0] row_end);
    completes = 32'(group) == W64 - 1 && (row[4:0] == '1 || row == row_end);
  endfunction
  assign last   = completes(row_q, group_q, row_end_q);
  assign n_last = completes(n_row_q, n_group_q, row_end_q);

  // A band becomes free row by row while it is read, but is completed again only after that.
  logic [15:0] rows_read;
  logic        free, n_free;
  assign rows_read = 16'(32'(raddr_q) >> (LW - LB));
  assign free      = !full_q[band] || (copy_q && band == out_band_q &&
                                       (tile_end || (!last && rows_read > 16'(row_q))));
  assign n_free    = (!full_q[n_band] || (copy_q && n_band == out_band_q &&
                                          (tile_end || (!n_last && rows_read > 16'(n_row_q))))) &&
                     !(last && n_band == band);

  assign take = dr_valid_i && dr_ready_o;
  always_ff @(posedge clk_i) begin
    dr_ready_o <= rst_ni && state_q == TILES && !taken_q && !(take && dr_last_i) &&
                  (take ? n_free : free);
    if (cmd_ready_o) begin
      row_q     <= '0;
      group_q   <= '0;
      n_row_q   <= TW'(cmd_rows_i != 16'd1);
      n_group_q <= GW'(W64 > 1 && cmd_rows_i == 16'd1);
    end else if (take) begin
      row_q   <= n_row_q;
      group_q <= n_group_q;
      n_row_q <= n_row_q + 1'b1;
      if (n_row_q == row_end_q) begin
        n_row_q   <= '0;
        n_group_q <= (W64 > 1) ? n_group_q + 1'b1 : '0;
      end
    end
  end

  // t+1: the sums. t+2: their sizes. t+3: as they are written.
  logic            v1_q, v2_q, v3_q, end1_q, end2_q, end3_q;
  logic [AW-1:0]   addr1_q, addr2_q, addr3_q;
  logic [NB-1:0]   bank1_q, bank2_q, bank3_q;
  logic [V*48-1:0] acc_q, abs_q;
  logic [V-1:0]    minus_q;
  logic [V*32-1:0] word_q, size_q;
  logic            large_q, nan_q, over_q;

  function automatic logic [31:0] clamp(input logic [47:0] size, input logic minus);
    logic [31:0] most;
    most  = (size > 48'h7FFFFFFF) ? 32'h7FFFFFFF : size[31:0];
    clamp = minus ? -most : most;
  endfunction
  function automatic logic [31:0] held(input logic [47:0] size);
    held = (size[47:32] != '0) ? '1 : size[31:0];
  endfunction

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      v1_q <= 1'b0;
      v2_q <= 1'b0;
      v3_q <= 1'b0;
    end else begin
      v1_q <= take;
      v2_q <= v1_q;
      v3_q <= v2_q;
    end
    if (take) begin
      acc_q   <= dr_acc_i;
      addr1_q <= AW'(32'(row_q) << (LW - LB)) | AW'(32'(group_q) >> LB);
      for (int b = 0; b < NB; b++) bank1_q[b] <= (32'(group_q) & 32'(NB - 1)) == 32'(b);
      end1_q  <= last;
    end
    if (v1_q) begin
      addr2_q <= addr1_q;
      bank2_q <= bank1_q;
      end2_q  <= end1_q;
      for (int i = 0; i < V; i++) begin
        abs_q[48*i+:48] <= acc_q[48*i+47] ? -acc_q[48*i+:48] : acc_q[48*i+:48];
        minus_q[i]      <= acc_q[48*i+47];
      end
    end
    if (v2_q) begin
      addr3_q <= addr2_q;
      bank3_q <= bank2_q;
      end3_q  <= end2_q;
      over_q  <= 1'b0;
      for (int i = 0; i < V; i++) begin
        word_q[32*i+:32] <= clamp(abs_q[48*i+:48], minus_q[i]);
        size_q[32*i+:32] <= held(abs_q[48*i+:48]);
        if (abs_q[48*i+:48] > {16'd0, limit_q}) over_q <= 1'b1;
      end
    end
  end

  // What the record is about. The peak: of each lane, then of one after the other.
  logic [V*32-1:0] peak_q;
  logic [31:0]     top_q;
  function automatic logic [31:0] larger(input logic [31:0] a, input logic [31:0] b);
    larger = (a > b) ? a : b;
  endfunction
  always_ff @(posedge clk_i) begin
    if (cmd_ready_o) begin
      large_q <= 1'b0;
      nan_q   <= 1'b0;
      peak_q  <= '0;
      top_q   <= '0;
    end else begin
      if (take && dr_flags_i[0]) large_q <= 1'b1;
      if (take && dr_flags_i[1]) nan_q <= 1'b1;
      if (v3_q && over_q) large_q <= 1'b1;
      if (v3_q) begin
        for (int i = 0; i < V; i++) begin
          peak_q[32*i+:32] <= larger(peak_q[32*i+:32], size_q[32*i+:32]);
        end
      end
      if (state_q == PEAK) begin
        top_q  <= larger(top_q, peak_q[31:0]);
        peak_q <= peak_q >> 32;
      end
      if (state_q == OLD && rd_data_valid_i) begin
        large_q <= large_q || rd_data_i[0];
        nan_q   <= nan_q || rd_data_i[1];
        top_q   <= larger(top_q, rd_data_i[63:32]);
      end
    end
  end

  // ---- writing bands ----------------------------------------------------------------------------
  // Bands leave in the order in which they become complete: all of a stripe, then the next one.
  logic [SB:0]   ready_q;            // complete bands in the memory and not begun
  logic [31:0]   stripe_off_q, tile_off_q;
  logic [25:0]   stripes_q;          // left, with this one
  logic [RW:0]   left_q;             // words of the band to be read
  logic          ren, word_v_q, zero, zero_q, word_ready;
  logic [NB*V*32-1:0] rdata;

  assign tile_go  = state_q == TILES && !copy_q && ready_q != '0;
  assign tile_end = copy_q && left_q == '0 && !word_v_q;
  // A row behind the last is not read; what comes in its place is zero.
  assign zero = 16'(32'(raddr_q) >> (LW - LB)) >= rows_q;
  assign ren  = copy_q && sent_q && left_q != '0 && (!word_v_q || word_ready);

  mr_ram_1r1w #(.W(NB * V * 32), .DEPTH(T * W64 / NB), .WE_W(V * 32)) u_stripe (
    .clk_i, .wen_i(v3_q ? bank3_q : '0), .waddr_i(addr3_q), .wdata_i({NB{word_q}}),
    .ren_i(ren && !zero), .raddr_i(raddr_q), .rdata_o(rdata)
  );

  logic         beat_valid;
  logic [511:0] beat;
  mr_width #(.IN(NB * V * 32), .OUT(512)) u_width (
    .clk_i, .rst_ni, .clear_i(1'b0),
    .in_valid_i(word_v_q), .in_ready_o(word_ready), .in_data_i(zero_q ? '0 : rdata),
    .out_valid_o(beat_valid), .out_ready_i(data_ready_i), .out_data_o(beat)
  );

  logic [511:0] record;
  assign record = {448'd0, top_q, 30'd0, nan_q, large_q};
  assign data_valid_o = (state_q == NEW) ? sent_q : beat_valid;
  assign data_o       = (state_q == NEW) ? record : beat;

  assign job_valid_o = !sent_q && (copy_q || state_q == NEW);
  assign job_addr_o  = {base_i[63:6] + {26'd0, state_q == NEW ? record_q : tile_off_q}, 6'd0};
  assign job_beats_o = (state_q == NEW) ? 16'd1 : 16'(TILE_BEATS);
  assign job_strb_o  = '1;

  assign rd_valid_o = state_q == OLD && !asked_q;
  assign rd_addr_o  = {base_i[63:6] + {26'd0, record_q}, 6'd0};
  assign rd_beats_o = 16'd1;

  always_ff @(posedge clk_i) begin
    done_o <= 1'b0;
    if (!rst_ni) begin
      state_q  <= IDLE;
      full_q   <= '0;
      ready_q  <= '0;
      copy_q   <= 1'b0;
      word_v_q <= 1'b0;
      jobs_q   <= '0;
      taken_q  <= 1'b0;
      sent_q   <= 1'b0;
    end else begin
      unique case (state_q)
        IDLE: if (cmd_valid_i) state_q <= TILES;
        TILES: if (taken_q && stripes_q == '0) state_q <= ACKS;
        ACKS: if (jobs_q == '0) state_q <= PEAK;
        PEAK: if (lane_q == VW'(V - 1)) state_q <= begin_q ? NEW : OLD;
        OLD: if (rd_data_valid_i) state_q <= NEW;
        NEW: if (sent_q && data_ready_i) state_q <= LAST;
        default: if (job_done_i) begin
          state_q <= IDLE;
          done_o  <= 1'b1;
        end
      endcase
      if (state_q == IDLE) taken_q <= 1'b0;
      else if (take && dr_last_i) taken_q <= 1'b1;

      // Bands: full from their last beat on, ready when it is in the memory.
      if (take && last) full_q[band] <= 1'b1;
      if (tile_end) full_q[out_band_q] <= 1'b0;
      ready_q <= ready_q + (SB + 1)'(v3_q && end3_q) - (SB + 1)'(tile_go);
      if (tile_go) copy_q <= 1'b1;
      else if (tile_end) copy_q <= 1'b0;

      if (ren) word_v_q <= 1'b1;
      else if (word_ready) word_v_q <= 1'b0;

      sent_q <= (job_valid_o && job_ready_i) || (sent_q && !tile_end && state_q != LAST);
      jobs_q <= jobs_q + 8'(tile_go) - 8'(job_done_i && state_q != LAST);
    end
  end

  always_ff @(posedge clk_i) begin
    if (cmd_ready_o) begin  // of the command, when it comes
      rows_q       <= cmd_rows_i;
      row_end_q    <= TW'(cmd_rows_i - 16'd1);
      band_end_q   <= SB'((cmd_rows_i - 16'd1) >> 5);
      tiles_q      <= cmd_cols_i[31:6];
      stripes_q    <= cmd_cols_i[31:6];
      limit_q      <= cmd_limit_i;
      record_q     <= cmd_record_i;
      begin_q      <= cmd_begin_i;
      out_band_q   <= '0;
      stripe_off_q <= cmd_off_i;
      tile_off_q   <= cmd_off_i;
    end else if (tile_end) begin
      if (out_band_q == band_end_q) begin
        out_band_q   <= '0;
        stripes_q    <= stripes_q - 26'd1;
        stripe_off_q <= stripe_off_q + 32'(TILE_BEATS);
        tile_off_q   <= stripe_off_q + 32'(TILE_BEATS);
      end else begin
        out_band_q <= out_band_q + 1'b1;
        tile_off_q <= tile_off_q + ({6'd0, tiles_q} << 7);
      end
    end
    if (tile_go) begin
      left_q  <= (RW + 1)'(BAND_WORDS);
      raddr_q <= AW'(32'(out_band_q) * BAND_WORDS);
    end else if (ren) begin
      left_q  <= left_q - 1'b1;
      raddr_q <= raddr_q + 1'b1;
    end
    if (ren) zero_q <= zero;
    lane_q  <= (state_q == PEAK) ? lane_q + 1'b1 : '0;
    asked_q <= state_q == OLD && (asked_q || rd_ready_i);
  end

  `MR_ASSERT(state, state_q <= LAST)
  `MR_ASSERT_COUNT(bands, ready_q, v3_q && end3_q, tile_go, BANDS)
  `MR_ASSERT_COUNT(jobs, jobs_q, tile_go, job_done_i && state_q != LAST, 255)

endmodule
