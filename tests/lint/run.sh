#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Static checks, TAP on stdout: the RTL in three tools from the one file list, its waivers, the graph of
# the host's files, and the layout of host/ and sim/. usage: [BUILD=build] tests/lint/run.sh [some|quick] (from the root)
# some: not every configuration in Verilator; quick: without the tools that read all of the RTL, which take most of the time
set -uo pipefail
how=${1:-}
build=${BUILD:-build}
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
n=0 bad=0

tap() { # status name [log]: the log's end as comments when it failed
    n=$((n + 1))
    if [ "$1" = 0 ]; then echo "ok $n - $2"; else
        echo "not ok $n - $2"
        bad=$((bad + 1))
        [ -n "${3:-}" ] && head -30 "$3" | sed 's/^/# /'
    fi
}

mapfile -t files < <(echo "$build/gen/mr_pkg.sv"; grep -v '^ *\(//.*\)\?$' rtl/filelist.f)
params() { awk -v config="$1" -f rtl/spec/gen_configs.awk rtl/spec/configs.def; } # -GN=1 -GR=4 ..
configs=$(awk '!/^#/ && NF { print $1 }' rtl/spec/configs.def)

# ---- every RTL file is in the list, and the list names nothing else --------------------------------
diff <(grep -v '^ *\(//.*\)\?$' rtl/filelist.f | sort) <(find rtl -name '*.sv' | sort) >"$tmp/list"
tap $? "rtl/filelist.f has each file of rtl/ once" "$tmp/list"

# A module that nobody instantiates is neither tested in its place nor in a device. The tops apart.
grep -hE '^ *[a-z_0-9]+ *(#\(|u_[a-z_0-9]+ *\()' -r rtl --include='*.sv' --include='*.awk' | grep -oE '[a-z][a-z_0-9]+' |
    sort -u >"$tmp/used"
grep -hoE '^module [a-z_0-9]+' -r rtl --include='*.sv' | cut -d' ' -f2 | grep -vxE 'mr_kernel|millrace_pcie' |
    sort | comm -23 - "$tmp/used" >"$tmp/lonely"
[ ! -s "$tmp/lonely" ]
tap $? "each module of rtl/ is instantiated in another one" "$tmp/lonely"

# ---- Verilator, Icarus, Yosys ------------------------------------------------------------------------
# shellcheck source=tests/lint/rtl.sh
[ "$how" = quick ] || . tests/lint/rtl.sh

# ---- layout of the RTL ------------------------------------------------------------------------------
find rtl hls tests/formal \( -name '*.sv' -o -name '*.svh' \) -exec grep -nHE '^.{101,}$' {} + >"$tmp/long"
[ ! -s "$tmp/long" ]
tap $? "no line of the RTL has more than 100 columns" "$tmp/long"

# ---- wiring -----------------------------------------------------------------------------------------
mapfile -t rtl < <(find rtl -name '*.sv')
port_most=$'epilogue 22 73\nepi_cmds 23 58\nresults 27 90\ntrain 28 88' # module, ports, signals
share=$(awk -f tests/lint/wiring.awk "${rtl[@]}")
echo "# module headers and instances are $share % of the lines of rtl/" | tee "$tmp/wiring"
awk -v share="$share" 'BEGIN { exit share > 22 }'
tap $? "at most 22 % of the lines of rtl/ are wiring: ports that go together are bundles" "$tmp/wiring"
awk -f tests/lint/ports.awk rtl/spec/bundles.def "${rtl[@]}" >"$tmp/ports-of"
awk '{ ports += $2; signals += $3 } END { print "# " NR " modules have " ports " ports, a bundle counted once, and " signals " signals" }' "$tmp/ports-of"
while read -r module ports signals; do # those that training crosses do not grow
    awk -v m="mr_$module" -v p="$ports" -v s="$signals" '
        $1 == m { n = 1; if ($2 > p || $3 > s) print m " has " $2 " ports of " p ", " $3 " signals of " s }
        END { if (!n) print "there is no module " m }' "$tmp/ports-of"
