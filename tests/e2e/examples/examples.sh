#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Each script of examples/ on the demo model. What it answers is nonsense; that it answers, from the
# whole prompt, is what is tested. Prints TAP; runs from the repository's root.
set -u
. tests/tools/tap.sh
export MILLRACE=$millrace MODEL=models/demo DEVICE=model:
answers() { # name lines command...: ends well, writes so many lines, none of them empty
    local name=$1 lines=$2
    shift 2
    timeout 600 "$@" >"$work/$name" 2>"$work/err" </dev/null
    ok "example_$name" test $? = 0 -a "$(grep -c . "$work/$name")" = "$lines" -a "$(wc -l <"$work/$name")" = "$lines" -a ! -s "$work/err"
}
timeout 600 examples/completion.sh >"$work/completion"
ok example_completion test $? = 0 -a "$(wc -c <"$work/completion")" -gt 60
ok completion_begins_with_its_text grep -q '^In the beginning' "$work/completion"
answers sentiment 1 examples/sentiment.sh
answers questions 2 examples/question-answering.sh
ok questions_are_shown test "$(sed 's/?.*//' "$work/questions" | tr '\n' ';')" = "Where does the Danube rise;How many countries does it flow through;"
answers one_question 1 examples/question-answering.sh "Who is he?"
answers relation 1 examples/relation-extraction.sh "-And Isaac begat Jacob."
answers summary 1 examples/summary.sh
answers summary_of_a_file 1 examples/summary.sh <(head -c 600 models/demo/heldout.txt)
printf 'Who art thou?\n/quit\n' | timeout 600 examples/chat.sh >"$work/chat"
ok example_chat test $? = 0 -a -s "$work/chat"
# As a person would ask the model, in one piece.
"$millrace" generate -m $MODEL -d $DEVICE --no-echo -n 40 --stop '\n' -p "$(head -c 600 models/demo/heldout.txt)

TL;DR:" | sed 's/^ *//' >"$work/want"
ok prompts_arrive_whole cmp "$work/summary_of_a_file" "$work/want"
for script in examples/*.sh; do
    [ "$script" != examples/settings.sh ] || continue
    name=$(basename "$script" .sh)
    MODEL=no-such-model timeout 600 "$script" >"$work/out" 2>"$work/err" </dev/null
    ok "${name}_without_a_model_says_so" test $? = 3 -a "$(cut -c1-38 "$work/err")" = "millrace: no-such-model: No such file "
done
ok every_example_is_here test "$(ls examples/*.sh | wc -l)" = 7
# Without arguments: how to call it, before torch is looked for.
mkdir "$work/torch" && echo 'raise SystemExit("torch was looked for")' >"$work/torch/torch.py"
usage() { PYTHONPATH=$work/torch python3 examples/train.py 2>&1 | grep -q '^usage: train.py MODEL TEXT STATE '; }
if command -v python3 >/dev/null; then ok train_py_without_arguments_says_how_it_is_called usage; fi
done_testing
