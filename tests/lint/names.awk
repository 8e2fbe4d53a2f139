# SPDX-License-Identifier: Apache-2.0
# Who uses whom, by the text of C and C++ files: "FROM TO SYMBOL" for each function or object that one file defines for
# others, at column 0, and another one names. For files that no build has as objects everywhere. A name that a file has
# of its own (static, or in a namespace without a name) is not another's; one that several define for others is nobody's.
# usage: awk -f names.awk FILE..
function unit(f) { sub(/\.[a-z]+$/, "", f); return f }
# What the line defines, "" when it is nothing that has a name.
function defined(line,    name) {
    if (line !~ /^[a-z]/ || line ~ /^(extern [^"]|typedef |enum [^(]*\{|namespace |using |template )/) return ""
    sub(/^extern "C" /, "", line)
    if (line ~ /^[^(=]*;[ \t]*$/) sub(/(\[[^\]]*\])*;[ \t]*$/, "(", line) # an object without a value
    else if (line ~ /;[ \t]*$/ && line !~ / = /) return ""                 # a declaration
    if (!match(line, /[A-Za-z_][A-Za-z_0-9]*((\[[^\]]*\])* = |\()/)) return ""
    name = substr(line, RSTART, RLENGTH)
    sub(/[^A-Za-z_0-9].*/, "", name)
    return name
}
FNR == 1 { n = unit(FILENAME); comment = inner = 0 }
{
    line = $0
    gsub(/"([^"\\]|\\.)*"/, "\"\"", line)
    sub(/\/\/.*/, "", line)
    if (comment && !sub(/^.*\*\//, "", line)) next
    comment = 0
    gsub(/\/\*([^*]|\*[^\/])*\*\//, "", line)
    if (sub(/\/\*.*/, "", line)) comment = 1
    if (line ~ /^#/) next
    if (line ~ /^namespace[ \t]*(\{|$)/) inner = 1
    if ($0 ~ /^\} \/\/ namespace/) inner = 0
    name = defined(line)
    if (name != "" && (inner || line ~ /^static/)) own[n, name]
    else if (name != "") { if (owner[name] != n) owners[name]++; owner[name] = n }
    while (match(line, /[A-Za-z_][A-Za-z_0-9]*/)) {
        uses[n SUBSEP substr(line, RSTART, RLENGTH)]
        line = substr(line, RSTART + RLENGTH)
    }
}
END {
    for (u in uses) {
        split(u, part, SUBSEP)
        if (owners[part[2]] == 1 && owner[part[2]] != part[1] && !((part[1], part[2]) in own))
            print part[1], owner[part[2]], part[2]
    }
}
