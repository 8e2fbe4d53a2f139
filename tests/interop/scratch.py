#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A GPT-J of 4 million parameters from scratch, by a configuration on `model:` and in PyTorch (fp32): the same drawn weights,
windows, learning rates and AdamW. Prints TAP, and the losses of both as lines "name,seed,step,fp32,model:" for
tests/train/learn.awk. The held-out loss must fall, and on model: end within 1 % of PyTorch's; speed is printed.
usage: SCRATCH_STEPS=60 scratch.py BUILD (from the root; make test-interop INTEROP_TESTS=scratch)"""
import json
import math
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import h5py
import numpy
import torch
from transformers import GPTJForCausalLM

from hub import run
from tap import done, ok

BUILD, DEMO = Path(sys.argv[1]), Path("models/demo")
MILLRACE, LINES = BUILD / "millrace", BUILD / "train" / "scratch.lines"
LENGTH, BATCH, HELD, SEED = 128, 16, 64, 1
STEPS = int(os.environ.get("SCRATCH_STEPS", "60"))
RATE, WARMUP, DECAY, EVERY = 1e-3, 20, 0.1, max(1, STEPS // 15)
MODEL = {"name": "gptj", "vocab_size": 2048, "hidden_size": 256, "num_hidden_layers": 4, "num_heads": 4, "filter_size": 1024,
         "rotary_dim": 32, "max_position_embeddings": LENGTH}


def windows(work):
    """Windows of the text in a drawn order, the last ones held out: two files, and what is in them."""
    run("make", "-s", BUILD / "train" / "bible.txt")
    run(MILLRACE, "data", DEMO, BUILD / "train" / "bible.txt", "-o", work / "all.h5", "--sequence", LENGTH, "-q")
    with h5py.File(work / "all.h5") as f:
        data = f["data"][:]
    data = data[data[:, 1].sum(1) == LENGTH]
    data = data[numpy.random.default_rng(SEED).permutation(len(data))]
    parts = {"train": data[:-HELD], "eval": data[-HELD:]}
    for name, rows in parts.items():
        (work / name).mkdir()
        with h5py.File(work / name / "windows.h5", "w") as f:
            f.attrs["n_examples"] = len(rows)
            f.create_dataset("data", data=rows.astype("int32"))
    return {name: torch.tensor(rows, dtype=torch.int64) for name, rows in parts.items()}


def configuration(work):
    """In JSON, which is YAML."""
    side = {"batch_size": BATCH, "shuffle": False}
    rates = [{"scheduler": "Linear", "initial_learning_rate": RATE / WARMUP, "end_learning_rate": RATE, "total_iters": WARMUP},
             {"scheduler": "CosineDecay", "initial_learning_rate": RATE, "end_learning_rate": RATE / 10,
              "total_iters": max(1, STEPS - WARMUP)}]
    return {"train_input": {"data_dir": str(work / "train"), **side}, "eval_input": {"data_dir": str(work / "eval"), **side},
            "model": MODEL,
            "optimizer": {"optimizer_type": "AdamW", "beta1": 0.9, "beta2": 0.95, "eps": 1e-8, "weight_decay": DECAY,
                          "max_gradient_norm": 1.0, "learning_rate": rates},
            "runconfig": {"max_steps": STEPS, "eval_frequency": EVERY, "seed": SEED}}


def ours(work):
    """Objects that `train --json` printed, and seconds."""
    file = work / "scratch.yaml"
    file.write_text(json.dumps(configuration(work)))
    begin = time.monotonic()
    out = subprocess.run([str(MILLRACE), "train", str(file), "-m", "train_and_eval", "-o", str(work / "state"), "--json", "-q"],
                         stdout=subprocess.PIPE, check=True).stdout.decode()
    return [json.loads(line) for line in out.splitlines()], time.monotonic() - begin


def loss_of(model, rows):
    logits = model(rows[:, 0]).logits.flatten(0, 1)
    return torch.nn.functional.cross_entropy(logits, rows[:, 2].flatten())


@torch.no_grad()
def held_out(model, rows):
    return float(sum(loss_of(model, part) * len(part) for part in rows.split(BATCH)) / len(rows))


def theirs(work, data, rates):
    """Held-out loss by step, and seconds."""
    model = GPTJForCausalLM.from_pretrained(work / "state" / "checkpoint-0", dtype=torch.float32).train()
    kinds = [[p for p in model.parameters() if p.dim() == 2 and p is not model.transformer.wte.weight], [model.transformer.wte.weight],
             [p for p in model.parameters() if p.dim() == 1]]
    adamw = torch.optim.AdamW([{"params": kinds[0], "weight_decay": DECAY}, {"params": kinds[1] + kinds[2], "weight_decay": 0.0}],
                              lr=RATE, betas=(0.9, 0.95), eps=1e-8)
    order, losses, seconds = data["train"], {0: held_out(model, data["eval"])}, 0.0
    for step in range(1, STEPS + 1):
        begin, at = time.monotonic(), (step - 1) * BATCH % (len(order) // BATCH * BATCH)
        for group in adamw.param_groups:
            group["lr"] = rates[step]
        loss_of(model, order[at:at + BATCH]).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        adamw.step()
        adamw.zero_grad()
        seconds += time.monotonic() - begin
        if step % EVERY == 0 or step == STEPS:
            losses[step] = held_out(model, data["eval"])
    return losses, seconds, sum(p.numel() for p in model.parameters())


def main():
    with tempfile.TemporaryDirectory() as directory:
        work = Path(directory)
        data = windows(work)
        printed, seconds = ours(work)
        mine = {o["step"]: o["heldout_loss"] for o in printed if "heldout_loss" in o}
        rates = {o["step"]: o["rate"] for o in printed if "rate" in o}
        pytorch, its_seconds, parameters = theirs(work, data, rates)
    steps = sorted(set(mine) & set(pytorch))
    ok(steps[0] == 0 and steps[-1] == STEPS and len(rates) == STEPS, "both have every step", f"{parameters} parameters, {len(steps)} points")
    for step in steps:
        print(f"# step {step:5}: held out {pytorch[step]:.4f} in PyTorch, {mine[step]:.4f} on model:")
    ok(abs(mine[0] - pytorch[0]) < 2e-3 * pytorch[0], "both begin with the same weights")
    ok(abs(pytorch[0] - math.log(MODEL["vocab_size"])) < 0.2, "which know nothing", f"ln 2048 = {math.log(2048):.4f}")
    ok(pytorch[STEPS] < pytorch[0] - 1 and mine[STEPS] < mine[0] - 1, "both learn")
    ok(abs(mine[STEPS] / pytorch[STEPS] - 1) < 0.01, "model: ends within 1 % of PyTorch", f"{100 * (mine[STEPS] / pytorch[STEPS] - 1):+.2f} %")
    print(f"# seconds of {STEPS * BATCH * LENGTH} tokens on this machine: {seconds:.0f} on model:, with evaluations; {its_seconds:.0f} in PyTorch")
    LINES.write_text("".join(f"4 M from scratch,{SEED},{s},{pytorch[s]:.6f},{mine[s]:.6f}\n" for s in steps))
    return done()


if __name__ == "__main__":
    sys.exit(main())
