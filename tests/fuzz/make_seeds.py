#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the seeds of tests/fuzz/corpus: small valid files of each kind, to begin from. What fuzzing added
to them later has a hash for a name. Needs build/millrace. usage: tests/fuzz/make_seeds.py (from the root)"""
import json
import shutil
import struct
import subprocess
import tempfile
import zipfile
from pathlib import Path

FIXTURES, CORPUS = Path("tests/fixtures"), Path("tests/fuzz/corpus")
TORCH = FIXTURES / "torch"


def put(target, name, data):
    where = CORPUS / target
    where.mkdir(parents=True, exist_ok=True)
    (where / f"seed-{name}").write_bytes(data.encode() if isinstance(data, str) else data)


def file(header, size):
    """A safetensors file of so many bytes of data."""
    text = json.dumps(header, separators=(",", ":")).encode()
    return struct.pack("<Q", len(text)) + text + bytes(range(256)) * (size // 256) + bytes(size % 256)


def safetensors():
    put("safetensors", "empty", file({}, 0))
    put("safetensors", "rank", file({"a": {"dtype": "F32", "shape": [1] * 8, "data_offsets": [0, 4]}}, 4))
    put("safetensors", "types", file({
        "__metadata__": {"format": "pt"},
        "a": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]},
        "b": {"dtype": "F16", "shape": [5], "data_offsets": [24, 34]},
        "c": {"dtype": "BF16", "shape": [1, 1, 3], "data_offsets": [34, 40]},
        "d": {"dtype": "I64", "shape": [], "data_offsets": [40, 48]},
        "e": {"dtype": "BOOL", "shape": [0, 7], "data_offsets": [48, 48]},
        "f": {"dtype": "I32", "shape": [4], "data_offsets": [48, 64]}}, 64))
    put("safetensors", "gptj", (TORCH / "fp32/twin.safetensors").read_bytes())


def torch():
    for name in ["refused/compressed", "refused/tensor", "refused/legacy", "refused/module", "bf16-sharded/"
                 "pytorch_model-00003-of-00003", "fp16-buffers/pytorch_model"]:
        path = TORCH / (name + ".bin")
        put("zip", name.split("/")[0] + "-" + path.stem, path.read_bytes())
    for name in ["refused/tensor", "refused/module", "refused/quantised", "refused/training-run", "fp32/pytorch_model",
                 "views/pytorch_model", "protocol4/pytorch_model"]:
        with zipfile.ZipFile(TORCH / (name + ".bin")) as z:
            member = next(n for n in z.namelist() if n.endswith("data.pkl"))
            put("pickle", name.replace("/", "-"), z.read(member))


def byte_vocab():
    printable = [*range(0x21, 0x7f), *range(0xa1, 0xad), *range(0xae, 0x100)]
    rest = [b for b in range(256) if b not in printable]
    chars = {b: chr(b) for b in printable} | {b: chr(0x100 + i) for i, b in enumerate(rest)}
    return {chars[b]: b for b in range(256)}


def tokenizer_json(merges, added):
    vocab = byte_vocab() | {"ab": 256, "abab": 257, "th": 258, "the": 259, "\u0120the": 260}
    return json.dumps({
        "version": "1.0", "normalizer": None,
        "added_tokens": [{"id": 261 + i, "content": c, "special": s, "lstrip": ls, "rstrip": rs, "single_word": sw,
                          "normalized": n} for i, (c, s, ls, rs, sw, n) in enumerate(added)],
        "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": False, "use_regex": True},
        "post_processor": {"type": "ByteLevel"}, "decoder": {"type": "ByteLevel"},
        "model": {"type": "BPE", "vocab": vocab, "merges": merges}}, ensure_ascii=False, separators=(",", ":"))


def tokenizer():
    plain = tokenizer_json(["a b", "ab ab", "t h", "th e", "\u0120 the"], [("<|endoftext|>", True, 0, 0, 0, 0)])
    plain = plain.replace('"lstrip":0,"rstrip":0,"single_word":0,"normalized":0',
                          '"lstrip":false,"rstrip":false,"single_word":false,"normalized":false')
    put("tokenizer", "plain", plain)
    put("tokenizer", "pairs", tokenizer_json([["a", "b"], ["t", "h"]], [
        ("<|endoftext|>", True, False, False, False, False), ("<x>", False, True, True, False, False),
        ("the", False, False, False, True, True)]))
    put("tokenizer", "no-vocabulary", '{"model":{"type":"BPE","vocab":{},"merges":[]},"pre_tokenizer":{"type":"ByteLevel"}}')
    put("tokenizer", "wordpiece", json.dumps({
        "added_tokens": [{"id": 3, "content": "<x>", "special": True}], "normalizer": {"type": "BertNormalizer", "strip_accents": None},
        "pre_tokenizer": {"type": "BertPreTokenizer"}, "post_processor": {"type": "BertProcessing", "cls": ["[C]", 1], "sep": ["[S]", 2]},
        "decoder": {"type": "WordPiece", "prefix": "##", "cleanup": True},
        "model": {"type": "WordPiece", "unk_token": "[U]", "max_input_chars_per_word": 9, "continuing_subword_prefix": "##",
                  "vocab": {"[U]": 0, "[C]": 1, "[S]": 2, "<x>": 3, "the": 4, "##the": 5, "##a": 6, "ete": 7, "a": 8, "##b": 9}}},
        separators=(",", ":")))
    return plain


CONFIG = json.loads((TORCH / "fp32/config.json").read_text())


def config():
    put("config", "fixture", json.dumps(CONFIG))
    put("config", "all", json.dumps(CONFIG | {"layer_norm_epsilon": 1e-5, "activation_function": "gelu_new", "n_inner": None,
                                              "tie_word_embeddings": False, "eos_token_id": None}, indent=1))
    put("config", "eos", json.dumps(CONFIG | {"eos_token_id": [12, 0, 3]}))
    put("config", "other", '{"model_type": "a name as long as it can be shown in a message and then a little longer than that, '
                           'so that it is cut"}')
    put("config", "array", "[1, 2.5e300, \"\\u0000\"]")


def packed(tokenizer_text):
    with tempfile.TemporaryDirectory() as tmp:
        tmp = Path(tmp)
        model = tmp / "model"
        shutil.copytree(TORCH / "fp32", model)
        (model / "twin.safetensors").rename(model / "model.safetensors")
        (model / "pytorch_model.bin").unlink()
        for name, options, text in [("mxint8", [], ""), ("mxfp4", ["--format", "mxfp4", "--no-smoothing"], ""),
                                    ("tokenizer", [], tokenizer_text)]:
            if text:
                (model / "tokenizer.json").write_text(text)
            subprocess.run(["build/millrace", "pack", "-q", model, tmp / "m", *options], check=True)
            data = (tmp / "m").read_bytes()
            stream, = struct.unpack_from("<Q", data, 64 + 4 * 64 + 8)
            put("packed", name, data[:384] + data[4096:stream].rstrip(b"\0"))  # the stream's bytes do not matter


def packed_encoder():
    """A BERT that tells texts apart, as small as one can be, with a tokenizer."""
    d, tensors, at = 4, {}, 0
    norm = {"weight": [d], "bias": [d]}
    parts = {"bert.embeddings.word_embeddings": {"weight": [5, d]}, "bert.embeddings.position_embeddings": {"weight": [4, d]},
             "bert.embeddings.token_type_embeddings": {"weight": [2, d]}, "bert.embeddings.LayerNorm": norm,
             "bert.pooler.dense": {"weight": [d, d], "bias": [d]}, "classifier": {"weight": [2, d], "bias": [2]}}
    for name in ["attention.self.query", "attention.self.key", "attention.self.value", "attention.output.dense",
                 "intermediate.dense", "output.dense"]:
        parts["bert.encoder.layer.0." + name] = {"weight": [d, d], "bias": [d]}
    for name in ["attention.output.LayerNorm", "output.LayerNorm"]:
        parts["bert.encoder.layer.0." + name] = norm
    for name, shapes in parts.items():
        for part, shape in shapes.items():
            size = 4 * shape[0] * (shape[1] if len(shape) > 1 else 1)
            tensors[f"{name}.{part}"] = {"dtype": "F32", "shape": shape, "data_offsets": [at, at + size]}
            at += size
    text = json.dumps(tensors).encode()
    with tempfile.TemporaryDirectory() as tmp:
        tmp = Path(tmp)
        (tmp / "config.json").write_text(json.dumps({
            "model_type": "bert", "architectures": ["BertForSequenceClassification"], "vocab_size": 5, "hidden_size": d,
            "num_hidden_layers": 1, "num_attention_heads": 1, "intermediate_size": d, "max_position_embeddings": 4}))
        (tmp / "vocab.txt").write_text("[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\n")
        (tmp / "model.safetensors").write_bytes(struct.pack("<Q", len(text)) + text + bytes(at))
        subprocess.run(["build/millrace", "pack", "-q", tmp, tmp / "m"], check=True)
        data = (tmp / "m").read_bytes()
        stream, = struct.unpack_from("<Q", data, 64 + 4 * 64 + 8)
        put("packed", "encoder", data[:384] + data[4096:stream].rstrip(b"\0"))


def kv():
    def file(count, tokens, flags=0):
        padded = (4 * count + 63) // 64 * 64
        size = 128 + padded + 2 * 2 * count * 128
        head = struct.pack("<8sIIQQIIIIII", b"MILLRAKV", 1, 128, size, 0x4D4D, 1, flags, 2, 128, count, 0)
        return head.ljust(128, b"\0") + struct.pack(f"<{count}i", *tokens).ljust(padded, b"\0") + bytes(size - 128 - padded)
    put("kv", "one", file(1, [7]))
    put("kv", "sixteen", file(16, range(16)))
    put("kv", "token", file(3, [1, 100, 2]))
    put("kv", "two-pass", file(2, [1, 2], 1))


def store():
    def file(step=0, side=0, updating=0, gap=102400, rest=b"", beta1=0.9):
        head = struct.pack("<8sIIQQQQQQQQQII", b"MILLRSTO", 1, 4096, 0, 3, 0, 15, 15, 49600, 651264, gap, step, side, updating)
        update = struct.pack("<QddddddII", 0, 1e-3, 0.1, beta1, 0.95, 1e-8, 0.1, 0, 0) if updating else bytes(64)
        units = b"".join(struct.pack("<ii", -20 - i, -19 - i) for i in range(15))
        return head + update + bytes(8 * 16 + 512) + units + rest

    def over(file, place, data):
        return struct.pack("<HBB", place // 16, file, len(data)) + data
    weights, sums = struct.pack("<4f", 1, -2, float("inf"), 1e-39), struct.pack("<4i", 1, -2, 2**31 - 1, -2**31)
    put("store", "idle", file())
    put("store", "weights", file(5, 1, rest=over(1, 102400, weights) + over(0, 0, sums)))
    put("store", "updating", file(3, 0, 1, rest=over(1, 0, weights) + over(0, 0, sums) + over(0, 16400, sums)))
    put("store", "downwards", file(4, 1, 1, rest=over(1, 102400, weights) + over(0, 64, sums)))
    put("store", "gap", file(4, 1, 0, gap=409600))
    put("store", "beta", file(4, 1, 1, beta1=1.5))


def completion():
    base = {"model": "demo", "prompt": "In the beginning"}
    put("completion", "least", json.dumps(base))
    put("completion", "all", json.dumps(base | {"max_tokens": 9, "temperature": 0.5, "top_p": 0.9, "top_k": 5, "repetition_penalty": 1.2, "seed": 7,
                                                "n": 2, "best_of": 2, "stream": True, "stream_options": {"include_usage": True}, "logprobs": 3,
                                                "echo": True, "stop": ["a", "b"], "ignore_eos": False, "user": "me", "suffix": None,
                                                "frequency_penalty": 0, "presence_penalty": 0.0, "logit_bias": {}}))
    for name, prompt in [("strings", ["a", "b"]), ("tokens", [1, 2, 3]), ("lists", [[1], [2, 3]]), ("mixed", ["a", [1]])]:
        put("completion", name, json.dumps(base | {"prompt": prompt}))
    put("completion", "stops", json.dumps(base | {"stop": [chr(97 + i) for i in range(16)]}))
    talk = [{"role": "system", "content": "A talk."}, {"role": "user", "content": "a"}, {"role": "assistant", "content": ""},
            {"role": "user", "content": [{"type": "text", "text": "b"}]}]
    put("completion", "chat", json.dumps({"model": "demo", "messages": talk, "logprobs": True, "top_logprobs": 2, "max_completion_tokens": 3}))
    put("completion", "nul", json.dumps(base | {"prompt": "a\0b", "stop": ["\0"]}))
    for name, request in {"text": {"input": "the mill", "encoding_format": "base64", "dimensions": 3, "user": "u"},
                          "texts": {"input": ["the", "mill \u00e9", "\0"], "truncate": True}, "ids": {"input": [231, 0, 424]},
                          "lists": {"input": [[231], [209, 232]], "model": "m"}, "beyond": {"input": [[1], [425]]}}.items():
        put("completion", "embedding-" + name, json.dumps(request))
    put("completion", "number", json.dumps(base | {"temperature": 1e300}))


def records():
    text, lines, table = b"\0", b"\1", b"\2"
    put("records", "text", text + b"one<|endoftext|>two\n<|endoftext|>")
    put("records", "lines", lines + b'{"text": "a"}\r\n\n{"prompt": "p", "completion": "\\u00e9\\u0000", "x": [{}]}\n')
    put("records", "table", table + b'id,text\r\n1,"a, ""b""\r\nc"\n\n2,\n')
    put("records", "pairs", table + b"completion,prompt\nc,p\n")
    put("records", "columns", table + b"text" + b"," * 1022 + b"\n" + b"a" * 60)
    packed = subprocess.run(["zstd", "-c", "-3"], input=b'{"text": "abcabcabcabc"}\n' * 9, stdout=subprocess.PIPE, check=True).stdout
    put("records", "zstd", lines + packed)
    put("records", "frames", lines + packed + packed)


def examples():
    def file(head, *values):
        return bytes(head + [0] * (10 - len(head))) + struct.pack(f"<{len(values)}h", *values)
    rows = (4, 5, 6, 0, 1, 0, 5, 6, 7, 1, 2, 3, 0, 0, 0, 2, 3, 4)
    put("examples", "rows", file([0, 2, 2, 3, 3, 0, 0, 49], *rows))
    put("examples", "wide", file([1, 2, 2, 3, 3, 0, 3, 49], *rows))
    put("examples", "bytes", file([2, 2, 2, 3, 3, 0, 3, 49], *rows))
    put("examples", "real", file([3, 2, 2, 3, 3, 0, 3, 49], *rows))
    put("examples", "ones", file([0, 2, 7, 3, 7, 0, 8, 9], 1))


def training():
    train, evaluate, both, every, file = (bytes([i]) for i in range(5))
    fixtures = Path("tests/e2e/train/config")
    put("training", "first", both + (fixtures / "first.yaml").read_bytes())
    put("training", "second", every + (fixtures / "second.yaml").read_bytes())
    data = b"train_input: {data_dir: a, batch_size: 12}\nrunconfig: {num_epochs: 2}\n"
    put("training", "number", train + data + b"optimizer: {learning_rate: 1e-4, eps: 1e-9}\n")
    put("training", "cycle", train + data + b"optimizer:\n  learning_rate:\n  - {scheduler: PiecewiseConstant, learning_rates: [1e-3, 1e-4], "
        b"milestones: [5], total_iters: 9}\n  - {scheduler: OneCycle, initial_learning_rate: 1e-4, max_lr: 1e-3, total_steps: 50}\n")
    put("training", "mode", file + b"runconfig: {mode: eval}\neval_input: &a {data_dir: [b], batch_size: ~}\nmodel: {}\n")
    put("training", "bomb", evaluate + b"a: &a [1, 2]\nb: &b [*a, *a, *a, *a]\nc: &c [*b, *b, *b, *b]\nd: [*c, *c, *c, *c]\n")
    put("training", "deep", evaluate + b"a: " + b"[" * 40)
    put("training", "wide", evaluate + "model: {ключ: 1, \"a\\0b\": 2}\n".encode())


def adapter():
    def put_adapter(name, settings, tensors):
        put("adapter", name, json.dumps({"peft_type": "LORA", "r": 2, "lora_alpha": 4} | settings).encode() + b"\0" + tensors)

    def tensors(modules, rank=2, prefix="base_model.model.transformer."):
        header, at = {}, 0
        for module, inputs, outputs in modules:
            for letter, shape in ("A", [rank, inputs]), ("B", [outputs, rank]):
                n = 4 * shape[0] * shape[1]
                header[f"{prefix}{module}.lora_{letter}.weight"] = {"dtype": "F32", "shape": shape, "data_offsets": [at, at + n]}
                at += n
        return file(header, at)

    values = [(f"h.{i}.attn.v_proj", 8, 8) for i in range(2)]
    put_adapter("values", {"target_modules": ["v_proj"]}, tensors(values))
    put_adapter("root", {"target_modules": ["v_proj"], "use_rslora": True, "r": 3, "bias": "none"}, tensors(values, 3))
    put_adapter("mlp", {"target_modules": ["h.0.mlp.fc_in", "fc_out"]},
                tensors([("h.0.mlp.fc_in", 8, 16), ("h.0.mlp.fc_out", 16, 8), ("h.1.mlp.fc_out", 16, 8)]))
    put_adapter("head", {"target_modules": ["lm_head"]}, tensors([("lm_head", 8, 32)], prefix="base_model.model."))
    put_adapter("another", {"target_modules": ["v_proj"]}, tensors(values[:1]))
    put_adapter("many", {"target_modules": ["v_proj"] * 17}, tensors(values))
    put_adapter("dora", {"target_modules": "all-linear", "use_dora": True}, b"")


if __name__ == "__main__":
    safetensors()
    torch()
    completion()
    config()
    kv()
    store()
    records()
    examples()
    training()
    adapter()
    packed(tokenizer())
    packed_encoder()
