#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Optimizers: what this PyTorch's AdamW, Adam and SGD make of eight weights is what tests/fixtures/optimizers has, to
which tests/unit/store/test_adamw.c holds Millrace's. Prints TAP.
usage: optimizers.py BUILD (from the root; make test-interop)"""
import array
import sys
from pathlib import Path

import torch

sys.path.insert(0, "tests/fixtures")
import make_optimizers as theirs

from tap import done, ok


def main():
    folder = Path("tests/fixtures/optimizers")
    kept = torch.tensor(array.array("f", (folder / "expected.f32").read_bytes()))
    start, gradients, paths = theirs.all_paths()
    texts = [text for text, _ in paths]
    ok(texts == (folder / "optimizers.txt").read_text().splitlines(), "the same optimizers")
    begin = torch.cat([start, gradients.flatten()])
    ok(torch.equal(begin, kept[:len(begin)]), "the same weights and gradients")
    rows = kept[len(begin):].view(len(paths), theirs.STEPS, theirs.WEIGHTS)
    for (text, path), was in zip(paths, rows):
        worst = float((path - was).abs().max())
        ok(worst < 5e-7, f"steps of {text}", f"{worst:.1e}")
    return done()


if __name__ == "__main__":
    sys.exit(main())
