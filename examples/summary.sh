#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A text in one sentence, by "TL;DR:" behind it. usage: examples/summary.sh [FILE]
set -eu
. "$(dirname "$0")/settings.sh"
if [ $# -gt 0 ]; then
    text=$(cat -- "$1")
else
    text="The library will be closed from Monday to Wednesday, because the roof is being repaired.
Books that are due on these days can be returned on Thursday without a fee."
fi
answer 40 "$text

TL;DR:"
