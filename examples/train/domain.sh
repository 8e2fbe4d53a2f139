#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Continued pre-training: the model reads a text of yours. The last tenth is not learnt, and its loss
# stands in the first line and in the last one. usage: examples/train/domain.sh [TEXT]
set -eu
. "$(dirname "$0")/settings.sh"
data=${1:-models/demo/heldout.txt}
RATE=${RATE:-1e-4}
learn 40 --sequence "$SEQUENCE"
