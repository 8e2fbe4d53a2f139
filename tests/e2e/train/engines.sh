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

"$millrace" "${words[@]:0:${#words[@]}-2}" "${data[@]}" -d model:tinyt,capacity=1250K -o "$work/said" --steps 3 --lr 1 --warmup 4 --engines 2 >"$work/log" 2>"$work/err"
ok what_all_ranks_see_is_said_once test "$(grep -c 'layers from the host: 3 of 3' "$work/log")" = 1 \
    -a "$(cut -c1-50 "$work/err")" = $'millrace: --warmup 4: the learning rate still grow\nmillrace: the loss has grown from 5.53 to 13.30, t'

# ---- a configuration: checkpoints are rank 0's
by_file=(-d model:tinyt --set "train_input.data_dir=$work/text" --set "eval_input.data_dir=$work/text")
config() { "$millrace" train tests/e2e/train/config/first.yaml -m "$1" "${by_file[@]}" -o "$work/$2" "${@:3}"; }
config train_and_eval by-one >"$work/lines" 2>&1
config train_and_eval by-two --engines 2 >"$work/log" 2>&1
ok a_configuration_prints_the_lines_of_one cmp "$work/lines" "$work/log"
ok and_leaves_the_files_of_one diff -r "$work/by-one" "$work/by-two"
config eval_all by-one >"$work/lines" 2>&1
config eval_all by-one --engines 2 >"$work/log" 2>&1
ok checkpoints_are_evaluated_by_two test "$(wc -l <"$work/lines")" = 3 -a "$(cmp "$work/lines" "$work/log")" = ""

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
sed 's/seed: 3/seed: 4/' tests/e2e/train/config/first.yaml >"$work/four.yaml"
OMPI_MCA_mpi_yield_when_idle=1 "${run[@]}" -n 1 "$millrace" train tests/e2e/train/config/first.yaml "${by_file[@]}" --set runconfig.seed=3 -o "$work/five" : \
    -n 1 "$millrace" train "$work/four.yaml" "${by_file[@]}" --set runconfig.seed=3 -o "$work/five" >"$work/log" 2>&1
ok another_configuration_on_a_rank test $? != 0 -a "$(grep -cF "$(rank 1)$work/four.yaml: is another configuration than on rank 0" "$work/log")" = 1
# Options that say all that this configuration does are another one, too.
sed "s#^eval_input:.*#eval_input: {data_dir: $work/text, max_sequence_length: 32}#" tests/e2e/train/config/first.yaml >"$work/alike.yaml"
OMPI_MCA_mpi_yield_when_idle=1 "${run[@]}" -n 1 "$millrace" train "$work/alike.yaml" -m train_and_eval -d model:tinyt --set "train_input.data_dir=$work/text" -o "$work/five" : \
    -n 1 "$millrace" train "$work/from/checkpoint-0" "${data[@]}" --heldout-data "$work/text" "${device[@]}" --sequence 32 --batch 2 --accumulate 2 --lr 1e-3 \
    --seed 7 --steps 4 --eval-every 2 --eval-windows 0 -o "$work/five" >"$work/log" 2>&1
ok options_on_a_rank_of_a_configuration test $? != 0 -a "$(grep -cF "$(rank 1)the command line: is another configuration than on rank 0" "$work/log")" = 1
ok and_leaves_no_drawn_weights test -z "$(compgen -G "$work/five*")"
OMPI_MCA_mpi_yield_when_idle=1 "${run[@]}" -n 2 "$millrace" "${words[@]}" "${data[@]}" "${device[@]}" -o "$work/by-mpirun" --steps 2 >"$work/log" 2>&1
ok mpirun_may_be_called_itself test "$(same "$work/by-mpirun" && echo same)" = same
"${run[@]}" -n 2 "$millrace" "${words[@]}" "${data[@]}" "${device[@]}" -o "$work/five" --steps 1 --engines 3 >"$work/log" 2>&1
ok another_number_than_mpirun_has_started test $? = 2 -a "$(grep -c '^millrace: --engines 3: mpirun has started 2$' "$work/log")" = 2

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
OMPI_MCA_mpi_yield_when_idle=1 "${run[@]}" -n 1 "$millrace" "${words[@]}" "${data[@]}" "${device[@]}" -o "$work/five" --steps 1 --heldout-data "$work/text" : \
    -n 1 "$millrace" "${words[@]}" "${data[@]}" "${device[@]}" -o "$work/five" --steps 1 --heldout-data "$work/other" >"$work/log" 2>&1
