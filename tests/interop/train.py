#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What `train` exports, in transformers, and the example with PyTorch's DataLoader. Then steps of training on one thread:
`model:` beside PyTorch in fp32, the demo model, the same micro-batch of its text, turn by turn in one run. Prints TAP. The
loss on model: must begin and fall as PyTorch's; processor time is printed, and judged with BARS=1 alone: then model: must
have 0.7 of PyTorch's tokens a second.
usage: train.py BUILD (from the root; make test-interop)"""
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import torch
import transformers
from transformers import GPTJForCausalLM, PreTrainedTokenizerFast

sys.path.insert(0, "host/python")
from hub import load, reference, run  # noqa: E402
from millrace import Trainer  # noqa: E402
from speed import processor  # noqa: E402
from tap import done, ok  # noqa: E402

BUILD, DEMO = Path(sys.argv[1]), Path("models/demo")
MILLRACE, HELPER, TEXT = BUILD / "millrace", BUILD / "interop" / "helper", DEMO / "heldout.txt"
SEQUENCES, LENGTH, STEPS, RATE = 8, 128, 6, 1e-4
DEVICE = "model:sim"
ROUNDS = int(os.environ.get("ROUNDS", "5"))


# ---- what is exported ----

def check_export(trainer, directory, fmt, name):
    """The weights of the state, rounded as PyTorch rounds them, and their logits."""
    dtype = {"f32": torch.float32, "bf16": torch.bfloat16, "f16": torch.float16}[fmt]
    if not directory.exists():
        trainer.save(directory, fmt)
    model = load(directory, f"{name} {fmt}", dtype)
    state, wrong = model.state_dict(), []
    for key in trainer.tensors:
        ours = torch.frombuffer(trainer.weights(key), dtype=torch.float32).to(dtype).float()
        if not torch.equal(state[key].flatten(), ours):
            wrong.append(key)
    ok(not wrong, f"{name} {fmt} has the weights of the state", f"{len(trainer.tensors)} tensors{wrong or ''}")
    return reference(HELPER, directory, model, "mxint8", f"{name} {fmt}")


def check_exports(work):
    state, out = work / "state", work / "f32"
    run(MILLRACE, "train", DEMO, "--data", TEXT, "-o", state, "--steps", 2, "--lr", "1e-3", "--sequence", 32, "--batch", 2,
        "--heldout", 0, "--export", out, "-q")
    with Trainer(state, DEMO, tokens=64) as trainer:
        for fmt, directory in ("f32", out), ("bf16", work / "bf16"), ("f16", work / "f16"):
            ids, logits = check_export(trainer, directory, fmt, "the demo after two steps")
    before = GPTJForCausalLM.from_pretrained(DEMO, dtype=torch.float32)
    with torch.no_grad():
        moved = float((before(torch.tensor([ids])).logits[0] - torch.tensor(logits)).std() / logits.std())
    ok(moved > 0.003, "its logits are not those of the checkpoint", f"moved by {moved:.3f} of their deviation")
    for fixture in sorted(Path("tests/fixtures/train").glob("gptj-*")) + sorted(Path("tests/fixtures/gpt2").glob("*-d*")):
        with Trainer(work / fixture.name, fixture, device="model:tinyt") as trainer:
            trainer.step([[[3, 1, 4, 1, 5, 9, 2, 6]]], rate=1e-2)
            check_export(trainer, work / f"{fixture.name}-out", "f32", fixture.name)


def check_foreign_steps(work):
    """Steps of a program between two calls of the command: that would go on with other bytes than it promises."""
    command = [BUILD / "millrace", "train", DEMO, "--data", TEXT, "-o", work / "foreign", "--sequence", "32", "--batch", "2"]
    run(*command, "--steps", "1", "--heldout", "0")
    with Trainer(work / "foreign", DEMO, tokens=64) as trainer:
        trainer.step([[[5, 6, 7, 8]]], rate=1e-4)
    again = subprocess.run([str(c) for c in command] + ["--steps", "3", "--heldout", "0"], stderr=subprocess.PIPE, check=False)
    ok(again.returncode == 2 and b"is another program's" in again.stderr, "train refuses a state with a program's steps")


def check_example(work):
    """Twice: the second call goes on."""
    lines = [run(sys.executable, "examples/train.py", DEMO, TEXT, work / "example").decode().splitlines() for _ in range(2)]
    steps = [re.fullmatch(r"step (\d+): loss (\d+\.\d+), norm \d+\.\d+", line) for line in sum(lines, [])]
    ok(all(steps) and [int(s[1]) for s in steps] == list(range(1, 11)), "examples/train.py takes steps, and goes on", lines[1][-1])


# ---- beside PyTorch ----

def batch():
    """Sequences of LENGTH tokens and their targets."""
    tokenizer = PreTrainedTokenizerFast(tokenizer_file=str(DEMO / "tokenizer.json"))
    ids = tokenizer(TEXT.read_text())["input_ids"][:SEQUENCES * (LENGTH + 1)]
    assert len(ids) == SEQUENCES * (LENGTH + 1)
    return ids


def ours(ids):
    """Loss and seconds of each step. The first step of a training runs twice, for its units."""
    command = [BUILD / "interop" / "training", DEMO, DEVICE, SEQUENCES, STEPS, RATE, *ids]
    env = os.environ | {"MILLRACE_THREADS": "1"}
    out = subprocess.run([str(c) for c in command], check=True, stdout=subprocess.PIPE, env=env).stdout
    return [tuple(float(n) for n in line.split()) for line in out.decode().splitlines()]


def theirs(ids):
    model = GPTJForCausalLM.from_pretrained(DEMO, dtype=torch.float32).train()
    adamw = torch.optim.AdamW(model.parameters(), lr=RATE, weight_decay=0)
    rows = torch.tensor(ids).reshape(SEQUENCES, LENGTH + 1)
    got = []
    for _ in range(STEPS):
        begin = time.process_time()
        logits = model(input_ids=rows[:, :-1], use_cache=False).logits
        loss = torch.nn.functional.cross_entropy(logits.reshape(-1, logits.shape[-1]), rows[:, 1:].reshape(-1))
        adamw.zero_grad()
        loss.backward()
        adamw.step()
        got.append((loss.item(), time.process_time() - begin))
    return got


def main():
    print(f"# {processor()}; PyTorch {torch.__version__}, one thread each")
    torch.set_num_threads(1)
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    with tempfile.TemporaryDirectory() as work:
        check_exports(Path(work))
        check_foreign_steps(Path(work))
        check_example(Path(work))
    ids, ratios, rates = batch(), [], {"model:": [], "PyTorch": []}
    for round_ in range(ROUNDS):
        a, b = ours(ids), theirs(ids)
        if round_ == 0:
            # The model's bf16 weights lie on ties of MXINT8 so often that the first steps go further than those of fp32.
            share = (a[0][0] - a[-1][0]) / (b[0][0] - b[-1][0])
            ok(abs(a[0][0] - b[0][0]) < 0.01 and 0.8 < share < 1.25, "model: trains as PyTorch",
               f"{b[0][0]:.3f} becomes {b[-1][0]:.3f}; on model: {a[0][0]:.3f} becomes {a[-1][0]:.3f}")
        # Without the first step, in which both find their memory.
        seconds = [statistics.median(x[1] for x in side[1:]) for side in (a, b)]
        ratios.append(seconds[1] / seconds[0])
        for side, s in zip(rates, seconds):
            rates[side].append(SEQUENCES * LENGTH / s)
    for side, rate in rates.items():
        print(f"# {side:8} {statistics.median(rate):7.0f} tokens/s of processor time (best of {ROUNDS}: {max(rate):.0f})")
    ratio = statistics.median(ratios)
    ok(os.environ.get("BARS") != "1" or ratio >= 0.7, "training on one thread",
       f"model: trains {ratio:.2f} times as fast as PyTorch in fp32, {SEQUENCES} sequences of {LENGTH} tokens")
    return done()


if __name__ == "__main__":
    sys.exit(main())
