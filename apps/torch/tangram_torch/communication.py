"""Process groups, and collectives that NCCL has and that gloo has in part: where gloo lacks one, another that gives the
same takes its place.

Groups of one rank cost nothing. Tensors without elements are not sent: all ranks of a group have the same sizes, but
for all_to_all.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta
from typing import Any, Optional

import torch
import torch.distributed as dist
from torch import Tensor

from .topology import Ranks


class Group:
    """Ranks that call collectives together, in the order of `ranks`."""

    def __init__(self, ranks: Ranks, own: int, handle: Optional[Any]) -> None:
        self.ranks = ranks
        self.index = ranks.index(own)
        self.handle = handle

    @property
    def size(self) -> int:
        return len(self.ranks)

    def all_reduce(self, tensor: Tensor, wait: bool = True, highest: bool = False) -> Optional[Any]:
        """Sums in place, or takes the highest. Without `wait`, what has to be waited for."""
        if self.size == 1 or tensor.numel() == 0:
            return None
        operation = dist.ReduceOp.MAX if highest else dist.ReduceOp.SUM
        work = dist.all_reduce(tensor, op=operation, group=self.handle, async_op=not wait)
        return None if wait else work

    def all_gather(self, tensor: Tensor) -> list[Tensor]:
        """Of tensors of one shape."""
        if self.size == 1 or tensor.numel() == 0:
            return [tensor] * self.size
        gathered = [torch.empty_like(tensor) for _ in self.ranks]
        dist.all_gather(gathered, tensor.contiguous(), group=self.handle)
        return gathered

    def all_gather_into(self, out: Tensor, shard: Tensor) -> None:
        """Fills `out`, which has as many elements as all shards together, with the shards in the order of ranks."""
        if self.size == 1:
            out.copy_(shard)
            return
        if self._has_flat_collectives:
            dist.all_gather_into_tensor(out, shard.contiguous(), group=self.handle)
        else:
            dist.all_gather(list(out.view(self.size, -1).unbind()), shard.contiguous(), group=self.handle)

    def reduce_scatter(self, tensor: Tensor) -> Tensor:
        """Sums, and returns the index-th of equal pieces. The tensor may hold anything then."""
        if self.size == 1:
            return tensor
        pieces = tensor.view(self.size, -1)
        if not self._has_flat_collectives:
            self.all_reduce(tensor)
            return pieces[self.index]
        out = torch.empty_like(pieces[0])
        dist.reduce_scatter_tensor(out, tensor, group=self.handle)
        return out

    @property
    def _has_flat_collectives(self) -> bool:
        return dist.get_backend(self.handle) == "nccl"

    def exchange_rows(self, rows: Tensor, outgoing: list[int], incoming: list[int]) -> Tensor:
        """Sends member i the next outgoing[i] rows, and returns incoming[i] rows of each."""
        if self.size == 1:
            return rows
        out = rows.new_empty((sum(incoming), *rows.shape[1:]))
        dist.all_to_all_single(out, rows.contiguous(), incoming, outgoing, group=self.handle)
        return out


def barrier() -> None:
    """Of all ranks."""
    nccl = dist.get_backend() == "nccl"
    dist.barrier(device_ids=[torch.cuda.current_device()] if nccl else None)


class Groups:
    """All groups of a run. Every rank makes all of them in the same order, as torch.distributed wants it."""

    group_type = Group

    def __init__(self, rank: int, world: int, wanted: Iterable[Ranks], timeout: timedelta) -> None:
        self.rank = rank
        self.world = self.group_type(tuple(range(world)), rank, None)
        self._groups: dict[Ranks, Group] = {}
        for ranks in sorted({ranks for ranks in wanted if len(ranks) > 1}):
            handle = dist.new_group(list(ranks), timeout=timeout)
            if rank in ranks:
                self._groups[ranks] = self.group_type(ranks, rank, handle)
        # Messages of two ranks share one queue in NCCL and must be called for in one order: each direction of the
        # pipeline has a queue for messages up and for messages down the ranks.
        self._queues = {(backward, up): dist.new_group(list(range(world)), timeout=timeout) if world > 1 else None
                        for backward in (False, True) for up in (False, True)}

    def of(self, ranks: Ranks) -> Group:
        return self._groups[ranks] if len(ranks) > 1 else Group(ranks, self.rank, None)

    def barrier(self) -> None:
        if self.world.size > 1:
            barrier()

    def send(self, tensor: Tensor, to: int, backward: bool) -> Any:
        """Returns what has to be waited for before the tensor may change."""
        return dist.isend(tensor, to, group=self._queues[backward, self.rank < to])

    def receive(self, tensor: Tensor, source: int, backward: bool) -> Any:
        """Returns what has to be waited for before the tensor may be read."""
        return dist.irecv(tensor, source, group=self._queues[backward, source < self.rank])
