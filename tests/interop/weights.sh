#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# make test-weights: an encoder with trained weights on the C model beside cpu:. Embeddings of the first 200 lines of
# TEXTS have a cosine of 0.999 and more, each, with two passes and calibrated by the other lines; a model of masked
# words knows a capital. Prints TAP. usage: weights.sh DIRECTORY TEXTS (from the root)
set -u
. tests/tools/tap.sh
model=$1 texts=$2
if [ ! -d "$model" ] || [ ! -f "$texts" ] || [ "$(grep -c . "$texts")" -lt 400 ]; then
    echo "test-weights: WEIGHTS= a directory of an encoder, TEXTS= a file of at least 400 lines" >&2
    exit 1
fi
grep . "$texts" >"$work/all"
head -200 "$work/all" >"$work/texts"
tail -n +201 "$work/all" >"$work/others"

# cosines FILE FILE: the least and the mean of the lines'.
cosines() {
    paste -d' ' "$1" "$2" | awk '{ s = a = b = 0; n = NF / 2; for (i = 1; i <= n; i++) { s += $i * $(i + n); a += $i * $i; b += $(i + n) * $(i + n) }
        c = s / sqrt(a * b); sum += c; if (NR == 1 || c < least) least = c } END { printf "%.5f %.6f\n", least, sum / NR }'
}
"$millrace" embed "$model" -f "$work/texts" --truncate >"$work/reference" || exit 1
for options in "" "--two-pass" "--two-pass --calibrate $work/others"; do
    # shellcheck disable=SC2086
    "$millrace" embed "$model" -f "$work/texts" --truncate -d model:sim $options >"$work/rows" || exit 1
    read -r least mean < <(cosines "$work/reference" "$work/rows")
    echo "# ${options%% $work/*}: least $least, mean $mean of $(wc -l <"$work/rows")"
done
ok each_text_is_as_with_fp32 awk -v c="$least" -v n="$(wc -l <"$work/rows")" 'BEGIN { exit !(c >= 0.999 && n == 200) }'
if "$millrace" info "$model" --json | grep -q '"masked_words": *true'; then
    for device in cpu: model:sim; do
        ok "a_capital_on_$device" bash -c "'$millrace' fill-mask '$model' 'The capital of France is [MASK].' -k 1 -d $device | grep -qi paris"
    done
fi
done_testing
