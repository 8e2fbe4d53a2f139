#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# make bench-train: cycles of a layer in training, by the counters of the simulated RTL, over the three products' MACs at
# one block a PE and cycle. Forward pass, dX, dW, attention and LayerNorm are measurements of their own, two at a time: each goes
# to build/bench/train as JSON when it is there, and is not run again unless its sources change.
# A case that takes more than its bar, or a part that is more than 1 % off its plan, fails.
# usage: BENCH_TRAIN="gptj-sim .." BENCH_PARTS="dX .." BUILD=build tests/bench/train.sh [--write]   (--write: also
# docs/results/bench-train.txt)
set -u
export LC_ALL=C
build=${BUILD:-build} millrace=${MILLRACE:-build/bench/millrace} dir=${BUILD:-build}/bench/train
mkdir -p "$dir"
# name | model, one layer | sequences | device | most that it may be
cases='gptj-sim|synthetic:gptj-6b,layers=1,vocab=64|1024|sim:sim,train|1.05
gptj-short|synthetic:gptj-6b,layers=1,vocab=64|32,32,32,32,32,32,32,32|sim:sim,train|1.06
gptj-wide|synthetic:gptj-6b,layers=1,vocab=64|1024|sim:wide,train|1.08
gptj-wide-hbm|synthetic:gptj-6b,layers=1,vocab=64|1024|sim:wide,train,memory=hbm2|1.08
xl-sim|synthetic:gpt3-xl,layers=1,vocab=64|1024|sim:sim,train|1.15'
parts='forward dX dW attention LayerNorm'
wanted=${BENCH_TRAIN:-$(cut -d'|' -f1 <<<"$cases" | tr '\n' ' ')}
revision=$(git rev-parse --short=12 HEAD 2>/dev/null || echo unknown)$(git diff --quiet HEAD -- . ':!docs' 2>/dev/null || echo +)
machine="$(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -1), $(nproc) cores"
# What cycles depend on: the engine, the memory's model, and the programs.
sources=$(git ls-files -z rtl sim/memory sim/verilator host/train host/engine host/cmodel host/plan | xargs -0 cat |
    git hash-object --stdin)

# A number in a file of ours: the first one of that name; that of all its programs, rounded.
of() { sed -n "s/.*\"$2\": \([0-9.e+-]*\).*/\1/p" "$1" | head -1; }
total() { printf '%.0f' "$(sed -n "s/^  \"$2\": \([0-9.e+]*\).*/\1/p" "$1")"; }

one() { # name model sequences device part
    local file=$dir/$1-$5.json start=$SECONDS
    if [ -s "$file" ] && grep -qx "$sources" "$file.of" 2>/dev/null; then
        echo "$1 $5: measured before"
        return
    fi
    rm -f "$file"
    echo "$1 $5: begun $(date -u +%H:%M)"
    if "$millrace" bench "$2" --train "$3" -d "$4" --part "$5" --json >"$file.new" 2>"$file.log" </dev/null; then
        echo "$sources" >"$file.of" && echo "$revision" >"$file.revision" && mv "$file.new" "$file"
        echo "$1 $5: $(of "$file" cycles) cycles, $((SECONDS - start)) s"
    else
        echo "$1 $5: failed: $(tail -1 "$file.log")"
        rm -f "$file.new"
        return 1
    fi
}
export -f one of
export dir millrace sources revision
while IFS='|' read -r name model sequences device most; do
    [[ " $wanted " == *" $name "* ]] || continue
    for part in ${BENCH_PARTS:-$parts}; do printf '%s\n' "$name" "$model" "$sequences" "$device" "$part"; done
done <<<"$cases" | xargs -r -d '\n' -n 5 -P "${JOBS:-2}" bash -c 'one "$@"' _ || exit 1

table() {
    echo "Cycles of one layer in training, by the counters of the simulated RTL ($machine)."
    echo "A part is its programs, with the sums of gradients (dW) that run in their pauses: the parts add up to a step."
    echo "Of ideal: over the three products of all matrices at a block a PE and cycle."
    echo
    echo "| case | device | forward | dX | dW | attention | LayerNorm | all | of ideal | at most | planned |"
    echo "|---|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|"
    local name model sequences device most part file n row all planned ideal
    while IFS='|' read -r name model sequences device most; do
        row='' all=0 planned=0 ideal=0
        for part in $parts; do
            file=$dir/$name-$part.json
            if [ ! -s "$file" ]; then row+=' - |' all=''; continue; fi
            n=$(total "$file" cycles)
            row+=" $n |"
            [ -z "$all" ] || all=$((all + n))
            planned=$((planned + $(total "$file" planned_cycles)))
            ideal=$(total "$file" ideal_cycles)
        done
        [ "$ideal" != 0 ] || continue
        printf '| %s | `%s` |%s %s | %s | %s | %s |\n' "$name" "$device" "$row" "${all:--}" \
            "$([ -z "$all" ] && echo - || awk "BEGIN { printf \"%.3f\", $all / $ideal }")" "$most" \
            "$([ -z "$all" ] && echo - || awk "BEGIN { printf \"%.3f\", $planned / $ideal }")"
    done <<<"$cases"
    echo
    echo "How far the plan (plan --train) is off each part, and the revision that was measured:"
    echo
    echo "| case | forward | dX | dW | attention | LayerNorm |"
    echo "|---|---:|---:|---:|---:|---:|"
    while IFS='|' read -r name model sequences device most; do
        row=''
        for part in $parts; do
            file=$dir/$name-$part.json
            if [ ! -s "$file" ]; then row+=' - |'; continue; fi
            row+=$(awk "BEGIN { printf \" %+.2f %%, %s |\", 100 * ($(total "$file" planned_cycles) / $(total "$file" cycles) - 1),
                \"$(cat "$file.revision")\" }")
        done
        [[ $row != *[0-9]* ]] || echo "| $name |$row"
    done <<<"$cases"
}
table | tee "$dir/table.txt"
[ "${1:-}" != --write ] || cp "$dir/table.txt" docs/results/bench-train.txt
awk -F'|' -v wanted=" $wanted " 'function trim(s) { gsub(/ /, "", s); return s }
    !index(wanted, " " trim($2) " ") { next }
    NF > 10 && $10 ~ /[0-9]/ && $10 > $11 { bad = 1; print "missed:" $2 }
    NF < 10 { for (i = 3; i < NF; i++) if ($i ~ /%/ && ($i + 0 > 1 || $i + 0 < -1)) { bad = 1; print "off its plan:" $2 $i } }
    END { exit bad }' "$dir/table.txt"
