# SPDX-License-Identifier: Apache-2.0
# Edges of SystemVerilog: reads the files twice, the second time with all=1, and prints "FROM TO NAME" for
# each module or package that a file instantiates or takes something from, and another one has.
function unit(f) { sub(/\.[a-z]+$/, "", f); return f }
{ sub(/\/\/.*/, "") }
!all {
    if (/^(module|package) /) {
        name = $2
        sub(/[^a-z_0-9].*/, "", name)
        where[name] = unit(FILENAME)
    }
    next
}
{
    line = $0
    while (match(line, /[a-z][a-z_0-9]*/)) {
        name = substr(line, RSTART, RLENGTH)
        line = substr(line, RSTART + RLENGTH)
        if (name in where && where[name] != unit(FILENAME)) print unit(FILENAME), where[name], name
    }
}
