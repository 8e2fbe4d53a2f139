#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Do the tests notice a fault? Each mutant of tests/mutants/table.tsv is one changed line of the RTL, the C model or the
# compiler of programs, built in a copy of the sources; the test named beside it must be green without it and red with
# it. TAP on stdout.
# usage: [BUILD=build] tests/mutants/run.sh [WORD]   (from the root; WORD: only mutants with it in
# their name, or whose catcher begins with it)
#        tests/mutants/run.sh --check   (builds nothing: does each still apply, and has its catcher?)
# A mutant that does not change its file, or does not build, has not been caught.
set -uo pipefail
check='' only=${1:-}
[ "$only" != --check ] || check=yes only=''
build=$(realpath "${BUILD:-build}")
cxx=${SIM_CXX:-$(command -v clang++-19 || echo g++)}
cc=${CC:-gcc}
dir=$build/mutants
tree=$dir/tree
cli_libs=${CLI_LIBS:--ledit -lmicrohttpd -lhdf5_serial -lzstd -lyaml}
libs="-ljansson -lpcre2-8 -lxxhash -lzip -ldl -lpthread -lm"
cflags="-std=c17 -D_GNU_SOURCE -O1 -ffp-contract=off -Ihost -Ihost/include -I$build/gen -I. -Itests"
# A mutant that hangs is caught: it has ten times the processor's time of the test without it, and a minute, however
# long that takes. One that hangs asleep, and the test without a mutant, have so many seconds.
limit=${MUTANT_TIMEOUT:-1800}
fuzz_cases=${FUZZ_CASES:-1000}
if [ -z "$check" ]; then
    rm -rf "$tree"
    mkdir -p "$tree/build/gen" "$tree/tests/synth"
    cp -r rtl host hls sim driver Makefile "$tree/"
    cp -r tests/rtl tests/unit tests/programs tests/driver tests/tests.mk "$tree/tests/"
    cp tests/synth/dsp48e2.v "$tree/tests/synth/"
    cp -rp "$build"/gen/* "$tree/build/gen/"
    mkdir -p "$tree/build/rtl" && cp -p "$build/rtl/runtime.a" "$tree/build/rtl/"
    # A mutant may leave a signal unused or of the wrong width: that alone must not stop its build.
    sed -i 's/ params=/ params=-Wno-fatal /' "$tree"/tests/rtl/*/bench.txt
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
    tinyt) echo "unit-test_train_rtl" ;;
    programs | programs-c) echo "programs" ;;
    *) echo "selftest on sim:tiny" ;;
    esac
}

has_catcher() { # catcher
    local b=${1#*:}
    case $1 in
    rtl:*) grep -q "^${b#*@} " "tests/rtl/${b%@*}/bench.txt" ;;
    unit:*) [ -e "tests/unit/test_$b.c" ] ;;
    esac
}

# The unchanged test, once: built by the normal build (make test-mutants sees to that).
baseline() { # catcher
    case $1 in
    rtl:*) timeout "$limit" "$build/rtl/${1#rtl:}/tb" ;;
    unit:*) timeout "$limit" "$build/unit/test_${1#unit:}" ;;
    gates) timeout "$limit" "$build/unit/test_clk_gate" '*tiny' ;;
    tinyt) timeout "$limit" "$build/unit/test_train_rtl" ;;
    programs | programs-c) timeout "$limit" "$build/programs/fuzz" cases=$fuzz_cases ;;
    device: | sim) MILLRACE_SIM_DIR=$build/sim/tiny timeout "$limit" "$build/millrace" selftest --device sim:tiny ;;
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
    unit:driver_check)
        $cc $cflags -Itests/driver/kernel -w -o build/test tests/unit/test_driver_check.c driver/check.c driver/scrub.c \
            "$build/libmillrace.a" -lcmocka $libs
        ;;
    unit:*)
        $cc $cflags -w -c -o build/mutant.o "$2" &&
            $cc $cflags -w -o build/test "tests/unit/test_${1#unit:}.c" build/mutant.o \
                "$build/libmillrace.a" -lcmocka $libs
        ;;
    device:)
        $cc $cflags -w -c -o build/mutant.o "$2" &&
            $cc -o build/test "$build"/obj/host/{cli,serve,data,config}/*.o build/mutant.o "$build/libmillrace.a" \
                $libs $cli_libs
        ;;
    programs-c)
        $cc $cflags -Itests/programs -w -o build/test tests/programs/*.c "$2" "$build/libmillrace.a" $libs
        ;;
    sim | gates | programs | tinyt)
        local c=tiny
        [ "$1" != tinyt ] || c=tinyt
        make -s BUILD=build SIM_CXX="$cxx" SIM_OPT=-O1 SIM_CONFIGS=$c JOBS=1 build/sim/$c/libmillrace-sim-$c.so
        ;;
    esac
}
run_test() { # catcher
    case $1 in
    rtl:*) timeout "$limit" "build/rtl/${1#rtl:}/tb" ;;
    unit:*) cd "$OLDPWD" && timeout "$limit" "$tree/build/test" ;;
    device:) MILLRACE_SIM_DIR=$build/sim/tiny timeout "$limit" build/test selftest --device sim:tiny ;;
    gates) [ -r build/sim/tiny/libmillrace-sim-tiny.so ] && cd "$OLDPWD" && MILLRACE_SIM_DIR=$tree/build/sim/tiny timeout "$limit" "$build/unit/test_clk_gate" '*tiny' ;;
    tinyt) [ -r build/sim/tinyt/libmillrace-sim-tinyt.so ] && cd "$OLDPWD" && MILLRACE_SIM_DIR=$tree/build/sim/tinyt timeout "$limit" "$build/unit/test_train_rtl" ;;
    programs) [ -r build/sim/tiny/libmillrace-sim-tiny.so ] && MILLRACE_SIM_DIR=$tree/build/sim/tiny timeout "$limit" "$build/programs/fuzz" cases=$fuzz_cases ;;
    programs-c) MILLRACE_SIM_DIR=$build/sim/tiny timeout "$limit" build/test cases=$fuzz_cases ;;
    sim) [ -r build/sim/tiny/libmillrace-sim-tiny.so ] && MILLRACE_SIM_DIR=$tree/build/sim/tiny timeout "$limit" "$build/millrace" selftest --device sim:tiny ;;
    esac
}

mutant() { # name file sed catcher [assertion]
    local name=$1 file=$2 edit=$3 by=$4 fails=${5:-} title="mutant: $1 is caught by $(catcher "$4")" start status
    title+=${fails:+, assertion $fails}
    [[ $name == *"$only"* || $by == "$only"* ]] || return 0
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
