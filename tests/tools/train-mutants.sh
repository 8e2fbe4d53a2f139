#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Do the tests notice when training is wrong? Each mutant is host/train, host/store, host/model or
# tests/reference with one line changed; of the unit tests that `tests` has, one must fail. Prints TAP.
# usage, from the repository's root: tests/tools/train-mutants.sh [BUILD_DIR [WORD]]
set -u
build=${1:-build}/train-mutants
folders=(train store model reference)
others=(host/{common,checkpoint,cpu}/*.c host/cmodel/num.c host/text/utf8.c host/pack/layout.c)
declare -A tests=(
    [test_train]="gradients_agree_with_pytorch ten_steps_of_adamw_agree_with_pytorch
        gradients_agree_with_differences_in_double other_functions_agree_with_differences_in_double packing_does_not_change_gradients
        masked_rows_have_no_gradient steps_that_are_not_finite_change_no_weight only_matrices_decay
        refused_batches_change_nothing"
    [test_loss]="exponential_is_within_its_unit exponential_never_rises logarithm_is_that_of_double
        loss_and_gradient_are_those_of_long_double threads_and_order_do_not_matter
        losses_that_are_not_finite_are_refused extreme_rows"
    [test_adamw]="update_is_that_of_the_rule every_instruction_set_has_the_same_bits
        integers_are_gradients updates_are_those_of_pytorch factors_are_those_of_double
        rates_warm_up_and_follow_a_cosine"
    [test_stripes]="hashes_are_those_of_the_library"
    [test_rates]="rates_are_those_of_pytorch"
    [test_store_step]="every_instruction_set_has_the_same_integers steps_are_those_of_plain_loops
        threads_order_and_resuming_do_not_matter saturation_raises_the_unit_and_repeats_the_step
        rows_of_tables_are_summed_as_integers infinite_gradients_change_no_weight
        moments_of_another_optimizer_are_refused chosen_tensors_stay_or_do_not_decay"
    [test_store_crash]="killed_at_every_write_of_a_step_upwards
        killed_at_every_write_of_a_step_downwards killed_again_while_the_step_is_completed
        a_step_of_an_older_version_is_completed damaged_gradients_do_not_complete_a_step"
)

# "name|file below host/ or tests/|sed expression|test"
mutants=(
    # encoders
    'encoder: a text sees what is before it alone|reference/backward.c|s/bool all = mr_arch_of(b->config)->encoder;/bool all = false;/|test_train'
    'encoder: the residual has no gradient of its own|reference/backward.c|s/(b->live\[item->from\] ? dx\[k\] : 0)/0/|test_train'
    'encoder: a norm adds to the residual|reference/backward.c|s/^            dx\[k\] = 0;/            ;/|test_train'
    'encoder: all tokens are of type 0|reference/backward.c|s/p->batch->types ? p->batch->types\[r\] : 0/0/|test_train'
    'classifier: tanh has the slope of 1|train/classifier.c|s/(1 - y \* y)/1/|test_train'
    'classifier: tanh of x for 2 x|train/classifier.c|s/mr_loss_exp(2 \* fabs(x))/mr_loss_exp(fabs(x))/|test_train'
    'classifier: no sign|train/classifier.c|s/x < 0 ? -t : t/t/|test_train'
    'classifier: no gradient of biases|train/classifier.c|s/bias\[o\] += (float)sum;/;/|test_train'
    # the walk
    'items from the first to the last|reference/backward.c|s/for (int i = list->count - 1; i >= 0; i--)/for (int i = 0; i < list->count; i++)/|test_train'
    'a gradient that an item adds replaces the others|reference/backward.c|s/b->live\[item->from\] ? 1\.0F : 0\.0F/0.0F/|test_train'
    'a gradient is added to that of the layer above|reference/backward.c|s/b->live\[item->to\] = item->to == MR_RESIDUAL;/b->live[item->to] = true;/|test_train'
    'rows without a target keep what stood there|reference/backward.c|s/memset(d + r \* e, 0, e \* sizeof \*d);/;/|test_train'
    'rows with a target stay packed|reference/backward.c|s/else if (--targets != r)/else if (--targets > r)/|test_train'
    'the last layer twice, the first never|reference/backward.c|s/while (p\.layer-- > 0)/for (p.layer = b_layers; p.layer > 0; p.layer--)/; s/^    walk(backward, &p);/    int b_layers = backward->config->n_layer - 1;\n&/|test_train'
    # the batch, the reference around the walk, and the description that both follow
    'a batch without a target is taken|train/batch.c|s/if (wanted == 0)/if (false)/|test_train'
    'rows without a target count as one|train/batch.c|s/wanted += batch->targets\[r\] != MR_NO_TARGET;/wanted++;/|test_train'
    'the reference packs all sequences into one|reference/reference.c|s/mr_cpu_row){sequences\[begun\]/mr_cpu_row){sequences[0]/|test_train'
    'the reference learns its own tokens|reference/reference.c|s/to\[n++\] = batch->targets\[r\];/to[n++] = batch->tokens[r];/|test_train'
    'logits for gradients|reference/reference.c|s/gradient != NULL, loss, err)/false, loss, err)/|test_train'
    'keys are not rotated|model/gptj.c|s/\.to = MR_K, \.epilogue = MR_ROTARY/.to = MR_K/|test_train'
    'the feed-forward has no GELU|model/gptj.c|s/, \.epilogue = MR_FUNCTION//|test_train'
    'scores without the root of the head|model/model.c|s/return sqrt((double)c->head_dim) \*/return 1.0 */|test_train'
    # matrices
    'dropped bias gradient|reference/backward.c|s/if (item->bias \&\& /if (item->bias \&\& item->to != MR_HIDDEN \&\& /|test_train'
    'bias of the head dropped|reference/backward.c|s/if (item->bias \&\& /if (item->bias \&\& item->to != MR_RESULT \&\& /|test_train'
    'weights of the transposed matrix|reference/backward.c|s/mr_blas\.sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, rows, in, out, 1\.0F, dy, out,/mr_blas.sgemm(CblasRowMajor, CblasNoTrans, in == out ? CblasTrans : CblasNoTrans, rows, in, out, 1.0F, dy, out,/|test_train'
    'gradient of a matrix replaces that of the batch before|reference/backward.c|s/item->from), in, 1\.0F,/item->from), in, 0.0F,/|test_train'
    'rotary is not turned back|reference/backward.c|s/if (item->epilogue == MR_ROTARY)/if (0)/|test_train'
    'rotary of keys is not turned back|reference/backward.c|s/if (item->epilogue == MR_ROTARY)/if (item->epilogue == MR_ROTARY \&\& item->to == MR_Q)/|test_train'
    'rotary is turned on|reference/backward.c|s/angles\[k\] = -angles\[k\]/angles[k] = angles[k]/|test_train'
    'rotary by the row, not the position|reference/backward.c|s/(size_t)t \* (size_t)c->rotary_dim/(size_t)((t + s) % c->n_positions) * (size_t)c->rotary_dim/|test_train'
    'GELU without its derivative|reference/backward.c|s/if (item->epilogue == MR_FUNCTION)/if (0)/|test_train'
    # the element-wise operations
    'GELU: the inner derivative is a constant|reference/gradient.c|s/(1\.0F + 3\.0F \* 0\.044715F \* square)/1.0F/|test_train'
    'GELU: without the derivative of tanh|reference/gradient.c|s/(1\.0F - t \* t)/1.0F/|test_train'
    'exact GELU: the gradient of the other|reference/gradient.c|s/function == MR_FUNCTION_GELU ? gelu : //|test_train'
    'relu: the gradient of GELU|reference/gradient.c|s/function == MR_FUNCTION_RELU ? relu : //|test_train'
    'exact GELU: without the density|reference/gradient.c|s/x\[i\] \* density/0 * density/|test_train'
    'LayerNorm: the mean does not move|reference/gradient.c|s/dn - all \/ (double)n -/dn -/|test_train'
    'LayerNorm: the length does not move|reference/gradient.c|s/ - normal \* (along \/ (double)n)//|test_train'
    'LayerNorm: a sign|reference/gradient.c|s/ - normal \* (along/ + normal * (along/|test_train'
    'LayerNorm: without gain|reference/gradient.c|s/(double)dy\[i\] \* (double)gain\[i\]/(double)dy[i]/|test_train'
    'LayerNorm: epsilon ignored|reference/gradient.c|s/(double)n + (double)epsilon/(double)n + 1e-5/|test_train'
    'LayerNorm: gain of what was read|reference/gradient.c|s/dgain\[i\] += (double)dy\[i\] \* normal/dgain[i] += (double)dy[i] * (double)x[i]/|test_train'
    'LayerNorm: replaces the gradient of the residual|reference/gradient.c|s/dx\[i\] += (float)(scale/dx[i] = (float)(scale/|test_train'
    # attention
    'attention: without the mean of the row|reference/gradient.c|s/(dp\[i\] - (float)mean)/dp[i]/|test_train'
    'attention: a sign|reference/gradient.c|s/(dp\[i\] - (float)mean)/((float)mean - dp[i])/|test_train'
    'attention: without 1/sqrt(d)|reference/gradient.c|s/(dp\[i\] - (float)mean) \* scale/(dp[i] - (float)mean)/|test_train'
    'attention: hidden keys get a gradient|reference/backward.c|s/memset(dp + visible, 0, hidden \* sizeof \*dp);/;/|test_train'
    'attention: hidden values get a gradient|reference/backward.c|s/memset(p + visible, 0, hidden \* sizeof \*p);/;/|test_train'
    'attention: one key fewer|reference/backward.c|s/all ? to : from + r + 1/all ? to : from + r + (from + r == 0)/|test_train'
    'attention: values by the gradient of scores|reference/backward.c|s/CblasTrans, CblasNoTrans, to, head_dim, n, 1\.0F, b->p, to,/CblasTrans, CblasNoTrans, to, head_dim, n, 1.0F, b->dp, to,/|test_train'
    'attention: the last queries only|reference/backward.c|s/h->dv, e);/h->dv, e); if (from > 0) memset(h->dk, 0, 4 * sizeof(float));/|test_train'
    'attention: queries of other sequences add up|reference/backward.c|s/^        row += (size_t)length;/        row += (size_t)length - (s == 0);/|test_train'
    # tables and parameters
    'tables: positions by the row of the batch|reference/backward.c|s/                                                   : t;/: (int)r % b->config->n_positions;/|test_train'
    'tables: the last occurrence of a token|reference/backward.c|s/table\[(size_t)row \* e + k\] += b->d/table[(size_t)row * e + k] = b->d/|test_train'
    'tied matrix: the first table of all|store/params.c|s/while (strcmp(arch->tables\.items\[i\]\.name, tied->name) != 0)/while (i + 1 < arch->tables.count)/|test_train'
    'Conv1D is exported as it is kept|store/params.c|s/out\[r \* outputs + c\] = in\[c \* inputs + r\]/out[r * outputs + c] = in[r * outputs + c]/|test_train'
    'parameters of a layer in the next one|store/params.c|s/i + (size_t)layer \* (size_t)mr_block_tensors(arch)/i + (size_t)((layer + 1) % config->n_layer) * (size_t)mr_block_tensors(arch)/|test_train'
    # the step
    'stash: every part of a batch over the first|reference/stash.c|s/s->filled += n;/s->filled += 0;/|test_train'
    'gradients of the mean of a micro-batch|reference/loop.c|s/factor \/ (double)loss\.rows/factor/|test_train'
    'gradients are not cleared|reference/loop.c|s/^    memset(g->data, 0, .*/    ;/|test_train'
    'not clipped|reference/loop.c|s/clip > 0 \&\& norm > clip ? clip \/ norm : 1\.0/1.0/|test_train'
    'infinite gradients update weights|reference/loop.c|s/if (!isfinite(own))/if (0)/|test_train'
    'everything decays|store/update.c|s/return o->decay_all/return true/|test_train'
    'tied tables decay|store/update.c|s/ \&\& !mr_item_tied(arch, item))/)/|test_train'
    # AdamW and the rates
    'AdamW: no correction of the mean|store/update.c|s/rate \/ (1 - mr_whole_power(o->beta1, step))/rate/|test_adamw'
    'AdamW: no correction of the square|store/update.c|s/1 \/ sqrt(1 - mr_whole_power(o->beta2, step))/1/|test_adamw'
    'AdamW: decay joins the gradient|store/update.c|s/mr_fmul(g\[i\], a->scale)/mr_fadd(mr_fmul(g[i], a->scale), mr_fmul(w[i], a->decay))/|test_adamw'
    'AdamW: decay of the new weight|store/update.c|s/mr_fadd(mr_fmul(u, a->rate), mr_fmul(w\[i\], a->decay))/mr_fadd(mr_fmul(u, a->rate), mr_fmul(mr_fsub(w[i], mr_fmul(u, a->rate)), a->decay))/|test_adamw'
    'AdamW: a fused multiply-add|store/update.c|s/m\[i\] = mr_fadd(mr_fmul(m\[i\], a->keep1), mr_fmul(d, a->add1))/m[i] = mr_in(fmaf(m[i], a->keep1, mr_fmul(d, a->add1)))/|test_adamw'
    'AdamW: epsilon below the root|store/update.c|s/add(mul(sqrtf(square), k->root), k->epsilon)/mul(sqrtf(add(square, k->epsilon)), k->root)/|test_adamw'
    'AdamW: vectors do not flush products|store/update.c|s/return flush(x \* y, .*/return x * y;/|test_adamw'
    'AdamW: vectors flush where fp32 has a subnormal|store/update.c|s/return flush(x \* y, .*/return normal(x * y);/|test_adamw'
    'AdamW: vectors flush quotients where fp32 has a subnormal|store/update.c|s/return flush(x \/ y, .*/return normal(x \/ y);/|test_adamw'
    'Adam: decay behind the moments|store/update.c|s/d = mr_fadd(d, mr_fmul(w\[i\], a->join));/;/|test_adamw'
    'Adam: decay with the update, too|store/update.c|s/decays \&\& !joins ? /decays ? /; s/if (a->kind == MR_ADAMW)$/if (1)/|test_adamw'
    'SGD: no dampening|store/update.c|s/\.add1 = whole ? 1 : (float)(1 - o->beta2)/.add1 = 1/|test_adamw'
    'SGD: the first step like the others|store/update.c|s/bool whole = step == 1 ../bool whole =/|test_adamw'
    'SGD: dampening without momentum|store/update.c|s/step == 1 .. o->beta1 == 0;/step == 1;/|test_adamw'
    'SGD: Nesterov without the gradient|store/update.c|s/u = mr_fadd(d, mr_fmul(m\[i\], a->keep1));/u = mr_fmul(m[i], a->keep1);/|test_adamw'
    'SGD: vectors change the second moment|store/update.c|s/canonical(mean), e\.v};/canonical(mean), mean};/|test_adamw'
    'store: frozen tensors are in the norm|store/step.c|s/if (mr_store_own_choice(x->s, p->tensor) \& MR_CHOICE_FROZEN)/if (0)/|test_store_step'
    'store: frozen tensors move|store/step.c|s/choice \& MR_CHOICE_FROZEN ? keep : u->move/u->move/|test_store_step'
    'store: what is not to decay decays|store/step.c|s/!(choice \& MR_CHOICE_NO_DECAY)/true/|test_store_step'
    'store: choices are forgotten when a step is completed|store/header.c|s/return (int)(((int64_t)unit->next + CHOICE \/ 2) >> 12);/return 0;/|test_store_step'
    'store: moments of any optimizer are taken|store/step.c|s/was != mr_update_family(is)/0/|test_store_step'
    'store: a state forgets its optimizer|store/step.c|s/h->rule = mr_update_family(o\.kind) \* MR_RULE_KIND;/h->rule = 0;/|test_store_step'
    'rates: warm-up from zero|store/rates.c|s/\.first = 1/.first = 0/|test_adamw'
    'rates: the cosine begins at step 1|store/rates.c|s/MR_RATE_CONSTANT, s->warmup)/MR_RATE_CONSTANT, 0)/|test_adamw'
    'rates: a curve goes on counting|store/rates.c|s/k - r->begin\[i\]/k/|test_rates'
    'rates: a milestone is passed one step late|store/rates.c|s/\[p->milestone + n\] <= k/[p->milestone + n] < k/|test_rates'
    'rates: a stair that is a slope|store/rates.c|s/p->staircase ? floor(y) : y/y/|test_rates'
    'rates: annealing does not turn back|store/rates.c|s/phase < to ? phase : 2L \* to - phase/phase < to ? phase : to/|test_rates'
    'rates: a cycle of two phases|store/rates.c|s/p->three_phase ? 2 \* top : top/top/|test_rates'
    'rates: powers are whole|store/series.c|s/rest = y - n/rest = 0/|test_rates'
    # the store: a step
    'store: squares lose their high halves|store/tile_kernels.c|s/hi += square >> 32;/;/|test_store_step'
    'store: the last bytes of a patch are hashed as the others|store/stripes.c|s/LAST = SECRET - MR_STRIPE - 7/LAST = 0/|test_stripes'
    'store: a micro-batch replaces the one before|store/gradients.c|s/a\.more = s->ended > 0/a.more = s->ended > 5/|test_store_step'
    'store: small gradients are subnormal|store/update.c|s/\.least = unit > 0 ? 0\.0F : 0x1p-62F/.least = 0.0F/|test_adamw'
    'store: the unit of the next step without headroom|store/gradients.c|s/mr_store_limit(s, i)) + 3)/mr_store_limit(s, i)) + 2)/|test_store_step'
    'store: saturated sums update weights|store/gradients.c|s/if (t->flags \& LARGE)$/if (0)/; s/if (s->tally\[i\].flags \& LARGE) {/if (0) {/|test_store_step'
    'store: sums of the host are not looked at|store/gradients.c|s/if (peak > (uint32_t)mr_store_limit(s, i))/if (0)/|test_store_step'
    'store: flags of the device are not looked at|store/gradients.c|s/r\.peak, r\.flags);/r.peak, 0);/|test_store_step'
    'store: rows are rounded after they are summed|store/gradients.c|s/return (int64_t)nearbyint(y);/return (int64_t)y;/|test_store_step'
    'store: norm by the unit, not its square|store/step.c|s/2 \* unit);/unit);/|test_store_step'
    'store: the norm is that of the sum|store/step.c|s/done->norm = norm \/ (double)u->targets;/done->norm = norm;/|test_store_step'
    # and that it is one
    'store: gradients are not synced|store/step.c|s/int rc = s->volume->sync(s->volume, MR_V_GRADIENTS, err);/int rc = 0;/|test_store_crash'
    'store: patches are not synced|store/step.c|s/rc = s->volume->sync(s->volume, MR_V_STATE, err);/;/|test_store_crash'
    'store: the header is not synced|store/header.c|s/return rc < 0 ? rc : v->sync(v, MR_V_HEADER, err);/return rc;/|test_store_crash'
    'store: one slot of the header|store/header.c|s/h->sequence % 2 \* h->slot_bytes/0 * h->slot_bytes/|test_store_crash'
    'store: a batch of patches larger than the gap|store/step.c|s/if (bytes > s->header->gap)/if (bytes > 3 * s->header->gap)/|test_store_crash'
    'store: patches upwards from the first|store/step.c|s/bool up = s->header->side == 0;/bool up = false;/; s/first = s->header->side == 0 ? s->layout.patches : 0/first = 0/|test_store_crash'
    'store: the older slot counts|store/header.c|s/a->sequence > b->sequence/a->sequence < b->sequence/|test_store_crash'
    'store: the seal is not looked at|store/patch.c|s/return MR_PATCH_DAMAGED;/;/|test_store_crash'
    'store: patches of another step are taken|store/patch.c|s/seal\.step != want\.step/false/; s/seal\.lineage == want\.lineage/true/|test_store_crash'
    'store: a step of an older program gets a lineage|store/lineage.c|s/bool knows = .*;/bool knows = true;/|test_store_crash'
    'store: units stay as they were|store/step.c|s/unit\[i\]\.now = unit\[i\]\.next = .*;/;/|test_store_step'
    'store: hash of the gradients is not looked at|store/step.c|s/rc == 0 \&\& hash_of(s, sum) != s->header->gradients/0/|test_store_crash'
    # the loss
    'loss: one term of the exponential less|train/loss.c|s/y = c\[12\];/y = 0;/|test_loss'
    'loss: the low part of ln 2 dropped|train/loss.c|s/(d - n \* LN2_HI) - n \* LN2_LO/d - n * LN2_HI/|test_loss'
    'loss: logarithm without halving|train/loss.c|s/if (f > 0x1\.6a09e667f3bcdp+0)/if (0)/|test_loss'
    'loss: exponentials are summed in fp32|train/loss.c|s/sum += u;/sum = (uint64_t)(float)(sum + u);/|test_loss'
    'loss: the gradient of the target is that of the others|train/loss.c|s/if (gradient) \/\/ p - 1/if (0) \/\/ p - 1/|test_loss'
    'loss: NaN passes|train/loss.c|s/finite &= mr_expo(z\[i\]) != 255;/;/|test_loss'
    'loss: any row that is not finite is named|train/loss.c|s/loss < 0 \&\& r < bad \&\&/loss < 0 \&\& r != bad \&\&/|test_loss'
)

. tests/tools/mutants.sh
