#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Static timing estimates of every module of configurations, TAP on stdout; docs/inside/synthesis.md says what the model is.
# usage: [BUILD=build] tests/synth/timing.sh [--write | --ceilings] CONFIG..   (from the root; needs build/synth/sta)
#   --write     the table goes into docs/inside/synthesis.md too
#   --ceilings  tests/synth/timing.tsv gets this run's figures
# Each module is synthesised alone, once for each set of parameters, with its children as black boxes; netlists are
# kept in $BUILD/timing/cache (netlists.sh). The analyser puts them together, so that paths through
# the ports of modules are measured like others. Figures of this run: $BUILD/timing/of/CONFIG+CONFIG../all.tsv.
set -uo pipefail
build=${BUILD:-build} sta=${BUILD:-build}/synth/sta
cache=$build/timing/cache
ceilings=tests/synth/timing.tsv allowed=tests/synth/through.tsv
mode=check
case ${1:-} in --write | --ceilings) mode=${1#--}; shift ;; esac
[ $# -gt 0 ] || { echo "usage: tests/synth/timing.sh [--write | --ceilings] CONFIG.." >&2; exit 2; }
. tests/synth/netlists.sh
configurations "$@" || exit 2
# Figures of a run lie apart from those of runs of other configurations.
dir=$build/timing/of/$(IFS=+ && echo "$*")
mkdir -p "$cache"
enter "$dir"
n=0 bad=0
tap() { # status name [log]
    n=$((n + 1))
    if [ "$1" = 0 ]; then echo "ok $n - $2"; else
        echo "not ok $n - $2"
        bad=$((bad + 1))
        [ -z "${3:-}" ] || head -60 "$3" | sed 's/^/# /'
    fi
}

: >"$dir/all.tsv"
: >"$dir/through"
measure() { # config
    local config=$1 e=$build/timing/$1 status
    defines=-DMILLRACE_DSP48E2 BUILD=$build bash tests/synth/elaborate.sh "$config" "$e" 2>"$dir/err"
    status=$?
    tap $status "$config elaborates" "$dir/err"
    [ $status = 0 ] || return
    netlists "$e"
    status=$?
    tap $status "$config: $(wc -l <"$e/modules") modules synthesise"
    [ $status = 0 ] || return
    xargs "$sta" <"$e/files" >"$e/sta.tsv" 2>"$dir/err"
    tap $? "$config: no combinational loop, no cell that the model does not know" "$dir/err"
    awk -F'\t' -v OFS='\t' -v config="$config" 'FNR == NR { params[$2] = $4; next }
        FNR > 1 && $1 != "through" { print config, $2, params[$1], $0 }' "$e/modules" "$e/sta.tsv" >>"$dir/all.tsv"
    # Outputs of units that depend on an input within the cycle.
    awk -F'\t' 'FNR == NR { if ($5) block[$2] = 1; next }
        $1 == "through" && ($2 in block) { print $3 "\t" $4 "\t" $5 "\t" $6 "\t" config }' config="$config" "$e/modules" "$e/sta.tsv" >>"$dir/through"
}
for config; do
    enter "$build/timing/$config"
    measure "$config"
    leave
done

# ---- ceilings: the longest path of a module's sets of parameters ----------------------------------------------
awk -F'\t' -v OFS='\t' '{ k = $1 OFS $2; if (!(k in w) || $15 > w[k]) w[k] = $15 } END { for (k in w) print k, w[k] }' "$dir/all.tsv" |
    sort >"$dir/worst"
enter "$build/timing/written"
limit=3.23 # ns: 300 MHz and 0.10 ns of uncertainty
if [ $mode = ceilings ]; then
    # Those of other configurations stay.
    { grep '^#' "$ceilings"; awk -F'\t' -v configs="$*" 'BEGIN { split(configs, c, " "); for (i in c) out[c[i]] = 1 }
        !/^#/ && !($1 in out)' "$ceilings"; awk -F'\t' -v OFS='\t' -v limit=$limit '{ print $1, $2, sprintf("%.2f", $3 > limit ? $3 : limit) }' "$dir/worst"; } \
        >"$dir/ceilings" && cp "$dir/ceilings" "$ceilings"
fi
awk -F'\t' -v configs="$*" 'BEGIN { split(configs, c, " "); for (i in c) want[c[i]] = 1 }
    /^#/ { next }
    FNR == NR { if ($1 in want) { ceiling[$1, $2] = $3; has[$1] = 1 } next }
    !($1 in has) { next }
    !(($1, $2) in ceiling) { print $1 ": " $2 " has no ceiling: make timing-ceilings"; bad = 1; next }
    { seen[$1, $2] = 1; if ($3 > ceiling[$1, $2] + 0.001) { bad = 1
        print $1 ": " $2 " takes " $3 " ns, its ceiling is " ceiling[$1, $2] " (" FILENAME " says where: all.tsv beside it)" } }
    END { for (k in ceiling) if (!(k in seen)) { split(k, p, SUBSEP); print p[1] ": no module " p[2] ", which has a ceiling: make timing-ceilings"; bad = 1 }
          exit bad }' "$ceilings" "$dir/worst" >"$dir/over"
tap $? "no module is slower than its ceiling" "$dir/over"
for config; do
    grep -q "^$config"$'\t' "$ceilings" || echo "# $config has no ceilings: make timing-ceilings TIMING_CONFIGS=\"$*\""
done

# ---- outputs of units are registered -----------------------------------------------------------------------------
awk -F'\t' -v configs="$*" 'function any(some, of,   n, i, p) { n = split(some, p, " "); for (i = 1; i <= n; i++) if (index(" " of " ", " " p[i] " ")) return 1; return 0 }
    /^#/ { next }
    FNR == NR { reason[$1, $2] = $3; only[$1, $2] = $4; if ($3 == "") { print $1 "." $2 " is allowed without a reason"; bad = 1 } next }
    ($1, $2) in reason && (only[$1, $2] == "" || any(only[$1, $2], $5)) { seen[$1, $2] = 1; next }
    { print $1 ": " $2 " depends on " $3 " within the cycle (" $4 " ns)"; bad = 1 }
    END { for (k in reason) if (!(k in seen) && (only[k] == "" || any(only[k], configs))) {
              split(k, p, SUBSEP); print p[1] "." p[2] " is registered now: take it out of the list"; bad = 1 }
          exit bad }' "$allowed" "$dir/through" | sort -u >"$dir/unregistered"
tap "${PIPESTATUS[0]}" "outputs of units do not depend on inputs within the cycle, but for those in $allowed" "$dir/unregistered"

# ---- the table ------------------------------------------------------------------------------------------------
awk -F'\t' -v configs="$*" -v limit=$limit -f tests/synth/timing.awk "$dir/all.tsv" >"$dir/table.md"
if [ $mode = write ]; then
    awk -v t="$dir/table.md" '/<!-- timing -->/ { print; while ((getline l < t) > 0) print l; skip = 1 }
        /<!-- end of timing -->/ { skip = 0 } !skip && !/<!-- timing -->/' docs/inside/synthesis.md >"$dir/doc.md" &&
        cp "$dir/doc.md" docs/inside/synthesis.md
else # of the same configurations
    awk '/<!-- timing -->/ { on = 1; next } /<!-- end of timing -->/ { on = 0 } on' docs/inside/synthesis.md >"$dir/page.md"
    [ "$(grep '^| module' "$dir/page.md")" != "$(grep '^| module' "$dir/table.md")" ] || cmp -s "$dir/page.md" "$dir/table.md" ||
        echo "# docs/inside/synthesis.md has other figures: make timing-doc"
fi
echo "1..$n"
exit $((bad != 0))
