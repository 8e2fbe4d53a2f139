#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# make demo-train: the demo model learns a page of this project on the simulated RTL. Losses stand beside fp32's
# (examples/train/pages-fp32.csv); header, weights and moments must be the C model's.
# Environment: STEPS, DEVICE, ENGINES, EVAL (held-out windows, 0: all), RATE, MODEL.
set -u
export LC_ALL=C
millrace=${MILLRACE:-build/millrace} model=${MODEL:-models/demo}
steps=${STEPS:-20} device=${DEVICE:-sim:sim,train}
cores=$(nproc)
engines=${ENGINES:-$((cores > 1 ? 2 : 1))}
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
learn() {
    "$millrace" train "$model" --data examples/train/pages.txt --steps "$steps" --lr "${RATE:-1e-3}" --schedule cosine \
        --warmup 10 --min-lr 0.1 --sequence 64 --batch 2 --accumulate 2 --seed 1 \
        --eval-windows "${EVAL:-0}" --quiet --json "$@"
}
# of LINE KEY: the value, or nothing
of() {
    [[ $1 == *"\"$2\":"* ]] || return
    local v=${1#*\""$2"\":}
    printf %s "${v%%[,\}]*}"
}
# recorded KIND STEP: fp32's loss, or nothing
recorded() {
    [ "$model" = models/demo ] && awk -F, -v k="$1" -v s="$2" '$1 == k && $2 == s { print $3 }' examples/train/pages-fp32.csv
}
cat <<END2
A GPT-J of 4 million parameters, which has read one old book, learns a page of this project:
$steps steps of 4 x 64 tokens. Verilator executes the RTL cycle by cycle ($device),
on $engines core(s), each an engine that takes its share of a step.

  step     loss  in fp32        cycles    MACs   left
END2
# Reads the objects of the run; says in $work/held what the loss of the held-out part was.
show() {
    local line step held loss cycles start=$SECONDS
    while read -r line; do
        step=$(of "$line" step) held=$(of "$line" heldout_loss) loss=$(of "$line" loss)
        if [ -n "$held" ]; then
            printf '%6d %8.4f %8s   of the held-out part\n' "$step" "$held" "$(recorded held "$step")"
            echo "$held" >>"$work/held"
            start=$SECONDS
            continue
        fi
        cycles=$(of "$line" cycles)
        # step + 1: the first one runs twice, since it has no units yet
        printf '%6d %8.4f %8s %13s %5.1f %% %4d s\n' "$step" "$loss" "$(recorded loss "$step")" "${cycles:--}" \
            "$(awk -v m="$(of "$line" mac_utilisation)" 'BEGIN { print 100 * m }')" $(((SECONDS - start) * (steps - step) / (step + 1)))
    done
}
several=()
[ "$engines" = 1 ] || several=(--engines "$engines")
learn -o "$work/sim" -d "$device" "${several[@]}" | show
status=${PIPESTATUS[0]}
if [ "$status" != 0 ]; then
    echo "The demo failed with status $status." >&2
    exit "$status"
fi
echo
learn -o "$work/model" -d model:sim >/dev/null || exit $?
for f in header state; do
    cmp "$work/sim/$f" "$work/model/$f" || exit 1
done
awk '{ loss[NR] = $1 } END { printf "The held-out loss fell by %.3f nats.\n", loss[1] - loss[NR]
    exit !(loss[1] - loss[NR] >= 0.05) }' "$work/held" || { echo "That is less than 0.05." >&2; exit 1; }
cat <<END2
Losses, weights and moments came out of the simulated RTL, and each byte of them is the C model's.
Cycles are those of one engine. The first step has no units of its gradients yet and runs twice.
The tutorial is docs/train/tutorial.md; docs/inside/training.md says how the RTL trains.
END2
