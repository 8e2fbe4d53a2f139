#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""TensorBoard reads the event files of `millrace train`, and has the numbers of its CSV. Prints TAP.
usage: events.py BUILD (from the root; make test-interop)"""
import csv
import subprocess
import sys
import tempfile
from pathlib import Path

from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from tap import done, ok

NAMES = {"loss": "loss", "norm": "gradient_norm", "rate": "learning_rate", "heldout_loss": "heldout_loss", "repeated": "repeated"}


def main():
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        text = Path("models/demo/heldout.txt").read_bytes()[:3000]
        (work / "text").write_bytes(text)
        command = [f"{sys.argv[1]}/millrace", "train", "models/demo", "--data", work / "text", "--sequence", "32", "--batch",
                   "2", "-o", work / "state", "--steps", "3", "-q", "--events", work / "events", "--csv", work / "rows.csv"]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        seen = EventAccumulator(str(work / "events"))
        seen.Reload()
        ok(sorted(seen.Tags()["scalars"]) == sorted(NAMES.values()), "TensorBoard knows the curves")
        rows = list(csv.DictReader((work / "rows.csv").open()))
        for column, tag in NAMES.items():
            want = [(int(row["step"]), float(row[column])) for row in rows if row[column]]
            got = [(e.step, e.value) for e in seen.Scalars(tag)]
            same = len(got) == len(want) and all(a[0] == b[0] and abs(a[1] - b[1]) <= 1e-6 * abs(b[1]) for a, b in zip(got, want))
            ok(same, f"{tag} has the numbers of the CSV", f"{len(got)} of {len(want)}")
    return done()


if __name__ == "__main__":
    sys.exit(main())
