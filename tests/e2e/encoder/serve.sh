#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# An encoder behind `millrace serve`: /v1/embeddings against `millrace embed`, wrong requests, what such a server does not
# answer, clients that leave, its end. Prints TAP; runs from the repository's root.
set -u
. tests/tools/tap.sh
. tests/serve/lib.sh
toy_encoder

# post PATH BODY: the response's body in $work/reply; prints the status.
post() { curl -s -m 600 -o "$work/reply" -w '%{http_code}' -H "$json" --data-binary "$2" "$url$1"; }
# status NAME STATUS WORDS BODY [PATH]
status() {
    local got
    got=$(post "${5:-/v1/embeddings}" "$4")
    ok "$1" test "$got" = "$2"
    ok "$1_says_why" grep -qE -e "$3" "$work/reply"
}
# rows: the numbers of each embedding of the reply, a line each.
rows() { grep -oE '"embedding":\[[^]]*' "$work/reply" | sed 's/.*\[//; s/,/ /g'; }

# near TEXT TEXT: the same numbers, but for the last digits: several texts are multiplied together.
near() {
    awk -v a="$1" -v b="$2" 'BEGIN { n = split(a, x, /[ \n]+/); if (n < 20 || split(b, y, /[ \n]+/) != n) exit 1
        for (i = 1; i <= n; i++) if ((x[i] - y[i]) ^ 2 > 1e-10) exit 1 }'
}

