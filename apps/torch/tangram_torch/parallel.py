"""What lies around weights that are split: activations gathered, summed and sent, forward and backward.

Activations are (samples, positions, width). Outside of what is split over tp, ranks of a tensor group have the same
activation, or under sequence parallelism each its positions (arXiv 2205.05198, section 4.2).
"""

from __future__ import annotations

from typing import Any, Optional

import torch
from torch import Tensor
from torch.autograd import Function

from .communication import Group, Groups
from .topology import Place, piece


def gather_positions(group: Group, own: Tensor, total: int) -> Tensor:
    """All of `total` positions, from pieces that the ranks have; a longer piece than others' costs padding."""
    if group.size == 1:
        return own
    sizes = [len(piece(total, i, group.size)) for i in range(group.size)]
    longest = max(sizes)
    padded = own
    if own.shape[1] < longest:
        padded = own.new_zeros((own.shape[0], longest, *own.shape[2:]))
        padded[:, :own.shape[1]] = own
    parts = group.all_gather(padded)
    return torch.cat([part[:, :size] for part, size in zip(parts, sizes)], dim=1)


def own_positions(group: Group, whole: Tensor) -> Tensor:
    own = piece(whole.shape[1], group.index, group.size)
    return whole[:, own.start:own.stop].contiguous()


def scatter_positions(group: Group, partial: Tensor) -> Tensor:
    """Sums over the group and leaves each rank its positions."""
    if group.size == 1:
        return partial
    if partial.shape[1] % group.size == 0:
        pieces = torch.stack(partial.chunk(group.size, dim=1))
        return group.reduce_scatter(pieces).view_as(pieces[0])
    summed = partial.contiguous()
    group.all_reduce(summed)
    return own_positions(group, summed)


class _Gather(Function):
    """Pieces of positions to all of them; gradients are summed."""

    @staticmethod
    def forward(ctx: Any, own: Tensor, group: Group, total: int) -> Tensor:
        ctx.group = group
        return gather_positions(group, own, total)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Optional[Tensor], None, None]:
        return scatter_positions(ctx.group, gradient.contiguous()), None, None


class _Scatter(Function):
    """The mirror of _Gather."""

    @staticmethod
    def forward(ctx: Any, partial: Tensor, group: Group) -> Tensor:
        ctx.group, ctx.total = group, partial.shape[1]
        return scatter_positions(group, partial)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Optional[Tensor], None]:
        return gather_positions(ctx.group, gradient.contiguous(), ctx.total), None


class _Copy(Function):
    """The same activation on all ranks; gradients are summed."""

    @staticmethod
    def forward(ctx: Any, activation: Tensor, group: Group) -> Tensor:
        ctx.group = group
        return activation.view_as(activation)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Optional[Tensor], None]:
        summed = gradient.clone()
        ctx.group.all_reduce(summed)
        return summed, None


class _Sum(Function):
    """The mirror of _Copy."""

    @staticmethod
    def forward(ctx: Any, partial: Tensor, group: Group) -> Tensor:
        summed = partial.clone()
        group.all_reduce(summed)
        return summed

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Optional[Tensor], None]:
        return gradient, None


class _Take(Function):
    """Of an activation that all ranks have, the positions of each; gradients are gathered."""

    @staticmethod
    def forward(ctx: Any, whole: Tensor, group: Group) -> Tensor:
        ctx.group, ctx.total = group, whole.shape[1]
        return own_positions(group, whole)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Optional[Tensor], None]:
        return gather_positions(ctx.group, gradient.contiguous(), ctx.total), None


class _Collect(Function):
    """The mirror of _Take."""

    @staticmethod
    def forward(ctx: Any, own: Tensor, group: Group, total: int) -> Tensor:
        ctx.group = group
        return gather_positions(group, own, total)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Optional[Tensor], None, None]:
        return own_positions(ctx.group, gradient), None, None


class _Exchange(Function):
    """Rows to the ranks that want them; gradients go back the same way."""

    @staticmethod
    def forward(ctx: Any, rows: Tensor, group: Group, outgoing: list[int], incoming: list[int]) -> Tensor:
        ctx.group, ctx.outgoing, ctx.incoming = group, outgoing, incoming
        return group.exchange_rows(rows, outgoing, incoming)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Optional[Tensor], None, None, None]:
        back = ctx.group.exchange_rows(gradient.contiguous(), ctx.incoming, ctx.outgoing)
        return back, None, None, None


class Parallel:
    """A rank's side of its part: what it has of an activation, and how it gets the rest."""

    def __init__(self, place: Place, groups: Groups, positions: int) -> None:
        self.place = place
        self.tensor = groups.of(place.tensor)
        self.context = groups.of(place.context)
        self.experts = groups.of(place.experts)
        self.positions = positions  # of a sample
        self.context_range = place.context_range(positions)
        self.shard_range = place.shard_range(positions)

    @property
    def local_range(self) -> range:
        """Positions of an activation outside of what is split over tp."""
        return self.shard_range if self.place.sequence_parallel else self.context_range

    def enter(self, activation: Tensor) -> Tensor:
        """Into column-parallel matrices: all positions of the context range."""
        if self.tensor.size == 1:
            return activation
        if self.place.sequence_parallel:
            return _Gather.apply(activation, self.tensor, len(self.context_range))
        return _Copy.apply(activation, self.tensor)

    def leave(self, partial: Tensor) -> Tensor:
        """Out of row-parallel matrices: the sum of what each rank has."""
        if self.tensor.size == 1:
            return partial
        if self.place.sequence_parallel:
            return _Scatter.apply(partial, self.tensor)
        return _Sum.apply(partial, self.tensor)

    def to_own_rows(self, activation: Tensor) -> Tensor:
        """To positions that no other rank of the replica works on."""
        if self.tensor.size == 1 or self.place.sequence_parallel:
            return activation
        return _Take.apply(activation, self.tensor)

    def from_own_rows(self, activation: Tensor) -> Tensor:
        if self.tensor.size == 1 or self.place.sequence_parallel:
            return activation
        return _Collect.apply(activation, self.tensor, len(self.context_range))

    def to_shard(self, activation: Tensor) -> Tensor:
        """What the rank sends to another stage; without gradients."""
        alone = self.tensor.size == 1 or self.place.sequence_parallel
        return activation if alone else own_positions(self.tensor, activation)

    def from_shard(self, shard: Tensor) -> Tensor:
        alone = self.tensor.size == 1 or self.place.sequence_parallel
        return shard if alone else gather_positions(self.tensor, shard, len(self.context_range))

    def gather_context(self, own: Tensor) -> Tensor:
        """Keys or values of all positions, from those of each cp rank."""
        return own if self.context.size == 1 else _Gather.apply(own, self.context, self.positions)

    def exchange(self, rows: Tensor, outgoing: list[int], incoming: list[int]) -> Tensor:
        """Rows between the ranks of an expert group."""
        return rows if self.experts.size == 1 else _Exchange.apply(rows, self.experts, outgoing, incoming)

    def sum_of_tensor(self, value: Tensor) -> Tensor:
        return value if self.tensor.size == 1 else _Sum.apply(value, self.tensor)
