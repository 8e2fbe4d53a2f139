#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# make install and uninstall; what is installed works away from the repository: program, library with
# pkg-config, man pages, completions. Prints TAP.
set -u
. tests/tools/tap.sh
build=${BUILD:-build} root=$PWD dest=$work/dest prefix=/opt/mill
make=(make -s --no-print-directory BUILD="$build" PREFIX=$prefix DESTDIR="$dest")
at=$dest$prefix

ok install_works "${make[@]}" install
"${make[@]}" install >"$work/said"
ok install_says_where_things_are grep -q "^demo model  $prefix/share/millrace/models/demo$" "$work/said"
away() { (cd / && env -u MILLRACE_SIM_DIR "$@"); }

# ---- the program, and the simulators that it finds
away "$at/bin/millrace" generate -m "$root/models/demo" -d sim:tiny -p "And" -n 2 >"$work/out" 2>"$work/err"
"$millrace" generate -m models/demo -d model: -p "And" -n 2 >"$work/want"
ok installed_program_finds_its_simulators cmp "$work/out" "$work/want"

# Timelines and their pictures: the view builds and the demo model are there too.
ok demo_model_is_installed diff -r models/demo "$at/share/millrace/models/demo"
away env -C "$work" "$at/bin/millrace" trace "$at/share/millrace/models/demo" -d sim:tiny --no-head --layer 1 \
    --svg token.svg --json token.json >"$work/out" 2>"$work/err"
