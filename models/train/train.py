#!/usr/bin/env python3
# Trains models/demo: a 4.2 M parameter GPT-J on the King James Bible, in some 20 minutes on one CPU
# thread (with bf16 instructions), and saves it as a Hugging Face directory.
#
# The text is in the public domain. It comes from the Debian packages bible-kjv and bible-kjv-text:
#
#   bible -f gen1:1-rev22:21 > kjv.txt          # 31102 lines such as "Ge1:1 In the beginning ..."
#   pip install -r requirements.txt
#   python3 train.py --text kjv.txt --out ../demo
#
# The tokenizer is trained on the same text. Whole books are held out (HELD_OUT) of both.

import argparse
import math
import re
import sys
import time
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from safetensors.torch import save_file
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers
from torch import nn
from transformers import GPTJConfig, GPTJForCausalLM
from transformers.utils import logging as hf_logging

hf_logging.set_verbosity_error()
hf_logging.disable_progress_bar()

BOOKS = """Genesis,Exodus,Leviticus,Numbers,Deuteronomy,Joshua,Judges,Ruth,1 Samuel,2 Samuel,1 Kings,
2 Kings,1 Chronicles,2 Chronicles,Ezra,Nehemiah,Esther,Job,Psalms,Proverbs,Ecclesiastes,Song of Solomon,
Isaiah,Jeremiah,Lamentations,Ezekiel,Daniel,Hosea,Joel,Amos,Obadiah,Jonah,Micah,Nahum,Habakkuk,
Zephaniah,Haggai,Zechariah,Malachi,Matthew,Mark,Luke,John,Acts,Romans,1 Corinthians,2 Corinthians,
Galatians,Ephesians,Philippians,Colossians,1 Thessalonians,2 Thessalonians,1 Timothy,2 Timothy,Titus,
Philemon,Hebrews,James,1 Peter,2 Peter,1 John,2 John,3 John,Jude,Revelation""".replace("\n", "").split(",")

# About 5 % of the text, of every kind there is in it.
HELD_OUT = ["Ruth", "Esther", "Ecclesiastes", "Daniel", "Micah", "Malachi", "Galatians",
            "Philippians", "1 Peter"]
HELD_OUT_FILE = ["Ruth", "Ecclesiastes", "Philippians"]  # these are committed, for the tests

EOT = "<|endoftext|>"


def read_books(path):
    """Book name -> text: per chapter a heading, then a verse a line; chapters end with an empty line."""
    books, abbreviation, chapter = {}, None, None
    for line in Path(path).read_text(encoding="ascii").splitlines():
        m = re.fullmatch(r"(\d?[A-Za-z]+)(\d+):(\d+) (.*)", line)
        if not m:
            sys.exit(f"{path}: not a verse: {line!r}")
        if m[1] != abbreviation:
            abbreviation, chapter = m[1], None
            name = BOOKS[len(books)]
            books[name] = ""
        if m[2] != chapter:
            chapter = m[2]
            books[name] += ("\n" if books[name] else "") + f"{name} {chapter}\n\n"
        books[name] += m[4].strip() + "\n"
    assert len(books) == 66
    return books


def train_tokenizer(texts, size):
    """Byte-level BPE as GPT-2's."""
    t = Tokenizer(models.BPE())
    t.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)
    t.decoder = decoders.ByteLevel()
    t.post_processor = processors.ByteLevel(trim_offsets=False)
    t.train_from_iterator(texts, trainers.BpeTrainer(
        vocab_size=size, special_tokens=[EOT], show_progress=False,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet()))
    return t


# ---- the model, written for speed on a CPU; checked against transformers' before and after ---------

