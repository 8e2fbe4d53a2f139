#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# `millrace serve` driven by curl: every endpoint, numbers against the library, bad requests, slow and
# abandoned clients, limits, shutdown. Prints TAP; runs from the repository's root on the demo model.
set -u
. tests/tools/tap.sh
. tests/serve/lib.sh

# status NAME STATUS WORDS BODY [CURL OPTIONS]: the answer's status, and a pattern in its body.
status() {
    local name=$1 want=$2 words=$3 got
    shift 3
    got=$(ask "$@")
    ok "$name" test "$got" = "$want"
    [ "$got" = "$want" ] || sed 's/^/# /' "$work/reply"
    [ -z "$words" ] || ok "${name}_says_why" grep -qE -e "$words" "$work/reply"
}
# right NAME BODY: 200, and all that the library says.
right() {
    printf '%s' "$2" >"$work/request"
    ok "$1" test "$(ask "$2")" = 200
    ok "$1_is_what_the_library_computes" "$build/serve/check" "$work/demo.mill" "$work/request" "$work/reply"
}
start --max-seqs 4 --queue 60

# ---- the other paths
ok health_is_ok bash -c "curl -s $url/health | grep -q '\"ok\"'"
ok models_are_listed bash -c "curl -s $url/v1/models | grep -q '\"id\":\"demo\"'"
ok a_model_is_described bash -c "curl -s $url/v1/models/demo | grep -q '\"max_model_len\":512,\"max_seqs\":4,\"format\":\"mxint8\",\"device\":\"model:sim\"'"
ok the_start_line_says_what_is_served_and_where test "$(cat "$work/address")" = \
    "millrace: serving demo (mxint8, 512 positions, 4 texts at a time, model:sim) on $url"
ok nothing_else_is_said_at_the_start test ! -s "$work/log"
ok head_has_no_body test "$(curl -sI -o /dev/null -w '%{http_code} %{size_download}' "$url/health")" = '200 0'
curl -s "$url/v2" >"$work/reply"
for path in /v1/completions /v1/chat/completions /v1/tokenize /v1/detokenize /v1/models; do
    ok "unknown_path_is_told_of_$path" grep -qE "[ ]$path(,| and|\")" "$work/reply"
done
ok unknown_path_is_404 test "$(curl -s -o /dev/null -w '%{http_code}' "$url/v2")" = 404
ok unknown_model_is_404 test "$(curl -s -o /dev/null -w '%{http_code}' "$url/v1/models/gpt-4")" = 404
ok wrong_method_is_405 test "$(curl -s -o /dev/null -w '%{http_code}' "$url/v1/completions")" = 405
ok wrong_method_names_the_right_one bash -c "curl -s -D - -o /dev/null $url/v1/completions | grep -qi '^allow: POST'"

# ---- names in Host: a page of another site that calls itself this machine (DNS rebinding) is refused
# answer [CURL OPTIONS]: the status of /v1/models.
answer() { curl -s -m 600 -o "$work/reply" -w '%{http_code}' "$@" "$url/v1/models"; }
for host in 127.0.0.1 "127.0.0.1:$port" localhost "LocalHost:$port" '[::1]' "[::1]:$port" 192.0.2.7:80; do
    ok "host_$host" test "$(answer -H "Host: $host")" = 200
done
for host in attacker.example "attacker.example:$port" localhost.attacker.example 127.0.0.1.attacker.example \
    localhost:x '[::1' '[localhost]' 2130706433; do
    ok "other_host_$host" test "$(answer -H "Host: $host")" = 403
done
ok another_host_is_told_what_to_do grep -q -e '--allow-host NAME' "$work/reply"
ok localhost_by_name test "$(curl -s -m 600 -o /dev/null -w '%{http_code}' "http://localhost:$port/")" = 200
ok another_host_has_no_page test "$(curl -s -m 600 -o "$work/reply" -w '%{http_code}' -H 'Host: attacker.example' "$url/")" = 403
status another_host_has_no_completions 403 'Host' '{"model":"demo","prompt":"a"}' -H 'Host: attacker.example'
# raw REQUEST: the first line of the answer.
raw() { exec 3<>"/dev/tcp/127.0.0.1/$port" && printf "$1" >&3 && head -1 <&3; exec 3>&-; }
ok second_host_is_refused grep -q ' 403 ' <<<"$(raw 'GET /health HTTP/1.1\r\nHost: localhost\r\nHost: attacker.example\r\n\r\n')"
ok empty_host_is_refused grep -q ' 403 ' <<<"$(raw 'GET /health HTTP/1.1\r\nHost:\r\n\r\n')"
ok no_host_is_no_browser grep -q ' 200 ' <<<"$(raw 'GET /health HTTP/1.0\r\n\r\n')"

