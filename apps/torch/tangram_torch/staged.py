"""Collectives and messages of tensors on a GPU through host memory, over gloo: for ranks that share a GPU, where NCCL
takes one rank of a communicator only."""

from __future__ import annotations

from typing import Any, Optional

import torch
from torch import Tensor

from .communication import Group, Groups


class Arrival:
    """What has to be waited for: the message, whose host copy then goes to `target`."""

    def __init__(self, work: Any, host: Tensor, target: Optional[Tensor]) -> None:
        self._work = work
        self._host = host  # kept as long as the message is under way
        self._target = target

    def wait(self) -> None:
        self._work.wait()
        if self._target is not None:
            self._target.copy_(self._host)

    def is_completed(self) -> bool:
        return bool(self._work.is_completed())


class StagedGroup(Group):
    def all_reduce(self, tensor: Tensor, wait: bool = True, highest: bool = False) -> Optional[Any]:
        if self.size == 1 or tensor.numel() == 0:
            return None
        host = tensor.cpu()
        work = super().all_reduce(host, wait, highest)
        if not wait:
            return Arrival(work, host, tensor)
        tensor.copy_(host)
        return None

    def all_gather(self, tensor: Tensor) -> list[Tensor]:
        if self.size == 1:
            return [tensor]
        return [gathered.to(tensor.device) for gathered in super().all_gather(tensor.cpu())]

    def all_gather_into(self, out: Tensor, shard: Tensor) -> None:
        if self.size == 1:
            out.copy_(shard)
            return
        host = torch.empty_like(out, device="cpu")
        super().all_gather_into(host, shard.cpu())
        out.copy_(host)

    def reduce_scatter(self, tensor: Tensor) -> Tensor:
        return tensor if self.size == 1 else super().reduce_scatter(tensor.cpu()).to(tensor.device)

    def exchange_rows(self, rows: Tensor, outgoing: list[int], incoming: list[int]) -> Tensor:
        return rows if self.size == 1 else super().exchange_rows(rows.cpu(), outgoing, incoming).to(rows.device)


class StagedGroups(Groups):
    group_type = StagedGroup

    def send(self, tensor: Tensor, to: int, backward: bool) -> Any:
        host = tensor.cpu()
        return Arrival(super().send(host, to, backward), host, None)

    def receive(self, tensor: Tensor, source: int, backward: bool) -> Any:
        host = torch.empty_like(tensor, device="cpu")
        return Arrival(super().receive(host, source, backward), host, tensor)
