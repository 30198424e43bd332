"""A plan without its GPUs: processes and messages are real, computing is waiting.

Every rank goes through its passes in the order of the schedule, waits as long as the plan predicts for each, and sends
messages over the routes of the plan. A link is held back to the plan's price: a message carries the time at which it
may be read, and the next one of its direction leaves when the link is free. It shares the order of passes, the routes
and the receives with real runs, and nothing with the simulator that it is held against.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Optional, Protocol, Union

import torch
import torch.distributed as dist

from .boundary import Receiver, Route, routes_of, sides_of
from .communication import Group, Groups
from .launch_plan import LaunchPlan, Pipeline, plan_of
from .recorder import Recorder
from .schedule import Kind, Pass
from .topology import Ranks, place_of
from .zero_bubble import passes_of

PAYLOAD = 256  # 8-byte words of a message, the first one the time at which it has arrived
READY = 0.05  # seconds from when all ranks are ready to the start of an iteration


@dataclass(frozen=True)
class Link:
    latency: float  # seconds from the start of a transfer to its arrival
    occupancy: float  # until the next transfer of this direction may start


@dataclass(frozen=True)
class Times:
    """Of a part, in seconds; of passes one for each chunk."""

    forward: tuple[float, ...]
    backward: tuple[float, ...]  # under zero bubble without weight gradients
    weight: tuple[float, ...]
    exposed_sync: float
    optimizer: float
    gpu: str

    def scaled(self, compute: float, all_times: float) -> Times:
        passes_factor = compute * all_times
        forward, backward, weight = (tuple(t * passes_factor for t in times)
                                     for times in (self.forward, self.backward, self.weight))
        return Times(forward, backward, weight, self.exposed_sync * all_times, self.optimizer * passes_factor, self.gpu)

    def of(self, step: Pass) -> float:
        times = {Kind.FORWARD: self.forward, Kind.BACKWARD: self.backward, Kind.WEIGHT: self.weight}
        return times[step.kind][step.chunk]


@dataclass(frozen=True)
class Turn:
    """Of colocated encoders on a part, in seconds."""

    forward: float  # of one round
    backward: float
    exposed_sync: float
    optimizer: float
    gather: float  # from the last lane's end to the first stage
    broadcast: float  # from the first stage's end to the lanes

    def scaled(self, compute: float, all_times: float) -> Turn:
        passes = compute * all_times
        return Turn(self.forward * passes, self.backward * passes, self.exposed_sync * all_times,
                    self.optimizer * passes, self.gather * all_times, self.broadcast * all_times)


@dataclass(frozen=True)
class Emulated:
    """A plan and what its predictions say."""

    plan: LaunchPlan
    times: dict[tuple[int, int], Times]  # by stage and part
    links: dict[tuple[int, int], Link]  # by the ids of the stages
    turns: dict[tuple[int, int], Turn]  # of colocated encoders, by stage and part


def read_emulated(path: Union[str, Path]) -> Emulated:
    return emulated_of(json.loads(Path(path).read_text(encoding="utf-8")))


def emulated_of(record: dict[str, Any]) -> Emulated:
    gpus = {island["id"]: island["gpu_type"] for island in record["islands"]}
    times = {(stage["id"], number): _times_of(part["predicted"], gpus[part["island"]])
             for stage in record["stages"] for number, part in enumerate(stage["parts"])}
    links = {(b["from"], b["to"]): Link(b["latency_ms"] / 1000, b["occupancy_ms"] / 1000)
             for b in record["boundaries"]}
    turns = {(stage["id"], number): _turn_of(part["encoders"], record["colocated"])
             for stage in record["stages"] for number, part in enumerate(stage["parts"]) if "encoders" in part}
    return Emulated(plan_of(record), times, links, turns)


def _turn_of(encoders: dict[str, Any], colocated: dict[str, Any]) -> Turn:
    return Turn(encoders["forward_ms"] / 1000, encoders["backward_ms"] / 1000, encoders["gradient_sync_exposed_ms"] / 1000,
                encoders["optimizer_step_ms"] / 1000, colocated["gather_ms"] / 1000, colocated["broadcast_ms"] / 1000)


def _times_of(predicted: dict[str, Any], gpu: str) -> Times:
    chunks = predicted.get("chunks", [predicted])
    weights = [c.get("weight_gradient_ms", 0.0) for c in chunks]
    return Times(tuple(c["forward_ms"] / 1000 for c in chunks),
                 tuple((c["backward_ms"] - weight) / 1000 for c, weight in zip(chunks, weights)),
                 tuple(weight / 1000 for weight in weights), predicted["gradient_sync_exposed_ms"] / 1000,
                 predicted["optimizer_step_ms"] / 1000, gpu)


class Clock(Protocol):
    def now(self) -> float:
        """Seconds."""

    def wait_until(self, moment: float) -> None:
        """Nothing where it has passed."""


class WallClock:
    """The monotonic clock, which all processes of a machine share."""

    @staticmethod
    def now() -> float:
        return time.monotonic()

    @staticmethod
    def wait_until(moment: float) -> None:
        left = moment - time.monotonic()
        if left > 0:
            time.sleep(left)


class LogicalClock:
    """A rank's own time, which waiting moves forward at once: what happens does not depend on how busy a machine is."""

    def __init__(self) -> None:
        self._now = 0.0

    def now(self) -> float:
        return self._now

    def wait_until(self, moment: float) -> None:
        self._now = max(self._now, moment)


