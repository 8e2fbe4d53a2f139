#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Encoders beside transformers: random weights in MiniLM's shape, embeddings of 200 sentences, masked words and labels,
on cpu:, and OpenAI's client at an encoder's server. Prints TAP. usage: bert.py BUILD (from the root; make test-interop)"""
import json
import random
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import openai
import torch
import transformers
from transformers import BertConfig, BertForMaskedLM, BertForSequenceClassification, BertModel

sys.path.insert(0, "tests/fixtures")
from tap import done, ok  # noqa: E402
from wordpiece import SETTINGS, learn  # noqa: E402

MILLRACE = Path(sys.argv[1]) / "millrace"


def sentences():
    words = [w for p in sorted(Path("docs").rglob("*.md")) for w in p.read_text().split()]
    rnd = random.Random(3)
    # None begins like an option.
    return ["a " + " ".join(words[i:i + rnd.randrange(1, 60)]) for i in (rnd.randrange(len(words)) for _ in range(200))]


def save(cls, folder, tokenizer, **more):
    torch.manual_seed(len(str(folder)))
    config = BertConfig(vocab_size=tokenizer.get_vocab_size(), hidden_size=384, num_hidden_layers=6, num_attention_heads=12,
                        intermediate_size=1536, initializer_range=0.08, **more)
    model = cls(config).eval()
    with torch.no_grad():  # biases and gains that are not all the same
        for p in model.parameters():
            if p.dim() == 1:
                p += torch.randn_like(p) * 0.1
    model.save_pretrained(folder)
    (folder / "tokenizer.json").write_text(tokenizer.to_str())
    return model


def run(*command, lines=None):
    out = subprocess.run([str(c) for c in (MILLRACE, *command)], check=True, stdout=subprocess.PIPE,
                         input=None if lines is None else ("\n".join(lines) + "\n").encode()).stdout.decode()
    return [json.loads(x) for x in out.splitlines()]


def served(folder, model, texts, read):
    """OpenAI's client reads /v1/embeddings: rows as sentence-transformers makes them (mean, then length 1)."""
    server = subprocess.Popen([MILLRACE, "serve", folder, "--port", "0"], stdout=subprocess.PIPE, text=True)
    try:
        client = openai.OpenAI(base_url=server.stdout.readline().split()[-1] + "/v1", api_key="none")
        worst = 0.0
        for form in ({}, {"encoding_format": "float"}):  # the client asks for base64 unless it is told not to
            answer = client.embeddings.create(model=folder.name, input=texts, **form)
            with torch.no_grad():
                for text, data in zip(texts, answer.data):
                    ids, types = read(text)
                    row = model(input_ids=ids, token_type_ids=types).last_hidden_state[0].mean(0)
                    theirs = torch.nn.functional.normalize(row, dim=0).numpy()
                    worst = max(worst, float(np.abs(np.array(data.embedding) - theirs).max()))
        tokens = sum(read(t)[0].shape[1] for t in texts)
        ok(worst < 1e-5 and [d.index for d in answer.data] == list(range(len(texts))) and answer.usage.prompt_tokens == tokens,
           "openai: embeddings", f"{len(texts)} sentences, largest difference {worst:.1e}")
        try:
            client.completions.create(model=folder.name, prompt="x")
            ok(False, "openai: a completion of an encoder is refused", "accepted")
        except openai.BadRequestError as e:
            ok("encoder" in e.message, "openai: a completion of an encoder is refused", e.message[:100])
    finally:
        server.terminate()
        server.wait()


def main():
    print("#", transformers.__name__, transformers.__version__)
    transformers.logging.set_verbosity_error()
    texts = sentences()
    tokenizer = learn(texts, SETTINGS[0])

    def read(text, pair=None):
        e = tokenizer.encode(text, pair)
        return torch.tensor([e.ids]), torch.tensor([e.type_ids])

    with tempfile.TemporaryDirectory() as tmp:
        work = Path(tmp)
        model = save(BertModel, work / "plain", tokenizer)
        for name, pool in (("mean", lambda x: x.mean(0)), ("cls", lambda x: x[0])):
            mine = run("embed", work / "plain", "-f", "-", "--pooling", name, "--json", lines=texts)
            worst = 1.0
            with torch.no_grad():
                for text, row in zip(texts, mine):
                    ids, types = read(text)
                    theirs = pool(model(input_ids=ids, token_type_ids=types).last_hidden_state[0]).double().numpy()
                    x = np.array(row["embedding"])
                    assert row["tokens"] == ids.shape[1]
                    worst = min(worst, float(x @ theirs / np.linalg.norm(theirs) / np.linalg.norm(x)))
            ok(len(mine) == len(texts) and worst >= 0.999999, f"embeddings, {name}", f"{len(texts)} sentences, smallest cosine 1 - {1 - worst:.1e}")

        served(work / "plain", model, texts[:40], read)

        model = save(BertForMaskedLM, work / "words", tokenizer)
        text = "The [MASK] of the engine is [MASK] a token."
        ids, types = read(text)
        with torch.no_grad():
            p = model(input_ids=ids, token_type_ids=types).logits[0].softmax(-1)[ids[0] == tokenizer.token_to_id("[MASK]")]
        mine = run("fill-mask", work / "words", text, "--json")[0]["masks"]
        same = all([w["token"] for w in words] == q.topk(5).indices.tolist() and
                   np.allclose([w["probability"] for w in words], q.topk(5).values.numpy(), rtol=1e-4) for words, q in zip(mine, p))
        ok(len(mine) == 2 and same, "words for two masks")

        model = save(BertForSequenceClassification, work / "labels", tokenizer, num_labels=5)
        worst = 0.0
        for text in texts[:20]:
            ids, types = read(text, "Something else?")
            with torch.no_grad():
                theirs = model(input_ids=ids, token_type_ids=types).logits[0].softmax(-1).numpy()
            mine = run("classify", work / "labels", text, "--pair", "Something else?", "--json")[0]["labels"][0]["probabilities"]
            worst = max(worst, float(np.abs(np.array(list(mine.values())) - theirs).max()))
        ok(worst < 1e-5, "labels of 20 pairs", f"largest difference {worst:.1e}")
    return done()


if __name__ == "__main__":
    sys.exit(main())
