#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The files of the kernel millrace_update, a line each, packages first; mr_pkg is not among them.
# usage, from the root: tests/synth/hls-files.sh
ls hls/rtl/cores/mr_hls_pkg.sv hls/rtl/mr_update_pkg.sv
ls rtl/common/mr_{cut_4k,fifo,ram_1r1w}.sv rtl/control/mr_{hostrd,writer}.sv
find hls/rtl -name '*.sv' ! -name '*_pkg.sv' | LC_ALL=C sort
