#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# millrace train with configurations of both generations, on a model from scratch: the same bytes as the
# short form, modes, what stands on the command line, refusals with line and key. Prints TAP; runs from
# the repository's root. Takes some seconds.
set -u
. tests/tools/tap.sh
root=$PWD
case $millrace in /*) ;; *) millrace=$root/$millrace ;; esac
cp tests/e2e/train/config/*.yaml "$work"
head -c 4000 models/demo/heldout.txt >"$work/all"
cd "$work" || exit 1
head -c 3000 all >text
tail -c 1000 all >held

# ---- three ways to say the same
run() { timeout 600 "$millrace" train "$@" >log 2>err; }
run first.yaml -m train_and_eval -o first
ok first_generation test $? = 0 -a ! -s err
ok its_steps_and_evaluations test "$(sed -n 's/^step \([0-9]*\) *\(loss\|held\).*/\1\2/p' log | tr '\n' ' ')" = "0held 2loss 2held 4loss 4held "
ok its_checkpoints test "$(echo first/checkpoint-*)" = "first/checkpoint-0 first/checkpoint-2 first/checkpoint-4"
run second.yaml -m train -o second --set trainer.init.loop.max_steps=2
ok second_generation_without_evaluations test $? = 0 -a "$(sed 1d log | wc -l)" = 1
run -m train second.yaml -o second
ok it_goes_on_by_itself test $? = 0 -a "$(sed -n 's/^step \([0-9]*\).*/\1/p' log)" = 4
ok the_generations_give_the_same_bytes cmp first/checkpoint-4/model.safetensors second/checkpoint-4/model.safetensors
run first/checkpoint-0 --data text -o short --steps 4 --sequence 32 --batch 2 --accumulate 2 --seed 7 --heldout 0 --epsilon 1e-8 --decay 0.1 \
    --schedule 'Linear(initial_learning_rate=0, end_learning_rate=1e-2, total_iters=2), CosineDecay(initial_learning_rate=1e-2, end_learning_rate=1e-3, total_iters=10)'
ok the_short_form_gives_the_same_bytes cmp first/state short/state
run first.yaml -o begun --checkpoint_path first/checkpoint-0
ok so_does_a_checkpoint_to_begin_with cmp first/checkpoint-4/model.safetensors begun/checkpoint-4/model.safetensors

exits weights_from_scratch_into_no_directory 3 '^millrace: none/x: cannot create a directory beside it: No such file' train first.yaml -o none/x
run first.yaml -m train -o piped --train_input.data_dir '"-"' --max_steps 4 <text
ok so_does_a_text_from_standard_input cmp first/checkpoint-4/model.safetensors piped/checkpoint-4/model.safetensors

# ---- keys as options, in the place of those of the file
run first.yaml -m train -o bare --max_steps 1 --optimizer.weight_decay_rate 0.2 --train_input.shuffle_seed=7
run first.yaml -m train -o set --max_steps 1 --set optimizer.weight_decay=0.2
ok keys_are_options cmp bare/state set/state
run first.yaml -m train -o bare --runconfig.max_steps null --num_steps 1
ok so_are_those_of_the_run_without_their_place grep -q '^step 2 ' log
sed 's/embedding_dropout_rate: 0.0/embedding_dropout_rate: 0.1/' first.yaml >dropout.yaml
run dropout.yaml -m train -o undropped --max_steps 1 --model.embedding_dropout_rate 0
ok what_is_replaced_is_not_refused test $? = 0

run second.yaml -m train -o logged --trainer.init.loop.max_steps 1 --trainer.init.loggers '[ProgressLogger, TensorBoardLogger]'
ok a_configuration_writes_events test -s logged/events/events.out.tfevents.0000000000.millrace
run second.yaml -m train -o logged --trainer.init.loop.max_steps 2 --trainer.init.loggers '[TensorBoardLogger: {summary_dir: elsewhere}]'
ok also_where_it_says test -s elsewhere/events.out.tfevents.0000000001.millrace

