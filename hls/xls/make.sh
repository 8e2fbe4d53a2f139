#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A draft: update() of datapath.h to Verilog by clang and XLS, and Verilated against the same C++.
# Needs the Python packages llvmlite 0.50.0 and xls-python 0.1.9934, clang++-19 and Verilator.
# usage, from the repository's root: hls/xls/make.sh OUT_DIR [VECTORS]
set -euo pipefail
out=$1 vectors=${2:-1000000}
mkdir -p "$out"
clang++-19 -S -emit-llvm -O2 -fno-vectorize -fno-slp-vectorize -Wno-unknown-pragmas -I. \
    -mllvm -unroll-threshold=100000 -mllvm -inline-threshold=1000000 \
    -mllvm -two-entry-phi-node-folding-threshold=50 hls/xls/update_core.cpp -o "$out/bare.ll"
python3 hls/xls/name_values.py <"$out/bare.ll" >"$out/core.ll"
python3 hls/xls/ll2xls.py "$out/core.ll" update_core - "$out/core.ir"
python3 hls/xls/schedule.py "$out/core.ir" update_core 64 "$out/update_core.sv"
verilator --cc --exe --build -j 1 -Wno-fatal -Wno-WIDTH -O3 --Mdir "$out/obj" --top-module update_core \
    -CFLAGS "-O1 -I$PWD -Wno-unknown-pragmas" -MAKEFLAGS "CXX=clang++-19 LINK=clang++-19" \
    "$out/update_core.sv" "$PWD/hls/xls/update_tb.cpp" "$PWD/hls/xls/update_core.cpp"
"$out/obj/Vupdate_core" "$vectors"
