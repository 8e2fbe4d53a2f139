#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Do the fixtures notice when the fp32 reference is wrong? Each mutant is host/cpu with one line
# changed; the test that compares it with transformers must fail. Prints TAP.
# usage, from the repository's root: tests/tools/cpu-mutants.sh [BUILD_DIR [WORD]]
set -u
build=${1:-build}/cpu-mutants
folders=(cpu)
others=(host/{common,model,checkpoint}/*.c host/text/utf8.c)
declare -A tests=([test_cpu]=logits_agree_with_transformers [test_bert]=agrees_with_transformers)

# "name|file below host/|sed expression|test"
mutants=(
    'half-split rotary|cpu/cpu_math.c|s/\*even = &head\[2 \* i\], \*odd = &head\[2 \* i + 1\]/*even = \&head[i], *odd = \&head[i + rotary_dim \/ 2]/|test_cpu'
    'swapped sine and cosine|cpu/cpu_math.c|s/sine = sincos\[2 \* i\], cosine = sincos\[2 \* i + 1\]/cosine = sincos[2 * i], sine = sincos[2 * i + 1]/|test_cpu'
    'rotation in the other direction|cpu/cpu_math.c|s/(float)sin((double)angle)/(float)sin(-(double)angle)/|test_cpu'
    'rotary over the whole head|cpu/cpu_open.c|s/mr_cpu_rotary_frequencies(c->frequencies, c->config->rotary_dim)/mr_cpu_rotary_frequencies(c->frequencies, c->config->rotary_dim); for (int i = 0; i < c->config->rotary_dim \/ 2; i++) c->frequencies[i] = powf(10000.0F, -2.0F * (float)i \/ (float)c->config->head_dim)/|test_cpu'
    'scores without 1/sqrt(d)|cpu/cpu.c|s/1\.0F \/ (float)mr_attention_root(cpu->config, layer)/1.0F \/ (float)(layer * 0 + 1)/|test_cpu'
    'scale by layer ignored|cpu/cpu.c|s/mr_attention_root(cpu->config, layer)/mr_attention_root(cpu->config, layer * 0)/|test_cpu'
    'position ignored|cpu/cpu.c|s/by == MR_BY_TOKEN ? token : position;/by == MR_BY_TOKEN ? token : position * 0;/|test_cpu'
    'mask off by one|cpu/cpu.c|s/int visible = position + 1;/int visible = position + (position == 0);/|test_cpu'
    'dropped fc_in bias|cpu/cpu.c|s/if (w->bias)/if (w->bias \&\& item->to != MR_HIDDEN)/|test_cpu'
    'dropped fc_out bias|cpu/cpu.c|s/if (w->bias)/if (w->bias \&\& item->to != MR_RESIDUAL)/|test_cpu'
    'dropped lm_head bias|cpu/cpu.c|s/if (w->bias)/if (w->bias \&\& item->to != MR_RESULT)/|test_cpu'
    'GELU by erf|cpu/cpu_math.c|s/(1\.0F + tanhf(inner))/(1.0F + erff(x[i] * 0.70710678F))/|test_cpu'
    'epsilon ignored|cpu/cpu_math.c|s/ + (double)epsilon)/ + 1e-5)/|test_cpu'
    'feed-forward after attention|cpu/cpu.c|s/^    if (!multiply(cpu, p, out, s->place\[item->from\],/    for (size_t i = 0; item->to == MR_HIDDEN \&\& i < n * (size_t)n_in; i++) s->place[MR_X][i] += s->place[MR_ATTENTION][i];\n&/|test_cpu'
    'no residual|cpu/cpu.c|s/scratch\.delta\[i\] + x\[i\]/scratch.delta[i]/|test_cpu'
    'one summand of two|cpu/cpu.c|s/s->delta\[i\] += out\[i\]/s->delta[i] = out[i]/|test_cpu'
    'BERT: type ignored|cpu/cpu.c|s/by == MR_BY_TYPE ? type/by == MR_BY_TYPE ? 0/|test_bert'
    'BERT: norm that does not write the row|cpu/cpu.c|s/if (item->back)/if (item->back \&\& p->layer > 99)/|test_bert'
    'BERT: GELU by tanh where relu is|cpu/cpu_math.c|s/function == MR_FUNCTION_RELU ? relu : //|test_bert'
    'BERT: pooler without tanh|cpu/heads.c|s/out\[i\] = tanhf(out\[i\])/out[i] += 0/|test_bert'
    'BERT: no GELU above the masked word|cpu/heads.c|s/mr_cpu_function(mr_function_of(c), x, size);/(void)size;/|test_bert'
    'keys and values swapped|cpu/cpu.c|s/cached, s->place\[MR_K\] + row/cached, s->place[MR_V] + row/|test_cpu'
)

. tests/tools/mutants.sh
