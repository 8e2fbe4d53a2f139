# SPDX-License-Identifier: Apache-2.0
# Judges the lines of tests/train/learn.c, TAP on standard output, and draws them with -v svg=FILE.
# usage: awk -F, -v svg=curves.svg -f learn.awk LINES
$3 == "unigram" { entropy[$1] = $4; next }
{
    if (!($1 in seen)) { seen[$1] = 1; names[++n_names] = $1 }
    if (!(($1, $2) in known)) { known[$1, $2] = 1; seeds[$1, ++n_seeds[$1]] = $2 }
    i = ++points[$1, $2]
    at[$1, $2, i] = $3; fp32[$1, $2, i] = $4; device[$1, $2, i] = $5
    if (first[$1] == "" || $4 > high[$1]) high[$1] = $4
    if (first[$1] == "" || $4 < low[$1]) low[$1] = $4
    if ($5 > high[$1]) high[$1] = $5
    if ($5 < low[$1]) low[$1] = $5
    first[$1] = 1
    if ($3 > last[$1]) last[$1] = $3
}
function tap(good, text) { printf "%s %d - %s\n", good ? "ok" : "not ok", ++n, text; bad += !good }
function abs(x) { return x < 0 ? -x : x }
function polyline(name, seed, which, colour,    i, text, y) {
    for (i = 1; i <= points[name, seed]; i++) {
        y = which == "fp32" ? fp32[name, seed, i] : device[name, seed, i]
        text = text sprintf("%.1f,%.1f ", left + 300 * at[name, seed, i] / last[name],
                            220 - 180 * (y - low[name]) / (high[name] - low[name]))
    }
    printf "<polyline points=\"%s\" fill=\"none\" stroke=\"%s\" stroke-width=\"1.5\"%s/>\n", text, colour,
           which == "fp32" ? " stroke-dasharray=\"5 3\"" : "" >svg
}
function draw(    k, s, name) {
    printf "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"270\" font-family=\"sans-serif\" font-size=\"12\">\n",
           380 * n_names + 20 >svg
    printf "<rect width=\"100%%\" height=\"100%%\" fill=\"#ffffff\"/>\n" >svg
    for (k = 1; k <= n_names; k++) {
        name = names[k]; left = 60 + 380 * (k - 1)
        printf "<text x=\"%d\" y=\"24\" font-weight=\"bold\">%s: loss of the held-out part</text>\n", left, name >svg
        printf "<path d=\"M%d 40V220H%d\" fill=\"none\" stroke=\"#444\"/>\n", left, left + 300 >svg
        printf "<text x=\"%d\" y=\"44\" text-anchor=\"end\">%.2f</text>\n", left - 6, high[name] >svg
        printf "<text x=\"%d\" y=\"224\" text-anchor=\"end\">%.2f</text>\n", left - 6, low[name] >svg
        printf "<text x=\"%d\" y=\"238\">0</text><text x=\"%d\" y=\"238\" text-anchor=\"end\">%d steps</text>\n",
               left, left + 300, last[name] >svg
        for (s = 1; s <= n_seeds[name]; s++) {
            polyline(name, seeds[name, s], "device", colours[(s - 1) % 3 + 1])
            polyline(name, seeds[name, s], "fp32", colours[(s - 1) % 3 + 1])
        }
    }
    printf "<text x=\"60\" y=\"260\">solid: model:, MXINT8; dashed: fp32; a colour a seed</text>\n</svg>\n" >svg
}
END {
    split("#0b6e99 #c2410c #4d7c0f", colours, " ")
    for (k = 1; k <= n_names; k++) {
        name = names[k]; sum = 0; top = -1e9; bottom = 1e9; mean = 0
        for (s = 1; s <= n_seeds[name]; s++) {
            i = points[name, seeds[name, s]]
            f = fp32[name, seeds[name, s], i]; d = device[name, seeds[name, s], i]
            printf "# %s, seed %d: from %.4f to %.4f in fp32, %.4f on the device: %+.2f %%\n", name, seeds[name, s],
                   fp32[name, seeds[name, s], 1], f, d, 100 * (d - f) / f
            sum += 100 * (d - f) / f; mean += d / n_seeds[name]
            if (f > top) top = f
            if (f < bottom) bottom = f
            tap(f < fp32[name, seeds[name, s], 1] && d < device[name, seeds[name, s], 1], name ", seed " seeds[name, s] ": both learn")
        }
        average = sum / n_seeds[name]
        tap(abs(average) < 0.3, sprintf("%s: %+.3f %% from fp32 on average, within 0.3 %%", name, average))
        if (n_seeds[name] > 2)
            tap(abs(average) / 100 * mean <= top - bottom,
                sprintf("%s: within the largest difference of fp32's seeds, %.4f", name, top - bottom))
        if (name ~ /scratch/)
            tap(mean < entropy[name] - 1, sprintf("%s: ends at %.3f, at least 1 nat below the unigram entropy of %.3f", name, mean, entropy[name]))
    }
    if (svg) draw()
    printf "1..%d\n", n
    exit bad > 0 || n == 0
}