done <<<"$port_most" >"$tmp/ports-over"
[ ! -s "$tmp/ports-over" ]
tap $? "modules that training crosses have at most so many ports and signals" "$tmp/ports-over"

# ---- waivers, DPI, public ---------------------------------------------------------------------------
find rtl hls \( -name '*.sv' -o -name '*.svh' -o -name '*.v' -o -name '*.vlt' \) -print0 |
    xargs -0 awk -f tests/lint/waivers.awk "$build/gen/mr_pkg.sv" >"$tmp/w"
rule() { # rule name
    awk -F'\t' -v r="$1" '$1 == r { print $2; n = 1 } END { exit n }' "$tmp/w" >"$tmp/r"
    tap $? "$2" "$tmp/r"
}
rule waiver "each lint_off has its lint_on and a reason"
rule config "no waivers from configuration files"
rule dpi "no DPI in the RTL"
rule public "no public attribute outside MILLRACE_VIEW"
# The judge must be able to see each fault.
printf '%s\n' '/* verilator lint_off WIDTH */' 'logic a;' '/* verilator lint_on WIDTH */' \
    '// verilator lint_off UNUSED // one' 'logic b /*verilator public*/;' '`verilator_config' \
    '`ifdef MILLRACE_VIEW' 'logic c /*verilator public_flat_rd*/;' '`else' \
    'logic d /*verilator public_flat_rd*/;' '`endif' 'import "DPI-C" function int f();' >"$tmp/fault.sv"
awk -f tests/lint/waivers.awk "$tmp/fault.sv" | sed "s|$tmp/fault.sv:||" | cut -d: -f1 | sort >"$tmp/f"
printf '%s\t%s\n' config 6 dpi 12 public 10 public 5 waiver 1 waiver 4 | diff "$tmp/f" - >"$tmp/fd"
tap $? "these four rules find seeded faults" "$tmp/fd"

# ---- nothing that git puts where two changes meet ------------------------------------------------------
{ git ls-files 2>/dev/null || find . -type f -not -path './build/*' -not -path './.git/*'; } | tr '\n' '\0' |
    xargs -0 grep -nIE '^(<{7}|>{7})( |$)' >"$tmp/conflicts"
[ ! -s "$tmp/conflicts" ]
tap $? "no file has the marks of a conflict" "$tmp/conflicts"

# ---- fixtures stay small ------------------------------------------------------------------------------
bytes=$(find tests/fixtures -type f ! -name '*.py' ! -name README.md -printf '%s\n' | awk '{ n += $1 } END { print n }')
echo "tests/fixtures: $bytes bytes" >"$tmp/size"
[ "$bytes" -lt 4000000 ]
tap $? "tests/fixtures is below 4 MB" "$tmp/size"

# ---- files of host/, sim/, hls/ and rtl/: no circles, and folders in layers -------------------------------
BUILD=$build tests/lint/edges.sh host sim hls rtl >"$tmp/edges" 2>"$tmp/edges-bad" && [ -s "$tmp/edges" ]
tap $? "the graph of host/, sim/, hls/ and rtl/" "$tmp/edges-bad"
awk -f tests/lint/circles.awk "$tmp/edges" >"$tmp/circles"
tap $? "no circle of files in host/, sim/, hls/ and rtl/" "$tmp/circles"
awk -f tests/lint/layers.awk tests/lint/layers.txt "$tmp/edges" >"$tmp/layers"
tap $? "folders of host/, sim/, hls/ and rtl/ use those below them alone" "$tmp/layers"
grep -v '^#' tests/lint/layers.txt | while IFS= read -r line; do
    grep -qE "^    ${line//\{/\\{}( |\$)" docs/inside/architecture.md docs/inside/rtl.md || echo "docs/inside/architecture.md or docs/inside/rtl.md lacks the layer: $line"
