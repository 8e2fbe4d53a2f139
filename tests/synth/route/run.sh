#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Modules placed and routed for Gowin's GW5A, and the frequency that each reaches: measured by nextpnr on a finished
# routing, not estimated. nextpnr comes from PyPI, in an environment of its own in $BUILD/route/venv-gw5a with what gw5a.txt
# lists. TAP on stdout; the table in $BUILD/route/gw5a.md.
# usage: [BUILD=build] [FAMILY=gw5a] [NEXTPNR=COMMAND] [ROUTE_DENSITY=0.5]
#        tests/synth/route/run.sh [--write] [CONFIG/]MODULE[:PARAMETER=value]..   (from the root)
#   modules are those of `tiny` if no configuration is named; a parameter picks one of several sets.
#   --write: the rows go into docs/results/route-gw5a.txt, in the place of those of the same modules, and into
#            docs/inside/synthesis.md; each has the revision that it was routed of
#   FAMILY: there is one; any other is refused, not routed for this one
#   NEXTPNR: a native nextpnr, with options if it needs any, in the place of PyPI's; ROUTE_DENSITY: the placer's density.
#            Both stand in a row's parameters; the netlist is the same.
# gw5a.sh has by (what measured), columns (report.py's), also (more files of which a result depends), and the functions
# apart (what NEXTPNR and ROUTE_DENSITY make of a row), synthesise and place_and_route. These two run in a shell of their
# own and end in an exec, so that Ctrl-C ends what they run.
# What was routed once is not again while the module's elaboration stays the same.
set -uo pipefail
build=${BUILD:-build} dir=${BUILD:-build}/route
write=
[ "${1:-}" != --write ] || { write=1; shift; }
case ${FAMILY:-gw5a} in
    gw5a) ;;
    *) echo "make route: FAMILY=$FAMILY is not known; there is gw5a, also without FAMILY" >&2; exit 2 ;;
esac
[ $# -gt 0 ] || { echo "usage: tests/synth/route/run.sh [--write] [CONFIG/]MODULE[:PARAMETER=value].." >&2; exit 2; }
venv=$dir/venv-gw5a list=tests/synth/route/gw5a.txt results=docs/results/route-gw5a.txt
. tests/synth/netlists.sh
. tests/synth/route/saying.sh
. tests/synth/route/gw5a.sh
for want; do
    case $want in */*) configurations "${want%%/*}" || exit 2 ;; esac
done
apart=$(apart | paste -sd,)
[ -z "${NEXTPNR:-}" ] || grep -q 'native nextpnr' <<<"$apart" || { echo "make route: NEXTPNR=$NEXTPNR does not tell its version" >&2; exit 2; }
tests/tools/venv.sh "$venv" "$list" "make route" || exit 1
enter "$dir"
n=0 bad=0
revision=$(git rev-parse --short=12 HEAD)$(git diff --quiet HEAD -- rtl || echo +)
: >"$dir/rows"
for want; do
    n=$((n + 1))
    config=tiny
    case $want in */*) config=${want%%/*} ;; esac
    module=${want#*/} e=$dir/$config
    BUILD=$build bash tests/synth/elaborate.sh "$config" "$e" || exit 1
    IFS=$'\t' read -r number type name < <(awk -F'\t' -v m="${module%%:*}" -v p="${module#*:}" -v any="${module##*:*}" \
        '$3 == m && (any != "" || index("," $4 ",", "," p ",")) { print $1 "\t" $2 "\t" $3 }' "$e/modules")
    if [ -z "${number:-}" ]; then
        echo "not ok $n - no module $module in $config"
        bad=1
        continue
    fi
    # What the module contains is in the key, because whoever changes it changes the elaboration.
    # shellcheck disable=SC2086
    net=$dir/gw5a.$(cat "$e/$number.il" "$e/key" "$list" tests/synth/route/wrap.awk $also | sha256sum | cut -c1-16).$name
    out=$net${apart:+.$(sha256sum <<<"$apart" | cut -c1-8)}
    start=$SECONDS
    if [ ! -s "$out.json" ]; then
        if [ ! -s "$net.net" ]; then
            awk -f tests/synth/route/wrap.awk "$e/$number.il" >"$net.v" &&
                while_saying "$want, $n of $#: Yosys makes the netlist" synthesise "read_rtlil $e/all.il;
                    setattr -mod -unset keep_hierarchy *; rename $type dut; read_verilog $net.v; hierarchy -check -top wrap" \
                    "$net.tmp" "$net.log" 2>"$net.out" && mv "$net.tmp" "$net.net"
        fi && made=$SECONDS &&
            while_saying "$want, $n of $#: nextpnr places and routes" place_and_route "$net.net" "$out.tmp" 2>"$out.route" &&
            echo $((SECONDS - made)) >"$out.seconds" && mv "$out.tmp" "$out.json"
    fi
    if [ ! -s "$out.json" ]; then
        echo "not ok $n - $want"
        tail -5 "$net.out" "$out.route" 2>/dev/null | sed 's/^/# /'
        bad=1
        continue
    fi
    parameters=
    case $module in *:*) parameters=${module#*:} ;; esac
    parameters+=${parameters:+${apart:+,}}$apart
    # shellcheck disable=SC2086
    row=$("$venv/bin/python" tests/synth/route/report.py "$out.json" "$name" "$config" "$parameters" $columns) || bad=1
    echo "$row $(cat "$out.seconds") | \`$revision\` |" >>"$dir/rows"
    echo "ok $n - $want: $(cut -d'|' -f5 <<<"$row") MHz"
    [ $((SECONDS - start)) = 0 ] || echo "# $((SECONDS - start)) s"
done
rows=$dir/rows
if [ -n "$write" ]; then
    rows=$dir/all-rows
    touch "$results"
    awk -f tests/synth/route/rows.awk "$dir/rows" "$results" >"$rows"
fi
{
    fold -s -w 101 <<<"Measured by $by, seed 1; \`s\` are nextpnr's seconds:" | sed 's/ *$//'
    echo
    # shellcheck disable=SC2086
    "$venv/bin/python" tests/synth/route/report.py --head $columns
    sort -t'|' -k3,3r -k5,5n "$rows"
} >"$dir/gw5a.md"
if [ -n "$write" ]; then
    cp "$dir/gw5a.md" "$results"
    awk -v t="$dir/gw5a.md" '$0 == "<!-- gw5a -->" { print; while ((getline l < t) > 0) print l; skip = 1; next }
        $0 == "<!-- end of gw5a -->" { skip = 0 } !skip' docs/inside/synthesis.md >"$dir/doc.md" && cp "$dir/doc.md" docs/inside/synthesis.md
fi
echo "1..$n"
exit $bad
