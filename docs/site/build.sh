#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# README, docs and the other pages (pages.sh) as HTML with a search field. usage: docs/site/build.sh DIRECTORY (from the root)
# A page X.md becomes X.html and README.md index.html, at the same place; what pages link to beside
# that (headers, scripts, pictures) is copied. Works without a server and without network.
set -euo pipefail
site=$1
command -v pandoc >/dev/null || { echo "docs: pandoc is not there; make deps-docs installs it" >&2; exit 1; }
here=docs/site
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
pages=$(docs/site/pages.sh)
rm -rf "$site"
mkdir -p "$site/docs"

html() { # PAGE -> its path in the site
    sed 's/\.md$/.html/; s/README\.html$/index.html/' <<<"$1"
}
title() { sed -n 's/^# //p' "$1" | head -1; }

# Navigation: the pages in the order of docs/README.md, then the others.
nav() { # ROOT
    {
        echo README.md
        echo docs/README.md
        grep -oE '\]\([a-z/-]+\.md' docs/README.md | sed 's/^](/docs\//'
        echo CONTRIBUTING.md
        printf '%s\n' docs/*.md docs/*/*.md
        tr ' ' '\n' <<<"$pages"
    } | awk '!seen[$0]++' | while read -r p; do
        printf '<li><a href="%s%s">%s</a></li>\n' "$1" "$(html "$p")" "$(title "$p")"
    done
}
for p in $pages; do
    root=$(sed 's/[^/]*$//; s/[^/]*\//..\//g' <<<"$p")
    mkdir -p "$site/$(dirname "$p")"
    nav "$root" >"$work/nav"
    pandoc -f gfm -t html5 --template $here/page.html --lua-filter $here/links.lua --no-highlight \
        -V root="$root" -V pagetitle="$(title "$p")" -V nav="$(cat "$work/nav")" -o "$site/$(html "$p")" "$p"
done
cp $here/site.css $here/search.js "$site/"
# shellcheck disable=SC2086 # the pages are words
awk -f $here/index.awk $pages >"$site/search-index.js"

# What the pages link to and is not a page.
for p in $pages; do
    grep -ohE '(href|src)="[^"#:]+' "$site/$(html "$p")" | sed "s|^[a-z]*=\"||; /^https\?\$/d; s|^|$(dirname "$p")/|"
done >"$work/linked"
sort -u "$work/linked" | while read -r f; do
    f=$(realpath -m --relative-to=. "$f")
    [ ! -e "$site/$f" ] || continue
    [[ $f != */index.html ]] || f=${f%/index.html}
    if [ -d "$f" ]; then
        mkdir -p "$site/$f"
        { echo '<!doctype html><meta charset="utf-8"><ul>'; for x in "$f"/*; do
            [ -f "$x" ] || continue
            cp "$x" "$site/$f/"
            echo "<li><a href=\"$(basename "$x")\">$(basename "$x")</a></li>"
        done; echo '</ul>'; } >"$site/$f/index.html"
    elif [ -f "$f" ]; then
        mkdir -p "$site/$(dirname "$f")"
        cp "$f" "$site/$f"
    else echo "$f"; fi
done >"$work/missing"
# Links to headings of other pages were checked in the sources (make lint); here the files.
if [ -s "$work/missing" ]; then
    sed 's/^/docs: a page links to what is not there: /' "$work/missing" >&2
    exit 1
fi
echo "docs: $(find "$site" -name '*.html' | wc -l) pages in $site; open $site/index.html"
