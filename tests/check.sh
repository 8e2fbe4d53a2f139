#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What to run before a commit, in about three minutes on a warm tree: the cheap half of lint, the unit tests, benches and
# end-to-end suites whose sources differ from BASE, and a text on sim:tiny,check. Suites are run from the narrowest to the
# widest; those that would begin after CHECK_SECONDS (180) are listed as not run.
# usage: [BUILD=build] [JOBS=2] [BASE=REV] tests/check.sh (from the root; make check)
#        tests/check.sh --plan FILE...   only names the suites that a change of these files concerns, and what is not known
# BASE is by default where this branch left origin/main, or the last commit where there is no such branch.
set -uo pipefail
build=${BUILD:-build} jobs=${JOBS:-2} limit=${CHECK_SECONDS:-180}
dir=$build/check
[ "${1:-}" != --plan ] || { dir=$(mktemp -d) && trap 'rm -rf "$dir"' EXIT; } # beside a run
mkdir -p "$dir"

# Objects of the sanitized library that a file goes into, by the names that they have in their archive.
objects_of() { # file
    case $1 in
    *.c) basename "$1" .c | sed 's/$/.o/' ;;
    *) grep -lrF --include='*.d' " $1" "$build/san" 2>/dev/null | sed 's|.*/||; s/\.d$/.o/' ;;
    esac
}

# Variants of benches: "BENCH@VARIANT its line of tests/rtl/*/BENCH.txt ".
variants() { awk 'NF && !/^#/ { split(FILENAME, p, "[/.]"); print p[4] "@" $1, $0 " " }' tests/rtl/*/*.txt; }
# What was never built has no list of what it is made from: a bench goes by that line, a unit test by the
# headers that it includes.
never_built() { # rtl or unit: names
    local name
    if [ "$1" = rtl ]; then
        variants | while read -r name _; do [ -e "$build/rtl/$name/tb.d" ] || echo "$name"; done
    else
        for name in tests/unit/*/test_*.c; do name=$(basename "$name" .c); [ -e "$build/unit/$name.parts" ] || echo "$name"; done
    fi
}
unbuilt() { # file
    case $1 in
    rtl/spec/* | *.svh | tests/rtl/build.sh | tests/rtl/*.h) never_built rtl | sed 's/^/6	rtl-/' ;;
    tests/rtl/*.cpp) never_built rtl | sed -n "s,^$(basename "$1" .cpp)@.*,5	rtl-&,p" ;;
    *.sv) variants | grep -F " $1 " | cut -d' ' -f1 | grep -xFf <(never_built rtl) | sed 's/^/6	rtl-/' ;;
    host/*.[ch] | tests/unit/*.h)
        local header=${1#host/} && header=${header#tests/}
        never_built unit | while read -r t; do grep -qE "^#include \"(host/)?${header%.?}.h\"" tests/unit/*/"$t.c" && echo "3	unit-$t"; done ;;
    esac
}

