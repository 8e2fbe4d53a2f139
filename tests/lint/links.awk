# SPDX-License-Identifier: Apache-2.0
# Links between the pages: files that are not there, headings that are not there; sections that are there twice.
# Without network.
# usage: awk -f tests/lint/links.awk PAGE...      (from the root; prints place and fault)
# A heading's anchor is made as GitHub does it: small letters, no punctuation, hyphens for blanks.
function slug(text) {
    gsub(/\]\([^)]*\)/, "", text)
    text = tolower(text)
    gsub(/[^a-z0-9 _-]/, "", text)
    gsub(/ /, "-", text)
    return text
}
function normal(path,    n, parts, i, k, out) {
    n = split(path, parts, "/")
    k = 0
    for (i = 1; i <= n; i++) {
        if (parts[i] == "." || parts[i] == "") continue
        if (parts[i] == ".." && k > 0 && kept[k] != "..") k--
        else kept[++k] = parts[i]
    }
    for (i = 1; i <= k; i++) out = out (i > 1 ? "/" : "") kept[i]
    return out
}
FNR == 1 { fence = 0; page[FILENAME] = 1; dir = FILENAME; if (!sub(/\/[^\/]*$/, "", dir)) dir = "" }
/^ *```/ { fence = !fence; next }
fence { next }
/^#+ / {
    heading = $0
    sub(/^#+ +/, "", heading)
    s = slug(heading)
    again = seen[FILENAME, s]++
    if (again && /^## /) print FILENAME ":" FNR ": a second section " heading
    anchor[FILENAME "#" s (again ? "-" again : "")] = 1
}
{
    line = $0
    while (match(line, /<a (id|name)="[^"]*">/)) {
        tag = substr(line, RSTART, RLENGTH)
        line = substr(line, RSTART + RLENGTH)
        sub(/^[^"]*"/, "", tag)
        sub(/".*/, "", tag)
        anchor[FILENAME "#" tag] = 1
    }
    line = $0
    gsub(/`[^`]*`/, "code", line)
    while (match(line, /\]\([^) ]+\)/)) {
        target = substr(line, RSTART + 2, RLENGTH - 3)
        line = substr(line, RSTART + RLENGTH)
        if (target ~ /^[a-z]+:/) continue
        file = target
        fragment = ""
        if ((at = index(target, "#")) > 0) { file = substr(target, 1, at - 1); fragment = substr(target, at + 1) }
        file = file == "" ? FILENAME : normal((dir == "" ? "" : dir "/") file)
        links++
        where[links] = FILENAME ":" FNR
        to[links] = file
        part[links] = fragment
    }
}
END {
    for (i = 1; i <= links; i++) {
        if (system("test -e '" to[i] "'") != 0) print where[i] ": " to[i] " is not there"
        else if (part[i] != "" && to[i] ~ /\.md$/ && page[to[i]] && !((to[i] "#" part[i]) in anchor))
            print where[i] ": " to[i] " has no heading #" part[i]
    }
    if (links == 0) print "no links at all"
}