class _Wire:
    """One direction of a boundary, as this rank uses it."""

    def __init__(self, groups: Groups, clock: Clock, routes: list[Route], link: Link, backward: bool) -> None:
        self._groups = groups
        self._clock = clock
        self._routes = routes
        self._link = link
        self._backward = backward
        self._free = 0.0
        self._sent: list[tuple[Any, torch.Tensor]] = []

    def send(self) -> None:
        start = max(self._clock.now(), self._free)
        self._free = start + self._link.occupancy
        for route in self._routes:
            message = torch.full((PAYLOAD,), start + self._link.latency, dtype=torch.float64)
            self._sent.append((self._groups.send(message, route.peer, self._backward), message))

    def expect(self) -> Callable[[], torch.Tensor]:
        """Calls for the messages of a pass; the result waits until all of them have arrived."""
        buffers = [torch.empty(PAYLOAD, dtype=torch.float64) for _ in self._routes]
        works = [self._groups.receive(buffer, route.peer, self._backward)
                 for buffer, route in zip(buffers, self._routes)]

        def arrived() -> torch.Tensor:
            for work in works:
                work.wait()
            self._clock.wait_until(max(float(buffer[0]) for buffer in buffers))
            return buffers[0]

        return arrived

    def finish(self) -> None:
        for work, _ in self._sent:
            work.wait()
        self._sent.clear()


def stage_ranks(plan: LaunchPlan, stage: int) -> Ranks:
    return tuple(rank for part in plan.stages[stage].parts for rank in part.ranks)


def pipeline_ranks(plan: LaunchPlan, pipeline: Pipeline) -> Ranks:
    return tuple(rank for stage in pipeline.stages for rank in stage_ranks(plan, stage))