class Block(nn.Module):
    def __init__(self, c, drop):
        super().__init__()
        e = c.n_embd
        self.c, self.drop = c, drop
        self.ln_1 = nn.LayerNorm(e, eps=c.layer_norm_epsilon)
        self.attn = nn.ModuleDict({f"{m}_proj": nn.Linear(e, e, bias=False) for m in ("k", "v", "q", "out")})
        self.mlp = nn.ModuleDict({"fc_in": nn.Linear(e, 4 * e), "fc_out": nn.Linear(4 * e, e)})

    def forward(self, x, sin, cos):
        b, t, e = x.shape
        h = self.ln_1(x)
        q, k, v = (self.attn[f"{m}_proj"](h).view(b, t, self.c.n_head, -1) for m in "qkv")
        q, k = (self.rotate(z, sin, cos).transpose(1, 2) for z in (q, k))
        a = F.scaled_dot_product_attention(q, k, v.transpose(1, 2), is_causal=True)
        a = self.attn["out_proj"](a.transpose(1, 2).reshape(b, t, e))
        m = self.mlp["fc_out"](F.gelu(self.mlp["fc_in"](h), approximate="tanh"))
        return x + F.dropout(a + m, self.drop, self.training)

    def rotate(self, z, sin, cos):
        r = z[..., : self.c.rotary_dim].unflatten(-1, (-1, 2))
        a, b = r[..., 0], r[..., 1]
        s, c = sin.to(z.dtype), cos.to(z.dtype)
        r = torch.stack((a * c - b * s, b * c + a * s), -1).flatten(-2)
        return torch.cat((r, z[..., self.c.rotary_dim:]), -1)


class Model(nn.Module):
    """Parameter names are those of GPTJForCausalLM."""

    def __init__(self, c, drop):
        super().__init__()
        self.drop = drop
        self.transformer = nn.ModuleDict({
            "wte": nn.Embedding(c.vocab_size, c.n_embd),
            "h": nn.ModuleList([Block(c, drop) for _ in range(c.n_layer)]),
            "ln_f": nn.LayerNorm(c.n_embd, eps=c.layer_norm_epsilon),
        })
        self.lm_head = nn.Linear(c.n_embd, c.vocab_size)
        inv_freq = 1.0 / 10000 ** (torch.arange(0, c.rotary_dim, 2) / c.rotary_dim)
        angle = torch.arange(c.n_positions)[:, None] * inv_freq
        self.register_buffer("sin", angle.sin()[:, None, :], persistent=False)
        self.register_buffer("cos", angle.cos()[:, None, :], persistent=False)
        for name, p in self.named_parameters():
            if p.dim() == 2:
                residual = name.endswith(("out_proj.weight", "fc_out.weight"))
                nn.init.normal_(p, std=0.02 / (math.sqrt(2 * c.n_layer) if residual else 1))
            elif name.endswith("bias"):
                nn.init.zeros_(p)

    def forward(self, ids):
        x = F.dropout(self.transformer["wte"](ids), self.drop, self.training)
        t = ids.shape[1]
        for block in self.transformer["h"]:
            x = block(x, self.sin[:t], self.cos[:t])
        return self.lm_head(self.transformer["ln_f"](x))


def check_against_transformers(model, c):
    hf = GPTJForCausalLM(c).eval()
    hf.load_state_dict(model.state_dict())
    was = model.training
    model.eval()
    ids = torch.randint(0, c.vocab_size, (2, 100))
    with torch.no_grad():
        d = (model(ids) - hf(ids).logits).abs().max().item()
    assert d < 1e-3, d
    model.train(was)
    return hf


# ---- data and evaluation -------------------------------------------------------------------------

def batches(data, seq, batch, rng):
    """One epoch: the stream cut at a random phase into windows, in random order."""
    n = (len(data) - 1 - seq) // seq
    start = rng.integers(0, len(data) - n * seq) + seq * rng.permutation(n)
    for i in range(0, n - batch + 1, batch):
        w = np.stack([data[s: s + seq + 1] for s in start[i: i + batch]])
        w = torch.from_numpy(w.astype(np.int64))
        yield w[:, :-1], w[:, 1:]


@torch.no_grad()
def nats(logits_of, docs, seq):
    """Total nats and tokens over documents, in windows of seq tokens that do not overlap."""
    total = count = 0
    for d in docs:
        for i in range(0, len(d) - 1, seq):
            w = torch.from_numpy(d[i: i + seq + 1].astype(np.int64))[None]
            total += F.cross_entropy(logits_of(w[:, :-1])[0].float(), w[0, 1:], reduction="sum").item()
            count += w.shape[1] - 1
    return total, count


