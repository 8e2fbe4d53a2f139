# SPDX-License-Identifier: Apache-2.0
"""Millrace from Python: one file over libmillrace.so, with ctypes and nothing else.

    from millrace import Model
    with Model("models/demo") as model, model.session("model:") as session:
        print(session.generate("In the beginning", max_tokens=20))
        logits = session.logits(model.encode("In the beginning"))  # the last position's, a list

    from millrace import Trainer
    with Trainer("state", "models/demo") as trainer:
        print(trainer.step([[[5, 6, 7], [1, 2, 3, 4]]], rate=1e-4)["loss"])  # one micro-batch of two sequences
        trainer.save("tuned")

MILLRACE_LIBRARY names the shared library; without it the build tree's, the one installed with this file, or the system's is
taken. The functions below are those of millrace.h that most scripts need; `lib` has all of them for ctypes.
"""
import ctypes
import os
from ctypes import (CFUNCTYPE, POINTER, Structure, byref, c_bool, c_char, c_char_p, c_double, c_float, c_int, c_int32,
                    c_int64, c_size_t, c_ubyte, c_uint8, c_uint64, c_void_p, pointer)
from pathlib import Path

__all__ = ["Error", "Model", "Session", "Trainer", "lib"]


def _load():
    named = os.environ.get("MILLRACE_LIBRARY")
    if named:
        return ctypes.CDLL(named)
    # This file is host/python/millrace.py of a tree, PREFIX/share/millrace/python/millrace.py, or a copy anywhere.
    above = list(Path(__file__).resolve().parents)
    found = ([path for tree in above[2:3] for path in tree.glob("build/libmillrace.so")]
             + [path for prefix in above[3:4] for name in ("lib/libmillrace.so.0.1", "lib/*/libmillrace.so.0.1")
                for path in prefix.glob(name)])
    return ctypes.CDLL(str(found[0]) if found else "libmillrace.so.0.1")


lib = _load()
lib.mr_version.restype = c_char_p
if not lib.mr_version().startswith(b"0.1."):  # the structures below are that version's
    raise ImportError(f"libmillrace.so is version {lib.mr_version().decode()}, this file is for 0.1")
_libc = ctypes.CDLL(None)
_libc.free.argtypes = [c_void_p]
_libc.free.restype = None


class _Error(Structure):
    _fields_ = [("status", c_int), ("text", c_char * 512)]


class _LoadOptions(Structure):
    _fields_ = [("format", c_int), ("no_smoothing", c_bool), ("calibrate", c_char_p), ("adapter", c_char_p),
                ("describe", c_bool), ("verify", c_bool), ("text", c_bool), ("encoder", c_bool),
                ("progress", c_void_p), ("arg", c_void_p)]


class _SessionOptions(Structure):
    _fields_ = [("max_seqs", c_int), ("chunk", c_int), ("two_pass", c_bool), ("check", c_bool),
                ("progress", c_void_p), ("arg", c_void_p)]


class _Row(Structure):
    _fields_ = [("seq", c_int), ("token", c_int32), ("want_logits", c_bool)]


class _ModelInfo(Structure):
    _fields_ = ([("kind", c_int), ("files", c_int)]
                + [(n, c_uint64) for n in ("f32_bytes", "f16_bytes", "bf16_bytes", "file_bytes", "embedding_bytes")]
                + [(n, c_int) for n in ("vocab_size", "n_positions", "n_embd", "n_layer", "n_head", "head_dim",
                                        "rotary_dim", "n_inner", "eos_token_id", "format")]
                + [(n, c_bool) for n in ("smoothed", "packed_file", "has_tokenizer", "calibrated")]
                + [(n, c_uint64) for n in ("parameters", "stream_bytes", "kv_bytes")]
                + [("encoder", c_bool)]
                + [("architecture", c_char_p)])


_TEXT = CFUNCTYPE(c_int, c_void_p, c_int, POINTER(c_char), c_size_t)


