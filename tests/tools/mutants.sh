# SPDX-License-Identifier: Apache-2.0
# Faults in folders of host/ that unit tests must notice; cpu-mutants.sh and train-mutants.sh use it.
# They set: build, a directory for it; folders, those below host/ that are changed; others, sources
# that they need and that stay; tests[PROGRAM], the names among the tests of tests/unit/PROGRAM.c of
# which one must fail; mutants, "name|file below host/|sed expression|PROGRAM".
cc=${CC:-gcc}
flags=(-std=c17 -D_GNU_SOURCE -O1 -w -ffp-contract=off -Ihost -Ihost/include "-I$build/../gen" -Itests -Itests/unit)
# What the folders need beside `others` comes from the library.
libs=("$build/../libmillrace.a" -lcmocka -ljansson -lpcre2-8 -lxxhash -lzip -ldl -lpthread -lm)

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

same=$(compile "$build/same" "${others[@]}") || bail "the sources that stay as they are do not compile"
for program in "${!tests[@]}"; do
    compile "$build/$program" "tests/unit/$program.c" >/dev/null || bail "tests/unit/$program.c does not compile"
done
whole=$(compile "$build/whole" $(printf 'host/%s/*.c ' "${folders[@]}")) || bail "host/ does not compile"

# Links program $1 with the unchanged objects, but for $3 in place of $2, into directory $4.
link() {
    # shellcheck disable=SC2046,SC2086 # the objects are words
    "$cc" -o "$4/test" "$build/$1"/*.o $(grep -vxF "$2" <<<"$whole") $3 $same "${libs[@]}"
}

# The tests of program $1, linked into $2, that fail; "died" for one that said nothing.
failing() {
    local test
    CMOCKA_MESSAGE_OUTPUT=TAP timeout 600 "$2/test" 2>/dev/null >"$2/log"
    for test in ${tests[$1]}; do
        grep -qE "^ok [0-9]+ - $test\$" "$2/log" || {
            grep -qE "^not ok [0-9]+ - $test\$" "$2/log" && echo "$test" || echo died
        }
    done
}

# The unchanged programs must pass, or a mutant's failure says nothing.
for program in "${!tests[@]}"; do
    dir=$build/none-$program
    mkdir -p "$dir" && link "$program" none "" "$dir" || bail "the unchanged $program does not link"
    found=$(failing "$program" "$dir")
    [ -z "$found" ] || bail "the unchanged $program fails: $(head -1 <<<"$found")"
done

number=0 failed=0
for mutant in "${mutants[@]}"; do
    number=$((number + 1))
    IFS='|' read -r name file expression program <<<"$mutant"
    dir=$build/$number
    mkdir -p "$dir" || bail "cannot make $dir"
    sed "$expression" "host/$file" >"$dir/$(basename "$file")"
    verdict="not ok" why=
    if cmp -s "$dir/$(basename "$file")" "host/$file"; then
        why="the expression changes nothing in host/$file; bring it up to date"
    elif ! "$cc" "${flags[@]}" -c -o "$dir/mutant.o" "$dir/$(basename "$file")" ||
        ! link "$program" "$build/whole/$(tr / - <<<"$file").o" "$dir/mutant.o" "$dir"; then
        why="the mutant does not build"
    else
        found=$(failing "$program" "$dir")
        case $found in
        '') why="the tests do not notice" ;;
        *died*) why="the program died" ;;
        *) verdict=ok ;;
        esac
    fi
    echo "$verdict $number - mutant $name is caught"
    [ "$verdict" = "not ok" ] || echo "# by $(head -1 <<<"$found")"
    [ -z "$why" ] || { echo "# $why"; failed=1; }
done
echo "1..$number"
exit $failed
