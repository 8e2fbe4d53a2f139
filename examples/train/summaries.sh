#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Summaries of documents, behind "TL;DR:". A document that is longer than a window becomes several
# ones, each of which begins with the last tokens of the one before, so that the summary has as
# much of the document in front of it as fits. usage: examples/train/summaries.sh [PAIRS.jsonl]
set -eu
. "$(dirname "$0")/settings.sh"
windows "${1:-$(dirname "$0")/summaries.jsonl}" --overlap $((SEQUENCE / 2))
before_and_after "And Boaz went up to the gate, and sat him down there. And he took ten men of the
elders of the city, and said, Sit ye down here. And they sat down.

TL;DR:" 60
