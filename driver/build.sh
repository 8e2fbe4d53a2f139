#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds the module for the kernel whose headers are in KDIR, in OUT. Whatever the build says is a failure.
# usage: driver/build.sh KDIR OUT [MAKE ARGUMENT...]; V=1 prints the log
set -uo pipefail
kdir=$1 out=$2
shift 2
if [ ! -e "$kdir/Makefile" ]; then
    echo "driver/build.sh: no kernel headers in $kdir; install linux-headers-$(uname -r), or give KDIR=" >&2
    exit 1
fi
rm -rf "$out" && mkdir -p "$out" && cp -r driver/. "$out/" &&
    awk -f driver/gen_hw.awk rtl/spec/device.def rtl/spec/pcie.def >"$out/millrace_hw.h" || exit 1
out=$(cd "$out" && pwd)
# Without the options of a make that runs this: it warns of a job server that a script does not get.
env -u MAKEFLAGS -u MFLAGS make --no-print-directory -s -C "$kdir" M="$out" W=1 "$@" modules >"$out/build.log" 2>&1
status=$?
[ "${V:-}" != 1 ] || cat "$out/build.log"
# The one remark that is no fault: without the kernel's image there is no type information to add to.
if [ $status = 0 ] && ! grep -v '^Skipping BTF generation for ' "$out/build.log" >"$out/said"; then exit 0; fi
tail -40 "$out/build.log" >&2
exit 1
