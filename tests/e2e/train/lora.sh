#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# LoRA on the command line: an adapter of the demo model learns, stops and goes on, on several devices
# and engines, with the same bytes; it is added to its model, merged and packed. Prints TAP; runs from the repository's
# root.
set -u
. tests/tools/tap.sh
demo=models/demo
head -c 6000 $demo/heldout.txt >"$work/text"
short=(train $demo --data "$work/text" --lr 3e-3 --sequence 64 --batch 2 -q)
learn() { timeout 600 "$millrace" "${short[@]}" "$@"; }
adapter=adapter_model.safetensors

learn -o "$work/a" --steps 4 --lora r=8,alpha=16 --export "$work/a.out" >"$work/log" 2>&1
ok an_adapter_learns test $? = 0
loss() { sed -n "s/^step $1 .*held out \\([0-9.]*\\).*/\\1/p" "$work/log"; }
ok the_loss_falls awk -v a="$(loss 0)" -v b="$(loss 4)" 'BEGIN { exit !(b > 0 && b < a - 0.005) }'
ended=$(loss 4)
ok only_the_adapter_is_in_the_state test "$(du -sk "$work/a" | cut -f1)" -lt 2000
ok pefts_names grep -q 'base_model.model.transformer.h.3.attn.v_proj.lora_B.weight' "$work/a.out/$adapter"
learn -o "$work/b" --steps 2 --lora r=8,alpha=16,targets=q_proj,v_proj >"$work/log" 2>&1
learn -o "$work/b" --steps 4 --lora r=8,alpha=16 -d model:tinyt --chunk 32 --export "$work/b.out" >"$work/log" 2>&1
ok it_goes_on_with_the_same_bytes cmp "$work/a.out/$adapter" "$work/b.out/$adapter"
learn -o "$work/e" --steps 4 --accumulate 2 --lora r=8,alpha=16 --export "$work/e.out" >"$work/log" 2>&1
learn -o "$work/f" --steps 4 --accumulate 2 --lora r=8,alpha=16 --engines 2 --export "$work/f.out" >"$work/log" 2>&1
ok engines_change_no_byte cmp "$work/e.out/$adapter" "$work/f.out/$adapter"
# K of the first block alone: nothing else there wants what attention gives back. B begins as zeros.
learn -o "$work/k" --steps 1 --lora r=2,targets=k_proj --export "$work/k.out" >"$work/log" 2>&1
ok keys_of_the_first_block_learn_alone test "$(tail -c 16384 "$work/k.out/$adapter" | head -c 4096 | tail -c 2048 | tr -d '\0' | wc -c)" -gt 1000

rtl=(train $demo --data "$work/text" --lr 3e-3 --sequence 16 --batch 1 --eval-windows 1 --steps 1 -q --lora r=4)
for d in model:tinyt sim:tinyt,check; do
    timeout 600 "$millrace" "${rtl[@]}" -d $d -o "$work/${d%%:*}" --export "$work/${d%%:*}.out" >"$work/log" 2>&1
done
ok the_simulated_rtl_gives_the_same_adapter cmp "$work/model.out/$adapter" "$work/sim.out/$adapter"

# ---- with its model
"$millrace" export "$work/a" "$work/again" >"$work/out" 2>&1
ok export_in_json test "$("$millrace" export "$work/a" "$work/json" --json | tr -d ' \n')" = "{\"directory\":\"$work/json\",\"step\":4,\"format\":\"f32\"}"
ok export_writes_the_adapter cmp "$work/a.out/$adapter" "$work/again/$adapter"
"$millrace" export "$work/a" "$work/merged" --merge -q && "$millrace" pack "$work/merged" "$work/m.mill" -q
ok merging_works test -s "$work/m.mill"
"$millrace" pack $demo "$work/p.mill" --adapter "$work/a.out" -q
for f in p m; do "$millrace" generate -m "$work/$f.mill" "And the king" -n 12 -d model: >"$work/$f.text"; done
"$millrace" generate $demo "And the king" -n 12 -d model: --adapter "$work/a.out" >"$work/g.text"
ok packed_with_the_adapter cmp "$work/p.text" "$work/m.text"
ok generates_with_the_adapter cmp "$work/p.text" "$work/g.text"
learn -o "$work/c" --steps 1 --adapter "$work/a.out" >"$work/log" 2>&1
learn -o "$work/c" --steps 2 --adapter "$work/a.out" --merge --export "$work/c.out" >>"$work/log" 2>&1
ok training_goes_on_from_an_adapter test "$(loss 0)" = "$ended"
ok the_end_may_be_merged test -s "$work/c.out/model.safetensors"

