// SPDX-License-Identifier: Apache-2.0
//
// fp32 arithmetic of the device, one function per pipeline stage, bit for bit as in
// host/cmodel/num.h: round to nearest even; exponent field 0 reads as signed zero; results below
// 2^-126 after rounding to 24 bits become signed zero; every NaN is 0x7FC00000; no fused
// multiply-add. Callers register the value between two stages (mr_vfadd and friends do that), so
// that the depth of one stage is a shifter and an adder at most. Subtract: flip b's sign bit.
//
// All functions are pure; call them from always_ff under the stage's valid bit. The tables of GELU,
// exp2, reciprocal and 1/sqrt are included files: tools need +incdir+rtl/fp.
package mr_fp_pkg;
  /* verilator lint_off UNUSEDPARAM */  // one top rarely uses all of a package

  // Cycles from valid_i to valid_o of the units in this directory.
  localparam int FADD_LAT = 3;
  localparam int FMUL_LAT = 3;
  localparam int ACC2F_LAT = 3;
  localparam int GELU_LAT = 10;
  localparam int EXP2_LAT = 6;
  localparam int RECIP_LAT = 11;
  localparam int RSQRT_LAT = 14;

  localparam logic [31:0] QNAN = 32'h7FC00000;
  localparam logic [31:0] FP_HALF = 32'h3F000000;
  localparam logic [31:0] FP_1P5 = 32'h3FC00000;
  localparam logic [31:0] FP_TWO = 32'h40000000;

  // Widths between the stages.
  localparam int ADD1_W = 62;   // {sign, sub, exp 8, mantissa 23, smaller significand 24, shift 5}
  localparam int ADD2_W = 38;   // {sign, sub, exp - 1 8, sum 28}
  localparam int MUL1L_W = 41;  // a * b[16:0]
  localparam int MUL1H_W = 44;  // {kind 2, sign, exp 10, a * b[23:17] 31}
  localparam int MUL2_W = 61;   // {kind 2, sign, exp 10, product 48}
  localparam int CVT1_W = 60;   // {sign, exp 11, magnitude 48}
  localparam int CVT2_W = 39;   // {sign, exp 12, significand 24, round, sticky}

  // ---- without a pipeline ----------------------------------------------------------------------

  // Reads a value as the device does.
  function automatic [31:0] fin(input [31:0] a);
    if (a[30:23] == 8'd0) fin = {a[31], 31'd0};
    else if (a[30:23] == 8'd255 && a[22:0] != 23'd0) fin = QNAN;
    else fin = a;
  endfunction

  // a > b for values that are not NaN; zeros of either sign are equal.
  function automatic fgt(input [31:0] a, input [31:0] b);
    logic [30:0] ma, mb;
    begin
      ma = a[30:23] == 8'd0 ? 31'd0 : a[30:0];
      mb = b[30:23] == 8'd0 ? 31'd0 : b[30:0];
      if (a[31] != b[31]) fgt = b[31] && (ma != 31'd0 || mb != 31'd0);
      else fgt = a[31] ? ma < mb : ma > mb;
    end
  endfunction

  // max; NaN if either is NaN; a zero result is +0 unless both are -0 (so max(-0, -1) = +0).
  function automatic [31:0] fmax(input [31:0] a, input [31:0] b);
    logic [31:0] x, y, m;
    begin
      x = fin(a);
      y = fin(b);
      m = fgt(x, y) ? x : y;
      if (x == QNAN || y == QNAN) fmax = QNAN;
      else if (m[30:0] == 31'd0) fmax = {x == 32'h80000000 && y == 32'h80000000, 31'd0};
      else fmax = m;
    end
  endfunction

  // a * 2^k, exact but for flush and overflow.
  function automatic [31:0] fscale(input [31:0] a, input signed [10:0] k);
    logic signed [11:0] e;
    begin
      e = $signed({4'd0, a[30:23]}) + $signed({k[10], k});
      if (a[30:23] == 8'd0) fscale = {a[31], 31'd0};
      else if (a[30:23] == 8'd255) fscale = a[22:0] != 23'd0 ? QNAN : a;
      else if (e <= 12'sd0) fscale = {a[31], 31'd0};
      else if (e >= 12'sd255) fscale = {a[31], 8'd255, 23'd0};
      else fscale = {a[31], e[7:0], a[22:0]};
    end
  endfunction

  // ---- add -------------------------------------------------------------------------------------

  // Order the operands by magnitude. Infinities and NaN travel as exp 255, mantissa 0 or not.
  function automatic [ADD1_W-1:0] add_s1(input [31:0] a, input [31:0] b);
    logic swap, nan;
    logic [31:0] hi;
    logic [30:0] lo;
    logic [7:0] a_b, b_a, diff;
    logic [22:0] mant;
    logic [23:0] low;
    begin
      swap = b[30:0] > a[30:0];
      hi = swap ? b : a;
      lo = swap ? a[30:0] : b[30:0];
      // A NaN has the larger magnitude; of two infinities of different sign none is left.
      nan = hi[30:23] == 8'd255 && (hi[22:0] != 23'd0 || (lo[30:23] == 8'd255 && a[31] != b[31]));
      // Both differences beside the comparison, not one of hi and lo behind it: the shorter path.
      // And hi ^ lo, which equals a ^ b, must not be anywhere, or synthesis takes it for a ^ b in
      // the comparison: a loop through the carry chain.
      a_b = a[30:23] - b[30:23];
      b_a = b[30:23] - a[30:23];
      diff = swap ? b_a : a_b;
      mant = nan ? 23'h400000 : hi[30:23] == 8'd0 ? 23'd0 : hi[22:0];
      low = lo[30:23] == 8'd0 ? 24'd0 : {1'b1, lo[22:0]};
      add_s1 = {hi[31], a[31] ^ b[31], hi[30:23], mant, low, diff > 8'd31 ? 5'd31 : diff[4:0]};
    end
  endfunction

  // Align with guard, round and sticky bit; add or subtract.
  function automatic [ADD2_W-1:0] add_s2(input [ADD1_W-1:0] s);
    logic [7:0] e;
    logic [26:0] low, moved;
    logic [27:0] big, sum;
    logic sticky;
    begin
      e = s[59:52];
      low = {s[28:5], 3'd0};
      moved = low >> s[4:0];
      sticky = (low & ~(27'h7FFFFFF << s[4:0])) != 27'd0;
      moved[0] = moved[0] | sticky;
      big = {1'b0, e != 8'd0, s[51:29], 3'd0};
      sum = s[60] ? big - {1'b0, moved} : big + {1'b0, moved};
      if (e == 8'd255) sum = {27'd0, s[51]};
      // The exponent less one: add_s3 adds what stands before the point and the rounding at once.
      add_s2 = {s[61:60], e - 8'd1, sum};
    end
  endfunction

  // Normalise and round: {finite operands overflowed, result}. A sum that loses more than one
  // leading bit is exact, so rounding and the long normalising shift are never in series.
  function automatic [32:0] add_s3(input [ADD2_W-1:0] s);
    logic sign, r, st, over, inf, tiny, gone;
    logic [7:0] e1, e2, en;
    logic [27:0] sum;
    logic [22:0] m;
    logic [1:0] k;
    logic [30:0] pk;
    logic [24:0] x;
    logic [4:0] n;
    begin
      sign = s[37];
      e1 = s[35:28];
      sum = s[27:0];

      // At most one leading bit lost: round. One addition for that and the exponent's change.
      if (sum[27]) begin
        k = 2'd2;
        m = sum[26:4];
        r = sum[3];
        st = sum[2:0] != 3'd0;
      end else if (sum[26]) begin
        k = 2'd1;
        m = sum[25:3];
        r = sum[2];
        st = sum[1:0] != 2'd0;
      end else begin
        k = 2'd0;
        m = sum[24:2];
        r = sum[1];
        st = sum[0];
      end
      pk = {e1, m} + {6'd0, k, 22'd0, r && (st || m[0])};
      // Beyond the largest or below the smallest exponent. Where a carry out of the mantissa
      // decides, the mantissa is zero and the exponent right as it is: nothing but the flag waits
      // for the addition.
      inf = e1 == 8'd253 && k[1];
      over = inf || (e1 == 8'd253 && k[0] && pk[23]) || (e1 == 8'd252 && k[1] && pk[23]);
      tiny = e1 == 8'd0 && k == 2'd0;

      // Else the sum is exact: the leading one to the top, a power of two at a time.
      x = sum[24:0];
      n = 5'd0;
      if (x[24:9] == 16'd0) begin
        x = x << 16;
        n[4] = 1'b1;
      end
      if (x[24:17] == 8'd0) begin
        x = x << 8;
        n[3] = 1'b1;
      end
      if (x[24:21] == 4'd0) begin
        x = x << 4;
        n[2] = 1'b1;
      end
      if (x[24:23] == 2'd0) begin
        x = x << 2;
        n[1] = 1'b1;
      end
      if (!x[24]) begin
        x = x << 1;
        n[0] = 1'b1;
      end
      e2 = e1 - 8'd1;
      en = e2 - {3'd0, n};
      gone = e1 == 8'd0 || e2 <= {3'd0, n};

      if (e1 == 8'd254) add_s3 = {1'b0, sum[0] ? QNAN : {sign, 8'd255, 23'd0}};
      else if (sum[27:25] != 3'd0) begin
        add_s3 = {over, sign, inf ? 8'd255 : pk[30:23], inf || tiny ? 23'd0 : pk[22:0]};
      end else if (!x[24]) add_s3 = {1'b0, sign && !s[36], 31'd0};  // x - x = +0, -0 + -0 = -0
      else if (gone) add_s3 = {1'b0, sign, 31'd0};
      else add_s3 = {1'b0, sign, en, x[23:1]};
    end
  endfunction

  // ---- multiply --------------------------------------------------------------------------------

  // Two partial products, so that each fits one DSP block and its registers.
  function automatic [MUL1L_W-1:0] mul_s1l(input [22:0] a, input [16:0] b);
    mul_s1l = {17'd0, 1'b1, a} * {24'd0, b};
  endfunction

  localparam logic [1:0] MUL_NUM = 2'd0, MUL_ZERO = 2'd1, MUL_INF = 2'd2, MUL_NAN = 2'd3;

  function automatic [MUL1H_W-1:0] mul_s1h(input [31:0] a, input [31:0] b);
    logic za, zb, ia, ib, na, nb;
    logic [1:0] kind;
    logic [9:0] e;
    logic [30:0] p;
    begin
      za = a[30:23] == 8'd0;
      zb = b[30:23] == 8'd0;
      ia = a[30:23] == 8'd255;
      ib = b[30:23] == 8'd255;
      na = ia && a[22:0] != 23'd0;
      nb = ib && b[22:0] != 23'd0;
      kind = na || nb || (ia && zb) || (ib && za) ? MUL_NAN
          : ia || ib ? MUL_INF : za || zb ? MUL_ZERO : MUL_NUM;
      e = {2'd0, a[30:23]} + {2'd0, b[30:23]} - 10'd127;
      p = {7'd0, 1'b1, a[22:0]} * {24'd0, 1'b1, b[22:17]};
      mul_s1h = {kind, a[31] ^ b[31], e, p};
    end
  endfunction

  function automatic [MUL2_W-1:0] mul_s2(input [MUL1H_W-1:0] h, input [MUL1L_W-1:0] l);
    logic [47:0] p;
    begin
      p = {h[30:0], 17'd0} + {7'd0, l};
      mul_s2 = {h[43:31], p};
    end
  endfunction

  function automatic [32:0] mul_s3(input [MUL2_W-1:0] s);
    logic sign, r, st;
    logic [9:0] e;
    logic [22:0] m;
    logic [32:0] pk;
    begin
      sign = s[58];
      e = s[57:48];
      if (s[47]) begin
        m = s[46:24];
        r = s[23];
        st = s[22:0] != 23'd0;
        e = e + 10'd1;
      end else begin
        m = s[45:23];
        r = s[22];
        st = s[21:0] != 22'd0;
      end
      pk = {e, m} + {32'd0, r && (st || m[0])};
      e = pk[32:23];
      case (s[60:59])
        MUL_NAN: mul_s3 = {1'b0, QNAN};
        MUL_INF: mul_s3 = {1'b0, sign, 8'd255, 23'd0};
        MUL_ZERO: mul_s3 = {1'b0, sign, 31'd0};
        default: begin
          if (e[9] || e == 10'd0) mul_s3 = {1'b0, sign, 31'd0};
          else if (e >= 10'd255) mul_s3 = {1'b1, sign, 8'd255, 23'd0};
          else mul_s3 = {1'b0, sign, pk[30:0]};
        end
      endcase
    end
  endfunction

  // ---- acc * 2^e -> fp32, |acc| < 2^47, e in -1024..1023 ----------------------------------------

  function automatic [CVT1_W-1:0] cvt_s1(input [47:0] acc, input [10:0] e);
    cvt_s1 = {acc[47], e, acc[47] ? 48'd0 - acc : acc};
  endfunction

  // Leading one to the top, a power of two at a time.
  function automatic [CVT2_W-1:0] cvt_s2(input [CVT1_W-1:0] s);
    logic [47:0] m;
    logic [5:0] n;
    logic [11:0] e;
    begin
      m = s[47:0];
      n = 6'd0;
      if (m[47:16] == 32'd0) begin
        m = m << 32;
        n[5] = 1'b1;
      end
      if (m[47:32] == 16'd0) begin
        m = m << 16;
        n[4] = 1'b1;
      end
      if (m[47:40] == 8'd0) begin
        m = m << 8;
        n[3] = 1'b1;
      end
      if (m[47:44] == 4'd0) begin
        m = m << 4;
        n[2] = 1'b1;
      end
      if (m[47:46] == 2'd0) begin
        m = m << 2;
        n[1] = 1'b1;
      end
      if (!m[47]) begin
        m = m << 1;
        n[0] = 1'b1;
      end
      e = {s[58], s[58:48]} + 12'd174 - {6'd0, n};  // 174 = 127 + 47
      cvt_s2 = {s[59], e, m[47:24], m[23], m[22:0] != 23'd0};
    end
  endfunction

  function automatic [32:0] cvt_s3(input [CVT2_W-1:0] s);
    logic [34:0] pk;
    logic [11:0] e;
    begin
      pk = {s[37:26], s[24:2]} + {34'd0, s[1] && (s[0] || s[2])};
      e = pk[34:23];
      if (!s[25]) cvt_s3 = 33'd0;  // an integer zero has no sign
      else if (e[11] || e == 12'd0) cvt_s3 = {1'b0, s[38], 31'd0};
      else if (e >= 12'd255) cvt_s3 = {1'b1, s[38], 8'd255, 23'd0};
      else cvt_s3 = {1'b0, s[38], pk[30:0]};
    end
  endfunction

  /* verilator lint_on UNUSEDPARAM */
endpackage
