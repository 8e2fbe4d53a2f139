# SPDX-License-Identifier: Apache-2.0
# The structures of host/python/millrace.py against those of millrace.h: class _LoadOptions has the
# fields of struct mr_load_options, in their order. Prints what differs. The names of types must be
# right in both, and are not looked at.
# usage: awk -f binding.awk host/include/millrace.h host/python/millrace.py

# ---- the header: struct NAME { ... };
FILENAME ~ /\.h$/ {
    sub(/\/\/.*/, "")
    if (match($0, /^struct [a-z_]+ \{/)) { name = $2; next }
    if ($0 ~ /^\};/) name = ""
    if (name == "" || NF == 0) next
    line = line $0
    if (line !~ /;[ \t]*$/) next
    while (match(line, /\([^()*][^()]*\)/)) # what a function takes
        line = substr(line, 1, RSTART - 1) substr(line, RSTART + RLENGTH)
    gsub(/\[[^]]*\]|[;()*]/, " ", line)
    n = split(line, part, ",")
    for (i = 1; i <= n; i++) {
        m = split(part[i], word, " ")
        header[name] = header[name] " " word[m]
    }
    line = ""
    next
}

# ---- the binding: class _Name(Structure): _fields_ = ... with the names in quotes
/^class / { class = ""; fields = 0 }
match($0, /^class _[A-Za-z]+\(Structure\)/) {
    class = substr($2, 2)
    sub(/\(.*/, "", class)
    name = "mr"
    while (match(class, /[A-Z]/)) {
        rest = substr(class, RSTART + 1)
        stop = match(rest, /[A-Z]/) ? RSTART : length(rest) + 1
        name = name "_" tolower(substr(class, 1, length(class) - length(rest))) substr(rest, 1, stop - 1)
        class = substr(rest, stop)
    }
    class = name
    classes[++n_classes] = name
}
/_fields_ =/ { fields = class != "" }
/^$/ { fields = 0 }
fields {
    s = $0
    while (match(s, /"[a-z_0-9]+"/)) {
        binding[class] = binding[class] " " substr(s, RSTART + 1, RLENGTH - 2)
        s = substr(s, RSTART + RLENGTH)
    }
}
END {
    for (i = 1; i <= n_classes; i++) {
        name = classes[i]
        if (!(name in header)) print "millrace.h has no struct " name
        else if (binding[name] != header[name])
            printf "struct %s has%s\n    and millrace.py has%s\n", name, header[name], binding[name]
    }
    if (!n_classes) print "no structures in millrace.py"
}
