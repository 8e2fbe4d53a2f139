#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds the module of this directory for the kernel whose headers are in KDIR, in OUT.
# usage: tests/driver/module/build.sh KDIR OUT
set -uo pipefail
kdir=$1 out=$2
rm -rf "$out" && mkdir -p "$out" && cp "$(dirname "$0")"/{Kbuild,*.[ch]} "$out/" || exit 1
out=$(cd "$out" && pwd)
make --no-print-directory -s -C "$kdir" M="$out" W=1 modules >"$out/build.log" 2>&1 || { cat "$out/build.log" >&2; exit 1; }