suite_of() { printf '%s\n' "$@" | sed -f tests/e2e/name.sed; } # end-to-end scripts
# "weight<TAB>suite": how much else a suite depends on, 0 where its own source differs.
concerned_by() { # file
    local f=$1 name
    name=$(basename "$f") name=${name%.*}
    case $f in
    tests/unit/*.c) echo "0	unit-$name" ;;
    tests/e2e/*/*/*) echo "0	$(suite_of "${f%/*}.sh")" ;; # what a script reads lies in a folder of its name
    tests/e2e/*/*) echo "0	$(suite_of "$f")" ;;
    tests/rtl/*.txt) variants | cut -d' ' -f1 | sed -n "s,^$name@.*,5	rtl-&,p" ;;
    tests/check.sh | tests/tools/check.sh | tests/e2e/name.sed) echo "0	check" ;;
    tests/mutants/*) echo "0	mutants-apply" && tests/mutants/run.sh --folders | sed 's|.*/||; s|^|70	mutants-|' ;;
    tests/bench/instructions.sh) echo "0	bench-instructions" ;;
    tests/bench/suite/*) echo "0	unit-suite" ;;
    tests/fuzz/planted.sh) echo "0	planted-apply" ;;
    tests/fuzz/*) echo "20	fuzz-corpus" ;;
    tests/lint/*) echo "60	lint" ;;
    tests/programs/rules.sh) echo "0	programs-rules" ;;
    tests/programs/* | rtl/spec/*) printf '30\tprograms-rules\n40\tprograms-stalls\n60\tprograms\n60\tprograms-2\n' ;;
    tests/formal/* | */mr_read*.sv) echo "30	reader-progress" ;;
    tests/docs/search.sh | docs/site/*) echo "0	docs-search" ;;
    tests/docs/*) printf '0\tdocs-runner\n50\tdocs\n' ;;
    tests/serve/load*) echo "40	serve-load" ;;
    tests/serve/* | host/serve/*) echo "40	serve-serve" ;;
    tests/xrt/lib.sh | tests/xrt/*.c | sim/xrt/*) printf '40\txrt-%s\n' generate errors library update package ;;
    tests/xrt/*.sh) echo "20	xrt-$name" ;;
    tests/driver/abi/*) echo "0	driver-uapi" ;;
    tests/driver/check.sh | tests/driver/package.sh) echo "20	driver-$name" ;;
    tests/driver/* | sim/pci/*) echo "60	driver" ;;
    driver/*) printf '30\tdriver-uapi\n50\tdriver-check\n60\tdriver\n' ;;
    tests/simlib/*) echo "20	unit-test_simlib" ;;
    sim/verilator/*) echo "20	unit-test_sim" ;;
    examples/train/*) echo "20	e2e-train-examples" ;;
    examples/*.sh | examples/*.c) suite_of tests/e2e/examples/*.sh | sed 's/^/20	/' ;;
    docs/*/*.svg | docs/pictures/* | docs/results/* | .clang-format) echo "0	lint-quick" ;;
    *.md) echo "0	lint-quick" && docs/site/pages.sh | tr ' ' '\n' | grep -qxF "$f" && echo "50	docs" ;;
    esac
    case $f in
    rtl/*.sv | rtl/*.svh | rtl/*.def | rtl/*.awk | hls/*) echo "80	lint" ;;
    host/cli/*.c) # suites of its folder, and that call the command
        local folder=${f%/*}
        folder=${folder##*/}
        { compgen -G "tests/e2e/$folder/*.sh"; grep -lE "(MILLRACE\"?|millrace) (${name%%_*}|$folder)\b" tests/e2e/*/*.sh; } |
            sed -f tests/e2e/name.sed | sed 's/^/20	/' ;;
    esac
    case $f in
    host/*.[ch] | sim/memory/*.[ch] | tests/reference/*.[ch])
        objects_of "$f" | sort -u | while read -r o; do
            grep -lF ")$o" "$build"/unit/*.parts 2>/dev/null | while read -r parts; do
                printf '%d\tunit-%s\n' $((1 + $(wc -l <"$parts"))) "$(basename "$parts" .parts)"
            done
        done ;;
    esac
    case $f in
    rtl/* | host/* | hls/* | tests/reference/*) # mutants of it: those that run, and those that only have to apply
        if grep -qF "	$f	" tests/mutants/table.tsv; then
            echo "10	mutants-apply"
            tests/mutants/run.sh --folders | grep -xF "${f%/*}" | sed 's|.*/||; s|^|70	mutants-|'
        fi
        grep -qF " $f " tests/fuzz/planted.sh && echo "10	planted-apply" ;;
    esac
    # What a bench or a test was made from
    grep -lF " $f" "$build"/rtl/*/tb.d 2>/dev/null | sed 's|/tb.d$||; s|.*/|5	rtl-|'
    grep -lF " $f" "$build"/unit/*.d 2>/dev/null | sed 's|.*/|2	unit-|; s/\.d$//'
    unbuilt "$f"
}
# Into $dir: suites, from the narrowest to the widest; unknown, files that none is known for; never, suites that were never
# built and may be concerned besides.
concerned() { # files..
    : >"$dir/unknown"
    for f in "$@"; do
        concerned_by "$f" >"$dir/of-file"
        [ -s "$dir/of-file" ] || echo "$f" >>"$dir/unknown"
        cat "$dir/of-file"
    done | sort -n | awk -F'\t' '!seen[$2]++ { print $2 }' >"$dir/suites"
    {
        ! grep -qE '^(host|sim/memory|tests/unit)/.*\.[ch]$' <(printf '%s\n' "$@") || never_built unit | sed 's/^/unit-/'
        ! grep -qE '^host/(cmodel|include)/' <(printf '%s\n' "$@") || never_built rtl | sed 's/^/rtl-/'
    } | grep -vxFf "$dir/suites" >"$dir/never"
}
blind() {
    [ ! -s "$dir/unknown" ] || echo "no suite known for: $(tr '\n' ' ' <"$dir/unknown")"
    [ ! -s "$dir/never" ] || echo "never built here, so not known whether concerned: $(grep -c ^unit- "$dir/never") unit tests," \
        "$(grep -c ^rtl- "$dir/never") benches (make unit-tests rtl-benches)"
}

