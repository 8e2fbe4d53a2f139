#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The generator of rules: what is no expression is an error with file and line, and a rule that is
# changed changes both sides. TAP. usage: tests/programs/rules.sh (from the root)
set -u
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
n=0 bad=0
tap() { # status name
    n=$((n + 1))
    if [ "$1" = 0 ]; then echo "ok $n - $2"; else echo "not ok $n - $2" && bad=1; fi
}
generate() { # what: legal, sv, doc
    local front=()
    [ "$1" = sv ] && front=(-f rtl/spec/gen_device.awk)
    awk -v out="$1" "${front[@]}" -f rtl/spec/gen_legal.awk "$work/device.def" 2>"$work/errors"
}

while IFS='|' read -r words line; do
    # Before what is of training only, which SystemVerilog does not have.
    awk -v line="$line" '$1 == "training" { print line } { print }' rtl/spec/device.def >"$work/device.def"
    at=$(grep -nxF -e "$line" "$work/device.def" | cut -d: -f1)
    status=0
    for out in legal sv doc; do
        generate $out >/dev/null && status=1
        [ "$(head -1 "$work/errors")" = "$work/device.def:$at: $words" ] || status=1
    done
    tap $status "refused: $line"
    [ $status = 0 ] || sed 's/^/# /' "$work/errors"
done <<'CASES'
'NOPE' is neither a field of MATMUL nor a value nor a constant|check MATMUL KBLOCKS <= NOPE
'D' is neither a field of MATMUL nor a value nor a constant|check MATMUL D == 0
a ')' is missing in '(KBLOCKS == 0'|check MATMUL (KBLOCKS == 0
an operand is missing in 'KBLOCKS =='|check MATMUL KBLOCKS ==
')' does not fit behind what is before it in 'KBLOCKS == 0)'|check MATMUL KBLOCKS == 0)
a check is true or false: 'KBLOCKS + 1' has 17 bits|check MATMUL KBLOCKS + 1
no op, RUN, CHANNEL, TRAINING or STASH is called 'DIVIDE'|check DIVIDE 1 == 1
more than 64 bits in 'COLS * COLS * COLS == 0'|check MATMUL COLS * COLS * COLS == 0
'-' is no part of an expression|check MATMUL COLS - 1 == 0
'/' wants a power of two, or with % a value, behind it|check MATMUL COLS / 3 == 0
a ':' is missing in 'FP4 ? COLS == 0'|check MATMUL FP4 ? COLS == 0
window OP WINDOW OFFSET, BEATS; WINDOW_BEATS is a value|window MATMUL HEAP OUT_OFF, 1
window OP WINDOW OFFSET, BEATS; WINDOW_BEATS is a value|window MATMUL RESULT OUT_OFF
after OP VALUE EXPRESSION; 'N_ROWS' is no value of the order|after MATMUL N_ROWS 1
value NAME BITS KIND TEXT, at most 64 bits; geometry, run or order|value MANY 65 run too wide
a field lies in one of 16 words of 32 bits|field MATMUL FAR 16 0 32
'KBLOCKS * (COLS * FP4) == 0': a product of a product|check MATMUL KBLOCKS * (COLS * FP4) == 0
'COLS * N <= TILE_COLS': a product and a value of the order in one check|check MATMUL COLS * N <= TILE_COLS
'KBLOCKS + COLS * N <= N * N': products on both sides of a sum|check MATMUL KBLOCKS + COLS * N <= N * N
CASES

