#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Verilates one variant of an RTL bench and compiles it, as one file: that takes half of the time of several, which all
# read the same headers. Verilator's run-time library is there already (BUILD/rtl/runtime.a), and so is mr_pkg. C files
# among srcs= are compiled and linked. tb.d says what the bench was made from. BENCH_COVERAGE=1 counts the lines that
# are executed, without assertions, whose else should not be. Verilator 5.006 must not split blocks then: it would count
# a function's lines before the function has its arguments.
# usage: tests/rtl/build.sh BENCH VARIANT (from the root)
set -euo pipefail
bench=$1 variant=$2 build=${BUILD:-build} cxx=${CXX:-g++}
source=$(echo tests/rtl/*/"$bench.cpp")
line=$(awk -v v="$variant" '$1 == v' "${source%.cpp}.txt")
field() { sed -n "s/.* $1=\([^ ]*\).*/\1/p" <<<"$line"; }
top=$(field top)
params=$(sed -n 's/.*params=\(.*\) srcs=.*/\1/p' <<<"$line")
dir=$build/rtl/$bench@$variant
include=(-I. -Ihost -Ihost/include "-I$build/gen" -Itests/rtl -Itests)
rm -rf "$dir"
mkdir -p "$dir"

checks=(-DMILLRACE_ASSERT --assert)
[ -z "${BENCH_COVERAGE:-}" ] || checks=(--coverage-line -fno-split)
rtl=() objects=()
compile() { # C file
    local o=$dir/$(basename "$1" .c).o
    "${CC:-gcc}" -std=c17 -D_GNU_SOURCE -Wall -Wextra -O2 -ffp-contract=off "${include[@]}" -MMD -MP -MT "$dir/tb" -c -o "$o" "$1"
    objects+=("$o")
}
everything() {
    for f in $(sed -n 's/.*srcs=\(.*\)/\1/p' <<<"$line"); do
        case $f in *.c) compile "$f" ;; *) rtl+=("$f") ;; esac
    done
    # shellcheck disable=SC2086
    verilator --cc --prefix Vdut --top-module "$top" $params -Wall --x-assign unique --x-initial unique -O3 \
        "${checks[@]}" --output-split 0 -Irtl/common "-I$build/gen" -Mdir "$dir" "$build/gen/mr_pkg.sv" "${rtl[@]}"
    for f in "$dir"/Vdut*.cpp "$source"; do echo "#include \"$f\""; done >"$dir/all.cc"
    root=$(verilator -V | awk '$1 == "VERILATOR_ROOT" && !seen++ { print $3 }')
    "$cxx" -std=c++20 -O1 "-DVARIANT_$variant" "-DVM_COVERAGE=${BENCH_COVERAGE:-0}" "${include[@]}" "-I$dir" -isystem "$root/include" -isystem "$root/include/vltstd" \
        -MMD -MP -MT "$dir/tb" -c -o "$dir/all.o" "$dir/all.cc"
    # Verilator's list has the files that it wrote in front of the colon, and itself behind it.
    sed -n "s|^[^:]*:|$dir/tb:|p" "$dir/Vdut__ver.d" >"$dir/tb.d"
    sed 's/^[^:]*://; s/\\$//' "$dir/Vdut__ver.d" | tr -s ' ' '\n' | sed -n 's/..*/&:/p' >>"$dir/tb.d"
    cat "$dir"/all.d "${objects[@]/%.o/.d}" >>"$dir/tb.d"
    "$cxx" -o "$dir/tb" "$dir/all.o" "${objects[@]}" "$build/num.o" "$build/rtl/runtime.a" -lpthread
}
# Not `everything ||`: bash would go on behind a command of it that fails.
everything >"$dir/build.log" 2>&1 &
wait "$!" || { tail -40 "$dir/build.log"; exit 1; }
