# SPDX-License-Identifier: Apache-2.0
# Sourced by the end-to-end tests: TAP on standard output, a directory that is removed at the end.
millrace=${MILLRACE:-build/millrace}
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
number=0 failed=0

# ok NAME COMMAND...: the command's status decides.
ok() {
    local name=$1
    shift
    number=$((number + 1))
    if "$@"; then
        echo "ok $number - $name"
    else
        echo "not ok $number - $name"
        failed=1
    fi
}

# until_simulating PID: waits, for some minutes, until it has loaded a simulator, or a process that it has started has.
until_simulating() {
    local p
    for _ in $(seq 30000); do
        for p in "$1" $(cat "/proc/$1/task/$1/children" 2>/dev/null); do
            ! grep -qs 'libmillrace-sim-' "/proc/$p/maps" || return 0
        done
        kill -0 "$1" 2>/dev/null || return 1
        sleep 0.01
    done
    return 1
}

# exits NAME STATUS WORDS ARGUMENTS...: millrace ends with STATUS and says WORDS (a pattern) on
# standard error in one line; none are expected where WORDS is empty.
exits() {
    local name=$1 status=$2 words=$3 got lines
    shift 3
    number=$((number + 1))
    timeout 600 "$millrace" "$@" >"$work/out" 2>"$work/err" </dev/null
    got=$?
    lines=$(wc -l <"$work/err")
    if [ "$got" = "$status" ] && { [ -n "$words" ] && [ "$lines" = 1 ] || [ ! -s "$work/err" ]; } &&
        grep -qE -e "$words" "$work/err" "$work/out"; then
        echo "ok $number - $name"
    else
        echo "not ok $number - $name"
        echo "# millrace $*: status $got (expected $status), $lines lines of errors:"
        sed 's/^/# /' "$work/err" | head -5
        failed=1
    fi
}

done_testing() {
    echo "1..$number"
    exit $failed
}
