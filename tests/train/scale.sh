#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What `millrace plan --train` says of models of 0.1 to 175 billion parameters, as the rows of the
# table in docs/inside/performance.md: 1,000 steps of 1,024 tokens, on the card that trains and on an array
# of 2,048 by 256 that no card holds yet.
# usage: tests/train/scale.sh MILLRACE (prints Markdown)
set -eu
row() { # model billions options...
    local name=$1 size=$2
    shift 2
    "$millrace" plan "synthetic:$name" --train --length 1024 --steps 1000 "$@" |
        awk -v name="$name" -v size="$size" '
            function figure(x) { return sprintf(x < 9.95 ? "%.1f" : "%.0f", x) }
            /^training of/ { sub(/ \(N .*/, ""); sub(/.* on /, ""); on = $0 }
            $1 == "all" { macs = $4 }
            $1 == "device" { whole = $2 }
            /two layers at a time/ { two = $6 }
            $1 == "store" { store = $2 }
            /^  a step/ { seconds = $5; rate = $7 }
            /^  a run/ { hours = $8 ~ /^hours/ ? $7 : $7 / 3600 }
            END { printf "| %s | %s | `%s` | %s | %.1f | %s | %s | %s | %s | %.0f |\n", name, size, on,
                         macs, seconds, figure(rate), figure(hours), figure(whole), figure(two), store }'
}
millrace=$1
for model in gpt2:0.124 gpt3-xl:1.3 cerebras-2.7b:2.7 gptj-6b:6.05 cerebras-6.7b:6.7; do
    row "${model%:*}" "${model#*:}" --board u50
done
for model in gpt2:0.124 gpt3-xl:1.3 cerebras-2.7b:2.7 gptj-6b:6.05 cerebras-6.7b:6.7 cerebras-13b:13 gpt3-175b:175; do
    row "${model%:*}" "${model#*:}" --config n=8,r=16,t=256,train --memory hbm2
done
