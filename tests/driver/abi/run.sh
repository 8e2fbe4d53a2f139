#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What the driver has promised to programs: its uapi header against the frozen table, for 32 and 64 bit, C and
# C++; the texts on sysfs, debugfs and ioctls against the code. TAP. usage: tests/driver/abi/run.sh
set -u
. tests/tools/tap.sh
here=tests/driver/abi header=driver/include/uapi/millrace.h
include=$work/include
mkdir -p "$include/uapi"
cp "$header" "$include/uapi/"

names() { awk '!/^#/ && NF { print $1 == "field" ? $1 " " $2 " " $3 " " $4 " " $5 : $1 " " $2 }' "$1"; }
same_names() { diff <(names $here/frozen.txt | sort) <(awk -f $here/header.awk "$1" | sort) | sed 's/^/# /'; return "${PIPESTATUS[0]}"; }
awk -f $here/asserts.awk $here/frozen.txt >"$work/asserts.c"
cp "$work/asserts.c" "$work/asserts.cpp"
# The kernel's 32-bit types are found where the compiler's own headers for 32 bit are not installed.
compile() { # DIRECTORY COMPILER FLAG... FILE
    local dir=$1
    shift
    "$@" -Wall -Wextra -Werror -Wpadded -pedantic -I"$dir" -isystem "/usr/include/$(gcc -print-multiarch)" -c -o "$work/o" 2>"$work/err" && return
    grep -E 'error|warning' "$work/err" | head -4 | sed 's/^/# /'
    return 1
}
ok uapi_has_what_the_table_has same_names $header
for m in 64 32; do
    ok "uapi_layout_c_$m" compile "$include" gcc -std=gnu11 -m$m "$work/asserts.c"
    ok "uapi_layout_cpp_$m" compile "$include" g++ -std=c++11 -m$m "$work/asserts.cpp"
done
printf '#include "uapi/millrace.h"\n#include "uapi/millrace.h"\nstruct millrace_info first;\n' >"$work/alone.c"
cp "$work/alone.c" "$work/alone.cpp"
ok uapi_alone_c90 compile "$include" gcc -std=gnu90 "$work/alone.c"
ok uapi_alone_cpp20 compile "$include" g++ -std=c++20 "$work/alone.cpp"
ok uapi_licence grep -q '^/\* SPDX-License-Identifier: GPL-2.0 WITH Linux-syscall-note \*/$' $header

# The test itself: each change of the header is noticed.
noticed() { # SED
    mkdir -p "$work/planted/uapi"
    sed "$1" $header >"$work/planted/uapi/millrace.h"
    ! cmp -s $header "$work/planted/uapi/millrace.h" || return 1
    ! { same_names "$work/planted/uapi/millrace.h" && compile "$work/planted" gcc -std=gnu11 "$work/asserts.c" &&
        compile "$work/planted" gcc -std=gnu11 -m32 "$work/asserts.c"; } >/dev/null
}
ok planted_type noticed 's/__u32 handle;/__s32 handle;/'
ok planted_field noticed 's/^\t__u64 sum;\|^\t__u32 sticky;/&\n\t__u32 more;/'
ok planted_order noticed '/^struct millrace_free/,/^}/{s/addr/x/;s/reserved/addr/;s/ x;/ reserved;/}'
ok planted_hole noticed '/^struct millrace_unmap/,/^}/{s/__u32 reserved/__u64 reserved/}'
ok planted_number noticed "s/_IOW('R', 0x44/_IOW('R', 0x45/"
ok planted_constant noticed 's/STATUS_READ 4/STATUS_READ 5/'
ok planted_ioctl noticed 's/^#define MILLRACE_IOC_FREE.*/&\n#define MILLRACE_IOC_MORE 1/'

