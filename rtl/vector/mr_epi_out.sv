// SPDX-License-Identifier: Apache-2.0
// The epilogue's way to the host: each span of a RESULT row is one write job.
//
// A span is 64, 128 or 256 columns of a token, read word by word from the staging memory. Columns
// from the command's out_cols on are left out, by byte enables in the last beat or altogether. A
// span outside the window is an error and is not written.
//
// Parameters: N as mr_epilogue.
//
// Ports
//   o_take_i  pulse: a new unit, with its token, its last group and its command's fields (u_)
//   o_valid_i  the unit that is at work is a span, and the memory's read port is this module's:
//           o_ren_o reads the next word into o_rdata_i (the cycle after, held); o_end_o ends it
//   base_i (64-byte aligned), limit_i (beats)  the window of results
//   job_, data_  a client of mr_writer
//   bad_o   pulse: the unit's span lies outside; bad_addr_o where the first such span would begin,
//           up to clear_i
//   busy_o  a span is at work
`include "mr_assert.svh"
`include "mr_bundles.svh"
module mr_epi_out #(
  parameter int N = 1,
  localparam int V = 4 * N
) (
  input  logic            clk_i,
  input  logic            rst_ni,

  `MR_EPI_UNIT_S(o_),
  input  logic [1:0]      u_span_i,
  `MR_EPI_TO_S(u_),

  // The low bits are zero.
  // verilator lint_off UNUSED
  input  logic [63:0]     base_i,
  // verilator lint_on UNUSED
  input  logic [31:0]     limit_i,
  output logic            job_valid_o,
  input  logic            job_ready_i,
  output logic [63:0]     job_addr_o,
  output logic [15:0]     job_beats_o,
  output logic [63:0]     job_strb_o,
  output logic            data_valid_o,
  input  logic            data_ready_i,
  output logic [511:0]    data_o,

  output logic            busy_o,
  output logic            bad_o,
  output logic [63:0]     bad_addr_o,
  input  logic            clear_i
);

  localparam int LW = $clog2(64 / V);  // words of 64 columns, log2

  localparam logic [2:0] O_IDLE = 3'd0, O_SIZE = 3'd1, O_CHECK = 3'd2, O_JOB = 3'd3, O_DATA = 3'd4,
                         O_END = 3'd5;
  localparam int PARTS = (V < 16) ? 16 / V : 1;
  localparam int GATHER = (V > 16) ? V / 16 : 1;
  logic [2:0]  o_state_q;
  logic [15:0] o_grp_q, o_tok_q;
  logic [1:0]  o_span_q;
  logic [31:0] o_ocols_q, o_ooff_q, o_stride_q;
  logic [27:0] o_start_q;   // first column of the span, in beats
  logic [47:0] o_off_q;     // beats from the window's start
  logic [32:0] o_left_q;    // columns that remain, signed
  logic [3:0]  o_cols_q;    // columns of this job's last beat, modulo 16
  logic [4:0]  o_beats_q, o_sent_q;
  logic        o_skip_q, o_bad, o_bad_q;
  logic [6:0]  o_words_q;   // words still to read
  logic        o_more_q;    // there are some
  logic        orv_q;       // the memory's output register holds a word of the job
  logic        o_grab, o_load, wd_valid_q, wd_free;
  logic [511:0] wd_q;

  logic         w_ready, w_valid;
  assign wd_free = !wd_valid_q || data_ready_i;
  assign o_ren_o = (o_state_q == O_DATA) && o_more_q && (!orv_q || w_ready);
  assign o_end_o = (o_state_q == O_END);
  logic [511:0] w_data;
  mr_width #(.IN(V * 32), .OUT(512)) u_width (
    .clk_i, .rst_ni, .clear_i(o_state_q == O_CHECK),
    .in_valid_i(orv_q && (o_state_q == O_DATA)), .in_ready_o(w_ready), .in_data_i(o_rdata_i),
    .out_valid_o(w_valid), .out_ready_i(wd_free && (o_state_q == O_DATA)), .out_data_o(w_data)
  );
  assign o_grab = orv_q && w_ready && (o_state_q == O_DATA);
  assign o_load = w_valid && wd_free && (o_state_q == O_DATA);
  always_ff @(posedge clk_i) begin
    if (o_load) wd_q <= w_data;
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      o_state_q   <= O_IDLE;
      orv_q       <= 1'b0;
      wd_valid_q  <= 1'b0;
      job_valid_o <= 1'b0;
    end else begin
      if (o_ren_o) orv_q <= 1'b1;
      else if (o_grab) orv_q <= 1'b0;
      if (o_load) wd_valid_q <= 1'b1;
      else if (data_ready_i) wd_valid_q <= 1'b0;
      unique case (o_state_q)
        O_IDLE: if (o_valid_i) o_state_q <= O_SIZE;
        O_SIZE: o_state_q <= O_CHECK;
        O_CHECK: begin
          o_state_q   <= O_JOB;
          job_valid_o <= !o_skip_q && !o_bad;
        end
        O_JOB: begin
          if (!job_valid_o) begin
            o_state_q <= O_END;
          end else if (job_ready_i) begin
            o_state_q   <= O_DATA;
            job_valid_o <= 1'b0;
          end
        end
        O_DATA: if (o_load && (o_sent_q + 5'd1 == o_beats_q)) o_state_q <= O_END;
        O_END: o_state_q <= O_IDLE;
        default: o_state_q <= O_IDLE;
      endcase
    end
  end

  logic [31:0] o_start;
  logic [9:0]  o_full;  // columns of a whole span
  logic        o_whole;  // so many are left
  logic [6:0]  o_words_up;
  assign o_words_up = (7'(o_beats_q) + 7'(GATHER - 1)) >> $clog2(GATHER);
  assign o_start = {16'b0, o_grp_q >> (3'(LW) + 3'(o_span_q))} << (4'd6 + 4'(o_span_q));
  assign o_full  = 10'd64 << o_span_q;
  assign o_bad   = !o_skip_q && (o_off_q + 48'(o_beats_q) > 48'(limit_i));
  assign o_whole = o_left_q[31:0] >= 32'(o_full);

  always_ff @(posedge clk_i) begin
    if (o_take_i) begin
      o_grp_q    <= o_grp_i;
      o_tok_q    <= o_tok_i;
      o_span_q   <= u_span_i;
      o_ocols_q  <= u_ocols_i;
      o_ooff_q   <= u_ooff_i;
      o_stride_q <= u_ostride_i;
    end
    unique case (o_state_q)
      O_IDLE: begin
        o_start_q <= o_start[31:4];
        o_left_q  <= {1'b0, o_ocols_q} - {1'b0, o_start};
      end
      O_SIZE: begin
        // Rows come in order: the next one lies a stride behind.
        if (o_tok_q == '0) o_off_q <= 48'(o_ooff_q) + 48'(o_start_q);
        else o_off_q <= o_off_q + 48'(o_stride_q);
        o_skip_q  <= o_left_q[32] || (o_left_q == '0);
        o_cols_q  <= o_whole ? 4'd0 : o_left_q[3:0];
        o_beats_q <= o_whole ? 5'd4 << o_span_q : 5'(o_left_q[7:4]) + 5'(o_left_q[3:0] != '0);
      end
      O_CHECK: begin
        o_bad_q   <= o_bad;
        o_words_q <= (V <= 16) ? 7'(o_beats_q) * 7'(PARTS) : o_words_up;
        o_more_q  <= 1'b1;  // a job has columns
        o_sent_q  <= '0;
      end
      O_DATA: begin
        if (o_ren_o) begin
          o_words_q <= o_words_q - 7'd1;
          o_more_q  <= (o_words_q != 7'd1);
        end
        if (o_load) o_sent_q <= o_sent_q + 5'd1;
      end
      default: ;
    endcase
  end

  // Four byte enables for each column of the last beat.
  function automatic [63:0] strobes(input logic [3:0] cols);
    for (int i = 0; i < 16; i++) strobes[4*i+:4] = {4{(cols == '0) || (4'(i) < cols)}};
  endfunction
  logic [57:0] o_addr_q;
  logic [63:0] o_strb_q;
  always_ff @(posedge clk_i) begin
    if (o_state_q == O_CHECK) begin
      o_addr_q <= base_i[63:6] + 58'(o_off_q);
      o_strb_q <= strobes(o_cols_q);
    end
  end
  assign job_addr_o  = {o_addr_q, 6'b0};
  assign job_beats_o = 16'(o_beats_q);
  assign job_strb_o  = o_strb_q;

  assign data_valid_o = wd_valid_q;
  assign data_o       = wd_q;

  // ---- errors -----------------------------------------------------------------------------------
  logic bad_q;
  assign busy_o = o_state_q != O_IDLE;
  assign bad_o  = (o_state_q == O_JOB) && o_bad_q;
  always_ff @(posedge clk_i) begin
    if (!rst_ni || clear_i) bad_q <= 1'b0;
    else if (bad_o) bad_q <= 1'b1;
    if (bad_o && !bad_q) bad_addr_o <= job_addr_o;
  end

  `MR_ASSERT(state, o_state_q <= O_END)
  // A job has columns, and none of a unit's words is left for the next one.
  `MR_ASSERT(left, o_state_q != O_CHECK || !orv_q)
  `MR_ASSERT(beats, !job_valid_o || o_beats_q != '0)
  `MR_ASSERT_STABLE(job, job_valid_o, job_ready_i, {job_addr_o, job_beats_o, job_strb_o})
  `MR_ASSERT_STABLE(data, data_valid_o, data_ready_i, data_o)

endmodule
