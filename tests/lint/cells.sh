#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Cells of each module of tiny, which has no TRAIN, as Yosys sees them before it maps them: what is added for training
# must not change what inference pays. Prints the list; with --write it replaces tests/cells.tsv.
# usage: [BUILD=build] tests/lint/cells.sh [--write] (from the root)
set -euo pipefail
build=${BUILD:-build}
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
mapfile -t files < <(echo "$build/gen/mr_pkg.sv"; grep -v '^ *\(//.*\)\?$' rtl/filelist.f)
params=$(awk -v config=tiny -f rtl/spec/gen_configs.awk rtl/spec/configs.def | sed 's/-G\([A-Z_0-9]*\)=/-set \1 /g')
yosys -q -p "read_verilog -sv -Irtl/common -I$build/gen ${files[*]}; chparam $params millrace_core; \
    hierarchy -check -top millrace_core; proc; opt -fast; tee -q -o $tmp/stat stat -width" >"$tmp/log" 2>&1 ||
    { tail -5 "$tmp/log" >&2; exit 1; }
# A module of several sets of parameters has a line for each, in the order of their sizes.
awk -v OFS='\t' '
    function put() { if (name != "") print name, cells, flops, memory, logic }
    /^=== / { put(); split($2, part, "\\"); name = part[$2 ~ /\\/ ? 2 : 1]; cells = flops = memory = logic = 0; if (name == "design") name = "" }
    /Number of memory bits:/ { memory = $NF }
    /Number of cells:/ { cells = $NF; next }
    $1 ~ /^\$/ && NF == 2 {
        width = $1; sub(/.*_/, "", width)
        if (width !~ /^[0-9]+$/) width = 1
        if ($1 ~ /^\$(s|a)?dff/) flops += width * $2; else logic += width * $2
    }
    END { put() }' "$tmp/stat" | LC_ALL=C sort -t "$(printf '\t')" -k1,1 -k2,5n >"$tmp/rows"
[ "$(wc -l <"$tmp/rows")" -gt 60 ] || { echo "cells.sh: Yosys' statistics have only $(wc -l <"$tmp/rows") modules" >&2; exit 1; }
{
    printf '# SPDX-License-Identifier: Apache-2.0\n'
    printf '# Cells of tiny before they are mapped (tests/lint/cells.sh): what training must not change.\n'
    printf '# module\tcells\tflip-flops\tmemory bits\tbits of other cells\n'
    cat "$tmp/rows"
} >"$tmp/list"
if [ "${1:-}" = --write ]; then mv "$tmp/list" tests/cells.tsv; else cat "$tmp/list"; fi
