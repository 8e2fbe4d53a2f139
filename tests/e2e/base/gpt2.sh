#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Every command on a GPT-2: with the same bits on model: and sim:, near them on cpu:. Prints TAP; runs from the
# repository's root.
set -u
. tests/tools/tap.sh
. tests/tools/gpt2.sh
served=$gpt2
. tests/serve/lib.sh # packs it as $work/demo.mill, and starts servers
packed=$work/demo.mill
text=$work/text
head -c 400 models/demo/heldout.txt >"$text"

# said WORDS ARGUMENTS...: millrace succeeds, and a line of what it prints matches.
said() {
    local words=$1
    shift
    timeout 600 "$millrace" "$@" >"$work/out" 2>"$work/err" </dev/null && [ ! -s "$work/err" ] && grep -qE -e "$words" "$work/out" && return
    sed 's/^/# /' "$work/out" "$work/err" | head -8
    return 1
}

# ---- what it is
ok info_names_the_architecture said '^.*: GPT-2, 55.7 thousand parameters \(safetensors\)$' info "$gpt2"
ok info_of_what_does_not_rotate bash -c "grep -q 'heads 2 x 24, n_inner 100$' '$work/out' && ! grep -q rotary '$work/out'"
ok both_tables_are_read_for_a_token grep -q '^    embedding    192 bytes$' "$work/out" # 48 and 48 bf16
ok packed_info_is_the_same said 'GPT-2, .*packed file' info "$packed" --verify
ok packed_tables_are_the_same grep -q '^    embedding    192 bytes$' "$work/out"
ok json_has_the_architecture said '^  "architecture": "GPT-2",$' info "$packed" --json
ok pack_reports_each_matrix said '^13 matrices' pack "$gpt2" "$work/again.mill" --report
ok pack_gives_the_same_bytes cmp "$packed" "$work/again.mill"
"$millrace" unpack "$packed" "$work/unpacked" >/dev/null
ok unpacked_is_a_gpt2 grep -q '"model_type": "gpt2"' "$work/unpacked/config.json"

# ---- texts
sampled=(-p "In the beginning" -n 6 --temperature 30 --seed 3)
for device in cpu: model: model:tiny sim:tiny; do
    "$millrace" generate "$gpt2" -d $device "${sampled[@]}" >"$work/text-$device" 2>&1
done
ok text_is_no_repetition test "$(tail -c +17 "$work/text-model:" | fold -w1 | sort -u | wc -l)" -ge 4
for device in model:tiny sim:tiny; do
    ok "same_text_on_${device/:/_}" cmp "$work/text-model:" "$work/text-$device"
done
ok cpu_writes_as_much test "$(head -c 16 "$work/text-cpu:")" = "In the beginning" -a "$(wc -c <"$work/text-cpu:")" -gt 20
"$millrace" generate "$packed" -d model: "${sampled[@]}" >"$work/a"
ok same_text_of_the_packed_file cmp "$work/text-model:" "$work/a"
"$millrace" generate "$work/unpacked" --no-smoothing -d model: "${sampled[@]}" >"$work/a"
ok same_text_of_the_unpacked_directory cmp "$work/text-model:" "$work/a"
printf 'In the beginning\nAnd\n' >"$work/prompts"
batch() { "$millrace" generate "$gpt2" -d "$1" --batch "$work/prompts" -n 3 --temperature 30 --seed 3 | sed 's/,"seconds.*//'; }
ok same_batch_on_the_simulated_rtl cmp <(batch model:) <(batch sim:tiny,units=2)
"$millrace" generate "$gpt2" -d model: "${sampled[@]}" --save-kv "$work/kv" >/dev/null
"$millrace" generate "$gpt2" -d model: --load-kv "$work/kv" -n 3 >"$work/a"
"$millrace" generate "$gpt2" -d sim:tiny --load-kv "$work/kv" -n 3 >"$work/b"
ok saved_store_goes_on cmp "$work/a" "$work/b"
converse() { echo "Who?" | "$millrace" chat "$gpt2" -d "$1" -n 3 --temperature 30 --seed 3; }
ok same_reply_on_the_simulated_rtl cmp <(converse model:) <(converse sim:tiny)
ok text_ends_with_the_positions bash -c "'$millrace' generate '$gpt2' -d model: -p '$(head -c 92 "$text" | tr -d \\n)' -n 20 --ignore-eos 2>&1 >/dev/null | grep -q 'positions are used up'"