# ---- the best checkpoint and the last ones
few=(-m train_and_eval -o few --checkpoint_steps 1 --runconfig.eval_frequency 1 --max_checkpoints 1)
few+=(--optimizer.learning_rate '[{scheduler: PiecewiseConstant, values: [1e-2, 1], milestones: [2]}]')
kept() { find few -maxdepth 1 -name '*checkpoint*' | sort | sed 's/.*checkpoint-//' | tr '\n' ' '; }
run first.yaml --max_steps 4 "${few[@]}"
best=$(sed -n 's/^step \([1-4]\) *held out \([0-9.]*\).*/\2 \1/p' log | sort -g | head -1 | cut -d' ' -f2)
ok the_best_is_not_the_last test "${best:-4}" -lt 4
ok the_first_the_best_and_the_last_stay test "$(kept)" = "few/best-checkpoint 0 $best 4 "
run first.yaml --max_steps 5 "${few[@]}"
ok also_when_it_goes_on test "$(kept)" = "few/best-checkpoint 0 $best 5 "
run first.yaml --max_steps 6 "${few[@]}" --max_checkpoints 2
ok as_many_as_asked_for test "$(kept)" = "few/best-checkpoint 0 $best 5 6 "
# A full disk while a checkpoint is written: those before stay, nothing is left behind, and it goes on.
ls few >before
cp -r few/checkpoint-6 kept-6
(ulimit -f $(($(stat -c %s few/checkpoint-6/model.safetensors) / 1024 - 1))
exits a_checkpoint_on_a_full_disk 3 'File too large|No space' train first.yaml --max_steps 7 "${few[@]}"; exit $failed) || failed=1
number=$((number + 1))
ok nothing_is_left_behind test "$(ls few)" = "$(cat before)"
ok the_checkpoint_before_stays diff -r few/checkpoint-6 kept-6
run first.yaml --max_steps 7 "${few[@]}"
ok then_it_goes_on test -s few/checkpoint-7/model.safetensors
echo many >few/best-checkpoint
exits a_damaged_best_is_refused 3 'does not say which checkpoint is the best' train first.yaml --max_steps 8 "${few[@]}"
echo '99999999999999999 1.0' >few/best-checkpoint
exits a_best_beyond_all_steps_is_refused 3 'does not say which checkpoint is the best' train first.yaml --max_steps 8 "${few[@]}"
echo '1 1e9' >few/best-checkpoint
mkdir few/best-checkpoint.new
exits a_best_that_cannot_be_written 3 '^millrace: few/best-checkpoint: Is a directory$' train first.yaml --max_steps 8 "${few[@]}" -q

# ---- Adam and SGD: both generations and the short form
run first.yaml -m train -o frozen --max_steps 1 --set 'optimizer.freeze=["*", "!*.h.1.*"]' --set 'optimizer.no_decay="*.fc_in.*"'
ok a_configuration_freezes test $? = 0
run first.yaml -m train -o lora --max_steps 1 --checkpoint_path first/checkpoint-0 --export lora.out --set 'model.lora_params={r: 2, alpha: 4, target_modules: [proj_q_dense_layer, fc_in]}'
ok a_configuration_trains_an_adapter grep -q '"r": 2' lora.out/adapter_config.json
run first.yaml -m train -o lora-list --max_steps 1 --checkpoint_path first/checkpoint-0 --export list.out --set 'model.lora_params=[{r: 2, alpha: 4.5, target_modules: [proj_q_dense_layer, fc_in]}]'
ok also_in_a_list_of_one grep -qE '"lora_alpha": 4.5(0*),' list.out/adapter_config.json
ok with_the_names_of_hugging_face grep -q 'q_proj.lora_A' lora.out/adapter_model.safetensors
run first.yaml -m train -o adam --max_steps 2 --set optimizer.optimizer_type=Adam --set optimizer.weight_decay=0.2
sed '/AdamW:/,/weight_decay/d; s/^    optimizer:/    optimizer: {SGD: {momentum: 0.9, nesterov: true, weight_decay: 0.1}}/' second.yaml >sgd.yaml
run sgd.yaml -m train -o sgd --max_steps 2
sed '/betas:/d; / eps:/d; s/weight_decay_rate: 0.1/weight_decay: 0.1/; s/"adamw"/"sgd"/' first.yaml >sgd-first.yaml
run sgd-first.yaml -m train -o sgd-first --max_steps 2 --checkpoint_path first/checkpoint-0 --set optimizer.momentum=0.9 --set optimizer.nesterov=true
short_form() { # DIRECTORY OPTIONS
    run first/checkpoint-0 --data text -o "$@" --steps 2 --sequence 32 --batch 2 --accumulate 2 --seed 7 --heldout 0 \
        --schedule 'Linear(initial_learning_rate=0, end_learning_rate=1e-2, total_iters=2), CosineDecay(initial_learning_rate=1e-2, end_learning_rate=1e-3, total_iters=10)'
}
short_form short-adam --optimizer adam --epsilon 1e-8 --decay 0.2
short_form short-sgd --optimizer sgd --momentum 0.9 --nesterov --decay 0.1
ok adam_is_that_of_the_short_form cmp adam/state short-adam/state
ok sgd_is_that_of_the_short_form cmp sgd/state short-sgd/state
ok sgd_of_the_first_generation cmp sgd/state sgd-first/state
ok sgd_is_not_adam test "$(cmp -s sgd/state adam/state; echo $?)" = 1

