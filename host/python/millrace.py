# SPDX-License-Identifier: Apache-2.0
"""Millrace from Python: one file over libmillrace.so, with ctypes and nothing else.

    from millrace import Model
    with Model("models/demo") as model, model.session("model:") as session:
        print(session.generate("In the beginning", max_tokens=20))
        logits = session.logits(model.encode("In the beginning"))  # the last position's, a list

MILLRACE_LIBRARY names the shared library; without it the build tree's, then the system's is taken. The
functions below are those of millrace.h that most scripts need; `lib` has all of them for ctypes.
"""
import ctypes
import os
from ctypes import (CFUNCTYPE, POINTER, Structure, byref, c_bool, c_char, c_char_p, c_float, c_int, c_int32, c_size_t,
                    c_uint64, c_void_p)
from pathlib import Path

__all__ = ["Error", "Model", "Session", "lib"]


def _load():
    named = os.environ.get("MILLRACE_LIBRARY")
    here = Path(__file__).resolve()
    for path in [named] if named else [here.parents[2] / "build/libmillrace.so", here.parents[2] / "lib/libmillrace.so"]:
        if named or Path(path).exists():
            return ctypes.CDLL(str(path))
    return ctypes.CDLL("libmillrace.so")


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
    _fields_ = [("format", c_int), ("no_smoothing", c_bool), ("verify", c_bool), ("calibrate", c_char_p),
                ("describe", c_bool), ("progress", c_void_p), ("arg", c_void_p)]


class _SessionOptions(Structure):
    _fields_ = [("max_seqs", c_int), ("chunk", c_int), ("two_pass", c_bool), ("check", c_bool),
                ("progress", c_void_p), ("arg", c_void_p)]


class _Row(Structure):
    _fields_ = [("seq", c_int), ("token", c_int32), ("want_logits", c_bool)]


class _Info(Structure):
    _fields_ = ([("kind", c_int), ("files", c_int)]
                + [(n, c_uint64) for n in ("f32_bytes", "f16_bytes", "bf16_bytes", "file_bytes", "embedding_bytes")]
                + [(n, c_int) for n in ("vocab_size", "n_positions", "n_embd", "n_layer", "n_head", "head_dim",
                                        "rotary_dim", "n_inner", "eos_token_id", "format")]
                + [(n, c_bool) for n in ("smoothed", "packed_file", "has_tokenizer", "calibrated")]
                + [(n, c_uint64) for n in ("parameters", "stream_bytes", "kv_bytes")])


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

    def __init__(self, path, format="mxint8", smoothing=True, verify=False, calibrate=None):
        self._handle = c_void_p()
        options = _LoadOptions(format=["mxint8", "mxfp4"].index(format), no_smoothing=not smoothing, verify=verify,
                               calibrate=calibrate.encode() if calibrate else None)
        _call("mr_model_load", byref(self._handle), os.fsencode(path), byref(options))

    @property
    def info(self):
        """struct mr_model_info as a dictionary."""
        info = _Info()
        lib.mr_model_get_info(self._handle, byref(info))
        return {name: getattr(info, name) for name, _ in info._fields_}

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
    """A model on a device: "cpu:", "model:[config]", "sim:[config][,options]", "xrt:[index]"."""
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

    def generate(self, prompt, max_tokens=64, stop_at_eos=True):
        """The text that the most probable tokens make behind a prompt (str, bytes or tokens), as a str."""
        tokens = self.model.encode(prompt) if isinstance(prompt, (str, bytes)) else list(prompt)
        eos, room = self.model.info["eos_token_id"], self.model.info["n_positions"] - len(tokens) + 1
        seq, new = self.new(), []
        try:
            while len(new) < min(max_tokens, room):
                last = len(tokens) - 1
                row = self.step([(seq, t, i == last) for i, t in enumerate(tokens)])[0]
                best = max(range(self.vocab), key=row.__getitem__)
                if best == eos and stop_at_eos:
                    break
                new.append(best)
                tokens = [best]
        finally:
            self.free(seq)
        return self.model.decode(new).decode(errors="replace")
