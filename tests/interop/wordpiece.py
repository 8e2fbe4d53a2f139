#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""BERT's tokenizer beside the `tokenizers` library: every code point alone and in company, and 20,000 texts, with each
setting of the normalizer, from tokenizer.json and from vocab.txt. Prints TAP.
usage: wordpiece.py BUILD (from the root; make test-interop)"""
import json
import random
import subprocess
import sys
import tempfile
from pathlib import Path

from tokenizers import AddedToken, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

sys.path.insert(0, "tests/fixtures")
import make_tokenizer  # noqa: E402  (its texts)
from tap import done, ok  # noqa: E402

WORDS = Path(sys.argv[1]) / "interop" / "words"
SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
CODES = [c for c in range(0x110000) if not 0xd800 <= c < 0xe000]
SETTINGS = [dict(clean_text=c, handle_chinese_chars=h, strip_accents=a, lowercase=l)
            for c, h, a, l in ((True, True, None, True), (True, True, None, False), (True, False, False, True), (False, True, True, False),
                               (False, False, True, True))]


def corpus():
    rnd = random.Random(21)
    words = [w for p in Path("docs").rglob("*.md") for w in p.read_text().split()] + make_tokenizer.LINES.split() * 20
    pieces = [" ", "  ", "\t", "\u3000", "\x85", "[MASK]", "[SEP]", "[mask]", "e\u0301", "\u0130", "\u03a3\u03c2", "\ufffd", "12", "--", "don't", "\ud55c",
              "a" * 100, "b" * 101, "\u302e\u0301\u1bf2", "\u4e2d\u6587", "##ing", "\u212b", "\u01c5", "A\u030a"]
    out = make_tokenizer.vectors()
    while len(out) < 20000:
        n = rnd.randrange(1, 12)
        high = rnd.choice((0x80, 0x250, 0x800, 0x3000, 0x10000, 0x110000))
        out.append("".join(rnd.choice((lambda: rnd.choice(words), lambda: " " + rnd.choice(words), lambda: rnd.choice(pieces),
                                       lambda: chr(rnd.choice([c for c in (rnd.randrange(high),) if not 0xd800 <= c < 0xe000] or [32]))))()
                           for _ in range(n)))
    return out


def learn(texts, setting):
    t = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    t.normalizer = normalizers.BertNormalizer(**setting)
    t.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    t.decoder = decoders.WordPiece()
    t.train_from_iterator(texts, trainers.WordPieceTrainer(vocab_size=6000, special_tokens=SPECIAL, show_progress=False))
    t.post_processor = processors.TemplateProcessing(single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1",
                                                     special_tokens=[(s, t.token_to_id(s)) for s in ("[CLS]", "[SEP]")])
    return t


def ours(path, texts):
    raw = b"".join(f"{len(t):08x}".encode() + t for t in (text.encode() for text in texts))
    return subprocess.run([WORDS, path], check=True, stdout=subprocess.PIPE, input=raw).stdout.split(b"\n")[:-1]


def theirs(t, texts):
    out = []
    for text in texts:
        ids = t.encode(text, add_special_tokens=False).ids
        out.append(("".join(f"{i} " for i in ids) + "|" + t.decode(ids, skip_special_tokens=True)).encode())
    return out


def compare(name, path, t, texts):
    mine, want = ours(path, texts), theirs(t, texts)
    wrong = [(x, m, w) for x, m, w in zip(texts, mine, want) if m != w]
    ok(len(mine) == len(want) and not wrong, f"tokens of {name}", f"{len(texts)} texts" + (f"; {len(wrong)} differ; first: {str(wrong[0])[:300]}" if wrong else ""))


def main():
    lines = [t.translate({0: " ", 10: " ", 13: " "}) for t in corpus()]  # so that a text's answer is a line
    # Each code point: between letters, and between an accent's letter and one whose class is the largest.
    alone = [" ".join(f"a{chr(c)}b \u0130e{chr(c)}\u302e{chr(c)}\u1bf2z" for c in CODES[i:i + 50] if c not in (0, 10, 13)) for i in range(0, len(CODES), 50)]
    with tempfile.TemporaryDirectory() as tmp:
        for i, setting in enumerate(SETTINGS):
            t = learn(lines, setting)
            path = Path(tmp) / f"{i}.json"
            path.write_text(t.to_str())
            compare(f"20,000 texts, {setting}", path, t, lines)
            # A vocabulary of every character that may be left, so that none is hidden behind [UNK].
            vocab = {s: k for k, s in enumerate(SPECIAL)}
            for c in CODES[1:]:
                vocab.setdefault(chr(c), len(vocab))
                vocab.setdefault("##" + chr(c), len(vocab))
            full = json.loads(t.to_str())
            full["model"]["vocab"] = vocab
            path.write_text(json.dumps(full))
            if i not in (0, len(SETTINGS) - 1):
                continue
            compare(f"all code points, {setting}", path, Tokenizer.from_str(json.dumps(full)), alone)
        for lower in (True, False):
            t = learn(lines, SETTINGS[0 if lower else 1])
            folder = Path(tmp) / f"list-{lower}"
            folder.mkdir()
            vocab = sorted(t.get_vocab().items(), key=lambda x: x[1])
            (folder / "vocab.txt").write_text("".join(w + "\n" for w, _ in vocab))
            (folder / "tokenizer_config.json").write_text(json.dumps({"do_lower_case": lower}))
            compare(f"vocab.txt, lower case {lower}", folder, t, lines)
    return done()


if __name__ == "__main__":
    sys.exit(main())
