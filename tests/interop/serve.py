#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`millrace serve` with the clients that people have: OpenAI's, and EleutherAI's lm-evaluation-harness (local-completions, a
local tokenizer, a task of local data), whose log-likelihoods must be those of the library. Prints TAP.
usage: serve.py BUILD (from the root; make test-interop)"""
import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import openai
import tokenizers

from tap import done, ok

BUILD = Path(sys.argv[1])
MILLRACE, HELPER = BUILD / "millrace", BUILD / "interop" / "helper"
DEMO = Path("models/demo")
PROMPT = "And the LORD spake unto Moses"


def refused(kind, name, **request):
    try:
        client.completions.create(**({"model": "demo", "prompt": "x"} | request))
        ok(False, name, "accepted")
    except kind as e:
        ok(bool(e.message), name, e.message[:100])


def check_openai():
    said = json.loads(subprocess.run([MILLRACE, "generate", "-m", DEMO, "-d", "model:", "-p", PROMPT, "-n", "24", "--json"],
                                     check=True, stdout=subprocess.PIPE).stdout)["text"]
    ask = {"model": "demo", "prompt": PROMPT, "max_tokens": 24, "temperature": 0}
    ok([m.id for m in client.models.list()] == ["demo"], "openai: models.list")
    ok(client.models.retrieve("demo").owned_by == "millrace", "openai: models.retrieve")
    whole = client.completions.create(**ask)
    ok(whole.choices[0].text == said, "openai: text as millrace generate", repr(said[:40]))
    ok(whole.usage.completion_tokens == 24 and whole.choices[0].finish_reason == "length", "openai: usage and reason")
    pieces = [c for c in client.completions.create(**ask, stream=True, stream_options={"include_usage": True})]
    ok("".join(c.choices[0].text for c in pieces if c.choices) == said and len(pieces) > 3, "openai: stream", f"{len(pieces)} events")
    ok(pieces[-1].usage.completion_tokens == 24, "openai: usage of a stream")
    echo = client.completions.create(**ask, echo=True, logprobs=2).choices[0]
    ok(echo.text == PROMPT + said and "".join(echo.logprobs.tokens) == echo.text, "openai: echo with logprobs")
    ok(echo.logprobs.token_logprobs[0] is None and all(x < 0 for x in echo.logprobs.token_logprobs[1:]), "openai: logprobs are logarithms")
    ok(all(echo.text[a:].startswith(t) for a, t in zip(echo.logprobs.text_offset, echo.logprobs.tokens)), "openai: text_offset")
    refused(openai.BadRequestError, "openai: BadRequestError", max_tokens=-1)
    refused(openai.NotFoundError, "openai: NotFoundError", model="gpt-4")
    refused(openai.BadRequestError, "openai: what is not supported is refused", logit_bias={"1": 5})


def check_chat():
    talk = [{"role": "system", "content": "A talk."}, {"role": "user", "content": "Who art thou?"}]
    ask = {"model": "demo", "messages": talk, "max_tokens": 24, "temperature": 0}
    whole = client.chat.completions.create(**ask, logprobs=True, top_logprobs=2)
    said = whole.choices[0].message
    same = client.completions.create(model="demo", prompt="A talk.\nUser: Who art thou?\nAssistant:", stop="\nUser:",
                                     max_tokens=24, temperature=0).choices[0].text.lstrip(" ")
    ok(said.role == "assistant" and said.content == same, "openai: chat is the prompt of millrace chat", repr(same[:40]))
    tokens = whole.choices[0].logprobs.content
    ok(len(tokens) > 3 and all(t.logprob <= 0 and len(t.top_logprobs) == 2 for t in tokens), "openai: logprobs of a chat")
    ok(b"".join(bytes(t.bytes) for t in tokens).decode().lstrip(" ") == same, "openai: bytes of the tokens are the text")
    pieces = list(client.chat.completions.create(**ask, stream=True, stream_options={"include_usage": True}))
    text = "".join(c.choices[0].delta.content or "" for c in pieces if c.choices)
    ok(text == same and pieces[0].choices[0].delta.role == "assistant", "openai: stream of a chat", f"{len(pieces)} events")
    ok(pieces[-1].usage.prompt_tokens == whole.usage.prompt_tokens, "openai: usage of a streamed chat")
    for name, call in [("a chat without a user", lambda: client.chat.completions.create(**ask | {"messages": talk[:1]})),
                       ("embeddings", lambda: client.embeddings.create(model="demo", input="x"))]:
        try:
            call()
            ok(False, f"openai: {name} is refused", "accepted")
        except openai.BadRequestError as e:
            ok(bool(e.message), f"openai: {name} is refused", e.message[:100])


# ---- lm-evaluation-harness ----

def questions(work):
    """Which words come next in held-out text, the right ones and three that are not."""
    words = re.sub(r"\s+", " ", (DEMO / "heldout.txt").read_text()[2000:40000]).split(" ")
    with open(work / "next.jsonl", "w") as f:
        for i in range(0, 600, 30):
            choices = [" ".join(words[i + k:i + k + 4]) for k in (20, 700, 1400, 2100)]
            f.write(json.dumps({"context": " ".join(words[i:i + 20]), "choices": choices, "gold": 0}) + "\n")
    (work / "next.yaml").write_text(f"""task: millrace_next
