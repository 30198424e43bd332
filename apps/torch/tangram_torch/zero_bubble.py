"""Where weight gradients go under zero bubble (ZB-H1, Qi et al., arXiv 2401.10241, section 2).

A part runs the passes of 1F1B in their order. It works out a weight gradient that was put off where its next pass is not
there yet, and at the latest where the stage holds as many microbatches as it may. Which pass waits follows from the
times and links that the plan predicts, event by event, and not from the run: a host is far ahead of its GPU and can not
tell, and all ranks of a part have to decide alike.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass, field
from typing import Optional

from .launch_plan import LaunchPlan, Stage
from .schedule import Kind, Pass, passes

PASS_ENDS, ACTIVATION, GRADIENT = range(3)


@dataclass
class _Executor:
    """A part of a stage."""

    stage: int  # position in the pipeline
    seconds: dict[Kind, int]  # nanoseconds of its passes
    order: list[Pass]  # without weight gradients
    most: int  # microbatches that it may hold
    done: dict[Kind, int] = field(default_factory=lambda: dict.fromkeys(Kind, 0))
    begun: list[Pass] = field(default_factory=list)
    forwards_begun: int = 0
    running: bool = False


@dataclass
class _Station:
    """What a stage has received, and when the link behind it is free again."""

    latency: int
    occupancy: int
    activations: int = 0
    gradients: int = 0
    sent_activations: int = 0
    sent_gradients: int = 0
    free: list[int] = field(default_factory=lambda: [0, 0])  # forward and backward


class _Timeline:
    """One pipeline, event by event."""

    def __init__(self, plan: LaunchPlan, stages: list[Stage], microbatches: int) -> None:
        self._stations = [_Station(0, 0) for _ in stages]
        for station, stage, behind in zip(self._stations, stages, stages[1:]):
            station.latency, station.occupancy = plan.links[stage.id, behind.id]
        self._stations[0].activations = self._stations[-1].gradients = microbatches
        self.parts: list[list[_Executor]] = []
        for position, stage in enumerate(stages):
            self.parts.append([])
            for part in stage.parts:
                forward, backward, weight = part.times
                self.parts[-1].append(_Executor(
                    position, {Kind.FORWARD: forward, Kind.BACKWARD: backward - weight, Kind.WEIGHT: weight},
                    passes(microbatches, stage.warmup), stage.warmup + 1 + stage.put_off))
        self._events: list[tuple[int, int, int, int, int]] = []
        self._serial = 0

    def run(self) -> None:
        for stage in range(len(self.parts)):
            self._start(stage, 0)
        while self._events:
            # What to run next is decided when all that happens at one time is known.
            now = self._events[0][0]
            touched = []
            while self._events and self._events[0][0] == now:
                touched.append(self._happen(now, *heapq.heappop(self._events)[2:]))
            for stage in touched:
                self._start(stage, now)

    def _schedule(self, moment: int, what: int, stage: int, part: int = 0) -> None:
        heapq.heappush(self._events, (moment, self._serial, what, stage, part))
        self._serial += 1

    def _happen(self, now: int, what: int, stage: int, part: int) -> int:
        if what == ACTIVATION:
            self._stations[stage].activations += 1
        elif what == GRADIENT:
            self._stations[stage].gradients += 1
        else:
            executor = self.parts[stage][part]
            executor.running = False
            kind = executor.begun[-1].kind
            executor.done[kind] += 1
            if kind is not Kind.WEIGHT:
                self._send(stage, kind, now)
        return stage

    def _send(self, stage: int, kind: Kind, now: int) -> None:
        """A transfer starts when the last part has finished the microbatch."""
        station, backward = self._stations[stage], kind is Kind.BACKWARD
        to = stage - 1 if backward else stage + 1
        sent = station.sent_gradients if backward else station.sent_activations
        if not 0 <= to < len(self._stations) or min(e.done[kind] for e in self.parts[stage]) <= sent:
            return
        if backward:
            station.sent_gradients += 1
        else:
            station.sent_activations += 1
        link = self._stations[min(stage, to)]
        start = max(now, link.free[backward])
        link.free[backward] = start + link.occupancy
        self._schedule(start + link.latency, GRADIENT if backward else ACTIVATION, to)

    def _start(self, stage: int, now: int) -> None:
        for part, executor in enumerate(self.parts[stage]):
            step = None if executor.running else self._next(executor)
            if step is None:
                continue
            executor.running = True
            executor.begun.append(step)
            executor.forwards_begun += step.kind is Kind.FORWARD
            self._schedule(now + executor.seconds[step.kind], PASS_ENDS, stage, part)

    def _next(self, executor: _Executor) -> Optional[Pass]:
        done = executor.done
        following = done[Kind.FORWARD] + done[Kind.BACKWARD]
        if following < len(executor.order):
            step = executor.order[following]
            full = executor.forwards_begun - done[Kind.WEIGHT] >= executor.most
            if self._has_input(executor, step) and not (full and step.kind is Kind.FORWARD):
                return step
        if done[Kind.WEIGHT] < done[Kind.BACKWARD]:
            return Pass(Kind.WEIGHT, done[Kind.WEIGHT], 0)
        return None

    def _has_input(self, executor: _Executor, step: Pass) -> bool:
        station = self._stations[executor.stage]
        if step.kind is Kind.FORWARD:
            return step.microbatch < station.activations
        return step.microbatch < min(station.gradients, executor.done[Kind.FORWARD])


def _orders(plan: LaunchPlan, pipeline: int) -> list[list[list[Pass]]]:
    """Of each part of each stage."""
    record = plan.pipelines[pipeline]
    timeline = _Timeline(plan, [plan.stages[stage] for stage in record.stages], record.microbatches)
    timeline.run()
    return [[executor.begun for executor in parts] for parts in timeline.parts]


def passes_of(plan: LaunchPlan, rank: int) -> list[Pass]:
    """Of a rank, under the plan's schedule."""
    record = plan.ranks[rank]
    stage = plan.stages[record.stage]
    pipeline = plan.pipelines[stage.pipeline]
    if not plan.zero_bubble:
        return passes(pipeline.microbatches, stage.warmup, len(stage.chunks), plan.group)
    order = _orders(plan, pipeline.id)[pipeline.stages.index(stage.id)][record.part]
    return order if stage.puts_off else [step for step in order if step.kind is not Kind.WEIGHT]
