#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The functions of hls/datapath.h as pipelines, made by clang and XLS in BUILD/hls: a vector into each in every cycle,
# the results against the C++; what Yosys and the timing analyser of tests/synth say of them, which hls/README.md has,
# too; and faults, which the vectors must show. TAP; BUILD/hls/table.md has the figures.
# usage, from the root, behind make hls-venv and build/synth/sta: [BUILD=build] [CXX=g++] tests/hls/cores.sh
set -u
build=${BUILD:-build} dir=${BUILD:-build}/hls/made cxx=${CXX:-g++}
names=(add multiply divide root widen quantise)
limit=3.23 # ns: 300 MHz and 0.10 ns of uncertainty
. tests/synth/netlists.sh
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
make_bench() { # directory-of-the-Verilog [Verilator's options..]
    verilator --cc --exe --build -j 2 --prefix Vdut --top-module mr_hls_bench -Wall "${@:2}" --x-assign unique --x-initial unique \
        -O3 --Mdir "$1/bench" -o tb -CFLAGS "-std=c++20 -O1 -I$PWD -I$PWD/tests/rtl" \
        -MAKEFLAGS "CXX=$cxx LINK=$cxx OPT_FAST=-O1 OPT_SLOW=-O0" \
        "$1/mr_hls_pkg.sv" "$1"/mr_hls_[!p]*.sv "$1"/mr_hls_product.sv tests/hls/mr_hls_bench.sv "$PWD/tests/hls/tb.cpp" >"$1/bench.log" 2>&1
}

rm -rf "$dir" "$build/hls/table.md"
mkdir -p "$dir/all" "$dir/synth"
PYTHONDONTWRITEBYTECODE=1 "$build/hls/venv/bin/python" tests/hls/xls/generate.py "$dir/all" "${names[@]}" >"$dir/log" 2>&1
made=$?
tap $made "clang and XLS make ${#names[@]} functions" "$dir/log"
[ $made = 0 ] || finish
cp tests/hls/xls/mr_hls_product.sv "$dir/all/"

# ---- vectors ------------------------------------------------------------------------------------------------------
make_bench "$dir/all"
tap $? "verilator -Wall: all of them, with their bench" "$dir/all/bench.log"
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

# ---- faults -------------------------------------------------------------------------------------------------------
mutant() { # name file sed
    local at=$dir/mutant
    rm -rf "$at" && mkdir "$at" && cp "$dir"/all/*.sv "$at/" && sed -i "$3" "$at/$2"
    if cmp -s "$dir/all/$2" "$at/$2"; then
        tap 1 "mutant: $1 (the expression changes nothing in $2)"
    elif ! make_bench "$at" -Wno-fatal; then
        tap 1 "mutant: $1 (does not build)" "$at/bench.log"
    else
        "$at/bench/tb" --cases 100000 >"$at/log" 2>&1
        [ $? != 0 ] && grep -q '^not ok ' "$at/log"
        tap $? "mutant: $1 is caught by the vectors" "$at/log"
    fi
}
mutant 'the highest bit of a multiplier is lost' mr_hls_product.sv "s/{24'd0, b_i}/{25'd0, b_i[15:0]}/"
mutant 'a NaN of another kind' mr_hls_add.sv "s/32'h7fc0_0000/32'h7fc0_0001/"
mutant 'a core takes a cycle less than the package says' mr_hls_pkg.sv 's/MULTIPLY_LAT = 6/MULTIPLY_LAT = 5/'
finish
