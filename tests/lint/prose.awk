# SPDX-License-Identifier: Apache-2.0
# What can be checked of a page's prose. Prints rule, tab, place and fault; rules: columns, sentences,
# words, commands, lists. usage: awk -v words=tests/lint/prose.words -f tests/lint/prose.awk PAGE...
#
# columns: a line has at most 100; tables, code and lines of one word or one code span apart. So has a
#   command of a console block ("$ " and "> "); what it prints is as wide as it is.
# sentences: on a page they have 35 words at most on average. Paragraphs and items of lists count;
#   tables, code and headings do not.
# words: of prose.words (a pattern of whole words, tab, the better word) none occurs outside code.
# commands: a command of the project stands in a ```console block, where tests/docs/run.sh finds it.
# lists: no line of a paragraph begins like an item ("- 3", "+ 5"), since Markdown makes a list of it;
#   an empty line stands in front of a list.
BEGIN {
    FS = "\t"
    while ((getline entry <words) > 0) {
        if (entry ~ /^#/ || entry ~ /^ *$/) continue
        split(entry, e, /\t+/)
        pattern[++entries] = tolower(e[1])
        better[entries] = e[2]
    }
    close(words)
}
function sentences_of(text,    n, i, parts, w) {
    gsub(/`[^`]*`/, "code", text)
    gsub(/\]\([^)]*\)/, "", text)
    # Not ends of sentences.
    gsub(/(e\.g|i\.e|vs|etc)\./, "x", text)
    gsub(/\.\.\./, " ", text)
    n = split(text, parts, /[.!?:;][*")]*( |$)/)
    for (i = 1; i <= n; i++) {
        w = split(parts[i], x, / +/)
        if (parts[i] ~ /^ *$/) continue
        if (substr(parts[i], 1, 1) == " ") w--
        counted_words += w
        counted++
    }
}
function flush_text() { if (text != "") sentences_of(text); text = "" }
function page_end() {
    flush_text()
    if (counted && counted_words / counted > 35)
        printf "sentences\t%s: %.1f words a sentence on average (35)\n", page, counted_words / counted
    counted = counted_words = 0
}
FNR == 1 {
    if (page != "") page_end()
    page = FILENAME
    fence = 0
    blank = 1
    list = 0
}
{ width = length($0) }
/^ *```/ { flush_text(); fence = !fence; console = /```console/; blank = 0; next }
fence {
    if (console && /^ *[$>] / && width > 100) printf "columns\t%s:%d: %d columns in a command\n", FILENAME, FNR, width
    if (!console && /^ *(\$ )?(sudo |[A-Z_]+=[^ ]* )*(make|build\/millrace|millrace|sim\/[a-z]+\/[a-z]+) [^=]/)
        printf "commands\t%s:%d: not in a console block: %s\n", FILENAME, FNR, $0
    next
}
/^ *$/ { flush_text(); blank = 1; next }
/^ *<!--/ || /^!\[/ { next }
/^ *\|/ { flush_text(); blank = 0; check_words($0); next }
/^    / && blank && !list {
    if (/^ *(sudo |[A-Z_]+=[^ ]* )*(make|build\/millrace|millrace|sim\/[a-z]+\/[a-z]+) [^=]/)
        printf "commands\t%s:%d: not in a console block: %s\n", FILENAME, FNR, $0
    next
}
{
    blank = 0
    if (width > 100 && $0 ~ /[^ ] +[^ ]/ && !/^#/ && !/^ *[(]?`[^`]*`[);:,.]*$/) printf "columns\t%s:%d: %d columns\n", FILENAME, FNR, width
    if (text != "" && !list && /^ *([-*+]|1[.)]) /)
        printf "lists\t%s:%d: a list in the middle of a paragraph: %s\n", FILENAME, FNR, $0
    if (/^ *([-*]|[0-9]+\.) /) { flush_text(); list = 1; sub(/^ *([-*]|[0-9]+\.) /, "") }
    else if (/^[^ ]/ && text == "") list = 0
    check_words($0)
    if (!/^#/) text = text (text == "" ? "" : " ") $0
}
function check_words(line,    i) {
    gsub(/`[^`]*`/, " ", line)
    gsub(/\]\([^)]*\)/, "]", line)
    line = " " tolower(line) " "
    for (i = 1; i <= entries; i++)
        if (line ~ ("[^a-z]" pattern[i] "[^a-z]"))
            printf "words\t%s:%d: \"%s\": %s\n", FILENAME, FNR, pattern[i], better[i]
}
END { page_end() }