# Fields without a meaning yet, of arguments that go to the driver: a test sets each of their bits. What
# MILLRACE_IOC_INFO gives has none.
zero_fields() {
    awk '/^struct millrace_/ { type = $2; sub(/^millrace_/, "", type) } /^}/ { type = "" }
        type && type != "info" && $2 ~ /^(flags|reserved|pad)/ { sub(/[;[].*/, "", $2); print type, $2 }' "$1" | sort
}
tested_fields() { sed -n 's/^ *F([A-Z]*, \([a-z_]*\), \([a-z_0-9]*\),.*/\1 \2/p' tests/driver/zero.c | sort; }
all_tested() { [ "$(zero_fields "$1" | wc -l)" -ge 13 ] && ! comm -23 <(zero_fields "$1") <(tested_fields) | sed 's/^/# no test in zero.c: /' | grep .; }
ok uapi_fields_that_must_be_zero_are_tested all_tested $header
sed '/^struct millrace_submit/,/^}/s/__u64 job;/&\n\t__u32 flags2;\n\t__u32 reserved2;/' $header >"$work/more.h"
untested() { ! all_tested "$work/more.h" >/dev/null; }
ok planted_reserved_field untested

# ---- sysfs, debugfs, parameters: code against text -------------------------------------------------
abi=driver/Documentation/ABI/testing
blocks() { awk -F: '/^What:/ { if (what) print what, d k c n; what = $2; gsub(/[ \t]/, "", what); d = k = c = n = 0; next }
    /^Date:/ { d = 1 } /^KernelVersion:/ { k = 1 } /^Contact:/ { c = 1 } /^Description:/ { n = 1 } END { print what, d k c n }' "$1"; }
complete() { [ -s "$1" ] && ! blocks "$1" | grep -v ' 1111$' | sed 's/^/# incomplete: /' | grep .; }
ok sysfs_text_is_complete complete $abi/sysfs-class-misc-millrace
ok debugfs_text_is_complete complete $abi/debugfs-millrace
same() { diff <(sort -u "$1") <(sort -u "$2") | sed 's/^/# /'; return "${PIPESTATUS[0]}"; }
blocks $abi/sysfs-class-misc-millrace | sed -n 's|^/sys/class/misc/millrace<N>/\([a-z_]*\) .*|\1|p' >"$work/text"
# Attributes that are in a group, not only defined.
sed -n 's/^\t&dev_attr_\([a-z_]*\)\.attr,$/\1/p' driver/*.c >"$work/code"
ok sysfs_text_and_code same "$work/text" "$work/code"
ok sysfs_attributes_are_all_in_a_group same <(sed -n 's/^static DEVICE_ATTR_\(RO\|RW\|WO\|ADMIN_RO\)(\([a-z_]*\));/\2/p' driver/*.c) "$work/code"
blocks $abi/debugfs-millrace | sed -n 's|^/sys/kernel/debug/millrace/millrace<N>/\([a-z_]*\) .*|\1|p' >"$work/text"
grep -ohE 'debugfs_create_[a-z0-9]+\("[a-z_]+"' driver/*.c | sed 's/.*"\(.*\)"/\1/' >"$work/code"
ok debugfs_text_and_code same "$work/text" "$work/code"
ok there_are_attributes test "$(wc -l <"$work/code")" -ge 2

# ---- docs/board/driver.md and the pages that it leads to -----------------------------------------------------
doc="docs/board/driver.md docs/board/driver-uapi.md" faults=docs/board/driver-faults.md
uses() { # WORDS, each of which must stand in `...` in the document
    local word bad=0
    while read -r word; do
        grep -qE "\`$word\`" $doc || { echo "# $doc says nothing about $word"; bad=1; }
    done
    return $bad
}
awk -f $here/header.awk $header >"$work/names"
ok doc_has_every_ioctl uses < <(awk '$1 == "ioctl" { print $2 }' "$work/names")
ok doc_has_every_operation_and_status uses < <(awk '$2 ~ /_(OP|STATUS|MAP)_/ { print $2 }' "$work/names")
# A section of an ioctl names each field of its structure.
fields() {
    local s bad=0
    for s in $(awk '$1 == "struct" { print $2 }' "$work/names"); do
        awk -v s="$s" '$0 ~ "^#.*`struct " s "`" { in_s = 1; next } /^#/ { in_s = 0 } in_s' $doc >"$work/section"
        for f in $(awk -v s="$s" '$1 == "field" && $2 == s { print $3 }' "$work/names"); do
            grep -q "\`$f\`" "$work/section" || { echo "# section struct $s: nothing about $f"; bad=1; }
        done
    done
    return $bad
}
ok doc_has_every_field fields
# The program in the document compiles as it stands.
{
    printf '#include <fcntl.h>\n#include <stdint.h>\n#include <sys/ioctl.h>\n#include "uapi/millrace.h"\n'
    printf 'static char buffer[4096];\nvoid fail(void);\nvoid program(void);\nvoid program(void)\n{\n'
    sed -n '/^```c$/,/^```$/{/^```/!p}' $doc
    echo '}'
} >"$work/program.c"
ok doc_program_is_there grep -q MILLRACE_IOC_SUBMIT "$work/program.c"
doc_program() { compile "$include" gcc -std=gnu11 -D_GNU_SOURCE -Wno-padded -Wno-missing-field-initializers "$1"; }
ok doc_program_compiles doc_program "$work/program.c"
sed 's/\.deadline_ns/.deadline/' "$work/program.c" >"$work/wrong.c"
doc_program_is_wrong() { ! doc_program "$work/wrong.c" >/dev/null; }
ok doc_program_with_a_wrong_field_is_seen doc_program_is_wrong
ok doc_has_every_parameter uses < <(sed -n 's/^module_param(\([a-z_]*\),.*/\1/p' driver/*.c)

# Each row of the tables of faults and of waits names tests, `PROGRAM`: TEXT, TEXT; the program is run and the texts
# stand in it. Those of tests/unit are all run; there a text is a function's name.
fault_rows() {
    local bad=0 rows=0 row test program source text texts
    while read -r row; do
        rows=$((rows + 1))
        while read -r test; do
            program=$(sed -n 's/^`\([a-z_]*\)`.*/\1/p' <<<"$test")
            source=tests/driver/$program.c
            [[ $program != test_* ]] || source=$(find tests/unit -name "$program.c")
            if [ -z "$program" ] || [ ! -f "$source" ] || { [[ $program != test_* ]] && ! grep -qE "vm .*\b$program\b" tests/driver/run.sh; }; then
                echo "# no test: $row"
                bad=1
                continue
            fi
            texts=$(sed -n 's/^`[a-z_]*`: //p' <<<"$test")
            while read -r text; do
                [[ $program != test_* ]] || text=${text// /_}
                [ -z "$text" ] || grep -qF -- "$text" "$source" || { echo "# $program.c has no \"$text\""; bad=1; }
            done < <(sed 's/, /\n/g' <<<"$texts")
        done < <(sed 's/; */\n/g' <<<"$row")
    done < <(awk '/^\| (fault|wait) / { table = 1; next } !/^\|/ { table = 0 }
        table && !/^\|---/ { n = split($0, c, / *\| */); print c[n - 1] }' "$1")
    [ $rows -ge 50 ] || { echo "# $rows rows"; bad=1; }
    return $bad
}
ok doc_fault_table_names_tests fault_rows $faults
sed 's/wrong tag/wrong flag/' $faults >"$work/renamed.md"
sed 's/^\(| a completion comes twice .*\) | `.*/\1 | |/' $faults >"$work/untested.md"
sees() { fault_rows "$1" >"$work/out" && return 1; [ "$(wc -l <"$work/out")" = 1 ]; }
ok doc_fault_table_test_that_is_gone_is_seen sees "$work/renamed.md"
ok doc_fault_table_row_without_test_is_seen sees "$work/untested.md"
done_testing
