# SPDX-License-Identifier: Apache-2.0
# Draws lines "name,seed,step,fp32,device" (tests/train/learn.c) as SVG, a panel a name: fp32 wide and pale, the device
# thin above it, so that both are seen where one covers the other.
# usage: awk -F, [-v reference=PyTorch] [-v what="accuracy, %"] -f curves.awk LINES; or what `make test-interop
# INTEROP_TESTS=scratch` prints
BEGIN { if (!what) { what = "loss of the held-out part"; title = "Held-out losses" } else title = "Held-out " what }
/^# step .* held out .* in PyTorch, .* on model:/ {
    split($0, w, " ")
    $0 = "4.2 million parameters,1," w[3] + 0 "," w[6] "," w[9]
}
/^#/ || NF != 5 { next } # unigram entropies have four, losses of steps six
{
    if (!($1 in panel)) { panel[$1] = ++panels; name[panels] = $1; high[$1] = low[$1] = $4 }
    if (!(($1, $2) in curve)) { curve[$1, $2] = ++curves[$1]; seed[$1, curves[$1]] = $2 }
    i = ++points[$1, $2]
    at[$1, $2, i] = $3; value[$1, $2, i, "fp32"] = $4; value[$1, $2, i, "device"] = $5
    for (k = 4; k <= 5; k++) { if ($k > high[$1]) high[$1] = $k; if ($k < low[$1]) low[$1] = $k }
    if ($3 > last[$1]) last[$1] = $3
}
# 1, 2 or 5 times a power of ten, so that about `n` of them make `range`.
function tick(range, n,   t) {
    t = 10 ^ int(log(range / n) / log(10) - (range < n))
    return range / t > 5 * n ? 5 * t : range / t > 2 * n ? 2 * t : t
}
function text(x, y, class, anchor, words) { printf "<text x=\"%g\" y=\"%g\" class=\"%s\" text-anchor=\"%s\">%s</text>\n", x, y, class, anchor, words }
function path(class, colour, d) { printf "<path class=\"%s\" stroke=\"%s\" d=\"%s\"/>\n", class, colour, d }
function line(n, s, which,   i, d) {
    for (i = 1; i <= points[n, s]; i++) d = d (i > 1 ? "L" : "M") sprintf("%.1f %.1f", x_of(n, at[n, s, i]), y_of(value[n, s, i, which]))
    return d
}
function x_of(n, step) { return left + wide * step / last[n] }
function y_of(v) { return bottom - tall * (v - from) / (to - from) }
function axes(n,   t, v, digits) {
    t = tick(high[n] - low[n], 5)
    from = t * int(low[n] / t); to = t * (int(high[n] / t) + (high[n] > t * int(high[n] / t)))
    digits = t < 0.1 ? 2 : t < 1 ? 1 : 0
    for (v = from; v <= to + t / 2; v += t) {
        path("g", "#dfe4ea", sprintf("M%g %.1fH%g", left, y_of(v), left + wide))
        text(left - 8, y_of(v) + 4, "s", "end", sprintf("%.*f", digits, v))
    }
    t = tick(last[n], 4)
    for (v = 0; v <= last[n]; v += t) {
        path("g", "#26364a", sprintf("M%.1f %gv5", x_of(n, v), bottom))
        text(x_of(n, v), bottom + 20, "s", "middle", v)
    }
    path("g", "#26364a", sprintf("M%g %gV%gH%g", left, bottom - tall, bottom, left + wide))
    text(left + wide, bottom + 38, "s", "end", "steps")
    text(left, bottom - tall - 18, "t", "start", n ": " what)
}
END {
    split("#0b6e99 #c2410c #4d7c0f", colours, " ")
    tall = 270; bottom = 350; full = 1180; wide = (full - 40 - 80 * panels) / panels
    printf "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d 430\" width=\"%d\" height=\"430\" role=\"img\" aria-labelledby=\"title\">\n", full, full
    print "<title id=\"title\">" title ", in fp32 and on the C model</title>"
    print "<style>\ntext { font-family: \"DejaVu Sans\", Verdana, Arial, sans-serif; fill: #16202c; }"
    print ".t { font-size: 14px; font-weight: bold; } .s { font-size: 12px; }"
    print "path { fill: none; } .g { stroke-width: 1; } .f { stroke-width: 7; stroke-opacity: 0.25; stroke-linejoin: round; } .d { stroke-width: 1.4; }\n</style>"
    printf "<rect x=\"0.5\" y=\"0.5\" width=\"%d\" height=\"429\" rx=\"12\" fill=\"#ffffff\" stroke=\"#8a94a3\"/>\n", full - 1
    for (k = 1; k <= panels; k++) {
        n = name[k]; left = 70 + (wide + 80) * (k - 1)
        axes(n)
        for (s = 1; s <= curves[n]; s++) path("f", colours[(s - 1) % 3 + 1], line(n, seed[n, s], "fp32"))
        for (s = 1; s <= curves[n]; s++) path("d", colours[(s - 1) % 3 + 1], line(n, seed[n, s], "device"))
        if (curves[n] > most) most = curves[n]
    }
    path("f", colours[1], "M70 406h40"); text(120, 410, "s", "start", "fp32" (reference ? " in " reference : ""))
    path("d", colours[1], "M250 406h40"); text(300, 410, "s", "start", "model:, MXINT8")
    if (most > 1) text(430, 410, "s", "start", "a colour a seed")
    print "</svg>"
}
