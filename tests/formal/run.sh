#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Proofs of the control that simulation covers worst: handshakes, credits and order. TAP on stdout.
# "unbounded induction": base case by bounded model checking from reset, then induction (z3). Progress of
# the reader is checked from reset up to a number of cycles only (yosys-abc, bmc3). For each, a fault is
# put into a copy of the RTL and the checker must find it. table.tsv has them all but that progress.
# usage: tests/formal/run.sh [quick] (from the root); quick: progress of the reader alone. Needs yosys and z3.
set -uo pipefail
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
props=tests/formal
n=0 bad=0

tap() { # status name
    n=$((n + 1))
    if [ "$1" = 0 ]; then echo "ok $n - $2"; else echo "not ok $n - $2"; bad=$((bad + 1)); fi
}

# model NAME TOP PARAMS DEFINES FILES..: RTL and properties -> NAME.smt2. Memories become registers so
# that the problem is one of bit vectors only, which is much faster.
model() {
    local name=$1 top=$2 params=$3 defines=$4
    shift 4
    timeout 600 yosys -q -p "read_verilog -formal -sv $defines -Irtl/common -I$props -I$tmp $pkg $*; ${params:+chparam $params $top;} \
        prep -top $top; memory_map; flatten; opt; async2sync; dffunmap; opt_clean; \
        write_smt2 -wires $tmp/$name.smt2" >"$tmp/$name.log" 2>&1 || { sed 's/^/# /' "$tmp/$name.log"; return 1; }
    sed -i 's/QF_AUFBV/QF_UFBV/' "$tmp/$name.smt2"
}
# smt SECONDS NAME ARGS..: exit status 0 proved, 1 counterexample, other: no answer
smt() {
    local limit=$1 name=$2
    shift 2
    timeout "$limit" yosys-smtbmc --unroll --noincr --noprogress -s z3 "$@" "$tmp/$name.smt2" >"$tmp/$name.out" 2>&1
    local rc=$?
    grep -q 'Status: PASSED' "$tmp/$name.out" && return 0
    grep -q 'Status: FAILED' "$tmp/$name.out" && return 1
    echo "# no answer (status $rc)"
    return 2
}
# prove NAME TOP PARAMS BASE FILES..
prove() {
    local name=$1 top=$2 params=$3 base=$4
    shift 4
    model "$name" "$top" "$params" "" "$@" && smt 1500 "$name" -t "$base" && smt 1500 "$name" -i -t 1
    local rc=$?
    [ $rc = 0 ] || grep -E 'Assert failed|Status' "$tmp/$name.out" | sed 's/^/# /'
    tap $rc "$name: unbounded induction"
}
# fault NAME TOP PARAMS DEPTH FILE SED WHAT FILES..: the fault in FILE must be found from reset
fault() {
    local name=$1 top=$2 params=$3 depth=$4 file=$5 sed=$6 what=$7
    shift 7
    local copy=$tmp/bug/${file##*/} f files=() rc=1
    mkdir -p "$tmp/bug"
    sed "$sed" "$file" >"$copy"
    if cmp -s "$file" "$copy"; then
        echo "# the fault does not apply to $file any more"
    else
        for f in "$@"; do [ "$f" = "$file" ] && files+=("$copy") || files+=("$f"); done
        model "$name" "$top" "$params" "" "${files[@]}" && { smt 1500 "$name" -t "$depth"; [ $? = 1 ]; }
        rc=$?
    fi
    tap $rc "$name: seeded fault is found: $what"
}

# progress NAME PARAMS FRAMES FILES..: exit status 0 holds for all FRAMES cycles, 1 counterexample
progress() {
    local name=$1 params=$2 frames=$3
    shift 3
    local o="opt -full -nodffe -nosdff"
    timeout 600 yosys -q -p "read_verilog -sv -Irtl/common -I$tmp $pkg $*; read_verilog -formal -sv $props/reader_progress.sv; \
        chparam $params reader_progress; prep -top reader_progress; flatten; memory_map; $o; async2sync; \
        dffunmap; setundef -undriven -anyseq; $o; techmap; $o; dffunmap; abc -g AND -fast; opt_clean; \
        write_aiger -I -B -zinit $tmp/$name.aig" >"$tmp/$name.log" 2>&1 || { sed 's/^/# /' "$tmp/$name.log"; return 2; }
    timeout 1500 yosys-abc -c "read_aiger $tmp/$name.aig; fold; strash; bmc3 -F $frames" >"$tmp/$name.out" 2>&1
    grep -q 'was asserted in frame' "$tmp/$name.out" && return 1
    grep -q "No output asserted in $frames frames" "$tmp/$name.out" && return 0
    sed 's/^/# /' "$tmp/$name.out"
    return 2
}

pkg=$tmp/mr_pkg.sv
awk -v out=sv -f rtl/spec/gen_device.awk -f rtl/spec/gen_legal.awk rtl/spec/device.def >"$pkg"
awk -f rtl/spec/gen_bundles.awk rtl/spec/bundles.def >"$tmp/mr_bundles.svh"

declare -A top base files
table() {
    local kind name a depth file sed what params
    while IFS=$'\t' read -r kind name a depth file sed what <&3; do
        if [ "$kind" = unit ]; then
            top[$name]=$a base[$name]=$depth files[$name]=$file
            continue
        fi
        params=$(printf '%s\n' "${base[$name]}" "$a" | grep -vx -e - | paste -sd ' ')
        # shellcheck disable=SC2086 # the files are words
        case $kind in
        prove) prove "$name" "${top[$name]}" "$params" "$depth" ${files[$name]} ;;
        holds)
            model "$name" "${top[$name]}" "$params" "" ${files[$name]} && smt 600 "$name" -t "$depth"
            tap $? "$name: $file"
            ;;
        fault) fault "$name" "${top[$name]}" "$params" "$depth" "$file" "$sed" "$what" ${files[$name]} ;;
        esac
    done 3< <(grep -v '^#' tests/formal/table.tsv)
}
[ "${1:-}" = quick ] || table

reader=(rtl/stream/mr_read_jobs.sv rtl/stream/mr_reader.sv)
cut=(rtl/common/mr_cut_4k.sv)
progress p "-set KV 0 -set BOUND 16" 28 "${reader[@]}" "${cut[@]}"
tap $? "reader: weights advance whatever the KV consumer does: 28 cycles from reset"
progress p "-set KV 1 -set BOUND 20" 28 "${reader[@]}" "${cut[@]}"
tap $? "reader: KV advances whatever the weight consumer does: 28 cycles from reset"
mkdir -p "$tmp/bug"
sed 's/k_can = k_ok_q/k_can = !w_busy \&\& k_ok_q/' "${reader[1]}" >"$tmp/bug/mr_reader.sv"
progress p "-set KV 1 -set BOUND 20" 28 "${reader[0]}" "$tmp/bug/mr_reader.sv" "${cut[0]}"
[ $? = 1 ] && ! cmp -s "${reader[1]}" "$tmp/bug/mr_reader.sv"
tap $? "reader: seeded fault is found: KV waits until no weight job is left"

echo "1..$n"
exit $((bad != 0))
