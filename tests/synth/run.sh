#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Yosys synthesis of millrace_core (tiny) and of single units, TAP on stdout; the resource table goes to
# $BUILD/synth/table.md and units.md and with --write into docs/inside/synthesis.md.
# usage: [BUILD=build] tests/synth/run.sh [--write] [units] (from the root); units: the single units only
# tiny is synthesised as it is, with its memories and block by block (not flattened), which is what makes it
# fit: about 2 GB and minutes. The hierarchy costs some optimisation across blocks.
set -uo pipefail
build=${BUILD:-build}
dir=$build/synth
mkdir -p "$dir"
n=0 bad=0
tap() { # status name [log]
    n=$((n + 1))
    if [ "$1" = 0 ]; then echo "ok $n - $2"; else
        echo "not ok $n - $2"
        bad=$((bad + 1))
        [ -z "${3:-}" ] || tail -5 "$3" | sed 's/^/# /'
    fi
}
mapfile -t files < <(echo "$build/gen/mr_pkg.sv"; cat rtl/filelist.f)
flags="-family xcup -noiopad -noclkbuf"

write=false units=false
for arg; do
    case $arg in --write) write=true ;; units) units=true ;; *) echo "run.sh: what is $arg?" >&2; exit 2 ;; esac
done
tech="rtl/tech/mr_tech_pkg.sv $(echo rtl/tech/{mr_dsp48e2,mr_dot{_lane,_cascade,_halves,,_sum,_acc}}.sv)"

whole() {
    # ---- the whole of tiny ------------------------------------------------------------------------------
    start=$(date +%s)
    params=$(awk -v config=tiny -f rtl/spec/gen_configs.awk rtl/spec/configs.def | sed 's/-G\([A-Z_0-9]*\)=/-set \1 /g')
    # Not again when nothing has changed since.
    if [ -s "$dir/tiny.stat" ] && [ -z "$(find rtl "$build/gen" tests/synth/run.sh -newer "$dir/tiny.stat" -type f | head -1)" ]; then
        tap 0 "tiny synthesises (nothing changed since the last time)"
    elif rm -f "$dir/tiny.stat" && nice -n 10 yosys -q -l "$dir/tiny.log" -p "read_verilog -sv -DMILLRACE_DSP48E2 -Irtl/common -I$build/gen ${files[*]}; chparam $params millrace_core; \
        synth_xilinx $flags -top millrace_core; tee -o $dir/tiny.new stat -tech xilinx" >"$dir/tiny.out" 2>&1; then
        mv "$dir/tiny.new" "$dir/tiny.stat"
        tap 0 "tiny synthesises"
    else
        tap 1 "tiny synthesises" "$dir/tiny.out"
    fi
    peak=$(sed -n 's/.*MEM: \([0-9.]* [A-Z]*\) peak.*/\1/p' "$dir/tiny.log" | tail -1)
    echo "# $(($(date +%s) - start)) s, $peak"

    # Which memory became what. Yosys makes what is left into flip-flops: at most a few small tables may be.
    sed -n 's/.*mapping memory \(.*\) via \$__XILINX_\([A-Z]*\).*/\2 \1/p' "$dir/tiny.log" | sort >"$dir/tiny.memories"
    awk '{ c[$1]++ } END { for (k in c) printf "# %d memories (of distinct modules) in %s\n", c[k], k }' "$dir/tiny.memories" | sort
    awk '/Mapping memory / { sub(/.*Mapping memory /, ""); sub(/:$/, ""); mod = $0 }
         / created [0-9]+ \$dff cells/ { sub(/.* created /, ""); if ($1 > 0) print $1 " " mod }' "$dir/tiny.log" >"$dir/tiny.ffmem"
    awk '{ print "# not a RAM: " ($2 ~ /rom$/ ? "read-only, " : "") $1 " words, " $2 " of " $5 }' "$dir/tiny.ffmem"
    awk '$1 > 64 && $2 !~ /rom$/ { bad = 1; print } END { exit bad }' "$dir/tiny.ffmem" >"$dir/tiny.big"
    tap $? "every written memory of more than 64 words is a RAM" "$dir/tiny.big"

    cat >"$dir/rows" <<'ROWS'
**whole engine, tiny**	millrace_core
array (4 PEs, R = 1)	millrace_core/mr_matmul/mr_array
activation memory	millrace_core/mr_matmul/mr_act_mem
stream (FIFO, splitter, ring)	millrace_core/mr_channels/mr_stream
reader	millrace_core/mr_channels/mr_reader
epilogue	millrace_core/mr_results/mr_epilogue
LayerNorm, V = 4	millrace_core/mr_vector/mr_layernorm
vector output	millrace_core/mr_results/mr_vec_out
quantiser, V = 4, two passes	millrace_core/mr_results/mr_vec_out/mr_quant
prefix maxima	millrace_core/mr_kv/mr_prefix_max
attention	millrace_core/mr_kv/mr_attn
attention lane	millrace_core/mr_kv/mr_attn/mr_attn_lane
its multipliers, V's sums	millrace_core/mr_kv/mr_attn/mr_attn_lane/mr_attn_mac
its scores	millrace_core/mr_kv/mr_attn/mr_attn_lane/mr_attn_qk
its probabilities	millrace_core/mr_kv/mr_attn/mr_attn_lane/mr_attn_prob
its read jobs	millrace_core/mr_kv/mr_attn/mr_attn_lane/mr_attn_jobs
sequencer	millrace_core/mr_control/mr_seq
row loader	millrace_core/mr_vector/mr_rows
KV and residual store	millrace_core/mr_kv/mr_kvstore
host read port	millrace_core/mr_host_port/mr_hostrd
host write port	millrace_core/mr_host_port/mr_writer
registers	millrace_core/mr_control/mr_regs
counters	millrace_core/mr_control/mr_counters
ROWS
    awk -v rows="$dir/rows" -f tests/synth/cells.awk -f tests/synth/table.awk "$dir/tiny.stat" >"$dir/tiny.rows" 2>"$dir/tiny.err"
    tap $? "tiny: resources of every block" "$dir/tiny.err"
}
$units || whole

