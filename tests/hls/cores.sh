#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The functions of hls/datapath.h as pipelines, made by clang and XLS in BUILD/hls: a vector into each in every cycle,
# the results against the C++; what Yosys and the timing analyser of tests/synth say of them, which hls/README.md has,
# too. TAP; BUILD/hls/table.md has the figures. That the vectors show faults is shown by tests/mutants/run.sh xls.
# usage, from the root, behind make hls-venv and build/synth/sta: [BUILD=build] [CXX=g++] tests/hls/cores.sh
set -u
build=${BUILD:-build} dir=${BUILD:-build}/hls/made cxx=${CXX:-g++}
names=(add multiply divide root widen quantise)
limit=3.23 # ns: 300 MHz and 0.10 ns of uncertainty
python=$build/hls/venv/bin/python
. tests/synth/netlists.sh
. tests/hls/build.sh
n=0 bad=0
tap() { # status name [log]
    n=$((n + 1))
    if [ "$1" = 0 ]; then echo "ok $n - $2"; else
        echo "not ok $n - $2"
        bad=$((bad + 1))
        [ -z "${3:-}" ] || tail -20 "$3" | sed 's/^/# /'
    fi
}
finish() {
    echo "1..$n"
    exit $((bad != 0))
}

rm -rf "$dir" "$build/hls/table.md"
mkdir -p "$dir/synth"
make_cores "$dir/all" "${names[@]}" >"$dir/log" 2>&1
made=$?
tap $made "clang and XLS make ${#names[@]} functions" "$dir/log"
[ $made = 0 ] || finish

# ---- vectors ------------------------------------------------------------------------------------------------------
make_bench "$dir/all" "$PWD" >"$dir/bench.log" 2>&1
tap $? "verilator -Wall: all of them, with their bench" "$dir/bench.log"
"$dir/all/bench/tb" >"$dir/vectors" 2>&1
status=$?
while IFS= read -r line; do
    [[ $line =~ ^(not )?ok\ [0-9]+\ -\ (.*) ]] || continue
    [ -z "${BASH_REMATCH[1]}" ]
    tap $? "${BASH_REMATCH[2]}" "$dir/vectors"
done <"$dir/vectors"
[ $status = 0 ] && [ "$(grep -c ', 1000000 vectors, 0 differ$' "$dir/vectors")" = ${#names[@]} ]
tap $? "a million vectors for each, and none differs" "$dir/vectors"

# ---- synthesis ----------------------------------------------------------------------------------------------------
iverilog -g2012 -Wall -Wno-timescale -t null -s mr_hls_bench "$dir"/all/mr_hls_pkg.sv "$dir"/all/mr_hls_[!p]*.sv \
    tests/hls/xls/mr_hls_product.sv tests/hls/mr_hls_bench.sv >"$dir/iverilog" 2>&1
tap $? "iverilog -g2012: all of them" "$dir/iverilog"
{
    echo '| core | cycles | LUTs | flip-flops | DSPs | longest path, ns | MHz |'
    echo '|---|---:|---:|---:|---:|---:|---:|'
} >"$dir/table"
for name in "${names[@]}"; do
    core=mr_hls_$name to=$dir/synth/mr_hls_$name
    { nice -n 10 yosys -q -e 'multiple conflicting drivers|Latch inferred' -p "read_verilog -sv tests/hls/xls/mr_hls_product.sv $dir/all/$core.sv
            hierarchy -check -top $core; proc
            select -assert-none t:\$dlatch t:\$adlatch t:\$dlatchsr t:\$sr t:\$adff t:\$adffe t:\$aldff t:\$dffsr
            flatten; opt_clean; setattr -unset src *; setattr -mod -unset src *
            rename -enumerate -pattern \$_% */*; write_rtlil $to.il" &&
        nice -n 10 yosys -q -p "$(recipe "$to.il" "$core" "$to.stat" "$to.json")" &&
        "$build/synth/sta" "$to.json" >"$to.tsv"; } >"$to.log" 2>&1
    tap $? "$name: Yosys finds no latch and no asynchronous reset, the analyser no combinational loop" "$to.log"
    row=$(awk -F'\t' -v core="$core" -v cycles="$(sed -n "s/.* ${name^^}_LAT = \([0-9]*\);/\1/p" "$dir/all/mr_hls_pkg.sv")" \
        '$1 == core { printf "| `%s` | %d | %d | %d | %d | %.2f | %d |\n", core, cycles, $3, $4, $5, $12, 1000 / ($12 + 0.10) }' "$to.tsv")
    echo "$row" >>"$dir/table"
    awk -F' *[|] *' -v limit=$limit '{ exit !($7 > 0 && $7 <= limit) }' <<<"$row"
    tap $? "$name: 300 MHz or more by estimate: $(awk -F' *[|] *' '{ print $7 " ns, " $8 " MHz" }' <<<"$row")"
done
cp "$dir/table" "$build/hls/table.md"
grep -vxFf hls/README.md "$dir/table" >"$dir/differs"
[ $? = 1 ]
tap $? "hls/README.md has these figures" "$dir/differs"
finish