if [ "${1:-}" = --plan ]; then
    shift
    concerned "$@"
    cat "$dir/suites"
    blind
    exit
fi

start=$SECONDS failed=0
base=${BASE:-$(git merge-base HEAD origin/main 2>/dev/null || echo HEAD)}
git rev-parse -q --verify "$base^{commit}" >/dev/null ||
    { echo "make check: BASE=$base is no revision of this repository" >&2; exit 1; }
mapfile -t files < <({ git diff --name-only "$base"; git ls-files --others --exclude-standard; } | sort -u)
echo "check: ${#files[@]} files differ from $base; libraries, program and sim:tiny are built first"
make --no-print-directory -s -j"$jobs" all view-tiny "$build/test-list" "$build/mutant-list" || exit 1

run() { # name command
    printf '%s\t%s\n' "$1" "$2" >"$dir/list"
    tests/run.sh "$dir/list" "$dir/logs" 1 >"$dir/out" 2>&1 || failed=$((failed + 1))
    grep -vE '^processor time|^[0-9]+ passed' "$dir/out"
}
run lint-quick "BUILD=$build bash tests/lint/run.sh quick"
run generate "{ $build/millrace generate models/demo 'And' -d sim:tiny,check -n 2 && echo ok 1 - generate; } || echo not ok 1 - generate"
left=()
concerned "${files[@]}"
while read -r suite; do
    [ "$suite" != lint-quick ] || continue
    command=$(awk -F'\t' -v s="$suite" '$1 == s { print $2 }' "$build/test-list" "$build/mutant-list")
    if [ -z "$command" ] || [ $((SECONDS - start)) -ge "$limit" ]; then
        left+=("$suite")
        continue
    fi
    [ "$suite" != docs ] || command+=" $(printf '%s\n' "${files[@]}" | grep -xF "$(docs/site/pages.sh | tr ' ' '\n')" | tr '\n' ' ')"
    # Programs that its command names, and what else it needs beside them.
    made=$(grep -oE "(^|[= ])$build/(san/millrace|unit/|rtl/|programs/|fuzz/)[^ ]*" <<<"$command" | sed 's/^[= ]//')
    case $suite in
    e2e-trace | e2e-train-lora) made+=" $build/sim/tinyt/libmillrace-sim-tinyt.so view-tinyt" ;;
    e2e-bench | e2e-make-demo-train | e2e-train | e2e-train-engines | e2e-train-labels)
        made+=" $build/sim/tinyt/libmillrace-sim-tinyt.so"
        ;;
    xrt-*) made+=" xrt-tests" ;;
    driver*) made+=" driver-tests" ;;
    esac
    # shellcheck disable=SC2086 # targets are words
    if make --no-print-directory -s -j"$jobs" $build/millrace $made >"$dir/make.log" 2>&1; then
        run "$suite" "$command"
    else
        tail -20 "$dir/make.log"
        echo "$suite: does not build"
        failed=$((failed + 1))
    fi
done <"$dir/suites"
[ ${#left[@]} = 0 ] || echo "not run (make test or test-full has them): ${left[*]}"
blind
echo "check: $failed failed, ${#left[@]} not run, $(cat "$dir/unknown" "$dir/never" | wc -l) not known, $((SECONDS - start)) s"
[ $failed = 0 ]
