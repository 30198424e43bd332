"""What crosses from stage to stage: the pieces of an activation that the plan lists, sent beside the passes.

A receive is called for some passes before the pass that needs it, so that the sender need not wait for the receiver.
Two ranks exchange one message a pass at most of each stream, streams in one order, and both come to their passes in one
order: messages need no numbers.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, Optional, TypeVar

import torch
from torch import Tensor

from .communication import Groups
from .errors import PlanError
from .launch_plan import LaunchPlan
from .parallel import Parallel
from .topology import Place, common_range

@dataclass(frozen=True)
class Route:
    """A piece of the rank's shard, and who has the other end."""

    peer: int
    samples: range  # of the rank's own, in a whole microbatch
    positions: range  # of its shard


@dataclass(frozen=True)
class Side:
    """What a stage receives or sends in one direction of the pipeline."""

    backward: bool
    incoming: bool
    stages: tuple[int, int]  # of the boundary, as the plan lists it
    target: bool  # whether the stage is the boundary's second one


def sides_of(plan: LaunchPlan, stage: int) -> list[Side]:
    """Behind the last stage comes the first one where chunks are interleaved."""
    stages = plan.pipelines[plan.stages[stage].pipeline].stages
    position = stages.index(stage)
    before, behind = (stages[position - 1], stage), (stage, stages[(position + 1) % len(stages)])
    sides = [Side(False, True, before, True), Side(False, False, behind, False), Side(True, True, behind, False),
             Side(True, False, before, True)]
    return [side for side in sides if plan.boundaries.get(side.stages)]


def routes_of(plan: LaunchPlan, place: Place, side: Side) -> list[Route]:
    """As the plan lists them. Raises PlanError where these are not all of the rank's shard."""
    samples = place.samples(place.part.first_sample + place.part.samples)
    before = plan.model.blocks[plan.stages[side.stages[0]].chunks[0].stop - 1]
    positions = place.shard_range(before.tokens or plan.training.sequence_length)
    routes = []
    for t in plan.boundaries[side.stages]:
        if place.rank != (t.target if side.target else t.source):
            continue
        routes.append(Route(t.source if side.target else t.target, _within(t.samples, samples),
                            _within(t.positions, positions)))
    if sum(len(r.samples) * len(r.positions) for r in routes) != len(samples) * len(positions):
        raise PlanError(f"the transfers of the plan do not bring all that rank {place.rank} works on")
    return routes


def routes_between(plan: LaunchPlan, place: Place, side: Side, positions: int) -> list[Route]:
    """To or from all ranks of the other stage, of an activation of so many positions: what both work on."""
    samples, held = place.samples(place.part.first_sample + place.part.samples), place.shard_range(positions)
    routes = []
    for part in plan.stages[side.stages[not side.target]].parts:
        for peer in (Place(rank, part) for rank in part.ranks):
            common = (common_range(samples, peer.samples(part.first_sample + part.samples)),
                      common_range(held, peer.shard_range(positions)))
            if all(common):
                routes.append(Route(peer.rank, _within(common[0], samples), _within(common[1], held)))
    return routes


def _within(part: range, whole: range) -> range:
    return range(part.start - whole.start, part.stop - whole.start)


@dataclass
class _Expected:
    shard: Tensor
    ends: list[int]
    pieces: list[tuple[Tensor, Route, Any]]


class Boundary:
    """One side of a stage in one direction of the pipeline: what it receives, or what it sends, of one stream. `ends`: of
    each sample the rows of those before it, at last all rows."""

    def __init__(self, parallel: Parallel, groups: Groups, routes: list[Route], backward: bool) -> None:
        self._parallel = parallel
        self._groups = groups
        self._routes = routes
        self._backward = backward
        self._sent: deque[tuple[Any, Tensor]] = deque()

    def send(self, activation: Tensor, ends: list[int]) -> None:
        """Of the rank's samples; returns before the messages are out."""
        shard = self._parallel.to_shard(activation)
        for route in self._routes:
            message = _piece_of(shard, route, ends)
            if message.numel() == 0:
                continue
            message = message.contiguous()
            work = self._groups.send(message, route.peer, self._backward)
            self._sent.append((work, message))
        while self._sent and self._sent[0][0].is_completed():
            self._sent.popleft()

    def finish(self) -> None:
        """Waits until all that was sent is out."""
        while self._sent:
            self._sent.popleft()[0].wait()

    def expect(self, shard: Tensor, ends: list[int]) -> Callable[[], Tensor]:
        """Calls for the messages that make up a shard; the result waits for them and returns the activation."""
        pieces = []
        for route in self._routes:
            buffer = torch.empty_like(_piece_of(shard, route, ends), memory_format=torch.contiguous_format)
            if buffer.numel() == 0:
                continue
            work = self._groups.receive(buffer, route.peer, self._backward)
            pieces.append((buffer, route, work))
        return lambda: self._assemble(_Expected(shard, ends, pieces))

    def _assemble(self, expected: _Expected) -> Tensor:
        for buffer, route, work in expected.pieces:
            work.wait()
            _piece_of(expected.shard, route, expected.ends).copy_(buffer)
        return self._parallel.from_shard(expected.shard)


def _piece_of(shard: Tensor, route: Route, ends: list[int]) -> Tensor:
    """A smaller last microbatch has fewer samples than the route says."""
    first, last = (ends[min(sample, len(ends) - 1)] for sample in (route.samples.start, route.samples.stop))
    return shard[first:last, route.positions.start:route.positions.stop]


Arrived = TypeVar("Arrived")


class Receiver(Generic[Arrived]):
    """The receives of a rank, in the order of the passes that need them, called for some passes ahead."""

    AHEAD = 2

    def __init__(self, calls: list[Optional[Callable[[], Callable[[], Arrived]]]]) -> None:
        self._calls = calls  # of each pass; None: it needs nothing from outside
        self._next = 0
        self._expected: deque[Callable[[], Arrived]] = deque()

    def take(self, step: int) -> Optional[Arrived]:
        """What the step-th pass needs; steps come one by one."""
        while self._next < len(self._calls) and self._next <= step + self.AHEAD:
            call = self._calls[self._next]
            if call is not None:
                self._expected.append(call())
            self._next += 1
        return self._expected.popleft()() if self._calls[step] is not None else None