# Parentheses, precedence and widths: the C text is compiled and asked.
cat >"$work/device.def" <<'DEF'
value A 64 geometry a
value B 16 geometry b
value C 64 geometry c
counter CYCLES
const QUEUE_READER 0
op T 0x01 READER
field T F 2 0 32
field T G 3 0 1
check T B * 2 + 1 != 7 || F == 9
check T !(B == 4) || F > 10 && F / 4 % 2 == 1
check T (G ? B + 65535 : B) < 70000
check T B * 4 % A == 0
check T F != 9 || B * F != 45 && (B + 1) * F != 72
check T F + B * F * 2 <= 131070 && F != 31
DEF
cat >"$work/t.c" <<'C'
#include <stdint.h>
#include <stddef.h>
enum { MR_OP_T = 1 };
struct mr_values { uint64_t a, b, c; };
struct mr_window { int of; uint64_t off, beats; };
#include "legal.inc"
int main(void)
{
    static const struct { uint32_t f, g; uint64_t b, a; int legal; } t[] = {
        {9, 0, 3, 1, 1}, {8, 0, 3, 1, 0}, {9, 0, 4, 1, 0}, {13, 0, 4, 1, 1}, {17, 0, 4, 1, 0},
        {0, 0, 65535, 1, 1}, {0, 1, 4465, 1, 0}, {0, 1, 4464, 1, 1}, {9, 0, 6, 8, 1},
        {9, 0, 5, 8, 0}, {9, 0, 3, 6, 1}, {9, 0, 5, 6, 0}, {9, 0, 5, 1, 0}, {9, 0, 7, 1, 0},
        {9, 0, 8, 1, 1}, {43690, 0, 1, 1, 1}, {43691, 0, 1, 1, 0},
        {131070, 0, 0, 1, 1}, {131071, 0, 0, 1, 0}, {31, 0, 0, 1, 0}};
    int wrong = 0;
    for (size_t i = 0; i < sizeof t / sizeof *t; i++) {
        uint32_t c[16] = {1, 0, t[i].f, t[i].g};
        struct mr_values v = {.a = t[i].a, .b = t[i].b};
        struct mr_window w[1];
        wrong += (check_command(c, &v) == NULL) != t[i].legal;
        wrong += windows_of(c, &v, w);
        after_command(c, &v);
        wrong += check_RUN(c, &v) != NULL || check_CHANNEL(c, &v) != NULL;
    }
    return wrong;
}
C
generate legal >"$work/legal.inc" && ${CC:-gcc} -w -o "$work/t" "$work/t.c" && "$work/t"
tap $? "an expression means in C what it says"
cat >"$work/t.sv" <<'SV'
module t;
  logic [511:0] c;
  logic [mr_pkg::VALUES_W-1:0] v;
  logic [mr_pkg::CHECKS_W-1:0] hold;
  integer wrong;
  task try(input [31:0] f, input g, input [15:0] b, input [5:0] a, input legal);
    begin
      c = 512'd0;
      c[7:0] = 8'h01;
      c[64 +: 32] = f;
      c[96] = g;
      v = '0;
      v[mr_pkg::V_A_LSB +: 6] = a;
      v[mr_pkg::V_B_LSB +: 16] = b;
      hold = mr_pkg::checks_of(mr_pkg::op_of(c[7:0], 1'b0), c, v);
      if ((&hold && mr_pkg::legal_products(c[7:0], mr_pkg::products_of(c, v))) != legal)
        wrong = wrong + 1;
    end
  endtask
  initial begin
    wrong = 0;
    try(9, 0, 3, 1, 1); try(8, 0, 3, 1, 0); try(9, 0, 4, 1, 0); try(13, 0, 4, 1, 1);
    try(17, 0, 4, 1, 0); try(0, 0, 65535, 1, 1); try(0, 1, 4465, 1, 0); try(0, 1, 4464, 1, 1);
    try(9, 0, 6, 8, 1); try(9, 0, 5, 8, 0); try(9, 0, 3, 6, 1); try(9, 0, 5, 6, 0);
    try(9, 0, 5, 1, 0); try(9, 0, 7, 1, 0); try(9, 0, 8, 1, 1);
    try(43690, 0, 1, 1, 1); try(43691, 0, 1, 1, 0); try(131070, 0, 0, 1, 1);
    try(131071, 0, 0, 1, 0); try(31, 0, 0, 1, 0);
    if (wrong == 0) $display("all right");
  end
endmodule
SV
generate sv >"$work/pkg.sv" && iverilog -g2012 -o "$work/vvp" "$work/pkg.sv" "$work/t.sv" >"$work/log" 2>&1 &&
    [ "$(vvp "$work/vvp")" = "all right" ]
tap $? "and in SystemVerilog"
sed 's/^/# /' "$work/log"
echo "1..$n"
exit $bad
