#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# make demo-xrt: the demo model writes text through XRT's hw_emu. Environment: PROMPT, TOKENS, TEMPERATURE,
# SEED, MODEL.
set -u
millrace=${MILLRACE:-build/millrace} build=${BUILD:-build}
export MILLRACE_XCLBIN=${MILLRACE_XCLBIN:-$build/xrt/millrace-sim.xclbin}
prompt=${PROMPT:-And it came to pass} tokens=${TOKENS:-40}
xrt=${XILINX_XRT:-"Debian's"}
cat <<END
A GPT-J of 4 million parameters writes $tokens tokens through XRT ($xrt): the program opens
an Alveo card as it would a real one, and behind XRT's hardware emulation Verilator executes the kernel.

END
sim/xrt/run "$millrace" generate --model "${MODEL:-models/demo}" --device xrt:0 --prompt "$prompt" --max-tokens "$tokens" \
    --temperature "${TEMPERATURE:-0.8}" --seed "${SEED:-2}" --stats --quiet
status=$?
echo
[ $status = 0 ] || { echo "The demo failed with status $status." >&2; exit $status; }
echo "The same text, bits and cycles as with -d sim:. More: docs/board/xrt.md"
