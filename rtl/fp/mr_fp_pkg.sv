// SPDX-License-Identifier: Apache-2.0
//
// fp32 arithmetic of the device, one function per pipeline stage, bit for bit as in
// host/cmodel/num.h: round to nearest even; exponent field 0 reads as signed zero; results below
// 2^-126 after rounding to 24 bits become signed zero; every NaN is 0x7FC00000; no fused
// multiply-add. Callers register the value between two stages (mr_vfadd and friends do that), so
// that the depth of one stage is a shifter and an adder at most. Subtract: flip b's sign bit.
//
// All functions are pure; call them from always_ff under the stage's valid bit. The tables of GELU,
// exp2, reciprocal and 1/sqrt are included files that rtl/spec/gen_tables.c makes.
package mr_fp_pkg;
  /* verilator lint_off UNUSEDPARAM */  // one top rarely uses all of a package

  // Cycles from valid_i to valid_o of the units in this directory.
  localparam int FADD_LAT = 3;
  localparam int FMUL_LAT = 3;
  localparam int ACC2F_LAT = 3;
  localparam int GELU_LAT = 7;   // without its addition
  localparam int EXP2_LAT = 6;
  localparam int RECIP_LAT = 11;
  localparam int RSQRT_LAT = 18;  // with the sum in front of it

  localparam logic [31:0] QNAN = 32'h7FC00000;
  localparam logic [31:0] FP_HALF = 32'h3F000000;
  localparam logic [31:0] FP_1P5 = 32'h3FC00000;
  localparam logic [31:0] FP_TWO = 32'h40000000;

  // Widths between the stages.
  localparam int ADD1_W = 67;   // {kind 2, sign, sub, exp 8, mantissa 23, smaller 28, shift 4}
  localparam int ADD2_W = 43;   // {kind 2, sign, sub, exp - 2 8, sum 28, zeros 3}
  localparam int MUL1L_W = 41;  // a * b[16:0]
  localparam int MUL1H_W = 44;  // {kind 2, sign, exp 10, a * b[23:17] 31}
  localparam int MUL2_W = 61;   // {kind 2, sign, exp 10, product 48}
  localparam int CVT1_W = 48;   // {sign, exp 11, bytes moved 3, lost, magnitude's upper bits 32}
  localparam int CVT2_W = 38;   // {sign, exp - 174 12, significand 24, increment}
  localparam int QUANT_W = 30;  // {sign, live, shift 4, significand 24}

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
      else if (e[11] || e == 12'sd0) fscale = {a[31], 31'd0};
      else if (e[10:8] != 3'd0 || e[7:0] == 8'd255) fscale = {a[31], 8'd255, 23'd0};
      else fscale = {a[31], e[7:0], a[22:0]};
    end
  endfunction

  // ---- align -----------------------------------------------------------------------------------

  // Right by 0, 8, 16 or 24 places: {27 bits, a one was lost}.
  function automatic [27:0] align8(input [26:0] x, input [1:0] sh);
    logic [26:0] y;
    begin
      case (sh)
        2'd0: y = x;
        2'd1: y = {8'd0, x[26:8]};
        2'd2: y = {16'd0, x[26:16]};
        default: y = {24'd0, x[26:24]};
      endcase
      align8 = {y, (sh != 2'd0 && x[7:0] != 8'd0) || (sh[1] && x[15:8] != 8'd0) ||
                   (sh == 2'd3 && x[23:16] != 8'd0)};
    end
  endfunction

  // The rest of it, up to 7 places and one more; what was lost goes into the lowest bit.
  function automatic [26:0] align4(input [27:0] x, input [2:0] sh, input more);
    logic [26:0] y, z;
    logic lost;
    begin
      y = x[27:1];
      case (sh[2:1])
        2'd0: z = y;
        2'd1: z = {2'd0, y[26:2]};
        2'd2: z = {4'd0, y[26:4]};
        default: z = {6'd0, y[26:6]};
      endcase
      case ({sh[0], more})
        2'd0: align4 = z;
        2'd3: align4 = {2'd0, z[26:2]};
        default: align4 = {1'b0, z[26:1]};
      endcase
      lost = x[0] || (sh[2:1] != 2'd0 && y[1:0] != 2'd0) || (sh[2] && y[3:2] != 2'd0) ||
          (sh[2:1] == 2'd3 && y[5:4] != 2'd0) || ((sh[0] || more) && z[0]) ||
          (sh[0] && more && z[1]);
      align4[0] = align4[0] || lost;
    end
  endfunction

  // ---- normalise -------------------------------------------------------------------------------

  // Which bytes are zero.
  function automatic [2:0] zeros24(input [23:0] x);
    zeros24 = {x[23:16] == 8'd0, x[15:8] == 8'd0, x[7:0] == 8'd0};
  endfunction

  // The leading one of 25 bits to the top, two powers of two at a time: {places moved 5, upper 24
  // bits of the result}. zeros is zeros24 of the upper 24, often from the stage before. The top bit
  // stays 0 only if x is 0.
  function automatic [28:0] norm25(input [24:0] x, input [2:0] zeros);
    logic [24:0] y, z;
    logic [4:0] n;
    begin
      n[4] = zeros[2] && zeros[1];
      n[3] = zeros[2] && (zeros[0] || !zeros[1]);
      case (n[4:3])
        2'd0: y = x;
        2'd1: y = {x[16:0], 8'd0};
        2'd2: y = {x[8:0], 16'd0};
        default: y = {x[0], 24'd0};
      endcase
      n[2] = y[24:21] == 4'd0;
      n[1] = n[2] ? y[20:19] == 2'd0 : y[24:23] == 2'd0;
      case (n[2:1])
        2'd0: z = y;
        2'd1: z = {y[22:0], 2'd0};
        2'd2: z = {y[20:0], 4'd0};
        default: z = {y[18:0], 6'd0};
      endcase
      n[0] = !z[24];
      norm25 = {n, z[24] ? z[24:1] : z[23:0]};
    end
  endfunction

  // floor(|x| 2^20), 3.20 bits; 0 (where GELU's g is 0) from 5 on, for Inf and for NaN.
  function automatic [22:0] gelu_index(input [30:0] x);
    logic [23:0] sig;
    logic [7:0] sh;
    begin
      sig = {1'b1, x[22:0]} >> 1;
      sh = 8'd129 - x[30:23];
      if (x >= 31'h40A00000 || sh > 8'd23) gelu_index = 23'd0;
      else begin
        sig = sig >> sh[4:0];
        gelu_index = sig[22:0];
      end
    end
  endfunction

  // a < b, in gates.
  function automatic below(input [1:0] a, input [1:0] b);
    below = (!a[1] && b[1]) || ((!a[1] || b[1]) && !a[0] && b[0]);
  endfunction

  // e <= n: no exponent is left after so many places. No carry chain behind the shifts.
  function automatic used_up(input [7:0] e, input [4:0] n);
    logic less;
    begin
      less = below(e[4:3], n[4:3]) || (e[4:3] == n[4:3] && below(e[2:1], n[2:1]));
      used_up = e[7:5] == 3'd0 && (less || (e[4:1] == n[4:1] && (!e[0] || n[0])));
    end
  endfunction

  // ---- add -------------------------------------------------------------------------------------

  // Order the operands by magnitude, move the smaller one by multiples of eight places. One chain
  // compares and subtracts exponents: the difference is one too small where the mantissas borrow
  // from it, and add_s2 shifts by one more.
  function automatic [ADD1_W-1:0] add_s1(input [31:0] a, input [31:0] b);
    logic swap, more, sub, za, zb, ia, ib, nan;
    logic [8:0] x;
    logic [7:0] diff, e;
    logic [4:0] sh;
    logic [22:0] mant;
    logic [26:0] low;
    begin
      za = a[30:23] == 8'd0;
      zb = b[30:23] == 8'd0;
      ia = a[30:23] == 8'd255;
      ib = b[30:23] == 8'd255;
      sub = a[31] ^ b[31];
      nan = (ia && a[22:0] != 23'd0) || (ib && b[22:0] != 23'd0) || (ia && ib && sub);
      x = 9'({1'b0, a[30:0]} - {1'b0, b[30:0]} >> 23);
      more = x[0] ^ a[23] ^ b[23];
      swap = x[8];
      diff = swap ? ~x[7:0] : x[7:0];
      e = swap ? b[30:23] : a[30:23];
      mant = swap ? b[22:0] & {23{!zb}} : a[22:0] & {23{!za}};
      low = {swap ? {1'b1, a[22:0]} & {24{!za}} : {1'b1, b[22:0]} & {24{!zb}}, 3'd0};
      sh = diff[4:0] | {5{diff[7:5] != 3'd0}};
      add_s1 = {ia || ib, nan, swap ? b[31] : a[31], sub, e, mant, align8(low, sh[4:3]), sh[2:0],
                more ^ swap};
    end
  endfunction

  // Align with guard, round and sticky bit; add or subtract; look for zeros at the top for add_s3.
  function automatic [ADD2_W-1:0] add_s2(input [ADD1_W-1:0] s);
    logic [7:0] e;
    logic [26:0] x;
    logic [27:0] sum;
    begin
      e = s[62:55];
      x = align4(s[31:4], s[3:1], s[0]);
      sum = 28'({1'b0, e != 8'd0, s[54:32], 3'd0, 1'b1} + ({1'b0, x, 1'b0} ^ {29{s[63]}}) >> 1);
      // The exponent less two: add_s3 adds what stands before the point and the rounding at once.
      add_s2 = {s[66:63], e - 8'd2, sum, zeros24(sum[24:1])};
    end
  endfunction

  // Normalise and round: {finite operands overflowed, result}. A sum that loses more than one
  // leading bit is exact, so rounding and the long normalising shift are never in series.
  function automatic [32:0] add_s3(input [ADD2_W-1:0] s);
    logic sign, r, st, over, inf, tiny, gone, near, none;
    logic [7:0] e2, en;
    logic [27:0] sum;
    logic [22:0] m;
    logic [1:0] k;
    logic [30:0] pk;
    logic [23:0] y;
    logic [4:0] n;
    begin
      sign = s[40];
      e2 = s[38:31];
      sum = s[30:3];

      // At most one leading bit lost: round. One addition for that and the exponent's change.
      near = sum[27:25] != 3'd0;
      if (sum[27]) begin
        k = 2'd3;
        m = sum[26:4];
        r = sum[3];
        st = sum[2:0] != 3'd0;
      end else if (sum[26]) begin
        k = 2'd2;
        m = sum[25:3];
        r = sum[2];
        st = sum[1:0] != 2'd0;
      end else begin
        k = 2'd1;
        m = sum[24:2];
        r = sum[1];
        st = sum[0];
      end
      pk = {e2, m} + {6'd0, k, 22'd0, r && (st || m[0])};
      // Beyond the largest or below the smallest exponent. Where a carry out of the mantissa
      // decides, the mantissa is zero and the exponent right as it is: nothing but the flag waits
      // for the addition.
      inf = e2 == 8'd252 && k == 2'd3;
      over = inf || (pk[23] && (e2 == 8'd252 ? k == 2'd2 : e2 == 8'd251 && k == 2'd3));
      tiny = e2 == 8'd255 && k == 2'd1;

      // Else the sum is exact.
      {n, y} = norm25(sum[24:0], s[2:0]);
      en = e2 - {3'd0, n};
      gone = e2 == 8'd255 || !y[23] || used_up(e2, n);

      over = over && near && !s[42];
      none = s[42] || (near ? inf || tiny : gone);
      add_s3[32] = over;
      add_s3[31] = s[42] ? sign && !s[41] : sign && (near || y[23] || !s[39]);  // x - x = +0
      add_s3[30:23] = ((near ? pk[30:23] : en) & {8{near || !gone}}) | {8{s[42] || (near && inf)}};
      add_s3[22:0] = near ? pk[22:0] : y[22:0];
      if (none) add_s3[22:0] = 23'd0;
      if (s[42] && s[41]) add_s3[22] = 1'b1;
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

  // Zeros among the factors have e and product of numbers: only kind says so.
  function automatic [32:0] mul_s3(input [MUL2_W-1:0] s);
    logic r, st, gone, low, high, over;
    logic [9:0] e;
    logic [22:0] m;
    logic [30:0] pk;
    begin
      e = s[57:48];
      m = s[47] ? s[46:24] : s[45:23];
      r = s[47] ? s[23] : s[22];
      st = s[21:0] != 22'd0 || (s[47] && s[22]);
      // One addition for the exponent's change and the rounding. A carry out of the mantissa leaves
      // a mantissa of zero, so nothing but the flag waits for it to know what is out of range.
      pk = {e[7:0], m} + {7'd0, s[47], 22'd0, r && (st || m[0])};
      gone = e[9] && !(e == 10'd1023 && s[47]);
      low = gone || e == (s[47] ? 10'd1023 : 10'd0);
      high = !e[9] && (e[8] || e[7:0] == 8'd255 || (e[7:0] == 8'd254 && s[47]));
      over = high || (!e[9] && pk[30:23] == 8'd255);

      mul_s3 = {over && s[60:59] == MUL_NUM, s[58], pk};
      if (s[60] || (high && !s[59])) mul_s3[30:23] = 8'd255;
      else if (s[59] || gone) mul_s3[30:23] = 8'd0;
      if (low || high || s[60:59] != MUL_NUM) mul_s3[22:0] = 23'd0;
      if (s[60:59] == MUL_NAN) mul_s3[31:0] = QNAN;
    end
  endfunction

  // ---- acc * 2^e -> fp32, |acc| < 2^47, e in -1024..1023 ----------------------------------------

  // The magnitude less one is ~acc where acc is negative: no chain for the sign. Its missing one is
  // added with the rounding, and shifts bring in ones. Here the leading byte comes to the top.
  function automatic [CVT1_W-1:0] cvt_s1(input [47:0] acc, input [10:0] e);
    logic [47:0] x;
    logic [31:0] y;
    logic [5:1] f;
    logic [2:0] n;
    logic lost;
    begin
      x = acc ^ {48{acc[47]}};
      for (int i = 1; i < 6; i++) f[i] = x[8*i+:8] != 8'd0;
      n[2] = f[5:2] == 4'd0;
      n[1] = !n[2] && !f[5] && !f[4];
      n[0] = !f[5] && (f[4] || (!f[3] && (f[2] || !f[1])));
      case (n[1:0])
        2'd0: y = x[47:16];
        2'd1: y = x[39:8];
        2'd2: y = x[31:0];
        default: y = {x[23:0], {8{acc[47]}}};
      endcase
      if (n[2]) y = {n[0] ? {x[7:0], {8{acc[47]}}} : x[15:0], {16{acc[47]}}};
      // Below these 32 bits: against what shifts bring in.
      lost = (f[5] && acc[15:8] != 8'd0) || ((f[5] || f[4]) && acc[7:0] != 8'd0);
      cvt_s1 = {acc[47], e, n, lost, y};
    end
  endfunction

  // The leading one to the top; what to add for rounding and for the missing one.
  function automatic [CVT2_W-1:0] cvt_s2(input [CVT1_W-1:0] s);
    logic [31:0] x, y;
    logic [11:0] e;
    logic [2:0] n;
    logic sign, lost, inc;
    begin
      sign = s[47];
      x = s[31:0];
      n[2] = x[31:28] == 4'd0;
      n[1] = n[2] ? x[27:26] == 2'd0 : x[31:30] == 2'd0;
      case (n[2:1])
        2'd0: y = x;
        2'd1: y = {x[29:0], {2{sign}}};
        2'd2: y = {x[27:0], {4{sign}}};
        default: y = {x[25:0], {6{sign}}};
      endcase
      n[0] = !y[31];
      lost = s[32] || y[5:0] != {6{sign}} || (!n[0] && y[6] != sign);
      if (n[0]) y = {y[30:0], sign};
      inc = sign && !lost ? y[7] || y[8] : y[7] && (y[8] || lost);
      e = {s[46], s[46:36]} - {6'd0, s[35:33], n};
      cvt_s2 = {sign, e, y[31:8], inc && y[31]};
    end
  endfunction

  function automatic [32:0] cvt_s3(input [CVT2_W-1:0] s);
    logic [30:0] pk;
    logic signed [11:0] e;
    logic gone, low, high, none;
    begin
      // 174 = 127 + 47. A carry out of the mantissa leaves a mantissa of zero.
      e = $signed(s[36:25]);
      pk = {s[32:25], s[23:1]} + {8'd174, 22'd0, s[0]};
      gone = e < -12'sd174;
      low = e <= -12'sd174;
      high = e >= 12'sd81;
      none = !s[24];  // 0, which has no sign, or -1
      cvt_s3 = {high || (!gone && pk[30:23] == 8'd255), s[37], pk};
      if (high) cvt_s3[30:23] = 8'd255;
      if (low || high || none) cvt_s3[22:0] = 23'd0;
      if (gone) cvt_s3[30:23] = 8'd0;
      if (none && !s[37]) cvt_s3 = 33'd0;
    end
  endfunction

  // ---- MXINT8: a float and its block's code become an element ----------------------------------

  // shift = code - exponent; from 9 on the element is 0, which `live` says together with a zero
  // value.
  function automatic [QUANT_W-1:0] quant_s1(input [31:0] v, input [7:0] code);
    logic [7:0] d;
    begin
      d = code - v[30:23];
      quant_s1 = {v[31], v[30:23] != 8'd0 && code != 8'd255 && d < 8'd9, d > 8'd15 ? 4'd15 : d[3:0],
                  v[30:23] != 8'd0, v[22:0]};
    end
  endfunction

  // 64 v / X in 7.25 bits.
  function automatic [31:0] quant_fixed(input [27:0] c);
    quant_fixed = {c[23:0], 8'd0} >> c[27:24];
  endfunction

  // Whether it is rounded up: to nearest, ties to even, and no further than 127.
  function automatic quant_up(input [31:0] x);
    quant_up = x[24] && (x[23:0] != 24'd0 || x[25]) && x[31:25] != 7'd127;
  endfunction

  function automatic [7:0] quant_s2(input [QUANT_W-1:0] c);
    logic [31:0] x;
    begin
      // Rounded up and negated by one addition: -(x + up) is ~x + 1 - up.
      x = quant_fixed(c[27:0]);
      quant_s2 = ({1'b0, x[31:25]} ^ {8{c[29]}}) + {7'd0, quant_up(x) ^ c[29]};
      if (!c[28]) quant_s2 = 8'd0;
    end
  endfunction

  /* verilator lint_on UNUSEDPARAM */
endpackage
