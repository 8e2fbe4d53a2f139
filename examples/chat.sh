#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A conversation: each line of input is a turn; /quit or Ctrl-D ends it. usage: examples/chat.sh
set -eu
. "$(dirname "$0")/settings.sh"
exec "$MILLRACE" chat "$MODEL" -d "$DEVICE" --temperature 0.7 --top-p 0.9 --repetition-penalty 1.1 --seed 1 -n 80 \
    --preamble 'A conversation between a curious User and a patient Assistant.\n\nUser: Good morning!\nAssistant: Good morning! What would you like to know?\n'
