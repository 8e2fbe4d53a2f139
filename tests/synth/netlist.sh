#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The netlists that Yosys makes for UltraScale+ (synth_xilinx -family xcup), in place of the RTL in the unit
# benches: the same vectors of the C model, the same comparisons. TAP on stdout.
# usage: [BUILD=build] [FAMILY=xcup] tests/synth/netlist.sh [BENCH[@VARIANT]..] (from the root; all without one). Cells: Yosys'
# own models, and dsp48e2.v. FAMILY=gw5a: Gowin's, by the Yosys of PyPI and with the multipliers of tests/synth/route/gw5a.v.
# Carry cells and vectors of nets are split into bits (carry.v): a carry chain through a vector is a loop to
# Verilator, which does not simulate it right; a loop is an error here.
# Tables stay in LUTs (-nobram, and no wish for block RAM), because Yosys has no model of UltraScale+ block RAM.
set -uo pipefail
build=${BUILD:-build}
family=${FAMILY:-xcup}
dir=$build/synth/netlist
case $family in
    xcup)
        cells=$(dirname "$(command -v yosys)")/../share/yosys/xilinx/cells_sim.v
        multipliers=tests/synth/dsp48e2.v
        ;;
    gw5a)
        dir=$dir-gw5a venv=$build/route/venv-gw5a list=tests/synth/route/gw5a.txt
        multipliers=tests/synth/route/gw5a_cells.v
        tests/tools/venv.sh "$venv" "$list" "make test-netlist" || exit 1
        . tests/synth/route/gw5a.sh
        cells=$(echo "$venv"/lib/python*/site-packages/pyosys/share/gowin/cells_sim.v)
        ;;
    *) echo "make test-netlist: FAMILY=$family is not known; there are xcup and gw5a" >&2; exit 2 ;;
esac
cxx=${SIM_CXX:-g++}
mkdir -p "$dir"
only=" $* "
n=0 bad=0

tap() { # status name
    n=$((n + 1))
    if [ "$1" = 0 ]; then echo "ok $n - $2"; else echo "not ok $n - $2"; bad=$((bad + 1)); fi
}

