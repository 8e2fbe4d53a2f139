#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Do the tests notice a fault? Each mutant of tests/mutants/table.tsv is one changed line of the RTL or the host, built in
# a copy of the sources; the test named beside it must be green without it and red with it. TAP on stdout.
# usage: [BUILD=build] tests/mutants/run.sh [WORD]   (from the root; WORD: only mutants with it in
# their name, or whose catcher begins with it; without, all but those that --quick or make test-hls runs)
#        tests/mutants/run.sh --quick FOLDER [WORD]   (of files in FOLDER, those of tests.tsv, which take seconds)
#        tests/mutants/run.sh --slow FOLDER [WORD]   (of files in FOLDER, the others)
#        tests/mutants/run.sh --folders [--slow]   (of those that --quick or --slow runs, that of most first)
#        tests/mutants/run.sh --check   (builds nothing: does each still apply, and has its catcher?)
# A mutant that does not change its file, or does not build, has not been caught.
set -uo pipefail
check='' mode=--slow folder='' only=${1:-}
declare -A tests # of a unit test, those that must notice
while IFS=$'\t' read -r name names; do tests[$name]=$names; done < <(grep -v '^#' tests/mutants/tests.tsv)
# Those that need XLS; make test-hls has it, and runs them.
is_xls() { [ "$1" = xls ]; }
is_quick() { # catcher
    local by=${1%@*}
    [[ $by = unit:* && -n ${tests[${by#unit:}]:-} ]]
}
# Of those that a run without WORD has.
is_wanted() { # catcher
    if [ "$mode" = --quick ]; then is_quick "$1"; else ! is_quick "$1" && ! is_xls "$1"; fi
}
case $only in
--check) check=yes only='' ;;
--quick | --slow) mode=$only folder=$2 only=${3:-} ;;
--folders)
    mode=${2:---quick}
    grep -v '^#' tests/mutants/table.tsv | while IFS=$'\t' read -r _ file _ by _; do ! is_wanted "$by" || echo "${file%/*}"; done |
        sort | uniq -c | sort -rn | sed 's/^ *[0-9]* //'
    exit
    ;;
esac
build=$(realpath "${BUILD:-build}")
cxx=${SIM_CXX:-$(command -v clang++-19 || echo g++)}
cc=${CC:-gcc}
python=$build/hls/venv/bin/python
dir=$build/mutants/${folder:+${mode#--}-}${folder//\//-}
tree=$dir/tree
cli_libs=${CLI_LIBS:--ledit -lmicrohttpd -lhdf5_serial -lzstd -lyaml}
libs="-lcmocka -ljansson -lpcre2-8 -lxxhash -lzip -ldl -lpthread -lm -lhdf5_serial -lzstd -lyaml"
cflags="-std=c17 -D_GNU_SOURCE -O1 -ffp-contract=off -Ihost -Ihost/include -I$build/gen -I. -Itests -w"
# A mutant that hangs is caught: it has ten times the processor's time of the test without it, and a minute, however
# long that takes. One that hangs asleep, and the test without a mutant, have so many seconds.
limit=${MUTANT_TIMEOUT:-1800}
fuzz_cases=${FUZZ_CASES:-1000}
if [ -z "$check" ]; then
    rm -rf "$tree"
    mkdir -p "$tree/build/gen" "$tree/tests/synth"
    cp -r rtl host hls sim driver Makefile "$tree/"
    cp -r tests/rtl tests/hls tests/unit tests/programs tests/driver tests/reference tests/mutants tests/tests.mk "$tree/tests/"
    cp tests/synth/dsp48e2.v "$tree/tests/synth/"
    is_xls "$only" || cp -rp "$build"/gen/* "$tree/build/gen/"
    [ "$mode" = --quick ] || is_xls "$only" || { mkdir -p "$tree/build/rtl" && cp -p "$build/rtl/runtime.a" "$tree/build/rtl/"; }
    # A mutant may leave a signal unused or of the wrong width: that alone must not stop its build.
    sed -i 's/ params=/ params=-Wno-fatal /' "$tree"/tests/rtl/*/*.txt
fi
n=0 bad=0
declare -A green work

spent() { awk -v hz="$(getconf CLK_TCK)" '{ sub(/.*\) /, ""); print int(($14 + $15) / hz) }' /proc/$$/stat; } # by children

tap() { # status name
    n=$((n + 1))
    if [ "$1" = 0 ]; then echo "ok $n - $2"; else echo "not ok $n - $2"; bad=$((bad + 1)); fi
}

catcher() { # how a test is called in the test list
    case $1 in
    rtl:*) echo "rtl-${1#rtl:}" ;;
    unit:*) echo "unit-test_${1#unit:}" ;;
    gates) echo "unit-test_clk_gate" ;;
    tinyt*) echo "unit-test_train_rtl" ;;
    programs | programs,train | programs-c) echo "programs" ;;
    programs,check) echo "programs-view" ;;
    xls) echo "hls-cores" ;;
    sim*) echo "selftest on sim:tiny${1#sim}" ;;
    *) echo "selftest on sim:tiny" ;;
    esac
}

