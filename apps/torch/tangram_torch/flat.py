"""Weights of a unit in one flat tensor, so that each collective of ZeRO (arXiv 1910.02054) is one for all of them.

ZeRO 0 keeps everything on every copy; 1 steps a shard on each copy; 2 leaves each copy its shard of the gradient after
every microbatch; 3 keeps the shard of the weights alone, and has all of them only while the unit works. Where ZeRO shards
inside groups of copies, these sum their shards of the gradient once an iteration. Of weights that are not trained ZeRO 3
alone keeps shards, as there is nothing else of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, Optional

import torch
from torch import Tensor

from . import weight_gradients
from .communication import Group, Groups
from .topology import Ranks
from .weights import Held


@dataclass(frozen=True)
class Slot:
    """Where a weight lies in the flat tensor."""

    held: Held
    first: int
    last: int

    def of(self, flat: Tensor) -> Tensor:
        return flat[self.first:self.last].view(self.held.shape)


class FlatWeights:
    """The slices that a rank holds of a unit's dense weights, or of its experts: one at least."""

    def __init__(self, held: list[Held], copies: Group, replicas: Group, groups: Groups, zero: int, dtype: torch.dtype,
                 gradient_dtype: torch.dtype, device: torch.device) -> None:
        self.copies = copies  # of a group, where ZeRO shards inside groups
        self.replicas = replicas  # with the same shard
        self.trained = held[0].weight.trained
        self.zero = zero
        # What is summed over the same ranks lies together.
        ordered = sorted(held, key=lambda h: (h.sharers if h.sums else ()))
        self.slots: list[Slot] = []
        for h in ordered:
            first = self.slots[-1].last if self.slots else 0
            self.slots.append(Slot(h, first, first + self._elements(h)))
        self.size = -(-self.slots[-1].last // copies.size) * copies.size
        self._partial = list(self._partial_ranges(groups))
        each = self.size // copies.size
        self.own = range(0, self.size) if zero == 0 else range(copies.index * each, (copies.index + 1) * each)
        self.full = torch.zeros(self.size, dtype=dtype, device=device)
        alone = not self.trained and zero == 0
        master_dtype = gradient_dtype if self.trained else dtype
        self.master = self.full if alone else torch.zeros(len(self.own), dtype=master_dtype, device=device)
        self.parameters = {slot.held.name: self._parameter(slot) for slot in self.slots}
        self.gradient_dtype = gradient_dtype
        self.gradient: Optional[Tensor] = None  # accumulated: of all of it up to ZeRO 1, of the shard from ZeRO 2 on
        self._pieces: dict[str, Tensor] = {}  # of a gradient that microbatches are added to, by weight

    def _elements(self, held: Held) -> int:
        return held.numel

    def _parameter(self, slot: Slot) -> Any:
        return torch.nn.Parameter(slot.of(self.full), self.trained)

    def _partial_ranges(self, groups: Groups) -> Iterator[tuple[Group, int, int]]:
        """Neighbours whose gradients are parts of sums over the same ranks."""
        runs: list[tuple[Ranks, int, int]] = []
        for slot in self.slots:
            if not slot.held.sums or len(slot.held.sharers) == 1:
                continue
            if runs and runs[-1][0] == slot.held.sharers and runs[-1][2] == slot.first:
                runs[-1] = (slot.held.sharers, runs[-1][1], slot.last)
            else:
                runs.append((slot.held.sharers, slot.first, slot.last))
        for ranks, first, last in runs:
            yield groups.of(ranks), first, last

    # Weights

    def load(self, value: Callable[[Held], Tensor]) -> None:
        """Sets all weights, and what the optimizer steps, from values in full precision."""
        everything = self._zeros(self.size)
        for slot in self.slots:
            self._put(everything, slot, value(slot.held))
        self.master.copy_(everything[self.own.start:self.own.stop])
        self.gather()
        self.full.data.copy_(everything)
        self.release()

    def _put(self, everything: Tensor, slot: Slot, value: Tensor) -> None:
        slot.of(everything).copy_(value)

    def squares(self, slot: Slot, first: int, last: int) -> Tensor:
        """Sum of the squares of what [first, last) of `own` has of a weight."""
        return self.master[first:last].double().square().sum()

    def gather(self) -> None:
        if self._is_released():
            self._resize(self.size)
            self._fill()

    def release(self) -> None:
        if self.zero == 3 and self.copies.size > 1:
            self._resize(0)

    def refresh(self) -> None:
        """After a step: the weights from the master copies."""
        if not self._is_released():
            self._fill()

    def _fill(self) -> None:
        if self.zero == 0:
            self.full.data.copy_(self.master)  # .data: autograd must not take this for a change of what it saved
        else:
            self.copies.all_gather_into(self.full.data, self.master.to(self.full.dtype))

    def _is_released(self) -> bool:
        return _storage(self.full).size() == 0

    def _resize(self, elements: int) -> None:
        storage = _storage(self.full)
        per_element = self.full.element_size() if hasattr(self.full, "untyped_storage") else 1
        storage.resize_(elements * per_element)

    # Gradients

    def accumulate(self) -> None:
        """Adds what autograd left at the weights, and takes it away. From ZeRO 2 on it is summed over copies at once."""
        if self.zero < 2:
            self._collect(self._begun())
            return
        flat = self._zeros(self.size)
        self._collect(self._pieces_of(flat))
        self._sum_parts(flat)
        shard = self.copies.reduce_scatter(flat)
        self.gradient = shard.clone() if self.gradient is None else self.gradient.add_(shard)

    def take(self) -> list[tuple[Tensor, Tensor]]:
        """Weights and the gradients that autograd left at them, which it takes away."""
        taken = []
        for parameter in self.parameters.values():
            if parameter.grad is not None:
                taken.append((parameter, parameter.grad))
                parameter.grad = None
        return taken

    def sums(self) -> dict[str, weight_gradients.SumOf]:
        """Of large weights whose products may add to the sum by themselves: not where each microbatch is summed over
        copies."""
        values, sums, device = self.full.dtype, self.gradient_dtype, self.full.device
        if not self.trained or self.zero >= 2 or not weight_gradients.products_add(values, sums, device):
            return {}
        return {name: partial(self._sum_of, name) for name, weight in self.parameters.items()
                if weight.numel() >= weight_gradients.FEWEST_VALUES}

    def _sum_of(self, name: str) -> Tensor:
        return self._begun()[name]

    def _begun(self) -> dict[str, Tensor]:
        if self.gradient is None:
            self.gradient = self._zeros(self.size)
            self._pieces = self._pieces_of(self.gradient)
        assert self._pieces, "gradients were summed over copies before the last microbatch added to them"
        return self._pieces

    def _pieces_of(self, flat: Tensor) -> dict[str, Tensor]:
        return {slot.held.name: slot.of(flat) for slot in self.slots}

    def _collect(self, pieces: dict[str, Tensor]) -> None:
        found = [(pieces[name], weight, weight.grad) for name, weight in self.parameters.items()
                 if weight.grad is not None]
        if found:  # in one call, as the host may be what is short of time
            torch._foreach_add_([piece for piece, _, _ in found], [gradient for _, _, gradient in found])
        for _, weight, _ in found:
            weight.grad = None

    def _sum_parts(self, flat: Tensor) -> None:
        for group, first, last in self._partial:
            group.all_reduce(flat[first:last])

    def reduce(self) -> None:
        """Sums over the copies, after the last microbatch: the gradient is that of `own` then."""
        self._pieces = {}
        if self.gradient is None:
            return
        if self.zero < 2:
            self._sum_parts(self.gradient)
        if self.zero == 0:
            self.copies.all_reduce(self.gradient)
        elif self.zero == 1:
            self.gradient = self.copies.reduce_scatter(self.gradient)
        self.replicas.all_reduce(self.gradient)

    def contribution(self) -> Tensor:
        """What this rank adds to a sum over every rank that holds a weight: a flat tensor of all of them. Of ranks whose
        gradients are equal the first one counts."""
        if self.zero < 2:
            flat = self.gradient if self.gradient is not None else self._zeros(self.size)
        else:
            flat = self._zeros(self.size)
            if self.gradient is not None:
                flat[self.own.start:self.own.stop] = self.gradient
        for slot in self.slots:
            summed = slot.held.sums and self.zero < 2
            if not summed and len(slot.held.sharers) > 1 and slot.held.sharers[0] != self._rank:
                slot.of(flat).zero_()
        return flat

    def set_sum(self, flat: Tensor) -> None:
        """Takes the gradient from sums over every rank."""
        self._pieces = {}
        self.gradient = flat[self.own.start:self.own.stop].clone()

    @property
    def _rank(self) -> int:
        return self.copies.ranks[self.copies.index]

    def _zeros(self, size: int) -> Tensor:
        return torch.zeros(size, dtype=self.gradient_dtype, device=self.full.device)

    # Steps

    def own_pieces(self) -> Iterator[tuple[Slot, int, int]]:
        """Of each weight what `own` has of it: [first, last) counted from the start of `own`."""
        for slot in self.slots:
            first, last = max(slot.first, self.own.start), min(slot.last, self.own.stop)
            if first < last:
                yield slot, first - self.own.start, last - self.own.start

    def is_counted(self, slot: Slot) -> bool:
        """Of ranks of the part that have the same of a weight in `own`, one counts it."""
        first_sharer = slot.held.sharers[0] == self._rank or len(slot.held.sharers) == 1
        equal = self.copies if self.zero == 0 else self.replicas
        return first_sharer and equal.index == 0


def _storage(tensor: Tensor) -> Any:
    return tensor.untyped_storage() if hasattr(tensor, "untyped_storage") else tensor.storage()
