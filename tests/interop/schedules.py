#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Learning rates: what this PyTorch's schedulers give is what tests/fixtures/schedules has, to which
tests/unit/store/test_rates.c holds Millrace's. Prints TAP.
usage: schedules.py BUILD (from the root; make test-interop)"""
import array
import sys
from pathlib import Path

sys.path.insert(0, "tests/fixtures")
import make_schedules as theirs

from tap import done, ok


def main():
    folder = Path("tests/fixtures/schedules")
    kept = array.array("f", (folder / "expected.f32").read_bytes())
    texts = (folder / "schedules.txt").read_text().splitlines()
    got = theirs.all_rates()
    ok(texts == [text for text, _ in got] and len(kept) == theirs.STEPS * len(got), "the same schedules")
    for i, (text, rates) in enumerate(got):
        was = kept[i * theirs.STEPS:(i + 1) * theirs.STEPS]
        worst = max(abs(a - b) for a, b in zip(rates, was)) / max(was)
        ok(worst < 1e-7, f"rates of {text[:60]}", f"{worst:.1e} of the highest")
    return done()


if __name__ == "__main__":
    sys.exit(main())
