#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The server under ThreadSanitizer: many clients, streams, metrics, clients that leave, shutdown. Prints TAP.
# usage: threads.sh (from the root; MILLRACE is a build with -fsanitize=thread: make full-serve)
set -u
. tests/tools/tap.sh
. tests/serve/lib.sh
export TSAN_OPTIONS="log_path=$work/races exitcode=0"
start -d model:units=2 --max-seqs 4
for i in 1 2 3 4 5 6; do
    echo "{\"model\":\"demo\",\"prompt\":\"And\",\"max_tokens\":$i,\"seed\":$i,\"logprobs\":$((i % 3)),\"echo\":true}"
    echo "{\"model\":\"demo\",\"prompt\":[$i,\"x\"]}"
done >"$work/bodies"
ok requests_are_answered "$build/serve/load" "$port" 6 2 "$work/bodies" "$work/out"
for _ in 1 2 3; do
    curl -sN -m 2 -o /dev/null -H "$json" -d '{"model":"demo","prompt":"And","max_tokens":100,"stream":true,"n":3}' "$url/v1/completions" &
    clients="${clients:-} $!"
done
metric sequences_running >/dev/null
curl -s -m 100 -o "$work/last" -H "$json" -d '{"model":"demo","prompt":"And","max_tokens":5}' "$url/v1/completions" &
last=$!
until_metric sequences_running -ge 1 >/dev/null
kill -TERM "$pid"
# shellcheck disable=SC2086
wait $clients
wait $last
wait "$pid"
ok server_ends_with_0 test $? = 0
# An encoder: its thread, clients that leave, shutdown.
toy_encoder
start
for i in 1 2 3 4 5 6; do
    curl -s -m $((i % 2 ? 100 : 1)) -o /dev/null -H "$json" -d "{\"input\":[\"a\"$(printf ',"the mill stands"%.0s' $(seq 400))]}" "$url/v1/embeddings" &
    encoded="${encoded:-} $!"
done
curl -s -m 100 -o "$work/reply" -H "$json" -d '{"input":"a"}' "$url/v1/embeddings"
ok embeddings_are_answered grep -q '"total_tokens"' "$work/reply"
kill -TERM "$pid"
# shellcheck disable=SC2086
wait $encoded
wait "$pid"
ok the_encoders_server_ends_with_0 test $? = 0
cat "$work"/races* 2>/dev/null | head -60 | sed 's/^/# /'
ok no_data_races bash -c "! ls '$work'/races* >/dev/null 2>&1"
done_testing
