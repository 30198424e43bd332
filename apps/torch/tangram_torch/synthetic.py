"""Tokens for runs without data."""

from __future__ import annotations

import torch
from torch import Tensor


class Synthetic:
    """Sequences that can be learned: each token follows from the one before by a fixed rule, three times of four."""

    def __init__(self, vocabulary: int, seed: int) -> None:
        self.iteration = 0
        self._vocabulary = vocabulary
        self._seed = seed

    def tokens(self, samples: range, length: int) -> Tensor:
        rows = [self._sample(sample, length) for sample in samples]
        return torch.stack(rows) if rows else torch.empty((0, length), dtype=torch.int64)

    def _sample(self, sample: int, length: int) -> Tensor:
        generator = torch.Generator().manual_seed(hash((self._seed, self.iteration, sample)) % (1 << 63))
        noise = torch.randint(self._vocabulary, (length,), generator=generator).tolist()
        follows = (torch.rand(length, generator=generator) < 0.75).tolist()
        tokens = noise[:1]
        for i in range(1, length):
            tokens.append((tokens[-1] * 5 + 7) % self._vocabulary if follows[i] else noise[i])
        return torch.tensor(tokens)
