#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`millrace eval` against EleutherAI's lm-evaluation-harness: the harness divides the same questions into tokens, scores them
with the logits of the library (host/python/millrace.py) and counts; every log-likelihood and every figure must be those of
`millrace eval`. Prints TAP. usage: evaluate.py BUILD (from the root; make test-interop)"""
import json
import random
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import lm_eval
import numpy as np
from lm_eval.api.model import TemplateLM
from lm_eval.tasks import TaskManager

BUILD, DEMO = Path(sys.argv[1]), Path("models/demo")
sys.path.insert(0, "host/python")
import millrace  # noqa: E402
from tap import done, ok  # noqa: E402


class Library(TemplateLM):
    """The harness' own division into tokens (TemplateLM.loglikelihood), on logits of the library."""

    def __init__(self, model, session):
        super().__init__()
        self.model, self.session, self.max_length = model, session, model.info["n_positions"]

    @property
    def eot_token_id(self):
        return self.model.info["eos_token_id"]

    def tok_encode(self, string, add_special_tokens=None, **kwargs):
        return self.model.encode(string)

    def _loglikelihood_tokens(self, requests, **kwargs):
        out = []
        for _, context, continuation in requests:
            tokens = (context + continuation)[-(self.max_length + 1):]
            n = len(continuation)
            x = np.array(self.session.logits(tokens[:-1], every=True)[-n:], dtype=np.float64)
            x -= x.max(axis=1, keepdims=True)
            logp = x - np.log(np.exp(x).sum(axis=1, keepdims=True))
            out.append((float(sum(logp[i, t] for i, t in enumerate(continuation))),
                        all(int(row.argmax()) == t for row, t in zip(logp, continuation))))
        return out

    def loglikelihood_rolling(self, requests, disable_tqdm=False):
        raise NotImplementedError

    def generate_until(self, requests, disable_tqdm=False):
        raise NotImplementedError


def questions(work):
    """From held-out text: contexts that end anywhere, also in white space or inside a word, and choices of any length."""
    rnd = random.Random(11)
    text = re.sub(r"[ \n]+", " ", (DEMO / "heldout.txt").read_text())
    choice, cloze = [], []
    for i in range(60):
        at = rnd.randrange(3000, len(text) - 3000)
        context = text[at - rnd.choice([5, 80, 300, 2600]):at] + rnd.choice(["", " ", "\n", " \t ", "\u00a0"])
        choices = [text[at:at + rnd.randrange(2, 40)].strip() or "a"]
        choices += [text[k:k + rnd.randrange(2, 40)].strip() or "b" for k in (rnd.randrange(len(text) - 50) for _ in range(3))]
        choices[rnd.randrange(4)] += rnd.choice(["", " \u00e9\u4e2d", "."])
        gold = rnd.randrange(4)
        choice.append({"context": context if i else "", "choices": choices, "gold": gold})
        at = text.index(" ", at)
        cloze.append({"context": text[at - 200:at], "continuation": text[at:text.index(" ", at + 1)]})
    cloze.append({"context": "And he said unto", "continuation": " them"})
    for name, rows in (("choice", choice), ("cloze", cloze)):
        (work / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    common = "dataset_path: json\ndataset_kwargs:\n  data_files:\n    test: {work}/{name}.jsonl\ntest_split: test\ndoc_to_text: \"{{{{context}}}}\"\n"
    (work / "choice.yaml").write_text("task: millrace_choice\n" + common.format(work=work, name="choice") + """output_type: multiple_choice
doc_to_choice: "{{choices}}"
doc_to_target: gold
metric_list:
  - metric: acc
  - metric: acc_norm
  - metric: acc_bytes
metadata:
  version: 1
""")
    (work / "cloze.yaml").write_text("task: millrace_cloze\n" + common.format(work=work, name="cloze") + """output_type: loglikelihood
doc_to_target: "{{continuation}}"
metric_list:
  - metric: perplexity
    aggregation: perplexity
    higher_is_better: false
  - metric: acc
    aggregation: mean
    higher_is_better: true
metadata:
  version: 1
""")


def ours(work, name):
    run = subprocess.run([BUILD / "millrace", "eval", DEMO, "--tasks", work / f"{name}.jsonl", "--details", work / "details", "--json"],
                         check=True, stdout=subprocess.PIPE)
    return json.loads(run.stdout), [json.loads(line) for line in (work / "details").read_text().splitlines()]


def same_answers(samples, details, name):
    theirs = [[r[0] for r in s["resps"]] for s in sorted(samples, key=lambda s: s["doc_id"])]
    worst = max(abs(a[0] - b) for s, d in zip(theirs, details) for a, b in zip(s, d["loglikelihood"]))
    ok(len(theirs) == len(details) and [len(s) for s in theirs] == [len(d["greedy"]) for d in details] and worst < 1e-9,
       f"{name}: log-likelihoods", f"{sum(map(len, theirs))} of them, largest difference {worst:.1e}")
    ok([[bool(a[1]) for a in s] for s in theirs] == [d["greedy"] for d in details], f"{name}: what is greedy")


with tempfile.TemporaryDirectory() as tmp, millrace.Model(str(DEMO)) as model, model.session("model:") as session:
    work = Path(tmp)
    questions(work)
    result = lm_eval.simple_evaluate(model=Library(model, session), tasks=["millrace_choice", "millrace_cloze"],
                                     task_manager=TaskManager(include_path=str(work)), bootstrap_iters=100)
    theirs, (said, details) = result["results"]["millrace_choice"], ours(work, "choice")
    same_answers(result["samples"]["millrace_choice"], details, "multiple choice")
    for metric in ("acc", "acc_norm", "acc_bytes", "acc_stderr", "acc_norm_stderr"):
        if f"{metric},none" in theirs or metric != "acc_bytes":  # older versions do not have it
            ok(abs(theirs[f"{metric},none"] - said["multiple_choice"][metric]) < 1e-8, f"multiple choice: {metric}", f"{theirs[f'{metric},none']:.4f}")
    ok(len({said["multiple_choice"][m] for m in ("acc", "acc_norm")}) == 2, "the two accuracies are told apart")
    theirs, (said, details) = result["results"]["millrace_cloze"], ours(work, "cloze")
    same_answers(result["samples"]["millrace_cloze"], details, "cloze")
    ok(abs(theirs["acc,none"] - said["cloze"]["acc"]) < 1e-8 and theirs["acc,none"] > 0, "cloze: acc", f"{theirs['acc,none']:.4f}")
    ok(abs(theirs["perplexity,none"] / said["cloze"]["perplexity"] - 1) < 1e-8, "cloze: perplexity", f"{theirs['perplexity,none']:.3f}")
sys.exit(done())
