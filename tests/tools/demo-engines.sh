#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# make demo-engines: the demo model learns on one engine and on two, and both states are compared.
set -u
millrace=${MILLRACE:-build/millrace}
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
head -c 6000 models/demo/heldout.txt >"$work/text"
learn() {
    "$millrace" train models/demo --data "$work/text" --steps 3 --sequence 64 --batch 2 \
        --accumulate 4 --lr 3e-4 -d model:sim "$@" || exit $?
}
echo "Three steps of four micro-batches on one engine (the C model):"
learn -o "$work/one"
echo
echo "The same on two engines, a process each:"
learn -o "$work/two" --engines 2
echo
for f in header state; do
    cmp "$work/one/$f" "$work/two/$f" || exit 1
done
echo "Weights, moments and units of both are the same, byte by byte. docs/train/engines.md says why."
