#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# 32 clients at the same time on the demo model: none lost, each gets the bits that it gets alone; and texts that run at
# the same time share the device's runs, which are counted. How much faster 32 clients are is printed: it depends on
# what else the machine does. Prints TAP.
set -u
. tests/tools/tap.sh
. tests/serve/lib.sh
head -c 6000 models/demo/heldout.txt | tr '\n"\\' '   ' | fold -w 50 | head -64 | awk '{ printf "{\"model\":\"demo\",\"prompt\":\"%s\",\"max_tokens\":%d,\"temperature\":0.8,\"seed\":%d,\"logprobs\":%d,\"ignore_eos\":true}\n", $0, 16 + NR % 17, NR, NR % 3 }' >"$work/bodies"
start --max-seqs 32
lost=0
one=$("$build/serve/load" "$port" 1 1 "$work/bodies" "$work/one") || lost=1
all=$("$build/serve/load" "$port" 32 1 "$work/bodies" "$work/all") || lost=1
ok all_requests_are_answered test $lost = 0 -a "$(grep -c '^200 ' "$work/one")" = 64 -a "$(grep -c '^200 ' "$work/all")" = 64
ok each_gets_the_bits_that_it_gets_alone cmp "$work/one" "$work/all"
echo "# 64 requests: one client ${one#* } s, 32 clients ${all#* } s, $(awk "BEGIN { printf \"%.1f\", ${one#* } / ${all#* } }") times as fast"
# 32 texts of 32 tokens that are there at once: a run of the device for each token of all, and some for the prompts.
before=$(metric device_steps_total)
ask '{"model":"demo","prompt":"And","max_tokens":32,"ignore_eos":true,"n":32}' >/dev/null
runs=$(($(metric device_steps_total) - before))
echo "# 32 texts of 32 tokens: $runs runs of the device"
ok texts_share_the_runs_of_the_device test $runs -ge 32 -a $runs -le 64
ok the_batch_was_full test "$(metric 'batch_size_bucket{le="16"}')" -lt "$(metric 'batch_size_bucket{le="32"}')"
stop
ok load_ends_with_0 test $? = 0
done_testing
