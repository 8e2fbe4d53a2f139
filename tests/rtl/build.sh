#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Verilates one variant of an RTL bench; mr_pkg is there for every one. A bench that says library=A.c,B.c gets these C files
# and libmillrace. usage: tests/rtl/build.sh BENCH VARIANT (from the root)
set -euo pipefail
bench=$1 variant=$2 build=${BUILD:-build} cxx=${CXX:-g++}
line=$(awk -v v="$variant" '$1 == v' "tests/rtl/$bench/bench.txt")
top=$(sed -n 's/.*top=\([^ ]*\).*/\1/p' <<<"$line")
params=$(sed -n 's/.*params=\(.*\) srcs=.*/\1/p' <<<"$line")
srcs=$(sed -n 's/.*srcs=\(.*\)/\1/p' <<<"$line")
srcs=${srcs// host/ $PWD/host} # C files are built in another directory
dir=$build/rtl/$bench@$variant
mkdir -p "$dir"
library=$(sed -n 's/.* library=\([^ ]*\).*/\1/p' <<<"$line")
objects=()
for c in ${library//,/ }; do
    o=$PWD/$dir/$(basename "$c" .c)_c.o
    "${CC:-gcc}" -std=c17 -D_GNU_SOURCE -Wall -Wextra -O2 -I. -Ihost -Ihost/include "-I$build/gen" -c -o "$o" "$c"
    objects+=("$o")
done
[ -z "$library" ] ||
    objects+=(-LDFLAGS "$PWD/$build/libmillrace.a -ljansson -lpcre2-8 -lxxhash -lzip -ldl -lpthread -lm")
# shellcheck disable=SC2086
verilator --cc --exe --build -j 1 --prefix Vdut --top-module "$top" $params -Wall \
    --x-assign unique --x-initial unique -O3 +incdir+rtl/fp "+incdir+$build/gen" -Mdir "$dir" -o tb \
    -CFLAGS "-std=c++20 -O1 -DVARIANT_$variant -I$PWD -I$PWD/host -I$PWD/host/include -I$PWD/$build/gen -I$PWD/tests/rtl/common -I$PWD/tests" \
    -MAKEFLAGS "CXX=$cxx LINK=$cxx OPT_FAST=-O1 OPT_SLOW=-O0" \
    "$build/gen/mr_pkg.sv" $srcs "$PWD/tests/rtl/$bench/tb.cpp" "${objects[@]}" "$PWD/$build/num.o" >"$dir/build.log" 2>&1 ||
    { tail -40 "$dir/build.log"; exit 1; }
