#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Relation extraction: from a sentence to (subject; relation; object).
# usage: examples/train/relations.sh [PAIRS.jsonl [SENTENCE]]
set -eu
. "$(dirname "$0")/settings.sh"
windows "${1:-$(dirname "$0")/relations.jsonl}"
before_and_after "Sentence: ${2:-And Salmon begat Boaz, and dwelt in Bethlehem.}
Relation:" 80