class _Sampling(Structure):
    _fields_ = [("temperature", c_float), ("top_k", c_int), ("top_p", c_float), ("seed", c_uint64),
                ("repetition_penalty", c_float), ("frequency_penalty", c_float), ("presence_penalty", c_float)]


class _GenerateOptions(Structure):
    _fields_ = [("max_tokens", c_int), ("sampling", _Sampling), ("ignore_eos", c_bool), ("stop", POINTER(c_char_p)),
                ("n_stop", c_int), ("text", _TEXT), ("arg", c_void_p), ("after_prefill", c_void_p)]


class _Generated(Structure):
    _fields_ = [("ids", POINTER(c_int32)), ("count", c_size_t), ("prompt_count", c_size_t), ("text", c_void_p),
                ("text_size", c_size_t), ("finish", c_int)]


class _LoraOptions(Structure):
    _fields_ = [("rank", c_int), ("alpha", c_double), ("targets", POINTER(c_char_p)), ("seed", c_uint64),
                ("adapter", c_char_p), ("base", c_char_p)]


class _TrainerOptions(Structure):
    _fields_ = [("tokens", c_int), ("chunk", c_int), ("recompute", c_bool), ("model", c_char_p),
                ("positions", c_int), ("freeze", POINTER(c_char_p)), ("no_decay", POINTER(c_char_p)),
                ("lora", POINTER(_LoraOptions))]


class _TrainerInfo(Structure):
    _fields_ = [("step", c_uint64), ("parameters", c_uint64), ("tensors", c_size_t), ("vocab_size", c_int),
                ("n_positions", c_int), ("tokens", c_int), ("device_bytes", c_uint64), ("note", c_ubyte * 256), ("optimizer", c_int),
                ("trainable", c_uint64), ("adapter", c_bool), ("units", c_int), ("streamed", c_int), ("n_labels", c_int)]


class _MicroBatch(Structure):
    _fields_ = [("sequences", c_int), ("lengths", POINTER(c_int32)), ("tokens", POINTER(c_int32)),
                ("targets", POINTER(c_int32)), ("mask", POINTER(c_uint8)),
                ("types", POINTER(c_int32)), ("labels", POINTER(c_int32))]


class _BatchLoss(Structure):
    _fields_ = [("loss", c_double), ("targets", c_int64), ("right", c_int64)]


class _TrainerUpdate(Structure):
    _fields_ = [("rate", c_double), ("beta1", c_double), ("beta2", c_double), ("epsilon", c_double), ("decay", c_double),
                ("decay_all", c_bool), ("clip", c_double), ("note", c_void_p), ("optimizer", c_int), ("momentum", c_double),
                ("dampening", c_double), ("nesterov", c_bool)]


class _TrainerDone(Structure):
    _fields_ = [("step", c_uint64), ("loss", c_double), ("targets", c_int64), ("norm", c_double), ("repeated", c_int),
                ("cycles", c_uint64), ("mac_utilisation", c_double),
                ("link_up", c_uint64), ("link_down", c_uint64), ("link_waited", c_double * 2)]


class Error(Exception):
    """What failed, where and what to do; `status` is an mr_status."""

    def __init__(self, err):
        super().__init__(err.text.decode(errors="replace"))
        self.status = err.status


def _call(name, *args):
    err = _Error()
    if getattr(lib, name)(*args, byref(err)) < 0:
        raise Error(err)


class _Object:
    """Closed by close(), by `with`, or when it is collected."""
    _handle = None

    def close(self):
        if self._handle:
            self._close(self._handle)
            self._handle = None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def __del__(self):
        self.close()


