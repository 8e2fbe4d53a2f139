#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# make demo-driver: the demo model writes text inside a virtual machine. Environment: PROMPT, TOKENS,
# TEMPERATURE, SEED.
set -u
prompt=${PROMPT:-And it came to pass} tokens=${TOKENS:-20}
cat <<END
A GPT-J of 4 million parameters writes $tokens tokens in a virtual machine: Debian's kernel in Debian's QEMU loads
the driver, and the PCI function that it drives is the RTL, executed by Verilator.

END
CONFIG=sim sim/pci/vm.sh millrace generate --model /demo --device pci:0 --prompt "$prompt" \
    --max-tokens "$tokens" --temperature "${TEMPERATURE:-0.8}" --seed "${SEED:-2}" --stats --quiet
status=$?
echo
[ $status = 0 ] || { echo "The demo failed with status $status." >&2; exit $status; }
echo "The same text, bits and cycles as with -d sim:. More: docs/board/driver.md"