# The netlist of a bench's top: line VARIANT of tests/rtl/FOLDER/BENCH.txt.
netlist() { # bench variant flags
    local line top params srcs
    line=$(awk -v v="$2" '$1 == v' tests/rtl/*/"$1.txt")
    top=$(sed -n 's/.*top=\([^ ]*\).*/\1/p' <<<"$line")
    params=$(sed -n 's/.*params=\(.*\) srcs=.*/\1/p' <<<"$line")
    srcs=$(sed -n 's/.*srcs=\(.*\)/\1/p' <<<"$line")
    # Macros are for reading, and the cell's simulation model is not a source.
    local defines
    defines=$(grep -o -- '-D[A-Z_0-9]*' <<<"$params" | tr '\n' ' ')
    params=$(sed 's/-D[A-Z_0-9]*//g; s/-G\([A-Z_0-9]*\)=/-set \1 /g; s/^ *//; s/ *$//' <<<"$params")
    srcs=${srcs//tests\/synth\/dsp48e2.v/}
    [ -z "$params" ] || params="chparam $params $top;"
    local read="read_verilog -sv -Irtl/common -I$build/gen $defines $build/gen/mr_pkg.sv $srcs; $params hierarchy -top $top; setattr -unset rom_style m:*"
    if [ "$family" = gw5a ]; then
        (yosys_of_pypi "$read; $(mapped "$top" -nobram -noiopads -setundef); check -assert; tee -o $dir/$1@$2.stat stat; splitnets; clean; write_verilog -noattr $dir/$1@$2.v" \
            "$dir/$1@$2.ys") >"$dir/$1@$2.log" 2>&1
        return
    fi
    nice -n 10 yosys -q -l "$dir/$1@$2.log" -p "$read; \
        synth_xilinx -family xcup $3 -flatten -nobram -noiopad -noclkbuf -top $top; opt_merge -share_all t:INV; opt_clean; rename -top $top; \
        check -assert; tee -o $dir/$1@$2.stat stat -tech xilinx; \
        techmap -map tests/synth/carry.v; splitnets; clean; write_verilog -noattr $dir/$1@$2.v" >/dev/null 2>&1
}

# usage: run BENCH VARIANT CASES WHAT [FLAGS]
run() {
    local b=$1@$2 title="netlist: $4 as the C model" top start
    [[ $only == "  " || $only == *" $1 "* || $only == *" $b "* ]] || return 0
    start=$(date +%s)
    if ! netlist "$1" "$2" "${5:-}"; then
        tail -3 "$dir/$b.log" | sed 's/^/# /'
        tap 1 "$title"
        return
    fi
    top=$(sed -n "s/^$2 .*top=\([^ ]*\).*/\1/p" tests/rtl/*/"$1.txt")
    # The netlist must be one: cells only, no behaviour.
    if grep -q 'always' "$dir/$b.v"; then
        echo "# $dir/$b.v is not a netlist"
        tap 1 "$title"
        return
    fi
    rm -rf "$dir/$b.obj"
    if ! nice -n 10 verilator --cc --exe --build -j 1 --prefix Vdut --top-module "$top" -Wno-fatal -Wno-lint -Wno-style -Werror-UNOPTFLAT \
        --x-assign unique --x-initial unique -O3 -Mdir "$dir/$b.obj" -o tb \
        --output-split 20000 --output-split-cfuncs 500 \
        -CFLAGS "-std=c++20 -O1 -DVARIANT_$2 -I$PWD -I$PWD/host -I$PWD/$build/gen -I$PWD/tests/rtl -I$PWD/tests" \
        -MAKEFLAGS "CXX=$cxx LINK=$cxx OPT_FAST=-O1 OPT_SLOW=-O0" \
        "$dir/$b.v" "$multipliers" "$cells" "$PWD"/tests/rtl/*/"$1.cpp" "$PWD/$build/num.o" >"$dir/$b.build" 2>&1; then
        grep -m5 -i error "$dir/$b.build" | sed 's/^/# /'
        tap 1 "$title"
        return
    fi
    timeout 600 "$dir/$b.obj/tb" --cases "$3" +verilator+rand+reset+2 >"$dir/$b.tap" 2>&1
    local status=$?
    [ $status = 0 ] || sed 's/^/# /' "$dir/$b.tap"
    tap $status "$title"
    # The old form of stat has the cell first, the new one the number.
    echo "# $(awk '$1 ~ /^[0-9]+$/ { t = $1; $1 = $2; $2 = t }
        $1 ~ /^(LUT[1-6]|FD[RS]E|DSP48E2|CARRY4|RAM32M16|RAM64M8|ALU|DFF[A-Z]*|MULT[A-Z0-9]+|RAM16SDP4)$/ { c[$1] += $2 }
        END { for (k in c) printf "%s %d  ", k, c[k] }' "$dir/$b.stat"); $(grep -c '^ok' "$dir/$b.tap") tests of the bench, $(($(date +%s) - start)) s"
}

run pe portable 500 'two processing elements with their accumulators'
if [ "$family" = gw5a ]; then
    run fp l4 20000 'fp32 add, multiply, conversion, GELU, exp2, reciprocal, 1/sqrt'
    run layernorm v4 6 'LayerNorm, V = 4'
    echo "1..$n"
    exit $((bad != 0))
fi
run pe dsp 500 'two processing elements in DSP48E2, two products a multiplier'
run attn_lane macdsp 20 "attention's products in DSP48E2"
# Without carry cells: ABC sees those as boxes and may take what comes out of a chain for an equal value that goes in,
# a loop. make timing looks for loops in netlists with carry cells.
run fp l4 20000 'fp32 add, multiply, conversion, GELU, exp2, reciprocal, 1/sqrt' -nocarry
run layernorm v4 6 'LayerNorm, V = 4' -nocarry
echo "1..$n"
exit $((bad != 0))
