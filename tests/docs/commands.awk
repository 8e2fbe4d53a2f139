# SPDX-License-Identifier: Apache-2.0
# Takes the commands of a page apart: for the n-th command DIR/n.cmd (the command), DIR/n.want (the
# lines that the page shows behind it) and a line on stdout: n, line in the page, status, when, why.
# usage: awk -v dir=DIR -f tests/docs/commands.awk PAGE
#
# A command is a line "$ COMMAND" of a ```console block; it goes on in lines right behind it that begin
# with "> ". What may stand in front of the block, on a line of its own:
#   <!-- docs: slow -->              not in `make test`, but in `make test-full`
#   <!-- docs: status 3 -->          the commands end with this status (0 if nothing is said)
#   <!-- docs: not here: REASON -->  cannot be run here; counted with its reason
function finish() {
    if (n == 0 || !open) return
    close(dir "/" n ".cmd")
    close(dir "/" n ".want")
    if (shown ~ /\[\.\.\.\]/ && shown ~ /^(\[?\.\.\.\]?\n)+$/) {
        printf "%s:%d: output that is [...] alone shows nothing: leave it out, or say more\n", FILENAME, line >"/dev/stderr"
        bad = 1
    }
    shown = ""
    printf "%d\t%d\t%d\t%s\t%s\n", n, line, status, when, why
    open = 0
}
function forget() { mark = ""; status = 0; when = "quick"; why = "-" }
BEGIN { forget() }
/^ *<!-- docs: .* -->$/ && !block {
    mark = $0
    sub(/^ *<!-- docs: /, "", mark)
    sub(/ -->$/, "", mark)
    if (mark ~ /^not here: ./) { when = "never"; why = substr(mark, 11) }
    else {
        k = split(mark, parts, /, */)
        for (i = 1; i <= k; i++) {
            if (parts[i] == "slow") when = "slow"
            else if (parts[i] ~ /^status [0-9]+$/) status = substr(parts[i], 8)
            else { printf "%s:%d: not understood: %s\n", FILENAME, FNR, parts[i] >"/dev/stderr"; bad = 1 }
        }
    }
    next
}
/^ *```/ {
    if (block) { finish(); block = 0; forget() }
    else {
        block = $0 ~ /^ *```console *$/ ? 2 : 1
        match($0, /^ */)
        indent = RLENGTH
        if (block == 1) forget()
    }
    next
}
block == 2 {
    text = substr($0, indent + 1)
    if (text ~ /^\$ /) {
        finish()
        n++
        open = 1
        line = FNR
        command = substr(text, 3)
        print command >(dir "/" n ".cmd")
        printf "" >(dir "/" n ".want")
        more = 1
    } else if (more && text ~ /^> /) print substr(text, 3) >(dir "/" n ".cmd")
    else if (open) { print text >(dir "/" n ".want"); shown = shown text "\n"; more = 0 }
    else { printf "%s:%d: output without a command\n", FILENAME, FNR >"/dev/stderr"; bad = 1 }
    next
}
!block && !/^ *$/ && mark != "" {
    printf "%s:%d: the mark \"%s\" has no console block\n", FILENAME, FNR, mark >"/dev/stderr"
    bad = 1
    forget()
}
END {
    if (block) { printf "%s: a block has no end\n", FILENAME >"/dev/stderr"; bad = 1 }
    exit bad
}