class Model(_Object):
    """A Hugging Face directory, a packed file, or "synthetic:gptj-6b[,layers=N][,vocab=N][,seed=N]"."""
    _close = staticmethod(lambda handle: lib.mr_model_close(handle))

    def __init__(self, path, format="mxint8", smoothing=True, verify=False, calibrate=None, adapter=None):
        self._handle = c_void_p()
        options = _LoadOptions(format=["mxint8", "mxfp4"].index(format), no_smoothing=not smoothing, verify=verify,
                               calibrate=calibrate.encode() if calibrate else None,
                               adapter=os.fsencode(adapter) if adapter else None)
        _call("mr_model_load", byref(self._handle), os.fsencode(path), byref(options))

    @property
    def info(self):
        """struct mr_model_info as a dictionary."""
        info = _ModelInfo()
        lib.mr_model_get_info(self._handle, byref(info))
        fields = {name: getattr(info, name) for name, _ in info._fields_}
        fields["architecture"] = fields["architecture"].decode()
        return fields

    def encode(self, text, parse_special=True):
        """The tokens of a text (str or bytes)."""
        data = text.encode() if isinstance(text, str) else text
        ids, count = POINTER(c_int32)(), c_size_t()
        _call("mr_model_encode", self._handle, data, c_size_t(len(data)), c_bool(parse_special), byref(ids), byref(count))
        tokens = ids[:count.value]
        _libc.free(ids)
        return tokens

    def decode(self, tokens):
        """The bytes of tokens; they may end inside a character."""
        text, size = c_void_p(), c_size_t()
        _call("mr_model_decode", self._handle, (c_int32 * len(tokens))(*tokens), c_size_t(len(tokens)), byref(text),
              byref(size))
        data = ctypes.string_at(text, size.value)
        _libc.free(text)
        return data

    def session(self, device="model:", **options):
        return Session(self, device, **options)


class Session(_Object):
    """A model on a device, as `millrace devices` lists them ("model:tiny")."""
    _close = staticmethod(lambda handle: lib.mr_session_close(handle))

    def __init__(self, model, device="model:", max_seqs=1, chunk=0, two_pass=False):
        self.model, self.vocab = model, model.info["vocab_size"]
        self._handle = c_void_p()
        options = _SessionOptions(max_seqs=max_seqs, chunk=chunk, two_pass=two_pass)
        _call("mr_session_open", byref(self._handle), model._handle, device.encode(), byref(options))

    def new(self):
        """A new sequence, with a KV store of its own; free() gives it back."""
        seq = c_int()
        _call("mr_session_seq_new", self._handle, byref(seq))
        return seq.value

    def free(self, seq):
        lib.mr_session_seq_free(self._handle, seq)

    def step(self, rows):
        """rows: (sequence, token, want_logits). Returns the logits of the rows that want them, as ctypes arrays of
        vocab_size floats (numpy.ctypeslib.as_array(a) makes an array of one)."""
        array = (_Row * len(rows))(*[_Row(*row) for row in rows])
        wanted = sum(bool(row[2]) for row in rows)
        logits = ((c_float * self.vocab) * max(wanted, 1))()
        _call("mr_session_step", self._handle, array, c_int(len(rows)), logits)
        return list(logits)[:wanted]

    def logits(self, tokens, every=False):
        """Logits behind the last token (a list of floats), or behind each of them."""
        seq = self.new()
        try:
            last = len(tokens) - 1
            out = self.step([(seq, t, every or i == last) for i, t in enumerate(tokens)])
        finally:
            self.free(seq)
        return [list(row) for row in out] if every else list(out[0])

    def generate(self, prompts, max_tokens=64, temperature=0.0, top_k=0, top_p=1.0, repetition_penalty=1.0, seed=0, stop=(),
                 ignore_eos=False, text=None, frequency_penalty=0.0, presence_penalty=0.0):
        """The text behind a prompt (str, bytes or tokens), as a str; of a list of prompts, a list, `max_seqs` of them at
        the same time. text(number of the prompt, piece) is called with text as it comes; True ends that prompt."""
        many = isinstance(prompts, list) and not (prompts and isinstance(prompts[0], int))
        lists = [self.model.encode(p) if isinstance(p, (str, bytes)) else list(p) for p in (prompts if many else [prompts])]
        arrays = [(c_int32 * len(ids))(*ids) for ids in lists]
        stops = [s.encode() if isinstance(s, str) else s for s in ([stop] if isinstance(stop, (str, bytes)) else stop)]
        problem = []

        def piece(_, number, data, size):
            try:
                return int(bool(text(number, ctypes.string_at(data, size).decode())))
            except BaseException as e:  # it cannot go through C
                problem.append(e)
                return 1

        options = _GenerateOptions(
            max_tokens=max_tokens, ignore_eos=ignore_eos, stop=(c_char_p * len(stops))(*stops), n_stop=len(stops),
            sampling=_Sampling(temperature, top_k, top_p, seed, repetition_penalty, frequency_penalty, presence_penalty),
            text=_TEXT(piece) if text else _TEXT())
        out = (_Generated * len(lists))()
        pointers = (POINTER(c_int32) * len(lists))(*[ctypes.cast(a, POINTER(c_int32)) for a in arrays])
        sizes = (c_size_t * len(lists))(*map(len, lists))
        _call("mr_generate", self._handle, pointers, sizes, c_int(len(lists)), byref(options), out)
        try:
            texts = [ctypes.string_at(g.text, g.text_size).decode() for g in out]
        finally:
            for g in out:
                lib.mr_generated_free(byref(g))
        if problem:
            raise problem[0]
        return texts if many else texts[0]


