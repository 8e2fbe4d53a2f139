#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Millrace against Hugging Face's software: what `unpack` writes loads in transformers and computes the same, and the
tokenizer agrees on texts that are not checked in. Prints TAP. usage: interop.py BUILD (from the root; make test-interop)"""
import json
import random
import sys
import tempfile
import unicodedata
from pathlib import Path

import numpy as np
import tokenizers
import torch
import transformers
from safetensors import safe_open

sys.path.insert(0, "tests/fixtures")
import make_tokenizer  # noqa: E402  (its texts)
from hub import load, logits, reference, run  # noqa: E402
from tap import done, ok  # noqa: E402

BUILD = Path(sys.argv[1])
MILLRACE, HELPER = BUILD / "millrace", BUILD / "interop" / "helper"
DEMO = Path("models/demo")


# ---- unpacked models in transformers ----

def check_model(directory, fmt, work):
    name = f"{directory.name} {fmt}"
    packed, unpacked = work / "m.mill", work / f"{directory.name}-{fmt}"
    run(MILLRACE, "pack", directory, packed, "--format", fmt, "-q")
    run(MILLRACE, "unpack", packed, unpacked, "-q")
    model = load(unpacked, name)
    with safe_open(unpacked / "model.safetensors", "pt") as f:
        types = {len(f.get_slice(k).get_shape()): f.get_slice(k).get_dtype() for k in f.keys() if "wte" not in k and "wpe" not in k}
    ok(types == {1: "F32", 2: "BF16"}, f"{name}: matrices bf16, vectors fp32")
    ids, theirs = reference(HELPER, unpacked, model, fmt, name)
    device = logits(HELPER, packed, "model:", fmt, ids)
    # The weights are the same, so what is left are the activations in MXINT8.
    rms = float(np.sqrt(((theirs - device) ** 2).mean())) / float(theirs.std())
    ok(0 < rms < 0.03, f"logits of {name}: model: near transformers", f"rms {rms:.2%} of their deviation")
    return unpacked


# ---- the tokenizer ----

def ours(directory, texts):
    stdin = b"".join(f"{len(t):08x}".encode() + t for t in (text.encode() for text in texts))
    return [[int(i) for i in line.split()] for line in run(HELPER, "tokens", directory, input=stdin).decode().split("\n")[:-1]]


def texts():
    # Code points that Python 3.11 knows: Unicode 14, as PCRE2 of Debian 12 (docs/use/tokenizer.md).
    known = [chr(c) for c in range(0x110000) if unicodedata.category(chr(c)) not in ("Cn", "Cs")]
    rnd = random.Random(7)
    out = make_tokenizer.vectors() + make_tokenizer.gptj_texts()
    for path in [*Path("docs").rglob("*.md"), *Path("host").rglob("*.c"), DEMO / "heldout.txt", *Path("tests/fixtures").glob("*.py")]:
        out.append(path.read_text())
    pieces = [" ", "  ", "\n", "'s", "'LL", "<|endoftext|>", "<|extratoken_9|>", "e\u0301", "12"]
    for _ in range(4000):
        out.append("".join(rnd.choice(pieces) if rnd.random() < 0.3 else rnd.choice(known) for _ in range(rnd.randrange(1, 30))))
    return out


def check_tokenizer(name, tokenizer_json, theirs, work, corpus):
    """Our files are the model's with another tokenizer.json: loading it checks that the two agree on the vocabulary."""
    directory = work / f"tokenizer-{name}"
    directory.mkdir()
    for file in ("config.json", "model.safetensors"):
        (directory / file).symlink_to((DEMO / file).resolve())
    (directory / "tokenizer.json").write_text(tokenizer_json)
    mine = ours(directory, corpus)
    wrong = [t for t, ids in zip(corpus, mine) if ids != theirs(t)]
    ok(len(mine) == len(corpus) and not wrong, f"tokens of {name}", f"{len(corpus)} texts, {sum(map(len, mine))} tokens" +
       (f"; first difference: {wrong[0][:80]!r}" if wrong else ""))


def main():
    print("#", *(f"{m.__name__} {m.__version__}" for m in (transformers, tokenizers, torch, np)))
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    with tempfile.TemporaryDirectory() as tmp:
        work = Path(tmp)
        models = [d for family in ("gptj", "gpt2") for d in sorted(Path("tests/fixtures", family).iterdir())]
        directories = [d for d in models if d.is_dir()] + [DEMO]
        for directory in directories:
            for fmt in ("mxint8", "mxfp4"):
                unpacked = check_model(directory, fmt, work)
        corpus = texts()
        auto = transformers.AutoTokenizer.from_pretrained(unpacked)  # the last one is the demo's
        check_tokenizer("the unpacked demo in transformers", (unpacked / "tokenizer.json").read_text(),
                        lambda t: auto(t, add_special_tokens=False)["input_ids"], work, corpus)
        second, text = make_tokenizer.second_tokenizer()
        check_tokenizer("a tokenizer trained here", text, lambda t: second.encode(t).ids, work, corpus)
        for normalized in (False, True):
            gptj = make_tokenizer.gptj_tokenizer(DEMO / "tokenizer.json", normalized)
            check_tokenizer(f"GPT-J's extra tokens, normalized {json.dumps(normalized)}", gptj.to_str(),
                            lambda t: gptj.encode(t).ids, work, corpus)
    return done()


if __name__ == "__main__":
    sys.exit(main())
