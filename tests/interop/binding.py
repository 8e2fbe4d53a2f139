# SPDX-License-Identifier: Apache-2.0
"""host/python/millrace.py against the command line, on the demo model; the standard library only. TAP.
usage: python3 tests/interop/binding.py BUILD (from the root)"""
import gc
import subprocess
import sys
from pathlib import Path

build = Path(sys.argv[1])
sys.path.insert(0, "host/python")
import millrace  # noqa: E402  (it loads the library that MILLRACE_LIBRARY names)

DEMO, PROMPT = "models/demo", "And the king said"
number = failed = 0


def ok(good, name):
    global number, failed
    number += 1
    failed += not good
    print(f"{'ok' if good else 'not ok'} {number} - {name}")


def cli(*args):
    return subprocess.run([build / "millrace", *args], check=True, capture_output=True).stdout.decode()


def error_of(function):
    try:
        function()
    except millrace.Error as e:
        return e.status, str(e)
    return None


with millrace.Model(DEMO) as model:
    tokens = model.encode(PROMPT)
    ok(model.decode(tokens).decode() == PROMPT and len(tokens) > 2, "binding: tokens and back")
    ok(model.decode(model.encode(b"\xff\x00x")) == b"\xff\x00x", "binding: any bytes")
    ok(model.info["n_layer"] == 4 and model.info["kv_bytes"] > 0, "binding: what the model is")
    want = cli("generate", "-m", DEMO, "-d", "model:", "-n", "24", "-p", PROMPT)
    with model.session("model:") as session:
        ok(PROMPT + session.generate(PROMPT, max_tokens=24) + "\n" == want, "binding: the text of millrace generate")
        several = session.generate([PROMPT, tokens, "In the beginning"], max_tokens=24)
        ok(several[0] == several[1] == session.generate(PROMPT, max_tokens=24) and len(several) == 3, "binding: several prompts")
        args = ["--temperature", "0.9", "--top-p", "0.8", "--top-k", "50", "--seed", "7", "--repetition-penalty", "1.2"]
        want = cli("generate", "-m", DEMO, "-d", "model:", "-n", "24", "-p", PROMPT, "--stop", "and", *args)
        pieces = []
        got = session.generate(PROMPT, max_tokens=24, temperature=0.9, top_p=0.8, top_k=50, seed=7, repetition_penalty=1.2,
                               stop="and", text=lambda number, piece: pieces.append(piece))
        ok(PROMPT + got + "\n" == want and "".join(pieces) == got, "binding: sampling, stop strings, text as it comes")
        ok(error_of(lambda: session.generate("")) is not None, "binding: an empty prompt")
        try:
            session.generate(PROMPT, text=lambda number, piece: 1 / 0)
            ok(False, "binding: exceptions of a callback")
        except ZeroDivisionError:
            ok(True, "binding: exceptions of a callback")
        every = session.logits(tokens, every=True)
        ok(len(every) == len(tokens) and every[-1] == session.logits(tokens), "binding: logits of every position")
        seq = session.new()
        steps = [list(session.step([(seq, t, True)])[0]) for t in tokens]
        ok(steps == every, "binding: token by token, the same bits")
        status, text = error_of(session.new) or (0, "")
        ok(status == -7 and "sequences are in use" in text, "binding: errors are exceptions")
        session.free(seq)
        ok(error_of(lambda: session.step([(seq, 10 ** 6, True)])) is not None, "binding: a token that is none")
    with model.session("sim:tiny") as session:
        ok(session.logits(tokens) == every[-1], "binding: sim: gives the same bits")
ok(error_of(lambda: millrace.Model("no-such-model"))[0] == -2, "binding: a model that is not there")
gc.collect()
print(f"1..{number}")
sys.exit(failed > 0)
