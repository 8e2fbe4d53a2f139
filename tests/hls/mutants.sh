#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Do the tests notice a fault in hls/? Each mutant is one changed line of a kernel or of its list of
# jobs (host/card), compiled with two lanes; the test of tests/unit/test_hls_update.c beside it must
# be green without it and red with it. Prints TAP.
# usage, from the repository's root: tests/hls/mutants.sh [BUILD_DIR [WORD]]
set -u
library=${1:-build}
build=$library/hls-mutants
cc=${CC:-gcc} cxx=${CXX:-g++}
flags=(-std=c17 -D_GNU_SOURCE -O1 -w -ffp-contract=off -Ihost -Ihost/include "-I$library/gen" -Itests -Itests/unit)
for lanes in 1 4 16; do flags+=("-Dmillrace_update_$lanes=millrace_update_2"); done
libs=("$library/libmillrace.a" -lcmocka -ljansson -lpcre2-8 -lxxhash -lzip -ldl -lpthread -lm)
numbers=numbers_are_those_of_the_rules
steps=steps_of_fixtures_are_the_stores
several=steps_of_several_patches_are_the_stores
segments=steps_of_segments_are_the_stores

# "name|file|sed expression|test"
mutants=(
    "arithmetic: ties are rounded up|hls/datapath.h|s/half \&\& (more .. (sig \& 1U)) ? 1U : 0U;\$/half ? 1U : 0U;/|$numbers"
    "arithmetic: a carry of rounding is lost|hls/datapath.h|s/e += carry ? 1 : 0;/;/|$numbers"
    "arithmetic: subnormal results stay|hls/datapath.h|s/e <= 0 ? 0U/e < 0 ? 0U/|$numbers"
    "arithmetic: any NaN stays as it is|hls/datapath.h|s/size > INFINITE ? QNAN/size > INFINITE ? a/|$numbers"
    "arithmetic: a sum forgets what it shifts out|hls/datapath.h|s/cut .= (apart/cut += 0 * (apart/|$numbers"
    "arithmetic: infinity less infinity|hls/datapath.h|s/(minus \&\& exponent(y) == 255) ? QNAN/(minus \&\& false) ? QNAN/|$numbers"
    "arithmetic: a quotient without its remainder|hls/datapath.h|s/(quotient \& 1U) != 0, rest != 0/(quotient \& 1U) != 0, false/|$numbers"
    "arithmetic: roots of odd powers|hls/datapath.h|s/(power \& 1) ? 26 : 25/(power \& 1) ? 25 : 25/|$numbers"
    "arithmetic: gradients lose their last bit|hls/datapath.h|s/(all \& 0x7FU) != 0/(all \& 0x3FU) != 0/|$numbers"
    "arithmetic: the second moment forgets as the first|hls/datapath.h|s/multiply(old.v, f.keep2)/multiply(old.v, f.keep1)/|$numbers"
    "blocks: elements of 128|hls/datapath.h|s/size > 127U ? 127U/size > 128U ? 128U/|$steps"
    "blocks: codes of the old weights|hls/millrace_update.cpp|s/exponent(now\.w)/exponent(old.w)/|$steps"
    "blocks: both halves of a row have one code|hls/millrace_update.cpp|s/b = col \/ BLOCK + c % 2;/b = col \/ BLOCK;/|$steps"
    "streams: headers begin with the last matrix'|hls/streams.h|s/ code = 0;/ ;/|$steps"
    "streams: vectors are in the first channel|hls/streams.h|s/j % channels \* channel + to\.at + (uint64_t)(i \/ 16) \* to\.piece;/to.at + (uint64_t)(i \/ 16) * to.piece;/|$steps"
    "streams: codes behind the last block|hls/streams.h|s/k \/ 4 < blocks ? s\.code\[g\]\[k\] : 0/s.code[g][k]/|$several"
    "streams: a second patch stands on the first|host/card/places.c|s/\.first = (uint32_t)first \/ 4/.first = 0/|$several"
    "streams: codes of all segments together|host/card/places.c|s/s\.top = (uint32_t)(segment \* it\.cols)/s.top = 0/|$segments"
    "jobs: everything decays|host/card/jobs.c|s/\.decays = mr_update_decays(.*)};/.decays = 1};/|$steps"
)

# Builds the program in a directory, of the sources in its hls/ and host/card/.
make_test() {
    "$cxx" -std=c++14 -O1 -w -DMILLRACE_LANES=2 -Dmillrace_update=millrace_update_2 -c \
        -o "$1/kernel.o" "$1/hls/millrace_update.cpp" &&
        "$cc" "-I$1" "-I$1/host" "${flags[@]}" -o "$1/update" "$build/update.o" "$build/one.o" \
            "$1/host/card/jobs.c" "$1/host/card/places.c" "$1/kernel.o" "${libs[@]}"
}
run_test() { # directory test
    ONE_TEST=$2 CMOCKA_MESSAGE_OUTPUT=TAP MILLRACE_THREADS=1 timeout 600 "$1/update" >"$1/log" 2>/dev/null
    grep -qE "^ok [0-9]+ - $2\$" "$1/log" && return 0
    grep -qE "^not ok [0-9]+ - $2\$" "$1/log" && return 1
    return 2
}
copy() { mkdir -p "$1/host" && cp -r hls "$1/" && cp -r host/card "$1/host/"; }
bail() {
    echo "Bail out! $1"
    exit 1
}

rm -rf "$build" && copy "$build/none" || bail "cannot make $build"
"$cc" "${flags[@]}" -I. -c -o "$build/update.o" tests/unit/test_hls_update.c &&
    "$cc" "${flags[@]}" -c -o "$build/one.o" tests/tools/one-test.c &&
    make_test "$build/none" || bail "the unchanged test does not build"
for test in "$numbers" "$steps" "$several" "$segments"; do
    run_test "$build/none" "$test" || bail "without a mutant $test fails"
done

number=0 failed=0
for mutant in "${mutants[@]}"; do
    IFS='|' read -r name file expression test <<<"$mutant"
    [[ $name = *"${2:-}"* ]] || continue
    number=$((number + 1))
    dir=$build/$number why=
    copy "$dir" || bail "cannot make $dir"
    sed "$expression" "$file" >"$dir/$file"
    if cmp -s "$dir/$file" "$file"; then
        why="the expression changes nothing in $file; bring it up to date"
    elif ! make_test "$dir"; then
        why="the mutant does not build"
    else
        run_test "$dir" "$test"
        case $? in
        0) why="the tests do not notice" ;;
        2) why="the program died" ;;
        esac
    fi
    echo "$([ -z "$why" ] && echo ok || echo not ok) $number - mutant $name is caught by $test"
    [ -z "$why" ] || { echo "# $why"; failed=1; }
done
echo "1..$number"
exit $((failed || !number))
