#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What configurations take of an UltraScale+ device by Yosys' count, unit by unit, in the form for DSP48E2. TAP on stdout.
# usage: [BUILD=build] tests/synth/area.sh [--write] CONFIG..   (from the root; after make has written build/gen)
#   --write  the counts go into host/plan/area.def, from which `millrace plan` takes them, and into docs/inside/synthesis.md
# Every module is synthesised alone (netlists.sh; timing.sh has the same netlists), so nothing is optimised across the
# boundaries of modules. Rows: $BUILD/timing/CONFIG/area.tsv.
set -uo pipefail
build=${BUILD:-build}
cache=$build/timing/cache
def=host/plan/area.def
write=false
[ "${1:-}" != --write ] || { write=true; shift; }
[ $# -gt 0 ] || { echo "usage: tests/synth/area.sh [--write] CONFIG.." >&2; exit 2; }
mkdir -p "$cache"
. tests/synth/netlists.sh
configurations "$@" || exit 2
out=$build/timing/area/$(IFS=+ && echo "$*")
enter "$out"
n=0 bad=0
tap() { # status name [log]
    n=$((n + 1))
    if [ "$1" = 0 ]; then echo "ok $n - $2"; else
        echo "not ok $n - $2"
        bad=$((bad + 1))
        [ -z "${3:-}" ] || head -20 "$3" | sed 's/^/# /'
    fi
}

: >"$out/area.tsv"
count() { # config
    local config=$1 dir=$build/timing/$1
    { defines=-DMILLRACE_DSP48E2 BUILD=$build bash tests/synth/elaborate.sh "$config" "$dir" && netlists "$dir" &&
        sed 's/json$/stat/' "$dir/files" | xargs awk -v config="$config" -f tests/synth/cells.awk -f tests/synth/area.awk \
            "$dir/modules" | sort -t$'\t' -k2,2 >"$dir/area.tsv"; } 2>"$out/err"
    tap $? "$config is counted" "$out/err"
    # The whole last.
    { grep -v -w millrace_core "$dir/area.tsv"; grep -w millrace_core "$dir/area.tsv"; } >>"$out/area.tsv"
}
for config; do
    enter "$build/timing/$config"
    count "$config"
    leave
done

enter "$build/timing/written"
{
    sed -n '/^\/\//p' "$def"
    # Other configurations stay.
    awk -F'"' -v configs="$*" 'BEGIN { split(configs, c, " "); for (i in c) out[c[i]] = 1 } /^AREA/ && !($2 in out)' "$def"
    awk -F'\t' '{ printf "AREA(\"%s\", \"%s\", %d, %d, %d, %d, %d, %g, %d, %d)\n", $1, $2, $3, $4, $5, $6, $7, $8, $9, $10 }' "$out/area.tsv"
} >"$out/area.def"
# A row for each unit, and for each configuration its LUTs (those that are memory too), DSP48E2, block RAMs and UltraRAMs.
awk -F'[(," )]+' '/^AREA/ { if (!($2 in seen)) { seen[$2] = 1; config[++configs] = $2 }
        if (!($3 in known)) { known[$3] = 1; if ($3 != "millrace_core") unit[++units] = $3 }
        cell[$2, $3] = $5 + $6 " / " $8 " / " $9 " / " $10 }
    END { printf "| unit |"; for (i = 1; i <= configs; i++) printf " `%s` |", config[i]
        printf "\n|---|"; for (i = 1; i <= configs; i++) printf "---:|"; print ""
        unit[++units] = "millrace_core"
        for (u = 1; u <= units; u++) { printf "| `%s` |", unit[u]
            for (i = 1; i <= configs; i++) printf " %s |", cell[config[i], unit[u]]; print "" } }' "$out/area.def" >"$out/area.md"
if $write && [ $bad = 0 ]; then
    cp "$out/area.def" "$def"
    awk -v t="$out/area.md" '/<!-- area -->/ { print; while ((getline l < t) > 0) print l; skip = 1 }
        /<!-- end of area -->/ { skip = 0 } !skip && !/<!-- area -->/' docs/inside/synthesis.md >"$out/doc.md" &&
        cp "$out/doc.md" docs/inside/synthesis.md
else
    cmp -s "$out/area.def" "$def" || echo "# $def has other figures: make area-doc"
fi
echo "1..$n"
exit $((bad != 0))
