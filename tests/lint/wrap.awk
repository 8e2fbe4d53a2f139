# SPDX-License-Identifier: Apache-2.0
# A page with its paragraphs and items broken anew at 100 columns; code, tables, headings and
# quotations stay.
# usage: awk -f tests/lint/wrap.awk PAGE >new && mv new PAGE
function flush_text(    n, w, i, line, indent, first, unit, ticks) {
    if (text == "") return
    indent = hang
    line = lead
    first = 1
    n = split(text, w, / +/)
    unit = ""
    for (i = 1; i <= n; i++) {
        if (w[i] == "") continue
        unit = unit == "" ? w[i] : unit " " w[i]
        # A code span stays in one piece.
        ticks = unit
        if (gsub(/`/, "", ticks) % 2 && i < n) continue
        if (!first && length(line) + 1 + length(unit) > 100) {
            print line
            line = indent unit
        } else line = first ? line unit : line " " unit
        first = 0
        unit = ""
    }
    if (unit != "") line = line " " unit
    print line
    text = ""
}
/^ *```/ { flush_text(); fence = !fence; print; blank = 0; next }
fence { print; next }
/^ *$/ { flush_text(); print; blank = 1; next }
/^\|/ || /^[#>]/ || /^ *</ || /^!\[/ || /^ *\|/ { flush_text(); print; blank = 0; if (/^#/) list = 0; next }
/^    / && blank && !list { flush_text(); print; next }
/^ *([-*]|[0-9]+\.) / {
    flush_text()
    match($0, /^ *([-*]|[0-9]+\.) /)
    lead = substr($0, 1, RLENGTH)
    hang = sprintf("%" RLENGTH "s", "")
    text = substr($0, RLENGTH + 1)
    list = 1
    blank = 0
    next
}
{
    if (text == "") {
        match($0, /^ */)
        lead = hang = substr($0, 1, RLENGTH)
        if (RLENGTH == 0) list = 0
    }
    stripped = $0
    sub(/^ +/, "", stripped)
    text = text (text == "" ? "" : " ") stripped
    blank = 0
}
END { flush_text() }
