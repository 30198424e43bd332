"""Frozen matrices of a unit in 4 bits, in one flat tensor of bytes: ZeRO 3 shards and gathers these bytes (nf4.py)."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from . import nf4
from .communication import Group, Groups
from .flat import FlatWeights, Slot
from .launch_plan import NF4_DOUBLE
from .weights import Held


class QuantizedWeights(FlatWeights):
    def __init__(self, held: list[Held], copies: Group, replicas: Group, groups: Groups, zero: int,
                 device: torch.device) -> None:
        self._squares: dict[str, Tensor] = {}
        super().__init__(held, copies, replicas, groups, zero, torch.uint8, torch.uint8, device)
        assert not self.trained

    def _elements(self, held: Held) -> int:
        return _layout(held).bytes

    def _parameter(self, slot: Slot) -> Any:
        return nf4.Quantized(self.full[slot.first:slot.last], _layout(slot.held))

    def _put(self, everything: Tensor, slot: Slot, value: Tensor) -> None:
        everything[slot.first:slot.last] = nf4.quantized(value.to(self.full.device), _layout(slot.held).double)
        self._squares[slot.held.name] = value.to(self.full.device).double().square().sum()

    def squares(self, slot: Slot, first: int, last: int) -> Tensor:
        """Of the weights as they were loaded, which does not depend on how ranks split them: the part of the bytes."""
        return self._squares[slot.held.name] * (last - first) / (slot.last - slot.first)


def _layout(held: Held) -> nf4.Layout:
    rows, columns = held.shape
    return nf4.Layout(rows, columns, held.weight.quantization == NF4_DOUBLE)
