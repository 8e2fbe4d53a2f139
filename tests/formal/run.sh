#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Proofs of the control that simulation covers worst: handshakes, credits and order. TAP on stdout.
# "unbounded induction": base case by bounded model checking from reset, then induction (z3). Progress of
# the reader is checked from reset up to a number of cycles only (yosys-abc, bmc3). For each, a fault is
# put into a copy of the RTL and the checker must find it. usage: tests/formal/run.sh [quick] (from the
# root); quick: progress of the reader alone. Needs yosys and z3.
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

fifo=(rtl/common/mr_ram_1r1w.sv rtl/common/mr_fifo.sv)
split=(rtl/stream/mr_splitter.sv)
pkg=$tmp/mr_pkg.sv
awk -v out=sv -f rtl/spec/gen_device.awk -f rtl/spec/gen_legal.awk rtl/spec/device.def >"$pkg"
awk -f rtl/spec/gen_bundles.awk rtl/spec/bundles.def >"$tmp/mr_bundles.svh"
cut=(rtl/common/mr_cut_4k.sv)
width=(rtl/common/mr_width.sv)
axil=(rtl/common/mr_axil_w.sv rtl/common/mr_axil_r.sv)
reader=(rtl/stream/mr_read_jobs.sv rtl/stream/mr_reader.sv "${cut[@]}")
cut_p="-set PAGE_LOG2 3 -set ADDR 8 -set LEFT 6 -set MOST 8"
split_p="-set SECTION 2 -set HEADER 2 -set KW 3 -set GW 3"
ram=(rtl/common/mr_ram_1r1w.sv)
turn=(rtl/fp/mr_fp_pkg.sv "${ram[@]}" rtl/train/mr_turn.sv)
load=(rtl/stream/mr_stash_pkg.sv "$props/any_fifo.sv" rtl/stream/mr_tiles_at.sv rtl/train/mr_load_act.sv)
hostrd=(rtl/host/mr_hostrd.sv "${cut[@]}")
hostrd_p="-set CLIENTS 3 -set OUTSTANDING 2"
writer=("$props/any_ram.sv" rtl/host/mr_writer.sv "${cut[@]}")
writer_p="-set CLIENTS 2 -set BURSTS 2"
reader_p="-set DW 12 -set W_DEPTH 4 -set KV_DEPTH 2 -set W_BURST 4 -set KV_BURST 2 -set QUANTUM 4 -set OUTSTANDING 2"

