# SPDX-License-Identifier: Apache-2.0
# Faults in folders of host/ that unit tests must notice; back-, cpu-, data-, step- and
# train-mutants.sh use it. Of a header the program is compiled anew, and the last file that includes it.
# They set: build, a directory for it; folders, those below host/ or tests/ that are changed; others, sources
# that they need and that stay; tests[PROGRAM], the names among the tests of tests/unit/PROGRAM.c of
# which one must fail, tried in this order; mutants, "name|file below host/|sed expression|PROGRAM".
# The second argument, if there is one, is a word in the names of those to run.
# One thread, unless a test sets its own: no verdict follows from which thread comes first.
export MILLRACE_THREADS=1 OPENBLAS_NUM_THREADS=1
cc=${CC:-gcc}
flags=(-std=c17 -D_GNU_SOURCE -O1 -w -ffp-contract=off -Ihost -Ihost/include "-I$build/../gen" -I. -Itests -Itests/unit)
# What the folders need beside `others` comes from the library.
# shellcheck disable=SC2206 # more libraries are words
libs=("$build/../libmillrace.a" -lcmocka -ljansson -lpcre2-8 -lxxhash -lzip -ldl -lpthread -lm ${more-})

bail() {
    echo "Bail out! $1"
    exit 1
}

compile() { # directory source..: the names of the objects, one a line
    local dir=$1 source object
    shift
    mkdir -p "$dir" || return 1
    for source; do
        object=$dir/$(tr / - <<<"${source#*/}").o
        "$cc" "${flags[@]}" -c -o "$object" "$source" || return 1
        echo "$object"
    done
}

declare -A used # the programs of the mutants that are run
chosen=()
for mutant in "${mutants[@]}"; do
    [[ ${mutant%%|*} = *"${2:-}"* ]] || continue
    chosen+=("$mutant")
    used[${mutant##*|}]=1
done

same=$(compile "$build/same" tests/tools/one-test.c "${others[@]}") || bail "the sources that stay as they are do not compile"
for program in "${!used[@]}"; do
    compile "$build/$program" "tests/unit/$program.c" >/dev/null || bail "tests/unit/$program.c does not compile"
done
# Where a file or folder lies.
below() { if [ -e "host/$1" ]; then echo "host/$1"; else echo "tests/$1"; fi; }
# shellcheck disable=SC2046 # the patterns are words
whole=$(compile "$build/whole" $(for f in "${folders[@]}"; do echo "$(below "$f")"/*.c; done)) || bail "a folder does not compile"

# Links program $1 with the unchanged objects, but for those of the same names in directory $2.
link() {
    local object objects=
    for object in $whole "$build/$1"/*.o; do
        [ -e "$2/$(basename "$object")" ] && object=$2/$(basename "$object")
        objects+=" $object"
    done
    # shellcheck disable=SC2086 # the objects are words
    "$cc" -o "$2/test" $objects $same "${libs[@]}"
}

# Compiles into directory $1 what the changed file $2 (below host/) is a part of; $3 is the program.
change() {
    local source
    if [[ $2 = *.c ]]; then
        "$cc" "${flags[@]}" -c -o "$1/$(tr / - <<<"$2").o" "$1/$2"
        return
    fi
    # shellcheck disable=SC2046 # the patterns are words
    for source in $(grep -l "^#include \"$2\"" $(for f in "${folders[@]}"; do echo "$(below "$f")"/*.c; done) | tail -1) "tests/unit/$3.c"; do
        "$cc" "-I$1" "${flags[@]}" -c -o "$1/$(tr / - <<<"${source#*/}").o" "$source" || return 1
    done
}

# The first test of program $1, linked into $2, that fails, with "died" if it said nothing.
failing() {
    local test
    for test in ${tests[$1]}; do
        ONE_TEST=$test CMOCKA_MESSAGE_OUTPUT=TAP timeout 600 "$2/test" 2>/dev/null >"$2/log"
        grep -qE "^ok [0-9]+ - $test\$" "$2/log" && continue
        grep -qE "^not ok [0-9]+ - $test\$" "$2/log" && echo "$test" || echo "$test died"
        return
    done
}

# The unchanged programs must pass, or a mutant's failure says nothing.
for program in "${!used[@]}"; do
    dir=$build/none-$program
    mkdir -p "$dir" && link "$program" "$dir" || bail "the unchanged $program does not link"
    found=$(failing "$program" "$dir")
    [ -z "$found" ] || bail "the unchanged $program fails: $found"
done

number=0 failed=0
for mutant in "${chosen[@]}"; do
    IFS='|' read -r name file expression program <<<"$mutant"
    number=$((number + 1))
    dir=$build/$number
    rm -rf "$dir"
    mkdir -p "$dir/${file%/*}" || bail "cannot make $dir"
    source=$(below "$file")
    sed "$expression" "$source" >"$dir/$file"
    verdict="not ok" why=
    if cmp -s "$dir/$file" "$source"; then
        why="the expression changes nothing in $source; bring it up to date"
    elif ! change "$dir" "$file" "$program" || ! link "$program" "$dir"; then
        why="the mutant does not build"
    else
        found=$(failing "$program" "$dir")
        case $found in
        '') why="the tests do not notice" ;;
        *died) why="the program died: $found" ;;
        *) verdict=ok ;;
        esac
    fi
    echo "$verdict $number - mutant $name is caught"
    [ "$verdict" = "not ok" ] || echo "# by $found"
    [ -z "$why" ] || { echo "# $why"; failed=1; }
done
echo "1..$number"
exit $((failed || !number))
