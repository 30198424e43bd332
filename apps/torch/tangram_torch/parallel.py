"""What lies around weights that are split: activations gathered, summed and sent, forward and backward.

Activations are (samples, positions, width). Outside of what is split over tp, ranks of a tensor group have the same
activation, or under sequence parallelism each its positions (arXiv 2205.05198, section 4.2).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Optional

import torch
from torch import Tensor
from torch.autograd import Function

from .communication import Group, Groups
from .topology import Place, piece


def lengths_of(group: Group, total: int) -> list[int]:
    """How many of `total` positions each rank of the group has."""
    return [len(piece(total, i, group.size)) for i in range(group.size)]


def gather_positions(own: Tensor, group: Group, total: int) -> Tensor:
    """All of `total` positions, from pieces that the ranks have; a longer piece than others' costs padding."""
    if group.size == 1:
        return own
    sizes = lengths_of(group, total)
    longest = max(sizes)
    padded = own
    if own.shape[1] < longest:
        padded = own.new_zeros((own.shape[0], longest, *own.shape[2:]))
        padded[:, :own.shape[1]] = own
    parts = group.all_gather(padded)
    return torch.cat([part[:, :size] for part, size in zip(parts, sizes)], dim=1)


def exchange_for_heads(own: Tensor, group: Group, total: int) -> Tensor:
    """Of (samples, positions, heads, width), all of `total` positions of the rank's share of the heads, for its
    positions of all heads (Ulysses, arXiv 2309.14509)."""
    samples, length = own.shape[:2]
    lengths = lengths_of(group, total)
    rows = torch.cat([share.reshape(samples * length, -1) for share in own.chunk(group.size, dim=2)])
    got = group.exchange_rows(rows, [samples * length] * group.size, [samples * n for n in lengths])
    parts = got.split([samples * n for n in lengths])
    return torch.cat([part.view(samples, n, -1, own.shape[3]) for part, n in zip(parts, lengths)], dim=1)


def exchange_for_positions(share: Tensor, group: Group, total: int) -> Tensor:
    """The way back."""
    samples, _, heads, width = share.shape
    lengths = lengths_of(group, total)
    length = lengths[group.index]
    rows = torch.cat([part.reshape(samples * n, -1) for part, n in zip(share.split(lengths, dim=1), lengths)])
    got = group.exchange_rows(rows, [samples * n for n in lengths], [samples * length] * group.size)
    return torch.cat([part.view(samples, length, heads, width) for part in got.split(samples * length)], dim=2)


def own_positions(whole: Tensor, group: Group) -> Tensor:
    own = piece(whole.shape[1], group.index, group.size)
    return whole[:, own.start:own.stop].contiguous()


def scatter_positions(partial: Tensor, group: Group) -> Tensor:
    """Sums over the group and leaves each rank its positions."""
    if group.size == 1:
        return partial
    if partial.shape[1] % group.size == 0:
        pieces = torch.stack(partial.chunk(group.size, dim=1))
        return group.reduce_scatter(pieces).view_as(pieces[0])
    return own_positions(summed(partial, group), group)


def summed(partial: Tensor, group: Group) -> Tensor:
    out = partial.clone()
    group.all_reduce(out)
    return out


def between(forward: Callable[..., Tensor], backward: Callable[..., Tensor]) -> type[Function]:
    """A function of autograd that turns an activation by `forward`, and its gradient by `backward`; what follows the
    tensor is for both."""

    class Exchange(Function):
        @staticmethod
        def forward(ctx: Any, *arguments: Any, **_: Any) -> Tensor:
            activation, *ctx.how = arguments
            return forward(activation, *ctx.how)

        @staticmethod
        def backward(ctx: Any, *gradients: Tensor) -> tuple[Optional[Tensor], ...]:
            return (backward(gradients[0].contiguous(), *ctx.how), *(None for _ in ctx.how))

    return Exchange


