#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Public configurations of Cerebras' Model Zoo for GPT-J, GPT-2, GPT-3 and BERT, of both generations: each is accepted
up to its data, which is not here, or refused with line, key and reason, as configs.tsv says. The files are fetched, not
kept: MODELZOO names a clone, else one is made in BUILD/interop-modelzoo. Prints TAP.
usage: configs.py BUILD [--write] (from the root; make test-interop)"""
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from tap import done, ok

BUILD, TABLE = Path(sys.argv[1]), Path("tests/interop/configs.tsv")
TAGS, URL = ("Release_2.1.1", "Release_2.10.0"), "https://github.com/Cerebras/modelzoo"


def git(repository, *args):
    return subprocess.run(["git", "-C", str(repository), *args], check=True, stdout=subprocess.PIPE).stdout


def clone():
    there = Path(os.environ.get("MODELZOO") or BUILD / "interop-modelzoo")
    if not there.exists():
        command = ["git", "clone", "-q", "--filter=blob:none", "--no-checkout", URL, str(there)]
        if subprocess.run(command, check=False).returncode != 0:
            sys.exit(f"not ok - {URL} cannot be cloned; name a clone in MODELZOO")
    return there


def files(repository):
    for tag in TAGS:
        for path in git(repository, "ls-tree", "-r", "--name-only", tag).decode().splitlines():
            if re.search(r"/(gptj|gpt2|gpt3|bert)/.*configs/.*\.yaml$", path) and "/tf/" not in path and "data_prep" not in path:
                yield tag, path


DROPOUTS = ("dropout_rate", "attention_dropout_rate", "residual_dropout_rate", "embedding_dropout_rate", "task_dropout")


def outcome(text):
    """What becomes of a file; where dropout is refused, of the file without it."""
    says = refused(text)
    first = re.fullmatch(r"((?:trainer\.init\.)?model\.)\w*dropout\w* 0\.1", says)
    if first and refused(text, *[w for d in DROPOUTS for w in ("--set", f"{first[1]}{d}=0")]) == "accepted":
        return "accepted without dropout"
    return says


def refused(text, *options):
    """The key that is refused and why, without line and value; "accepted" where only the data is missing."""
    with tempfile.TemporaryDirectory() as work:
        Path(work, "c.yaml").write_bytes(text)
        run = subprocess.run([str(BUILD.resolve() / "millrace"), "train", "c.yaml", "-m", "train_and_eval", "-o", "state", *options],
                             cwd=work, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        left = sorted(os.listdir(work))
    said = run.stderr.decode()
    match = re.fullmatch(r"millrace: c\.yaml:[0-9]+: (.*)\n", said)
    if run.returncode not in (2, 3) or not match or left != ["c.yaml"]:
        return f"status {run.returncode}: {said!r}"
    if re.search(r"data_dir: .*: No such file or directory$", match[1]):
        return "accepted"
    return re.sub(r"^(?:the key '(\S+)' stands in line \d+, too|(\S+): (?:'([^']*)': )?.*)$",
                  lambda m: f"{m[1]} twice" if m[1] else m[2] + (f" {m[3]}" if m[3] else ""), match[1])


def main():
    repository = clone()
    found = {f"{tag}\t{path}": outcome(git(repository, "show", f"{tag}:{path}")) for tag, path in files(repository)}
    if "--write" in sys.argv:
        head = ["# Public configurations of the Model Zoo, by release and path: accepted, or the key that is refused, with its value."]
        TABLE.write_text("\n".join(head + [f"{k}\t{v}" for k, v in found.items()]) + "\n")
    want = dict(line.rsplit("\t", 1) for line in TABLE.read_text().splitlines() if not line.startswith("#"))
    for name, says in want.items():
        ok(found.get(name) == says, name.replace("\t", " "), found.get(name, "is not there"))
    ok(set(found) == set(want), "the table has all of them", ", ".join(sorted(set(found) ^ set(want)))[:200])
    return done()


if __name__ == "__main__":
    sys.exit(main())
