#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# millrace train --engines: the bytes of one for any number, going on with another one, what ends a
# rank, Ctrl-C. Prints TAP; runs from the repository's root. That sums and units of ranks are those
# of one is held by the unit test ranks.
set -u
. tests/tools/tap.sh
unset "${!OMPI_@}" MILLRACE_ENGINES
export TMPDIR="$work/tmp" # of MPI, too: nothing may stay there
mkdir "$TMPDIR"
head -c 1500 models/demo/heldout.txt >"$work/text"
# A tiny model, whose states are soon on the disk.
"$millrace" train tests/e2e/train/config/first.yaml -m train -o "$work/from" --set "train_input.data_dir=$work/text" \
    --max_steps 1 >"$work/log" 2>&1
words=(train "$work/from/checkpoint-0" --sequence 32 --batch 1 --accumulate 3 --lr 1e-3)
data=(--data "$work/text") device=(-d model:tinyt)
learn() { timeout 600 "$millrace" "${words[@]}" "${data[@]}" "${device[@]}" "$@"; }
same() { cmp "$work/one/state" "$1/state" && cmp "$work/one/header" "$1/header"; }

# ---- bytes
learn -o "$work/one" --steps 2 >"$work/lines" 2>&1
learn -o "$work/two" --steps 2 --engines 2 >"$work/log" 2>"$work/err"
ok two_engines_train test $? = 0 -a ! -s "$work/err"
ok they_print_the_lines_of_one cmp "$work/lines" "$work/log"
ok two_have_the_bytes_of_one same "$work/two"
device=(-d model:tinyt,model:sim,train)
learn -o "$work/four" --steps 1 --num_csx 4 -q >"$work/log" 2>&1
device=(-d model:tinyt)
learn -o "$work/four" --steps 2 --engines 2 -q >"$work/log" 2>&1
ok going_on_with_another_number_has_them_too same "$work/four"

# ---- faults
rank() { printf 'millrace: rank %s on %s: ' "$1" "$(hostname)"; }
one_line() { [ "$(wc -l <"$work/err")" = 1 ] && grep -qF -- "$1" "$work/err"; }
exits_with_one_line() { # NAME, TEXT
    ok "$1" test "$got" != 0
    one_line "$2" || sed 's/^/# /' "$work/err"
    ok "$1"_says_rank_host_and_cause one_line "$2"
}

# Ranks of different data, started by mpirun itself: they are ranks already.
sed 's/e/a/' "$work/text" >"$work/other"
run=(timeout 120 mpirun --allow-run-as-root --oversubscribe --bind-to none)
OMPI_MCA_mpi_yield_when_idle=1 "${run[@]}" -n 1 "$millrace" "${words[@]}" "${data[@]}" "${device[@]}" -o "$work/five" --steps 1 : \
    -n 1 "$millrace" "${words[@]}" --data "$work/other" "${device[@]}" -o "$work/five" --steps 1 >"$work/log" 2>&1
ok other_data_on_a_rank_is_refused test $? != 0 -a "$(grep -cF "$(rank 1)$work/other: is other data than on rank 0" "$work/log")" = 1
ok and_makes_no_state test -z "$(compgen -G "$work/five*")"

# other NAME TEXT PROGRAM [OPTIONS]: a second rank of another program or with other options.
other() {
    OMPI_MCA_mpi_yield_when_idle=1 "${run[@]}" -n 1 "$millrace" "${words[@]}" "${data[@]}" "${device[@]}" -o "$work/five" --steps 1 : \
        -n 1 "$3" "${words[@]}" "${data[@]}" "${device[@]}" -o "$work/five" --steps 1 "${@:4}" >"$work/log" 2>&1
    ok "$1" test $? != 0 -a "$(grep -cF "$(rank 1)$2" "$work/log")" = 1
    grep -qF "$(rank 1)$2" "$work/log" || sed 's/^/# /' "$work/log"
    ok "$1_makes_no_state" test -z "$(compgen -G "$work/five*")"
}
# Another version of the program: the same bytes, but for the number.
mkdir "$work/newer"
version=$("$millrace" --version | grep -oE '[0-9]+\.[0-9]+\.[0-9]+' | head -1)
LC_ALL=C sed "s/${version//./\\.}/${version%?}9/g" "$millrace" >"$work/newer/millrace" && chmod +x "$work/newer/millrace"
cp "${build:-build}/libmillrace-mpi.so" "$work/newer"
other another_version_on_a_rank "is millrace ${version%?}9, and rank 0 on $(hostname) is $version; install the same one" "$work/newer/millrace"
other another_setting_on_a_rank "seed is 5, and 0 on rank 0 ($(hostname)); give all ranks the same" "$millrace" --seed 5
other another_evaluation_on_a_rank 'eval-windows is 3, and 256 on rank 0' "$millrace" --eval-windows 3
"$millrace" train tests/e2e/train/config/first.yaml -m train -o "$work/else" --set "train_input.data_dir=$work/text" \
    --set runconfig.seed=9 --max_steps 1 >"$work/log" 2>&1