class EmulatedRank:
    """One rank of an emulated plan. All times are `slowdown` times as long as the plan's."""

    def __init__(self, emulated: Emulated, rank: int, groups: Groups, clock: Clock, recorder: Recorder,
                 slowdown: float = 1.0, slower: Optional[dict[str, float]] = None) -> None:
        plan = emulated.plan
        record = plan.ranks[rank]
        times = emulated.times[record.stage, record.part]
        factor = (slower or {}).get(times.gpu, 1.0)
        self._times = times.scaled(factor, slowdown)
        turn = emulated.turns.get((record.stage, record.part))
        self._turn = None if turn is None else turn.scaled(factor, slowdown)
        self._groups = groups
        self.clock = clock
        self._recorder = recorder
        self._stage = plan.stages[record.stage]
        self._pipeline = plan.pipelines[self._stage.pipeline]
        self._stage_group = groups.of(stage_ranks(plan, self._stage.id))
        self._pipeline_group = None if turn is None else groups.of(pipeline_ranks(plan, self._pipeline))
        self._each_microbatch = plan.colocated is not None and plan.colocated.each_microbatch
        self._passes = passes_of(plan, rank)
        self._wires = self._make_wires(emulated, rank, slowdown)

    def _make_wires(self, emulated: Emulated, rank: int, slowdown: float) -> dict[tuple[bool, bool], _Wire]:
        """By (backward, incoming)."""
        plan, wires = emulated.plan, {}
        for side in sides_of(plan, self._stage.id):
            routes = routes_of(plan, place_of(plan, rank), side)
            link = emulated.links[side.stages]
            scaled = Link(link.latency * slowdown, link.occupancy * slowdown)
            wires[side.backward, side.incoming] = _Wire(self._groups, self.clock, routes, scaled, side.backward)
        return wires

    def run(self) -> None:
        """One iteration."""
        receiver = Receiver([self._call_of(step) for step in self._passes])
        rounds = self._pipeline.microbatches if self._each_microbatch else 1
        each = len(self._passes) // rounds
        for number, step in enumerate(self._passes):
            if number % each == 0:
                self._encode()
            receiver.take(number)
            with self._recorder.span(step.kind.value, str(step.microbatch), chunk=step.chunk):
                self._compute(self._times.of(step))
            wire = None if step.kind is Kind.WEIGHT else self._wires.get((step.backward, False))
            if wire is not None and not self._is_end(step, sends=True):
                wire.send()
            if (number + 1) % each == 0:
                self._encode_backward()
        for wire in self._wires.values():
            wire.finish()
        self._synchronise()

    def _encode(self) -> None:
        """A round of colocated encoders: the language model goes on when the last lane is through."""
        if self._turn is not None and self._pipeline_group is not None:
            self._compute(self._turn.forward)
            self._meet(self._pipeline_group)
            self._compute(self._turn.gather)

    def _encode_backward(self) -> None:
        """When the first stage is through, and the rank itself."""
        if self._turn is not None and self._pipeline_group is not None:
            self._meet(self._pipeline_group, self.clock.now() if self._stage.embedding else 0.0, self._turn.broadcast)
            self._compute(self._turn.backward)

    def _compute(self, seconds: float) -> None:
        self.clock.wait_until(self.clock.now() + seconds)

    def _synchronise(self) -> None:
        """Parts of a stage begin together, with colocated encoders all stages, and no rank steps before the gradients of
        all are summed."""
        self._meet(self._pipeline_group or self._stage_group)
        with self._recorder.span("sync", "gradients"):
            self._compute(self._times.exposed_sync + (0.0 if self._turn is None else self._turn.exposed_sync))
        self._meet(self._groups.world)
        with self._recorder.span("optimizer", "step"):
            self._compute(self._times.optimizer + (0.0 if self._turn is None else self._turn.optimizer))

    def _meet(self, group: Group, moment: Optional[float] = None, behind: float = 0.0) -> None:
        """Goes on so long behind the latest moment of the group: that at which its last rank is here."""
        latest = torch.tensor([self.clock.now() if moment is None else moment], dtype=torch.float64)
        group.all_reduce(latest, highest=True)
        self.clock.wait_until(float(latest) + behind)

    def _is_end(self, step: Pass, sends: bool) -> bool:
        """Whether the pass sends nothing, or receives nothing."""
        if step.backward is sends:
            return self._stage.begins_with(step.chunk)
        return self._stage.ends_with(step.chunk)

    def _call_of(self, step: Pass) -> Optional[Callable[[], Callable[[], torch.Tensor]]]:
        if step.kind is Kind.WEIGHT or self._is_end(step, sends=False):
            return None
        return self._wires[step.backward, True].expect


def groups_of_stages(plan: LaunchPlan) -> list[Ranks]:
    """And of pipelines, whose ranks meet where encoders are colocated."""
    pipelines = plan.pipelines if plan.colocated is not None else ()
    return [stage_ranks(plan, stage.id) for stage in plan.stages] + [pipeline_ranks(plan, p) for p in pipelines]


def run_iteration(program: EmulatedRank, groups: Groups) -> float:
    """Seconds from the moment at which all ranks begin, which rank 0 sets, until the last has stepped."""
    groups.barrier()
    moment = torch.tensor([program.clock.now() + READY], dtype=torch.float64)
    if groups.world.size > 1:
        dist.broadcast(moment, 0)
    program.clock.wait_until(float(moment))
    program.run()
    last = torch.tensor([program.clock.now()], dtype=torch.float64)
    groups.world.all_reduce(last, highest=True)
    return float(last) - float(moment)
