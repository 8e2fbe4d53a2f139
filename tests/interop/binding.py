# SPDX-License-Identifier: Apache-2.0
"""host/python/millrace.py against the command line, on the demo model; the standard library only. TAP.
usage: python3 tests/interop/binding.py BUILD (from the root)"""
import gc
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

build = Path(sys.argv[1])
sys.path.insert(0, "host/python")
import millrace  # noqa: E402  (it loads the library that MILLRACE_LIBRARY names)
from tap import done, ok  # noqa: E402

DEMO, PROMPT = "models/demo", "And the king said"


def cli(*args):
    return subprocess.run([build / "millrace", *args], check=True, capture_output=True).stdout.decode()


def loads(file, environment=()):
    """The library that the binding finds when it lies at FILE, without MILLRACE_LIBRARY."""
    env = {k: v for k, v in os.environ.items() if k not in ("MILLRACE_LIBRARY", "LD_LIBRARY_PATH")} | dict(environment)
    script = ("import sys; m = {'__file__': sys.argv[1], '__name__': 'm'}; "
              "exec(compile(open('host/python/millrace.py').read(), 'm', 'exec'), m); print(m['lib']._name)")
    return subprocess.run([sys.executable, "-c", script, str(file)], env=env, capture_output=True, text=True).stdout.strip()


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
with tempfile.TemporaryDirectory() as work:
    state, model, rows = f"{work}/state", "tests/fixtures/train/gptj-d12-r4", [[5, 6, 7], [1, 2, 3, 4]]
    with millrace.Trainer(state, model, device="model:tinyt") as trainer:
        before = trainer.evaluate(rows)
        steps = [trainer.step([rows, rows], rate=1e-2) for _ in range(3)]
        ok(steps[0]["loss"] == before and steps[2]["step"] == 3 and trainer.evaluate(rows) < before - 1, "binding: training")
        trainer.begin(1)
        masked = trainer.backward(rows, mask=[[1, 0, 0], [0, 0, 1, 0]])
        named = trainer.evaluate(rows, targets=[[6, -1, -1], [-1, -1, 4, -1]])
        ok(masked == named, "binding: masks and targets")
        names = trainer.tensors
        ok(sum(names.values()) == trainer.info["parameters"] and any(trainer.gradient("lm_head.bias")), "binding: gradients")
        ok(error_of(lambda: trainer.gradient("nonesuch")) is not None, "binding: a tensor that is not there")
        trainer.save(f"{work}/out")
    with millrace.Trainer(state, model, device="model:tinyt", recompute=True) as trainer:
        ok(trainer.info["step"] == 3, "binding: a state goes on")
    other = error_of(lambda: millrace.Trainer(state, "models/demo", device="model:tinyt"))
    ok(other is not None and "the state of another model" in other[1], "binding: the state of another model")
ok(loads(Path("host/python/millrace.py").resolve()) == str(Path("build/libmillrace.so").resolve().parent / "libmillrace.so")
   or build != Path("build"), "binding: in the tree, the library that was built")
with tempfile.TemporaryDirectory() as work:
    prefix, soname = Path(work).resolve(), "libmillrace.so.0.1"
    file = prefix / "share/millrace/python/millrace.py"
    for directory in (prefix / "lib/triplet", prefix / "lib"):
        directory.mkdir(parents=True, exist_ok=True)
        shutil.copy(build / "libmillrace.so", directory / soname)
        ok(loads(file) == str(directory / soname), f"binding: installed, the library in {directory.relative_to(prefix)}")
    for copy in ("/millrace.py", "/srv/millrace.py", prefix / "millrace.py"):
        ok(loads(copy, {"LD_LIBRARY_PATH": prefix / "lib"}.items()) == soname, "binding: a copy alone, the system's library")
ok(error_of(lambda: millrace.Model("no-such-model"))[0] == -2, "binding: a model that is not there")
gc.collect()
sys.exit(done())
