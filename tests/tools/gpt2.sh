# SPDX-License-Identifier: Apache-2.0
# Sourced by tests that need a GPT-2, behind tests/tools/tap.sh: $gpt2 is a small one of random weights, whose text
# follows from the bits of its logits if it is sampled at a high temperature.
gpt2=$work/gpt2
build=${build:-${BUILD:-build}}
mkdir "$gpt2" &&
    ${CC:-gcc} -std=c17 -Ihost -Ihost/include -I"$build/gen" -o "$work/gpt2-model" tests/tools/gpt2-model.c "$build/libmillrace.a" -ljansson -lm &&
    "$work/gpt2-model" "$gpt2" || exit 1