# Of (group, positions of all ranks together).
_Gather = between(gather_positions, lambda gradient, group, total: scatter_positions(gradient, group))
_Scatter = between(lambda partial, group, total: scatter_positions(partial, group), gather_positions)
_Copy = between(lambda activation, group: activation.view_as(activation), summed)
_Sum = between(summed, lambda gradient, group: gradient)
_Take = between(lambda whole, group, total: own_positions(whole, group), gather_positions)
_Collect = between(gather_positions, lambda gradient, group, total: own_positions(gradient, group))
_ToHeads = between(exchange_for_heads, exchange_for_positions)
_ToPositions = between(exchange_for_positions, exchange_for_heads)
# Of (group, rows to each member, rows of each member): gradients go back the same way.
_Exchange = between(lambda rows, group, outgoing, incoming: group.exchange_rows(rows, outgoing, incoming),
                    lambda gradient, group, outgoing, incoming: group.exchange_rows(gradient, incoming, outgoing))


class Parallel:
    """A rank's side of its part: what it has of an activation, and how it gets the rest."""

    def __init__(self, place: Place, groups: Groups, positions: int, exchanges_heads: bool = False) -> None:
        self.place = place
        self.tensor = groups.of(place.tensor)
        self.context = groups.of(place.context)
        self.experts = groups.of(place.experts)
        self.positions = positions  # of a sample
        self.exchanges_heads = exchanges_heads and self.context.size > 1
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
            return _Scatter.apply(partial, self.tensor, len(self.context_range))
        return _Sum.apply(partial, self.tensor)

    def to_local(self, activation: Tensor) -> Tensor:
        """Of what needs no gradient: the positions of the context range, to those outside of what is split over tp."""
        return own_positions(activation, self.tensor) if self.place.sequence_parallel else activation

    def whole(self, local: Tensor) -> Tensor:
        """All positions, for who works on those of a part of the ranks' own ones."""
        if self.place.sequence_parallel:
            local = _Gather.apply(local, self.tensor, len(self.context_range))
        return self.gather_context(local)

    def to_own_rows(self, activation: Tensor) -> Tensor:
        """To positions that no other rank of the replica works on."""
        if self.tensor.size == 1 or self.place.sequence_parallel:
            return activation
        return _Take.apply(activation, self.tensor, len(self.context_range))

    def from_own_rows(self, activation: Tensor) -> Tensor:
        if self.tensor.size == 1 or self.place.sequence_parallel:
            return activation
        return _Collect.apply(activation, self.tensor, len(self.context_range))

    def to_shard(self, activation: Tensor) -> Tensor:
        """What the rank sends to another stage; without gradients."""
        alone = self.tensor.size == 1 or self.place.sequence_parallel
        return activation if alone else own_positions(activation, self.tensor)

    def from_shard(self, shard: Tensor) -> Tensor:
        alone = self.tensor.size == 1 or self.place.sequence_parallel
        return shard if alone else gather_positions(shard, self.tensor, len(self.context_range))

    def gather_context(self, own: Tensor) -> Tensor:
        """Keys or values of all positions, from those of each cp rank."""
        return own if self.context.size == 1 else _Gather.apply(own, self.context, self.positions)

    def to_heads(self, own: Tensor) -> Tensor:
        """All positions of the rank's share of the heads, for its positions of all heads."""
        return _ToHeads.apply(own, self.context, self.positions)

    def to_positions(self, share: Tensor) -> Tensor:
        return _ToPositions.apply(share, self.context, self.positions)

    def exchange(self, rows: Tensor, outgoing: list[int], incoming: list[int]) -> Tensor:
        """Rows between the ranks of an expert group."""
        return rows if self.experts.size == 1 else _Exchange.apply(rows, self.experts, outgoing, incoming)

    def sum_of_tensor(self, value: Tensor) -> Tensor:
        return value if self.tensor.size == 1 else _Sum.apply(value, self.tensor)
