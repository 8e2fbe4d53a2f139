#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A configuration elaborated by Yosys: DIR/all.il, and DIR/N.il, a file for each module with its parameters, which
# tests/synth/split.awk makes. Nothing is done again when sources and parameters are what they were.
# What is in rtl/common (memories, FIFOs, register slices, the clock gate's wire) becomes a part of the modules that
# use it; every other module keeps its boundary.
# usage: [BUILD=build] [defines=-D..] tests/synth/elaborate.sh CONFIG DIR   (from the root; after make has written build/gen)
set -euo pipefail
config=$1 dir=$2 build=${BUILD:-build}
params=$(awk -v config="$config" -f rtl/spec/gen_configs.awk rtl/spec/configs.def | sed 's/-G\([A-Z_0-9]*\)=/-set \1 /g')
[ -n "$params" ] || { echo "elaborate.sh: no configuration $config in configs.def" >&2; exit 1; }
mapfile -t files < <(grep -v '^ *\(//.*\)\?$' rtl/filelist.f | grep -v '^rtl/\(kernel\|pcie\)/')
key=$({ echo "$params ${defines-}"; cat "$build"/gen/*.sv* "${files[@]}" rtl/*/*.svh "${BASH_SOURCE[0]}" tests/synth/split.awk; } | sha256sum)
mkdir -p "$dir"
[ "$(cat "$dir/key" 2>/dev/null)" != "$key" ] || exit 0
rm -f "$dir"/*.il "$dir/modules" "$dir/key"
echo "# $config: Yosys reads ${#files[@]} files, in up to half a minute"
inlined=$(basename -s .sv rtl/common/*.sv | sed 's/.*/setattr -mod -unset keep_hierarchy *&*;/')
nice -n 10 yosys -q -l "$dir/log" -p "read_verilog -sv ${defines-} -Irtl/common -I$build/gen $build/gen/mr_pkg.sv ${files[*]}
    read_verilog -lib +/xilinx/cells_xtra.v
    chparam $params millrace_core
    hierarchy -check -purge_lib -top millrace_core
    proc
    setattr -mod -set keep_hierarchy 1 *
    $inlined
    flatten
    opt_clean
    setattr -unset src *
    setattr -mod -unset src *
    rename -enumerate -pattern \$_% */*
    delete =A:blackbox
    write_rtlil $dir/all.il" >"$dir/out" 2>&1 || { tail -3 "$dir/out" >&2; exit 1; }
awk -v dir="$dir" -f tests/synth/split.awk "$dir/all.il" "$dir/all.il"
echo "$key" >"$dir/key"