# ---- what it gives is what `millrace embed` prints
start --log
ok the_start_line_says_what_is_served test "$(sed 's/ on http.*//' "$work/address")" = "millrace: serving toy (fp32, 64 positions, 1 text at a time, cpu:)"
printf '%s\n' 'the mill stands' 'a stream' 'the stream runs past the mill' >"$work/lines"
"$millrace" embed "$work/toy" -f "$work/lines" >"$work/want"
ok one_text test "$(post /v1/embeddings '{"model":"toy","input":"the mill stands","user":"me"}')" = 200
ok one_text_is_what_embed_prints near "$(rows)" "$(head -1 "$work/want")"
ok usage_counts_its_tokens grep -qE '"model":"toy","usage":\{"prompt_tokens":([0-9]+),"total_tokens":\1\}\}$' "$work/reply"
ok several_texts test "$(post /v1/embeddings '{"input":["the mill stands","a stream","the stream runs past the mill"],"dimensions":20,"encoding_format":"float"}')" = 200
ok several_texts_are_what_embed_prints near "$(rows)" "$(cat "$work/want")"
ok they_are_numbered test "$(grep -o '"index":[0-9]*' "$work/reply" | tr '\n' ' ')" = '"index":0 "index":1 "index":2 '
ok base64 test "$(post /v1/embeddings '{"input":["the mill stands"],"encoding_format":"base64"}')" = 200
ok base64_is_the_same_floats test "$(sed 's/.*"embedding":"\([^"]*\)".*/\1/' "$work/reply" | base64 -d | od -An -v -t f4 -w80 | awk '{ for (i = 1; i <= NF; i++) printf "%.5f ", $i }')" = \
    "$(head -1 "$work/want" | awk '{ for (i = 1; i <= NF; i++) printf "%.5f ", $i }')"
# Token ids are those of the text, without [CLS] and [SEP].
words=$(grep -nxE '[a-z]{3,}' tests/fixtures/wordpiece/vocab.txt | head -3)
ids=$(sed 's/:.*//' <<<"$words" | awk '{ print $1 - 1 }' | paste -sd,)
ok token_ids test "$(post /v1/embeddings "{\"input\":[$ids]}")" = 200
ok token_ids_give_the_same near "$(rows)" "$("$millrace" embed "$work/toy" "$(sed 's/.*://' <<<"$words" | paste -sd' ')")"
ok several_lists_of_ids test "$(post /v1/embeddings '{"input":[[7,8],[9]]}')" = 200
ok they_are_two_rows test "$(rows | wc -l)" = 2
long=$(printf 'mill %.0s' $(seq 200))
ok a_long_text_is_cut_on_request test "$(post /v1/embeddings "{\"input\":\"$long\",\"truncate\":true}")" = 200
ok cut_as_embed_cuts near "$(rows)" "$("$millrace" embed "$work/toy" "$long" --truncate)"
ok models_say_how_much_it_reads bash -c "curl -s $url/v1/models/toy | grep -q '\"max_model_len\":64,\"max_seqs\":1,\"format\":\"fp32\",\"device\":\"cpu:\"'"

# ---- wrong requests
status a_long_text 400 'too long: the model reads 64.*context_length_exceeded' "{\"input\":[\"a\",\"$long\"]}"
status arguments_that_are_null 200 '"embedding":' '{"input":"a","model":null,"user":null,"truncate":null,"dimensions":null,"encoding_format":null}'
status an_id_beyond_32_bits 400 'a number out of range' '{"input":[2147483648]}'
status an_argument_like_no_other 400 "no argument 'zzzzzzzz'\"" '{"input":"a","zzzzzzzz":1}'
status no_body 400 'body' ''
status no_input 400 "'input' is missing" '{"model":"toy"}'
status no_texts 400 "'input' has 0 texts" '{"input":[]}'
status an_empty_text 400 'input\[1\]: .input. has an empty text' '{"input":["a",""]}'
status input_of_a_number 400 "must be a string, .* not an integer" '{"input":7}'
status inputs_of_two_kinds 400 'input\[1\]: .*not an integer' '{"input":["a",7]}'
status ids_of_two_kinds 400 'a token id is expected' '{"input":[1,"a"]}'
status an_id_beyond_the_vocabulary 400 'token 99999 is outside the vocabulary of 425' '{"input":[[1],[99999]]}'
status an_id_beyond_64_bits 400 'a token id is expected' '{"input":[99999999999999999999999]}'
status a_negative_id 400 'a number out of range' '{"input":[-1]}'
status other_dimensions 400 "can only be the model's 20" '{"input":"a","dimensions":10}'
status another_format 400 'float or base64' '{"input":"a","encoding_format":"int8"}'
status a_format_that_is_no_string 400 'float or base64' '{"input":"a","encoding_format":7}'
status another_argument 400 "no argument 'inputs'; did you mean input" '{"inputs":"a"}'
status truncate_of_a_word 400 "'truncate' must be true or false" '{"input":"a","truncate":"yes"}'
status a_model_of_a_number 400 "'model' must be a string, not an integer.*\"param\":\"model\"" '{"input":"a","model":1}'
status a_user_of_a_number 400 "'user' must be a string, not an integer.*\"param\":\"user\"" '{"input":"a","user":1}'
status another_model 404 "this server has 'toy'.*model_not_found" '{"input":"a","model":"gpt-4"}'
status a_body_that_ends 400 'body' '{"input":'
status too_many_texts 400 "has 2049 texts" "{\"input\":[\"a\"$(printf ',"a"%.0s' $(seq 2048))]}"
ok a_get test "$(curl -s -o /dev/null -w '%{http_code}' "$url/v1/embeddings")" = 405
for path in /v1/completions /v1/chat/completions /v1/tokenize /v1/detokenize; do
    status "$path" 400 'an encoder, which writes no text; /v1/embeddings' '{}' $path
done
ok the_page test "$(curl -s -o /dev/null -w '%{http_code}' "$url/")" = 400
ok texts_are_counted test "$(metric embedded_texts_total)" = 10
ok the_log_has_a_line_each grep -q '^/v1/embeddings 200 ' "$work/log"

# ---- clients that leave, and the end
many="{\"input\":[\"$(printf 'a stream %.0s' 1 2 3 4)\"$(printf ',"the mill stands in the stream"%.0s' $(seq 599))]}"
printf '%s' "$many" >"$work/many"
for _ in 1 2 3 4; do
    curl -s -m 0.05 -o /dev/null -H "$json" --data-binary "@$work/many" "$url/v1/embeddings"
done
ok others_are_answered_when_clients_leave test "$(post /v1/embeddings '{"input":"a stream"}')" = 200
ok with_the_same_numbers near "$(rows)" "$(sed -n 2p "$work/want")"
# accepted: requests that are answered or will be.
accepted() { curl -s -m 600 "$url/metrics" | awk '/^millrace_(sequences_(running|waiting)|http_requests_total\{path="\/v1\/embeddings",code="200"\})/ { n += $2 } END { print n + 0 }'; }
before=$(accepted)
for i in 1 2 3; do
    curl -s -m 600 -o "$work/late$i" -w '%{http_code}\n' -H "$json" --data-binary "@$work/many" "$url/v1/embeddings" >>"$work/statuses" &
    clients="${clients:-} $!"
done
for _ in $(seq 3000); do
    [ "$(accepted)" -ge $((before + 3)) ] && break
    sleep 0.02
done
kill -TERM $pid
# shellcheck disable=SC2086
wait $clients
wait $pid
ok it_ends_with_0 test $? = 0
ok accepted_requests_were_answered test "$(sort -u "$work/statuses")" = 200
ok whole test "$(grep -c '"index":599,.*"total_tokens"' "$work/late1" "$work/late2" "$work/late3" | grep -c ':1$')" = 3

start --queue 0 --timeout 600
for i in 1 2 3 4 5 6; do
    curl -s -m 600 -o /dev/null -w '%{http_code}\n' -H "$json" --data-binary "@$work/many" "$url/v1/embeddings" >>"$work/full" &
    waiting="${waiting:-} $!"
done
# shellcheck disable=SC2086
wait $waiting
ok what_may_not_wait_is_refused grep -qx 429 "$work/full"
ok and_one_is_answered grep -qx 200 "$work/full"
kill -TERM $pid
wait $pid

# The last tensor's bytes are no numbers: what it gives is none, and JSON has no word for it.
cp -r "$work/toy" "$work/bad"
head -c 80 /dev/zero | tr '\0' '\377' | dd of="$work/bad/model.safetensors" bs=1 seek=$(($(stat -c %s "$work/bad/model.safetensors") - 80)) conv=notrunc 2>/dev/null
whole=$subject subject=$work/bad
start
status weights_that_are_no_numbers 500 'a number that is none for input 0; its weights are at fault' '{"input":"a"}'
kill -TERM $pid
wait $pid
subject=$whole

start -d model:tiny
ok an_engine_s_start_line_says_mxint8 test "$(sed 's/ on http.*//' "$work/address")" = "millrace: serving toy (mxint8, 64 positions, 1 text at a time, model:tiny)"
kill -TERM $pid
wait $pid

# ---- the command
exits serve_an_encoder_nowhere 2 'nowhere' serve "$work/toy" -d nowhere: --port 0
exits serve_an_encoder_without_its_weights 3 'model.safetensors' serve "$(mkdir "$work/bare" && cp "$work"/toy/*.json "$work/bare" && echo "$work/bare")" --port 0
done_testing
