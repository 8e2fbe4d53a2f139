#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Is a review positive or negative? The model learns the task from three examples in the prompt.
# usage: examples/sentiment.sh [REVIEW]
set -eu
. "$(dirname "$0")/settings.sh"
prompt="Review: I could not stop laughing, what a film!
Sentiment: positive

Review: Two hours of my life that I will never get back.
Sentiment: negative

Review: The actors are wonderful and the story moved me.
Sentiment: positive

Review: ${1:-The plot made no sense at all.}
Sentiment:"
answer 3 "$prompt"