ok installed_program_draws_a_timeline test $? = 0 -a "$(tail -1 "$work/token.svg")" = "</svg>" -a -s "$work/token.json"
ok installed_trace_prints_its_cycles grep -qE '^  cycles +[0-9]{5,}$' "$work/out"
away env -C "$work" "$at/bin/millrace" generate "$at/share/millrace/models/demo" "And" -d sim:tiny -n 1 --check >"$work/out"
ok installed_program_can_check grep -q '^And' "$work/out"
ok pages_are_installed diff <(cd docs && ls -- *.md */*.md */*.svg) <(cd "$at/share/doc/millrace/docs" && ls -- *.md */*)
sed -n 's/.*](\(docs\/[^)#]*\).*/\1/p' README.md | while read -r page; do [ -e "$at/share/doc/millrace/$page" ] || echo "$page"; done >"$work/broken"
ok links_of_the_installed_readme_work test ! -s "$work/broken"

# A distribution's library directory.
ok install_with_a_libdir "${make[@]}" LIBDIR=$prefix/lib/triplet DESTDIR="$work/multi" install
cat >"$work/devices.c" <<'C'
#include <millrace.h>
#include <stdio.h>
int main(int n, char **v)
{
    struct mr_error err = {0};
    struct mr_model *model;
    struct mr_session *session;
    if (n != 2 || mr_model_load(&model, v[1], NULL, &err) < 0 || mr_session_open(&session, model, "sim:tiny", NULL, &err) < 0)
        return fprintf(stderr, "%s\n", err.text), 1;
    mr_session_close(session);
    mr_model_close(model);
    return 0;
}
C
ok program_is_built_with_a_libdir ${CC:-gcc} -o "$work/devices" "$work/devices.c" -I"$work/multi$prefix/include" \
    -L"$work/multi$prefix/lib/triplet" -lmillrace
ok library_elsewhere_finds_the_simulators env -C / -u MILLRACE_SIM_DIR LD_LIBRARY_PATH="$work/multi$prefix/lib/triplet" \
    "$work/devices" "$root/models/demo"

# ---- the library
export PKG_CONFIG_PATH=$at/lib/pkgconfig PKG_CONFIG_SYSROOT_DIR=$dest
unset PKG_CONFIG_LIBDIR
version=$("$millrace" --version | cut -d' ' -f2)
ok pkg_config_knows_the_version test "$(pkg-config --modversion millrace)" = "$version"
# shellcheck disable=SC2046 # the flags are words
ok example_is_built_with_pkg_config ${CC:-gcc} -std=c17 -Wall -Wextra -Werror -o "$work/generate" examples/generate.c \
    $(pkg-config --cflags --libs millrace)
soname=libmillrace.so.${version%.*}
ok soname_is_versioned bash -c "readelf -d '$at/lib/libmillrace.so' | grep -q 'SONAME.*\[$soname\]' && readelf -d '$work/generate' | grep -q 'NEEDED.*\[$soname\]'"
away env LD_LIBRARY_PATH="$at/lib" "$work/generate" "$root/models/demo" sim:tiny "And" >"$work/out" 2>"$work/err"
"$millrace" generate -m models/demo -d model: -p "And" -n 40 >"$work/want"
ok shared_library_finds_its_simulators test "And$(cat "$work/out")" = "$(cat "$work/want")"
# shellcheck disable=SC2046
ok example_is_built_statically ${CC:-gcc} -std=c17 -o "$work/static" examples/generate.c $(pkg-config --cflags millrace) \
    "$at/lib/libmillrace.a" $(pkg-config --static --libs-only-l millrace | sed 's/-lmillrace//')
"$work/static" models/demo model: "And" >"$work/out"
ok static_example_writes_the_same_text test "And$(cat "$work/out")" = "$(cat "$work/want")"
printf '#include <millrace.h>\nint main() { return mr_version()[0] != MR_VERSION_STRING[0]; }\n' >"$work/x.cpp"
# shellcheck disable=SC2046
ok header_is_for_cpp_too g++ -Wall -Wextra -Werror -Wpedantic -o "$work/x" "$work/x.cpp" $(pkg-config --cflags --libs millrace)

# Exported is what the header declares, and nothing else.
sed 's|//.*||' host/include/millrace.h | grep -oE '\bmr_[a-z0-9_]+\(' | tr -d '(' | sort -u >"$work/declared"
nm -D --defined-only "$at/lib/libmillrace.so" | awk '{ print $3 }' | sort >"$work/exported"
ok only_public_symbols_are_exported diff "$work/declared" "$work/exported"
ok there_are_public_symbols test "$(wc -l <"$work/exported")" -gt 20

# ---- man pages
pages=$(find "$at/share/man/man1" -name '*.1' | sort)
commands=$("$millrace" --help | sed -n '/^commands:/,/^$/s/^  \([a-z]*\) .*/\1/p')
ok every_command_has_a_page test "$(echo "$commands" | sed 's/.*/millrace-&.1/; $a millrace.1' | sort)" = \
    "$(basename -a $pages | sort)"
# shellcheck disable=SC2086
ok pages_pass_mandoc_lint mandoc -Tlint -Wwarning $pages
help_words() { "$millrace" "$1" --help | grep -oE -- '--[a-z][a-z0-9-]+' | sort -u; }
page_words() { mandoc -Tascii "$at/share/man/man1/millrace-$1.1" | sed 's/.\x08//g' | grep -oE -- '--[a-z][a-z0-9-]+' | sort -u; }
for c in $commands; do
    ok "page_of_${c}_has_the_options_of_its_help" diff <(help_words "$c") <(page_words "$c")
done
exits page_of_an_unknown_command 2 "there is no command 'frobnicate'" man frobnicate

# ---- completion
complete_in_bash() { # words...: what bash would offer for the last one
    bash -c 'source "$0"; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1))
        _millrace millrace "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD-1]}"
        printf "%s\n" "${COMPREPLY[@]}"' "$at/share/bash-completion/completions/millrace" "$@" | tr '\n' ' '
}
ok bash_completes_commands test "$(complete_in_bash millrace gen)" = "generate "
ok bash_completes_options test "$(complete_in_bash millrace generate --temp)" = "--temperature "
ok bash_completes_formats test "$(complete_in_bash millrace pack x --format mxf)" = "mxfp4 "
ok bash_completes_files test "$(complete_in_bash millrace generate -m READ)" = "README.md "
ok bash_completes_arguments test "$(complete_in_bash millrace info READ)" = "README.md "
exits completion_for_an_unknown_shell 2 'none of bash, zsh or fish' completion tcsh
ok quotes_in_completions_are_paired test -z "$(awk -F"'" 'NF % 2 == 0' "$at/share/zsh/site-functions/_millrace" "$at/share/fish/vendor_completions.d/millrace.fish")"
ok values_of_options_are_one_word test -z "$(grep -E '\]:[^:]* ' "$at/share/zsh/site-functions/_millrace")"
# zsh and fish are not installed by make deps: their files are parsed where they are there.
if command -v zsh >/dev/null; then ok zsh_parses_its_completion zsh -n "$at/share/zsh/site-functions/_millrace"; fi
if command -v fish >/dev/null; then ok fish_parses_its_completion fish -n "$at/share/fish/vendor_completions.d/millrace.fish"; fi

# ---- and away again
touch "$at/lib/libother.so"
ok uninstall_works "${make[@]}" uninstall
ok uninstall_leaves_nothing test "$(cd "$dest" && find . ! -type d)" = ".$prefix/lib/libother.so"
ok uninstall_leaves_no_directory_of_its_own test -z "$(find "$dest" -type d -name 'millrace*')"
done_testing
