# SPDX-License-Identifier: Apache-2.0
# Edges against the layers of folders: reads the layers' file (from the top; folders of one line do not
# use each other), then edges "FROM TO WHY" of tests/lint/edges.sh. Prints each edge that does not go
# down, and each folder that has no layer; the exit status is 1 then.
function folder(unit) { sub(/\/[^\/]*$/, "", unit); return unit }
FNR == NR {
    if ($0 !~ /^#/ && NF) {
        rank++
        for (i = 1; i <= NF; i++) {
            n = split($i, part, /[{,}]/) # FOLDER/{A,B} is FOLDER/A and FOLDER/B
            if (n == 1) layer[$i] = rank
            for (k = 2; k < n; k++) layer[part[1] part[k]] = rank
        }
    }
    next
}
{
    from = folder($1)
    to = folder($2)
    if (from == to) next
    for (i = 1; i <= 2; i++) {
        f = i == 1 ? from : to
        if (!(f in layer) && !(f in told)) {
            print f " has no layer: give it one in tests/lint/layers.txt and its page"
            told[f]
            bad = 1
        }
    }
    if (from in layer && to in layer && layer[from] >= layer[to]) {
        print $1 " uses " $2 " (" $3 "), which is " \
            (layer[from] == layer[to] ? "beside it" : "above it") " in tests/lint/layers.txt"
        bad = 1
    }
}
END { exit bad }
