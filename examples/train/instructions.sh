#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Instructions and answers. The instructions are read, the answers are learnt.
# usage: examples/train/instructions.sh [PAIRS.jsonl [QUESTION]]
set -eu
. "$(dirname "$0")/settings.sh"
windows "${1:-$(dirname "$0")/instructions.jsonl}"
before_and_after "${2:-Question: Who was the husband of Naomi?
Answer:}" 60