start --max-seqs 2
body='{"prompt": "In the beginning", "max_tokens": 6, "temperature": 30, "seed": 3}'
ok server_answers test "$(ask "$body")" = 200
stop
cp "$work/reply" "$work/served"
start -d sim:tiny --max-seqs 2
ok server_on_the_simulated_rtl_answers test "$(ask "$body")" = 200
stop
choices() { sed 's/.*"choices"/"choices"/' "$1"; }
ok the_same cmp <(choices "$work/served") <(choices "$work/reply")

# ---- figures
losses() { "$millrace" eval "$gpt2" --perplexity "$text" -n 12 -d "$1" | head -2; }
ok same_loss_on_the_simulated_rtl cmp <(losses model:) <(losses sim:tiny)
cat >"$work/questions" <<'Q'
{"context": "In the", "choices": [" be", "xyz"], "gold": 0}
Q
answers() { "$millrace" eval "$gpt2" --tasks "$work/questions" -d "$1" --details "$2" >/dev/null; }
answers model: "$work/a" && answers sim:tiny "$work/b"
ok same_answers_on_the_simulated_rtl cmp "$work/a" "$work/b"
ok model_is_near_the_reference said 'KL divergence' compare "$gpt2" --file "$text" -n 96 --max-kl 0.02
ok reference_is_the_reference said 'max logit error *0.000e\+00' compare "$gpt2" --file "$text" -n 12 -d cpu:
ok same_distance_of_the_simulated_rtl cmp <("$millrace" compare "$gpt2" --file "$text" -n 12 -d model: | tail -4) \
    <("$millrace" compare "$gpt2" --file "$text" -n 12 -d sim:tiny --check | tail -4)
ok plan_of_it said '^decode at position 0, batch 1: [0-9]+ cycles' plan "$gpt2" --config tiny
cycles=$(sed -n 's/^decode at position 0, batch 1: \([0-9]*\) .*/\1/p' "$work/out")
ok bench_of_it said '^  cycles +[0-9]+, ' bench "$gpt2" -d sim:tiny
ok plan_is_near_the_simulation awk -v plan="$cycles" -v sim="$(sed -n 's/^  cycles *\([0-9]*\),.*/\1/p' "$work/out")" \
    'BEGIN { exit !(plan > sim * 0.95 && plan < sim * 1.05) }'
ok timeline_of_it said . trace "$gpt2" -d sim:tiny --svg "$work/a.svg"
ok timeline_has_its_operations bash -c "grep -q 'ln_2' '$work/a.svg' && grep -q 'c_proj\|proj' '$work/a.svg'"

# ---- training
learn() { local model=$1 && shift; "$millrace" train "$model" --data "$text" --sequence 16 --batch 2 --lr 1e-3 "$@" >"$work/log" 2>"$work/err"; }
learn "$gpt2" -o "$work/one" --steps 2 --export "$work/out-one"
ok it_learns test $? = 0 -a "$(grep -c '^step [12] *loss' "$work/log")" = 2
learn "$gpt2" -o "$work/two" --steps 1 -d model:tinyt && learn "$gpt2" -o "$work/two" --steps 2 -d model:wide,train --recompute --export "$work/out-two"
ok it_learns_the_same_bytes_elsewhere cmp "$work/out-one/model.safetensors" "$work/out-two/model.safetensors"
"$millrace" generate "$work/out-one" -d model: "${sampled[@]}" >"$work/a"
ok what_has_learnt_writes_another_text bash -c "[ -s '$work/a' ] && ! cmp -s '$work/a' '$work/text-model:'"
ok training_is_planned said '^training of' plan "$gpt2" --train
exits packed_files_do_not_learn 2 'is packed already; give the Hugging Face directory' train "$packed" --data "$text" -o "$work/x" --steps 1
exits learned_positions_are_all_there_are 3 'the model has 96 positions' train "$gpt2" --data "$text" -o "$work/x" --steps 1 --sequence 97
exits packed_files_are_not_for_the_reference 3 'give the Hugging Face directory' generate "$packed" -d cpu: x