done >"$tmp/layers-doc"
[ ! -s "$tmp/layers-doc" ]
tap $? "docs/inside/architecture.md and docs/inside/rtl.md have the same layers" "$tmp/layers-doc"
# The judges must be able to see: a circle of three with its symbols, a call upwards, a folder in no layer.
printf '%s\n' 'a/x a/y f' 'a/y b/z z.h' 'b/z a/x g' 'b/z a/x h' 'a/x c/w w' 'c/w c/w self' >"$tmp/seeded"
printf '%s\n' 'circle of 3: a/x a/y b/z' '  a/x -> a/y: f' '  a/y -> b/z: z.h' '  b/z -> a/x: g, h' >"$tmp/want"
awk -f tests/lint/circles.awk "$tmp/seeded" >"$tmp/got" ; [ $? = 1 ] && diff "$tmp/got" "$tmp/want" >"$tmp/seen"
tap $? "a seeded circle is found" "$tmp/seen"
mkdir "$tmp/seeded-tree" && cp -r sim hls "$tmp/seeded-tree/" &&
    printf '\nvoid up(void)\n{\n    (void)vm_run(0, 0);\n}\n' >>"$tmp/seeded-tree/sim/pci/config.c" &&
    printf '\nnamespace\n{\nvoid store()\n{\n}\n} // namespace\nuint32_t down()\n{\n    return core_add(0, 0);\n}\n' >>"$tmp/seeded-tree/hls/millrace_update.cpp" &&
    printf 'uint32_t core_add(uint32_t a, uint32_t b)\n{\n    store();\n    return down() + a + b;\n}\n' >"$tmp/seeded-tree/hls/cores.cpp" &&
    (cd "$tmp/seeded-tree" && "$OLDPWD/tests/lint/edges.sh" sim hls) | awk -f tests/lint/circles.awk >"$tmp/got"
printf '%s\n' 'circle of 2: hls/cores hls/millrace_update' '  hls/millrace_update -> hls/cores: core_add' \
    '  hls/cores -> hls/millrace_update: down' '  sim/pci/config -> sim/pci/link: vm_run' \
    'circle of 5: sim/pci/config sim/pci/fault_dma sim/pci/fault_function sim/pci/link sim/pci/ram' | sort >"$tmp/want"
grep '^circle\|: vm_run$\|hls' "$tmp/got" | sort | diff - "$tmp/want" >"$tmp/seen"
tap $? "seeded circles of sim/ and hls/ are found, by their text" "$tmp/seen"
cp -r rtl "$tmp/seeded-tree/" &&
    sed -i 's|^endmodule|  mr_kvstore #(.N(mr_epi_pkg::LANES)) u_up ();  // mr_seq\n&|' "$tmp/seeded-tree/rtl/quant/mr_quant.sv" &&
    (cd "$tmp/seeded-tree" && "$OLDPWD/tests/lint/edges.sh" rtl) | awk -f tests/lint/layers.awk tests/lint/layers.txt - >"$tmp/got"
printf 'rtl/quant/mr_quant uses rtl/%s, which is above it in tests/lint/layers.txt\n' \
    'attention/mr_kvstore (mr_kvstore)' 'vector/mr_epi_pkg (mr_epi_pkg)' | diff "$tmp/got" - >"$tmp/seen"
tap $? "a seeded module and a package above its folder in rtl/ are found" "$tmp/seen"
printf '%s\n' a b >"$tmp/seeded-layers"
printf '%s\n' 'b/z uses a/x (g), which is above it in tests/lint/layers.txt' \
    'b/z uses a/x (h), which is above it in tests/lint/layers.txt' \
    'c has no layer: give it one in tests/lint/layers.txt and its page' >"$tmp/want"
