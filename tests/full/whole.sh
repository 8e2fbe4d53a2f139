#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A whole model: a step of training of a GPT-J with 12 layers of 768 and the whole vocabulary, 128 tokens, on the
# simulated RTL. Its state must be the C model's. The first step has no units of its gradients yet and runs twice.
# usage: MILLRACE=build/millrace tests/full/whole.sh (from the root; 4 GB of disk in TMPDIR)
set -u
. tests/tools/tap.sh
cat >"$work/whole.yaml" <<END
train_input: {data_dir: $PWD/examples/train/pages.txt, batch_size: 1, max_sequence_length: 128}
model: {name: gptj, vocab_size: 50400, hidden_size: 768, num_hidden_layers: 12, num_heads: 12,
  filter_size: 3072, rotary_dim: 32, max_position_embeddings: 128}
optimizer: {optimizer_type: AdamW, learning_rate: 1e-4}
runconfig: {max_steps: 1, seed: 1}
END
step() { "$millrace" train "$work/whole.yaml" -o "$work/$1" -d "$2" --quiet --json >"$work/$1.json"; }
ok "a step on the RTL" step rtl "${DEVICE:-sim:sim,train}"
ok "a step on the C model" step model model:sim,train
for f in header state; do ok "$f: the same bytes" cmp "$work/rtl/$f" "$work/model/$f"; done
ok "cycles are counted" grep -q '"cycles": *[1-9]' "$work/rtl.json"
sed 's/^/# /' "$work/rtl.json"
done_testing
