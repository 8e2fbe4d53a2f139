#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Fine-tuning measured on texts of yours: the demo model learns the first part of each, in fp32 and on
# model:, with the same batches. Prints lines as tests/train/learn.c does, and what they say in words.
# usage: tests/train/texts.sh FILE...   (from the root, after 'make build/train/learn')
# STEPS, BATCH (windows of 64 tokens) and RATE; KIB of each text are read, of which the last tenth is not learnt.
set -u
build=${BUILD:-build} steps=${STEPS:-150} batch=${BATCH:-32} rate=${RATE:-5e-4} kib=${KIB:-300}
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
[ $# -gt 0 ] || { echo "usage: tests/train/texts.sh FILE..." >&2; exit 2; }
for file; do
    name=$(basename "$file" .txt)
    head -c "${kib}K" -- "$file" >"$work/$name.txt" && mkdir "$work/$name" || exit 1
    "$build/train/learn" "$name" models/demo "$work/$name.txt" "$batch" "$steps" "$rate" 1 "$work/$name" >"$work/lines" || exit 1
    cat "$work/lines"
    awk -F, 'NF == 5 { if (!n++) a = $4; b = $4; c = $5 }
        END { printf "# %s: held-out loss %.4f before; %.4f after in fp32, %.4f on model:\n", $1, a, b, c }' "$work/lines"
done