awk -f tests/lint/layers.awk "$tmp/seeded-layers" "$tmp/seeded" >"$tmp/got" ; [ $? = 1 ] && diff "$tmp/got" "$tmp/want" >"$tmp/seen"
tap $? "a seeded call upwards and a folder without a layer are found" "$tmp/seen"
# ---- files of the driver: in the layers of its Kbuild, so no circle ---------------------------------------
tests/lint/driver-layers.sh >"$tmp/driver" 2>&1
tap $? "files of driver/ use those of the layers below them alone" "$tmp/driver"
mkdir "$tmp/seeded-driver" && cp driver/*.[ch] driver/Kbuild "$tmp/seeded-driver/" &&
    printf 'static void up(struct millrace_context *ctx)\n{\n\tmillrace_context_down(ctx);\n}\n' >>"$tmp/seeded-driver/card.c"
! tests/lint/driver-layers.sh "$tmp/seeded-driver" >"$tmp/seen" 2>&1 && grep -q '^circle of 2: card context$' "$tmp/seen" &&
    grep -q '^card uses context (millrace_context_down), which stands behind it' "$tmp/seen"
tap $? "a seeded call upwards in the driver is found" "$tmp/seen"
# ---- what training must not change ------------------------------------------------------------------------
if [ "$how" != quick ]; then
    tests/lint/cells.sh 2>"$tmp/cells.err" | diff - tests/cells.tsv >"$tmp/cells"
    cat "$tmp/cells.err" >>"$tmp/cells"
    [ ! -s "$tmp/cells" ]
    tap $? "cells of tiny are those of tests/cells.tsv (tests/lint/cells.sh --write renews it)" "$tmp/cells"
fi
# ---- the Python binding ---------------------------------------------------------------------------------
awk -f tests/lint/binding.awk host/include/millrace.h host/python/millrace.py >"$tmp/binding"
[ ! -s "$tmp/binding" ]
tap $? "structures of host/python/millrace.py are those of millrace.h" "$tmp/binding"
sed 's/("verify", c_bool), ("text", c_bool)/("text", c_bool), ("verify", c_bool)/' host/python/millrace.py >"$tmp/millrace.py"
[ "$(awk -f tests/lint/binding.awk host/include/millrace.h "$tmp/millrace.py" | grep -c '^struct mr_load_options has')" = 1 ]
tap $? "a seeded change of their order is found"
# ---- rules of commands ---------------------------------------------------------------------------------
tests/lint/rules.sh 2>&1 | diff docs/inside/commands.md - >"$tmp/rules"
tap $? "docs/inside/commands.md has the rules of device.def (make rules)" "$tmp/rules"

# ---- prose, links and commands of the pages -----------------------------------------------------------
pages=$(docs/site/pages.sh)
# shellcheck disable=SC2086 # the pages are words
awk -v words=tests/lint/prose.words -f tests/lint/prose.awk $pages >"$tmp/w"
rule columns "no line of a page has more than 100 columns, tables and code apart"
rule sentences "sentences have 35 words at most on a page's average"
rule words "no word of tests/lint/prose.words"
rule commands "commands stand in console blocks, which tests/docs/run.sh runs"
rule lists "no line of a paragraph begins a list"
printf '%s\n' '# Heading' '' "$(printf 'word %.0s' {1..36})end of a long sentence that is far too wide." '' \
    '    make all' '' 'In order to see it.' '' 'Of the codes E' '- 3, E - 2' '' '```console' \
    "\$ echo $(printf 'word %.0s' {1..20})" '```' >"$tmp/fault.md"
awk -v words=tests/lint/prose.words -f tests/lint/prose.awk "$tmp/fault.md" | cut -f1 | sort >"$tmp/f"
printf '%s\n' columns columns commands lists words | diff "$tmp/f" - >"$tmp/fd" &&
    awk -v words=tests/lint/prose.words -f tests/lint/prose.awk <(head -3 "$tmp/fault.md") | grep -q '^sentences'
tap $? "these five rules find seeded faults" "$tmp/fd"
awk -f tests/lint/links.awk $(git ls-files '*.md' 2>/dev/null || find . -name '*.md' -not -path './build/*') >"$tmp/links"
[ ! -s "$tmp/links" ]
tap $? "links lead to files and headings that are there" "$tmp/links"
numbers() { awk '!/^\| [0-9]+\. /{ if ($0 !~ /^\|/) n = 0; next } $2 + 0 != ++n { print FILENAME ": " $2 " " $3 " is number " n; n = $2 + 0 }' "$@"; }
numbers docs/README.md >"$tmp/numbers"
[ ! -s "$tmp/numbers" ]
tap $? "the pages of a path in docs/README.md are numbered" "$tmp/numbers"
printf '| 1. a |\n| 2. b |\n\n| 1. c |\n| 1. d |\n' >"$tmp/fault.md"
[ "$(numbers "$tmp/fault.md" | wc -l)" = 1 ]
tap $? "a number that is there twice is found"
for f in docs/pictures/*.txt; do
    awk -f docs/pictures/draw.awk "$f" | cmp - docs/*/"$(basename "$f" .txt).svg" || echo "make pictures draws it anew"