@torch.no_grad()
def sample(hf, tok, prompt, n, temperature, seed):
    g = torch.Generator().manual_seed(seed)
    ids = tok.encode(prompt).ids
    eot = tok.token_to_id(EOT)
    for _ in range(n):
        row = hf(torch.tensor([ids[-hf.config.n_positions:]])).logits[0, -1]
        if temperature == 0:
            i = int(row.argmax())
        else:
            i = int(torch.multinomial((row / temperature).softmax(-1), 1, generator=g))
        if i == eot:
            break
        ids.append(i)
    return tok.decode(ids)


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--text", required=True)
    ap.add_argument("--out", required=True)
    ap.add_argument("--vocab", type=int, default=2048)
    ap.add_argument("--steps", type=int, default=2200)
    ap.add_argument("--long", type=float, default=0.2, help="share of the steps at 512 tokens, at the end")
    ap.add_argument("--tokens", type=int, default=4096, help="tokens per step")
    ap.add_argument("--lr", type=float, default=2e-3)
    ap.add_argument("--decay", type=float, default=0.1)
    ap.add_argument("--dropout", type=float, default=0.15)
    ap.add_argument("--seed", type=int, default=1)
    ap.add_argument("--eval-every", type=int, default=200)
    args = ap.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(args.seed)
    rng = np.random.default_rng(args.seed)
    out = Path(args.out)
    out.mkdir(parents=True, exist_ok=True)
    log_file = open(Path(__file__).with_name("training-log.txt"), "w")

    def log(text):
        print(text, flush=True)
        print(text, file=log_file, flush=True)

    books = read_books(args.text)
    train_books = [b for b in BOOKS if b not in HELD_OUT]
    tok = train_tokenizer([books[b] for b in train_books], args.vocab)
    tok.save(str(out / "tokenizer.json"))
    tok.model.save(str(out))
    (out / "heldout.txt").write_text("\n".join(books[b] for b in HELD_OUT_FILE), encoding="ascii")
    eot = tok.token_to_id(EOT)
    doc = {b: np.array([eot] + tok.encode(books[b]).ids + [eot], dtype=np.uint16) for b in BOOKS}
    # The books in the order of the text, so that windows across a seam start with <|endoftext|> too.
    data = np.concatenate([doc[b][:-1] for b in train_books])
    held = [doc[b][:-1] for b in HELD_OUT]
    held_bytes = sum(len(books[b]) for b in HELD_OUT)
    train_bytes = sum(len(books[b]) for b in train_books)

    c = GPTJConfig(vocab_size=args.vocab, n_positions=512, n_embd=256, n_layer=4, n_head=4, rotary_dim=32,
                   n_inner=None, bos_token_id=eot, eos_token_id=eot, attn_implementation="eager")
    c.architectures = ["GPTJForCausalLM"]
    model = Model(c, args.dropout)
    check_against_transformers(model, c)
    n_params = sum(p.numel() for p in model.parameters())
    log(f"{n_params} parameters; {len(data)} training tokens ({train_bytes} bytes); held out "
        f"{held_bytes} bytes in {sum(len(d) - 1 for d in held)} tokens "
        f"({100 * held_bytes / (held_bytes + train_bytes):.1f} %)")
    log(" ".join(f"{k}={v}" for k, v in vars(args).items() if k not in ("text", "out")))

    matrices = [p for p in model.parameters() if p.dim() == 2]
    others = [p for p in model.parameters() if p.dim() != 2]
    opt = torch.optim.AdamW([{"params": matrices, "weight_decay": args.decay},
                             {"params": others, "weight_decay": 0.0}],
                            lr=args.lr, betas=(0.9, 0.95), eps=1e-8, fused=True)
    warm = min(100, args.steps // 10 + 1)

    def rate(step):
        if step < warm:
            return args.lr * (step + 1) / warm
        x = (step - warm) / max(1, args.steps - warm)
        return args.lr * (0.02 + 0.98 * 0.5 * (1 + math.cos(math.pi * x)))

    def logits_bf16(ids):
        with torch.autocast("cpu", torch.bfloat16):
            return model(ids)

    begin, step, recent, seq, stream = time.time(), 0, [], 0, iter(())
    spent_cpu = time.process_time()
    model.train()
    while step < args.steps:
        want = 512 if step >= args.steps * (1 - args.long) else 256
        item = next(stream, None) if want == seq else None
        if item is None:
            seq = want
            stream = batches(data, seq, args.tokens // seq, rng)
            item = next(stream)
        for g in opt.param_groups:
            g["lr"] = rate(step)
        logits = logits_bf16(item[0])
        loss = F.cross_entropy(logits.float().flatten(0, 1), item[1].flatten())
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        opt.step()
        opt.zero_grad(set_to_none=True)
        recent.append(loss.item())
        step += 1
        if step % 50 == 0 or step == args.steps:
            text = (f"step {step:5d}  seq {seq}  lr {rate(step - 1):.2e}  train {np.mean(recent):.4f} nats/token  "
                    f"{time.time() - begin:6.0f} s")
            recent = []
            if step % args.eval_every == 0:
                model.eval()
                total, count = nats(logits_bf16, held, 512)
                model.train()
                text += f"  held out {total / count:.4f} nats/token {total / held_bytes:.4f} nats/byte"
            log(text)
    seconds, cpu = time.time() - begin, time.process_time() - spent_cpu

    # What is measured from here on is what is saved: weights rounded to bf16, computed with in fp32.
    weights = {k: p.detach().to(torch.bfloat16).contiguous() for k, p in model.state_dict().items()}
    model.load_state_dict({k: p.float() for k, p in weights.items()})
    check_against_transformers(model.eval(), c)
    save_file(weights, out / "model.safetensors", metadata={"format": "pt"})
    (out / "model.safetensors").chmod(0o644)  # safetensors makes it private
    c.dtype = "bfloat16"
    c.save_pretrained(out)
    hf = GPTJForCausalLM.from_pretrained(out, dtype=torch.float32, attn_implementation="eager").eval()
    hf_logits = lambda ids: hf(ids, use_cache=False).logits
    total, count = nats(hf_logits, held, 512)
    log(f"trained {step * args.tokens} tokens ({step * args.tokens / len(data):.1f} epochs) in {seconds:.0f} s "
        f"({cpu:.0f} s of CPU)")
    log(f"saved model, held-out books: {total / count:.4f} nats/token, {total / held_bytes:.4f} nats/byte, "
        f"perplexity {math.exp(total / count):.1f}, {held_bytes / count:.2f} bytes/token")
    for b in HELD_OUT:
        t, n = nats(hf_logits, [doc[b][:-1]], 512)
        log(f"  {b:13s} {t / n:.4f} nats/token  {t / len(books[b]):.4f} nats/byte")
    text = (out / "heldout.txt").read_text()
    ids = np.array(tok.encode(text).ids, dtype=np.uint16)
    t, n = nats(hf_logits, [ids[:8193]], 512)
    log(f"heldout.txt: {len(text)} bytes, {len(ids)} tokens; its first 8192 predictions, windows of 512: "
        f"{t / n:.4f} nats/token")
    t, n = nats(hf_logits, [data[:50000]], 512)
    log(f"training text (first 50000 tokens): {t / n:.4f} nats/token")
    for prompt, temperature, seed in [("In the beginning", 0, 0), ("And it came to pass", 0.8, 1),
                                      ("Psalms 151\n\n", 0.8, 2), ("The LORD is my", 0.8, 3),
                                      ("Jesus answered and said", 0.8, 4), ("A wise man", 0.8, 5)]:
        print(f"--- {prompt!r}, temperature {temperature}, seed {seed}\n"
              f"{sample(hf, tok, prompt, 150, temperature, seed)}")


if __name__ == "__main__":
    main()
