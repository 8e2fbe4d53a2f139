# SPDX-License-Identifier: Apache-2.0
# Work of minutes that is silent by itself says what it is, and every 30 s how long it has taken. SAY_EVERY is for tests.

# The command's status is this one's, and its output is thrown away.
while_saying() { # words command...
    local words=$1 from=$SECONDS every=${SAY_EVERY:-30} pid next
    shift
    echo "# $words"
    "$@" >/dev/null &
    pid=$!
    # A shell's background commands do not hear Ctrl-C.
    trap 'kill $pid 2>/dev/null; exit 130' INT
    for ((next = every; ; next += every)); do
        while kill -0 $pid 2>/dev/null && ((SECONDS - from < next)); do sleep 0.5; done
        kill -0 $pid 2>/dev/null || break
        echo "# $words, $((SECONDS - from)) s"
    done
    trap - INT
    wait $pid
}