# ---- the other modes
mkdir first/checkpoint-{,last,2x,9999999999999999999} # named by somebody else
run first.yaml -m eval_all -o first
sort log >all_of_them
ok eval_all_goes_through_all test "$(sed -n 's/^step \([0-9]*\) .*/\1/p' log | tr -d '\n')" = 024
cp -r first damaged && size=$(stat -c %s damaged/checkpoint-2/model.safetensors) &&
    { head -c $((size / 2)) first/checkpoint-2/model.safetensors; head -c $((size - size / 2)) /dev/zero | tr '\0' '\177'; } >damaged/checkpoint-2/model.safetensors
exits eval_all_names_weights_without_a_loss 3 '^millrace: damaged/checkpoint-2: the loss of row' train first.yaml -m eval_all -o damaged
run first.yaml -m eval -o first
ok eval_is_the_last_of_them test $? = 0 -a "$(cat log)" = "$(tail -1 all_of_them)"
run second.yaml -m eval -o first --checkpoint_path first/checkpoint-2
ok eval_of_a_checkpoint test $? = 0 -a "$(cat log)" = "$(sed -n 2p all_of_them)"
cp -r first/checkpoint-2 two_
run second.yaml -m eval -o first --checkpoint_path two_
ok eval_of_one_without_a_number_is_step_0 test $? = 0 -a "$(cat log)" = "$(sed -n '2s/^step 2/step 0/p' all_of_them)"
exits eval_of_a_checkpoint_into_no_directory 3 '^millrace: none/x: cannot create a directory beside it: No such file' train second.yaml -m eval -o none/x --checkpoint_path two_
mkdir only && cp -r first/checkpoint-2 only
run first.yaml -m eval -o only
ok eval_of_a_checkpoint_without_a_state test $? = 0 -a "$(cat log)" = "$(sed -n 2p all_of_them)"
run first.yaml -m eval -o first --set eval_input.batch_size=3 --set runconfig.eval_steps=2
ok eval_steps_are_batches test "$(sed -n 's/.*(\([0-9]*\) tokens, 6 of [0-9]* windows)/\1/p' log)" = 192
run first.yaml -o first --max_steps 5 -q
ok max_steps_are_steps_in_all grep -q '^step 5 ' log
run first.yaml -o first --set runconfig.max_steps=null --set runconfig.num_steps=1
ok nothing_is_left_beside_states test "$(echo first.??????)" = 'first.??????'

# ---- weights from scratch
run first.yaml -o seed --set runconfig.seed=4 --max_steps 1
ok another_seed_begins_elsewhere test -s seed/checkpoint-0/model.safetensors -a "$(cmp -s seed/checkpoint-0/model.safetensors first/checkpoint-0/model.safetensors; echo $?)" = 1

