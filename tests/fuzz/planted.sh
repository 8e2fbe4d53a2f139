#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A fuzzer that finds nothing may look at nothing. Here one line of each parser is changed in a copy so
# that it reads or writes out of bounds; the target has so many executions to find it, from the corpus and with
# the same seed each time. TAP.
# usage: planted.sh [TARGET]... (from the root, after `make fuzz`' targets are built)
#        planted.sh --check    only whether each expression still changes its file
set -u
build=${BUILD:-build} runs_most=${FUZZ_RUNS:-10000000} cc=${FUZZ_CC:-clang-19} n=0 failed=0
check=0
[ "${1:-}" = --check ] && check=1 && shift
only=" $* "
work=$build/fuzz/planted
mkdir -p "$work"
libs="$(${MAKE:-make} -s --no-print-directory libs) -lhdf5_serial -lzstd -lyaml"
san="-fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer"

planted() { # target file sed-expression what
    [ "$only" = "  " ] || [[ $only == *" $1 "* ]] || return 0
    n=$((n + 1))
    local dir=$work/$1 ok=1 found
    rm -rf "$dir" && mkdir -p "$dir/new"
    sed -e "$3" "$2" >"$dir/planted.c"
    cmp -s "$2" "$dir/planted.c" && ok=0 && echo "# the expression changes nothing in $2"
    # shellcheck disable=SC2086
    if [ $check = 1 ]; then
        found="still changes its file"
    elif [ $ok = 1 ] && $cc -std=c17 -D_GNU_SOURCE -O1 -g -w -ffp-contract=off $san -fsanitize=fuzzer-no-link -Ihost \
        -Ihost/include -I"$build/gen" -I. -iquote "$(dirname "$2")" -c -o "$dir/planted.o" "$dir/planted.c" &&
        $cc $san -fsanitize=fuzzer -o "$dir/fuzz" "$build/fuzz/obj/tests/fuzz/$1.o" \
            "$build/fuzz/obj/tests/fuzz/fuzz.o" "$dir/planted.o" "$build/fuzz/libmillrace.a" -Wl,--wrap=mmap,--wrap=munmap $libs; then
        "$dir/fuzz" -seed=1 -runs="$runs_most" -timeout=600 -artifact_prefix="$dir/" "$dir/new" "tests/fuzz/corpus/$1" \
            >"$dir/log" 2>&1 && ok=0 && echo "# nothing found in $runs_most executions"
        grep -qE 'ERROR: AddressSanitizer|runtime error' "$dir/log" || ok=0
        found=$(grep -oE '^#[0-9]+' "$dir/log" | tail -1)
        found="found after ${found:-#0} executions"
    else
        ok=0
    fi
    [ $ok = 1 ] && echo "ok $n - planted in $1: $4 # $found" && return
    failed=1
    echo "not ok $n - planted in $1: $4"
}

planted safetensors host/checkpoint/safetensors.c 's/json_array_size(value) > MR_MAX_RANK/0/' \
    'a shape of any rank goes into an array of 8'
planted zip host/checkpoint/torch_zip.c 's/size += strlen(zip->members\[i\].name) + 1;/size += strlen(zip->members[i].name);/' \
    'no room for the NUL behind a name'
planted pickle host/checkpoint/torch_pickle.c 's/if (n > m->size - m->at)/if (n > m->size)/' \
    'an operand may go beyond the end'
planted tokenizer host/text/loader.c 's/|| json_integer_value(value) < 0 ||/||/' 'negative ids index a table'
planted config host/common/str.c 's/size < MR_SHOWN ? size : MR_SHOWN - 4/size/' 'a long name goes into a message whole'
planted packed host/pack/packed_read.c 's/ || s->size > r->file->size - start)/)/' 'a section may end behind the file'
planted kv host/engine/kv_file.c 's/if (h.file_bytes != f->map.size)/if (0)/' 'a file may be shorter than it says'
planted store host/store/header.c 's/if (v->size\[f\] == want)/if (1)/' 'a file may be shorter than the header says'
planted completion host/serve/completion.c 's/n > MR_COMPLETION_STOPS/n > 1000/' 'more stop strings than there is room for'
planted completion host/serve/embedding.c 's/calloc(n + 1, sizeof \*\*ids)/calloc(n \/ 2 + 1, sizeof **ids)/' 'room for half of the token ids'
planted records host/data/csv.c 's/if (c->fields == MR_CSV_FIELDS)/if (0)/' 'more fields than there is room for'
planted examples host/data/examples.c 's/malloc(3 \* (size_t)e->length \* sizeof \*e->row)/malloc(3 * (size_t)e->length)/' \
    'a row that is longer than the room for one'
planted training host/config/yaml.c 's/rc == 0 \&\& p->depth == MR_YAML_DEPTH/0/' 'deeper than there is room for'
planted adapter host/checkpoint/peft.c 's/n < 1 || n > MR_LORA_TARGETS/n < 1/' 'more targets than there is room for'
echo "1..$n"
[ $n -gt 0 ] && exit $failed
exit 1
