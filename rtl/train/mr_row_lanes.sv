// SPDX-License-Identifier: Apache-2.0
// The lanes of mr_row_alu: what MOVE_ROWS' works calculate, rules 17 and 19 of
// docs/inside/numerics.md. A word of V floats goes through the steps of the pass at the offsets of
// mr_row_pkg.
//
// Parameters
//   V  lanes, a power of two from 4 to 32
//
// Ports
//   pass_i     stands from the pass's first word until its last result is there
//   clear_i    pulse before a pass's first word, with pass_i: sums begin anew, in TOP and MAX
//              maxima too, and words of the pass before go no further
//   issue_i    a word is read, a multiple of the pass's cycles a word behind the one before; x_i
//              and y_i have it in the next cycle, of row memory 1 and 2; vec_i has gains two cycles
//              behind vec_ren_o
//   flags_i    beside issue_i: the word has columns that count; it is the first; the last of them;
//              lo_i and hi_i say which lanes of the first and the last one count
//   mean_i ... what the pass needs, constant while it runs; fix_i: a float of exponent field e
//              becomes an integer by a shift of fix_i - e - 1 places to the right
//   top_x_o, top_y_o, top_g_o   TOP, MAX: largest exponent fields, at least 1
//   sum_o, prod_o   sums of AB and SUM
//   bad_o      AB: pulse, a value that makes the row NaN
//   out_valid_o, out_o   results; 0 in lanes that do not count, NaN in all others with nan_i
//   nan_o      pulse, a result was NaN
//   ovf_o      pulse, an overflow to infinity
`include "mr_assert.svh"
module mr_row_lanes #(
  parameter int V = 4
) (
  input  logic            clk_i,
  input  logic            rst_ni,

  input  logic [3:0]      pass_i,
  input  logic            clear_i,
  input  logic            issue_i,
  input  logic [2:0]      flags_i,
  input  logic [V-1:0]    lo_i,
  input  logic [V-1:0]    hi_i,
  input  logic [V*32-1:0] x_i,
  input  logic [V*32-1:0] y_i,
  output logic            vec_ren_o,
  input  logic [V*32-1:0] vec_i,

  input  logic [31:0]     mean_i,
  input  logic [31:0]     r_i,
  input  logic [31:0]     ma_i,
  input  logic [31:0]     mb_i,
  input  logic [31:0]     scale_i,
  input  logic [31:0]     by_i,
  input  logic [31:0]     d_i,
  input  logic [31:0]     grad_scale_i,
  input  logic [9:0]      fix_i,
  input  logic            nan_i,

  output logic [7:0]      top_x_o,
  output logic [7:0]      top_y_o,
  output logic [7:0]      top_g_o,
  output logic [47:0]     sum_o,
  output logic [63:0]     prod_o,
  output logic            bad_o,
  output logic            out_valid_o,
  output logic [V*32-1:0] out_o,
  output logic            nan_o,
  output logic            ovf_o
);

  localparam int LAST = mr_row_pkg::LAST;

  logic top, gain, ab, dx, max, sum, prob, ds, norm, smax;
  // The pass stands a cycle before its first word.
  always_ff @(posedge clk_i) begin
    top  <= pass_i == mr_row_pkg::TOP;
    gain <= pass_i == mr_row_pkg::GAIN;
    ab   <= pass_i == mr_row_pkg::AB;
    dx   <= pass_i == mr_row_pkg::DX;
    max  <= pass_i == mr_row_pkg::MAX;
    sum  <= pass_i == mr_row_pkg::SUM;
    prob <= pass_i == mr_row_pkg::PROB;
    ds   <= pass_i == mr_row_pkg::DS;
  end
  assign norm = gain || ab || dx;
  assign smax = max || sum || prob || ds;

  // ---- where words are --------------------------------------------------------------------------
  // v[c]: a word is at offset c; its flags beside it. STATS' words go to mr_norm_stats alone.
  logic [LAST:0]     v;
  logic [LAST:1]     v_q;
  logic [3*LAST-1:0] flags_q;
  assign v = {v_q & {LAST{!clear_i}}, issue_i && pass_i != mr_row_pkg::STATS};
  always_ff @(posedge clk_i) begin
    if (!rst_ni) v_q <= '0;
    else v_q <= v[LAST-1:0];
    flags_q <= {flags_q[3*LAST-4:0], flags_i};
  end

  // The lanes that count, of the word at offset c.
  function automatic [V-1:0] live(input [2:0] flags, input [V-1:0] lo, input [V-1:0] hi);
    live = {V{flags[2]}} & (lo | {V{!flags[1]}}) & (hi | {V{!flags[0]}});
  endfunction
  logic [V-1:0] live1, live3, live_key, live_h, live_a, live_p_q, live_out;
  assign live1    = live(flags_q[0+:3], lo_i, hi_i);
  assign live3    = live(flags_q[6+:3], lo_i, hi_i);
  assign live_key = live(flags_q[3*(mr_row_pkg::KEY-1)+:3], lo_i, hi_i);
  assign live_h   = live(flags_q[3*(mr_row_pkg::AB_H-1)+:3], lo_i, hi_i);
  assign live_a   = live(flags_q[3*(mr_row_pkg::AB_A-1)+:3], lo_i, hi_i);
  always_ff @(posedge clk_i) begin  // of SUM alone, so that b needs no select
    live_p_q <= live(flags_q[3*(mr_row_pkg::SUM_PROD-2)+:3], lo_i, hi_i) & {V{sum}};
  end

  // ---- operands ---------------------------------------------------------------------------------
  // Of columns that do not count both are zero. y waits in a ring until its step.
  logic [V*32-1:0] x_q, y_q, ring, mul_y, mul_late_q, add_y, hold_q, p_float_q;
  logic [3:0]      ring_w_q, ring_r_q;
  logic            ring_ren;
  assign ring_ren = (gain && v[mr_row_pkg::GAIN_DY-1]) || (ab && v[mr_row_pkg::AB_DN-1]) ||
                    (dx && v[mr_row_pkg::DX_DN-1]) || (sum && v[mr_row_pkg::SUM_A-1]) ||
                    (ds && v[mr_row_pkg::DS_E-1]);
  mr_ram_1r1w #(.W(V * 32), .DEPTH(16)) u_ring (
    .clk_i, .wen_i(v[mr_row_pkg::IN]), .waddr_i(ring_w_q), .wdata_i(y_q),
    .ren_i(ring_ren), .raddr_i(ring_r_q), .rdata_o(ring)
  );
  always_ff @(posedge clk_i) begin
    if (clear_i) begin
      ring_w_q <= '0;
      ring_r_q <= '0;
    end else begin
      ring_w_q <= ring_w_q + 4'(v[mr_row_pkg::IN]);
      ring_r_q <= ring_r_q + 4'(ring_ren);
    end
    if (v[1]) begin
      for (int l = 0; l < V; l++) begin
        x_q[32*l+:32] <= x_i[32*l+:32] & {32{live1[l]}};
        y_q[32*l+:32] <= y_i[32*l+:32] & {32{live1[l]}};
      end
    end
    mul_late_q <= mul_y;
    if (dx && (v[mr_row_pkg::DX_T+4] || v[mr_row_pkg::DX_W+4])) hold_q <= add_y;
    else if (v[mr_row_pkg::P_BY+4]) hold_q <= mul_y;
  end
  // Gains: in TOP a cycle after the row's words, since issue_i comes late.
  assign vec_ren_o = (top && v[mr_row_pkg::IN-1]) || (ab && v[mr_row_pkg::AB_DN-2]) ||
                     (dx && v[mr_row_pkg::DX_DN-2]);

  // ---- multiplier -------------------------------------------------------------------------------
  logic        m_scale, m_xh, m_dy, m_dn, m_u, m_dx, m_by, m_pe, m_out, mul_go, mul_v_q, unused_mul;
  logic        mul_ovf;
  logic [31:0] mul_c;
  logic [V*32-1:0] mul_a_q, mul_b_q;
  assign m_scale = smax && v[mr_row_pkg::IN];
  assign m_xh    = norm && v[mr_row_pkg::XH];
  assign m_dy    = gain && v[mr_row_pkg::GAIN_DY];
  assign m_dn    = (ab && v[mr_row_pkg::AB_DN]) || (dx && v[mr_row_pkg::DX_DN]);
  assign m_u     = dx && v[mr_row_pkg::DX_U];
  assign m_dx    = dx && v[mr_row_pkg::DX_OUT];
  assign m_by    = (prob || ds) && v[mr_row_pkg::P_BY];
  assign m_pe    = ds && v[mr_row_pkg::DS_PE];
  assign m_out   = ds && v[mr_row_pkg::DS_OUT];
  assign mul_go  = m_scale || m_xh || m_dy || m_dn || m_u || m_dx || m_by || m_pe || m_out;
  assign mul_c   = m_scale ? scale_i : m_u ? mb_i : m_by ? by_i : m_out ? grad_scale_i : r_i;
  always_ff @(posedge clk_i) begin
    if (!rst_ni) mul_v_q <= 1'b0;
    else mul_v_q <= mul_go;
    if (mul_go) begin
      mul_a_q <= m_scale ? x_q : m_xh ? add_y : m_dn ? vec_i : m_by ? p_float_q :
                 (m_dx || m_pe) ? hold_q : mul_late_q;
      mul_b_q <= (m_dy || m_dn) ? ring : m_pe ? add_y : {V{mul_c}};
    end
  end
  mr_vfmul #(.LANES(V)) u_mul (
    .clk_i, .rst_ni, .valid_i(mul_v_q), .a_i(mul_a_q), .b_i(mul_b_q), .valid_o(unused_mul),
    .y_o(mul_y), .ovf_o(mul_ovf)
  );

  // ---- adder ------------------------------------------------------------------------------------
  logic        a_mean, a_t, a_w, a_dist, a_e, add_go, add_v_q, unused_add, add_ovf;
  logic [31:0] add_c, score;
  logic [V*32-1:0] add_a_q, add_b_q;
  assign a_mean = norm && v[mr_row_pkg::IN];
  assign a_t    = dx && v[mr_row_pkg::DX_T];
  assign a_w    = dx && v[mr_row_pkg::DX_W];
  assign a_dist = (sum || prob || ds) && v[mr_row_pkg::DIST];
  assign a_e    = ds && v[mr_row_pkg::DS_E];
  assign add_go = a_mean || a_t || a_w || a_dist || a_e;
  assign add_c  = a_mean ? mean_i : a_t ? ma_i : d_i;
  always_ff @(posedge clk_i) begin
    if (!rst_ni) add_v_q <= 1'b0;
    else add_v_q <= add_go;
    if (add_go) begin
      add_a_q <= a_mean ? x_q : a_t ? mul_y : a_w ? hold_q : a_e ? ring : {V{score}};
      add_b_q <= ((a_w || a_dist) ? mul_y : {V{add_c}}) ^ {V{32'h80000000}};
    end
  end
  mr_vfadd #(.LANES(V)) u_add (
    .clk_i, .rst_ni, .valid_i(add_v_q), .a_i(add_a_q), .b_i(add_b_q), .valid_o(unused_add),
    .y_o(add_y), .ovf_o(add_ovf)
  );
  assign ovf_o = mul_ovf || add_ovf;

  // ---- exp2, integers, products -----------------------------------------------------------------
  logic            fix_v, fix1_v_q, exp_v;
  logic [9:0]      fix_by;
  logic [V-1:0]    unused_exp, bad, sign_q;
  logic [V*16-1:0] p;
  logic [V*25-1:0] fix_q;              // |x|
  logic [V*25-1:0] small_q;            // the summands: a with its sign, or p
  logic [V*50-1:0] prod_q;
  logic            prod_go, sum_v_q;
  logic [2:0]      prod_v_q;
  assign fix_v   = (ab && (v[mr_row_pkg::AB_H] || v[mr_row_pkg::AB_A])) ||
                   (sum && v[mr_row_pkg::SUM_A]);
  assign fix_by  = (ab && v[mr_row_pkg::AB_H]) ? 10'd135 : fix_i;
  assign exp_v   = (sum || prob || ds) && v[mr_row_pkg::EXP];
  assign prod_go = (ab && v[mr_row_pkg::AB_PROD]) || (sum && v[mr_row_pkg::SUM_PROD]);
  always_ff @(posedge clk_i) begin
    if (!rst_ni) {fix1_v_q, sum_v_q, prod_v_q} <= '0;
    else {fix1_v_q, sum_v_q, prod_v_q} <= {fix_v, prod_go, prod_v_q[1:0], prod_go};
  end

  // {sign, something is left, shift, significand}: |x| = significand 2^(1 - shift).
  function automatic [30:0] fix_s1(input [31:0] x, input [9:0] by);
    logic [9:0] d;
    begin
      d = by - {2'd0, x[30:23]};
      fix_s1 = {x[31], x[30:23] != 8'd0 && d[9:5] == 5'd0, d[4:0], 1'b1, x[22:0]};
    end
  endfunction
  // Rounded to nearest, ties to even; from a shift of 27 on it is 0 by itself.
  function automatic [24:0] fix_s2(input [29:0] s);
    logic [26:0] x;
    begin
      x = mr_fp_pkg::align4(mr_fp_pkg::align8({s[23:0], 3'd0}, s[28:27]), s[26:24], 1'b0);
      fix_s2 = s[29] ? x[26:2] + {24'd0, x[1] && (x[2] || x[0])} : 25'd0;
    end
  endfunction
  // 16 bits as a float, exact.
  function automatic [31:0] to_float(input [15:0] n);
    logic [15:0] x, y;
    logic [3:0]  z;
    begin
      z[3] = n[15:8] == 8'd0;
      x    = z[3] ? {n[7:0], 8'd0} : n;
      z[2] = x[15:12] == 4'd0;
      y    = z[2] ? {x[11:0], 4'd0} : x;
      z[1] = y[15:14] == 2'd0;
      x    = z[1] ? {y[13:0], 2'd0} : y;
      z[0] = !x[15];
      y    = z[0] ? {x[14:0], 1'b0} : x;
      to_float = y[15] ? {1'b0, 8'd142 - {4'd0, z}, y[14:0], 8'd0} : 32'd0;
    end
  endfunction

  for (genvar l = 0; l < V; l++) begin : gen_lane
    logic [30:0] fix1_q;
    logic        sign, h_sign_q, s1_q, s2_q;
    logic [24:0] h_q, b;
    logic [40:0] lo_q;
    logic [31:0] hi_q;
    logic [48:0] size_q;
    logic [15:0] p_live;
    mr_exp2 u_exp2 (
      .clk_i, .rst_ni, .valid_i(exp_v), .d_i(add_y[32*l+:32]), .valid_o(unused_exp[l]),
      .p_o(p[16*l+:16])
    );
    assign p_live = p[16*l+:16] & {16{live_p_q[l]}};
    assign b      = h_q | {9'd0, p_live};
    assign sign   = sign_q[l] ^ (ab && h_sign_q);
    always_ff @(posedge clk_i) begin
      if (fix_v) fix1_q <= fix_s1(sum ? ring[32*l+:32] : mul_y[32*l+:32], fix_by);
      if (fix1_v_q) begin
        fix_q[25*l+:25] <= fix_s2(fix1_q[29:0]);
        sign_q[l]       <= fix1_q[30];
      end
      if (v[mr_row_pkg::AB_H+2]) begin
        h_q      <= fix_q[25*l+:25] & {25{ab}};
        h_sign_q <= sign_q[l];
      end
      if (v[mr_row_pkg::SUM_PROD]) p_float_q[32*l+:32] <= to_float(p[16*l+:16]);
      if (prod_go) begin
        small_q[25*l+:25] <= !ab ? b :
            (fix_q[25*l+:25] ^ {25{sign_q[l]}}) + {24'd0, sign_q[l]};
        lo_q <= {17'd0, fix_q[25*l+:24]} * {24'd0, b[16:0]};
        hi_q <= {8'd0, fix_q[25*l+:24]} * {24'd0, b[24:17]};
        s1_q <= sign;
      end
      if (prod_v_q[0]) begin
        size_q <= {8'd0, lo_q} + {hi_q, 17'd0};
        s2_q   <= s1_q;
      end
      if (prod_v_q[1]) prod_q[50*l+:50] <= ({1'b0, size_q} ^ {50{s2_q}}) + {49'd0, s2_q};
    end
    // A row that is not finite (rule 19). A softmax needs no look: its sum is 0, and 1 / 0 NaN.
    logic [7:0] mul_e;
    assign mul_e  = mul_y[32*l+23+:8];
    assign bad[l] = ab && ((v[mr_row_pkg::AB_H] && live_h[l] && mul_e >= 8'd136) ||
                           (v[mr_row_pkg::AB_A] && live_a[l] && mul_e == 8'd255));
  end
  always_ff @(posedge clk_i) begin
    if (!rst_ni) bad_o <= 1'b0;
    else bad_o <= bad != '0;
  end

  // ---- sums and maxima --------------------------------------------------------------------------
  mr_row_sum #(.V(V), .W(25), .SUM(48)) u_sum (
    .clk_i, .rst_ni, .clear_i, .valid_i(sum_v_q), .data_i(small_q), .sum_o
  );
  mr_row_sum #(.V(V), .W(50), .SUM(64)) u_prod (
    .clk_i, .rst_ni, .clear_i, .valid_i(prod_v_q[2]), .data_i(prod_q), .sum_o(prod_o)
  );
  mr_row_max #(.V(V)) u_score (
    .clk_i, .rst_ni, .clear_i(clear_i && pass_i == mr_row_pkg::MAX),
    .valid_i(max && v[mr_row_pkg::KEY]), .live_i(live_key), .data_i(mul_y), .max_o(score)
  );

  logic            tops_clear, top4_q, xv, yv, gv;
  logic [7:0]      xm, ym, gm;
  assign tops_clear = clear_i && (pass_i == mr_row_pkg::TOP || pass_i == mr_row_pkg::MAX);
  // Of all columns, as the row's statistics. A memory's word comes late, and of the gains those
  // that count are chosen first.
  // verilator lint_off UNUSED
  logic [V*32-1:0] x_all_q, g_q;  // the exponents
  // verilator lint_on UNUSED
  always_ff @(posedge clk_i) begin
    if (top && v[1]) x_all_q <= x_i;
    if (!rst_ni) top4_q <= 1'b0;
    else top4_q <= top && v[mr_row_pkg::IN+1];
    if (top && v[mr_row_pkg::IN+1]) begin
      for (int l = 0; l < V; l++) g_q[32*l+:32] <= vec_i[32*l+:32] & {32{live3[l]}};
    end
  end
  mr_expmax #(.LANES(V)) u_top_x (
    .clk_i, .rst_ni, .valid_i(top && v[mr_row_pkg::IN]), .data_i(x_all_q), .valid_o(xv), .max_o(xm)
  );
  mr_expmax #(.LANES(V)) u_top_y (
    .clk_i, .rst_ni, .valid_i((top || max) && v[mr_row_pkg::IN]), .data_i(y_q), .valid_o(yv),
    .max_o(ym)
  );
  mr_expmax #(.LANES(V)) u_top_g (
    .clk_i, .rst_ni, .valid_i(top4_q), .data_i(g_q), .valid_o(gv), .max_o(gm)
  );
  always_ff @(posedge clk_i) begin
    if (tops_clear) begin
      top_x_o <= 8'd1;
      top_y_o <= 8'd1;
      top_g_o <= 8'd1;
    end else begin
      if (xv && xm > top_x_o) top_x_o <= xm;
      if (yv && ym > top_y_o) top_y_o <= ym;
      if (gv && gm > top_g_o) top_g_o <= gm;
    end
  end

  // ---- results ----------------------------------------------------------------------------------
  localparam int OP = mr_row_pkg::OP;
  assign live_out = live(gain ? flags_q[3*(mr_row_pkg::GAIN_DY+OP-1)+:3] :
                         dx ? flags_q[3*(mr_row_pkg::DX_OUT+OP-1)+:3] :
                         prob ? flags_q[3*(mr_row_pkg::P_BY+OP-1)+:3] :
                         flags_q[3*(LAST-1)+:3], lo_i, hi_i);
  assign out_valid_o = (gain && v[mr_row_pkg::GAIN_DY+OP]) || (dx && v[mr_row_pkg::DX_OUT+OP]) ||
                       (prob && v[mr_row_pkg::P_BY+OP]) || (ds && v[LAST]);
  logic [V-1:0] nans;
  for (genvar l = 0; l < V; l++) begin : gen_out
    assign out_o[32*l+:32] = (nan_i ? mr_fp_pkg::QNAN : mul_y[32*l+:32]) & {32{live_out[l]}};
    assign nans[l]         = live_out[l] && (nan_i || mul_y[32*l+:32] == mr_fp_pkg::QNAN);
  end
  always_ff @(posedge clk_i) begin
    if (!rst_ni) nan_o <= 1'b0;
    else nan_o <= out_valid_o && nans != '0;
  end

  // The pass stands while it has words; a command's first one is GAIN, behind whose steps those of
  // the command before are. Their distance keeps each lane's units to one step a cycle, and what of
  // y a step takes from the ring has been written.
  `MR_ASSERT(pass, v[mr_row_pkg::GAIN_DY+mr_row_pkg::OP:0] == '0 ||
                   {ds, prob, sum, max, dx, ab, gain, 1'b0, top} == 9'd1 << pass_i)
  `MR_ASSERT_ONEHOT0(mul, {m_scale, m_xh, m_dy, m_dn, m_u, m_dx, m_by, m_pe, m_out})
  `MR_ASSERT_ONEHOT0(add, {a_mean, a_t, a_w, a_dist, a_e})
  `MR_ASSERT(ring, !ring_ren || ring_r_q != ring_w_q)
endmodule
