# SPDX-License-Identifier: Apache-2.0
"""What Millrace writes as a Hugging Face directory, in transformers: for the tests of this folder."""
import subprocess

import numpy as np
import torch
import transformers
from safetensors import safe_open

from tap import ok


def run(*command, **options):
    return subprocess.run([str(c) for c in command], check=True, stdout=subprocess.PIPE, **options).stdout


def logits(helper, model, device, fmt, ids):
    return np.frombuffer(run(helper, "logits", model, device, fmt, *ids), dtype=np.float32).reshape(len(ids), -1)


def load(directory, name, dtype=torch.float32):
    """The model in transformers, whose values must be those of the file."""
    model, info = transformers.AutoModelForCausalLM.from_pretrained(directory, output_loading_info=True)
    ok(not any(info[k] for k in ("missing_keys", "unexpected_keys", "mismatched_keys")) and model.dtype == dtype,
       f"transformers loads {name}")
    with safe_open(directory / "model.safetensors", "pt") as f:
        state = model.state_dict()
        same = all(torch.equal(f.get_tensor(k).float(), state[k].float()) for k in f.keys())
    ok(same, f"every value of {name} arrives")
    return model.float()


def reference(helper, directory, model, fmt, name):
    """Ids, and their logits in transformers, which must be those of `cpu:`."""
    ids = [i % model.config.vocab_size for i in range(7, 7 + min(24, model.config.n_positions))]
    with torch.no_grad():
        theirs = model(torch.tensor([ids])).logits[0].numpy()
    worst = float(np.abs(theirs - logits(helper, directory, "cpu:", fmt, ids)).max()) / float(theirs.std())
    ok(worst < 1e-4, f"logits of {name}: cpu: as transformers", f"largest difference {worst:.1e} of their deviation")
    return ids, theirs
