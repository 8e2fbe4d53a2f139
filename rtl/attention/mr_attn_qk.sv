// SPDX-License-Identifier: Apache-2.0
// Scores of one channel: a step's two dot products of 32 elements (mr_attn_mac makes them) are held
// back until the maximum K code of the head is known, then aligned and added to the 48-bit
// accumulator, converted and scaled.
//
// A step is one K beat (two blocks of one head) against one q word. Steps of a head come beat by
// beat, inside it row by row, inside it first pass then residue; the sums are formed row by row
// from the dot buffer (two heads of dots), so there is one accumulator and no hazard. The steps of
// the next head take at least as long as the sums of this one.
//
// Parameters
//   HEADS_MAX  heads; HP_MAX  largest padded head dimension
//
// Timing: pre_valid_i with qcode_i one cycle before the step's st_valid_i, which has the st_*; a
// step a cycle. Its dot products d0_i and d1_i come in the third cycle behind st_valid_i.
// t_valid_o/t_o: one score per (head, row) in the order of the steps, never refused. cfg_* and the
// maximum q codes (mq_* writes that of {row, head}) are stable from the first step to the last
// score.
`include "mr_assert.svh"
`include "mr_bundles.svh"
module mr_attn_qk #(
  parameter int HEADS_MAX = 16,
  parameter int HP_MAX = 256,
  localparam int HA = (HEADS_MAX > 1) ? $clog2(HEADS_MAX) : 1,
  localparam int HB = HP_MAX / 64,
  localparam int BA = (HB > 1) ? $clog2(HB) : 1
) (
  input  logic          clk_i,
  input  logic          rst_ni,
  input  logic          start_i,       // pulse before the first step of a pass: head counter to 0
  input  logic [2:0]    cfg_nr_i,
  input  logic          cfg_two_i,
  input  logic [HA:0]   cfg_hg_i,
  input  logic [7:0]    cfg_hpw_i,     // HP / 64
  input  logic [31:0]   cfg_scale_i,
  `MR_RAM_W_S(mq_, HA+2, 8),
  input  logic          pre_valid_i,   // a step follows
  input  logic [15:0]   qcode_i,       // of both blocks
  input  logic          st_valid_i,
  input  logic          st_new_i,      // first step of its beat
  input  logic          st_hfirst_i,   // the beat is the head's first
  input  logic          st_hlast_i,    // last step of the head
  input  logic [BA-1:0] st_beat_i,     // beat within the head
  input  logic [1:0]    st_row_i,
  input  logic          st_half_i,
  input  logic [15:0]   st_kcode_i,
  input  logic [20:0]   d0_i,
  input  logic [20:0]   d1_i,
  output logic          t_valid_o,
  output logic [31:0]   t_o,
  output logic          ovf_o          // pulse: a score overflowed to infinity
);
  /*verilator no_inline_module*/

  localparam int EW = 60;           // dot buffer entry: 2 x (21-bit dot, 9-bit sum of codes)
  localparam int DA = 1 + BA + 3;   // {bank, beat, row, half}

  // ---- exponents of the dot products ----
  logic s3_v_q, s4_v_q, s5_v_q;
  logic s3_hlast_q, s4_hlast_q, s5_hlast_q;
  logic bank_q;
  logic [DA-1:0] s3_addr_q, s4_addr_q, s5_addr_q;
  logic [8:0] s3_es0_q, s3_es1_q, s4_es0_q, s4_es1_q, s5_es0_q, s5_es1_q;
  logic [7:0] kmax_q, s4_kmax_q, s5_kmax_q;
  logic [7:0] qc0_q, qc1_q;

  logic [7:0] kc_max;
  assign kc_max = (st_kcode_i[15:8] > st_kcode_i[7:0]) ? st_kcode_i[15:8] : st_kcode_i[7:0];

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      s3_v_q <= 1'b0;
      s4_v_q <= 1'b0;
      s5_v_q <= 1'b0;
    end else begin
      s3_v_q <= st_valid_i;
      s4_v_q <= s3_v_q;
      s5_v_q <= s4_v_q;
    end
  end

  always_ff @(posedge clk_i) begin
    if (start_i) bank_q <= 1'b0;
    if (pre_valid_i) begin
      qc0_q <= qcode_i[7:0];
      qc1_q <= qcode_i[15:8];
    end
    if (st_valid_i) begin
      s3_es0_q   <= {1'b0, st_kcode_i[7:0]} + {1'b0, qc0_q};
      s3_es1_q   <= {1'b0, st_kcode_i[15:8]} + {1'b0, qc1_q};
      s3_addr_q  <= {bank_q, st_beat_i, st_row_i, st_half_i};
      s3_hlast_q <= st_hlast_i;
      if (st_hlast_i) bank_q <= !bank_q;
      if (st_new_i && (st_hfirst_i || kc_max > kmax_q)) kmax_q <= kc_max;
    end
    if (s3_v_q) begin
      s4_es0_q   <= s3_es0_q;
      s4_es1_q   <= s3_es1_q;
      s4_addr_q  <= s3_addr_q;
      s4_hlast_q <= s3_hlast_q;
      s4_kmax_q  <= kmax_q;
    end
    if (s4_v_q) begin
      s5_es0_q   <= s4_es0_q;
      s5_es1_q   <= s4_es1_q;
      s5_addr_q  <= s4_addr_q;
      s5_hlast_q <= s4_hlast_q;
      s5_kmax_q  <= s4_kmax_q;
    end
  end

  // ---- dot buffer and maximum q codes ----
  logic b_act_q, b_bank_q, b_half_q, b_last;
  logic [1:0] b_row_q;
  logic [BA-1:0] b_beat_q;
  logic [HA-1:0] b_head_q;
  logic [7:0] b_kmax_q;
  logic [EW-1:0] e_rdata;
  logic [7:0] mq_rdata;

  mr_ram_1r1w #(.W(EW), .DEPTH(1 << DA)) u_dots (
    .clk_i, .wen_i(s5_v_q), .waddr_i(s5_addr_q), .wdata_i({s5_es1_q, d1_i, s5_es0_q, d0_i}),
    .ren_i(b_act_q), .raddr_i({b_bank_q, b_beat_q, b_row_q, b_half_q}), .rdata_o(e_rdata)
  );

  mr_ram_1r1w #(.W(8), .DEPTH(4 << HA)) u_mq (
    .clk_i, .wen_i(mq_we_i), .waddr_i(mq_waddr_i), .wdata_i(mq_wdata_i),
    .ren_i(b_act_q), .raddr_i({b_row_q, b_head_q}), .rdata_o(mq_rdata)
  );

  // ---- sums: walks row, beat, half of a complete head ----
  logic b_half_last, b_beat_last, b_row_last, b_head_last;
  assign b_half_last = b_half_q || !cfg_two_i;
  assign b_beat_last = (8'(b_beat_q) + 8'd1 == cfg_hpw_i);
  assign b_row_last  = (3'(b_row_q) + 3'd1 == cfg_nr_i);
  assign b_head_last = ((HA + 1)'(b_head_q) + 1'b1 == cfg_hg_i);
  assign b_last      = b_half_last && b_beat_last && b_row_last;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) b_act_q <= 1'b0;
    else if (s5_v_q && s5_hlast_q) b_act_q <= 1'b1;
    else if (b_last) b_act_q <= 1'b0;
  end

  always_ff @(posedge clk_i) begin
    if (b_act_q) begin
      if (!b_half_last) begin
        b_half_q <= 1'b1;
      end else begin
        b_half_q <= 1'b0;
        if (!b_beat_last) begin
          b_beat_q <= b_beat_q + 1'b1;
        end else begin
          b_beat_q <= '0;
          b_row_q  <= b_row_q + 2'd1;
          if (b_row_last) b_head_q <= b_head_last ? '0 : b_head_q + 1'b1;
        end
      end
    end
    if (s5_v_q && s5_hlast_q) begin
      b_bank_q <= s5_addr_q[DA-1];
      b_row_q  <= '0;
      b_beat_q <= '0;
      b_half_q <= 1'b0;
      b_kmax_q <= s5_kmax_q;
    end
    if (start_i) b_head_q <= '0;
  end

  // ---- alignment ----
  function automatic logic [5:0] clamp38(input logic [8:0] base, input logic [8:0] es);
    logic [8:0] s;
    begin
      s = base - es;
      clamp38 = (s > 9'd38) ? 6'd38 : s[5:0];
    end
  endfunction

  function automatic logic signed [47:0] align(input logic signed [20:0] d,
                                               input logic [5:0] sh);
    logic signed [47:0] x;
    begin
      x = {{9{d[20]}}, d, 18'd0};
      align = x >>> sh;
    end
  endfunction

  logic b1_v_q, b2_v_q, b3_v_q, b4_v_q;
  logic b1_first_q, b2_first_q, b3_first_q, b1_last_q, b2_last_q, b3_last_q;
  logic b2_nan_q, b3_nan_q, b4_nan_q;
  logic [7:0] b1_kmax_q;
  logic [8:0] b2_base_q, b3_base_q;
  logic [5:0] b2_sh0_q, b2_sh1_q;
  logic signed [20:0] b2_d0_q, b2_d1_q;
  logic signed [47:0] b3_t0_q, b3_t1_q, acc_q;
  logic [10:0] b4_exp_q;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      b1_v_q <= 1'b0;
      b2_v_q <= 1'b0;
      b3_v_q <= 1'b0;
      b4_v_q <= 1'b0;
    end else begin
      b1_v_q <= b_act_q;
      b2_v_q <= b1_v_q;
      b3_v_q <= b2_v_q;
      b4_v_q <= b3_v_q && b3_last_q;
    end
  end

  logic [8:0] b1_base;
  assign b1_base = {1'b0, b1_kmax_q} + {1'b0, mq_rdata};

  always_ff @(posedge clk_i) begin
    if (b_act_q) begin
      b1_first_q <= (b_beat_q == '0) && !b_half_q;
      b1_last_q  <= b_beat_last && b_half_last;
      b1_kmax_q  <= b_kmax_q;
    end
    if (b1_v_q) begin
      b2_sh0_q   <= clamp38(b1_base, e_rdata[29:21]);
      b2_sh1_q   <= clamp38(b1_base, e_rdata[59:51]);
      b2_d0_q    <= e_rdata[20:0];
      b2_d1_q    <= e_rdata[50:30];
      b2_base_q  <= b1_base;
      b2_nan_q   <= (b1_kmax_q == 8'hFF) || (mq_rdata == 8'hFF);
      b2_first_q <= b1_first_q;
      b2_last_q  <= b1_last_q;
    end
    if (b2_v_q) begin
      b3_t0_q    <= align(b2_d0_q, b2_sh0_q);
      b3_t1_q    <= align(b2_d1_q, b2_sh1_q);
      b3_base_q  <= b2_base_q;
      b3_nan_q   <= b2_nan_q;
      b3_first_q <= b2_first_q;
      b3_last_q  <= b2_last_q;
    end
    if (b3_v_q) begin
      acc_q    <= (b3_first_q ? 48'sd0 : acc_q) + (b3_t0_q + b3_t1_q);
      b4_exp_q <= 11'(b3_base_q) - 11'd284;  // value = acc * 2^(base - 254 - 12 - 18)
      b4_nan_q <= b3_nan_q;
    end
  end

  // ---- to fp32, NaN, scale ----
  logic c_valid, c_ovf, m_ovf;
  logic [31:0] c_y;
  // A NaN takes the place of the product, not of a factor: nothing lies before the multiplier.
  localparam int CVT = mr_fp_pkg::ACC2F_LAT, MUL = CVT + mr_fp_pkg::FMUL_LAT;
  logic [31:0] m_y;
  logic [MUL:1] nan_q;  // so many cycles behind b4_v_q

  always_ff @(posedge clk_i) nan_q <= {nan_q[MUL-1:1], b4_nan_q};

  mr_vacc2f #(.LANES(1)) u_acc2f (
    .clk_i, .rst_ni, .valid_i(b4_v_q), .acc_i(acc_q), .exp_i(b4_exp_q), .valid_o(c_valid),
    .y_o(c_y), .ovf_o(c_ovf)
  );

  mr_vfmul #(.LANES(1)) u_scale (
    .clk_i, .rst_ni, .valid_i(c_valid), .a_i(c_y), .b_i(cfg_scale_i), .valid_o(t_valid_o),
    .y_o(m_y), .ovf_o(m_ovf)
  );

  assign t_o   = nan_q[MUL] ? mr_fp_pkg::QNAN : m_y;
  assign ovf_o = (m_ovf && !nan_q[MUL]) || (c_ovf && !nan_q[CVT]);

  `MR_ASSERT(sums, !(s5_v_q && s5_hlast_q) || !b_act_q || b_last)

endmodule
