# SPDX-License-Identifier: Apache-2.0
# The search index of the site: a row for each heading with the text below it.
function text_of(s) {
    gsub(/\]\([^)]*\)/, "", s)
    gsub(/[`\[\]]|\*\*/, "", s)
    gsub(/[*|#]/, " ", s)
    gsub(/<!--[^>]*-->/, "", s)
    gsub(/\\|---+/, " ", s)
    gsub(/"/, "\\\"", s)
    gsub(/</, "\\x3c", s)
    gsub(/[\t ]+/, " ", s)
    gsub(/ \)/, ")", s)
    gsub(/ ,/, ",", s)
    gsub(/ ;/, ";", s)
    gsub(/ : /, ": ", s)
    gsub(/ \. /, ". ", s)
    return s
}
function slug(s) {
    gsub(/\]\([^)]*\)/, "", s)
    s = tolower(s)
    gsub(/[^a-z0-9 _-]/, "", s)
    gsub(/ /, "-", s)
    return s
}
function emit() {
    if (heading != "") printf "[\"%s%s\",\"%s\",\"%s\",\"%s\"],\n", url, id, text_of(title), text_of(heading), text_of(body)
    body = ""
}
BEGIN { print "const SEARCH_INDEX = [" }
FNR == 1 {
    emit()
    heading = ""
    fence = 0
    url = FILENAME
    sub(/\.md$/, ".html", url)
    sub(/README\.html$/, "index.html", url)
    split("", seen)
}
/^ *```/ { fence = !fence; next }
!fence && /^#+ / {
    emit()
    level = index($0, " ") - 1
    heading = substr($0, level + 2)
    if (level == 1) title = heading
    s = slug(heading)
    id = "#" s (seen[s]++ ? "-" seen[s] - 1 : "")
    next
}
{ body = body " " $0 }
END { emit(); print "];" }