# ---- the page at /, without a browser (with one: make test-page)
curl -s -D "$work/head" -o "$work/page" "$url/"
ok page_is_the_file cmp host/serve/page.html "$work/page"
ok page_is_html grep -qi '^content-type: text/html; charset=utf-8' "$work/head"
ok page_is_below_100_kB test "$(wc -c <"$work/page")" -lt 100000
# The hash that a browser computes of what stands between <script> and </script>, or <style> and </style>.
hash_of() {
    local body hex
    body=$(<"$work/page")
    body=${body#*$'\n'"<$1>"}
    body=${body%%"</$1>"*}
    hex=$(printf '%s' "$body" | sha256sum | cut -c1-64)
    # shellcheck disable=SC2059 # the format is the bytes
    printf "$(sed 's/../\\x&/g' <<<"$hex")" | base64
}
policy=$(tr -d '\r' <"$work/head" | sed -n 's/^Content-Security-Policy: //ip')
for t in script style; do
    ok "page_may_run_its_own_$t" grep -qF "$t-src 'sha256-$(hash_of $t)';" <<<"$policy"
    ok "page_has_one_$t" test "$(grep -c "^<$t>\$" "$work/page")" = 1
done
ok page_may_load_nothing_else grep -qE "^default-src 'none'; .*connect-src 'self'; .*frame-ancestors 'none'" <<<"$policy"
ok page_policy_has_no_hole bash -c "! grep -qE \"unsafe|\\*|https?:\" <<<\"$policy\""
ok page_has_no_handlers_or_styles_in_its_tags bash -c "! grep -niE '<[^>]* (on[a-z]+|style)=' '$work/page'"
ok page_names_no_other_server bash -c "! grep -oE 'https?://[^ \"]*' '$work/page' | grep -v www.w3.org/2000/svg"
ok page_writes_text_only bash -c "! grep -nE 'innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(' '$work/page'"
for h in 'X-Content-Type-Options: nosniff' 'Referrer-Policy: no-referrer' 'X-Frame-Options: DENY' 'Cross-Origin-Opener-Policy: same-origin'; do
    ok "page_has_${h%%:*}" grep -qi "^$h" "$work/head"
done
ok the_api_is_no_page bash -c "curl -sI $url/health | tr -d '\r' | grep -qi \"^content-security-policy: default-src 'none'; frame-ancestors 'none'\$\""
ok page_has_a_head test "$(curl -sI -o /dev/null -w '%{http_code}' "$url/")" = 200
ok page_takes_no_post test "$(curl -s -o /dev/null -w '%{http_code}' -d x "$url/")" = 405

# ---- completions against the library
right greedy '{"model":"demo","prompt":"In the beginning","max_tokens":20,"temperature":0}'
right seeded '{"model":"demo","prompt":"And the king said","max_tokens":30,"temperature":0.9,"top_p":0.9,"top_k":50,"seed":7}'
right penalised '{"model":"demo","prompt":"And he said","max_tokens":30,"temperature":0,"repetition_penalty":1.5}'
right penalised_by_frequency '{"model":"demo","prompt":"And he said","max_tokens":30,"temperature":0,"frequency_penalty":0.8}'
right penalised_by_presence '{"model":"demo","prompt":"And he said","max_tokens":30,"temperature":0,"presence_penalty":1.2,"logprobs":1}'
right stopped '{"model":"demo","prompt":"In the beginning","max_tokens":40,"temperature":0,"stop":"world"}'
ok stop_is_the_reason grep -q '"finish_reason":"stop"' "$work/reply"
ok stop_string_is_not_in_the_text bash -c "! grep -q world '$work/reply'"
ask '{"model":"demo","prompt":"In the beginning","max_tokens":40,"temperature":0,"stop":" world","logprobs":0}' >/dev/null
ok tokens_end_where_the_text_does grep -q '"text":" of the".*"tokens":\[" of"," the"\]' "$work/reply"
right logprobs '{"model":"demo","prompt":"In the beginning","max_tokens":9,"temperature":1,"seed":3,"logprobs":3}'
right logprobs_without_others '{"model":"demo","prompt":"In the beginning","max_tokens":9,"temperature":0,"logprobs":0}'
right echo '{"model":"demo","prompt":"In the beginning","max_tokens":5,"temperature":0,"echo":true}'
right echo_with_logprobs '{"model":"demo","prompt":"And the LORD spake unto Moses, saying","max_tokens":4,"temperature":0,"logprobs":2,"echo":true}'
right no_model '{"prompt":"In the beginning","max_tokens":4,"temperature":0}'
ok no_model_is_answered_with_the_models_name grep -qF '"model":"demo"' "$work/reply"
right prompt_alone '{"model":"demo","prompt":"And the LORD spake unto Moses, saying","max_tokens":0,"logprobs":1,"echo":true}'
long=$(head -c 900 models/demo/heldout.txt | tr '\n"\\' '   ')
right echo_of_a_long_prompt "{\"model\":\"demo\",\"prompt\":\"$long\",\"max_tokens\":1,\"temperature\":0,\"logprobs\":1,\"echo\":true}"

status nul_in_a_prompt 200 '"text":"a\\u0000b.*"prompt_tokens":3,' '{"model":"demo","prompt":"a\u0000b","max_tokens":2,"temperature":0,"echo":true}'
ask '{"model":"demo","prompt":[[383,12],[383,12]],"max_tokens":3,"seed":5,"n":2}' >/dev/null
ok texts_of_a_prompt_have_seeds_of_their_own test "$(grep -oE '"text":"[^"]*"' "$work/reply" | sort -u | wc -l)" = 2
ok texts_are_numbered test "$(grep -oE '"index":[0-9]' "$work/reply" | tr -d '\n')" = '"index":0"index":1"index":2"index":3'
ok usage_counts_all_texts grep -q '"usage":{"prompt_tokens":4,"completion_tokens":12,"total_tokens":16}' "$work/reply"

# ---- streams: the pieces together are the text of the whole
for more in '' ',"logprobs":2' ',"stop":["the world","zzz"]' ',"stop":[", and in"],"logprobs":1' ',"echo":true,"logprobs":1'; do
    body="{\"model\":\"demo\",\"prompt\":\"In the beginning\",\"max_tokens\":20,\"temperature\":0$more"
    ask "$body}" >/dev/null && mv "$work/reply" "$work/whole"
    ask "$body,\"stream\":true}" >/dev/null
    text() { grep -oE '"text":"[^"]*"' "$1" | sed 's/^"text":"//; s/"$//' | tr -d '\n'; }
    logs() { grep -oE '"token_logprobs":\[[^]]*' "$1" | sed 's/.*\[//' | grep . | tr '\n' ',' | tr -s ,; }
    offsets() { grep -oE '"text_offset":\[[^]]*' "$1" | sed 's/.*\[//' | grep . | tr '\n' ',' | tr -s ,; }
    ok "stream_has_the_text$more" test "$(text "$work/reply")" = "$(text "$work/whole")"
    ok "stream_has_the_logprobs$more" test "$(logs "$work/reply")$(offsets "$work/reply")" = "$(logs "$work/whole")$(offsets "$work/whole")"
    ok "stream_ends_as_it_should$more" test "$(tail -2 "$work/reply" | head -1)" = 'data: [DONE]'
    ok "stream_has_one_reason$more" test "$(grep -c '"finish_reason":"' "$work/reply")" = 1
done
ok stream_is_events grep -qi '^content-type: text/event-stream' "$work/head"
ask '{"model":"demo","prompt":"And","max_tokens":3,"ignore_eos":true,"stream":true,"stream_options":{"include_usage":true}}' >/dev/null
ok stream_has_usage_at_its_end bash -c "tail -4 '$work/reply' | head -1 | grep -q '\"choices\":\[\],\"usage\":{\"prompt_tokens\":1,\"completion_tokens\":3'"

# ---- conversations: the prompt that `chat` makes of them
at() { # PATH BODY [CURL OPTIONS]: as ask
    local path=$1 body=$2
    shift 2
    curl -s -m 100 -o "$work/reply" -D "$work/head" -w '%{http_code}' -H "${type:-$json}" "$@" --data-binary "$body" "$url$path"
}
# status_at NAME STATUS WORDS PATH BODY
status_at() {
    local got
    got=$(at "$4" "$5")
    ok "$1" test "$got" = "$2"
    [ "$got" = "$2" ] || sed 's/^/# /' "$work/reply"
    ok "${1}_says_why" grep -qE -e "$3" "$work/reply"
}
talk='{"model":"demo","temperature":0,"max_tokens":40,"messages":[{"role":"system","content":"A talk."},{"role":"user","content":"Who art thou?"},{"role":"assistant","content":"I am he."},{"role":"user","content":[{"type":"text","text":"And "},{"type":"text","text":"then?"}]}]'
ask '{"model":"demo","temperature":0,"max_tokens":40,"prompt":"A talk.\nUser: Who art thou?\nAssistant: I am he.\nUser: And then?\nAssistant:","stop":"\nUser:"}' >/dev/null
text() { grep -oE '"text":"[^"]*"' "$1" | sed 's/^"text":"//; s/"$//' | tr -d '\n'; }
content() { grep -oE '"content":"[^"]*"' "$1" | sed 's/^"content":"//; s/"$//' | tr -d '\n'; }
same=$(text "$work/reply" | sed 's/^ *//')
ok a_conversation_is_answered test "$(at /v1/chat/completions "$talk}")" = 200
ok a_conversation_is_the_prompt_of_chat test "$(content "$work/reply")" = "$same" -a -n "$same"
ok a_conversation_has_openais_form grep -qE '^\{"id":"chatcmpl-[0-9a-f]*","object":"chat.completion","created":[0-9]*,"model":"demo","choices":\[\{"index":0,"message":\{"role":"assistant","content":' "$work/reply"
printf 'Who art thou?\n' | "$millrace" chat "$work/demo.mill" -d model: -n 40 >"$work/chat"
at /v1/chat/completions '{"model":"demo","temperature":0,"max_tokens":40,"messages":[{"role":"user","content":"Who art thou?"}]}' >/dev/null
ok chat_on_the_command_line_says_the_same test "$(content "$work/reply")" = "$(cat "$work/chat")"
at /v1/chat/completions "$talk,\"stream\":true,\"stream_options\":{\"include_usage\":true}}" >/dev/null
ok a_streamed_conversation_is_the_same test "$(content "$work/reply")" = "$same"
ok a_streamed_conversation_begins_with_the_role test "$(grep -c '"role":"assistant"' "$work/reply")" = 1
ok a_streamed_conversation_is_chunks test "$(grep -c '^data: {' "$work/reply")" = "$(grep -c '"object":"chat.completion.chunk"' "$work/reply")"
ok a_streamed_conversation_ends test "$(tail -2 "$work/reply" | head -1)" = 'data: [DONE]'
at /v1/chat/completions "$talk,\"logprobs\":true,\"top_logprobs\":2,\"n\":2}" >/dev/null
ok a_conversation_has_logprobs grep -qE '"logprobs":\{"content":\[\{"token":"[^"]*","logprob":-[0-9.e-]*,"bytes":\[[0-9,]*\],"top_logprobs":\[\{"token"' "$work/reply"
at /v1/chat/completions '{"model":"demo","max_tokens":1,"messages":[{"role":"user","content":"<|endoftext|>"}]}' >/dev/null
ok special_tokens_in_messages_are_text bash -c "[ $(grep -oE '"prompt_tokens":[0-9]+' "$work/reply" | cut -d: -f2) -gt 10 ]"
chat() { status_at "$1" "$2" "$3" /v1/chat/completions "$4"; }
chat no_messages 400 "'messages' is missing" '{"model":"demo"}'
chat conversation_without_a_model 200 '"model":"demo".*"role":"assistant"' '{"max_tokens":1,"messages":[{"role":"user","content":"x"}]}'
chat empty_messages 400 "'messages' is empty" '{"model":"demo","messages":[]}'
chat messages_of_another_type 400 "'messages' must be an array" '{"model":"demo","messages":"x"}'
chat message_without_content 400 "'content' is missing" '{"model":"demo","messages":[{"role":"user"}]}'
chat unknown_role 400 "'role' is tool" '{"model":"demo","messages":[{"role":"tool","content":"x"}]}'
chat picture_in_a_message 400 "reads text only" '{"model":"demo","messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"x"}}]}]}'
# Neighbours of one role are one message, with a line end between them.
at /v1/chat/completions '{"temperature":0,"max_tokens":9,"messages":[{"role":"system","content":"A"},{"role":"developer","content":"talk.\n"},{"role":"user","content":"Who art"},{"role":"user","content":"thou?\n"},{"role":"user","content":"Say."},{"role":"assistant","content":"I"},{"role":"assistant","content":"am."},{"role":"user","content":"And?"}]}' >/dev/null
joined=$(content "$work/reply")$(grep -o '"prompt_tokens":[0-9]*' "$work/reply")
ask '{"temperature":0,"max_tokens":9,"prompt":"A\ntalk.\nUser: Who art\nthou?\nSay.\nAssistant: I\nam.\nUser: And?\nAssistant:","stop":"\nUser:"}' >/dev/null
ok neighbours_of_one_role_are_one_message test "$joined" = "$(text "$work/reply" | sed 's/^ *//')$(grep -o '"prompt_tokens":[0-9]*' "$work/reply")" -a -n "$joined"
chat assistant_first 400 "take turns" '{"messages":[{"role":"assistant","content":"x"},{"role":"user","content":"y"}]}'
chat late_system_message 400 "take turns" '{"model":"demo","messages":[{"role":"user","content":"x"},{"role":"system","content":"y"}]}'
chat ends_with_the_assistant 400 "must end with one of the user" '{"model":"demo","messages":[{"role":"user","content":"x"},{"role":"assistant","content":"y"}]}'
chat prompt_of_a_conversation 400 "no argument 'prompt'" '{"model":"demo","prompt":"x"}'
# What today's clients send: taken where it asks for nothing, else refused by its name.
said='"max_tokens":1,"messages":[{"role":"user","content":"x"}]'
chat arguments_that_ask_for_nothing 200 '"role":"assistant"' "{$said,\"tools\":[],\"tool_choice\":\"none\",\"parallel_tool_calls\":false,\"functions\":null,
    \"response_format\":{\"type\":\"text\"},\"reasoning_effort\":null,\"modalities\":[\"text\"],\"store\":false,\"service_tier\":\"auto\",
    \"metadata\":{\"a\":\"b\"},\"min_p\":0.0,\"typical_p\":1,\"grammar\":\"\",\"cache_prompt\":true,\"logit_bias\":{}}"
while read -r name value; do
    chat "argument_${name}_that_asks_for_something" 400 "'$name' is not supported here; leave it out.*\"param\":\"$name\"" "{$said,\"$name\":$value}"
done <<'END'
tools [{"type":"function","function":{"name":"f"}}]
tool_choice "required"
response_format {"type":"json_object"}
reasoning_effort "high"
min_p 0.1
grammar "root ::= x"
logit_bias {"5":1}
store true
END
status arguments_of_conversations_that_ask_for_nothing 200 'text_completion' '{"model":"demo","prompt":"x","max_tokens":1,"tools":[],"parallel_tool_calls":false}'
status an_argument_of_conversations 400 "'reasoning_effort' is not supported here; leave it out.*\"param\":\"reasoning_effort\"" '{"model":"demo","prompt":"x","reasoning_effort":"low"}'
status an_argument_that_is_nearly_one 400 "no argument 'tempreature'; did you mean 'temperature'" '{"prompt":"x","tempreature":1}'
chat top_logprobs_alone 400 "needs 'logprobs'" '{"model":"demo","messages":[{"role":"user","content":"x"}],"top_logprobs":2}'
chat number_of_logprobs_in_a_conversation 400 "'logprobs' must be true or false, not an integer.*\"param\":\"logprobs\"" '{"model":"demo","messages":[{"role":"user","content":"x"}],"logprobs":2}'
chat a_conversation_too_long 400 context_length_exceeded "{\"model\":\"demo\",\"messages\":[{\"role\":\"user\",\"content\":\"$(printf 'Zx%.0s' $(seq 600))\"}]}"
ok wrong_method_of_chat test "$(curl -s -o /dev/null -w '%{http_code}' "$url/v1/chat/completions")" = 405

# ---- tokens
status_at embeddings 400 'keeps its hidden state on the chip' /v1/embeddings '{"model":"demo","input":"x"}'
for path in /v1/tokenize /tokenize; do
    at $path '{"content":"In the beginning<|endoftext|>\u0000\u00e9"}' >/dev/null
    cp "$work/reply" "$work/tokens"
    ok "$path counts" grep -qE '"count":[0-9]+,"max_model_len":512' "$work/tokens"
    at /v1/detokenize "$(sed 's/,"count.*/}/' "$work/tokens")" >/dev/null
    ok "$path and back" grep -qF '"content":"In the beginning<|endoftext|>\u0000é"' "$work/reply"
