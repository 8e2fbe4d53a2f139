#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Who is what to whom in a sentence, as (subject; relation; object).
# usage: examples/relation-extraction.sh [SENTENCE]
set -eu
. "$(dirname "$0")/settings.sh"
prompt="Sentence: Marie Curie was born in Warsaw.
Relation: (Marie Curie; born in; Warsaw)

Sentence: The Nile flows into the Mediterranean Sea.
Relation: (the Nile; flows into; the Mediterranean Sea)

Sentence: ${1:-Ada Lovelace worked with Charles Babbage.}
Relation:"
answer 30 "$prompt"
