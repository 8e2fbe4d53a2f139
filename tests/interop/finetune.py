#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A classifier fine-tuned on `model:` and in PyTorch (fp32): the same head, texts in the same order, learning rates and
AdamW, for several seeds. Prints TAP. The mean accuracy on the held-out texts must be within POINTS (1) of PyTorch's, and
AGREE (97) percent of predictions must be the same. What has been computed stays in DIR and is not computed again.
usage: finetune.py BUILD MODEL TRAIN HELDOUT DIR [SEED...]   files of `millrace data` (make test-finetune)
environment: STEPS (400), RATE (1e-4), DEVICE (model:), EVERY (100) steps between evaluations"""
import json
import os
import subprocess
import sys
from pathlib import Path

import h5py
import torch
import transformers
from transformers import BertForSequenceClassification

from tap import done, ok

MILLRACE, MODEL, TRAIN, HELDOUT, DIR = [Path(a) for a in (sys.argv[1] + "/millrace", *sys.argv[2:6])]
SEEDS = [int(s) for s in sys.argv[6:]] or [1, 2, 3]
STEPS, RATE = int(os.environ.get("STEPS", "400")), float(os.environ.get("RATE", "1e-4"))
EVERY, BATCH, DECAY, WARMUP = int(os.environ.get("EVERY", "100")), 32, 0.01, STEPS // 10
POINTS, AGREE = float(os.environ.get("POINTS", "1")), float(os.environ.get("AGREE", "97"))


class Texts:
    def __init__(self, path):
        with h5py.File(path) as f:
            self.data, self.labels = torch.tensor(f["data"][:], dtype=torch.int64), torch.tensor(f["labels"][:], dtype=torch.int64)

    def batch(self, numbers):
        rows = self.data[numbers]
        rows = rows[:, :, :int(rows[:, 1].sum(1).max())]
        return {"input_ids": rows[:, 0], "attention_mask": rows[:, 1], "token_type_ids": rows[:, 2]}, self.labels[numbers]


def order(count, seed, epoch):
    """That of host/cli's train_data.c: a shuffle after Fisher and Yates, drawn by splitmix64."""
    mask = (1 << 64) - 1
    state = seed ^ (epoch + 1) * 0xD1B54A32D192ED03 & mask
    numbers = list(range(count))
    for i in range(count, 1, -1):
        state = state + 0x9E3779B97F4A7C15 & mask
        z = (state ^ state >> 30) * 0xBF58476D1CE4E5B9 & mask
        z = (z ^ z >> 27) * 0x94D049BB133111EB & mask
        k = (z ^ z >> 31) % i
        numbers[k], numbers[i - 1] = numbers[i - 1], numbers[k]
    return numbers


def train(seed, steps, state, export):
    """Lines of `train --json`, which stay in a file. The rate of the first step is 0, so an export behind it is what a
    training begins with."""
    up = f"Linear(initial_learning_rate=0, end_learning_rate={RATE}, total_iters={WARMUP})"
    down = f"Linear(initial_learning_rate={RATE}, end_learning_rate=0, total_iters={STEPS - WARMUP})"
    lines = export.with_suffix(".jsonl")
    if not export.exists():
        with open(lines, "ab") as out:
            subprocess.run([str(a) for a in (
                MILLRACE, "train", MODEL, "--data", TRAIN, "--heldout-data", HELDOUT, "-o", state, "--steps", steps, "--batch", BATCH,
                "--schedule", f"{up}, {down}", "--decay", DECAY, "--beta2", 0.999, "--seed", seed, "--eval-every", EVERY,
                "--eval-windows", 0, "-d", os.environ.get("DEVICE", "model:"), "--export", export, "--json", "-q")], check=True, stdout=out)
    return [json.loads(line) for line in lines.read_text().splitlines()]


@torch.no_grad()
def predictions(model, texts):
    model.eval()
    return torch.cat([model(**texts.batch(part)[0]).logits.argmax(1) for part in torch.arange(len(texts.labels)).split(64)])