plain=(-m train --max_steps 1 --set model.initializer=null --set model.embedding_initializer=null)
run first.yaml -o usual "${plain[@]}"
run first.yaml -o same "${plain[@]}" --set model.initializer_range=0.02
run first.yaml -o wide "${plain[@]}" --set model.initializer_range=0.3
run first.yaml -o outputs "${plain[@]}" --set 'model.output_layer_initializer={name: normal, std: 0.3}' --events drawn
for d in same wide outputs; do cmp -s usual/checkpoint-0/model.safetensors $d/checkpoint-0/model.safetensors; echo $?; done >differ
ok weights_are_drawn_as_the_model_says test "$(tr '\n' ' ' <differ)" = "0 1 1 "
ok events_are_where_the_command_line_says test -s drawn/events.out.tfevents.0000000000.millrace

# ---- files of millrace data: a list, their directory; a loss by windows, which are full
mkdir both
for part in 1 2; do head -c $((part * 1025)) all | tail -c 1025 >part; "$millrace" data first/checkpoint-0 part -o both/$part.h5 --sequence 32 -q; done
short=(--set train_input.max_sequence_length=null --max_steps 2)
run first.yaml -o list "${short[@]}" --set 'train_input.data_dir=[both/1.h5, both/2.h5]'
ok a_list_of_files test $? = 0
run second.yaml -o directory "${short[@]}" --set train_input.data_dir=both --set model.loss_scaling=batch_size --set model.loss_weight=0.03125
ok is_as_their_directory_also_with_a_loss_by_windows cmp list/state directory/state
exits a_loss_of_another_weight_is_refused 3 'loss_weight is another' train first.yaml -o none "${short[@]}" --set train_input.data_dir=both --set model.loss_scaling=batch_size
exits so_is_a_lower_one 3 'loss_weight is another' train first.yaml -o none "${short[@]}" --set train_input.data_dir=both --set model.loss_scaling=batch_size --set model.loss_weight=0.01

# ---- a vocabulary without a tokenizer learns tokens
sed 's/vocab_size: 257/vocab_size: 200/' first.yaml >small.yaml
"$millrace" data first/checkpoint-0 text -o tokens.h5 --sequence 32 -q
run small.yaml -m train -o small --max_steps 2 --set train_input.max_sequence_length=null --set train_input.data_dir=tokens.h5
ok tokens_need_no_tokenizer test $? = 0 -a ! -e small/checkpoint-0/tokenizer.json -a -s small/checkpoint-2/model.safetensors
# Memory for the file's windows is enough, whose length is not known when weights are drawn.
run small.yaml -m train -o narrow "${short[@]}" --set eval_input.max_sequence_length=null --set model.max_position_embeddings=512 \
    --set train_input.data_dir=tokens.h5 -d model:tinyt,capacity=4M
ok memory_for_the_windows_of_a_file_is_enough test $? = 0
exits a_text_needs_one 2 'small.yaml:[0-9]*: model.vocab_size: 200: the bytes of a text need 257; .* data_dir with tokens' train small.yaml -o none

# ---- refusals
wrong() { # NAME STATUS WORDS, then lines of a file
    local name=$1 status=$2 words=$3
    shift 3
    printf '%s\n' "$@" >wrong.yaml
    exits "$name" "$status" "$words" train wrong.yaml -o none
}
more() { # NAME STATUS WORDS KEY=VALUE...: first.yaml with other values
    local name=$1 status=$2 words=$3 set=()
    shift 3
    for s in "$@"; do set+=(--set "$s"); done
    exits "$name" "$status" "$words" train first.yaml -o none "${set[@]}"
}
exits config_that_is_not_there 3 'No such file' train no.yaml -o none
exits config_without_a_directory 2 '-o DIR is missing, and first.yaml has no model_dir' train first.yaml
exits config_beside_options 2 '--config and --batch exclude each other: the file says it' train first.yaml -o none --batch 2
exits mode_without_a_config 2 '--mode goes with --config' train -m eval "$root/models/demo"
exits mode_that_does_not_exist 2 "--mode 'evil' is none of" train first.yaml -m evil -o none
exits config_with_another_function 3 'model.nonlinearity: gelu, and the checkpoint has gelu_new' train first.yaml -o none \
    --checkpoint_path first/checkpoint-0 --set model.nonlinearity=gelu
