#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The files of driver/ are in layers: each uses those alone that stand before it in Kbuild, in a function, an object or
# an include; so there is no circle. Prints what breaks that; says nothing and succeeds when all is well. The table of
# docs/board/driver-inside.md has the same order. usage: tests/lint/driver-layers.sh [DIRECTORY] (from the root)
set -uo pipefail
driver=${1:-driver} here=$(dirname "$0")
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT
awk -f "$here/driver-edges.awk" "$driver"/*.c "$driver"/*.h | LC_ALL=C sort >"$tmp/edges" && [ -s "$tmp/edges" ] || exit 1
sed -n 's/^millrace-y [:+]= //p' "$driver/Kbuild" | tr ' ' '\n' | sed 's/\.o$//' >"$tmp/order"
status=0
awk -f "$here/circles.awk" "$tmp/edges" || status=1
awk -v kbuild="$driver/Kbuild" 'NR == FNR { place[$1] = NR; next }
    !($1 in place) { print $1 " is not in " kbuild; bad = 1; next }
    !($2 in place) { print $2 " is not in " kbuild; bad = 1; next }
    place[$2] > place[$1] { print $1 " uses " $2 " (" $3 "), which stands behind it in " kbuild; bad = 1 }
    END { exit bad }' "$tmp/order" "$tmp/edges" || status=1
exit $status