done >"$tmp/pictures" 2>&1
awk -F, -f tests/train/curves.awk docs/results/learning.txt | cmp - docs/inside/learning.svg >>"$tmp/pictures" 2>&1
awk -F, -v reference=PyTorch -f tests/train/curves.awk docs/results/scratch.txt | cmp - docs/train/scratch.svg >>"$tmp/pictures" 2>&1
awk -F, -v reference=PyTorch -v what="accuracy, %" -f tests/train/curves.awk docs/results/finetune.txt | cmp - docs/use/finetune.svg >>"$tmp/pictures" 2>&1
awk -F' *[|] *' -f tests/train/scale.awk docs/inside/performance.md | cmp - docs/inside/scale.svg >>"$tmp/pictures" 2>&1
[ ! -s "$tmp/pictures" ]
tap $? "pictures are those of docs/pictures" "$tmp/pictures"
printf '%s\n' '# One' '[a](#one) [b](#two) [c](nowhere.md)' '## Same' '## Same' >"$tmp/fault.md"
[ "$(awk -f tests/lint/links.awk "$tmp/fault.md" | wc -l)" = 3 ]
tap $? "a link to a file or heading that is not there is found, and a section that is there twice"

# ---- parameters -----------------------------------------------------------------------------------------
# BLAS, and what the kernel of a card is called with have more.
mapfile -t c < <(find host sim driver hls tests -name '*.[ch]' -o -name '*.cpp')
awk -f tests/lint/parameters.awk "${c[@]}" | grep -vE '^(sgemm|sgemv|millrace_update|mr_update_kernel) ' >"$tmp/many"
[ ! -s "$tmp/many" ]
tap $? "no function has more than 8 parameters, kernels apart" "$tmp/many"
printf '%s\n' 'static int nine(int a, int b, int c, int d, int e, int f, int g,' '                int (*h)(int, int), int i)' '{' \
    'int eight(int a, int b, int c, int d, int e, int f, int g, int (*h)(int, int));' >"$tmp/fault.c"
[ "$(awk -f tests/lint/parameters.awk "$tmp/fault.c")" = "nine 9 $tmp/fault.c:1" ]
tap $? "a seeded function of nine parameters is found" "$tmp/fault.c"

# ---- layout of the C files ----------------------------------------------------------------------------
if command -v clang-format-19 >/dev/null; then
    : >"$tmp/c"
    while IFS= read -r f; do
        clang-format-19 --dry-run -Werror "$f" >/dev/null 2>&1 || echo "$f: clang-format-19 -i $f"
    done < <(find host sim hls -name '*.[ch]' -o -name '*.cpp' | sort) >>"$tmp/c"
    [ ! -s "$tmp/c" ]
    tap $? "clang-format: host/, sim/, hls/" "$tmp/c"
else
    echo "# clang-format-19 is not installed: the layout of host/, sim/ and hls/ is not checked"
fi

echo "1..$n"
exit $((bad != 0))
