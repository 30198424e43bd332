"""What lanes of a colocated encoder and the first stage of a pipeline hand to each other: item by item, and of each rank
its positions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Optional

import torch
from torch import Tensor

from .communication import Groups
from .encoders import Encoder
from .launch_plan import LaunchPlan, Pipeline
from .topology import Place, common_range, piece


@dataclass(frozen=True)
class Share:
    """What a rank has of a round."""

    rank: int
    samples: tuple[int, ...]  # by their number in the batch
    positions: range  # of an item


@dataclass(frozen=True)
class Round:
    """Of one pipeline: the microbatches whose items are encoded before the language model has its turn."""

    pipeline: Pipeline
    microbatches: range

    @property
    def samples(self) -> range:
        last = self.microbatches[-1]
        return range(self.first_of(self.microbatches[0]), self.first_of(last) + self.pipeline.samples_of(last))

    def first_of(self, microbatch: int) -> int:
        return self.pipeline.first_sample + microbatch * self.pipeline.microbatch

    def makers(self, plan: LaunchPlan, encoder: Encoder) -> list[Share]:
        """All ranks of the pipeline: lanes have equal shares, one behind the other."""
        assert plan.colocated is not None
        part = plan.colocated.parts[encoder.name]
        places = [Place(rank, part) for stage in self.pipeline.stages for p in plan.stages[stage].parts for rank in p.ranks]
        lanes = len(places) // part.degrees.tp
        owns = [piece(len(self.samples), place.dp - places[0].dp, lanes) for place in places]
        return [Share(place.rank, tuple(self.samples[own.start:own.stop]), place.shard_range(encoder.tokens_out))
                for place, own in zip(places, owns)]

    def readers(self, plan: LaunchPlan, encoder: Encoder) -> list[Share]:
        """Ranks of the first stage."""
        places = [Place(rank, part) for part in plan.stages[self.pipeline.stages[0]].parts for rank in part.ranks]
        return [Share(place.rank, tuple(self.first_of(m) + own for m in self.microbatches
                                        for own in place.samples(self.pipeline.samples_of(m))),
                      place.shard_range(encoder.tokens_out)) for place in places]


def share_of(shares: list[Share], rank: int) -> Optional[Share]:
    return next((share for share in shares if share.rank == rank), None)


class Handover:
    """From who has an activation of a round to who wants it. `counts`: items of each sample."""

    def __init__(self, groups: Groups, sources: list[Share], targets: list[Share], counts: dict[int, int],
                 backward: bool) -> None:
        self._groups = groups
        self._sources = sources
        self._targets = targets
        self._counts = counts
        self._backward = backward
        self._sent: list[tuple[Any, Tensor]] = []

    def run(self, shard: Optional[Tensor], out: Optional[Tensor]) -> None:
        """`shard`: (items of the rank's samples, its positions, width), where it is a source; `out` the same as a target,
        which is filled."""
        here = self._send(shard)
        if out is not None:
            self._receive(out, here)
        for work, _ in self._sent:
            work.wait()

    def _send(self, shard: Optional[Tensor]) -> Optional[Tensor]:
        """Returns what stays on the rank."""
        own, here = share_of(self._sources, self._groups.rank), None
        if own is None or shard is None:
            return None
        for target in self._targets:
            rows, positions = self._common(own, target)
            message = shard[rows][:, positions].contiguous()
            if target.rank == self._groups.rank:
                here = message
            elif message.numel() > 0:
                self._sent.append((self._groups.send(message, target.rank, self._backward), message))
        return here

    def _receive(self, out: Tensor, here: Optional[Tensor]) -> None:
        own = share_of(self._targets, self._groups.rank)
        assert own is not None
        expected = []
        for source in self._sources:
            rows, positions = self._common(own, source)
            buffer = torch.empty_like(out[rows][:, positions], memory_format=torch.contiguous_format)
            is_here = source.rank == self._groups.rank
            if buffer.numel() > 0:
                work = None if is_here else self._groups.receive(buffer, source.rank, self._backward)
                expected.append((work, buffer, rows, positions))
        for work, buffer, rows, positions in expected:
            if work is not None:
                work.wait()
            elif here is not None:
                buffer = here
            out[rows, positions] = buffer

    def _common(self, own: Share, other: Share) -> tuple[Tensor, slice]:
        """Of the shard of one rank, the items and positions that another has, too."""
        theirs = set(other.samples)
        wanted = [sample in theirs for sample in own.samples for _ in range(self._counts[sample])]
        common = common_range(own.positions, other.positions)
        first = own.positions.start
        return torch.tensor(wanted, dtype=torch.bool).nonzero().flatten(), slice(common.start - first, common.stop - first)