done
at /detokenize "$(sed 's/,"count.*/}/' "$work/tokens")" >/dev/null
ok detokenize_has_two_names_for_the_text grep -qF '"prompt":"In the' "$work/reply"
at /tokenize '{"prompt":"é","with_pieces":true,"add_special":true,"parse_special":false,"model":"demo"}' >/dev/null
ok pieces_that_are_no_characters_are_bytes grep -qE '"tokens":\[\{"id":[0-9]+,"piece":(\[195\]|"é")' "$work/reply"
at /tokenize '{"content":"<|endoftext|>","parse_special":false}' >/dev/null
ok special_tokens_may_be_text bash -c "! grep -q '\"count\":1,' '$work/reply'"
status_at tokenize_of_a_number 400 "'content' .* must be a string, not an integer" /tokenize '{"content":1}'
status_at tokenize_of_nothing 400 'not missing' /tokenize '{}'
status_at tokenize_with_another_argument 400 "no argument 'contents'.*\"param\":\"contents\"" /tokenize '{"contents":"x"}'
status_at tokenize_with_a_wrong_flag 400 "'with_pieces' must be true or false" /tokenize '{"content":"x","with_pieces":1}'
status_at detokenize_of_no_token 400 '"tokens\[1\]: 99999 is not a token of the model \(0 to [0-9]+\)"' /detokenize '{"tokens":[1,99999]}'
status_at detokenize_of_a_string_in_the_array 400 'tokens\[0\] must be a token id .* not a string' /detokenize '{"tokens":["x"]}'
status_at detokenize_of_a_huge_token 400 'tokens\[0\] must be a token id .* not a number beyond 64 bits' /detokenize '{"tokens":[18446744073709551616]}'
status_at detokenize_of_a_string 400 'must be an array' /detokenize '{"tokens":"x"}'

