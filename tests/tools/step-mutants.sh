#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Do the tests notice when a step on a device is wrong? Each mutant is host/train, host/store or
# host/model with one line changed: the pass and its programs, the step, its work, the streams, what is
# checked of a state. Of the unit tests that `tests` has, one must fail. Prints TAP.
# usage, from the repository's root: tests/tools/step-mutants.sh [BUILD_DIR [WORD]]
set -u
build=${1:-build}/step-mutants
folders=(train store model)
others=(tests/reference/*.c)
declare -A tests=(
    [test_pass]="batches_leave_nothing fixtures_have_the_gradient recomputation_changes_no_bit
        large_vocabularies_have_the_gradient bits_are_the_same_everywhere
        sums_wait_where_there_is_no_room frozen_tensors_change_no_bit_of_others
        units_that_are_too_small_are_noted"
    [test_pass_encoder]="gradients_are_near_those_of_fp32 bits_are_the_same_everywhere frozen_tensors_have_no_gradient
        steps_have_the_same_bytes a_batch_is_learnt_by_heart bits_do_not_depend_on_memory"
    [test_trainer_labels]="a_model_without_one_has_it_drawn a_model_with_one_keeps_it texts_are_learnt"
    [test_step]="a_step_has_the_gradient a_first_step_begins_anew saturation_repeats_the_step infinite_losses_end_the_step
        refused_batches_change_nothing a_batch_is_learnt ten_steps_are_the_same_everywhere
        few_steps_are_repeated"
    [test_train_streaming]="bits_do_not_depend_on_memory frozen_layers_stay_where_they_are
        a_plan_knows_what_crosses_the_link a_failed_copy_loses_nothing"
    [test_ranks]="any_number_makes_the_bytes_of_one one_rank_that_saturates_repeats_all"
    [test_store_train]="the_store_trains_as_the_loop_in_fp32"
    [test_trainer]="positions_that_cannot_be_are_refused patterns_freeze_by_name"
    [test_train_plan]="traffic_follows_from_the_fields counts_are_the_devices sums_fill_the_pauses"
    [test_store_streams]="streams_are_those_of_pack streams_of_large_matrices"
    [test_store]="every_weight_has_one_place imports_and_exports_give_the_same_weights
        configuration_and_tokenizer_are_carried_along refuses_a_flipped_bit refuses_a_second_process
        streams_are_made_anew
        refuses_the_state_of_another_model_or_version refuses_patches_of_another_place
        refuses_weights_that_are_not_finite_or_do_not_fit"
    [test_lora]="targets_are_names_of_modules merged_weights_are_those_of_the_formula"
    [test_lora_train]="adapters_learn devices_threads_and_resuming_change_no_bit other_adapters_are_refused
        other_models_are_refused changed_settings_are_refused"
    [test_origin]="every_tensor_counts_from_end_to_end other_weights_of_the_same_sizes_are_refused"
    [test_lineage]="files_of_siblings_are_refused states_of_older_versions_open"
    [test_gpt2_train]="tensors_are_those_of_the_file gradients_are_those_of_the_file"
)

# "name|file below host/|sed expression|test"
mutants=(
    # encoders
    'encoder: the attention of the chunk before|train/pass_forward.c|s/(uint64_t)f->first \* (uint64_t)(f->p->d\.w/0 * (uint64_t)(f->p->d.w/|test_pass_encoder'
    'encoder: maxima of what is before a row|train/pass_forward.c|s/load_maxima(f, f->stage == QUERIES)/load_maxima(f, false)/|test_pass_encoder'
    'encoder: what a norm reads is saved behind it|train/pass_forward.c|s/if (item->back) \/\/ before it writes there/if (0)/|test_pass_encoder'
    'encoder: the norm writes no row|train/pass_forward.c|s/mr_command_set(c, MR_F_LAYERNORM_BACK, item->back)/;/|test_pass_encoder'
    'encoder: a norm has the gradient of its readers alone|train/pass_backward.c|s/bool sum = item->back \&\& p->batch.live\[MR_RESIDUAL\]/bool sum = item->back \&\& !p->batch.live[MR_X]/|test_pass_encoder'
    'encoder: a norm adds to the gradient of the residual|train/pass_backward.c|s/p->batch.live\[MR_RESIDUAL\] \&\& !item->back/p->batch.live[MR_RESIDUAL]/|test_pass_encoder'
    'encoder: maxima of columns are those of a decoder|train/pass_backward.c|s/if (p->encoder) \/\/ columns that/if (0) \/\/ columns that/|test_pass_encoder'
    'encoder: keys have no queries before them|train/pass_backward.c|s/(p->encoder ? p->batch.start\[first\] : first)/first/|test_pass_encoder'
    'encoder: keys end with the chunk|train/pass_encoder.c|s/if (!p->encoder)/if (true)/|test_pass_encoder'
    'encoder: softmax sees what is before a row|train/pass_encoder.c|s/s->p->batch.end\[s->first + row\] - 1 - s->key/s->first + row - s->key/|test_pass_encoder'
    'encoder: softmax sees the text before|train/pass_encoder.c|s/s->p->batch.start\[s->first + row\] - s->key/0/|test_pass_encoder'
    'encoder: the front has the gradient of the residual alone|train/pass_encoder.c|s/i < n \&\& p->batch.live\[MR_X\]/i < 0/|test_pass_encoder'
    'encoder: the front has no gain|train/pass_encoder.c|s/add_rows(p, e->read, e->of\[GAIN\]\.gradient)/;/|test_pass_encoder'
    'encoder: all tokens are of type 0|train/pass_batch.c|s/batch->types ? batch->types\[row\] : 0/0/|test_pass_encoder'
    'encoder: rows of the batch before keep their gradient|train/pass_encoder.c|s/^    memset(p->host\.row_grad, 0, .*;/    ;/|test_pass_encoder'
    'encoder: labels are not copied|train/step.c|s/kept\.labels = behind + rows;/kept.labels = behind;/|test_pass_encoder'
    'encoder: weights of the step before|train/pass.c|s/^        pass_encoder_weights(p);/        if (!p->encoder->of[0].weights[0]) pass_encoder_weights(p);/|test_pass_encoder'
    'encoder: what is frozen is in front|train/pass_learns.c|s/wants\[MR_X\] = \*residual \&\& p->encoder;/;/|test_pass_encoder'
    'encoder: the empty layer streams|train/pass_place.c|s/units = pass_units(p), streamed/units = p->c->n_layer + 1, streamed/|test_pass_encoder'
    'encoder: the last label counts as right|train/classifier.c|s/z\[l\] > z\[best\] ? l : best/l/|test_trainer_labels'
    'encoder: a drawn classifier is 0|store/import.c|s/vector ? 0 : 0\.02F/vector ? 0 : 0.0F/|test_trainer_labels'
    'encoder: the classifier is always drawn|store/import.c|s/t->count == n \&\& !mr_checkpoint/false \&\& !mr_checkpoint/|test_trainer_labels'
    'encoder: one of tokens is taken|store/import.c|s/ \&\& !mr_checkpoint_config(c)->by_token//|test_trainer_labels'
    # the forward pass
    'forward: what norms read stays for the first chunk|train/pass_forward.c|s/run_save(&f->run, kept->row, f->first, false)/run_save(\&f->run, kept->row, 0, false)/|test_pass'
    'forward: slopes of all chunks at one place|train/pass_forward.c|s/kept->slope + (uint64_t)f->first \* (uint64_t)(it\.cols \/ 32)/kept->slope/|test_pass'
    'forward: no layer enters the next one|train/pass_forward.c|s/if (layer < p->c->n_layer \&\& !again \&\&/if (0 \&\&/|test_pass'
    'forward: each layer reads what entered the first|train/pass_forward.c|s/run_fetch(&f->run, p->at.entry\[f->layer\]/run_fetch(\&f->run, p->at.entry[0]/|test_pass'
    'forward: recomputation ends an item early|train/pass_forward.c|s/^    return n;/    return n - 1;/|test_pass'
    'forward: recomputation goes on to the next layer|train/pass_forward.c|s/count = again ? items_that_keep(f\.list) :/count = again ? items_that_keep(f.list) - 2 :/|test_pass'
    'forward: tiles of heads in one matrix|train/pass_forward.c|s/f->first, 0, p->d\.head_lanes \/ 32);/f->first, 0, p->d.w \/ 32);/|test_pass'
    # the backward pass
    'backward: slopes of the first chunk|train/pass_backward.c|s/slope + (uint64_t)first \* lanes \/ 32/slope/|test_pass'
    'backward: no slopes|train/pass_backward.c|s/mr_command_set(c, MR_F_MATMUL_SLOPE, 1);/;/|test_pass'
    'backward: an item replaces the gradient of the others|train/pass_backward.c|s/!p->batch.live\[MR_X\] \&\& s == 0/s == 0/|test_pass'
    'backward: the last segment replaces the others|train/pass_backward.c|s/!p->batch.live\[MR_X\] \&\& s == 0/!p->batch.live[MR_X]/|test_pass'
    'backward: each segment has the first blocks|train/pass_backward.c|s/for (int s = 0; s < segment; s++) {/for (int s = 0; s < 0 * segment; s++) {/|test_pass'
    'backward: sides of dW swapped|train/pass_backward.c|s/inputs ? x : dy, inputs ? dy : x/inputs ? dy : x, inputs ? x : dy/|test_pass'
    'backward: bias of a norm is its gain|train/pass_backward.c|s/tensor_of(w, item, MR_BIAS), p->at.ones, p->at.grad\[item->to\]\.turned/tensor_of(w, item, MR_BIAS), p->at.ones, p->at.gain_turned/|test_pass'
    'backward: a norm replaces the gradient of the residual|train/pass_backward.c|s/if (p->batch.live\[MR_RESIDUAL\] \&\& !item->back)/if (0)/|test_pass'
    'backward: gradients of the layer above stay|train/pass_backward.c|s/p->batch.live\[item->to\] = false;/;/|test_pass'
    # layers that stream
    'streaming: the stash does not leave|train/pass_stream.c|s/s->keeps = keeps \&\& !backward ? leaves : -1;/s->keeps = -1;/|test_train_streaming'
    'streaming: the stash does not come back|train/pass_stream.c|s/if (rc == 0 \&\& s->brings \& PASS_KEPT)/if (0)/|test_train_streaming'
    'streaming: a place is taken before its sums are done|train/pass_stream.c|s/(backward \&\& s->unit >= 0 \&\& pass_sums_wait(p, s->unit))/0/|test_train_streaming'
    'streaming: sums do not leave|train/pass_stream.c|s/s->sums = backward ? leaves : -1;/s->sums = -1;/|test_train_streaming'
    'streaming: recomputation has no W|train/pass_stream.c|s/(p->recompute ? PASS_W : PASS_VECTORS . PASS_KEPT)/(PASS_VECTORS + PASS_KEPT)/|test_train_streaming'
    'streaming: nobody waits for a copy|train/pass_stream.c|s/if (rc == 0 \&\& s->moving) {/if (0) {/|test_train_streaming'
    'streaming: gains stay at home|train/pass_stream.c|s/PASS_VECTORS . PASS_KEPT/PASS_KEPT/|test_train_streaming'
    'streaming: all units begin where the first does|train/pass_place.c|s/unit\[u\].tiles = tiles;/unit[u].tiles = 0;/|test_train_streaming'
    'streaming: all sums are read at the end|train/pass_gradient.c|s/rc = pass_has_sums(p, u) ? pass_read_sums(p, u, err) : 0;/rc = pass_read_sums(p, u, err);/|test_train_streaming'
    'streaming: both places are one|train/pass_place.c|s/nth++ % SLOTS != slot/nth++ % SLOTS != 0 * slot/|test_train_streaming'
    'backward: the layer above is run again|train/pass_backward.c|s/pass_layer_again(p, layer, err)/pass_layer_again(p, layer + 1, err)/|test_pass'
    'backward: layers first to last|train/pass_backward.c|s/p->at.wt_off\[kept->stream\]/p->at.wt_off[pass_item(p, (w->layer + 1) % (p->c->n_layer + 1), i)->stream]/|test_pass'
    # what learns
    'learns: the backward pass goes down to the tables|train/pass_learns.c|s/bool residual = p->tables_learn;/bool residual = true;/|test_pass'
    'learns: a layer forgets what is in front of it|train/pass_learns.c|s/item->to == MR_RESIDUAL \&\& wants\[MR_RESIDUAL\]/false/|test_pass'
    'learns: attention by its queries alone|train/pass_learns.c|s/^    bool wants\[MR_PLACES\]/\#define MR_V MR_Q\n    bool wants[MR_PLACES]/|test_pass'
    'learns: frozen tensors have sums|train/pass_place.c|s/if (!pass_learns(p, layer, item, part))/if (mr_item_gradient_is_zero(item, part))/|test_pass'
    'learns: the residual is not turned where dX ends|train/pass_backward.c|s/bool turns = item->to == MR_RESIDUAL/bool turns = through \&\& item->to == MR_RESIDUAL/|test_pass'
    'learns: dX goes on where nothing learns|train/pass_backward.c|s/^    if (!through) {/    if (0) {/|test_pass'
    'learns: a norm without a gain has lost its row|train/pass_backward.c|s/^    if (gain) \/\/ whose/    if (0) \/\/ whose/|test_pass'
    'learns: what was frozen has no unit|store/gradients.c|s/mr_store_unit(s, i) != 0;/true;/|test_trainer'
    # adapters
    'adapter: A has the gradient of B|store/adapter_step.c|s/collect(x, turned, p->col, p->cols, x->part\[i\].cols, unit, turned ? db : da);/collect(x, turned, p->col, p->cols, x->part[i].rows, unit, turned ? db : da);/|test_lora_train'
    'adapter: gradients without the factor|store/adapter_step.c|s/const double factor = .*/const double factor = 1;/|test_lora_train'
    'adapter: shares of a matrix have the first one|store/adapter_step.c|s/x->b + (size_t)(x->share \* t->outputs + place)/x->b + (size_t)place/|test_lora_train'
    'adapter: the unit of a step before|store/adapter_step.c|s/mr_store_units(s->header)\[own\].now = unit;/;/|test_lora_train'
    'adapter: A is written as B is|store/adapter_step.c|s/by_rank ? k \* n + i : i \* rank + k/i * rank + k/|test_lora_train'
    'adapter: streams of the step before|store/adapter_step.c|s/        mr_streams_make_tensor(s, i);/        ;/|test_lora_train'
    'adapter: numbers of the step before|store/adapter_step.c|s/mr_store_tile_at(s, p, e \/ MR_TILE, s->header->side)/mr_store_tile_at(s, p, e \/ MR_TILE, !s->header->side)/|test_lora_train'
    'adapter: rows of a turned tile|store/adapter.c|s/out\[turned ? i \* MR_TILE_COLS + o : /out[turned ? i * MR_TILE_COLS + (o ^ 1) : /|test_lora_train'
    'adapter: a share reads the first one|store/adapter.c|s/t->share \* shape->outputs + output/output/|test_lora_train'
    'adapter: any weights below|store/adapter.c|s/origin != 0 \&\& is != origin/0/|test_lora_train'
    'adapter: any settings|store/carried.c|s/return rc == 0 \&\& s->adapter$/return rc == 0 \&\& !s/|test_lora_train'
    # attention
    'attention: gradients of all heads at one place|train/pass_backward.c|s/at = head \* lanes \/ 32/at = 0/|test_pass'
    'attention: turned matrices of the first head|train/pass_backward.c|s/kblocks, head \* lanes, lanes)/kblocks, 0, lanes)/|test_pass'
    'attention: tiles of the first head|train/pass_backward.c|s/off + (uint64_t)head \* mr_tiles_beats/off + 0 * mr_tiles_beats/|test_pass'
    'attention: values are turned back|train/pass_backward.c|s/place != MR_V \&\& //|test_pass'
    'attention: queries are not turned back|train/pass_backward.c|s/place != MR_V \&\& /place == MR_K \&\& /|test_pass'
    'attention: scores without 1\/sqrt(d)|train/pass_run.c|s/(float)(1\.0 \/ root)/1.0F/|test_pass'
    'attention: a token sees the next one|train/pass_run.c|s/(uint32_t)(first - key)/(uint32_t)(first - key + 1)/|test_pass'
    'attention: keys of the chunk alone|train/pass_encoder.c|s/p->batch.start\[first\] \/ whole \* whole/first \/ whole * whole/|test_pass'
    'attention: queries of the chunk alone|train/pass_backward.c|s/(p->batch.end\[first + r->rows - 1\] + 31)/(first + r->rows + 31)/|test_pass'
    'attention: keys from their second block on|train/pass_backward.c|s/kept_of(w, i, MR_Q, true), head, first, at, kblocks/kept_of(w, i, MR_Q, true), head, first, at + (kblocks > 1), kblocks - (kblocks > 1)/|test_pass'
    # sums of gradients
    'gradients: a unit that is too small|train/pass_gradient.c|s/a + b - 246/a + b - 276/|test_pass'
    'gradients: columns of the first 32 rows|train/pass_gradient.c|s/t->off + 128 \* tiles/t->off/|test_pass'
    'gradients: the record of the last rows|train/pass_gradient.c|s/MR_F_GRAD_BEGIN, s->row == 0.*/MR_F_GRAD_BEGIN, 1);/|test_pass'
    'parts: each has the first columns|train/pass_gradient.c|s/kblocks, s->col, cols);/kblocks, 0, cols);/|test_pass'
    'parts: columns are not counted in tiles|train/pass_gradient.c|s/ + (uint64_t)(s->col \/ 64);/;/|test_pass'
    'parts: all have the first rows|train/pass_gradient.c|s/0, kblocks, row, rows,/0, kblocks, 0, rows,/|test_pass'
    'parts: none fills a pause|train/pass_gradient.c|s/LEAST = 1500,/LEAST = 1 << 30,/|test_train_plan'
    'parts: none beside the end of a program|train/pass_run.c|s/p->filler.fill(r, MR_QUEUE_ARRAY, end);/;/|test_train_plan'
    'parts: sums of GELU wait when their place is taken|train/pass_backward.c|s/rc = pass_sums(p, p->at\.grad\[item->from\]\.turned, w->err);/rc = 0;/|test_pass'
    'parts: sums of the residual wait when their place is taken|train/pass_backward.c|s/rc = pass_sums(p, p->at\.grad\[MR_RESIDUAL\]\.turned, w->err);/rc = 0;/|test_pass'
    'parts: sums of a norm wait when their place is taken|train/pass_backward.c|s/int rc = pass_sums(p, p->at\.grad\[item->to\]\.turned, w->err);/int rc = 0;/|test_pass'
    'parts: sums of a gain wait when their place is taken|train/pass_backward.c|s/rc = pass_sums(p, p->at\.gain_turned, w->err);/rc = 0;/|test_pass'
    'parts: sums of heads wait when their place is taken|train/pass_backward.c|s/rc = pass_sums(p, p->at\.grad\[to\[k\]\]\.turned, w->err);/rc = 0;/|test_pass'
    'parts: sums wait while their layer runs again|train/pass_backward.c|s/            rc = pass_sums(p, EVERYTHING, err);/            rc = 0;/|test_pass'
    'parts: the residual stays turned behind a norm|train/pass_backward.c|s/p->batch\.residual_turned = false;/;/|test_pass'
    'gradients: the record goes on from the pass before|train/pass_gradient.c|s/MR_F_GRAD_BEGIN, s->row == 0.*/MR_F_GRAD_BEGIN, 0);/|test_pass'
    # commands
    'commands: maxima begin anew in each chunk|train/pass_run.c|s/MR_F_MATMUL_BEGIN, first_row == 0/MR_F_MATMUL_BEGIN, 1/|test_pass'
    'commands: maxima never begin anew|train/pass_run.c|s/MR_F_MATMUL_BEGIN, first_row == 0/MR_F_MATMUL_BEGIN, 0/|test_pass'
    'commands: rows of the first chunk|train/pass_run.c|s/(uint32_t)first \/ 4/0/|test_pass'
    'commands: angles of the first chunk|train/pass_run.c|s/p->at.rot_off\[rotary\] + (uint64_t)first \* p->at.rot_beats/p->at.rot_off[rotary]/|test_pass'
    'commands: angles of the forward pass|train/pass_run.c|s/uint64_t rot = p->at.rot_off\[rotary\]/uint64_t rot = p->at.rot_off[0]/|test_pass'
    'commands: the noise of keys is summed|model/model.c|s/return part == MR_BIAS /return part == MR_PARTS /|test_step'
    # what the host writes
    'host: ones are halves|train/pass_batch.c|s/at\.elements, 64, 32/at.elements, 32, 32/|test_pass'
    'host: angles are not turned back|train/pass_batch.c|s/i < p->d\.rot_floats \&\& back/i < p->d.rot_floats \&\& 0/|test_pass'
    'host: keys of all sequences at one place|train/pass_batch.c|s/kv_off += (uint32_t)/kv_off += 0 * (uint32_t)/|test_pass'
    'host: positions of the batch|train/pass_batch.c|s/? type : pos;/? type : row % p->c->n_positions;/|test_pass'
    'host: rows without a target keep their logits|train/pass_batch.c|s/memset(to, 0, width \* sizeof \*to);/;/|test_pass'
    'host: the first blocks of each segment|train/pass_batch.c|s/write_logits(p, false, off, s \* MR_SEGMENT_KBLOCKS/write_logits(p, false, off, 0 * s/|test_pass'
    'host: Wt of the first segment|train/pass_weights.c|s/^        to += (size_t)mr_item_beats.*/        ;/|test_pass'
    # what a pass hands out, and what it plans
    'result: a unit that is set stays as it was|train/pass_result.c|s/pass->host.tensors\[i\]\.unit = unit;/;/|test_step'
    'result: a limit that is set stays as it was|train/pass_result.c|s/pass->limit = limit;/;/|test_pass'
    'result: a sum that is too large is not noted|train/pass_result.c|s/t->flags \& 1/0/|test_pass'
    'plan: the forward pass alone|train/pass_plan.c|s/rc = pass_backward(pass, err);/;/|test_train_plan'
    'plan: all rows are one sequence|train/pass_plan.c|s/pass_place_rows(pass, lengths, n_sequences);/pass_place_rows(pass, (const int[]){(int)rows}, 1);/|test_train_plan'
    # the step
    'step: targets are not copied|train/step.c|s/kept\.targets = behind;/kept.targets = batch->targets;/|test_step'
    'step: tokens of the first micro-batch|train/step.c|s/run(s, &s->batches\[k\]\.batch, &loss, err)/run(s, \&s->batches[0].batch, \&loss, err)/|test_step'
    'step: positions of the batch|train/step.c|s/positions\[r++\] = t;/positions[r] = r % s->config->n_positions, r++;/|test_step'
    'step: units of the step before|train/step.c|s/mr_pass_set_unit(s->pass, i, mr_store_unit(s->store, i));/;/|test_step'
    'step: the first step is not measured|train/step.c|s/!mr_store_has_units(step->store)/false/|test_step'
    'step: one that did not end leaves its units|train/step.c|s/step->begun = true;/;/|test_step'
    'step: units are those before the first step|train/step.c|s/step->begun = rc < 0;/;/|test_step'
    'step: the first one is not run again|train/step.c|s/^    s->repeated++;//|test_step'
    'step: units of the last micro-batch|train/step.c|s/unit > s->wanted\[i\] ? unit : s->wanted\[i\]/unit/|test_step'
    'step: a guess of rows that is too small|train/step.c|s/exponent + bits + 1 - limit/exponent - limit - 8/|test_step'
    'step: sums that are too large end it|train/step.c|s/raised = mr_store_raise(s->store);/raised = 0;/|test_step'
    'step: the units that were raised last|train/step.c|s/s->raised += raised/s->raised = raised/|test_step'
    'step: it goes on after an error|train/step.c|s/^        forget(s);/        ;/|test_step'
    'step: the loss of the last micro-batch|train/step.c|s/mr_loss_add(&s->loss, loss);/s->loss = *loss;/|test_step'
    'step: the device keeps the old weights|train/step.c|s/return mr_pass_item_weights(.*);/return 0;/|test_step'
    'ranks: units that this one wants|train/step.c|s/wanted\[k\] > s->wanted\[k % n\] ? wanted\[k\] : s->wanted\[k % n\]/s->wanted[k % n]/|test_ranks'
    'ranks: losses of this one|train/step.c|s/mr_loss_add(&s->loss, loss + k);/s->loss = own;/|test_ranks'
    'ranks: the last sums are of this one|store/mirror.c|s/mr_ranks_sum(ranks, sums, n);/mr_ranks_sum(ranks, sums, n \/ 2);/|test_ranks'
    'ranks: the largest sum of this one|store/mirror.c|s/all\[k\].peak > t->peak ? all\[k\].peak : t->peak/t->peak/|test_ranks'
    'ranks: tables of the step before|store/mirror.c|s/return spread_masters(s, ranks, err)/return s->header->step > 1 ? 0 : spread_masters(s, ranks, err)/|test_ranks'
    'ranks: Wt of the step before|store/mirror.c|s/f <= MR_V_TURNED/f < MR_V_TURNED/|test_ranks'
    # its work
    'work: a block has 32 bytes|train/work.c|s/n \* 33/n * 32/|test_train_plan'
    'work: codes of the last section|train/work.c|s/(first + kblocks + 15) \/ 16 - first \/ 16/(kblocks + 15) \/ 16/|test_train_plan'
    'work: a header for all channels|train/work.c|s/n \* ((groups + 15) \/ 16)/(groups + 15) \/ 16/|test_train_plan'
    'work: turned blocks of whole rows alone|train/work.c|s/blocks((rows + 31) \/ 32 \* cols)/blocks(rows \/ 32 * cols)/|test_train_plan'
    'work: slopes are written where they are read|train/work.c|s/w\.host_read = rows/w.host_written = rows/|test_train_plan'
    'work: a result has all columns|train/work.c|s/beats(4 \* get(c, MR_F_MATMUL_OUT_COLS))/beats(4 * cols)/|test_train_plan'
    'work: bands of the rows that there are|train/work.c|s/bands \* MR_GRAD_TILE_ROWS \* beats/rows * beats/|test_train_plan'
    'work: records begin anew|train/work.c|s/MR_F_GRAD_BEGIN) ? 0 : 1/MR_F_GRAD_BEGIN) ? 0 : 0/|test_train_plan'
    'work: values without maxima|train/work.c|s/MR_F_STORE_KV_IS_V) ? scales : 0/MR_F_STORE_KV_IS_V) ? 0 : 0/|test_train_plan'
    'work: weights of one channel|train/work.c|s/channels \* mr_legal_stream_beats/mr_legal_stream_beats/|test_train_plan'
    'work: products of a row|train/work.c|s/kblocks \* cols \* rows}/kblocks * cols}/|test_train_plan'
    'work: the sum lacks what is read|train/work.c|s/sum->stash_read += w->stash_read;/;/|test_train_plan'
    # the streams
    'streams: segments over each other|store/streams.c|s/(uint64_t)segment \* bytes_of(&p->segment)/0/|test_store_streams'
    'streams: odd blocks of a segment over even ones|store/streams.c|s/\*b %= MR_SEGMENT_KBLOCKS;/*b = *b % MR_SEGMENT_KBLOCKS \& ~1;/|test_store_streams'
    'streams: maxima of the first patch|store/streams.c|s/\*to = top\[c\] > \*to ? top\[c\] : \*to;/*to = *to ? *to : top[c];/|test_store_streams'
    'streams: maxima stay|store/streams.c|s/memset(base + piece_at(it, c), 0, MR_BEAT);/;/|test_store_streams'
    'streams: a bias is that of the first 64 outputs|store/streams.c|s/base + piece_at(it, (int)e) + MR_BEAT/base + piece_at(it, 0) + MR_BEAT/|test_store_streams'
    'streams: gain and bias at one place|store/streams.c|s/bias ? bytes_of(it) \/ 2 : 0/0/|test_store_streams'
    'streams: Wt has room for biases|store/turned.c|s/it\.bias = false;/;/|test_pass'
    # the state in memory, the list of tensors
    'memory: all is written at its beginning|store/volume_memory.c|s/v->data\[f\] + at, data/v->data[f], data/|test_store_train'
    'memory: half of a write is lost|store/volume_memory.c|s/at, data, size);/at, data, size \/ 2);/|test_store_train'
    'model: all blocks are the first|model/tensors.c|s/->block_prefix, layer, item->name/->block_prefix, 0, item->name/|test_store'
    'model: biases have the names of weights|model/tensors.c|s/part == MR_WEIGHT ? "weight" : "bias"/"weight"/|test_store'
    'model: columns of shares are rows|model/tensors.c|s/bool columns = t->cols > 0 \&\& item->transposed;/bool columns = false;/|test_gpt2_train'
    'model: learned positions may be more|model/arch.c|s/^    if (table)$/    if (false)/|test_trainer'
    'model: positions may be fewer|model/arch.c|s/if (positions < c->n_positions/if (false/|test_trainer'
    # what is checked of a state, and what it is made of
    'state: a patch of another place is taken|store/patch.c|s/return MR_PATCH_FOREIGN;/;/|test_store'
    'state: two processes have it|store/volume_files.c|s/if (flock(.*) == 0)/if (true)/|test_store'
    'state: the version is not looked at|store/header.c|s/!known(version) \&\& (size/false \&\& (size/|test_store'
    'state: the header of another model|store/header.c|s/if (h->model != mr_store_model(l->config))/if (false)/|test_store'
    'state: the hash of a header is not looked at|store/header.c|s/ \&\& h->hash == hash_of(h)//|test_store'
    'state: what is carried along is not looked at|store/carried.c|s/if (is\.size != want->size .. is\.hash != want->hash)/if (false)/|test_store'
    'state: the model that is named is not looked at|store/open.c|s/mr_store_model(&other) == mr_store_model(&s->config)/true/|test_store'
    'state: other weights of the same sizes are taken|store/open.c|s/origin == wanted/true/|test_origin'
    'state: it does not say what it began from|store/open.c|s/rc = mr_store_origin(&s->header->origin, checkpoint, err);/;/|test_origin'
    'state: files of two trainings are one state|store/patch.c|s/seal\.lineage == want\.lineage/true/|test_lineage'
    'state: the lineage knows no gradients and no factors|store/lineage.c|s/XXH3_64bits(slot + UPDATE, UPDATE_END - UPDATE)/0/|test_lineage'
    'state: the lineage knows no units|store/lineage.c|s/XXH3_64bits(slot + UNITS, h->slot_bytes - UNITS)/0/|test_lineage'
    'state: the lineage is that of the last step|store/lineage.c|s/{h->lineage, XXH3/{0, XXH3/|test_lineage'
    'state: elements of an older version are its lineage|store/header.c|s/(\*header)->lineage = 0;/;/|test_lineage'
    'state: the first piece of a tensor alone is sampled|store/origin.c|s/k < pieces; k++/k < 1; k++/|test_origin'
    'state: a stream that is made anew keeps what it had|store/volume_files.c|s/d->fd\[f\] < 0 .. ftruncate(d->fd\[f\], 0) < 0/d->fd[f] < 0/|test_store'
    'state: infinite weights are taken|store/import.c|s/if (!isfinite(natural\[k\]))/if (false)/|test_store'
    'state: weights beyond fp16 are saved|store/import.c|s/mr_narrow(x->dtype, all, n, narrow) < n/mr_narrow(x->dtype, all, n, narrow) > n/|test_store'
    'state: heads are not padded|store/layout.c|s/mr_unpad(turned ? col : row, t->output_head/mr_unpad(turned ? col : row, 0/|test_store_streams'
    'state: tiles of the first patch|store/layout.c|s/row = p->row + tile/row = tile/|test_store'
    'state: shares of a tensor one behind the other|store/import.c|s/(line \* (size_t)whole\.shares + (size_t)k) \* whole\.run/((size_t)k * whole.lines + line) * whole.run/|test_gpt2_train'
    'state: the first share for all|store/import.c|s/size_t tensor = i + (size_t)k \* whole\.step;/size_t tensor = i;/|test_gpt2_train'
)

. tests/tools/mutants.sh
