# SPDX-License-Identifier: Apache-2.0
# Is the output (second file) what the page shows (first file)? Prints the first difference.
# In the page a line "..." stands for any number of lines, "[...]" inside a line for any text. A line
# that begins it does not stand for a message of the program, which may be an error.
FILENAME == ARGV[1] { want[++w] = $0; next }
{ got[++g] = $0 }
function line_matches(pattern, text,    parts, k, i, at) {
    if (index(pattern, "[...]") == 0) return pattern == text
    k = split(pattern, parts, /\[\.\.\.\]/)
    if (text ~ /^millrace[: ]/ && pattern !~ /^millrace[: ]/) return 0
    if (substr(text, 1, length(parts[1])) != parts[1]) return 0
    text = substr(text, length(parts[1]) + 1)
    for (i = 2; i < k; i++) {
        at = index(text, parts[i])
        if (at == 0) return 0
        text = substr(text, at + length(parts[i]))
    }
    return length(text) >= length(parts[k]) && substr(text, length(text) - length(parts[k]) + 1) == parts[k]
}
function same(i, j) {
    while (i <= w) {
        if (want[i] == "...") {
            if (i == w) return 1
            for (; j <= g + 1; j++) if (same(i + 1, j)) return 1
            return 0
        }
        if (j > g || !line_matches(want[i], got[j])) {
            if (i > worst) { worst = i; worst_got = j > g ? "(the output has ended)" : got[j] }
            return 0
        }
        i++
        j++
    }
    if (j <= g && w + 1 > worst) { worst = w + 1; worst_got = got[j] }
    return j > g
}
END {
    if (w == 0 || same(1, 1)) exit 0
    print "page:   " (worst > w ? "(ends here)" : want[worst])
    print "output: " worst_got
    exit 1
}