# ---- units alone --------------------------------------------------------------------------------------
: >"$dir/unit.rows"
unit() { # label top params files..
    local label=$1 top=$2 params=$3
    shift 3
    nice -n 10 yosys -q -l "$dir/$top.log" -p "read_verilog -sv -Irtl/common -I$build/gen $*; ${params:+chparam $params $top;} \
        synth_xilinx $flags -flatten -top $top; rename -top $top; tee -o $dir/$top.stat stat -tech xilinx" >"$dir/$top.out" 2>&1 &&
        printf '%s\t%s\n' "$label" "$top" >"$dir/row" &&
        awk -v rows="$dir/row" -f tests/synth/cells.awk -f tests/synth/table.awk "$dir/$top.stat" >>"$dir/unit.rows" 2>>"$dir/$top.out"
    tap $? "$top" "$dir/$top.out"
}
fp=rtl/fp/mr_fp_pkg.sv
unit 'two PEs: 64 lanes with accumulators, portable' mr_pe '' $tech rtl/array/mr_pe.sv
unit 'two PEs: 64 lanes with accumulators, in DSP48E2' mr_pe '-set DSP 1' -DMILLRACE_DSP48E2 $tech rtl/array/mr_pe.sv
unit 'alignment and 48-bit accumulator, portable' mr_dot_acc '' $tech
unit 'alignment and 48-bit accumulator, in DSP48E2' mr_dot_acc '-set DSP 1' -DMILLRACE_DSP48E2 $tech
unit 'the same with gradients (training)' mr_dot_acc '-set DSP 1 -set GRAD 1' -DMILLRACE_DSP48E2 $tech
unit 'fp32 add' mr_vfadd '-set LANES 1' $fp rtl/fp/mr_vfadd.sv
unit 'fp32 multiply' mr_vfmul '-set LANES 1' $fp rtl/fp/mr_vfmul.sv
unit 'accumulator to fp32' mr_vacc2f '-set LANES 1' $fp rtl/fp/mr_vacc2f.sv
unit 'GELU, without its addition' mr_vgelu '-set LANES 1' "$build/gen/mr_pkg.sv" $fp rtl/fp/mr_vgelu.sv
unit 'exp2 to u16' mr_exp2 '' $fp rtl/fp/mr_exp2.sv
unit 'reciprocal' mr_recip '' $fp rtl/fp/mr_vfadd.sv rtl/fp/mr_vfmul.sv rtl/fp/mr_vacc2f.sv rtl/fp/mr_recip.sv
unit '1/sqrt' mr_rsqrt '' $fp rtl/fp/mr_vfadd.sv rtl/fp/mr_vfmul.sv rtl/fp/mr_vacc2f.sv rtl/fp/mr_rsqrt.sv