has_catcher() { # catcher
    local b=${1#*:}
    case $1 in
    rtl:*) grep -qs "^${b#*@} " tests/rtl/*/"${b%@*}.txt" ;;
    unit:*) compgen -G "tests/unit/*/test_$b.c" >/dev/null ;;
    xls) [ -e tests/hls/tb.cpp ] ;;
    esac
}

# What unit tests need and the library has not, once.
rest() {
    local source objects=()
    [ ! -e build/rest.a ] || return 0
    for source in tests/mutants/one-test.c tests/reference/*.c; do
        objects+=("build/$(basename "$source" .c)-rest.o")
        $cc $cflags -c -o "${objects[-1]}" "$source" || return 1
    done
    ar qcs build/rest.a "${objects[@]:1}" "$build"/obj/host/{data,config}/*.o "$build/obj/host/cli/data/train_data.o"
}
# A unit test with the mutated file, if there is one, in front of the library: where it finds the simulators. Its own
# source is compiled anew for a header.
make_unit() { # test [file]
    local flags=$cflags source object sources=(tests/unit/*/test_$1.c) objects=(build/one-test-rest.o) also=
    case $1 in
    driver_check)
        flags+=" -Itests/driver/kernel"
        sources+=(driver/check.c driver/scrub.c)
        ;;
    hls_update)
        flags+=" -Dmillrace_update_1=millrace_update_2 -Dmillrace_update_4=millrace_update_2 -Dmillrace_update_16=millrace_update_2"
        ${CXX:-g++} -std=c++14 -O1 -w -DMILLRACE_LANES=2 -Dmillrace_update=millrace_update_2 -c -o build/kernel.o \
            hls/millrace_update.cpp || return 1
        objects+=(build/kernel.o)
        ;;
    esac
    case ${2:-} in
    host/*.c | tests/*.c) sources+=("$2") ;;
    host/*.h) also=header- && sources+=("$(grep -l "^#include \"${2#host/}\"" "${2%/*}"/*.c | tail -1)") ;;
    esac
    rest || return 1
    for source in "${sources[@]}"; do
        object=build/$also${source//\//-}.o
        [ -z "$also" ] && [ -e "$object" ] && [[ $source = tests/unit/* ]] || $cc $flags -c -o "$object" "$source" || return 1
        objects+=("$object")
    done
    $cc -o "$dir/test" "${objects[@]}" build/rest.a "$build/libmillrace.a" $libs
}
run_unit() { # test; 1: a test of it fails, 127: it died
    local name
    [ -n "${tests[$1]:-}" ] || { timeout "$limit" "$dir/test"; return; }
    for name in ${tests[$1]}; do
        ONE_TEST=$name CMOCKA_MESSAGE_OUTPUT=TAP MILLRACE_THREADS=1 OPENBLAS_NUM_THREADS=1 timeout 600 \
            "$dir/test" 2>/dev/null >"$dir/tap"
        cat "$dir/tap"
        grep -qE "^ok [0-9]+ - $name\$" "$dir/tap" && continue
        grep -qE "^not ok [0-9]+ - $name\$" "$dir/tap" && return 1
        echo "error: the program died"
        return 127
    done
}

# A simulator with the RTL's assertions, under the name of the one without, for tests that name it.
with_view() { # folder of the simulator
    mkdir -p "$dir/view" && ln -sf "$1/libmillrace-sim-tinyt-view.so" "$dir/view/libmillrace-sim-tinyt.so"
}

# The unchanged test, once: built by the normal build (make test-mutants sees to that), or here.
baseline() { # catcher
    case $1 in
    rtl:*) timeout "$limit" "$build/rtl/${1#rtl:}/tb" ;;
    unit:*) (cd "$tree" && make_unit "${1#unit:}") && run_unit "${1#unit:}" ;;
    gates) timeout "$limit" "$build/unit/test_clk_gate" '*tiny' ;;
    tinyt) timeout "$limit" "$build/unit/test_train_rtl" ;;
    tinyt,check) with_view "$build/sim/tinyt" && MILLRACE_SIM_DIR=$dir/view timeout "$limit" "$build/unit/test_train_rtl" ;;
    programs | programs-c) timeout "$limit" "$build/programs/fuzz" cases=$fuzz_cases ;;
    programs,check) timeout "$limit" "$build/programs/fuzz" cases=$fuzz_cases view ;;
    programs,train) timeout "$limit" "$build/programs/fuzz" cases=100 training=100 ;;
    xls) timeout "$limit" "$build/hls/made/all/bench/tb" --cases 100000 ;;
    device:) MILLRACE_SIM_DIR=$build/sim/tiny timeout "$limit" "$build/millrace" selftest --device sim:tiny ;;
    sim*) MILLRACE_SIM_DIR=$build/sim/tiny timeout "$limit" "$build/millrace" selftest --device "sim:tiny${1#sim}" ;;
    esac >"$dir/baseline.log" 2>&1
}

# Builds the test in the tree.
make_test() { # catcher file
    case $1 in
    rtl:*)
        local b=${1#rtl:}
        rm -rf "build/rtl/$b" &&
            $cc $cflags -Ibuild/gen -c -o build/num.o host/cmodel/num.c &&
            CXX=$cxx tests/rtl/build.sh "${b%@*}" "${b#*@}"
        ;;
    unit:*) make_unit "${1#unit:}" "$2" ;;
    xls) # the C++ that it compares with is the unchanged one
        rm -rf build/hls &&
            (. tests/hls/build.sh && make_cores build/hls && make_bench build/hls "$OLDPWD" -Wno-fatal)
        ;;
    device:)
        $cc $cflags -c -o build/mutant.o "$2" &&
            $cc -o build/test "$build"/obj/host/{cli,cli/*,serve,data,config}/*.o build/mutant.o "$build/libmillrace.a" \
                $libs $cli_libs
        ;;
    programs-c)
        $cc $cflags -Itests/programs -o build/test tests/programs/*.c "$2" "$build/libmillrace.a" $libs
        ;;
    sim* | gates | programs* | tinyt*)
        local c=tiny view=
        [[ $1 != tinyt* && $1 != programs,train ]] || c=tinyt
        [[ $1 != *,check ]] || view=-view
        make -s BUILD=build SIM_CXX="$cxx" SIM_OPT=-O1 SIM_CONFIGS=$c JOBS=1 build/sim/$c/libmillrace-sim-$c$view.so
        ;;
    esac
}
run_test() { # catcher; cmocka ends with the first test that fails, but where an assertion is to fail
    case $1 in
    rtl:*) timeout "$limit" "build/rtl/${1#rtl:}/tb" ;;
    unit:*) cd "$OLDPWD" && run_unit "${1#unit:}" ;;
    xls) timeout "$limit" build/hls/bench/tb --cases 100000 ;;
    device:) MILLRACE_SIM_DIR=$build/sim/tiny timeout "$limit" build/test selftest --device sim:tiny ;;
    gates) [ -r build/sim/tiny/libmillrace-sim-tiny.so ] && cd "$OLDPWD" && CMOCKA_TEST_ABORT=1 MILLRACE_SIM_DIR=$tree/build/sim/tiny timeout "$limit" "$build/unit/test_clk_gate" '*tiny' ;;
    tinyt) [ -r build/sim/tinyt/libmillrace-sim-tinyt.so ] && cd "$OLDPWD" && CMOCKA_TEST_ABORT=1 MILLRACE_SIM_DIR=$tree/build/sim/tinyt timeout "$limit" "$build/unit/test_train_rtl" ;;
    tinyt,check) [ -r build/sim/tinyt/libmillrace-sim-tinyt-view.so ] && with_view "$tree/build/sim/tinyt" && cd "$OLDPWD" && MILLRACE_SIM_DIR=$dir/view timeout "$limit" "$build/unit/test_train_rtl" ;;
    programs) [ -r build/sim/tiny/libmillrace-sim-tiny.so ] && MILLRACE_SIM_DIR=$tree/build/sim/tiny timeout "$limit" "$build/programs/fuzz" cases=$fuzz_cases ;;
    programs,check) [ -r build/sim/tiny/libmillrace-sim-tiny-view.so ] && MILLRACE_SIM_DIR=$tree/build/sim/tiny timeout "$limit" "$build/programs/fuzz" cases=$fuzz_cases view ;;
    programs,train) [ -r build/sim/tinyt/libmillrace-sim-tinyt.so ] && MILLRACE_SIM_DIR=$tree/build/sim/tinyt timeout "$limit" "$build/programs/fuzz" cases=100 training=100 ;;
    programs-c) MILLRACE_SIM_DIR=$build/sim/tiny timeout "$limit" build/test cases=$fuzz_cases ;;
    sim*) MILLRACE_SIM_DIR=$tree/build/sim/tiny timeout "$limit" "$build/millrace" selftest --device "sim:tiny${1#sim}" ;;
    esac
}

mutant() { # name file sed catcher [assertion]
    local name=$1 file=$2 edit=$3 by=$4 fails=${5:-} title="mutant: $1 is caught by $(catcher "$4")" start status
    title+=${fails:+, assertion $fails}
    [[ $name == *"$only"* || $by == "$only"* ]] || return 0
    [ -z "$folder" ] || [ "${file%/*}" = "$folder" ] || return 0
    [ -n "$check" ] || [ -n "$only" -a -z "$folder" ] || is_wanted "$by" || return 0
    if [ -n "$check" ]; then
        sed "$edit" "$file" | cmp -s "$file" - || ! has_catcher "$by"
        tap $((!$?)) "$title: it applies, and has its test"
        return
    fi
    start=$(date +%s)
    if [ -z "${green[$by]:-}" ]; then
        work[$by]=$(spent)
        baseline "$by"
        green[$by]=$?
        work[$by]=$((10 * ($(spent) - work[$by]) + 60))
        [ "${green[$by]}" = 0 ] || tail -3 "$dir/baseline.log" | sed 's/^/# /'
    fi
    if [ "${green[$by]}" != 0 ]; then
        echo "# without the mutant the test is not green"
        tap 1 "$title"
        return
    fi
    sed "$edit" "$file" >"$tree/$file"
    if cmp -s "$file" "$tree/$file"; then
        echo "# the mutant does not apply to $file any more"
        tap 1 "$title"
        return
    fi
    if ! (cd "$tree" && make_test "$by" "$file") >"$dir/build.log" 2>&1; then
        echo "# the mutant does not build"
        tail -5 "$dir/build.log" | sed 's/^/# /'
        tap 1 "$title"
    else
        (cd "$tree" && ulimit -t "${work[$by]}" && run_test "$by") >"$dir/run.log" 2>&1
        status=$?
        [ $status = 124 ] || [ $status = 152 ] && echo "# it hangs"
        # 126, 127: the test could not be started
        [ $status != 0 ] && [ $status != 126 ] && [ $status != 127 ] &&
            { [ -z "$fails" ] || grep -q "Error: ${fails% *}:.*Assertion failed in .*: ${fails#* }$" "$dir/run.log"; }
        tap $? "$title"
        echo "# $(grep -m1 -E '^not ok|FAILED|^millrace|^# lane|Assertion|differ|logit|error' "$dir/run.log"), $(($(date +%s) - start)) s"
    fi
    cp -p "$file" "$tree/$file"
}

while IFS=$'\t' read -r name file edit by fails <&3; do
    [[ $by = unit:*@* ]] && needs=${by#*@} by=${by%@*} || needs=
    [ -n "$check" ] || [ -z "$needs" ] || grep -qw "$needs" /proc/cpuinfo || continue
    mutant "$name" "$file" "$edit" "$by" "$fails"
done 3< <(grep -v '^#' tests/mutants/table.tsv)
echo "1..$n"
exit $((bad != 0))
