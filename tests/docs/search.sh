#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The search index of `make docs`, without a browser: each heading of each page has its row, rows are
# strings that JavaScript takes, and what people ask has its words in the row that answers. The script
# that ranks rows is tried in a browser (make test-page). TAP. usage: tests/docs/search.sh (from the root)
set -u
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
n=0 bad=0
tap() { # status name [file that says why]
    n=$((n + 1))
    if [ "$1" = 0 ]; then echo "ok $n - $2"; else
        echo "not ok $n - $2"
        bad=1
        [ -z "${3:-}" ] || head -5 "$3" | cut -c1-200 | sed 's/^/# /'
    fi
}
pages=$(docs/site/pages.sh)
# shellcheck disable=SC2086 # the pages are words
awk -f docs/site/index.awk $pages >"$work/index"

# ---- its form: three strings a row behind the address, each as JavaScript reads it
[ "$(head -1 "$work/index")" = 'const SEARCH_INDEX = [' ] && [ "$(tail -1 "$work/index")" = '];' ]
tap $? "one array"
sed '1d;$d' "$work/index" >"$work/rows"
form='^\["[A-Za-z0-9/._-]+#[a-z0-9_-]+",("([^"\\[:cntrl:]]|\\"|\\x3c)*",){2}"([^"\\[:cntrl:]]|\\"|\\x3c)*"\],$'
LC_ALL=C grep -vE "$form" "$work/rows" >"$work/odd"
tap $((! $?)) "rows have an address, a title, a heading and a text" "$work/odd"
grep '<' "$work/rows" >"$work/odd"
tap $((! $?)) "no row can end the script or begin a tag" "$work/odd"
cut -d'"' -f2 "$work/rows" >"$work/urls"
sort "$work/urls" | uniq -d >"$work/odd"
[ ! -s "$work/odd" ]
tap $? "no two rows have one address" "$work/odd"

# ---- what is in it: the headings, outside of code, in their order
for p in $pages; do
    url=$(sed 's/README\.md$/index.html/; s/\.md$/.html/' <<<"$p")
    want=$(awk '/^ *```/ { code = !code } !code && /^#+ /' "$p" | wc -l)
    [ "$(grep -c "^$url#" "$work/urls")" = "$want" ] && [ "$want" -gt 0 ] || echo "$p: $want headings"
done >"$work/odd"
[ ! -s "$work/odd" ]
tap $? "each heading has a row" "$work/odd"
# Links to headings, which make lint compares with the pages, are addresses of the index.
grep -oE '\]\([a-z./-]+\.md#[^)]*\)' docs/*.md docs/*/*.md | sed 's/[^/]*\.md:](//; s/)$//; :up; s/[^/.]*\/\.\.\///; t up
    s/README\.md#/index.html#/; s/\.md#/.html#/' |
    sort -u | grep -vxFf "$work/urls" >"$work/odd"
[ ! -s "$work/odd" ]
tap $? "what pages link to can be found" "$work/odd"

# ---- what people ask: all words are in the row that answers
while IFS='|' read -r url words; do
    row=$(grep -F "[\"$url\"," "$work/rows" | tr '[:upper:]' '[:lower:]')
    for w in $words; do grep -qF -- "$w" <<<"$row" || echo "$url lacks '$w'"; done
done >"$work/odd" <<'ASKED'
docs/use/faq.html#which-board-should-i-buy|board buy
docs/use/faq.html#how-much-memory-and-disk-does-gpt-j-6b-need|memory gpt-j-6b need
docs/use/faq.html#what-happens-when-the-device-hangs|device hang
docs/use/serve.html#start-it|serve start port
docs/inside/testing.html#when-rtl-and-c-model-differ|rtl model differ
ASKED
[ ! -s "$work/odd" ]
tap $? "questions have their words in the row that answers" "$work/odd"

# ---- pages that are made to break it
printf '%s\n' '# "A" \ <b> & `c|d`' 'x </script> "y" \n' '```' '# no heading' '```' '## Twice' one '## Twice' two >"$work/page.md"
awk -f docs/site/index.awk "$work/page.md" >"$work/index"
sed '1d;$d' "$work/index" >"$work/rows"
[ "$(wc -l <"$work/rows")" = 3 ] && ! grep -q '<' "$work/rows" && ! LC_ALL=C grep -qvE "$form" "$work/rows"
tap $? "quotes, backslashes and tags are strings" "$work/rows"
[ "$(grep -c '#twice"' "$work/rows")" = 1 ] && [ "$(grep -c '#twice-1"' "$work/rows")" = 1 ]
tap $? "the second heading of a name has an address of its own" "$work/rows"
printf '%s\n' '# T' 'See ([`a.md`](a.md), or' '[`b.md`](b.md)), **c**; *d*: `f(x)` and a | `g`. *h* . | end' >"$work/page.md"
awk -f docs/site/index.awk "$work/page.md" | sed '1d;$d' >"$work/rows"
grep -qF '" See (a.md, or b.md), c; d: f(x) and a g. h. end"' "$work/rows"
tap $? "marks of a link or of code leave no blanks" "$work/rows"
echo "1..$n"
exit $bad
