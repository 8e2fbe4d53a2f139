# SPDX-License-Identifier: Apache-2.0
# Draws the pictures of docs/: NAME.txt -> SVG on standard output. usage: awk -f draw.awk NAME.txt
# A line of NAME.txt is one thing; numbers are pixels, fields after "|" are texts, # begins a comment.
#   size W H | TITLE | DESCRIPTION        first line; the description is read to who cannot see it
#   box X Y W H KIND | BOLD | line ...    KIND: unit, mem (memory), host, note, hot, plain
#   text X Y [start|middle|end] [t|s|l|m] | TEXT      t bold, s small, l grey, m monospace
#   arrow X,Y X,Y ...                     with a head at its end;  line X,Y X,Y ...  without
#   dash X,Y X,Y ...                      dashed, without a head
#   wave X Y DX | NAME | PATTERN          a signal, DX a character: 0 and 1 low and high, - nothing,
#                                         "(" to ")" a value whose text stands between them ("_" fills,
#                                         "`" is an underscore)
# The card is light on purpose, so that it is readable on light and dark pages.
BEGIN {
    FS = " *\\| *"
    fill["unit"] = "#e8eef7"; stroke["unit"] = "#2b4a78"
    fill["hot"] = "#dfe6fb"; stroke["hot"] = "#2b4a78"
    fill["mem"] = "#e9f3e6"; stroke["mem"] = "#3f6b36"
    fill["host"] = "#f6eedd"; stroke["host"] = "#7a5a1c"
    fill["note"] = "#f7f8fa"; stroke["note"] = "#8a94a3"
    fill["plain"] = "#ffffff"; stroke["plain"] = "#8a94a3"
    fill["code"] = "#fbe9e2"; stroke["code"] = "#8f4a2a"
}
function esc(s) { gsub(/&/, "\\&amp;", s); gsub(/</, "\\&lt;", s); gsub(/>/, "\\&gt;", s); return s }
function words(s) { return split(s, a, / +/) }
function label(x, y, anchor, class, s) {
    printf "<text x=\"%s\" y=\"%s\" class=\"%s\" text-anchor=\"%s\">%s</text>\n", x, y, class, anchor, esc(s)
}
function poly(n, class,    i, p) {
    for (i = 2; i <= n; i++) p = p (i > 2 ? " " : "") a[i]
    printf "<polyline class=\"%s\"%s points=\"%s\"/>\n", class, class == "a" ? " marker-end=\"url(#h)\"" : "", p
}
/^ *(#|$)/ { next }
/^size / {
    words($1)
    printf "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" width=\"%d\" height=\"%d\" role=\"img\" aria-labelledby=\"title desc\">\n", a[2], a[3], a[2], a[3]
    printf "<title id=\"title\">%s</title>\n<desc id=\"desc\">%s</desc>\n", esc($2), esc($3)
    print "<style>"
    print "text { font-family: \"DejaVu Sans\", Verdana, Arial, sans-serif; fill: #16202c; }"
    print ".t { font-size: 14px; font-weight: bold; } .s { font-size: 12px; } .l { font-size: 12px; fill: #3a4757; }"
    print ".m { font-size: 12px; font-family: \"DejaVu Sans Mono\", Menlo, Consolas, monospace; }"
    print ".a, .n { fill: none; stroke: #26364a; stroke-width: 1.8; } .d { fill: none; stroke: #8a94a3; stroke-width: 1.4; stroke-dasharray: 5 4; }"
    print ".w { fill: none; stroke: #2b4a78; stroke-width: 1.8; } .v { fill: #e8eef7; stroke: #2b4a78; stroke-width: 1.4; }"
    print "</style>"
    print "<defs><marker id=\"h\" viewBox=\"0 0 10 10\" refX=\"9\" refY=\"5\" markerWidth=\"7\" markerHeight=\"7\" orient=\"auto\"><path d=\"M0 0L10 5L0 10z\" fill=\"#26364a\"/></marker></defs>"
    printf "<rect x=\"0.5\" y=\"0.5\" width=\"%d\" height=\"%d\" rx=\"12\" fill=\"#ffffff\" stroke=\"#8a94a3\"/>\n", a[2] - 1, a[3] - 1
    next
}
/^box / {
    words($1)
    x = a[2]; y = a[3]; w = a[4]; h = a[5]; kind = a[6]
    if (!(kind in fill)) { print FILENAME ":" FNR ": unknown kind " kind >"/dev/stderr"; exit 1 }
    printf "<rect x=\"%s\" y=\"%s\" width=\"%s\" height=\"%s\" rx=\"6\" fill=\"%s\" stroke=\"%s\" stroke-width=\"1.5\"/>\n", x, y, w, h, fill[kind], stroke[kind]
    lines = NF - 1
    if (lines == 1 && $2 == "") next
    top = y + h / 2 - (lines - 1) * 8.5 + 4.5
    for (i = 2; i <= NF; i++) if ($i != "") label(x + w / 2, top + (i - 2) * 17, "middle", i == 2 ? "t" : "s", $i)
    next
}
/^text / { words($1); label(a[2], a[3], a[4] == "" ? "start" : a[4], a[5] == "" ? "s" : a[5], $2); next }
/^arrow / { poly(words($1), "a"); next }
/^line / { poly(words($1), "n"); next }
/^dash / { poly(words($1), "d"); next }
/^wave / {
    words($1)
    x = a[2]; y = a[3]; dx = a[4]
    label(x - 10, y + 15, "end", "m", $2)
    path = ""
    n = length($3)
    for (i = 1; i <= n; i++) {
        c = substr($3, i, 1)
        if (c == "0" || c == "1") {
            level = y + (c == "1" ? 2 : 20)
            path = path (path == "" ? "M" : "L") x " " level "L" x + dx " " level
            x += dx
        } else if (c == "(") {
            if (path != "") { printf "<path class=\"w\" d=\"%s\"/>\n", path; path = "" }
            close_at = index(substr($3, i), ")")
            inside = substr($3, i + 1, close_at - 2)
            width = (length(inside) + 2) * dx
            printf "<path class=\"v\" d=\"M%s %sl4 -9H%sl4 9l-4 9H%sz\"/>\n", x, y + 11, x + width - 4, x + 4
            gsub(/_/, " ", inside)
            gsub(/`/, "_", inside)
            gsub(/^ +| +$/, "", inside)
            label(x + width / 2, y + 15, "middle", "s", inside)
            x += width
            i += close_at - 1
        } else if (c == "-") {
            path = path (path == "" ? "M" : "L") x " " y + 11 "L" x + dx " " y + 11
            x += dx
        }
    }
    if (path != "") printf "<path class=\"w\" d=\"%s\"/>\n", path
    next
}
{ print FILENAME ":" FNR ": not understood: " $0 >"/dev/stderr"; exit 1 }
END { print "</svg>" }
