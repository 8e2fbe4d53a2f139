#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Do the fixtures notice when the fp32 reference is wrong? Each mutant is host/cpu with one line
# changed; the test that compares it with transformers must fail. Prints TAP.
# usage, from the repository's root: tests/tools/cpu-mutants.sh [BUILD_DIR]
set -u
build=${1:-build}/cpu-mutants
test_name=logits_agree_with_transformers
cc=${CC:-gcc}
flags=(-std=c17 -D_GNU_SOURCE -O1 -w -Ihost -Ihost/include -Itests)
libs=(-lcmocka -ljansson -lpcre2-8 -lzip -lm)

# "name|file|sed expression"
mutants=(
    'half-split rotary|cpu_math.c|s/\*even = &head\[2 \* i\], \*odd = &head\[2 \* i + 1\]/*even = \&head[i], *odd = \&head[i + rotary_dim \/ 2]/'
    'swapped sine and cosine|cpu_math.c|s/sine = sincos\[2 \* i\], cosine = sincos\[2 \* i + 1\]/cosine = sincos[2 * i], sine = sincos[2 * i + 1]/'
    'rotation in the other direction|cpu_math.c|s/(float)sin((double)angle)/(float)sin(-(double)angle)/'
    'rotary over the whole head|cpu.c|s/mr_cpu_rotary_frequencies(c->frequencies, c->config->rotary_dim)/mr_cpu_rotary_frequencies(c->frequencies, c->config->rotary_dim); for (int i = 0; i < c->config->rotary_dim \/ 2; i++) c->frequencies[i] = powf(10000.0F, -2.0F * (float)i \/ (float)c->config->head_dim)/'
    'scores without 1/sqrt(d)|cpu.c|s/1\.0F \/ sqrtf((float)head_dim)/1.0F/'
    'mask off by one|cpu.c|s/int visible = position + 1;/int visible = position + (position == 0);/'
    'dropped fc_in bias|cpu.c|s/if (w->bias)/if (w->bias \&\& item->to != MR_HIDDEN)/'
    'dropped fc_out bias|cpu.c|s/if (w->bias)/if (w->bias \&\& item->to != MR_RESIDUAL)/'
    'dropped lm_head bias|cpu.c|s/if (w->bias)/if (w->bias \&\& item->to != MR_RESULT)/'
    'GELU by erf|cpu_math.c|s/(1\.0F + tanhf(inner))/(1.0F + erff(x[i] * 0.70710678F))/'
    'epsilon ignored|cpu_math.c|s/ + (double)epsilon)/ + 1e-5)/'
    'feed-forward after attention|cpu.c|s/^    multiply(out, s->place\[item->from\],/    for (size_t i = 0; item->to == MR_HIDDEN \&\& i < n * (size_t)n_in; i++) s->place[MR_X][i] += s->place[MR_ATTENTION][i];\n&/'
    'no residual|cpu.c|s/scratch\.delta\[i\] + x\[i\]/scratch.delta[i]/'
    'one summand of two|cpu.c|s/s->delta\[i\] += out\[i\]/s->delta[i] = out[i]/'
    'keys and values swapped|cpu.c|s/cached, s->place\[MR_K\] + row/cached, s->place[MR_V] + row/'
)

bail() {
    echo "Bail out! $1"
    exit 1
}

mkdir -p "$build/common" || bail "cannot make $build"
common=()
for source in host/common/*.c host/model/*.c host/checkpoint/*.c host/text/utf8.c tests/unit/test_cpu.c; do
    object=$build/common/$(basename "$source").o
    "$cc" "${flags[@]}" -c -o "$object" "$source" || bail "$source does not compile"
    common+=("$object")
done

# Builds host/cpu as it lies in $1 (its own copies come first among the sources) into $1/test.
link() {
    "$cc" "${flags[@]}" -o "$1/test" "$1"/*.c "${common[@]}" "${libs[@]}"
}

# The result of the fixture test of the program in $1: "ok", "not ok" or nothing.
run() {
    CMOCKA_MESSAGE_OUTPUT=TAP timeout 600 "$1/test" 2>/dev/null >"$1/log"
    sed -n -E "s/^(ok|not ok) [0-9]+ - $test_name\$/\1/p" "$1/log"
}

# The unchanged program must pass, or a mutant's failure says nothing.
mkdir -p "$build/none" && cp host/cpu/*.c "$build/none/" || bail "cannot copy host/cpu"
link "$build/none" || bail "host/cpu does not compile"
[ "$(run "$build/none")" = ok ] || bail "the unchanged host/cpu fails $test_name"

number=0 failed=0
for mutant in "${mutants[@]}"; do
    number=$((number + 1))
    IFS='|' read -r name file expression <<<"$mutant"
    dir=$build/$number
    mkdir -p "$dir" && cp host/cpu/*.c "$dir/" || bail "cannot copy host/cpu"
    sed -i "$expression" "$dir/$file"
    verdict="not ok" why=
    if cmp -s "$dir/$file" "host/cpu/$file"; then
        why="the expression changes nothing in $file; bring it up to date"
    elif ! link "$dir"; then
        why="the mutant does not compile"
    elif [ "$(run "$dir")" = "not ok" ]; then
        verdict=ok
    else
        why="the fixtures do not notice, or the program died"
    fi
    echo "$verdict $number - mutant $name is caught"
    [ -z "$why" ] || { echo "# $why"; failed=1; }
done
echo "1..$number"
exit $failed
