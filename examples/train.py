# SPDX-License-Identifier: Apache-2.0
"""A model learns from a PyTorch DataLoader. Only batches come from PyTorch: the passes run on the device, and weights and
moments lie in the state's directory, from which a second call goes on.

    make all && python3 examples/train.py models/demo models/demo/heldout.txt state
"""
import sys
from pathlib import Path

if __name__ == "__main__" and len(sys.argv) != 4:  # before torch, which takes its time
    sys.exit("usage: train.py MODEL TEXT STATE   (a Hugging Face directory, a text, a directory that is made)")

import torch
from torch.utils.data import DataLoader, Dataset

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "host/python"))
from millrace import Model, Trainer  # noqa: E402

WINDOW, BATCH, STEPS = 64, 4, 5


class Windows(Dataset):
    """Each item: tokens, and for each the one that should follow."""

    def __init__(self, tokens):
        self.tokens = torch.tensor(tokens, dtype=torch.int32)

    def __len__(self):
        return (len(self.tokens) - 1) // WINDOW

    def __getitem__(self, i):
        at = i * WINDOW
        return self.tokens[at:at + WINDOW], self.tokens[at + 1:at + WINDOW + 1]


def main(model, text, state):
    with Model(model) as m:
        data = Windows(m.encode(Path(text).read_text()))
    order = torch.Generator().manual_seed(1)
    loader = DataLoader(data, batch_size=BATCH, shuffle=True, drop_last=True, generator=order)
    with Trainer(state, model, tokens=WINDOW * BATCH) as trainer:
        for _, (tokens, targets) in zip(range(STEPS), loader):
            trainer.begin()
            trainer.backward(tokens.tolist(), targets.tolist())
            done = trainer.apply(rate=1e-4)
            print(f"step {done['step']}: loss {done['loss']:.4f}, norm {done['norm']:.3f}")


if __name__ == "__main__":
    main(*sys.argv[1:])
