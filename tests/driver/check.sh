#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Static checks of the driver, each shown to notice a planted fault; TAP. quick: sparse and the compiler's W=1, for
# the installed headers. full: also for 6.12, checkpatch, coccicheck, kernel-doc, the ABI text's form.
# usage: [BUILD=build] [KDIR=headers] tests/driver/check.sh quick|full
set -u
. tests/tools/tap.sh
KDIR=${KDIR:-/none}
driver=$PWD/driver planted=$work/planted
kernels() { BUILD=${BUILD:-build} tests/driver/kernels.sh "$1" 2>"$work/why" || { sed 's/^/# /' "$work/why"; return 1; }; }
skip() { ok "$1 # SKIP $2" true; }
# plant FILE SED: a copy of the driver with one fault.
plant() {
    rm -rf "$planted" && cp -r "$driver" "$planted" && cp "${BUILD:-build}/gen/millrace_hw.h" "$planted/" || return 1
    sed -i "$2" "$planted/$1"
    ! cmp -s "$planted/$1" "$driver/$1" || { echo "# nothing to plant in $1"; return 1; }
}
quiet() { # COMMAND...: says nothing and succeeds
    "$@" >"$work/said" 2>&1 && [ ! -s "$work/said" ] && return
    head -20 "$work/said" | sed 's/^/# /'
    return 1
}
noisy() { # PATTERN COMMAND...: says something of that kind
    ! quiet "${@:2}" >/dev/null && grep -q -e "$1" "$work/said"
}

# ---- compiler and sparse
sparse=(C=2 CF=-D__CHECK_ENDIAN__)
builds() { quiet driver/build.sh "$1" "$work/out" "${sparse[@]}"; } # KDIR
# That file alone, as a module that has nothing else in it.
one() { # KDIR FILE.o
    sed -i "s/^millrace-y :=.*/millrace-y := $2/" "$planted/Kbuild"
    make -s -C "$1" M="$planted" W=1 "${sparse[@]}" modules
}
if ! command -v sparse >/dev/null || [ ! -e "$KDIR/Makefile" ]; then
    skip "driver_sparse" "no sparse, or no kernel headers in $KDIR (make deps-driver)"
else
    ok driver_compiles_and_sparse_says_nothing builds "$KDIR"
    plant check.c 's/le32_to_cpu(w\[0\])/w[0]/'
    ok sparse_notices_an_endian_fault noisy "restricted __le32" one "$KDIR" check.o
    plant check.c 's/u64 at = addr/int unused; &/'
    ok compiler_notices_what_is_unused noisy "unused variable" one "$KDIR" check.o
fi
[ "$1" = full ] || done_testing

if kdir=$(kernels 6.12); then
    ok driver_compiles_for_6.12_and_sparse_says_nothing builds "$kdir"
else
    skip driver_6.12 "no headers of 6.12"
fi

if ! kernels scripts; then
    skip driver_scripts "no kernel sources"
    done_testing
fi
scripts=$(realpath "${BUILD:-build}/kernels/scripts")

# ---- checkpatch --strict
checkpatch() { # DIRECTORY
    (cd "$work" && find "$1" -name '*.[ch]' -o -name Kbuild | sort | while IFS= read -r f; do
        "$scripts/checkpatch.pl" --no-tree --strict --terse --show-types --no-summary -f "$f"
    done)
}
ok checkpatch_strict quiet checkpatch "$driver"
plant irq.c 's/if (ret) {/if(ret) {/'
ok checkpatch_notices_a_missing_space noisy ERROR:SPACING checkpatch "$planted"

# ---- kernel-doc of the uapi, form of the ABI text
ok kernel_doc quiet "$scripts/kernel-doc" -none -Werror "$driver/include/uapi/millrace.h"
plant include/uapi/millrace.h '/ \* @sticky:/d'
ok kernel_doc_notices_a_field_without noisy "sticky.*not described" "$scripts/kernel-doc" -none -Werror "$planted/include/uapi/millrace.h"
ok abi_text quiet "$scripts/get_abi.pl" validate --dir "$driver/Documentation/ABI"
plant Documentation/ABI/testing/debugfs-millrace 's/^Description:/Descriptoin:/'
ok abi_text_with_a_fault noisy "have a description" "$scripts/get_abi.pl" validate --dir "$planted/Documentation/ABI"

# ---- coccicheck: each semantic patch but those that want an OCaml compiler
cocci() { # DIRECTORY SCRIPT...
    local dir=$1 script
    shift
    for script; do
        (cd "$work" && srctree=${scripts%/scripts} objtree=$work KBUILD_EXTMOD=$dir MODE=report J=1 COCCI=$script \
            LINUXINCLUDE="-I$dir -I$dir/include" bash "$scripts/coccicheck" 2>&1)
    done | grep -vE '^$|^Please check for false|^When using "patch" mode|^/usr/bin/spatch |^warning: line [0-9]+: should .* be a metavariable\?$'
}
if command -v spatch >/dev/null; then
    mapfile -t all < <(grep -rL --include='*.cocci' 'script:ocaml' "$scripts/coccinelle" | sort)
    ok "coccicheck_has_its_patches" test "${#all[@]}" -ge 60
    cp -r "$driver" "$work/driver"
    ran() { cocci "$@" >"$work/cocci"; quiet cat "$work/cocci"; } # grep without a line has failed
    ok "coccicheck: ${#all[@]} semantic patches have nothing to say" ran "$work/driver" "${all[@]}"
    plant card.c 's/kfree(ctx->extents);/if (ctx->extents)\n\t\tkfree(ctx->extents);/'
    ok coccicheck_notices_a_needless_test noisy "NULL check before" cocci "$planted" "$scripts/coccinelle/free/ifnullfree.cocci"
    plant submit.c 's/kfree(e);/kfree(e);\n\te->op = 0;/'
    ok coccicheck_notices_use_after_free noisy "reference preceded by free" cocci "$planted" "$scripts/coccinelle/free/kfree.cocci"
else
    skip coccicheck "no coccinelle (make deps-driver-check)"
fi
done_testing
