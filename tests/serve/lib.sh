# SPDX-License-Identifier: Apache-2.0
# Sourced by the tests of `millrace serve`, behind tests/tools/tap.sh. $served: another model than the demo; start serves
# $subject, which is made of it here.
build=${BUILD:-build}
servers=
trap 'for p in $servers; do kill -9 "$p" 2>/dev/null; done; rm -rf "$work"' EXIT
subject=$work/demo.mill
"$millrace" pack "${served:-models/demo}" "$subject" -q || exit 1

# start OPTIONS...: a server on a free port; sets pid, port and url.
start() {
    : >"$work/address"
    "$millrace" serve "$subject" --port 0 "$@" >"$work/address" 2>"$work/log" &
    pid=$!
    servers="$servers $pid"
    for _ in $(seq 3000); do
        port=$(sed -n 's/.*:\([0-9]*\)$/\1/p' "$work/address")
        [ -n "$port" ] && break
        sleep 0.1
    done
    url=http://127.0.0.1:$port
}

# stop: SIGTERM; the server's status.
stop() {
    kill -TERM "$pid"
    wait "$pid"
}

json='Content-Type: application/json'
# ask BODY [CURL OPTIONS]: the response's body in $work/reply, headers in $work/head; prints the status.
ask() {
    local body=$1
    shift
    curl -s -m 600 -o "$work/reply" -D "$work/head" -w '%{http_code}' -H "${type:-$json}" "$@" --data-binary "$body" "$url/v1/completions"
}

# metric NAME: its value.
metric() {
    curl -s -m 600 "$url/metrics" | sed -n "s|^millrace_$1 ||p"
}

# until_metric NAME OPERATOR VALUE: waits for it, for some minutes.
until_metric() {
    local now
    for _ in $(seq 3000); do
        now=$(metric "$1")
        [ -n "$now" ] && [ "$now" "$2" "$3" ] && return 0
        sleep 0.1
    done
    echo "# $1 is '$now', waited for $2 $3"
    return 1
}

# finished: texts that have come to an end, whatever ended them. accepted: those, and all that are to come.
finished() { curl -s -m 600 "$url/metrics" | awk '/^millrace_sequences_finished_total/ { n += $2 } END { print n + 0 }'; }
accepted() { curl -s -m 600 "$url/metrics" | awk '/^millrace_sequences_(finished_total|running|waiting)/ { n += $2 } END { print n + 0 }'; }
# until_at_least WHAT VALUE: until one of these is at least that, for some minutes.
until_at_least() {
    for _ in $(seq 3000); do
        [ "$("$1")" -lt "$2" ] || return 0
        sleep 0.1
    done
    echo "# $1: $("$1"), waited for $2"
    return 1
}

# until_refused: waits until the server takes no connections any more, for some minutes.
until_refused() {
    for _ in $(seq 3000); do
        kill -0 "$pid" 2>/dev/null || return 0
        { exec 9<>"/dev/tcp/127.0.0.1/$port"; } 2>/dev/null || return 0
        exec 9>&-
        sleep 0.1
    done
    return 1
}

# toy_encoder: $subject becomes a small BERT.
toy_encoder() {
    . tests/tools/bert.sh
    encoder toy BertModel
    subject=$work/toy
}
