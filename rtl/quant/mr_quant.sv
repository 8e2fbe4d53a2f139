// SPDX-License-Identifier: Apache-2.0
//
// MXINT8 quantiser, bit-exact to mr_mxint8_quantise and mr_mxint8_residue of host/cmodel/num.c:
// blocks of 32 floats become a scale code and 32 int8; with two passes what is left of them becomes
// a second block.
//
// V: floats a beat; a divisor of 32, at least 4, or a multiple of 32. TAG: width of the tag.
// TWO_PASS: 0 leaves out the second pass (in_two_pass_i is then ignored).
//
// Timing: in: valid/ready; V < 32: 32/V consecutive beats are a block, V >= 32: a beat is V/32
// blocks. in_two_pass_i and in_tag_i are constant over a block. One beat a cycle for V <= 32 as
// long as the output is taken; for V > 32 V/32 cycles a beat, because a block leaves a cycle; twice
// that with two passes. in_ready_o does not depend on in_valid_i.
// out: valid/ready, registered. Blocks leave in the order in which they came; the residue block
// (out_lo_o) follows its first-pass block at once, with the same tag and sub. out_data_o is
// {code, element 31 .. element 0}; out_sub_o is the block's index in its beat (0 if V <= 32). First
// block: 8 + 32/min(V, 32) cycles after its last beat was taken.
`include "mr_assert.svh"
module mr_quant #(
    parameter int V = 4,
    parameter int TAG = 8,
    parameter int TWO_PASS = 1,
    localparam int SUB = V > 64 ? $clog2(V / 32) : 1
) (
    input  logic            clk_i,
    input  logic            rst_ni,
    input  logic            in_valid_i,
    output logic            in_ready_o,
    input  logic [V*32-1:0] in_data_i,
    input  logic            in_two_pass_i,
    input  logic [TAG-1:0]  in_tag_i,
    output logic            out_valid_o,
    input  logic            out_ready_i,
    output logic [263:0]    out_data_o,
    output logic [TAG-1:0]  out_tag_o,
    output logic [SUB-1:0]  out_sub_o,
    output logic            out_lo_o
);
  localparam int L = V > 32 ? 32 : V;     // lanes
  localparam int BEATS = 32 / L;          // beats of L lanes in a block
  localparam int SUBS = V / L;            // blocks side by side in an input beat
  localparam int DEPTH = 16;              // beats in a buffer: a block and those coming, twice
  localparam int LO_MAX = DEPTH / BEATS;  // residue blocks that have room in theirs
  localparam int OUT = 16;                // finished blocks of each pass held
  localparam int META = TAG + SUB + 1;    // {two_pass, sub, tag}

  // ---- input: one block slice of a beat at a time, as long as the buffer has room ---------------

  logic hi_wr, hi_rd, room, beat_last_q, sub_last;
  logic [SUB-1:0] sub_q;
  logic [2:0] in_cnt_q;
  logic [4:0] used_q;  // beats written or on their way, and not read
  logic [L*32-1:0] slice;
  logic two_pass_in;

  assign two_pass_in = TWO_PASS != 0 && in_two_pass_i;
  assign room = !used_q[4];
  assign hi_wr = in_valid_i && room;
  assign sub_last = SUBS == 1 || sub_q == SUB'(SUBS - 1);
  assign in_ready_o = room && sub_last;

  // Constant slices: a variable one is a shifter over the whole beat.
  function automatic [L*32-1:0] pick(input [V*32-1:0] x, input [SUB-1:0] sub);
    begin
      pick = x[L*32-1:0];
      for (int s = 1; s < SUBS; s++) if (sub == SUB'(s)) pick = x[s*L*32+:L*32];
    end
  endfunction

  assign slice = pick(in_data_i, sub_q);

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      sub_q <= '0;
      in_cnt_q <= 3'd0;
      beat_last_q <= BEATS == 1;
      used_q <= 5'd0;
    end else begin
      if (hi_wr) begin
        sub_q <= sub_last ? '0 : sub_q + SUB'(1);
        in_cnt_q <= beat_last_q ? 3'd0 : in_cnt_q + 3'd1;
        beat_last_q <= BEATS == 1 || (!beat_last_q && in_cnt_q == 3'(BEATS - 2));
      end
      if (hi_wr && !hi_rd) used_q <= used_q + 5'd1;
      if (!hi_wr && hi_rd) used_q <= used_q - 5'd1;
    end
  end

  logic hi_valid, lo_valid, hi_pop, lo_pop, lo_rd, lo_wr, lo_wr_last;
  logic [7:0] hi_code, lo_code;
  logic [META-1:0] hi_meta, lo_meta, lo_wr_meta;
  logic [L*32-1:0] hi_data, lo_data, lo_wr_data;

  mr_quant_buf #(.L(L), .TAG(META), .DEPTH(DEPTH)) u_hi (
    .clk_i, .rst_ni, .wr_valid_i(hi_wr), .wr_last_i(beat_last_q), .wr_data_i(slice),
    .tag_i({two_pass_in, sub_q, in_tag_i}), .blk_valid_o(hi_valid), .blk_code_o(hi_code),
    .blk_tag_o(hi_meta), .blk_pop_i(hi_pop), .rd_i(hi_rd), .rd_data_o(hi_data)
  );

  // ---- issue: beats of one block after another, residues first ----------------------------------

  logic two_pass, start_hi, start_lo, issue, issue_lo, lo_q;
  logic [2:0] left_q;     // beats of the block under way that are still to be read
  logic [4:0] hi_out_q, lo_out_q;  // output places taken
  logic [4:0] lo_busy_q;  // residue blocks under way or waiting
  logic out_pop, out_pop_lo;

  assign two_pass = hi_meta[META-1];
  assign start_lo = left_q == 3'd0 && lo_valid && !lo_out_q[4];
  assign start_hi = left_q == 3'd0 && !start_lo && hi_valid && !hi_out_q[4] &&
      (!two_pass || lo_busy_q != 5'(LO_MAX));
  assign issue = left_q != 3'd0 || start_hi || start_lo;
  assign issue_lo = left_q != 3'd0 ? lo_q : start_lo;
  assign hi_rd = issue && !issue_lo;
  assign lo_rd = issue && issue_lo;
  assign hi_pop = start_hi;
  assign lo_pop = start_lo;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      left_q <= 3'd0;
      hi_out_q <= 5'd0;
      lo_out_q <= 5'd0;
      lo_busy_q <= 5'd0;
    end else begin
      if (start_hi || start_lo) left_q <= 3'(BEATS - 1);
      else if (left_q != 3'd0) left_q <= left_q - 3'd1;
      hi_out_q <= hi_out_q + {4'd0, start_hi} - {4'd0, out_pop && !out_pop_lo};
      lo_out_q <= lo_out_q + {4'd0, start_lo} - {4'd0, out_pop && out_pop_lo};
      lo_busy_q <= lo_busy_q + {4'd0, start_hi && two_pass} - {4'd0, start_lo};
    end
  end
  always_ff @(posedge clk_i) begin
    if (start_hi || start_lo) lo_q <= start_lo;
  end

  // ---- convert ---------------------------------------------------------------------------------

  localparam int C1 = mr_fp_pkg::QUANT_W;

  // What the element leaves, {sign, exact, magnitude 25} in units of 2^-25 of the element's. The
  // value itself (exact = 0, 24-bit significand) if the element is 0 for its size.
  localparam int R2 = 27;
  function automatic [R2-1:0] rest(input [C1-1:0] c);
    logic [31:0] x;
    logic up;
    begin
      x = mr_fp_pkg::quant_fixed(c[27:0]);
      up = mr_fp_pkg::quant_up(x);
      if (!c[28]) rest = {c[29], 1'b0, 1'b0, c[23:0]};
      else rest = {c[29] ^ up, 1'b1, up ? 25'd0 - x[24:0] : x[24:0]};
    end
  endfunction

  // The rest as fp32. e: the exponent field of a magnitude of 2^24 to 2^25 - 1. A rest has 24
  // significant bits at most, so nothing is rounded.
  function automatic [31:0] to_float(input sign, input [24:0] mag, input [7:0] e);
    logic [4:0] n;
    logic [23:0] y;
    begin
      {n, y} = mr_fp_pkg::norm25(mag, mr_fp_pkg::zeros24(mag[24:1]));
      to_float = {sign, e - {3'd0, n}, y[22:0]};
      if (!y[23] || mr_fp_pkg::used_up(e, n)) to_float[30:0] = 31'd0;
    end
  endfunction

  // 0: RAM read; 1: align; 2: round, gather; 3: store; beside 3, 4: the residue.
  logic v0_q, v1_q, v2_q, lo0_q, lo1_q, lo2_q, last0_q, last1_q, last2_q;
  logic [7:0] code0_q, code1_q, code2_q;
  logic [META-1:0] meta0_q, meta1_q, meta2_q;
  logic [L*C1-1:0] c1_q;
  logic [255:0] blk_q;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      v0_q <= 1'b0;
      v1_q <= 1'b0;
      v2_q <= 1'b0;
    end else begin
      v0_q <= issue;
      v1_q <= v0_q;
      v2_q <= v1_q;
    end
  end

  always_ff @(posedge clk_i) begin
    if (start_hi || start_lo) begin
      code0_q <= start_lo ? lo_code : hi_code;
      meta0_q <= start_lo ? lo_meta : hi_meta;
    end
    if (issue) begin
      lo0_q <= issue_lo;
      last0_q <= start_hi || start_lo ? BEATS == 1 : left_q == 3'd1;
    end
    if (v0_q) begin
      lo1_q <= lo0_q;
      last1_q <= last0_q;
      code1_q <= code0_q;
      meta1_q <= meta0_q;
    end
    if (v1_q) begin
      lo2_q <= lo1_q;
      last2_q <= last1_q;
      code2_q <= code1_q;
      meta2_q <= meta1_q;
    end
  end

  for (genvar l = 0; l < L; l++) begin : gen_lane
    always_ff @(posedge clk_i) begin
      if (v0_q) begin
        c1_q[C1*l+:C1] <= mr_fp_pkg::quant_s1(
            lo0_q ? lo_data[32*l+:32] : hi_data[32*l+:32], code0_q);
      end
      if (v1_q) blk_q[256-8*L+8*l+:8] <= mr_fp_pkg::quant_s2(c1_q[C1*l+:C1]);
    end
  end
  if (BEATS > 1) begin : gen_shift
    always_ff @(posedge clk_i) begin
      if (v1_q) blk_q[255-8*L:0] <= blk_q[255:8*L];
    end
  end

  if (TWO_PASS != 0) begin : gen_lo
    logic r2_v_q, r2_last_q, r3_v_q, r3_last_q, r2_go;
    logic r2_nan_q;
    logic [7:0] r2_e_q;  // exponent field of the rest's top bit
    logic [META-1:0] r2_meta_q, r3_meta_q;
    logic [L*R2-1:0] r2_q;
    logic [L*8-1:0] e1_q, e2_q;
    logic [L*32-1:0] r3_q;

    assign r2_go = v1_q && !lo1_q && meta1_q[META-1];

    always_ff @(posedge clk_i) begin
      if (!rst_ni) begin
        r2_v_q <= 1'b0;
        r3_v_q <= 1'b0;
      end else begin
        r2_v_q <= r2_go;
        r3_v_q <= r2_v_q;
      end
    end

    always_ff @(posedge clk_i) begin
      if (r2_go) begin
        r2_last_q <= last1_q;
        r2_nan_q <= code1_q == 8'd255;
        // A unit of the rest is 2^(code - 158), of a significand 2^(exponent - 150).
        r2_e_q <= code1_q < 8'd8 ? 8'd0 : code1_q - 8'd7;
        r2_meta_q <= meta1_q;
      end
      if (r2_v_q) begin
        r3_last_q <= r2_last_q;
        r3_meta_q <= r2_meta_q;
      end
    end

    for (genvar l = 0; l < L; l++) begin : gen_lane
      always_ff @(posedge clk_i) begin
        if (v0_q) e1_q[8*l+:8] <= hi_data[32*l+23+:8];
        if (r2_go) begin
          r2_q[R2*l+:R2] <= rest(c1_q[C1*l+:C1]);
          e2_q[8*l+:8] <= e1_q[8*l+:8];
        end
        if (r2_v_q) begin
          if (r2_nan_q) r3_q[32*l+:32] <= mr_fp_pkg::QNAN;
          else if (r2_q[R2*l+25]) begin
            r3_q[32*l+:32] <= to_float(r2_q[R2*l+26], r2_q[R2*l+:25], r2_e_q);
          end else begin
            r3_q[32*l+:32] <= {r2_q[R2*l+26], e2_q[8*l+:8], r2_q[R2*l+:23]};
          end
        end
      end
    end

    assign lo_wr = r3_v_q;
    assign lo_wr_last = r3_last_q;
    assign lo_wr_meta = r3_meta_q;
    assign lo_wr_data = r3_q;

    mr_quant_buf #(.L(L), .TAG(META), .DEPTH(DEPTH)) u_lo (
      .clk_i, .rst_ni, .wr_valid_i(lo_wr), .wr_last_i(lo_wr_last), .wr_data_i(lo_wr_data),
      .tag_i(lo_wr_meta), .blk_valid_o(lo_valid), .blk_code_o(lo_code), .blk_tag_o(lo_meta),
      .blk_pop_i(lo_pop), .rd_i(lo_rd), .rd_data_o(lo_data)
    );
  end else begin : gen_no_lo
    logic unused_lo;
    assign lo_valid = 1'b0;
    assign lo_code = 8'd0;
    assign lo_meta = '0;
    assign lo_data = '0;
    assign lo_wr = 1'b0;
    assign lo_wr_last = 1'b0;
    assign lo_wr_meta = '0;
    assign lo_wr_data = '0;
    assign unused_lo = lo_wr || lo_wr_last || lo_wr_meta != '0 || lo_wr_data != '0 || lo_pop ||
        lo_rd || in_two_pass_i;
  end

  // ---- output: finished blocks of either pass, first pass and residue in turn -------------------

  localparam int ENTRY = 264 + META;
  (* no_rw_check = 1 *)  // as beats in mr_quant_buf
  logic [ENTRY-1:0] out_mem[0:2*OUT-1];
  logic [3:0] hi_wptr_q, hi_rptr_q, lo_wptr_q, lo_rptr_q;
  logic [4:0] hi_done_q, lo_done_q;
  logic store, want_lo_q, have, fetch, out_two_pass;

  assign store = v2_q && last2_q;
  assign have = want_lo_q ? lo_done_q != 5'd0 : hi_done_q != 5'd0;
  assign fetch = have && (!out_valid_o || out_ready_i);
  assign out_pop = fetch;
  assign out_pop_lo = want_lo_q;
  // Two passes: known from the entry, so one bit beside the RAM, to be ready with the address.
  logic [OUT-1:0] two_q;
  assign out_two_pass = two_q[hi_rptr_q];

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      hi_wptr_q <= 4'd0;
      hi_rptr_q <= 4'd0;
      lo_wptr_q <= 4'd0;
      lo_rptr_q <= 4'd0;
      hi_done_q <= 5'd0;
      lo_done_q <= 5'd0;
      want_lo_q <= 1'b0;
      out_valid_o <= 1'b0;
    end else begin
      if (store && !lo2_q) hi_wptr_q <= hi_wptr_q + 4'd1;
      if (store && lo2_q) lo_wptr_q <= lo_wptr_q + 4'd1;
      hi_done_q <= hi_done_q + {4'd0, store && !lo2_q} - {4'd0, fetch && !want_lo_q};
      lo_done_q <= lo_done_q + {4'd0, store && lo2_q} - {4'd0, fetch && want_lo_q};
      if (fetch) begin
        if (want_lo_q) lo_rptr_q <= lo_rptr_q + 4'd1;
        else hi_rptr_q <= hi_rptr_q + 4'd1;
        want_lo_q <= !want_lo_q && out_two_pass;
      end
      if (fetch) out_valid_o <= 1'b1;
      else if (out_ready_i) out_valid_o <= 1'b0;
    end
  end

  logic unused_two;
  always_ff @(posedge clk_i) begin
    if (store) begin
      out_mem[{lo2_q, lo2_q ? lo_wptr_q : hi_wptr_q}] <= {meta2_q, code2_q, blk_q};
      if (!lo2_q) two_q[hi_wptr_q] <= meta2_q[META-1];
    end
    if (fetch) begin
      {unused_two, out_sub_o, out_tag_o, out_data_o} <=
          out_mem[{want_lo_q, want_lo_q ? lo_rptr_q : hi_rptr_q}];
      out_lo_o <= want_lo_q;
    end
  end

  `MR_ASSERT_STABLE(in, in_valid_i, in_ready_o, {in_data_i, in_two_pass_i, in_tag_i})
  `MR_ASSERT_STABLE(out, out_valid_o, out_ready_i, {out_data_o, out_tag_o, out_sub_o, out_lo_o})
  `MR_ASSERT(apart, !(store && fetch && lo2_q == want_lo_q) ||
                    (lo2_q ? lo_wptr_q != lo_rptr_q : hi_wptr_q != hi_rptr_q))
  `MR_ASSERT_COUNT(used, used_q, hi_wr, hi_rd, DEPTH)
endmodule
