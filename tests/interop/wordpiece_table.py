#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Asks the `tokenizers` library what BERT's normalizer and pre-tokenizer do with every code point, and writes the answers
as host/text/bert_unicode.inc. Their Unicode is older than that of any package, and not one version throughout: so they
are asked. usage: wordpiece_table.py >host/text/bert_unicode.inc (Python with tokenizers; from the root)"""
import sys
import unicodedata

from tokenizers import __version__, normalizers, pre_tokenizers

CODES = [c for c in range(0x110000) if not 0xd800 <= c < 0xe000]


def normalizer(clean_text=False, strip_accents=False, lowercase=False):
    n = normalizers.BertNormalizer(clean_text=clean_text, handle_chinese_chars=False, strip_accents=strip_accents, lowercase=lowercase)
    return {c: r for c in CODES if (r := n.normalize_str(chr(c))) != chr(c)}


def runs(codes):
    out = []
    for c in codes:
        if out and out[-1][1] == c - 1:
            out[-1][1] = c
        else:
            out.append([c, c])
    return out


def lower_runs(lower):
    """(first, last, stride, what is added): neighbours, or every second code point."""
    out = []
    for c, r in sorted(lower.items()):
        if len(r) > 1:
            assert c == 0x130 and r == "i\u0307"  # in wordpiece.c
            continue
        d = ord(r) - c
        if out and out[-1][3] == d and c - out[-1][1] in (1, 2) and out[-1][2] in (0, c - out[-1][1]):
            out[-1][1:3] = [c, c - out[-1][1]]
        else:
            out.append([c, c, 0, d])
    return [[a, b, s or 1, d] for a, b, s, d in out]


def class_runs(codes):
    out = []
    for c in codes:
        k = unicodedata.combining(chr(c))
        if out and out[-1][1] == c - 1 and out[-1][2] == k:
            out[-1][1] = c
        else:
            out.append([c, c, k])
    return out


def show(kind, name, what, rows):
    print(f"\n// {what}\nstatic const struct {kind} {name}[] = {{")
    line = ""
    for row in rows:
        cell = "{" + ", ".join(f"{x:#x}" if i < 2 else str(x) for i, x in enumerate(row)) + "},"
        if len(line) + len(cell) > 99:
            print(line)
            line = ""
        line += (" " if line else "    ") + cell
    print(line + "\n};")


def main():
    clean, strip, lower = normalizer(clean_text=True), normalizer(strip_accents=True), normalizer(lowercase=True)
    pre = pre_tokenizers.BertPreTokenizer()
    punctuation = [c for c in CODES if len(pre.pre_tokenize_str(f"a{chr(c)}b")) == 3]
    marks = [c for c, r in strip.items() if r == ""]
    kept = set(CODES) - set(marks)
    nfd = normalizers.BertNormalizer(clean_text=False, handle_chinese_chars=False, strip_accents=True, lowercase=False).normalize_str
    moves = lambda c: nfd("a\u302e" + chr(c)) == f"a{chr(c)}\u302e" or nfd(f"a{chr(c)}\u1bf2") == f"a\u1bf2{chr(c)}"  # noqa: E731  classes 224, 9
    # Python knows more classes than the library, but those that both know are the same.
    ordered = [c for c in sorted(kept) if unicodedata.combining(chr(c)) and moves(c)]
    # Some consist of others, whose class is what counts.
    classed = lambda c: unicodedata.combining(unicodedata.normalize("NFD", chr(c))[0]) != 0  # noqa: E731
    parts = []
    for c, r in strip.items():
        if r and not 0xac00 <= c < 0xd7a4:  # Hangul is computed
            parts += [[c, ord(x)] for x in r]
    print(f"// SPDX-License-Identifier: Apache-2.0\n// Made by tests/interop/wordpiece_table.py, which asked tokenizers {__version__}: not to be edited.")
    show("run", "dropped", "Control characters and the like: first, last.", runs(c for c, r in clean.items() if r == ""))
    show("run", "accents", "Accents whose combining class is not 0: first, last.",
         runs(c for c in marks if classed(c)))
    show("run", "accents_0", "The others.", runs(c for c in marks if not classed(c)))
    show("ordered", "ordered", "What is no accent, but has a combining class: first, last, class.", class_runs(ordered))
    show("run", "punctuation", "Punctuation: first, last.", runs(punctuation))
    show("capitals", "capitals", "Capitals: first, last, stride, what is added.", lower_runs(lower))
    show("part", "part", "What is left of a character without its accents: the character, and each part of it.", parts)


if __name__ == "__main__":
    sys.exit(main())