handshakes() {
    prove fifo mr_fifo "-set W 4 -set DEPTH 5" 8 "${fifo[@]}"
    fault fifo mr_fifo "-set W 4 -set DEPTH 5" 12 "${fifo[1]}" "s/(count_q != CW'(DEPTH))/(count_q - CW'(out_valid_q) != CW'(DEPTH))/" \
        "one entry too many" "${fifo[@]}"
    for stage in 0 1; do
        prove cut mr_cut_4k "$cut_p -set STAGE $stage" 8 "${cut[@]}"
    done
    fault cut mr_cut_4k "$cut_p -set STAGE 0" 8 "${cut[0]}" 's/assign last = .*/assign last = (left <= most);/' \
        "a run of a page and more ends with its first page" "${cut[@]}"
    fault cut mr_cut_4k "$cut_p -set STAGE 1" 8 "${cut[0]}" 's/valid_q ? !next_i : busy_q/busy_q/' \
        "a piece is offered with the length of the one before" "${cut[@]}"
    prove width mr_width "-set IN 2 -set OUT 8" 8 "${width[@]}"
    prove width mr_width "-set IN 8 -set OUT 2" 8 "${width[@]}"
    fault width mr_width "-set IN 2 -set OUT 8" 8 "${width[0]}" 's/!last || out_ready_i/1'"'"'b1/' \
        "the last part is taken although nobody takes the word" "${width[@]}"
    fault width mr_width "-set IN 8 -set OUT 2" 8 "${width[0]}" "s/= out_ready_i && n_q == '0/= out_ready_i/" \
        "a word is taken while parts are left" "${width[@]}"
    prove axil_w mr_axil_w "-set AW 4" 4 "${axil[0]}"
    fault axil_w mr_axil_w "-set AW 4" 8 "${axil[0]}" 's/w_done_i || (bvalid_o \&\& !bready_i)/w_done_i/' \
        "a response that is not taken falls" "${axil[0]}"
    fault axil_w mr_axil_w "-set AW 4" 8 "${axil[0]}" 's/assign w_valid_o = aw_q \&\& w_q/assign w_valid_o = aw_q/' \
        "a write without its word" "${axil[0]}"
    fault axil_w mr_axil_w "-set AW 4" 8 "${axil[0]}" 's/if (wvalid_i \&\& wready_o)/if (wvalid_i)/' \
        "the next word in the place of one that waits" "${axil[0]}"
    prove axil_r mr_axil_r "-set AW 4" 4 "${axil[1]}"
    fault axil_r mr_axil_r "-set AW 4" 8 "${axil[1]}" 's/assign arready_o = !ar_q/assign arready_o = 1'"'"'b1/' \
        "an address is lost" "${axil[1]}"
    fault axil_r mr_axil_r "-set AW 4" 8 "${axil[1]}" 's/ar_q \&\& !rvalid_o/ar_q/' \
        "an answer that is not taken yet is written over" "${axil[1]}"
    prove splitter mr_splitter "$split_p" 6 "${split[@]}"
    fault splitter mr_splitter "$split_p" 16 "${split[0]}" "s/in_sec_q <= k_last ? first_blk : in_sec_q/in_sec_q <= in_sec_q/" \
        "section runs on into the next group" "${split[@]}"
    prove reader mr_reader "$reader_p" 5 "${reader[@]}"
    fault reader mr_reader "$reader_p" 12 "${reader[1]}" "s/w_have = 32'(w_credit_q) >=/w_have = 32'(w_credit_q) + 32'd1 >=/" \
        "burst without its last credit" "${reader[@]}"
    fault reader mr_reader "$reader_p" 12 "${reader[1]}" 's/order_kv_q\[wptr_q\] <= k_take/order_kv_q[wptr_q] <= sel_q/' \
        "beats to the wrong consumer" "${reader[@]}"
    fault reader mr_reader "$reader_p" 8 "${reader[1]}" '0,/!rst_ni || flush_i/s//!rst_ni || (flush_i \&\& !w_credit_i)/' \
        "a credit counts that comes during a flush" "${reader[@]}"
    fault reader mr_reader "$reader_p" 12 "${reader[1]}" 's/r_beat \&\& !r_kv \&\& !flush_i/r_beat \&\& !r_kv/' \
        "a beat arrives that a flush has dropped" "${reader[@]}"
    fault reader mr_reader "$reader_p" 8 "${cut[0]}" "s/assign most = .*/assign most = (P + 1)'(MOST);/" \
        "burst across 4 KiB" "${reader[@]}"
    fault reader mr_reader "$reader_p" 12 "${cut[0]}" "s/assign low .*/assign low = {1'b0, addr_q[P-1:0]} + (P + 1)'(4);/" \
        "beats left out after a short burst" "${reader[@]}"
    prove hostrd mr_hostrd "$hostrd_p" 6 "${hostrd[@]}"
    fault hostrd mr_hostrd "$hostrd_p" 8 "${hostrd[0]}" 's/<= {cut, who_q, addr}/<= {cut, pick, addr}/' \
        "beats to the client that asks next" "${hostrd[@]}"
    fault hostrd mr_hostrd "$hostrd_p" 8 "${hostrd[0]}" 's/ \&\& !out_q\[OW\]//' \
        "a burst more than there is a place for" "${hostrd[@]}"
    fault hostrd mr_hostrd "$hostrd_p" 8 "${hostrd[0]}" 's/(!ar_valid_q || m_arready_i) \&\& //' \
        "an address changes while it waits" "${hostrd[@]}"
    prove writer mr_writer "$writer_p" 8 "${writer[@]}"
    fault writer mr_writer "$writer_p" 10 "${writer[1]}" 's/ && (!awv_q || m_awready_i)//' \
        "an address changes while it waits" "${writer[@]}"
    fault writer mr_writer "$writer_p" 12 "${writer[1]}" 's/commit = push && (need_q ==/commit = push \&\& (need_q <=/; s/need_q <= 7.d1)/need_q <= 7'"'"'d2)/' \
        "a burst goes out without its last beat" "${writer[@]}"
    fault writer mr_writer "$writer_p" 12 "${writer[1]}" 's/if (flush_i) wptr_q <= cptr_q/if (flush_i) wptr_q <= rptr_q/' \
        "a flush drops beats of a complete burst" "${writer[@]}"
    fault writer mr_writer "$writer_p" 12 "${writer[1]}" 's/b_beat && !flush_i && (ring/b_beat \&\& (ring/' \
        "a job ends that a flush has dropped" "${writer[@]}"
    prove turn mr_turn "-set V 2 -set TAG 2" 6 "${turn[@]}"
    fault turn mr_turn "-set V 2 -set TAG 2" 44 "${turn[2]}" 's/ && run_q && row_q < at_q//' \
        "a row in the place of one that is not read yet" "${turn[@]}"
    fault turn mr_turn "-set V 2 -set TAG 2" 10 "${turn[2]}" 's/!sets_q\[0\] && run_q/run_q/' \
        "a fourth set is taken" "${turn[@]}"
    fault turn mr_turn "-set V 2 -set TAG 2" 40 "${turn[2]}" 's/go    = !(out_valid_o && !out_ready_i)/go    = 1'"'"'b1/' \
        "a set does not wait until it is taken" "${turn[@]}"
    for c in 1 2; do
        prove load mr_load_act "-set N $c" 6 "${load[@]}"
    done
    fault load mr_load_act "-set N 1" 40 "${load[3]}" 's/room_q >= {1/room_q + 7'"'"'d1 >= {1/' \
        "a beat more than there is room for" "${load[@]}"
    fault load mr_load_act "-set N 1" 40 "${load[3]}" 's/else if (rd_ready_i) req_q/else req_q/' \
        "a request is withdrawn" "${load[@]}"
}
# The correction of two products in one multiplier; no state, so the base case is all.
dots() {
    local d=(rtl/tech/mr_dot_halves.sv "$props/dot_halves.sv")
    model halves dot_halves "" "" "${d[@]}" && smt 600 halves -t 1
    tap $? "dot_halves: the sums of two dot products that share their multipliers"
    fault halves dot_halves "" 1 "${d[0]}" 's/flip20(.1.b0, a. + /flip20({a[18], a} + /' "a sum of the wrong sign" "${d[@]}"
}
[ "${1:-}" = quick ] || { handshakes; dots; }

progress p "-set KV 0 -set BOUND 16" 28 "${reader[@]}"
tap $? "reader: weights advance whatever the KV consumer does: 28 cycles from reset"
progress p "-set KV 1 -set BOUND 20" 28 "${reader[@]}"
tap $? "reader: KV advances whatever the weight consumer does: 28 cycles from reset"
mkdir -p "$tmp/bug"
sed 's/k_can = k_ok_q/k_can = !w_busy \&\& k_ok_q/' "${reader[1]}" >"$tmp/bug/mr_reader.sv"
progress p "-set KV 1 -set BOUND 20" 28 "${reader[0]}" "$tmp/bug/mr_reader.sv" "${cut[0]}"
[ $? = 1 ] && ! cmp -s "${reader[1]}" "$tmp/bug/mr_reader.sv"
tap $? "reader: seeded fault is found: KV waits until no weight job is left"

echo "1..$n"
exit $((bad != 0))