def accuracy(predicted, texts):
    return 100 * float((predicted == texts.labels).float().mean())


def load(folder, **more):
    model, info = BertForSequenceClassification.from_pretrained(folder, output_loading_info=True, dtype=torch.float32, **more)
    assert not any(info[k] for k in ("missing_keys", "unexpected_keys", "mismatched_keys")), info
    return model


def theirs(start, texts, held, seed, rates, file):
    """Accuracies by step and, at the end, predictions, of a training in PyTorch."""
    if file.exists():
        return json.loads(file.read_text())
    model = load(start, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0)
    decays = [p for n, p in model.named_parameters() if p.dim() == 2 and "embeddings" not in n]
    stay = [p for n, p in model.named_parameters() if p.dim() == 1 or "embeddings" in n]
    adamw = torch.optim.AdamW([{"params": decays, "weight_decay": DECAY}, {"params": stay, "weight_decay": 0.0}],
                              lr=RATE, betas=(0.9, 0.999), eps=1e-8)
    count, epoch, numbers, got = len(texts.labels), -1, [], {0: accuracy(predictions(model, held), held)}
    for step in range(1, STEPS + 1):
        own = []
        for k in range((step - 1) * BATCH, step * BATCH):
            if k // count != epoch:
                epoch = k // count
                numbers = order(count, seed, epoch)
            own.append(numbers[k % count])
        inputs, labels = texts.batch(torch.tensor(own))
        for group in adamw.param_groups:
            group["lr"] = rates[step]
        model.train()
        torch.nn.functional.cross_entropy(model(**inputs).logits, labels).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        adamw.step()
        adamw.zero_grad()
        if step % EVERY == 0 or step == STEPS:
            predicted = predictions(model, held)
            got[step] = accuracy(predicted, held)
    result = {"accuracy": {str(k): v for k, v in got.items()}, "predicted": predicted.tolist()}
    file.write_text(json.dumps(result))
    return result


def main():
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    texts, held = Texts(TRAIN), Texts(HELDOUT)
    print(f"# {len(texts.labels)} texts to learn, {len(held.labels)} held out; {STEPS} steps of {BATCH}; PyTorch {torch.__version__}")
    ours, its, same = [], [], []
    for seed in SEEDS:
        folder = DIR / f"seed-{seed}"
        folder.mkdir(parents=True, exist_ok=True)
        train(seed, 1, folder / "first", folder / "start")
        lines = train(seed, STEPS, folder / "state", folder / "tuned")
        rates = {o["step"]: o["rate"] for o in lines if "rate" in o}
        mine = {o["step"]: 100 * o["accuracy"] for o in lines if "accuracy" in o}
        pytorch = theirs(folder / "start", texts, held, seed, rates, folder / "pytorch.json")
        for step in sorted(mine):
            if str(step) in pytorch["accuracy"]:
                print(f"{DIR.name},{seed},{step},{pytorch['accuracy'][str(step)]:.2f},{mine[step]:.2f}", flush=True)
        exported = predictions(load(folder / "tuned"), held)
        agree = 100 * float((exported == torch.tensor(pytorch["predicted"])).float().mean())
        print(f"# seed {seed}: {mine[STEPS]:.2f} % on the device, {accuracy(exported, held):.2f} % of its export in transformers, "
              f"{pytorch['accuracy'][str(STEPS)]:.2f} % in PyTorch, which agrees on {agree:.2f} %", flush=True)
        ours.append(mine[STEPS])
        its.append(pytorch["accuracy"][str(STEPS)])
        same.append(agree)
    mean = [sum(v) / len(v) for v in (ours, its, same)]
    ok(len(rates) == STEPS, "every step has its rate")
    ok(abs(mean[0] - mean[1]) <= POINTS, "mean accuracy", f"{mean[0]:.2f} % on the device, {mean[1]:.2f} % in PyTorch")
    ok(mean[2] >= AGREE, "predictions that agree", f"{mean[2]:.2f} % in the mean, {min(same):.2f} % at least")
    return done()


if __name__ == "__main__":
    sys.exit(main())