# ---- requests that are refused, in OpenAI's form
status malformed_json 400 '"error":\{"message":".*not valid JSON.*"type":"invalid_request_error"' '{"model":"demo","prompt":'
status no_object 400 'object' '[1]'
status empty_body 400 'JSON' ''
status deep_nesting 400 'JSON' "$(printf '[%.0s' $(seq 5000))"
status broken_utf8 400 'JSON' "$(printf '{"model":"demo","prompt":"\xff"}')"
status missing_prompt 400 "'prompt' is missing" '{"model":"demo"}'
status another_model 404 'model_not_found' '{"model":"gpt-4","prompt":"x"}'
status model_without_a_name 404 'model_not_found' '{"model":"","prompt":"x"}'
status unknown_argument 400 "no argument 'tempreature'.*\"param\":\"tempreature\"" '{"model":"demo","prompt":"x","tempreature":1}'
status wrong_type 400 "'max_tokens' must be a whole number.*\"param\":\"max_tokens\"" '{"model":"demo","prompt":"x","max_tokens":"9"}'
status word_for_a_number 400 "'temperature' must be a number, not a string.*\"param\":\"temperature\"" '{"model":"demo","prompt":"x","temperature":"1"}'
status number_for_a_flag 400 "'stream' must be true or false, not an integer.*\"param\":\"stream\"" '{"model":"demo","prompt":"x","stream":1}'
status number_for_stop 400 "'stop' must be a string or an array of strings, not an integer.*\"param\":\"stop\"" '{"model":"demo","prompt":"x","stop":1}'
status flag_for_stream_options 400 "'stream_options' must be an object, not true.*\"param\":\"stream_options\"" '{"model":"demo","prompt":"x","stream":true,"stream_options":true}'
status another_stream_option 400 "'stream_options' may only have 'include_usage'.*\"param\":\"stream_options\"" '{"model":"demo","prompt":"x","stream":true,"stream_options":{"usage":true}}'
status word_for_a_seed 400 "'seed' must be a whole number, not a string.*\"param\":\"seed\"" '{"model":"demo","prompt":"x","seed":"1"}'
status no_texts_at_all 400 "'n' must be between 1 and 128.*\"param\":\"n\"" '{"model":"demo","prompt":"x","n":0}'
status wrong_prompt 400 "'prompt' must be" '{"model":"demo","prompt":{"a":1}}'
status mixed_prompts 400 "mixes" '{"model":"demo","prompt":["x",[1]]}'
status prompts_of_objects 400 "mixes.*\"param\":\"prompt\"" '{"model":"demo","prompt":[{"a":1}]}'
status many_prompts 400 "'prompt' has 4097 prompts, more than 4096.*\"param\":\"prompt\"" "{\"model\":\"demo\",\"prompt\":[$(printf '"a",%.0s' $(seq 4096))\"b\"]}"
status many_prompts_many_times 400 "'n' times 33 prompts is more than 4096.*\"param\":\"n\"" "{\"model\":\"demo\",\"n\":128,\"prompt\":[$(printf '"a",%.0s' $(seq 32))\"b\"]}"
status as_many_prompts_as_may_be 400 'more texts' "{\"model\":\"demo\",\"n\":128,\"prompt\":[$(printf '"a",%.0s' $(seq 31))\"b\"]}"
status empty_prompt 400 "empty" '{"model":"demo","prompt":""}'
status token_outside_the_vocabulary 400 "token 99999" '{"model":"demo","prompt":[1,99999]}'
status negative_token 400 "no token id" '{"model":"demo","prompt":[-1]}'
status number_too_large 400 "'temperature' must be between" '{"model":"demo","prompt":"x","temperature":1e30}'
status huge_whole_number 400 "'seed' must be between -9223372036854775808 and 9223372036854775807.*\"param\":\"seed\"" '{"model":"demo","prompt":"x","seed":99999999999999999999999}'
status huge_max_tokens 400 "'max_tokens' must be between 0 and 1000000" '{"model":"demo","prompt":"x","max_tokens":18446744073709551616}'
status huge_user 400 "'user' must be a string, not a number beyond 64 bits" '{"model":"demo","prompt":"x","user":-18446744073709551616}'
status huge_number_of_metadata 200 text_completion '{"model":"demo","prompt":"x","metadata":{"\"1":[9223372036854775808,1e999,-0]},"seed":9223372036854775807,"max_tokens":1}'
status huge_token 400 "no token id" '{"model":"demo","prompt":[18446744073709551616,1]}'
status huge_number_and_no_json 400 'not valid JSON' '{"prompt":18446744073709551616'
status max_tokens_of_nothing 400 "only with 'echo'" '{"model":"demo","prompt":"x","max_tokens":0}'
status nul_in_a_stop_string 400 "'stop' has the character .*u0000" '{"model":"demo","prompt":"x","stop":"a\u0000"}'
status nul_in_the_model 400 "'model' has the character .*u0000" '{"model":"demo\u0000","prompt":"x"}'
status nul_in_a_name 400 "has the character .*u0000 at line 1" '{"model":"demo","prompt":"x","x\u0000":1}'
status empty_stop 400 "'stop'" '{"model":"demo","prompt":"x","stop":[""]}'
status many_stops 400 "'stop' has 17" "{\"model\":\"demo\",\"prompt\":\"x\",\"stop\":[$(printf '"a",%.0s' $(seq 16))\"b\"]}"
status best_of 400 "'best_of' is not supported" '{"model":"demo","prompt":"x","best_of":3}'
status frequency_penalty_out_of_range 400 "'frequency_penalty' must be between -2 and 2" '{"model":"demo","prompt":"x","frequency_penalty":2.5}'
status suffix 400 "'suffix' is not supported" '{"model":"demo","prompt":"x","suffix":"y"}'
status prompt_beyond_the_positions 400 'context_length_exceeded' "{\"model\":\"demo\",\"prompt\":[$(printf '5,%.0s' $(seq 511))5]}"
type='Content-Type: application/jsonx' status content_type_that_begins_like_json 415 'Content-Type' '{"model":"demo","prompt":"x"}'
type='Content-Type: Application/JSON; charset=utf-8' status content_type_with_a_parameter 404 'no such model' '{"model":"x","prompt":"x"}'
type='Content-Type: text/plain' status another_content_type 415 'Content-Type' '{"model":"demo","prompt":"x"}'
type='Content-Type:' status no_content_type 415 'Content-Type' '{"model":"demo","prompt":"x"}'
status more_texts_than_may_wait 400 'more texts' '{"model":"demo","prompt":"x","n":65}'
head -c 1100000 /dev/zero | tr '\0' ' ' >"$work/large"
status large_body 413 'too large: --max-body is 1048576 bytes' "@$work/large"
status large_body_in_chunks 413 'too large' "@$work/large" -H 'Transfer-Encoding: chunked'
head -c 20000000 /dev/zero | tr '\0' ' ' >"$work/large"
status far_too_large_body 413 'too large: --max-body is 1048576 bytes' "@$work/large"
ok body_that_breaks_off bash -c "printf 'POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 50\r\n\r\n{' | timeout 600 bash -c 'cat >/dev/tcp/127.0.0.1/$port'"
ok no_http bash -c "exec 3<>/dev/tcp/127.0.0.1/$port; printf 'hello\r\n\r\n' >&3; timeout 600 cat <&3 >/dev/null; true"
ok the_server_still_answers test "$(ask '{"model":"demo","prompt":"x","max_tokens":1}')" = 200

