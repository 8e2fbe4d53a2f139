#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Questions about a text. The text is read once: its KV store is saved, and each question goes on
# behind it. usage: examples/question-answering.sh [QUESTION]...
set -eu
. "$(dirname "$0")/settings.sh"
store=$(mktemp)
trap 'rm -f "$store"' EXIT
"$MILLRACE" generate -m "$MODEL" -d "$DEVICE" -q --no-echo -n 1 --save-kv "$store" -f - >/dev/null <<'TEXT'
The Danube rises in the Black Forest and flows through ten countries, more than any other river, to
the Black Sea. Vienna, Bratislava, Budapest and Belgrade lie on its banks.

Q: Which cities lie on the Danube?
A: Vienna, Bratislava, Budapest and Belgrade.
TEXT
[ $# -gt 0 ] || set -- "Where does the Danube rise?" "How many countries does it flow through?"
for question; do
    printf '%s ' "$question"
    answer 24 "
Q: $question
A:" --load-kv "$store"
done
