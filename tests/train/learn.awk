# SPDX-License-Identifier: Apache-2.0
# Judges the lines of tests/train/learn.c, TAP on standard output. curves.awk draws them.
# usage: awk -F, -f learn.awk LINES
$3 == "unigram" { entropy[$1] = $4; next }
NF != 5 { next } # losses of steps
{
    if (!($1 in seen)) { seen[$1] = 1; names[++n_names] = $1 }
    if (!(($1, $2) in known)) { known[$1, $2] = 1; seeds[$1, ++n_seeds[$1]] = $2 }
    i = ++points[$1, $2]
    at[$1, $2, i] = $3; fp32[$1, $2, i] = $4; device[$1, $2, i] = $5
}
function tap(good, text) { printf "%s %d - %s\n", good ? "ok" : "not ok", ++n, text; bad += !good }
function abs(x) { return x < 0 ? -x : x }
END {
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
    printf "1..%d\n", n
    exit bad > 0 || n == 0
}
