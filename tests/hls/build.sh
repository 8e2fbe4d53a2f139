# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# Sourced, from the root of the sources or of a copy: the pipelines that clang and XLS make of hls/datapath.h, and their
# bench. The caller sets $cxx, and $python of make hls-venv.
make_cores() { # DIR CORE..: their Verilog into DIR
    mkdir -p "$1" && PYTHONDONTWRITEBYTECODE=1 "${python:?}" tests/hls/xls/generate.py "$@" && cp tests/hls/xls/mr_hls_product.sv "$1/"
}
make_bench() { # DIR ROOT [Verilator's options..]: DIR/bench/tb, which compares DIR's Verilog with the C++ of ROOT
    verilator --cc --exe --build -j 2 --prefix Vdut --top-module mr_hls_bench -Wall "${@:3}" --x-assign unique --x-initial unique \
        -O3 --Mdir "$1/bench" -o tb -CFLAGS "-std=c++20 -O1 -I$2 -I$2/tests/rtl" \
        -MAKEFLAGS "CXX=${cxx:?} LINK=$cxx OPT_FAST=-O1 OPT_SLOW=-O0" \
        "$1/mr_hls_pkg.sv" "$1"/mr_hls_[!p]*.sv "$1"/mr_hls_product.sv "$2/tests/hls/mr_hls_bench.sv" "$2/tests/hls/tb.cpp"
}
