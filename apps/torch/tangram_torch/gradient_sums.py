"""Sums of gradients over copies, each as soon as the last microbatch has added to it: on a GPU beside the passes that are
left, on a stream of their own. ZeRO 2 and 3 sum after every microbatch and leave for here what groups sum, if any."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Optional

import torch
from torch import Tensor

from .flat import FlatWeights


class GradientSums:
    """Of the flat tensors that one part of the plan holds."""

    def __init__(self, flats: Iterable[FlatWeights], device: torch.device) -> None:
        self._flats = frozenset(flats)
        self._stream: Optional[torch.cuda.Stream] = torch.cuda.Stream(device) if device.type == "cuda" else None
        self._missing: Counter[FlatWeights] = Counter()
        self._read: list[Tensor] = []  # what sums under way read must not be given to others

    def begin(self, expected: Iterable[FlatWeights]) -> None:
        """Of an iteration; `expected` has each as often as something is added to it."""
        self._missing = Counter(expected)

    def came(self, flats: Iterable[FlatWeights]) -> None:
        """Something was added to them, or their turn to be added to is over."""
        for flat in flats:
            self._missing[flat] -= 1
            if self._missing[flat] == 0 and flat in self._flats:
                self._start(flat)

    def _start(self, flat: FlatWeights) -> None:
        if self._stream is None:
            flat.reduce()
            return
        if flat.gradient is not None:
            self._read.append(flat.gradient)
        self._stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(self._stream):
            flat.reduce()

    def finish(self) -> None:
        """What follows reads the sums."""
        if self._stream is not None:
            torch.cuda.current_stream().wait_stream(self._stream)
        self._read = []
