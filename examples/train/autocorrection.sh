#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Autocorrection: pairs of a damaged line and the line, made of a text. In every fourth word of at
# least four letters two neighbours change places, or a letter is missing.
# usage: examples/train/autocorrection.sh [TEXT [LINE]]
set -eu
: "${RATE:=1e-3}" "${BATCH:=16}"
. "$(dirname "$0")/settings.sh"
LC_ALL=C awk '
    function damaged(word,  at) {
        at = 2 + int(rand() * (length(word) - 2))
        if (rand() < 0.5)
            return substr(word, 1, at - 1) substr(word, at + 1)
        return substr(word, 1, at - 1) substr(word, at + 1, 1) substr(word, at, 1) substr(word, at + 2)
    }
    BEGIN { srand(1) }
    length($0) < 40 || length($0) > 160 || /["\\]/ { next }
    {
        wrong = ""
        for (i = 1; i <= NF; i++)
            wrong = wrong " " (length($i) >= 4 && rand() < 0.25 ? damaged($i) : $i)
        printf "{\"prompt\": \"Wrong:%s\\nRight:\", \"completion\": \" %s\"}\n", wrong, $0
    }' "${1:-models/demo/heldout.txt}" >"$work/pairs.jsonl"
windows "$work/pairs.jsonl"
before_and_after "Wrong: ${2:-And they lifetd up thier voice, and wpet agian.}
Right:" 150
