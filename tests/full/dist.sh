#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The source archive: the same bytes twice; what is in it builds, runs and installs by itself. TAP.
set -u
. tests/tools/tap.sh
build=${BUILD:-build} root=$PWD
archive=$(make -s --no-print-directory BUILD="$build" dist)
ok dist_is_made test -s "$archive"
cp "$archive" "$work/first.tar.gz"
ok dist_is_the_same_each_time cmp "$work/first.tar.gz" "$(make -s --no-print-directory BUILD="$build" dist)"
tar -C "$work" -xzf "$archive"
tree=$(find "$work" -maxdepth 1 -type d -name 'millrace-*')
ok dist_has_one_directory test "$(tar -tzf "$archive" | cut -d/ -f1 | sort -u)" = "$(basename "$tree")"
# In a build directory of its own, whatever the make above us was told.
unset MAKEFLAGS MAKELEVEL BUILD MILLRACE_SIM_DIR
ok dist_builds make -s -C "$tree" JOBS="${JOBS:-2}" -j"${JOBS:-2}" SIM_CONFIGS=tiny SHELL=/bin/bash GIT_DIR=/nonexistent all
ok dist_runs bash -c "cd '$tree' && build/millrace generate -m models/demo -d sim:tiny -p And -n 3 >'$work/out'"
"$millrace" generate -m models/demo -d model: -p And -n 3 >"$work/want"
ok dist_writes_the_same_text cmp "$work/out" "$work/want"
ok dist_installs make -s -C "$tree" SIM_CONFIGS=tiny PREFIX=/usr DESTDIR="$work/dest" install
ok dist_installs_the_same_pages cmp "$work/dest/usr/share/man/man1/millrace.1" <(cd "$root" &&
    SOURCE_DATE_EPOCH=$(git log -1 --format=%ct) "$millrace" man)
done_testing
