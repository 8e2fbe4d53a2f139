#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A text goes on. usage: examples/completion.sh [TEXT]
set -eu
. "$(dirname "$0")/settings.sh"
"$MILLRACE" generate -m "$MODEL" -d "$DEVICE" -q -n 60 --temperature 0.8 --top-p 0.95 --repetition-penalty 1.1 --seed 1 \
    -- "${1:-In the beginning}"
