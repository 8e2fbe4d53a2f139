# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# A BERT for tests, drawn at random, for scripts that have sourced tap.sh: encoder NAME CLASS [MORE [POSITIONS]] makes it in
# $work/NAME. MORE is put into config.json.
${CC:-gcc} -std=c17 -D_GNU_SOURCE -Ihost -Ihost/include -I"${BUILD:-build}/gen" -Itests -o "$work/bert-model" tests/tools/bert-model.c \
    "${BUILD:-build}/libmillrace.a" -ljansson -lm || exit 1
encoder() {
    mkdir -p "$work/$1" && "$work/bert-model" "$work/$1" tests/fixtures/wordpiece/vocab.txt "$2" "${3:-}" "${4:-64}" || exit 1
}
