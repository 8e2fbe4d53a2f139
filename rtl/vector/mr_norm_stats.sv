// SPDX-License-Identifier: Apache-2.0
//
// Mean and 1/sigma of a row of floats, bit-exact to mr_layernorm_from of host/cmodel/num.c: for
// LAYERNORM, and for the works of MOVE_ROWS that go back through it (rules 5 and 19 of
// docs/inside/numerics.md).
//
// V: lanes, a power of two from 4 to 64.
// ren_i: a word of the row is read; data_i has it in the next cycle. first_i, last_i: beside ren_i,
// the row's first and last word. busy_i: high from the first word's cycle to done_o.
// top_i: the row's largest exponent field, 1 where it is 0; nan_i: that is 255, and the mean is
// NaN. n_i, inv_n_i, inv_n2_i, eps_i: as LAYERNORM has them. All stand from the first word to
// done_o.
// Timing: one row at a time. done_o: pulse, 27 + RSQRT_LAT + log2(V) cycles or so after the last
// word; mean_o and r_o then stand until the next row's. ovf_o: pulse, an overflow to infinity.
`include "mr_assert.svh"
module mr_norm_stats #(
    parameter int V = 4
) (
    input  logic            clk_i,
    input  logic            rst_ni,
    input  logic            busy_i,
    input  logic            ren_i,
    input  logic            first_i,
    input  logic            last_i,
    input  logic [V*32-1:0] data_i,
    input  logic [7:0]      top_i,
    input  logic            nan_i,
    input  logic [15:0]     n_i,
    input  logic [31:0]     inv_n_i,
    input  logic [31:0]     inv_n2_i,
    input  logic [31:0]     eps_i,
    output logic            done_o,
    output logic [31:0]     mean_o,
    output logic [31:0]     r_o,
    output logic            ovf_o
);
  localparam int LOG = $clog2(V);

  // ---- sums ------------------------------------------------------------------------

  // x_q: 1 aligned, 2 rounded, 3 partial squares, 4 squares, then LOG levels of adders, then the
  // sums.
  localparam int SUM = 4 + LOG;
  logic [SUM:0] v_q, first_q, last_q;
  logic sums_q;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      v_q <= '0;
      sums_q <= 1'b0;
    end else begin
      v_q <= {v_q[SUM-1:0], ren_i};
      sums_q <= v_q[SUM] && last_q[SUM];
    end
  end
  always_ff @(posedge clk_i) begin
    if (busy_i) begin
      first_q <= {first_q[SUM-1:0], first_i};
      last_q <= {last_q[SUM-1:0], last_i};
    end
  end

  // {sign, zero, shift 8, significand 24}: xi = round(x 2^(22 - top)) = significand >>
  // (1 + top - e), and 0 from a shift of 26 on. Stored is the shift less one. The memory's word
  // comes late: all else is looked at in the next step.
  function automatic [33:0] prepare(input [31:0] x, input [7:0] top);
    logic [7:0] d;
    begin
      d = top - x[30:23];
      prepare = {x[31], x[30:23] == 8'd0, d, 1'b1, x[22:0]};
    end
  endfunction

  // From a shift of 26 on nothing is left, whatever it is.
  function automatic [23:0] round_shift(input [23:0] sig, input [7:0] d, input zero);
    logic [26:0] x;
    logic [4:0] sh;
    begin
      sh = zero || d[7:5] != 3'd0 ? 5'd31 : d[4:0];
      x = mr_fp_pkg::align4(mr_fp_pkg::align8({1'b0, sig, 2'd0}, sh[4:3]), sh[2:0], 1'b0);
      round_shift = x[26:3] + {23'd0, x[2] && (x[3] || x[1:0] != 2'd0)};
    end
  endfunction

  localparam int W1 = 32, W2 = 54;
  logic [(2*V-1)*W1-1:0] t1_q;  // tree: node i sums 2i + 1 and 2i + 2, leaves V-1.., root 0
  logic [(2*V-1)*W2-1:0] t2_q;

  for (genvar l = 0; l < V; l++) begin : gen_lane
    logic [33:0] a_q;
    logic [23:0] m_q;
    logic s2_q;
    logic signed [W1-1:0] x3_q;
    logic [40:0] lo_q;
    logic [30:0] hi_q;

    always_ff @(posedge clk_i) begin
      if (v_q[0]) a_q <= prepare(data_i[32*l+:32], top_i);
      if (v_q[1]) begin
        s2_q <= a_q[33];
        m_q <= round_shift(a_q[23:0], a_q[31:24], a_q[32]);
      end
      if (v_q[2]) begin
        x3_q <= s2_q ? $signed(W1'(0)) - $signed({8'd0, m_q}) : $signed({8'd0, m_q});
        lo_q <= {17'd0, m_q} * {24'd0, m_q[16:0]};
        hi_q <= {7'd0, m_q} * {24'd0, m_q[23:17]};
      end
      if (v_q[3]) begin
        t1_q[W1*(V-1+l)+:W1] <= x3_q;
        t2_q[W2*(V-1+l)+:W2] <= {13'd0, lo_q} + {6'd0, hi_q, 17'd0};
      end
    end
  end

  for (genvar k = 0; k < LOG; k++) begin : gen_level
    for (genvar i = (V >> (k + 1)) - 1; i < (V >> k) - 1; i++) begin : gen_node
      always_ff @(posedge clk_i) begin
        if (v_q[4+k]) begin
          t1_q[W1*i+:W1] <= t1_q[W1*(2*i+1)+:W1] + t1_q[W1*(2*i+2)+:W1];
          t2_q[W2*i+:W2] <= t2_q[W2*(2*i+1)+:W2] + t2_q[W2*(2*i+2)+:W2];
        end
      end
    end
  end

  logic [47:0] s1_q;
  logic [63:0] s2_q;
  always_ff @(posedge clk_i) begin
    if (v_q[SUM]) begin
      s1_q <= (first_q[SUM] ? 48'd0 : s1_q) + {{16{t1_q[W1-1]}}, t1_q[W1-1:0]};
      s2_q <= (first_q[SUM] ? 64'd0 : s2_q) + {10'd0, t2_q[W2-1:0]};
    end
  end

  // ---- mean and 1/sigma ------------------------------------------------------------

  // seq_q[c]: cycle c after the sums. The integer part, n S2 - S1^2 in 80 bits, goes through one
  // 64 x 16 multiplier in four passes, Horner's way: |S1| by its three digits, then S2 by n.
  //   0 |S1|; 1..4 operands; 2..5 partial products; 3..6 product; 4..7 spread; 8 window
  //   1 S1 to fp32, 4 times 1/n, 7 scale: mean
  //   9 spread to fp32, 12 times 1/n^2, 15 scale, plus eps and rsqrt
  logic [15:0] seq_q;
  logic [47:0] abs_q;
  logic [63:0] op_q;
  logic [15:0] digit_q;
  logic [127:0] pp_q;
  logic [79:0] prod_q, spread_q;
  logic [46:0] win_q;
  logic [10:0] win_e_q;
  logic [31:0] cvt_y, inv_q, mul_y;
  logic signed [10:0] unit_q;
  logic cvt_ovf, mul_ovf, add_ovf, unused_cvt, unused_mul;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) seq_q <= '0;
    else seq_q <= {seq_q[14:0], sums_q};
  end

  always_ff @(posedge clk_i) begin
    if (seq_q[0]) unit_q <= $signed({3'd0, top_i}) - 11'sd149;
    if (seq_q[0]) abs_q <= s1_q[47] ? 48'd0 - s1_q : s1_q;
    if (seq_q[3] || seq_q[11]) inv_q <= seq_q[3] ? inv_n_i : inv_n2_i;
    if (seq_q[1] || seq_q[2] || seq_q[3]) begin
      op_q <= {16'd0, abs_q};
      digit_q <= seq_q[1] ? abs_q[47:32] : seq_q[2] ? abs_q[31:16] : abs_q[15:0];
    end
    if (seq_q[4]) begin
      op_q <= s2_q;
      digit_q <= n_i;
    end
    if (seq_q[2] || seq_q[3] || seq_q[4] || seq_q[5]) begin
      for (int i = 0; i < 4; i++) pp_q[32*i+:32] <= {16'd0, op_q[16*i+:16]} * {16'd0, digit_q};
    end
    // Even digits lie beside each other, and so do odd ones.
    if (seq_q[3] || seq_q[4] || seq_q[5] || seq_q[6]) begin
      prod_q <= {16'd0, pp_q[95:64], pp_q[31:0]} + {pp_q[127:96], pp_q[63:32], 16'd0};
    end
    if (seq_q[4] || seq_q[5] || seq_q[6] || seq_q[7]) begin
      spread_q <= 80'({{80{!seq_q[4]}} & (seq_q[7] ? spread_q : {spread_q[63:0], 16'd0}), 1'b1} +
                      {prod_q ^ {80{!seq_q[7]}}, !seq_q[7]} >> 1);
    end
    // 47 bits with the leading one among the upper 17, or everything; the rest is sticky.
    if (seq_q[8]) begin
      if (spread_q[79:64] != 16'd0) begin
        win_q <= {spread_q[79:34], spread_q[33:0] != 34'd0};
        win_e_q <= 11'd33;
      end else if (spread_q[63:47] != 17'd0) begin
        win_q <= {spread_q[63:18], spread_q[17:0] != 18'd0};
        win_e_q <= 11'd17;
      end else begin
        win_q <= spread_q[46:0];
        win_e_q <= 11'd0;
      end
    end
    if (seq_q[7]) mean_o <= nan_i ? mr_fp_pkg::QNAN : mr_fp_pkg::fscale(mul_y, unit_q);
  end

  mr_vacc2f #(.LANES(1)) u_cvt (
    .clk_i, .rst_ni, .valid_i(seq_q[1] || seq_q[9]), .acc_i(seq_q[1] ? s1_q : {1'b0, win_q}),
    .exp_i(seq_q[1] ? 11'd0 : win_e_q), .valid_o(unused_cvt), .y_o(cvt_y), .ovf_o(cvt_ovf)
  );
  mr_vfmul #(.LANES(1)) u_mul (
    .clk_i, .rst_ni, .valid_i(seq_q[4] || seq_q[12]), .a_i(cvt_y), .b_i(inv_q),
    .valid_o(unused_mul), .y_o(mul_y), .ovf_o(mul_ovf)
  );
  mr_rsqrt u_rsqrt (
    .clk_i, .rst_ni, .valid_i(seq_q[15]), .v_i(mr_fp_pkg::fscale(mul_y, {unit_q[9:0], 1'b0})),
    .eps_i(eps_i), .valid_o(done_o), .y_o(r_o), .ovf_o(add_ovf)
  );

  assign ovf_o = cvt_ovf || mul_ovf || add_ovf;

  // A word belongs to a row at work, and a row begins when the sums of the one before are used.
  `MR_ASSERT(word, !ren_i || busy_i)
  `MR_ASSERT(row, !(ren_i && first_i) || (v_q == '0 && !sums_q && seq_q == '0))
endmodule
