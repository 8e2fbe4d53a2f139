# SPDX-License-Identifier: Apache-2.0
# Draws the rows of tests/train/scale.sh, which docs/inside/performance.md has: hours for a million tokens by a model's
# parameters, both on scales of powers of ten, a line a device.
# usage: awk -F' *[|] *' -f scale.awk docs/inside/performance.md
/^\| [a-z0-9.-]+ \| [0-9.]+ \| `/ {
    if (!($4 in points)) { order[++devices] = $4 }
    i = ++points[$4]
    name[$4, i] = $2; size[$4, i] = $3; hours[$4, i] = $8
}
function log10(x) { return log(x) / log(10) }
function x_of(v) { return left + wide * (log10(v) + 1) / 3.4 }
function y_of(v) { return bottom - tall * (log10(v) + 1) / 3 }
function text(x, y, class, anchor, words) { printf "<text x=\"%.1f\" y=\"%.1f\" class=\"%s\" text-anchor=\"%s\">%s</text>\n", x, y, class, anchor, words }
function path(class, colour, d) { printf "<path class=\"%s\" stroke=\"%s\" d=\"%s\"/>\n", class, colour, d }
function axes(   e, m) {
    for (e = -1; e <= 2; e++) {
        path("g", "#dfe4ea", sprintf("M%g %.1fH%g", left, y_of(10 ^ e), left + wide))
        text(left - 8, y_of(10 ^ e) + 4, "s", "end", 10 ^ e)
    }
    for (e = -1; e <= 2; e++) {
        path("g", "#26364a", sprintf("M%.1f %gv5", x_of(10 ^ e), bottom))
        text(x_of(10 ^ e), bottom + 20, "s", "middle", 10 ^ e)
    }
    path("g", "#26364a", sprintf("M%g %gV%gH%g", left, bottom - tall, bottom, left + wide))
    text(left + wide, bottom + 40, "s", "end", "parameters, in billions")
    text(left, bottom - tall - 18, "t", "start", "hours for 1.024 million tokens, planned")
}
END {
    split("#0b6e99 #c2410c", colours, " ")
    left = 70; bottom = 380; tall = 320; wide = 660
    print "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 800 450\" width=\"800\" height=\"450\" role=\"img\" aria-labelledby=\"title\">"
    print "<title id=\"title\">Hours for a million tokens of training, by parameters</title>"
    print "<style>\ntext { font-family: \"DejaVu Sans\", Verdana, Arial, sans-serif; fill: #16202c; }"
    print ".t { font-size: 14px; font-weight: bold; } .s { font-size: 12px; } .n { font-size: 11px; }"
    print "path { fill: none; } .g { stroke-width: 1; } .d { stroke-width: 1.6; }\n</style>"
    print "<rect x=\"0.5\" y=\"0.5\" width=\"799\" height=\"449\" rx=\"12\" fill=\"#ffffff\" stroke=\"#8a94a3\"/>"
    axes()
    for (k = 1; k <= devices; k++) {
        n = order[k]; d = ""
        for (i = 1; i <= points[n]; i++) {
            x = x_of(size[n, i]); y = y_of(hours[n, i])
            d = d (i > 1 ? "L" : "M") sprintf("%.1f %.1f", x, y)
            printf "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"3.5\" fill=\"%s\"/>\n", x, y, colours[k]
        }
        path("d", colours[k], d)
        gsub(/`/, "", n)
        path("d", colours[k], sprintf("M110 %gh40", 52 + 20 * k)); text(160, 56 + 20 * k, "s", "start", n)
    }
    # Names stand beside the points of the device that holds most models, away from its line and each other.
    n = order[devices]
    split("gpt2 start 2 18 gpt3-xl start 2 18 cerebras-2.7b start -8 18 gptj-6b start 4 18 cerebras-6.7b start 10 8 " \
          "cerebras-13b start 4 18 gpt3-175b end -10 0", place, " ")
    for (k = 1; k in place; k += 4)
        for (i = 1; i <= points[n]; i++)
            if (name[n, i] == place[k])
                text(x_of(size[n, i]) + place[k + 2], y_of(hours[n, i]) + place[k + 3], "n", place[k + 1], place[k])
    print "</svg>"
}
