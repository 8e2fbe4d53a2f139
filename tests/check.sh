#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What to run before a commit, in about three minutes on a warm tree: the cheap half of lint, the unit tests, benches and
# end-to-end suites whose sources differ from BASE, and a text on sim:tiny,check. Suites are run from the narrowest to the
# widest; those that would begin after CHECK_SECONDS (180) are listed as not run.
# usage: [BUILD=build] [JOBS=2] [BASE=REV] tests/check.sh (from the root; make check)
#        tests/check.sh --plan FILE...   only names the suites that a change of these files concerns
# BASE is by default where this branch left origin/main, or the last commit where there is no such branch.
set -uo pipefail
build=${BUILD:-build} jobs=${JOBS:-2} limit=${CHECK_SECONDS:-180}
dir=$build/check
mkdir -p "$dir"

# Objects of the sanitized library that a file goes into, by the names that they have in their archive.
objects_of() { # file
    case $1 in
    *.c) basename "$1" .c | sed 's/$/.o/' ;;
    *) grep -lrF --include='*.d' " $1" "$build/san" 2>/dev/null | sed 's|.*/||; s/\.d$/.o/' ;;
    esac
}

# "weight<TAB>suite": how much else a suite depends on, 0 where its own source differs.
concerned() { # files..
    local f name
    for f in "$@"; do
        case $f in
        tests/unit/*.c) echo "0	unit-$(basename "$f" .c)" ;;
        tests/e2e/*.sh) echo "0	e2e-$(basename "$f" .sh)" ;;
        tests/serve/* | host/serve/*) echo "40	serve-serve" ;;
        tests/xrt/* | sim/xrt/*) echo "40	xrt-generate" ;;
        driver/*) printf '30\tdriver-uapi\n50\tdriver-check\n60\tdriver\n' ;;
        *.md) docs/site/pages.sh | tr ' ' '\n' | grep -qxF "$f" && echo "50	docs" ;;
        esac
        case $f in
        host/cli/*.c) # suites that call the command
            name=$(basename "$f" .c)
            grep -lE "(MILLRACE\"?|millrace) ${name%%_*}\b" tests/e2e/*.sh | sed 's|.*/|20	e2e-|; s/\.sh$//' ;;
        esac
        case $f in
        host/*.[ch] | sim/memory/*.[ch])
            objects_of "$f" | sort -u | while read -r o; do
                grep -lF ")$o" "$build"/unit/*.parts 2>/dev/null | while read -r parts; do
                    printf '%d\tunit-%s\n' $((1 + $(wc -l <"$parts"))) "$(basename "$parts" .parts)"
                done
            done ;;
        esac
        # What a bench or a test was made from
        grep -lF " $f" "$build"/rtl/*/tb.d 2>/dev/null | sed 's|/tb.d$||; s|.*/|5	rtl-|'
        grep -lF " $f" "$build"/unit/*.d 2>/dev/null | sed 's|.*/|2	unit-|; s/\.d$//'
    done | sort -n | awk -F'\t' '!seen[$2]++'
}

if [ "${1:-}" = --plan ]; then
    shift
    concerned "$@" | cut -f2
    exit
fi

start=$SECONDS failed=0
base=${BASE:-$(git merge-base HEAD origin/main 2>/dev/null || echo HEAD)}
git rev-parse -q --verify "$base^{commit}" >/dev/null ||
    { echo "make check: BASE=$base is no revision of this repository" >&2; exit 1; }
mapfile -t files < <({ git diff --name-only "$base"; git ls-files --others --exclude-standard; } | sort -u)
echo "check: ${#files[@]} files differ from $base; libraries, program and sim:tiny are built first"
make --no-print-directory -s -j"$jobs" all view-tiny "$build/test-list" || exit 1

run() { # name command
    printf '%s\t%s\n' "$1" "$2" >"$dir/list"
    tests/run.sh "$dir/list" "$dir/logs" 1 >"$dir/out" 2>&1 || failed=$((failed + 1))
    grep -vE '^processor time|^[0-9]+ passed' "$dir/out"
}
run lint-quick "BUILD=$build bash tests/lint/run.sh quick"
run generate "{ $build/millrace generate models/demo 'And' -d sim:tiny,check -n 2 && echo ok 1 - generate; } || echo not ok 1 - generate"
left=()
while read -r suite; do
    command=$(awk -F'\t' -v s="$suite" '$1 == s { print $2 }' "$build/test-list")
    if [ -z "$command" ] || [ $((SECONDS - start)) -ge "$limit" ]; then
        left+=("$suite")
        continue
    fi
    [ "$suite" != docs ] || command+=" $(printf '%s\n' "${files[@]}" | grep -xF "$(docs/site/pages.sh | tr ' ' '\n')" | tr '\n' ' ')"
    case $suite in
    unit-*) made=$build/unit/${suite#unit-} ;;
    rtl-*) made=$build/rtl/${suite#rtl-}/tb ;;
    *) made=$build/millrace ;;
    esac
    if make --no-print-directory -s -j"$jobs" "$made" >"$dir/make.log" 2>&1; then
        run "$suite" "$command"
    else
        tail -20 "$dir/make.log"
        echo "$suite: does not build"
        failed=$((failed + 1))
    fi
done < <(concerned "${files[@]}" | cut -f2)
[ ${#left[@]} = 0 ] || echo "not run (make test has them): ${left[*]}"
echo "check: $failed failed, ${#left[@]} not run, $((SECONDS - start)) s"
[ $failed = 0 ]