ok other_held_out_data_on_a_rank test $? != 0 -a "$(grep -cF "$(rank 1)$work/other: is other data than on rank 0" "$work/log")" = 1
"$millrace" train tests/e2e/train/config/first.yaml -m train -o "$work/else" --set "train_input.data_dir=$work/text" \
    --set runconfig.seed=9 --max_steps 1 >"$work/log" 2>&1
from=("${words[@]}")
words[1]=$work/else/checkpoint-0
elsewhere=("${words[@]}")
words=("${from[@]}")
OMPI_MCA_mpi_yield_when_idle=1 "${run[@]}" -n 1 "$millrace" "${words[@]}" "${data[@]}" "${device[@]}" -o "$work/five" --steps 1 : \
    -n 1 "$millrace" "${elsewhere[@]}" "${data[@]}" "${device[@]}" -o "$work/five" --steps 1 >"$work/log" 2>&1
ok other_weights_on_a_rank test $? != 0 -a "$(grep -cF "$(rank 1)$work/else/checkpoint-0: is another model than on rank 0" "$work/log")" = 1

OMPI_MCA_mpi_yield_when_idle=1 "${run[@]}" -n 1 "$millrace" "${words[@]}" "${data[@]}" "${device[@]}" -o "$work/five" --steps 1 : \
    -n 1 "$millrace" "${words[0]}" models/demo "${words[@]:2}" "${data[@]}" "${device[@]}" -o "$work/five" --steps 1 >"$work/log" 2>&1
ok another_model_on_a_rank test $? != 0 -a "$(grep -cF "$(rank 1)models/demo: is another model than on rank 0" "$work/log")" = 1

device=(-d model:tinyt,model:nothing)
learn -o "$work/six" --steps 1 --engines 2 >"$work/log" 2>"$work/err"
got=$?
device=(-d model:tinyt)
exits_with_one_line a_device_that_is_not_there "$(rank 1)model:nothing"

# Waits until a training in the background has done a step, and sets `mpirun` and its ranks. Whoever starts one empties
# the log first: an earlier training's steps would end the wait before the program is there.
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
    : >"$work/log"
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
    : >"$work/log"
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
: >"$work/log"
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

