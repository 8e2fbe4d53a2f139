// SPDX-License-Identifier: Apache-2.0
// Turns the passes that the planner asks for into read jobs of one channel's reader. A pass covers
// the records (K or V) of all positions p < `positions` that lie on this channel (p mod N == CH).
// Whole records are one sequential job; head slices are two jobs a position (scale beats, data
// beats).
//
// Parameters
//   N   channels (power of two)
//   CH  this channel
//
// Timing: passes are queued 4 deep (`jd_valid_i/jd_ready_o`), jobs leave in order by
// `job_valid_o/job_ready_i` (payload stable while waiting). A pass without positions makes no job.
// jd_one_i: a single record at jd_base_i whatever `positions` says (prefix maxima).
`include "mr_assert.svh"
`include "mr_bundles.svh"
module mr_attn_jobs #(
  parameter int N = 1,
  parameter int CH = 0
) (
  input  logic        clk_i,
  input  logic        rst_ni,
  `MR_ATTN_JD_S(jd_, 1),
  output logic        job_valid_o,
  input  logic        job_ready_i,
  output logic [31:0] job_off_o,
  output logic [31:0] job_beats_o
);

  localparam int LN = $clog2(N);
  localparam int FW = 2 + 32 + 16 + 16 + 8 + 8 + 16 + 16;

  logic f_valid, f_ready, f_one, f_whole;
  logic [31:0] f_base;
  logic [15:0] f_pos, f_rec, f_dat_off, f_dat_beats;
  logic [7:0] f_sc_off, f_sc_beats;
  logic [2:0] unused_count;

  mr_fifo #(.W(FW), .DEPTH(4)) u_fifo (
    .clk_i, .rst_ni, .clear_i(1'b0),
    .in_valid_i(jd_valid_i), .in_ready_o(jd_ready_o),
    .in_data_i({jd_one_i, jd_whole_i, jd_base_i, jd_positions_i, jd_rec_i, jd_sc_off_i,
                jd_sc_beats_i, jd_dat_off_i, jd_dat_beats_i}),
    .out_valid_o(f_valid), .out_ready_i(f_ready),
    .out_data_o({f_one, f_whole, f_base, f_pos, f_rec, f_sc_off, f_sc_beats, f_dat_off,
                 f_dat_beats}),
    .count_o(unused_count)
  );

  localparam logic [1:0] IDLE = 2'd0, MUL = 2'd1, SCALE = 2'd2, DATA = 2'd3;
  logic [1:0] state_q;
  logic whole_q, job_valid_q;
  logic [15:0] left_q, rec_q, dat_off_q, dat_beats_q;
  logic [7:0] sc_off_q, sc_beats_q;
  logic [31:0] base_q, off_q, beats_q;

  assign f_ready     = (state_q == IDLE);
  assign job_valid_o = job_valid_q;
  assign job_off_o   = off_q;
  assign job_beats_o = beats_q;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      state_q     <= IDLE;
      job_valid_q <= 1'b0;
    end else begin
      if (job_valid_q && job_ready_i) job_valid_q <= 1'b0;
      unique case (state_q)
        IDLE: if (f_valid) state_q <= MUL;
        MUL: begin
          if (left_q == '0) begin
            state_q <= IDLE;
          end else if (!job_valid_q || job_ready_i) begin
            job_valid_q <= 1'b1;
            state_q     <= whole_q ? IDLE : DATA;
          end
        end
        SCALE:
          if (!job_valid_q || job_ready_i) begin
            job_valid_q <= 1'b1;
            state_q     <= DATA;
          end
        default:
          if (job_ready_i) begin
            job_valid_q <= 1'b1;
            state_q     <= (left_q == 16'd1) ? IDLE : SCALE;
          end
      endcase
    end
  end

  // Datapath. In DATA the scale job of the same position is always the one that is waiting.
  always_ff @(posedge clk_i) begin
    unique case (state_q)
      IDLE:
        if (f_valid) begin
          whole_q     <= f_whole || f_one;
          left_q      <= f_one ? 16'd1 : (f_pos + 16'(N - 1 - CH)) >> LN;
          base_q      <= f_base;
          rec_q       <= f_rec;
          sc_off_q    <= f_sc_off;
          sc_beats_q  <= f_sc_beats;
          dat_off_q   <= f_dat_off;
          dat_beats_q <= f_dat_beats;
        end
      MUL, SCALE:
        if (!job_valid_q || job_ready_i) begin
          off_q   <= whole_q ? base_q : base_q + 32'(sc_off_q);
          beats_q <= whole_q ? 32'(left_q) * 32'(rec_q) : 32'(sc_beats_q);
        end
      default:
        if (job_ready_i) begin
          off_q   <= base_q + 32'(dat_off_q);
          beats_q <= 32'(dat_beats_q);
          base_q  <= base_q + 32'(rec_q);
          left_q  <= left_q - 16'd1;
        end
    endcase
  end

  `MR_ASSERT_STABLE(job, job_valid_o, job_ready_i, {job_off_o, job_beats_o})
  `MR_ASSERT(data, state_q != DATA || job_valid_q)

endmodule