# ---- the table --------------------------------------------------------------------------------------------
head='| block | module | LUT | LUT as memory | FF | DSP48E2 | BRAM36 | CARRY4 |
|---|---|---:|---:|---:|---:|---:|---:|'
{
    echo "tiny, with everything that a block contains:"
    echo
    echo "$head"
    cat "$dir/tiny.rows" 2>/dev/null
    echo
    awk -F' *[|] *' '$3 == "`mr_array`" { a = sprintf("%.1f LUTs and %.2f DSP48E2 in the array", $4 / 128, $7 / 128) }
        $3 == "`millrace_core`" { w = sprintf("%.0f and %.2f in the whole engine", $4 / 128, $7 / 128) }
        END { printf "A MAC, of the 128 that tiny makes in a cycle, takes %s\nwith its control, and %s.\n", a, w }' "$dir/tiny.rows" 2>/dev/null
} >"$dir/table.md"
{
    echo "Units alone, flattened, one lane:"
    echo
    echo "$head"
    cat "$dir/unit.rows"
    echo
    awk -F' *[|] *' '/in DSP48E2/ && $3 == "`mr_pe`" { printf "A MAC takes %.1f LUTs and %.2f DSP48E2 in the two PEs in DSP48E2, with accumulators, without control.\n", $4 / 64, $7 / 64 }
        /gradients/ { g = $4 } /accumulator, in DSP48E2/ { a = $4 }
        END { printf "Rounding of gradients adds %d LUTs to each accumulator where configurations train.\n", g - a }' "$dir/unit.rows"
    cat <<'ANCHORS'
To compare: AMD's DPU B4096 takes 20 LUTs and 0.31 DSPs a MAC, control included. Hummingbird runs
LLaMA on a KV260 with 26,000 LUTs and 179 DSPs, at 94 % of the memory's bandwidth.
ANCHORS
} >"$dir/units.md"
# The text between <!-- NAME --> and <!-- end of NAME --> in the page.
for t in table units; do
    [ $t != table ] || ! $units || continue
    if $write && [ $bad = 0 ]; then
        awk -v f="$dir/$t.md" -v a="<!-- $t -->" -v e="<!-- end of $t -->" '$0 == a { print; while ((getline l < f) > 0) print l; skip = 1; next }
            $0 == e { skip = 0 } !skip' docs/inside/synthesis.md >"$dir/doc.md" && cp "$dir/doc.md" docs/inside/synthesis.md
    else
        awk -v a="<!-- $t -->" -v e="<!-- end of $t -->" '$0 == e { on = 0 } on; $0 == a { on = 1 }' docs/inside/synthesis.md | cmp -s - "$dir/$t.md" ||
            echo "# docs/inside/synthesis.md has other figures: make synth-doc"
    fi
done
echo "1..$n"
exit $((bad != 0))
