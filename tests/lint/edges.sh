#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The graph of files: prints "FROM TO WHY" for each #include, and for each symbol that a file uses and
# another one defines: of host/ by nm over the objects of BUILD/obj, which must be built, of others by
# their text (names.awk). Of .sv, for each module or package that a file names and another one has.
# A node is a unit: x.c, x.cpp and x.h together.
# usage: [BUILD=build] tests/lint/edges.sh FOLDER.. (from the root)
set -euo pipefail
build=${BUILD:-build}

mapfile -t rtl < <(find "$@" -name '*.sv' | sort)
[ ${#rtl[@]} = 0 ] || awk -f "$(dirname "$0")/modules.awk" "${rtl[@]}" all=1 "${rtl[@]}"

mapfile -t files < <(find "$@" -name '*.[ch]' -o -name '*.cpp' | sort)
[ ${#files[@]} -gt 0 ] || exit 0

# As the compiler looks for them: beside the file, then -Ihost -Ihost/include -I.
awk '
    FNR == 1 { dir = FILENAME; sub(/[^\/]*$/, "", dir) }
    BEGIN { for (i = 1; i < ARGC; i++) have[ARGV[i]] }
    function unit(f) { sub(/\.[a-z]+$/, "", f); return f }
    /^[ \t]*#[ \t]*include[ \t]*"/ {
        split($0, part, "\"")
        n = split(dir " host/ host/include/ .", root, " ")
        for (i = 1; i <= n; i++) {
            path = (root[i] == "." ? "" : root[i]) part[2]
            if (path in have) { print unit(FILENAME), unit(path), part[2]; break }
        }
    }' "${files[@]}"

# Objects of sources that are no longer there do not count.
objects=() texts=()
for f in "${files[@]}"; do
    case $f in
    host/*.c)
        o=$build/obj/${f%.c}.o
        [ -e "$o" ] || { echo "edges.sh: $o is not there; make all" >&2; exit 1; }
        objects+=("$o")
        ;;
    *.h) ;;
    *) texts+=("$f") ;;
    esac
done
[ ${#texts[@]} = 0 ] || awk -f "$(dirname "$0")/names.awk" "${texts[@]}"
[ ${#objects[@]} = 0 ] || nm -A -P "${objects[@]}" | awk -v prefix="$build/obj/" '
    function unit(f) { f = substr(f, length(prefix) + 1); sub(/\.o:.*/, "", f); return f }
    $3 ~ /^[TDBRVWC]$/ { where[$2] = unit($1) }
    $3 == "U" { from[++n] = unit($1); symbol[n] = $2 }
    END { for (i = 1; i <= n; i++) if (symbol[i] in where) print from[i], where[symbol[i]], symbol[i] }'