function_of() { grep -q model_type "$1/config.json" && { sed -n 's/.*"activation_function": "\([a-z_]*\)".*/\1/p' "$1/config.json" | grep . || echo gelu_new; }; }
for f in gelu gelu_new relu; do
    run first.yaml -o "is-$f" "${short[@]}" --set model.nonlinearity=$f
    ok "config_trains_the_function_that_it_names_$f" test "$(function_of "is-$f/checkpoint-0")" = $f
done
exits config_with_an_unknown_function 3 "model.nonlinearity: 'swiglu': gelu, gelu_new and relu can be trained" train first.yaml -o none --set model.nonlinearity=swiglu
exits config_of_another_model 3 'first.yaml:1[0-9]: model.vocab_size: 257, and the checkpoint has 2048' train first.yaml -o none --checkpoint_path "$root/models/demo"
exits config_with_a_checkpoint_of_the_model_zoo 3 'a.mdl: a checkpoint of the Model Zoo' train first.yaml -o none --checkpoint_path a.mdl
exits config_with_another_order 2 'began with shuffle 1, not 0' train first.yaml -o first --set train_input.shuffle=false
exits config_with_another_seed 2 'began with shuffle_seed 7, not 8' train first.yaml -o first --set train_input.shuffle_seed=8
exits config_with_fewer_steps 2 'first: has [0-9]+ steps already; max_steps 3 is less' train first.yaml -o first --max_steps 3 --checkpoint_steps 3
ok no_checkpoint_of_other_weights test ! -e first/checkpoint-3
exits config_with_fewer_epochs 2 'first: has [0-9]+ steps already; num_epochs, steps: 1 is less' train first.yaml -o first --runconfig.max_steps null --set runconfig.num_epochs=1 --set runconfig.steps_per_epoch=1
exits config_with_too_many_epochs 2 '^millrace: the training has 1000000000000 steps; at most 1073741824$' train first.yaml -o none --runconfig.max_steps null --set runconfig.num_epochs=1000000 --set runconfig.steps_per_epoch=1000000
exits config_with_a_file_for_a_checkpoint 2 "'text' is a file; give the Hugging Face directory" train first.yaml -o none --checkpoint_path text
exits config_without_a_vocabulary 2 "the configuration's model lacks vocab_size" train first.yaml -o none --set model.vocab_size=null
exits config_that_does_not_go_on 2 'autoload_last_checkpoint is false' train first.yaml -o first --set runconfig.autoload_last_checkpoint=no
mkdir empty
exits eval_of_nothing 2 'has no checkpoint-N' train first.yaml -m eval -o empty
exits eval_all_of_nothing 2 'has no checkpoint-N; checkpoint_steps' train first.yaml -m eval_all -o empty --checkpoint_path first/checkpoint-0
wrong yaml_with_a_misspelt_key 2 'wrong.yaml:2: runconfig.max_step: the key is not known; did you mean runconfig.max_steps' runconfig: '  max_step: 3'
wrong yaml_with_a_key_in_another_place 2 'optimizer.max_steps: the key is not known here; did you mean runconfig.max_steps' 'optimizer: {max_steps: 3}'
wrong yaml_with_a_misspelt_section 2 'trainer.init.lop: the key is not known; did you mean trainer.init.loop' 'trainer: {init: {lop: {max_steps: 3}}}'
wrong yaml_of_another_type 2 "wrong.yaml:1: train_input.batch_size: 'many' is not a whole number from 1 to 1048576" 'train_input: {batch_size: many}'
wrong yaml_out_of_range 2 "runconfig.max_steps: '0' is not a whole number" 'runconfig: {max_steps: 0}'
wrong yaml_with_a_huge_number 2 "'99999999999999999999' is not a whole number" 'model: {vocab_size: 99999999999999999999}'
wrong yaml_with_a_flag_that_is_none 2 "wrong.yaml:1: train_input.shuffle: 'maybe' is neither true nor false" 'train_input: {shuffle: maybe}'
wrong yaml_with_a_quoted_flag 2 "train_input.shuffle: 'true' is neither true nor false" 'train_input: {shuffle: "true"}'
wrong yaml_with_a_seed_that_is_rounded 2 "wrong.yaml:1: runconfig.seed: '1e3' is not a whole number in digits" 'runconfig: {seed: 1e3}'
wrong yaml_with_a_list_for_a_directory 2 "wrong.yaml:1: runconfig.model_dir: '?a list'? is no text" 'runconfig: {model_dir: [a]}'
wrong yaml_that_is_not_finite 2 "'.inf' is not a number" 'optimizer: {eps: .inf}'
wrong yaml_with_a_list_for_keys 2 "wrong.yaml:1: model: 'a list' stands where keys should" 'model: [1, 2]'
wrong yaml_with_aliases_of_a_key 2 'optimizer.epsilon: stands in line 1, too' 'optimizer: {eps: 1e-8, epsilon: 1e-8}'
wrong yaml_with_a_key_twice 3 "wrong.yaml:2: the key 'model' stands in line 1, too" 'model: {}' 'model: {}'
wrong yaml_of_both_generations 2 'model stands beside trainer' 'trainer: {}' 'model: {}'
wrong yaml_with_two_documents 3 'a second document begins' 'model: {}' '---' 'model: {}'
wrong yaml_with_a_tag 3 'tags are not taken' 'model: !!python/name:os.system {}'
wrong yaml_with_a_merge_key 3 'merge keys' 'model: {<<: {a: 1}}'
wrong yaml_with_a_tab 3 'wrong.yaml:2: is no YAML' model: "$(printf '\tname: gptj')"
wrong yaml_that_is_empty 3 'is empty' ''
printf 'model: {\000}' >nul.yaml
exits yaml_with_a_nul 3 'is no YAML' train nul.yaml -o none
wrong yaml_with_a_nul_in_a_text 3 'NUL character' 'model: {name: "a\0b"}'
wrong yaml_that_is_too_deep 3 'nested deeper than 32' "model: $(printf '[%.0s' {1..40})"
{ echo 'a: &a [1, 1, 1, 1, 1, 1, 1, 1]'; for i in {a..y}; do n=$(tr a-y b-z <<<"$i"); echo "$n: &$n [*$i, *$i, *$i, *$i, *$i, *$i, *$i, *$i]"; done; } >bomb.yaml
(ulimit -v 4000000; exits yaml_with_a_bomb_of_aliases 3 'more than 4096 values' train bomb.yaml -o none; exit $failed) || failed=1
number=$((number + 1))
wrong yaml_with_an_alias_of_itself 3 'within its own value' 'a: &a [*a]'
head -c 70000 /dev/zero | tr '\0' '#' >large.yaml
exits yaml_that_is_too_large 3 'has 70000 bytes; a configuration has at most 65536' train large.yaml -o none
full=()
for i in {1..64}; do full+=(--set "runconfig.seed=$i"); done
exits max_steps_beside_as_many_keys_as_there_may_be 2 '--max_steps is one --set too many' train first.yaml -o none "${full[@]}" --max_steps 1
more key_without_a_value 2 '--set runconfig.seed: is not KEY=VALUE' runconfig.seed
more key_of_a_set_that_is_misspelt 2 '--set: model.vocab_sise: the key is not known; did you mean model.vocab_size' model.vocab_sise=3
exits key_as_an_option_that_is_misspelt 2 'optimizer.ep: the key is not known; did you mean optimizer.eps' train first.yaml -o none --optimizer.ep 1
exits key_as_an_option_without_a_value 2 'optimizer.eps' train first.yaml -o none --optimizer.eps
exits key_as_an_option_without_a_config 2 'optimizer.eps' train "$root/models/demo" -o none --optimizer.eps 1
more dropout_is_refused 3 "model.embedding_dropout_rate: '0.1': there is no dropout; --model.embedding_dropout_rate 0 trains without it$" model.embedding_dropout_rate=0.1
more another_model_is_refused 3 "model.name: 'bert': gptj, gpt2, gpt3 and bert.classifier can be trained" model.name=bert
more lora_with_dropout 3 'lora_params: dropout is 0.1; there is no dropout' 'model.lora_params={r: 8, dropout: 0.1}'
more lora_with_an_alpha_that_is_not_read_back 2 "lora_params: '1e-9' is not a number from 1e-06 to 1000000" 'model.lora_params={r: 8, alpha: 1e-9}'
more lora_with_another_key 2 "lora_params: has 'rank'; r, alpha, dropout and target_modules are its keys" 'model.lora_params={rank: 8}'
more lora_without_a_rank 2 'lora_params: has no r' 'model.lora_params={alpha: 8}'
more lora_of_a_number 2 'lora_params: is no map of r, alpha and target_modules' 'model.lora_params=8'
more lora_of_what_is_not_there 2 "LoRA's target 'c_attn': the model has no matrix" 'model.lora_params={r: 8, target_modules: [c_attn]}'
more another_bias_is_refused 3 "use_ffn_bias: 'false': it is true in GPT-J" model.use_ffn_bias=false
more another_optimizer_is_refused 3 "'Lion': AdamW, Adam and SGD are the optimizers that are there" optimizer.optimizer_type=Lion
more betas_beside_sgd 2 'first.yaml:[0-9]*: optimizer.betas: goes with AdamW and Adam; the optimizer is SGD' optimizer.optimizer_type=SGD
more momentum_beside_adam 2 'optimizer.momentum: goes with SGD; the optimizer is Adam' optimizer.optimizer_type=adam optimizer.momentum=0.9
wrong nesterov_without_momentum 2 "wrong.yaml: Nesterov's way needs a momentum" 'trainer: {init: {optimizer: {SGD: {nesterov: true}}}}'
wrong yaml_with_a_key_of_another_optimizer 2 'trainer.init.optimizer.SGD.eps: the key is not known' 'trainer: {init: {optimizer: {SGD: {eps: 1e-8}}}}'
exits config_with_another_optimizer 2 'began with the optimizer AdamW, not Adam' train first.yaml -o first --set optimizer.optimizer_type=Adam
more freezing_what_is_not_there 2 "freeze 'no': no tensor has such a name" optimizer.freeze=no
more freezing_by_a_map 2 'optimizer.freeze: a map stands where a pattern of names should' 'optimizer.freeze={a: b}'
more another_loss_is_refused 3 "--set: model.loss_scaling: 'batch_size': .*some are shorter" model.loss_scaling=batch_size model.loss_weight=0.03125
more another_weight_is_refused 3 "model.loss_weight: '2': with num_tokens" model.loss_weight=2
more an_initialiser_is_refused 3 "'xavier_uniform': normal and truncated_normal can be drawn" model.initializer=xavier_uniform
more a_schedule_is_refused 2 "optimizer.learning_rate: the schedule 'Linar' is not known; did you mean Linear" 'optimizer.learning_rate=[{scheduler: Linar}]'
more a_schedule_of_other_words_is_refused 2 'is no word of a schedule' 'optimizer.learning_rate="1e-3), Step("'
more several_texts_are_refused 3 'train_input.data_dir: text: ' 'train_input.data_dir=[text, held]'
more a_list_with_what_is_not_there 3 'train_input.data_dir: no: No such file' 'train_input.data_dir=[text, no]'
more a_list_of_nothing 2 'is an empty list' 'train_input.data_dir=[]'
more parts_of_a_step_that_are_not_equal 2 'batch_size, 4, is no multiple of 3' train_input.micro_batch_size=3
more two_ends_of_a_run 2 'one of max_steps, num_steps and num_epochs is enough' runconfig.num_epochs=2
more heads_that_do_not_divide_the_width 2 '5 heads do not divide a width of 32' model.num_heads=5
more data_that_is_not_there 3 'train_input.data_dir: no: No such file' train_input.data_dir=no
more sequences_beyond_the_positions 3 'max_sequence_length 65: the model has 64 positions' train_input.max_sequence_length=65
ok refusals_leave_nothing test -z "$(find . -maxdepth 1 -name 'none*')"
done_testing