dataset_path: json
dataset_kwargs:
  data_files:
    test: {work}/next.jsonl
test_split: test
output_type: multiple_choice
doc_to_text: "{{{{context}}}}"
doc_to_choice: "{{{{choices}}}}"
doc_to_target: gold
metric_list:
  - metric: acc
metadata:
  version: 1
""")
    directory = work / "tokenizer"
    directory.mkdir()
    (directory / "tokenizer.json").write_text((DEMO / "tokenizer.json").read_text())
    (directory / "tokenizer_config.json").write_text(json.dumps({"tokenizer_class": "PreTrainedTokenizerFast", "eos_token": "<|endoftext|>"}))
    return directory


def expected(model, context, continuation):
    """The log-likelihood from the logits of the library, and whether greedy decoding gives the continuation."""
    tok = tokenizers.Tokenizer.from_file(str(DEMO / "tokenizer.json"))
    whole, n = tok.encode(context + continuation).ids, len(tok.encode(context).ids)
    out = subprocess.run([str(HELPER), "logits", str(model), "model:", "mxint8", *map(str, whole)], check=True, stdout=subprocess.PIPE).stdout
    x = np.frombuffer(out, dtype=np.float32).astype(np.float64).reshape(len(whole), -1)
    x -= x.max(axis=1, keepdims=True)
    logp = x - np.log(np.exp(x).sum(axis=1, keepdims=True))
    return (sum(logp[i - 1, whole[i]] for i in range(n, len(whole))),
            all(int(logp[i - 1].argmax()) == whole[i] for i in range(n, len(whole))))


def check_harness(url, work):
    import lm_eval
    from lm_eval.tasks import TaskManager
    directory = questions(work)
    result = lm_eval.simple_evaluate(
        model="local-completions", tasks=["millrace_next"], task_manager=TaskManager(include_path=str(work)), bootstrap_iters=0,
        model_args=f"model=demo,base_url={url}/v1/completions,tokenizer={directory},tokenizer_backend=huggingface,num_concurrent=4,max_length=512")
    samples = result["samples"]["millrace_next"]
    pairs = [(arg, resp[0]) for s in samples for arg, resp in zip(s["arguments"], s["resps"])]
    worst = wrong = 0
    for (context, continuation), (logprob, greedy) in pairs[::4] + pairs[1::4][:5]:
        want, greedy_want = expected(work / "demo.mill", context, continuation)
        worst = max(worst, abs(logprob - want))
        wrong += bool(greedy) != greedy_want
    ok(len(pairs) == 80 and worst < 1e-6, "lm_eval: log-likelihoods are the library's", f"{len(pairs)} requests, largest difference {worst:.1e}")
    ok(wrong == 0, "lm_eval: what is greedy")
    acc = result["results"]["millrace_next"]["acc,none"]
    ok(acc > 0.5, "lm_eval: the right continuation is mostly the likeliest", f"accuracy {acc:.2f}")


with tempfile.TemporaryDirectory() as tmp:
    subprocess.run([MILLRACE, "pack", DEMO, Path(tmp) / "demo.mill", "-q"], check=True)
    server = subprocess.Popen([MILLRACE, "serve", Path(tmp) / "demo.mill", "-d", "model:", "--port", "0"], stdout=subprocess.PIPE, text=True)
    try:
        url = server.stdout.readline().split()[-1]
        client = openai.OpenAI(base_url=f"{url}/v1", api_key="none", max_retries=0)
        check_openai()
        check_chat()
        check_harness(url, Path(tmp))
    finally:
        server.terminate()
        ok(server.wait(timeout=600) == 0, "the server ends with 0")
sys.exit(done())
