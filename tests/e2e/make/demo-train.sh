#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# make demo-train's script, cut short: a small model on the RTL; the demo model on the C model, beside what is recorded.
set -u
. tests/tools/tap.sh
export MILLRACE=$millrace ENGINES=1 EVAL=4
cat >"$work/small.yaml" <<END2
train_input: {data_dir: $PWD/examples/train/pages.txt, batch_size: 1, max_sequence_length: 8}
model: {name: gptj, vocab_size: 257, hidden_size: 32, num_hidden_layers: 1, num_heads: 2,
  filter_size: 64, rotary_dim: 8, max_position_embeddings: 64}
optimizer: {optimizer_type: AdamW, learning_rate: 1e-3}
runconfig: {max_steps: 1, seed: 1}
END2
demo() { bash tests/tools/demo-train.sh >"$work/demo.out" 2>"$work/demo.err"; }
small() { MODEL=$work/small RATE=5e-2 STEPS=2 DEVICE=sim:tinyt demo; }
ok "a small model is made" "$millrace" train "$work/small.yaml" -o "$work/state" --export "$work/small" -q
ok "it learns on the RTL" small
ok "cycles and the share of MACs are shown" grep -qE '^ +2 .* [0-9]{6,} +[0-9]+\.[0-9] % ' "$work/demo.out"
ok "the C model's bytes are mentioned" grep -q 'each byte of them is the C model' "$work/demo.out"
on_model() { STEPS=3 DEVICE=model:tinyt EVAL=0 demo; }
ok "three steps of the demo model" on_model
beside() { awk '$1 ~ /^[0-3]$/ && $3 ~ /^[0-9]/ { n++; bad += ($2 - $3) ^ 2 > 0.05 ^ 2 } END { exit bad || n != 4 }' "$work/demo.out"; }
ok "fp32's recorded losses are near" beside
cat >"$work/other" <<END2
#!/bin/bash
"$(realpath "$millrace")" "\$@" || exit
[[ ! "\$*" =~ -o\ ([^ ]*)\ -d\ model:sim ]] || printf x >>"\${BASH_REMATCH[1]}/state"
END2
chmod +x "$work/other"
noticed() { ! MILLRACE=$work/other MODEL=$work/small RATE=5e-2 STEPS=1 DEVICE=model:tinyt demo && ! grep -q 'each byte' "$work/demo.out"; }
ok "another byte of the state is noticed" noticed
wrong() { ! DEVICE=sim:nosuch demo && ! grep -q 'each byte' "$work/demo.out"; }
ok "without a device it fails" wrong
done_testing
