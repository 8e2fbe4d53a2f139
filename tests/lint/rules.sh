#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# docs/inside/commands.md with the rules of rtl/spec/device.def in their place, on stdout (from the root).
set -euo pipefail
sed -n '1,/^<!-- rules -->$/p' docs/inside/commands.md
awk -v out=doc -f rtl/spec/gen_legal.awk rtl/spec/device.def
sed -n '/^<!-- end of rules -->$/,$p' docs/inside/commands.md