# ---- what mpirun says, by one in its place: a program of bash whose standard output is its standard error
case $millrace in /*) program=$millrace ;; *) program=$PWD/$millrace ;; esac
mkdir "$work/fake"
printf '#!/bin/bash\neval "$SAYS" >&2\n' >"$work/fake/mpirun.openmpi"
chmod +x "$work/fake/mpirun.openmpi"
says() { # NAME STATUS LINES PROGRAM [OPTIONS]: what becomes of it, within 20 s
    SAYS=$4 PATH=$work/fake:$PATH timeout 20 "$program" "${fake[@]}" --engines 2 "${@:5}" >"$work/out" 2>"$work/err" </dev/null
    ok "$1" test $? = "$2" -a "$(cat "$work/err")" = "$3"
    [ "$(cat "$work/err")" = "$3" ] || sed 's/^/# /' "$work/err"
}
fake=("${words[@]}" "${data[@]}" --steps 3)
goes_on="$work/one has the steps that were done" none=(-o "$work/none") one=(-o "$work/one")
banner() { printf 'echo ---------------; echo "%s"; echo ---------------; ' "$1"; }
killed=$(banner 'mpirun noticed that process rank 1 with PID 0 on node far exited on signal 9 (Killed).')
signal='millrace: rank 1 on far: was ended by signal 9 (Killed)'
says a_killed_rank_before_there_is_a_state 137 "$signal" "$killed exit 137" "${none[@]}"
says a_killed_rank_beside_a_state 137 "$signal; $goes_on, and the same command goes on" "$killed exit 137" "${one[@]}"
says the_first_error_of_ranks_is_enough 3 'millrace: rank 1 on far: is wrong' \
    "echo 'millrace: rank 1 on far: is wrong'; echo 'millrace: rank 0 on near: is wrong'; $killed exit 3" "${one[@]}"
says a_line_that_all_say_is_said_once 0 $'millrace: it diverges\nmillrace: the end' \
    "echo 'millrace: it diverges'; echo; echo '[far:1] lost'; echo 'millrace: it diverges'; echo 'millrace: the end'; exit 0" "${one[@]}"
says a_rank_s_error_behind_another_line 3 $'millrace: it diverges\nmillrace: rank 1 on far: is wrong' \
    "echo 'millrace: it diverges'; echo 'millrace: rank 1 on far: is wrong'; exit 3" "${one[@]}"
says lines_that_are_not_known_are_passed_on 4 $'a warning\nrank 0 has something to say\nprocess rank 1 too\n'"[far:1] lost
millrace: mpirun ended with status 7; $goes_on" "echo 'a warning'; echo 'mpirun: Forwarding signal 10 to job'; echo '[far:1] lost'
    $(banner 'rank 0 has something to say') $(banner 'process rank 1 too') exit 7" "${one[@]}"
says a_long_line_is_whole 0 "$(printf '%4095s\n%4095s\n|' '' '')" "printf '%8190s|' ''; exit 0" "${one[@]}"
says what_has_no_end_is_said_too 4 $'first\nlast\nmillrace: mpirun ended with status 137; '"$goes_on" 'echo ----------; echo first; printf last; kill -KILL $$' "${one[@]}"
says hosts_are_mpiruns 0 "2 --hostfile $work/text $program train" 'echo "${@:5:5}"; exit 0' "${one[@]}" --hosts "$work/text"
mkdir "$work/$(printf '%040d' 0)"
for dir in '' "$work/$(printf '%040d' 0)"; do
    TMPDIR=$dir says "mpi_has_a_short_directory_${#dir}" 0 '/tmp' 'echo "${OMPI_MCA_orte_tmpdir_base%/millrace-??????}"; exit 0' "${one[@]}"
done
TMPDIR=$work/no says or_finds_one_itself 0 'none' 'echo "${OMPI_MCA_orte_tmpdir_base:-none}"; exit 0' "${one[@]}"
says who_keeps_its_standard_error_is_not_waited_for 0 '' "sleep 60 & echo \$! >'$work/sleeper'; exit 0" "${one[@]}"
kill "$(cat "$work/sleeper")"
says ctrl_c_without_a_word 130 "millrace: interrupted; $goes_on" 'trap "exit 1" USR1; kill -INT $PPID; while :; do sleep 0.1; done' "${one[@]}"
says ctrl_c_that_kills_a_rank 130 "millrace: interrupted; $goes_on" \
    "end() { $killed exit 137; }; "'trap end USR1; kill -INT $PPID; while :; do sleep 0.1; done' "${one[@]}"
says ctrl_c_twice_where_nothing_ends 130 "millrace: interrupted; $goes_on" \
    'trap "" TERM; trap "kill -INT \$PPID" USR1; kill -INT $PPID; while :; do sleep 0.1; done' "${one[@]}"
fake=(train tests/e2e/train/config/first.yaml)
says a_configuration_may_name_the_state 4 'millrace: mpirun ended with status 7; the directory of the state has the steps that were done' 'exit 7'

# ---- what cannot be
exits engines_and_standard_input 2 'each of them reads --data' "${words[@]}" --data - -o "$work/x" --steps 1 --engines 2
exits more_devices_than_engines 2 '3 devices, and there are 2 engines; --engines 3' "${words[@]}" "${data[@]}" -d model:tinyt,model:tinyt,model:sim,train -o "$work/x" --steps 1 --engines 2
exits a_device_for_each_and_one_engine 2 '2 devices, and there is 1 engine; --engines 2' "${words[@]}" "${data[@]}" -d model:tinyt,model:tinyt -o "$work/x" --steps 1
exits ranks_on_a_device_that_cannot_train 2 "^millrace: rank [01] on $(hostname): device cpu: cannot train: .*; model:sim can\$" "${words[@]}" "${data[@]}" -d cpu: -o "$work/x" --steps 1 --engines 2
exits hosts_of_a_file_that_is_not_there 3 "^millrace: --hosts $work/none: No such file or directory; " "${words[@]}" "${data[@]}" -o "$work/x" --steps 1 --engines 2 --hosts "$work/none"
exits hosts_of_a_directory 3 "^millrace: --hosts $work: Is a directory; " "${words[@]}" "${data[@]}" -o "$work/x" --steps 1 --engines 2 --hosts "$work"
exits devices_without_a_kind 2 "^millrace: rank 0 on $(hostname): model:tinyt,:x: ':x' is not an option; " "${words[@]}" "${data[@]}" -d model:tinyt,:x -o "$work/x" --steps 1 --engines 2
exits no_engines 2 'engines' "${words[@]}" "${data[@]}" -o "$work/x" --steps 1 --engines 0
# by_path PATH EXITS...: with another PATH for the program.
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