from=("${words[@]}")
words[1]=$work/else/checkpoint-0
elsewhere=("${words[@]}")
words=("${from[@]}")
OMPI_MCA_mpi_yield_when_idle=1 "${run[@]}" -n 1 "$millrace" "${words[@]}" "${data[@]}" "${device[@]}" -o "$work/five" --steps 1 : \
    -n 1 "$millrace" "${elsewhere[@]}" "${data[@]}" "${device[@]}" -o "$work/five" --steps 1 >"$work/log" 2>&1
ok another_model_on_a_rank test $? != 0 -a "$(grep -cF "$(rank 1)$work/else/checkpoint-0: is another model than on rank 0" "$work/log")" = 1

device=(-d model:tinyt,model:nothing)
learn -o "$work/six" --steps 1 --engines 2 >"$work/log" 2>"$work/err"
got=$?
device=(-d model:tinyt)
exits_with_one_line a_device_that_is_not_there "$(rank 1)model:nothing"

# Waits until a training in the background has done a step, and sets `mpirun` and its ranks.
started() {
    for _ in $(seq 1200); do
        grep -q '^step 1 ' "$work/log" && break
        kill -0 "$train" 2>/dev/null || return 1
        sleep 0.1
    done
    mpirun=$(cat "/proc/$train/task/$train/children")
    mapfile -t ranks < <(cat "/proc/${mpirun% }"/task/*/children | tr -s ' ' '\n')
    [ ${#ranks[@]} -ge 2 ]
}
for victim in 0 1; do
    "$millrace" "${words[@]}" "${data[@]}" "${device[@]}" -o "$work/kill$victim" --steps 100000 --engines 2 >"$work/log" 2>"$work/err" &
    train=$!
    started && kill -KILL "${ranks[victim]}"
    at=$(date +%s%N)
    wait $train
    got=$?
    ms=$((($(date +%s%N) - at) / 1000000))
    echo "# ended $ms ms after rank $victim was killed, on $(hostname)"
    ok "rank_${victim}_killed_ends_soon" test $ms -lt 10000
    exits_with_one_line "rank_${victim}_killed" "$(rank "$victim")was ended by signal 9"
    steps=$(($(sed -n 's/^step \([0-9]*\) *loss.*/\1/p' "$work/log" | tail -1) + 1))
    learn -o "$work/kill$victim" --steps $steps -q >"$work/log" 2>&1
    ok "and_the_state_is_whole_$victim" test $? = 0
done

# ---- a device that dies in a later step: one line, the state of the step before, and it goes on with the bytes of one
mkdir "$work/sim"
${CC:-gcc} -std=c17 -D_GNU_SOURCE -I. -Ihost -Ihost/include -I"${build:-build}/gen" -shared -fPIC \
    -o "$work/sim/libmillrace-sim-tinyt.so" tests/tools/dying-sim.c "${build:-build}/libmillrace.a" -ldl
dies() { # NAME DEVICES TEXT OPTIONS...
    rm -f "$work/now"
    MILLRACE_SIM_DIR=$work/sim MILLRACE_DYING_SIM=$(realpath "${build:-build}/sim/tinyt/libmillrace-sim-tinyt.so") MILLRACE_DYING_WHEN=$work/now \
        "$millrace" "${words[@]}" "${data[@]}" -d "$2" -o "$work/$1" --steps 100000 "${@:4}" >"$work/log" 2>"$work/err" &
    train=$!
    for _ in $(seq 3000); do
        grep -q '^step 1 ' "$work/log" && break
        sleep 0.1
    done
    at=$(date +%s%N)
    touch "$work/now"
    wait $train
    got=$?
    ms=$((($(date +%s%N) - at) / 1000000))
    echo "# ended $ms ms after its device had died, on $(hostname)"
    ok "$1_ends_soon" test $ms -lt 10000
    ok "$1" test $got = 4
    one_line "$3" || sed 's/^/# /' "$work/err"
    ok "$1_is_said_in_one_line" one_line "$3"
    local steps
    steps=$(($(sed -n 's/^step \([0-9]*\) *loss.*/\1/p' "$work/log" | tail -1) + 1))
    learn -o "$work/$1" --steps $steps -q >"$work/log" 2>&1
    learn -o "$work/$1-straight" --steps $steps -q >>"$work/log" 2>&1
    ok "$1_goes_on_with_the_bytes_of_one" cmp "$work/$1/state" "$work/$1-straight/state"
}
dies a_device_that_dies sim:tinyt,seed=7 'the device has died'
dies a_ranks_device_that_dies model:tinyt,sim:tinyt,seed=7 "$(rank 1)" --engines 2

# ---- Ctrl-C
"$millrace" "${words[@]}" "${data[@]}" "${device[@]}" -o "$work/stop" --steps 100000 --engines 2 >"$work/log" 2>"$work/err" &
train=$!
started && kill -INT $train
wait $train
got=$?
ok ctrl_c_is_130 test $got = 130
exits_with_one_line ctrl_c "has its state, and the same command goes on"
step=$(sed -n 's/.*stopped after step \([0-9]*\) .*/\1/p' "$work/err")
learn -o "$work/straight" --steps "$step" -q --eval-every 1000000 >"$work/log" 2>&1
ok it_ends_behind_a_step_with_the_bytes_of_one cmp "$work/straight/state" "$work/stop/state"
ok nothing_stays_behind test -z "$(ls -A "$TMPDIR")"

# ---- what cannot be
exits engines_and_standard_input 2 'each of them reads --data' "${words[@]}" --data - -o "$work/x" --steps 1 --engines 2
exits more_devices_than_engines 2 '3 devices, and there are 2 engines; --engines 3' "${words[@]}" "${data[@]}" -d model:tinyt,model:tinyt,model:sim,train -o "$work/x" --steps 1 --engines 2
exits a_device_for_each_and_one_engine 2 '2 devices, and there is 1 engine; --engines 2' "${words[@]}" "${data[@]}" -d model:tinyt,model:tinyt -o "$work/x" --steps 1
exits ranks_on_a_device_that_cannot_train 2 "^millrace: rank [01] on $(hostname): device cpu: cannot train: .*; model:sim can\$" "${words[@]}" "${data[@]}" -d cpu: -o "$work/x" --steps 1 --engines 2
exits hosts_of_a_file_that_is_not_there 3 "^millrace: --hosts $work/none: No such file or directory; " "${words[@]}" "${data[@]}" -o "$work/x" --steps 1 --engines 2 --hosts "$work/none"
exits hosts_of_a_directory 3 "^millrace: --hosts $work: Is a directory; " "${words[@]}" "${data[@]}" -o "$work/x" --steps 1 --engines 2 --hosts "$work"
exits no_engines 2 'engines' "${words[@]}" "${data[@]}" -o "$work/x" --steps 1 --engines 0
# by_path PATH EXITS...: with another PATH for the program.
case $millrace in /*) program=$millrace ;; *) program=$PWD/$millrace ;; esac
by_path() {
    printf '#!/bin/sh\nPATH=%s exec %s "$@"\n' "$1" "$program" >"$work/by-path"
    chmod +x "$work/by-path"
    shift
    millrace="$work/by-path" "$@"
}
mkdir "$work/bin" "$work/empty" "$work/alone"
by_path "$work/empty" exits no_mpirun 4 'openmpi-bin' "${words[@]}" "${data[@]}" -o "$work/x" --steps 1 --engines 2
printf '#!/bin/sh\nwhile [ "$1" != -n ]; do shift; done; shift 2\nexec "$@"\n' >"$work/bin/mpirun.openmpi"
chmod +x "$work/bin/mpirun.openmpi"
by_path "$work/bin:$PATH" exits mpirun_of_another_mpi 4 "is not Open MPI's" "${words[@]}" "${data[@]}" -o "$work/x" --steps 1 --engines 2
# One that fails before a rank has begun: no state is named that is not there.
printf '#!/bin/sh\nexit 7\n' >"$work/bin/mpirun.openmpi"
by_path "$work/bin:$PATH" exits mpirun_that_fails 4 '^millrace: mpirun ended with status 7$' "${words[@]}" "${data[@]}" -o "$work/x" --steps 1 --engines 2
by_path "$work/bin:$PATH" exits mpirun_that_fails_beside_a_state 4 "status 7; $work/one has the steps that were done\$" \
    "${words[@]}" "${data[@]}" -o "$work/one" --steps 3 --engines 2
cp "$millrace" "$work/alone/millrace"
millrace="$work/alone/millrace" exits no_module 4 'libmillrace-mpi.so cannot be opened; install the package libopenmpi3' \
    "${words[@]}" "${data[@]}" -o "$work/x" --steps 1 --engines 2
done_testing
