#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Do the tests notice when a configuration is read wrongly? Each mutant is host/config with one line changed; a test
# of the unit test training must fail. Prints TAP.
# usage, from the repository's root: tests/tools/config-mutants.sh [BUILD_DIR [WORD]]
set -u
build=${1:-build}/config-mutants
folders=(config)
others=()
more='-lyaml'
declare -A tests=([test_training]="what_is_not_said_is_as_in_the_model_zoo steps_are_divided_into_equal_parts
    aliases_are_the_same_key both_generations_say_the_same modes_look_at_their_data
    keys_of_the_command_line_replace_those_of_the_file keys_are_known_in_both_generations
    ranges_end_where_they_say what_does_not_belong_together_is_refused models_are_those_of_their_checkpoints")

# "name|file below host/|sed expression|test"
mutants=(
    'defaults: the epsilon of PyTorch|config/read.c|s/\.epsilon = 1e-6/.epsilon = 1e-8/|test_training'
    'defaults: betas of the short form|config/read.c|s/\.beta2 = 0\.999/.beta2 = 0.95/|test_training'
    'parts of a step: the smallest that divides it|config/read.c|s/in->micro = in->batch % n == 0 ? n : 0;/in->micro = in->batch % n == 0 ? 1 : 0;/|test_training'
    'parts of a step: any number divides it|config/read.c|s/in->micro > 0 \&\& in->batch % in->micro != 0/0/|test_training'
    'modes: eval_all looks where eval does|config/read.c|s/\[MR_EVAL_ALL\] = {MR_HELD_ALL, /[MR_EVAL_ALL] = {MR_HELD_VALIDATE, /|test_training'
    'modes: the least wanted data|config/read.c|s/for (int i = MR_HELD - 1; i >= 0 \&\& t->mode/for (int i = 0; i < MR_HELD \&\& t->mode/; s/t->mode != MR_TRAIN_AND_EVAL; i--)/t->mode != MR_TRAIN_AND_EVAL; i++)/|test_training'
    'ends of a run: two of them|config/read.c|s/if (said > 1 \&\&/if (said > 9 \&\&/|test_training'
    'ends of a run: steps of an epoch without epochs|config/read.c|s/if (t->epoch_steps > 0 \&\& t->epochs == 0/if (0/|test_training'
    'optimizers: keys of another one|config/read.c|s/if (mr_key_given(r, \*name, 0))/if (0)/|test_training'
    'optimizers: always AdamW|config/special.c|s/r->t->optimizer = kinds\[i\];/;/|test_training'
    'optimizers: the second beta is the first|config/special.c|s/v->first->next->value, \&r->t->beta2/v->first->value, \&r->t->beta2/|test_training'
    'generations: both at once|config/read.c|s/if (mr_yaml_member(root, old\[i\]))/if (0)/|test_training'
    'models: GPT-2 has the flags of GPT-J|config/read.c|s/bool has = is_gptj ? gptj\[i\] : gpt2\[i\];/bool has = gptj[i];/|test_training'
    'models: positions of any kind|config/read.c|s/if (r->rotating \&\& is_gptj != /if (0 \&\& is_gptj != /|test_training'
    'models: fewer positions are more|config/read.c|s/if (m->size\[i\] > has)/if (m->size[i] < has)/|test_training'
    'models: rotary dimensions beyond the head|config/read.c|s/ .. rotary > head))/))/|test_training'
    'numbers: what is out of range|config/key.c|s/\*out <= k->high/*out <= 2 * k->high/|test_training'
    'numbers: the lower end of an open range|config/key.c|s/(k->above \&\& \*out <= k->low)/0/|test_training'
    'numbers: whole ones need not be|config/key.c|s/(whole \&\& \*out != floor(\*out))/0/|test_training'
    'flags: yes is no|config/key.c|s/\*out = i % 2;/*out = i == 1;/|test_training'
    'aliases: there are none|config/walk.c|s/mr_place_of(k->aliases, path + n, .*) >= 0/0/|test_training'
    'the command line: a file goes before it|config/walk.c|s/if (mr_yaml_is_null(v) .. overridden(r, p, k))/if (mr_yaml_is_null(v))/|test_training'
    'the command line: keys of all inputs at once|config/walk.c|s/r->over\[i\]\.key == k \&\& r->over\[i\]\.place->base == p->base/r->over[i].key == k/|test_training'
    'paths: the first of a list|config/special.c|s/in->others\[in->more++\] = own;/in->data = own;/|test_training'
    'initialisers: without their ends|config/special.c|s/return mr_key_number(r, \&real, i->value, \&start->high);/return 0;/|test_training'
    'initialisers: any ends|config/special.c|s/if (rc == 0 \&\& truncated \&\& !(s\.low/if (0 \&\& !(s.low/|test_training'
)

. tests/tools/mutants.sh
