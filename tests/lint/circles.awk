# SPDX-License-Identifier: Apache-2.0
# Circles of a graph. Reads edges "FROM TO WHY..." and prints every circle (strongly connected
# component of more than one node): its nodes on one line, then the edges among them with their
# reasons, indented. Edges from a node to itself do not count. Prints nothing when there is none.
# The exit status is 1 when there is a circle. Tarjan's algorithm.
$1 != $2 && NF >= 2 {
    from = $1; to = $2
    $1 = $2 = ""
    sub(/^ +/, "")
    if (!((from, to) in why)) {
        out[from] = out[from] " " to
        why[from, to] = $0
    } else if ($0 != "" && count[from, to] < 8)
        why[from, to] = why[from, to] ", " $0
    count[from, to]++
    node[from]; node[to]
}

function visit(v,    n, i, next_of, w, size, member) {
    low[v] = at[v] = ++time
    stack[++depth] = v
    waits[v] = 1
    n = split(out[v], next_of, " ")
    for (i = 1; i <= n; i++) {
        w = next_of[i]
        if (!(w in at)) {
            visit(w)
            if (low[w] < low[v]) low[v] = low[w]
        } else if (waits[w] && at[w] < low[v])
            low[v] = at[w]
    }
    if (low[v] != at[v]) return
    size = 0
    do {
        w = stack[depth--]
        waits[w] = 0
        member[++size] = w
    } while (w != v)
    if (size > 1) report(member, size)
}

function report(member, size,    i, k, line, w, inside, n, next_of) {
    circles++
    for (i = 2; i <= size; i++) { # names in order, so that the same circle is the same text
        w = member[i]
        for (k = i - 1; k > 0 && member[k] > w; k--) member[k + 1] = member[k]
        member[k + 1] = w
    }
    for (i = 1; i <= size; i++) {
        inside[member[i]]
        line = line " " member[i]
    }
    print "circle of " size ":" line
    for (i = 1; i <= size; i++) {
        n = split(out[member[i]], next_of, " ")
        for (k = 1; k <= n; k++)
            if (next_of[k] in inside)
                print "  " member[i] " -> " next_of[k] ": " why[member[i], next_of[k]]
    }
}

END {
    for (v in node)
        if (!(v in at)) visit(v)
    exit circles > 0
}