# ---- other functions: GELU by erf (Cerebras-GPT), relu
# loss MODEL DEVICE: nats a token of the text.
loss() { "$millrace" eval "$1" --perplexity "$text" -d "$2" --json | sed -n 's/^ *"nats_per_token": \([0-9.]*\),*$/\1/p'; }
# near A B MOST: they differ, by less than MOST.
near() { awk -v a="$1" -v b="$2" -v most="$3" 'BEGIN { d = a - b; exit !(a > 0 && b > 0 && d && d < most && -d < most) }'; }
gelu_new=$(loss "$gpt2" cpu:)
for function in gelu relu; do
    bent=$work/$function
    cp -r "$gpt2" "$bent" && sed -i "s/{/{\"activation_function\": \"$function\",/" "$bent/config.json"
    reference=$(loss "$bent" cpu:)
    ok "${function}_is_another_function" near "$gelu_new" "$reference" 0.5
    ok "${function}_on_the_engine_is_the_reference_s" near "$reference" "$(loss "$bent" model:)" 0.02
    "$millrace" pack "$bent" "$work/$function.mill" >"$work/out" 2>"$work/err"
    ok "${function}_is_packed_without_a_warning" test $? = 0 -a ! -s "$work/err"
    "$millrace" generate "$work/$function.mill" -d model: "${sampled[@]}" >"$work/a"
    "$millrace" generate "$work/$function.mill" -d sim:tiny "${sampled[@]}" >"$work/b"
    ok "${function}_writes_the_same_on_the_rtl" cmp "$work/a" "$work/b"
    ok "${function}_is_planned" said 'tokens/s' plan "$bent"
    for device in model: sim:; do
        learn "$bent" -o "$work/$function-$device" --steps 1 -d ${device}tinyt --export "$work/out-$function-$device"
    done
    ok "${function}_learns_the_same_bytes_on_the_rtl" cmp "$work/out-$function-model:/model.safetensors" "$work/out-$function-sim:/model.safetensors"
    ok "${function}_stays_in_what_has_learnt" grep -q "\"activation_function\": \"$function\"" "$work/out-$function-sim:/config.json"
done

# ---- what is refused, by name
# changed NAME SED WORDS: the model with another config.json.
changed() {
    rm -rf "$work/other" && cp -r "$gpt2" "$work/other" && sed -i "$2" "$work/other/config.json"
    exits "$1" 3 "$3" generate "$work/other" -d model: x
}
changed unknown_architecture 's/"gpt2"/"gpt_neox"/' 'architecture "gpt_neox" is not supported; this version runs "gptj" \(GPT-J\), "gpt2" \(GPT-2\)'
changed unknown_activation 's/{/{"activation_function": "silu",/' 'activation function "silu" is not supported; "gelu_new", "gelu" and "relu" are'
changed missing_tensor 's/"n_layer": 2/"n_layer": 3/' 'tensor transformer.h.2.ln_1.weight is missing'
changed extra_tensor 's/"n_layer": 2/"n_layer": 1/' 'transformer.h.1.[a-z_.0-9]* is not part of a GPT-2 model with 1 layers'
changed misshaped_tensor 's/"n_positions": 96/"n_positions": 97/' 'transformer.wpe.weight has shape \[96, 48\], but config.json implies \[97, 48\]'
done_testing
