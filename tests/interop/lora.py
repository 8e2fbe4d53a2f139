#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""LoRA beside PEFT: the same adapter, the same micro-batch, 20 steps of AdamW. In fp32 on the reference the losses are PEFT's
to 1e-3, on `model:` to 0.01. What PEFT saves is read, what is exported loads in PEFT and has its logits, merged and not; a
GPT-J and a GPT-2, whose matrices are [inputs][outputs] and three in one. Prints TAP.
usage: lora.py BUILD (from the root; make test-interop)"""
import subprocess
import sys
import tempfile
from pathlib import Path

import torch
from peft import LoraConfig, PeftModel, get_peft_model
from transformers import AutoModelForCausalLM, GPT2Config, GPT2LMHeadModel, PreTrainedTokenizerFast

sys.path.insert(0, "host/python")
from millrace import Trainer  # noqa: E402
from tap import done, ok  # noqa: E402

BUILD, DEMO = Path(sys.argv[1]), Path("models/demo")
SEQUENCES, LENGTH, STEPS, RATE = 4, 48, 20, 2e-3
TOOL = BUILD / "interop" / "lora"


def batch(base, vocabulary):
    """Text where there is a tokenizer."""
    n = SEQUENCES * (LENGTH + 1)
    if (base / "tokenizer.json").exists():
        ids = PreTrainedTokenizerFast(tokenizer_file=str(base / "tokenizer.json")).encode((base / "heldout.txt").read_text())
        return torch.tensor(ids[:n]).reshape(SEQUENCES, LENGTH + 1)
    return torch.randint(vocabulary, (SEQUENCES, LENGTH + 1), generator=torch.Generator().manual_seed(5))


def peft_steps(model, ids):
    """Losses of PEFT's training on one batch."""
    optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=RATE, betas=(0.9, 0.999),
                                  eps=1e-8, weight_decay=0)
    losses = []
    for _ in range(STEPS):
        logits = model(input_ids=ids[:, :-1]).logits
        loss = torch.nn.functional.cross_entropy(logits.reshape(-1, logits.shape[-1]), ids[:, 1:].reshape(-1))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(float(loss.detach()))
    return losses


def our_steps(work, base, adapter, ids):
    """The same on model:, from PEFT's adapter; leaves its own."""
    losses = []
    with Trainer(work / "state", base, device="model:sim", tokens=SEQUENCES * LENGTH,
                 lora={"adapter": adapter}) as trainer:
        for _ in range(STEPS):
            trainer.begin()
            trainer.backward([row[:-1].tolist() for row in ids], targets=[row[1:].tolist() for row in ids])
            losses.append(trainer.apply(RATE, beta2=0.999, clip=0)["loss"])
        trainer.save_adapter(work / "ours")
        trainer.save(work / "merged")
    return losses


def apart(a, b):
    return max(abs(x - y) for x, y in zip(a, b))


def check(name, base, targets):
    model = AutoModelForCausalLM.from_pretrained(base, dtype=torch.float32).eval()
    ids = batch(base, model.config.vocab_size)
    torch.manual_seed(1)
    model = get_peft_model(model, LoraConfig(r=8, lora_alpha=16, lora_dropout=0.0, target_modules=targets,
                                             fan_in_fan_out=name == "gpt2"))
    with tempfile.TemporaryDirectory() as work:
        work = Path(work)
        model.save_pretrained(work / "begin")
        losses = peft_steps(model, ids)
        words = [TOOL, base, work / "begin", SEQUENCES, STEPS, RATE] + ids.reshape(-1).tolist()
        reference = [float(x) for x in subprocess.run([str(w) for w in words], check=True, capture_output=True,
                                                      text=True).stdout.split()]
        ok(len(reference) == STEPS and apart(losses, reference) < 1e-3,
           f"{name}: the fp32 reference has PEFT's losses of {STEPS} steps", f"{apart(losses, reference):.2e} apart")
        ours = our_steps(work, base, work / "begin", ids)
        ok(apart(losses, ours) < 0.01, f"{name}: so has model:",
           f"{apart(losses, ours):.2e} apart, from {losses[0]:.3f} to {losses[-1]:.3f}")
        ok(losses[-1] < losses[0] - 0.05, f"{name}: the loss falls")
        plain = AutoModelForCausalLM.from_pretrained(base, dtype=torch.float32).eval()
        loaded = PeftModel.from_pretrained(plain, work / "ours").eval()
        merged = AutoModelForCausalLM.from_pretrained(work / "merged", dtype=torch.float32).eval()
        with torch.no_grad():
            want, got, whole = (m(input_ids=ids[:, :-1]).logits for m in (model.eval(), loaded, merged))
        close = float((got - want).std() / want.std())
        ok(close < 0.1, f"{name}: what is exported loads in PEFT and has about its logits", f"{close:.2e} of their size")
        same = float((whole - got).abs().max())
        ok(same < 1e-3, f"{name}: merged it is the same model", f"{same:.2e} apart")


def gpt2(work):
    torch.manual_seed(3)
    config = GPT2Config(vocab_size=300, n_positions=64, n_embd=64, n_layer=2, n_head=4, resid_pdrop=0, embd_pdrop=0,
                        attn_pdrop=0, bos_token_id=0, eos_token_id=0)
    GPT2LMHeadModel(config).save_pretrained(work)
    return work


if __name__ == "__main__":
    check("gptj", DEMO, ["q_proj", "v_proj"])
    with tempfile.TemporaryDirectory() as own:
        check("gpt2", gpt2(Path(own)), ["c_attn"])
    sys.exit(done())
