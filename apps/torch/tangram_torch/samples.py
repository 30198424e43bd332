"""What a run reads of its samples: tokens, and of multimodal models items and their places."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

import torch
from torch import Tensor

from .encoders import Encoder, rows_before


@dataclass(frozen=True)
class Placed:
    """An item of a sample."""

    number: int  # in its source
    first: int  # of its places in the sample


class Source(Protocol):
    """Samples of the iteration at work by their number in the batch, the same on every rank."""

    def tokens(self, samples: range, length: int) -> Tensor:
        """(samples, length), of integers."""

    def items(self, encoder: Encoder, samples: range) -> list[list[Placed]]:
        """Of each sample, one behind the other: all of their places are among those of the sample."""

    def patches(self, encoder: Encoder, samples: range) -> Tensor:
        """(items of the samples, tokens of an item, values of a token)."""


@dataclass
class Microbatch:
    """A rank's samples of a microbatch."""

    samples: range = range(0)  # by their number in the batch
    items: dict[str, list[list[Placed]]] = field(default_factory=dict)  # by encoder
    tokens: Tensor = field(default_factory=lambda: torch.empty(0))  # one position more; empty where they are not needed

    def rows_before(self, stream: str) -> list[int]:
        """Of each sample, the rows of an activation that those before it have; at last all rows."""
        if stream not in self.items:
            return list(range(len(self.samples) + 1))
        return rows_before([len(of_sample) for of_sample in self.items[stream]])


def predicted_tokens(source: Source, encoders: tuple[Encoder, ...], samples: int, positions: int) -> int:
    """Of a batch: all but those of items."""
    items = [(encoder.tokens_out, item.first) for encoder in encoders
             for of_sample in source.items(encoder, range(samples)) for item in of_sample]
    return max(1, samples * positions - sum(length - (first == 0) for length, first in items))