# ---- a model that was packed in MXFP4
"$millrace" pack $demo "$work/fp4.mill" --format mxfp4 -q && "$millrace" unpack "$work/fp4.mill" "$work/fp4" -q
four=(--data "$work/text" --lr 3e-3 --sequence 64 --batch 2 -q --lora r=4)
timeout 600 "$millrace" train "$work/fp4.mill" "${four[@]}" -o "$work/q" --steps 2 >"$work/log" 2>&1
timeout 600 "$millrace" train "$work/fp4.mill" "${four[@]}" -o "$work/q" --steps 4 --export "$work/q.out" >>"$work/log" 2>&1
ok a_model_in_mxfp4_takes_an_adapter awk -v a="$(loss 0)" -v b="$(loss 4)" 'BEGIN { exit !(b > 0 && b < a) }'
timeout 600 "$millrace" train "$work/fp4" "${four[@]}" -o "$work/q2" --steps 4 --export "$work/q2.out" >/dev/null 2>&1
ok with_the_bytes_of_its_directory cmp "$work/q.out/$adapter" "$work/q2.out/$adapter"
ok which_is_gone_afterwards test "$(ls -d "$work"/q* | wc -l)" = 4
ok the_adapter_names_the_packed_file grep -q "\"base_model_name_or_path\": \"$work/fp4.mill\"" "$work/q.out/adapter_config.json"
head -c 200000 "$work/fp4.mill" >"$work/short.mill"
exits a_packed_base_that_is_cut 3 'short.mill' train "$work/short.mill" "${four[@]}" -o "$work/cut" --steps 1
exits a_packed_base_into_no_directory 3 "$work/no/x: cannot create a directory beside it: No such file" train "$work/fp4.mill" "${four[@]}" -o "$work/no/x" --steps 1
exits a_packed_base_of_an_export 3 'fp4.mill: has no config.json; give the directory' export "$work/q" "$work/q.merged" --merge
ok a_refused_one_leaves_nothing test -z "$(ls -d "$work"/cut* "$work"/q.merged* 2>/dev/null)"
"$millrace" generate "$work/fp4" "And the king" -n 4 -d model: --adapter "$work/q.out" >"$work/out" 2>"$work/err"
ok and_generates_with_it test $? = 0 -a -s "$work/out"

# ---- what is refused
exits lora_of_no_model 3 'nowhere: No such file or directory; give a Hugging Face' train nowhere --data $demo/heldout.txt -o "$work/no" --steps 1 --lora r=2
exits lora_of_no_rank 2 "lora: r=0 is not a number from 1 to 512$" "${short[@]}" -o "$work/no" --steps 1 --lora r=0
exits lora_of_a_negative_alpha 2 "lora: alpha=-1 is not a number from 1e-06 to 1e\+06$" "${short[@]}" -o "$work/no" --steps 1 --lora alpha=-1
exits lora_of_half_a_rank 2 "r=2.5 is no whole number" "${short[@]}" -o "$work/no" --steps 1 --lora r=2.5
exits lora_dropout 2 "'dropout=0.1' is not r=N, alpha=A or targets=NAME,NAME; dropout is not there" "${short[@]}" -o "$work/no" --steps 1 --lora r=8,dropout=0.1
exits lora_of_a_target_that_is_not_there 2 "LoRA's target 'c_attn': the model has no matrix of that name; its blocks have q_proj" "${short[@]}" -o "$work/no" --steps 1 --lora r=8,targets=c_attn
exits lora_without_a_target 2 "targets are 1 to 16 names" "${short[@]}" -o "$work/no" --steps 1 --lora r=8,targets=
exits lora_of_another_rank 2 "began with a LoRA adapter of r 8, factor 2, 8 matrices from transformer.h.0.attn.q_proj on, not r 4" "${short[@]}" -o "$work/a" --steps 5 --lora r=4
exits lora_state_without_lora 2 "is the state of a LoRA adapter" "${short[@]}" -o "$work/a" --steps 5
exits lora_that_freezes 2 "freeze" "${short[@]}" -o "$work/no" --steps 1 --lora r=4 --freeze '*'
cp -r "$work/a.out" "$work/dropped"
sed -i 's/"lora_dropout": *[0-9.]*/"lora_dropout": 0.1/' "$work/dropped/adapter_config.json"
exits adapter_with_dropout 3 'dropped: lora_dropout is 0.1; there is no dropout: set it to 0' "${short[@]}" -o "$work/no" --steps 1 --adapter "$work/dropped"
exits merge_without_lora 2 "\-\-merge goes with \-\-lora or \-\-adapter" "${short[@]}" -o "$work/no" --steps 1 --merge --export "$work/no.out"
"$millrace" "${short[@]}" -o "$work/whole" --steps 1 >"$work/log" 2>&1
exits merge_into_another_model 3 "gptj-d12-r4: is another model than the adapter's state is of" export "$work/a" "$work/no.out" --merge --model tests/fixtures/train/gptj-d12-r4
exits merge_of_a_whole_state 2 "\-\-merge is for the state of a LoRA adapter" export "$work/whole" "$work/no.out" --merge
ok nothing_was_made test ! -e "$work/no"
done_testing
