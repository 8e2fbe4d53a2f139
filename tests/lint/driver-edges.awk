# SPDX-License-Identifier: Apache-2.0
# Who uses whom in driver/: "user used symbol" for each symbol of one file that another one names, and for each header that
# it includes. A file is a .c with its .h; millrace.h (types), millrace_hw.h and hw.h (registers) are everybody's.
# usage: awk -f driver-edges.awk driver/*.c driver/*.h
function node(file) {
    sub(/.*\//, "", file)
    sub(/\.[ch]$/, "", file)
    return file
}
function everybodys(n) { return n == "millrace" || n == "millrace_hw" || n == "hw" }
# What the line at column 0 defines, "" when it is nothing that others can see.
function defined(line, header,    name) {
    if (match(line, /^TRACE_EVENT\(millrace_[a-z0-9_]+/)) return "trace_" substr(line, 13, RLENGTH - 12)
    # What others may use of a header is named there and stands elsewhere, but for inline functions.
    if (header && line !~ /^static inline /) return ""
    if (line !~ /^[a-z]/ || line ~ /^extern / || (line ~ /;[ \t]*$/ && line !~ / = /)) return ""
    if (line ~ /^static/ && !(header && line ~ /^static inline /)) return ""
    gsub(/(struct|enum|union) millrace_[a-z0-9_]+/, "", line)
    if (!match(line, /millrace_[a-z0-9_]+(\(|\[\] = | = \{)/)) return ""
    name = substr(line, RSTART, RLENGTH)
    sub(/(\(|\[\] = | = \{)$/, "", name)
    return name
}
FNR == 1 { n = node(FILENAME); header = FILENAME ~ /\.h$/; comment = 0 }
{
    line = $0
    if (!comment && match(line, /^#include "[a-z_]+\.h"/)) {
        used = node(substr(line, 11, RLENGTH - 11))
        if (used != n && !everybodys(used) && !everybodys(n)) edge[n " " used " " used ".h"]
    }
    # Without strings and comments, of which none begins behind another's end on a line here.
    gsub(/"([^"\\]|\\.)*"/, "", line)
    if (comment) {
        if (!sub(/^.*\*\//, "", line)) next
        comment = 0
    }
    gsub(/\/\*([^*]|\*[^\/])*\*\//, "", line)
    if (sub(/\/\*.*/, "", line)) comment = 1
    name = defined(line, header)
    if (name != "") owner[name] = n
    gsub(/(struct|enum|union) millrace_[a-z0-9_]+/, "", line)
    while (match(line, /(trace_)?millrace_[a-z0-9_]+/)) {
        uses[n " " substr(line, RSTART, RLENGTH)]
        line = substr(line, RSTART + RLENGTH)
    }
}
END {
    for (u in uses) {
        split(u, part, " ")
        if (part[2] in owner && owner[part[2]] != part[1] && !everybodys(owner[part[2]]) && !everybodys(part[1]))
            edge[part[1] " " owner[part[2]] " " part[2]]
    }
    for (e in edge) print e
}
