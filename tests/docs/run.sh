#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs the commands of README and docs and compares their output with what the page shows; TAP.
# usage: tests/docs/run.sh quick|slow|all [PAGE...]   (from the root; BUILD, or build/, has been made)
# The form of the pages: tests/docs/commands.awk. A page's commands run in one directory of their own
# in which the repository's files are linked, so what they write is gone afterwards; one that begins
# with "make" runs in the root itself, since make builds again what has another path. One that ends
# with "&" (a server) runs until the page ends; port 8080 in the pages is a free one here.
set -u
which=$1
shift
root=$PWD
build=$(realpath -m "${BUILD:-build}")
here=$root/tests/docs
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
# shellcheck disable=SC2046 # the pages are words
[ $# -gt 0 ] || set -- $(docs/site/pages.sh)
# What a terminal of the reader would not have set.
unset MAKEFLAGS MFLAGS MAKELEVEL MILLRACE BUILD CI
export LC_ALL=C.UTF-8 NO_COLOR=1 PATH=$build:$PATH
number=0 failed=0 ran=0
answers() { (exec 3<>"/dev/tcp/127.0.0.1/$1") 2>/dev/null; }
port=$((20000 + $$ % 20000))
while answers $port; do port=$((port + 1)); done
: >"$work/never"

result() { # STATUS NAME
    number=$((number + 1))
    if [ "$1" = 0 ]; then echo "ok $number - $2"; else
        echo "not ok $number - $2"
        failed=1
    fi
}

page() { # PAGE
    local page=$1 dir n line status when why got name verdict seen server= waited=0
    dir=$(mktemp -d "$work/page.XXXXXX")
    mkdir "$dir/parts" "$dir/root"
    if ! awk -v dir="$dir/parts" -f "$here/commands.awk" "$page" >"$dir/list" 2>"$dir/err"; then
        sed 's/^/# /' "$dir/err"
        result 1 "$page can be read"
        return
    fi
    find "$root" -mindepth 1 -maxdepth 1 ! -name .git ! -name build -exec ln -s -t "$dir/root" {} +
    ln -s "$build" "$dir/root/build"
    while IFS=$'\t' read -r n line status when why <&3; do
        name="$page:$line: $(head -1 "$dir/parts/$n.cmd")"
        if [ "$when" = never ]; then
            echo "$why" >>"$work/never"
            continue
        fi
        [ "$which" = all ] || [ "$which" = "$when" ] || continue
        ran=$((ran + 1))
        sed -i "s/\\b8080\\b/$port/g" "$dir/parts/$n.cmd" "$dir/parts/$n.want"
        if grep -q ' &$' "$dir/parts/$n.cmd"; then
            sed -i 's/ &$//; 1s/^/exec /' "$dir/parts/$n.cmd"
            (cd "$dir/root" && exec timeout 600 bash -o pipefail "$dir/parts/$n.cmd") >"$dir/out" 2>&1 </dev/null &
            server=$!
            # It answers, and has printed what the page shows: either may come first.
            until { answers $port && awk -f "$here/same.awk" "$dir/parts/$n.want" "$dir/out" >/dev/null; } ||
                ! kill -0 $server 2>/dev/null || [ $((waited += 1)) -gt 600 ]; do sleep 0.1; done
            kill -0 $server 2>/dev/null
        else
            if grep -q '^make' "$dir/parts/$n.cmd"; then cd "$root"; else cd "$dir/root"; fi
            timeout 600 bash -o pipefail "$dir/parts/$n.cmd" >"$dir/out" 2>&1 </dev/null
        fi
        got=$? verdict=0
        if [ "$got" != "$status" ]; then
            echo "# exit status $got instead of $status; the output's end:"
            tail -5 "$dir/out" | sed 's/^/#   /'
            verdict=1
        elif ! seen=$(awk -f "$here/same.awk" "$dir/parts/$n.want" "$dir/out"); then
            sed 's/^/# /' <<<"$seen"
            verdict=1
        fi
        result $verdict "$name"
    done 3<"$dir/list"
    cd "$root" || exit 1
    [ -z "$server" ] || { kill $server; wait $server; } 2>/dev/null
    chmod -R u+w "$dir" && rm -rf "$dir"
}

for p; do page "$p"; done
sort "$work/never" | uniq -c | sort -rn | sed 's/^ *\([0-9]*\) /# not run here: \1 of: /'
echo "# $ran commands run, $(wc -l <"$work/never") cannot be run here"
[ $number -gt 0 ] || result 1 "there are commands"
echo "1..$number"
exit $failed
