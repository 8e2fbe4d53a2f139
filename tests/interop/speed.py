#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Decode on one thread: `model:` beside ggml's q8_0, the demo model and a layer of GPT-J-6B's size, turn by turn in one run.
Prints TAP. What is compared must be the same model; times are printed, and judged with BARS=1 alone: then MXINT8 must be as
fast as q8_0, and MXFP4 have 0.8 of MXINT8's speed. usage: speed.py BUILD (from the root; make test-interop)"""
import json
import os
import platform
import re
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

from tap import done, ok

BUILD, DEMO = Path(sys.argv[1]), Path("models/demo")
HELPER, PEER = BUILD / "interop" / "helper", BUILD / "interop-ggml" / "peer"
ROUNDS = int(os.environ.get("ROUNDS", "9"))
LAYER = "synthetic:gptj-6b,layers=1,vocab=64"


def run(*command):
    env = os.environ | {"MILLRACE_THREADS": "1"}
    return subprocess.run([str(c) for c in command], check=True, stdout=subprocess.PIPE, env=env).stdout


def times(*command):
    return [float(line.split()[0]) for line in run(*command).decode().splitlines()]


def processor():
    found = re.search(r"^model name\s*: (.*)$", Path("/proc/cpuinfo").read_text(), re.M)
    return f"{found.group(1) if found else platform.machine()}, {os.cpu_count()} processors"


def write_weights(path):
    """The demo model as peer.c reads it: fp32, one tensor after the other."""
    data = (DEMO / "model.safetensors").read_bytes()
    begin = 8 + int.from_bytes(data[:8], "little")
    tensors = json.loads(data[8:begin])
    config = json.loads((DEMO / "config.json").read_text())
    names = ["transformer.wte.weight"]
    for i in range(config["n_layer"]):
        h = f"transformer.h.{i}."
        names += [h + "ln_1.weight", h + "ln_1.bias", *(f"{h}attn.{x}_proj.weight" for x in ("q", "k", "v", "out"))]
        names += [f"{h}mlp.{x}.{part}" for x in ("fc_in", "fc_out") for part in ("weight", "bias")]
    names += ["transformer.ln_f.weight", "transformer.ln_f.bias", "lm_head.weight", "lm_head.bias"]
    with open(path, "wb") as f:
        for name in names:
            assert tensors[name]["dtype"] == "BF16"  # fp32 without its lower half
            first, end = tensors[name]["data_offsets"]
            f.write((np.frombuffer(data[begin + first:begin + end], dtype="<u2").astype("<u4") << 16).tobytes())
    n = config["n_embd"]
    return [config["n_layer"], n, config["n_head"], config["rotary_dim"], config["n_inner"] or 4 * n, config["vocab_size"]]


def check_same(peer):
    """ggml's logits against those of the fp32 reference."""
    ids = [200 + 7 * i for i in range(12)]
    theirs = np.array([line.split()[1:] for line in run(*peer, *ids).decode().splitlines()], dtype=np.float32)
    reference = np.frombuffer(run(HELPER, "logits", DEMO, "cpu:", "mxint8", *ids), dtype=np.float32).reshape(theirs.shape)
    rms = float(np.sqrt(((theirs - reference) ** 2).mean()) / reference.std())
    ok(0 < rms < 0.03, "ggml's program computes the demo model", f"rms {rms:.2%} of the logits' deviation from cpu:")


def race(name, model, head, count, peer):
    ids = [1 + i for i in range(count)]
    commands = {"q8_0": [*peer, *ids]} | {f: [HELPER, "decode", model, "model:", f, head, *ids] for f in ("mxint8", "mxfp4")}
    got = {side: [] for side in commands}
    for _ in range(ROUNDS):
        for side, command in commands.items():
            got[side].append(statistics.median(times(*command)))
    best = {side: min(t) for side, t in got.items()}
    for side, t in got.items():
        print(f"# {name}: {side:6}  {1 / statistics.median(t):8.1f} tokens/s (best of {ROUNDS}: {1 / best[side]:.1f})")
    # What else the machine does slows neighbours in time alike, so ratios are taken round by round.
    ratio = statistics.median(a / b for a, b in zip(got["q8_0"], got["mxint8"]))
    fp4 = statistics.median(a / b for a, b in zip(got["mxint8"], got["mxfp4"]))
    said = f"MXINT8 is {ratio:.2f} times as fast as ggml's q8_0, MXFP4 {fp4:.2f} times as fast as MXINT8"
    bars = os.environ.get("BARS") == "1"
    ok(not bars or (ratio >= 1 and fp4 >= 0.8), f"{name}: decode on one thread", said)


def main():
    print(f"# {processor()}")
    with tempfile.TemporaryDirectory() as tmp:
        weights = Path(tmp) / "demo.f32"
        peer = [PEER, weights, 1, *write_weights(weights)]
        check_same(peer)
        race("demo model", DEMO, 1, 128, peer)
    race("GPT-J-6B layer", LAYER, 0, 12, [PEER, "random", 1, 1, 4096, 16, 64, 16384, 0])
    return done()


if __name__ == "__main__":
    sys.exit(main())