lib.mr_trainer_tensor.restype = c_char_p


class Trainer(_Object):
    """The training of a model, whose state is a directory. `model`, a Hugging Face directory, is what a new state is made
    from; a state that is there goes on, and has to be of that model. `tokens`: the most of a micro-batch, 0: as many as the
    model has positions. `recompute`: layers keep no stash, which needs less memory; it changes no bit, as `chunk`.
    `positions`: more of them than the model has, for a model that rotates (GPT-J); 0: its own. `freeze`, `no_decay`:
    patterns of names of tensors that keep their weights, or do not decay. `lora`: {"r": 8, "alpha": 16, "targets":
    ["q_proj"], "seed": 0} or {"adapter": DIRECTORY}, and a LoRA adapter learns instead of the model."""
    _close = staticmethod(lambda handle: lib.mr_trainer_close(handle))

    def __init__(self, state, model=None, device="model:sim", tokens=0, chunk=0, recompute=False,
                 positions=0, freeze=(), no_decay=(), lora=None):
        def patterns(texts):
            return (c_char_p * (len(texts) + 1))(*(text.encode() for text in texts))
        self._handle = c_void_p()
        pairs = None
        if lora is not None:
            targets = lora.get("targets")
            pairs = _LoraOptions(lora.get("r", 8), lora.get("alpha", lora.get("r", 8)),
                                 None if targets is None else patterns(targets), lora.get("seed", 0),
                                 None if "adapter" not in lora else os.fsencode(lora["adapter"]))
        options = _TrainerOptions(tokens, chunk, recompute, None if model is None else os.fsencode(model),
                                  positions, patterns(freeze), patterns(no_decay),
                                  None if pairs is None else pointer(pairs))
        if model is not None and not os.path.exists(os.path.join(os.fspath(state), "header")):
            _call("mr_trainer_check", os.fsencode(model), device.encode(), byref(options))
            if pairs is None:
                _call("mr_trainer_create", os.fsencode(state), os.fsencode(model), positions)
            else:
                _call("mr_trainer_create_lora", os.fsencode(state), os.fsencode(model), positions, byref(pairs))
        _call("mr_trainer_open", byref(self._handle), os.fsencode(state), device.encode(), byref(options))

    @property
    def info(self):
        """struct mr_trainer_info as a dictionary."""
        info = _TrainerInfo()
        lib.mr_trainer_get_info(self._handle, byref(info))
        return {name: getattr(info, name) for name, _ in info._fields_ if name != "note"}

    @property
    def tensors(self):
        """The names of the model's tensors, each with the number of its elements."""
        count, names = c_size_t(), {}
        for i in range(self.info["tensors"]):
            name = lib.mr_trainer_tensor(self._handle, c_size_t(i), byref(count)).decode()
            names[name] = count.value
        return names

    @staticmethod
    def _batch(sequences, targets, mask):
        def flat(type_, lists):
            values = [value for one in lists for value in one] if lists is not None else None
            return (type_ * len(values))(*values) if values is not None else None
        lengths = [len(one) for one in sequences]
        for what, lists in (("targets", targets), ("mask", mask)):
            if lists is not None and [len(one) for one in lists] != lengths:
                raise ValueError(f"{what}: not as long as the sequences")
        return _MicroBatch(len(lengths), (c_int32 * len(lengths))(*lengths), flat(c_int32, sequences),
                           flat(c_int32, targets), flat(c_uint8, mask))

    def begin(self, micro_batches=1):
        """Begins a step anew."""
        _call("mr_trainer_begin", self._handle, c_int(micro_batches))

    def backward(self, sequences, targets=None, mask=None):
        """Forward and backward pass of a micro-batch: lists of tokens. targets: for each token the one that should follow,
        -1 for none; without, the next one of its sequence. mask: 1 for each token whose target is learnt, else 0. Returns
        the mean loss."""
        loss = _BatchLoss()
        _call("mr_trainer_backward", self._handle, byref(self._batch(sequences, targets, mask)), byref(loss))
        return loss.loss

    def evaluate(self, sequences, targets=None, mask=None):
        """The mean loss of a micro-batch, which changes nothing."""
        loss = _BatchLoss()
        _call("mr_trainer_evaluate", self._handle, byref(self._batch(sequences, targets, mask)), byref(loss))
        return loss.loss

    def _tensor(self, function, name):
        out = (c_float * self.tensors.get(name, 0))()
        _call(function, self._handle, name.encode(), out, c_size_t(len(out)))
        return out

    def gradient(self, name):
        """The gradient of the sum of the step's losses, when it has all of its micro-batches: a ctypes array of floats
        (numpy.ctypeslib.as_array(a) makes an array of it) in the checkpoint's order."""
        return self._tensor("mr_trainer_gradient", name)

    def weights(self, name):
        """The weights of a tensor, likewise."""
        return self._tensor("mr_trainer_weights", name)

    def apply(self, rate, beta1=0.9, beta2=0.95, epsilon=1e-8, decay=0.0, clip=1.0, decay_all=False, optimizer="adamw",
              momentum=0.0, dampening=0.0, nesterov=False):
        """Ends the step: "adamw", "adam" or "sgd". Returns struct mr_trainer_done as a dictionary."""
        kind = ["adamw", "adam", "sgd"].index(optimizer)
        update, done = _TrainerUpdate(rate, beta1, beta2, epsilon, decay, decay_all, clip, None, kind, momentum, dampening,
                                      nesterov), _TrainerDone()
        _call("mr_trainer_apply", self._handle, byref(update), byref(done))
        return {name: getattr(done, name) for name, _ in done._fields_}

    def step(self, micro_batches, rate, **options):
        """begin(), backward() of each micro-batch (a list of lists of tokens), apply()."""
        self.begin(len(micro_batches))
        for sequences in micro_batches:
            self.backward(sequences)
        return self.apply(rate, **options)

    def save(self, directory, format="f32"):
        """The weights as a Hugging Face directory: "f32", "bf16" or "f16"."""
        _call("mr_trainer_save", self._handle, os.fsencode(directory), c_int(["f32", "bf16", "f16"].index(format)))

    def save_adapter(self, directory):
        """The LoRA adapter as a directory that PEFT reads."""
        _call("mr_trainer_save_adapter", self._handle, os.fsencode(directory))
