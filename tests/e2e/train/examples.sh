#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Each script of examples/train on the demo model. All bits are the C model's, so one that is run to
# its end must have learnt the answer. Prints TAP; runs from the repository's root. About 15 s.
set -u
. tests/tools/tap.sh
export MILLRACE=$millrace TMPDIR=$work/tmp
mkdir "$TMPDIR"
run() { # name command...: ends well and says nothing on standard error
    local name=$1
    shift
    timeout 900 "$@" >"$work/$name" 2>"$work/err" </dev/null
    ok "train_example_$name" test $? = 0 -a ! -s "$work/err"
}
run instructions examples/train/instructions.sh
ok an_answer_is_learnt test "$(tail -n 1 "$work/instructions")" = "after:  Elimelech."
ok it_was_not_known_before test "$(grep -c '^before: .' "$work/instructions") $(grep -c Elimelech "$work/instructions")" = "1 1"

export STEPS=2
run relations examples/train/relations.sh
run sentence examples/train/relations.sh examples/train/relations.jsonl "And Noah begat Shem."
ok a_sentence_of_ones_own_is_asked grep -q '^Sentence: And Noah begat Shem.$' "$work/sentence"
head -c 6000 models/demo/heldout.txt >"$work/text"
run autocorrection examples/train/autocorrection.sh "$work/text"
ok lines_of_the_text_are_pairs grep -q '^windows.h5: [1-9][0-9] documents' "$work/autocorrection"
run summaries examples/train/summaries.sh
for name in relations autocorrection summaries; do
    ok "${name}_before_and_after" test "$(grep -cE '^(before: |after:  )' "$work/$name")" = 2
done
run domain examples/train/domain.sh "$work/text"
ok domain_shows_what_is_held_out test "$(grep -c '^step .*held out' "$work/domain")" = 2

# A state of one's own is gone on with.
STATE=$work/two run first examples/train/relations.sh
# Its rate is another one where it was to end: a cosine of more steps.
STATE=$work/two STEPS=4 timeout 900 examples/train/relations.sh >"$work/second" 2>"$work/err" </dev/null
ok train_example_second test $? = 0 -a "$(sed 's/^millrace: .*: rate was [0-9.e-]*, is [0-9.e-]*$/rate/' "$work/err")" = rate
ok a_state_goes_on test "$(grep -c '^step' "$work/second")" = 2 -a -d "$work/two"

for script in examples/train/*.sh; do
    name=$(basename "$script" .sh)
    [ "$name" != settings ] || continue
    MODEL=no-such-model timeout 600 "$script" >"$work/out" 2>"$work/err" </dev/null
    ok "train_${name}_without_a_model_says_so" test $? = 3 -a "$(cut -c1-38 "$work/err")" = "millrace: no-such-model: No such file "
done
ok nothing_is_left_behind test -z "$(ls -A "$TMPDIR")"
ok every_train_example_is_here test "$(ls examples/train/*.sh | wc -l)" = 6
done_testing