# ---- clients that go away: one when some of its texts are under way, one when it has got a part of a stream
slow='"prompt":"And","max_tokens":500,"ignore_eos":true,"n":40'
# abandoned NAME: of its 40 texts all have come to an end since $before and $gone were taken, some of them cancelled.
abandoned() {
    ok "$1_comes_to_its_end" until_at_least finished $((before + 40))
    ok "$1_leaves_nothing" until_metric sequences_running -eq 0
    gone=$(($(metric 'sequences_finished_total{reason="cancelled"}') - gone))
    echo "# $gone of 40 texts were cancelled"
    ok "$1_is_cancelled" test $gone -ge 1 -a "$(finished)" = $((before + 40))
}
before=$(finished) gone=$(metric 'sequences_finished_total{reason="cancelled"}')
curl -s -m 600 -o "$work/none" -H "$json" -d "{\"model\":\"demo\",$slow}" "$url/v1/completions" &
client=$!
ok abandoned_request_had_begun until_metric sequences_running -ge 1
kill -9 $client
{ wait $client; } 2>/dev/null
abandoned abandoned_request
before=$(finished) gone=$(metric 'sequences_finished_total{reason="cancelled"}')
rm -f "$work/part"
curl -sN -m 600 -o "$work/part" -H "$json" -d "{\"model\":\"demo\",\"stream\":true,$slow}" "$url/v1/completions" &
client=$!
for _ in $(seq 3000); do grep -qs '^data: ' "$work/part" && break || sleep 0.1; done
ok abandoned_stream_had_begun grep -q '^data: ' "$work/part"
kill -9 $client
{ wait $client; } 2>/dev/null
abandoned abandoned_stream
# One that does not read: megabytes are waiting for it, and the engine goes on.
before=$(metric generated_tokens_total)
exec 3<>"/dev/tcp/127.0.0.1/$port"
body='{"model":"demo","prompt":"And","max_tokens":400,"ignore_eos":true,"n":20,"logprobs":20,"stream":true}'
printf 'POST /v1/completions HTTP/1.1\r\nHost: localhost\r\n%s\r\nContent-Length: %d\r\n\r\n%s' "$json" ${#body} "$body" >&3
ok others_are_served_beside_one_that_does_not_read test "$(ask '{"model":"demo","prompt":"x","max_tokens":3}')" = 200
ok the_engine_does_not_wait_for_a_reader until_metric generated_tokens_total -ge $((before + 8000))
exec 3>&-

# ---- shutdown: what was accepted is finished
before=$(accepted)
for i in $(seq 12); do
    curl -s -m 600 -H "$json" -d "{\"model\":\"demo\",\"prompt\":\"Number $i\",\"max_tokens\":450,\"ignore_eos\":true,\"seed\":$i,\"n\":4}" "$url/v1/completions" >"$work/term$i" &
    curls="${curls:-} $!"
done
ok requests_are_accepted until_at_least accepted $((before + 48))
echo "# $(metric sequences_running) texts are under way and $(metric sequences_waiting) wait"
kill -TERM "$pid"
ok new_connections_are_refused until_refused
# shellcheck disable=SC2086
wait $curls
lost=0
for i in $(seq 12); do grep -q '"completion_tokens":1800' "$work/term$i" || lost=$((lost + 1)); done
ok sigterm_loses_no_accepted_request test $lost = 0
wait "$pid"
ok sigterm_ends_with_0 test $? = 0

# ---- limits
# On the simulated device a text takes so long that the next one comes while it is under way.
start -d sim:tiny --max-seqs 1 --queue 0
curl -s -m 600 -o "$work/none" -H "$json" -d '{"model":"demo","prompt":"And","max_tokens":505,"ignore_eos":true}' "$url/v1/completions" &
first=$!
until_metric sequences_running -eq 1 >/dev/null
status full_queue 429 'queue_full' '{"model":"demo","prompt":"x","max_tokens":505,"ignore_eos":true}'
ok full_queue_says_when grep -qi '^retry-after: 1' "$work/head"
kill $first
{ wait $first; } 2>/dev/null
stop

# Where the headers had not been seen within the time of reading, nothing is answered, and it is tried again with more.
for seconds in 3 30 300; do
    start --max-seqs 1 --read-timeout $seconds --max-body 300
    exec 3<>"/dev/tcp/127.0.0.1/$port"
    printf 'POST /v1/completions HTTP/1.1\r\nHost: localhost\r\n%s\r\nContent-Length: 99\r\n\r\n{"mod' "$json" >&3
    exec 4<>"/dev/tcp/127.0.0.1/$port"
    printf 'POST /v1/comp' >&4
    beside=$(ask '{"model":"demo","prompt":"x","max_tokens":3}')
    timeout 600 cat <&3 >"$work/late"
    [ "$beside" != 200 ] || [ ! -s "$work/late" ] || break
    exec 3>&- 4>&-
    stop
done
ok others_are_served_beside_slow_ones test "$beside" = 200
ok slow_body_gets_408 grep -q '^HTTP/1.1 408 ' "$work/late"
ok slow_body_gets_all_of_it test "$(sed '1,/^\r*$/d' "$work/late" | wc -c)" = "$(tr -d '\r' <"$work/late" | sed -n 's/^Content-Length: //p')"
ok slow_headers_are_closed timeout 600 cat <&4
exec 3>&- 4>&-
status a_body_over_max_body 413 '' "{\"model\":\"demo\",\"prompt\":\"$long\"}"
stop

# On the simulated device, where minutes would not do for so many texts.
start -d sim:tiny --max-seqs 2 --timeout 1 --api-key-file <(echo sesame)
status time_limit 504 'time limit' '{"model":"demo","prompt":"And","max_tokens":505,"ignore_eos":true,"n":120}' -H 'Authorization: Bearer sesame'
ok time_limit_cancels until_metric sequences_running -eq 0
status no_key 401 'authentication_error' '{"model":"demo","prompt":"x"}'
status wrong_key 401 '' '{"model":"demo","prompt":"x"}' -H 'Authorization: Bearer sesams'
status longer_key 401 '' '{"model":"demo","prompt":"x"}' -H 'Authorization: Bearer sesame2'
status key_in_another_scheme 401 '' '{"model":"demo","prompt":"x"}' -H 'Authorization: Basic_ sesame'
ok health_needs_no_key test "$(curl -s -o /dev/null -w '%{http_code}' "$url/health")" = 200
stop
# A stream must have begun, else its time limit is a status; where it had not, it gets more time.
for seconds in 2 20 200; do
    start -d sim:tiny --max-seqs 2 --timeout $seconds
    begun=$(ask '{"model":"demo","prompt":"And","max_tokens":505,"ignore_eos":true,"n":120,"stream":true}')
    stop
    [ "$begun" = 504 ] || break
done
ok time_limit_in_a_stream_is_an_event bash -c "tail -2 '$work/reply' | grep -q 'data: .*timeout_error'"
# On the simulated device, where a request is not over before the second signal comes.
start -d sim:tiny --max-seqs 2
curl -s -m 600 -o "$work/none" -H "$json" -d "{\"model\":\"demo\",$slow}" "$url/v1/completions" &
until_metric sequences_running -ge 1 >/dev/null
kill -TERM "$pid"
until_refused # so the first one has been seen
while kill -TERM "$pid" 2>"$work/none"; do sleep 0.2; done # at the same time they are one
wait "$pid"
ok second_signal_ends_at_once test $? = 143

start --max-connections 1 --max-seqs 1
exec 3<>"/dev/tcp/127.0.0.1/$port"
curl -s -m 600 -o "$work/waited" "$url/health" 3>&- &
curl=$!
sleep 0.5 # in which it could be served, were there no limit
ok connections_over_the_limit_wait test ! -e "$work/waited"
exec 3>&-
wait $curl
ok waiting_connections_are_served grep -q ok "$work/waited"
stop

# ---- the simulated RTL
start -d sim:tiny --max-seqs 2 2>/dev/null
ask '{"model":"demo","prompt":"In the beginning","max_tokens":3,"temperature":0,"logprobs":1,"n":2}' >/dev/null
grep -oE '"choices":.*,"usage"' "$work/reply" >"$work/sim"
ok cycles_are_counted until_metric device_cycles_total -gt 0
stop
start --max-seqs 2
ask '{"model":"demo","prompt":"In the beginning","max_tokens":3,"temperature":0,"logprobs":1,"n":2}' >/dev/null
grep -oE '"choices":.*,"usage"' "$work/reply" >"$work/model"
ok simulated_rtl_gives_the_same_bits cmp "$work/sim" "$work/model"
stop
start -d sim:tiny,units=2 --max-seqs 1
ok the_start_line_counts_the_texts_of_all_units grep -q '(mxint8, 512 positions, 2 texts at a time, sim:tiny,units=2) on' "$work/address"
ok the_simulated_rtl_is_called_slow test "$(cat "$work/log")" = \
    "millrace: sim:tiny,units=2 is the simulated RTL, and slow; -d model: gives the same text"
ask '{"model":"demo","prompt":"In the beginning","max_tokens":3,"temperature":0,"logprobs":1,"n":2}' >/dev/null
grep -oE '"choices":.*,"usage"' "$work/reply" >"$work/sim"
ok two_units_give_the_same_bits cmp "$work/sim" "$work/model"
ok units_are_counted test "$(metric device_units)" = 2
for u in 0 1; do
    ok "unit_${u}_has_worked" test "$(metric "device_counter_total{unit=\"$u\",counter=\"array_busy\"}")" -gt 0
done

stop

# ---- names that are allowed, and servers that ask for none
start --allow-host gpu.example --allow-host GPU2.example
for host in gpu.example:8080 gpu2.EXAMPLE 127.0.0.1 localhost; do
    ok "allowed_host_$host" test "$(answer -H "Host: $host")" = 200
done
ok host_that_is_not_allowed test "$(answer -H 'Host: gpu3.example')" = 403
stop
printf 'secret\n' >"$work/host-key"
start --api-key-file "$work/host-key"
ok with_a_key_every_host_is_answered test "$(answer -H 'Host: any.example' -H 'Authorization: Bearer secret')" = 200
stop
start --host 0.0.0.0 2>/dev/null
ok server_of_all_answers_every_host test "$(answer -H 'Host: any.example')" = 200
stop
start --host 0.0.0.0 --allow-host gpu.example
ok names_are_asked_for_if_there_are_some test "$(answer -H 'Host: any.example') $(answer -H 'Host: gpu.example')" = '403 200'
stop
if { : <>/dev/tcp/::1/1; } 2>&1 | grep -q 'refused'; then
    start --host ::1
    ok address_of_six test "$(curl -gs -m 600 -o /dev/null -w '%{http_code}' "http://[::1]:$port/health")" = 200
    ok address_of_six_by_name test "$(curl -gs -m 600 -o /dev/null -w '%{http_code}' -H "Host: localhost" "http://[::1]:$port/health")" = 200
    ok another_host_at_address_of_six test "$(curl -gs -m 600 -o /dev/null -w '%{http_code}' -H "Host: attacker.example" "http://[::1]:$port/health")" = 403
    stop
fi
exits empty_name_of_a_host 2 'empty' serve "$work/demo.mill" -d model: --allow-host ''
for name in a:80 http://a 'a b' '*'; do
    exits "no_name_of_a_host_$name" 2 'not a host name' serve "$work/demo.mill" -d model: --allow-host "$name"
done

# ---- pages of other origins (CORS)
# asks ORIGIN [CURL OPTIONS]: what a browser does before a page of that origin may ask.
asks() {
    local origin=$1
    shift
    curl -s -m 600 -o "$work/reply" -D "$work/head" -w '%{http_code}' -X OPTIONS -H "Origin: $origin" \
        -H 'Access-Control-Request-Method: POST' -H 'Access-Control-Request-Headers: content-type' "$@" "$url/v1/completions"
}
allows() { tr -d '\r' <"$work/head" | sed -n 's/^Access-Control-Allow-Origin: //ip'; }
start
ok no_page_of_another_origin_may_ask test "$(asks http://localhost:3000)$(allows)" = 405
stop
start --allow-origin http://localhost:3000 --allow-origin https://app.example --api-key-file "$work/host-key"
ok a_page_that_may_ask test "$(asks http://localhost:3000) $(allows)" = '204 http://localhost:3000'
ok it_may_send_json_and_a_key grep -qi '^Access-Control-Allow-Headers: Authorization, Content-Type' "$work/head"
ok it_may_post grep -qi '^Access-Control-Allow-Methods: .*POST' "$work/head"
ok another_page_that_may_ask test "$(asks https://APP.example) $(allows)" = '204 https://app.example'
for origin in http://localhost:3001 https://localhost:3000 http://app.example https://app.example.attacker.example null '*'; do
    ok "a_page_that_may_not_ask_$origin" test "$(asks "$origin")$(allows)" = 405
done
ok answers_are_for_the_page test "$(ask '{"prompt":"x","max_tokens":1}' -H 'Origin: https://app.example' -H 'Authorization: Bearer secret') $(allows)" = '200 https://app.example'
ok errors_are_too test "$(ask '{}' -H 'Origin: https://app.example') $(allows)" = '401 https://app.example'
ok caches_are_told grep -qi '^Vary: Origin' "$work/head"
ok others_are_answered_as_before test "$(ask '{"prompt":"x","max_tokens":1}' -H 'Origin: http://x.example' -H 'Authorization: Bearer secret')$(allows)" = 200
ok options_that_no_browser_asks_with test "$(curl -s -m 600 -o /dev/null -w '%{http_code}' -X OPTIONS -H 'Origin: https://app.example' "$url/v1/completions")" = 405
ok no_preflight_of_a_path_that_is_not_there test "$(curl -s -m 600 -o /dev/null -w '%{http_code}' -X OPTIONS -H 'Origin: https://app.example' -H 'Access-Control-Request-Method: GET' "$url/v2")" = 404
stop
for origin in '*' null app.example https://app.example/ http://app.example:x http://app.example: http:// 'http://a b'; do
    exits "no_origin_$origin" 2 'is no origin' serve "$work/demo.mill" --allow-origin "$origin"
done

# ---- starting
# What is shown of a device: the default one, and one with other weights.
says() { # ARGUMENTS...: the line of a server, which is ended; $work/log is what it says beside it
    rm -f "$work/address" # of the server before
    "$millrace" serve "$@" --port 0 >"$work/address" 2>"$work/log" &
    pid=$!
    servers="$servers $pid"
    for _ in $(seq 3000); do [ -s "$work/address" ] && break || sleep 0.1; done
    stop
    sed 's/ on http.*//' "$work/address"
}
ok the_default_device_gives_text_soon test "$(says "$work/demo.mill")" = \
    "millrace: serving demo (mxint8, 512 positions, 8 texts at a time, model:sim)"
ok the_name_is_that_of_the_directory test "$(says models/demo/ --format mxfp4)" = \
    "millrace: serving demo (mxfp4, 512 positions, 8 texts at a time, model:sim)"
ok the_reference_serves_fp32 test "$(says models/demo -d cpu: --max-seqs 1)" = \
    "millrace: serving demo (fp32, 512 positions, 1 text at a time, cpu:)"
ln -s "$PWD/models/demo" "$work/a-longer-name"
ok a_longer_name_is_whole test "$(says "$work/a-longer-name")" = \
    "millrace: serving a-longer-name (mxint8, 512 positions, 8 texts at a time, model:sim)"
ok a_name_may_be_given test "$(says "$work/demo.mill" --name mill)" = \
    "millrace: serving mill (mxint8, 512 positions, 8 texts at a time, model:sim)"
says "$work/demo.mill" -d sim:tiny -q >"$work/out"
ok quiet_server_does_not_call_its_device_slow test -s "$work/out" -a ! -s "$work/log"
says "$work/demo.mill" --host 0.0.0.0 >"$work/out"
ok server_that_others_reach_says_so test "$(cat "$work/log")" = \
    "millrace: 0.0.0.0 can be reached by others, and no --api-key-file is given: anybody may use the model"
says "$work/demo.mill" --host 0.0.0.0 -q >"$work/out"
ok but_not_with_q test -s "$work/out" -a ! -s "$work/log"
says "$work/demo.mill" --host 0.0.0.0 --api-key-file "$work/host-key" >"$work/out"
ok nor_with_a_key test -s "$work/out" -a ! -s "$work/log"
# A template that begins with the message has no string that ends a reply.
start --template '{}'
at /v1/chat/completions '{"temperature":0,"max_tokens":40,"messages":[{"role":"user","content":"Who art thou?"}]}' >/dev/null
bare=$(content "$work/reply")
ask '{"temperature":0,"max_tokens":40,"prompt":"Who art thou?"}' >/dev/null
ok a_template_of_the_message_alone test "$bare" = "$(text "$work/reply" | sed 's/^ *//')" -a -n "$bare"
stop
# A model without a tokenizer takes and gives token ids.
mkdir "$work/mute"
cp models/demo/config.json models/demo/model.safetensors "$work/mute"
whole=$subject subject=$work/mute
start --max-seqs 2
status text_without_a_tokenizer 400 "the model has no tokenizer: 'prompt' must be token ids" '{"prompt":"x"}'
status stop_without_a_tokenizer 400 "'stop' needs a model with a tokenizer" '{"prompt":[5,6],"stop":"x"}'
status ids_without_a_tokenizer 200 '"tokens":\["token:[0-9]+"\].*"completion_tokens":1' '{"prompt":[5,6],"max_tokens":1,"ignore_eos":true,"logprobs":1}'
status a_stream_without_a_tokenizer 200 '"text":"".*"tokens":\["token:[0-9]+"\]' '{"prompt":[5,6],"max_tokens":1,"ignore_eos":true,"logprobs":1,"stream":true}'
status_at tokenize_without_a_tokenizer 400 'the model has no tokenizer' /v1/tokenize '{"content":"x"}'
status_at detokenize_without_a_tokenizer 400 'the model has no tokenizer' /v1/detokenize '{"tokens":[5]}'
stop
subject=$whole
start --max-seqs 2
exits port_in_use 3 'cannot listen on 127.0.0.1 port' serve "$work/demo.mill" -d model: --port "$port"
exits address_of_nobody 2 'give an address' serve "$work/demo.mill" -d model: --host not.an.address.invalid
exits address_of_another_machine 3 'choose another --host' serve "$work/demo.mill" -d model: --host 192.0.2.1
exits server_template_without_a_gap 2 'needs \{\} once' serve "$work/demo.mill" -d model: --template 'User:'
exits key_file_without_an_end 3 'has more than 4 KiB' serve "$work/demo.mill" -d model: --api-key-file /dev/zero
exits empty_key_file 2 'no key' serve "$work/demo.mill" -d model: --api-key-file /dev/null
exits port_out_of_range 2 'port' serve "$work/demo.mill" --port 70000
stop
done_testing
