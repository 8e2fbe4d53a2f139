#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Training data beside h5py and Hugging Face's tokenizers: what `millrace data` writes has the tokens, masks and
targets that this script makes of the same documents; a file that h5py writes as the Model Zoo does is learnt as ours.
Prints TAP. usage: data.py BUILD (from the root; make test-interop)"""
import json
import subprocess
import sys
import tempfile
from pathlib import Path

import h5py
import numpy
from tokenizers import Tokenizer

from tap import done, ok

BUILD, DEMO = Path(sys.argv[1]), Path("models/demo")
LENGTH, OVERLAP = 16, 5


def millrace(*args):
    return subprocess.run([str(BUILD / "millrace"), *map(str, args)], check=True, stdout=subprocess.PIPE).stdout


def documents():
    verses = [v for v in (DEMO / "heldout.txt").read_text().split("\n") if len(v) > 40][:40]
    pairs = [{"prompt": v[:len(v) // 3], "completion": v[len(v) // 3:]} for v in verses[:20]]
    return pairs + [{"text": v} for v in verses[20:]]


def windows(tokenizer, eos, document):
    """Rows of ids, mask, targets. Position p is learnt in the first window that has it."""
    prompt = tokenizer.encode(document["prompt"]).ids if "prompt" in document else []
    ids = prompt + tokenizer.encode(document.get("completion") or document["text"]).ids + [eos]
    done_below, rows, at = max(len(prompt) - 1, 0), [], 0
    while done_below < len(ids) - 1:
        part = range(at, min(at + LENGTH, len(ids) - 1))
        row = [[ids[p] for p in part], [int(p >= done_below) for p in part], [ids[p + 1] for p in part]]
        if any(row[1]):
            rows.append([x + [fill] * (LENGTH - len(x)) for x, fill in zip(row, (eos, 0, eos))])
            done_below = part[-1] + 1
        at += LENGTH - OVERLAP
    return rows


def main():
    tokenizer = Tokenizer.from_file(str(DEMO / "tokenizer.json"))
    eos = json.loads((DEMO / "config.json").read_text())["eos_token_id"]
    want = [row for d in documents() for row in windows(tokenizer, eos, d)]
    with tempfile.TemporaryDirectory() as name:
        work = Path(name)
        (work / "in.jsonl").write_text("".join(json.dumps(d) + "\n" for d in documents()))
        millrace("data", DEMO, work / "in.jsonl", "-o", work / "ours.h5", "--sequence", LENGTH, "--overlap", OVERLAP, "-q")
        with h5py.File(work / "ours.h5") as f:
            data, attributes = f["data"][:], dict(f.attrs)
        ok(data.dtype == numpy.int32 and data.shape == (len(want), 3, LENGTH), "h5py reads the shape", str(data.shape))
        ok(numpy.array_equal(data, numpy.array(want)), "ids, masks and targets are those of tokenizers")
        ok(attributes["n_examples"] == len(want) and attributes["overlap"] == OVERLAP, "attributes")
        with h5py.File(work / "theirs.h5", "w") as f:
            f.attrs["n_examples"] = len(data)
            f.create_dataset("data", data=data, dtype="i4", chunks=(1, 3, LENGTH), compression="gzip")
        for who in ("ours", "theirs"):
            millrace("train", DEMO, "--data", work / f"{who}.h5", "-o", work / who, "--steps", 1, "--batch", 2, "-q")
        ok((work / "ours/state").read_bytes() == (work / "theirs/state").read_bytes(), "a file of h5py is learnt alike")
    return done()


if __name__ == "__main__":
    sys.exit(main())
