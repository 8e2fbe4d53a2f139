#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# make demo: the demo model writes text through the simulated RTL, every command checked.
# Environment: PROMPT, TOKENS, TEMPERATURE, SEED, MODEL, DEVICE.
set -u
millrace=${MILLRACE:-build/millrace}
prompt=${PROMPT:-And it came to pass} tokens=${TOKENS:-40}
model=${MODEL:-models/demo} device=${DEVICE:-sim:sim,check}
cat <<END
A GPT-J of 4 million parameters writes $tokens tokens. Verilator executes the RTL cycle by cycle
($device), and what each command leaves in the on-chip memories is compared with the C model,
bit for bit.

END
"$millrace" generate --model "$model" --device "$device" --prompt "$prompt" --max-tokens "$tokens" \
    --temperature "${TEMPERATURE:-0.8}" --seed "${SEED:-2}" --stats --quiet
status=$?
echo
if [ $status != 0 ]; then
    echo "The demo failed with status $status." >&2
    exit $status
fi
cat <<END
Every token above came out of the simulated RTL, and each command's result was the C model's.
The cycles are exact; the clock that turns them into seconds on a board is an assumption.
Next: 'make all', then the four commands of README.md. The other pages: docs/README.md
END
