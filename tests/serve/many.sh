#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A day's worth of short requests (1 to 20 prompt tokens, 1 to 3 new ones; some streams, some that are refused, some
# clients that go away): none lost, and the process does not grow. Prints TAP. REQUESTS=100000
# What leaks, grows in each of three windows of a third of them; what the allocator does now and then, does not.
set -u
. tests/tools/tap.sh
. tests/serve/lib.sh
n=${REQUESTS:-100000}
for i in 1 2 3; do
    echo "{\"model\":\"demo\",\"prompt\":[$i],\"max_tokens\":$i}"
    echo "{\"model\":\"demo\",\"prompt\":\"And he said unto them, $i\",\"max_tokens\":1,\"logprobs\":$i,\"echo\":true}"
    echo "{\"model\":\"demo\",\"prompt\":\"In the beginning\",\"max_tokens\":3,\"temperature\":0,\"stop\":[\"God\",\"the $i\"]}"
    echo "{\"model\":\"demo\",\"prompt\":[1,2],\"max_tokens\":\"$i\"}"
done | sed 's/"max_tokens":\([0-9]\)/"seed":1,&/' >"$work/bodies"
start --max-seqs 32
rss() { metric resident_memory_bytes; }
leave() { # a few go away in the middle: when they have got the first event
    for _ in $(seq 20); do
        curl -sN -H "$json" -d '{"model":"demo","prompt":"And","max_tokens":400,"stream":true,"n":8,"ignore_eos":true}' "$url/v1/completions" |
            head -1 >/dev/null
    done
}
leave
ok warming_up "$build/serve/load" "$port" 32 $((n / 10 / 12)) "$work/bodies" "$work/first"
least=
for window in 1 2 3; do
    before=$(rss)
    leave
    ok all_are_answered_$window "$build/serve/load" "$port" 32 $((n * 3 / 10 / 12)) "$work/bodies" "$work/all"
    until_metric sequences_running -eq 0 >/dev/null
    grown=$(($(rss) - before))
    echo "# resident memory: $before bytes, and $grown more after three tenths of $n requests"
    [ -n "$least" ] && [ "$least" -le $grown ] || least=$grown
    ok answers_are_the_same_$window cmp "$work/first" "$work/all"
    ok refused_ones_are_refused_$window test "$(grep -c '^400 ' "$work/all")" = 3
done
ok requests_were_counted test "$(metric 'http_requests_total{path="/v1/completions",code="200"}')" -ge $((n * 3 / 4 - 30))
# Sixteen bytes of each request would be 480,000.
ok memory_does_not_grow test "$least" -lt 300000
stop
ok many_end_with_0 test $? = 0
done_testing
