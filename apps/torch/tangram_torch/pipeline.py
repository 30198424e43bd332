"""A rank's work in one iteration: passes over microbatches in the order of the schedule, then the sums of gradients."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Optional, Protocol

import torch
from torch import Tensor

from .boundary import Boundary, Receiver, routes_of, sides_of
from .communication import Groups
from .experts import Router
from .flat import FlatWeights
from .gradient_sums import GradientSums
from .holders import Bucket
from .launch_plan import LaunchPlan
from .parallel import Parallel
from .recorder import Recorder
from .schedule import Kind, Pass
from .topology import place_of
from .unit import Ends, Layer, Precision, UnitWeights, block_layer
from .weight_gradients import Later, PutOff
from .weights import Held, units_of
from .zero_bubble import passes_of


class TokenSource(Protocol):
    """Samples of the iteration at work by their number in the batch."""

    def tokens(self, samples: range, length: int) -> Tensor:
        """(samples, length), of integers."""


@dataclass
class _Kept:
    """What a microbatch leaves in a chunk for its backward pass: of each layer its input and, unless it is recomputed,
    its output."""

    samples: int
    tokens: Tensor
    layers: list[tuple[Tensor, Optional[Tensor]]] = field(default_factory=list)


class RankProgram:
    """Everything that a rank has of the model, and what it does with it."""

    def __init__(self, plan: LaunchPlan, rank: int, groups: Groups, precision: Precision, device: torch.device,
                 source: TokenSource, buckets: list[Bucket], recorder: Recorder) -> None:
        self.plan = plan
        self.place = place_of(plan, rank)
        self.groups = groups
        self.precision = precision
        self.device = device
        self.source = source
        self.recorder = recorder
        self.stage = plan.stages[plan.ranks[rank].stage]
        self.pipeline = plan.pipelines[self.stage.pipeline]
        self.parallel = Parallel(self.place, groups, plan.training.sequence_length)
        self.units = [UnitWeights(unit, self.place, groups, precision, device) for unit in units_of(plan, rank)]
        self._ends = Ends(self.parallel, plan.model, self._end("embedding"), self._end("head"))
        self.loss_scale = 1.0
        self._later = Later() if self.stage.puts_off else None
        self._layers = self._make_layers()
        self._passes = passes_of(plan, rank)
        self._boundaries = self._make_boundaries()
        self._buckets = [bucket for bucket in buckets if rank in bucket[0]]
        self._kept: dict[tuple[int, int], _Kept] = {}
        self._put_off: dict[int, list[tuple[Layer, PutOff, int]]] = {}  # of microbatches, with their samples
        self._sums = GradientSums(self._own_flats(), device)
        self.most_in_flight = 0
        self.most_held = 0  # of microbatches, those among them whose weight gradients are put off

    # Making

    def _end(self, name: str) -> Optional[UnitWeights]:
        return next((unit for unit in self.units if unit.name == name), None)

    def _make_layers(self) -> list[list[Layer]]:
        """Of each chunk."""
        blocks = dict(zip(self.stage.blocks, self.place.part.policies))
        by_name = {unit.name: unit for unit in self.units}
        layers = [[block_layer(self.parallel, self.plan.model, b, blocks[b], by_name[f"blocks.{b}"],
                              self._later) for b in chunk]
                  for chunk in self.stage.chunks]
        tokens = self.plan.training.batch * self.plan.training.sequence_length
        if self.stage.embedding:
            layers[0].insert(0, self._ends.embedding_layer())
        if self.stage.head:
            layers[-1].append(self._ends.head_layer(1.0 / tokens))
        return layers

    def _make_boundaries(self) -> dict[tuple[bool, bool], Boundary]:
        """By (backward, incoming)."""
        made = {}
        for side in sides_of(self.plan, self.stage.id):
            routes = routes_of(self.plan, self.place, self.plan.boundaries[side.stages], side.target)
            made[side.backward, side.incoming] = Boundary(self.parallel, self.groups, routes, side.backward)
        return made

    # Passes

    def run(self) -> float:
        """One iteration up to the gradients. Returns the rank's share of the loss."""
        self._sums.begin(self._expected_gradients())
        self._loss = torch.zeros((), dtype=self.precision.master, device=self.device)
        receiver = Receiver([self._call_of(step) for step in self._passes])
        for number, step in enumerate(self._passes):
            arrived = receiver.take(number)
            self._ends.tokens = self._tokens_of(step)
            with self.recorder.span(step.kind.value, str(step.microbatch), chunk=step.chunk):
                if step.kind is Kind.FORWARD:
                    self._run_forward(step, arrived)
                elif step.kind is Kind.BACKWARD:
                    self._run_backward(step, arrived)
                else:
                    self._run_weight_gradients(step)
        for boundary in self._boundaries.values():
            boundary.finish()
        with self.recorder.span("sync", "gradients"):
            self._sum_gradients()
        return float(self._loss) if self.place.tp == 0 else 0.0

    def _samples_of(self, microbatch: int) -> range:
        """The rank's samples in a microbatch."""
        return self.place.samples(self.pipeline.samples_of(microbatch))

    def _tokens_of(self, step: Pass) -> Tensor:
        at_end = self.stage.begins_with(step.chunk) or self.stage.ends_with(step.chunk)
        if not at_end or step.kind is Kind.WEIGHT:
            return self._ends.tokens
        if step.backward:
            return self._kept[step.chunk, step.microbatch].tokens
        own = self._samples_of(step.microbatch)
        first = self.pipeline.first_sample + step.microbatch * self.pipeline.microbatch
        samples = range(first + own.start, first + own.stop)
        tokens = self.source.tokens(samples, self.plan.training.sequence_length + 1)
        if self.device.type == "cuda":  # so that the host need not wait for the passes before
            return tokens.pin_memory().to(self.device, non_blocking=True)
        return tokens

    def _call_of(self, step: Pass) -> Optional[Callable[[], Callable[[], Tensor]]]:
        """Calls for what a pass receives; None where it receives nothing."""
        if step.kind is Kind.WEIGHT:
            return None
        if self.stage.ends_with(step.chunk) if step.backward else self.stage.begins_with(step.chunk):
            return None
        shape = (len(self._samples_of(step.microbatch)), len(self.parallel.shard_range), self.plan.model.hidden)
        boundary = self._boundaries[step.backward, True]
        return lambda: boundary.expect(torch.empty(shape, dtype=self.precision.compute, device=self.device))

    def _run_forward(self, step: Pass, arrived: Optional[Tensor]) -> None:
        x = arrived if arrived is not None else torch.empty(0, device=self.device)
        kept = _Kept(len(self._samples_of(step.microbatch)), self._ends.tokens)
        self._kept[step.chunk, step.microbatch] = kept
        self.most_in_flight = max(self.most_in_flight, len(self._kept))
        self.most_held = max(self.most_held, len(self._kept) + len(self._put_off))
        for layer in self._layers[step.chunk]:
            x = x.detach().requires_grad_(x.is_floating_point())
            layer.gather()
            with torch.set_grad_enabled(not layer.recompute), self._unit_span("forward", layer, kept.samples):
                out = layer.run(x)
            kept.layers.append((x, None if layer.recompute else out))
            layer.release()
            x = out
        if self.stage.ends_with(step.chunk):
            self._loss += x.detach()
        else:
            self._boundaries[False, False].send(x.detach())

    def _run_backward(self, step: Pass, arrived: Optional[Tensor]) -> None:
        kept = self._kept.pop((step.chunk, step.microbatch))
        gradient = arrived
        if gradient is None:
            loss = kept.layers[-1][1]
            assert loss is not None
            gradient = torch.full_like(loss, self.loss_scale)
        for layer, (x, out) in zip(reversed(self._layers[step.chunk]), reversed(kept.layers)):
            layer.gather()
            put_off = None if self._later is None else self._later.collect()
            with self._unit_span("backward", layer, kept.samples):
                torch.autograd.backward(self._run_again(layer, x) if out is None else out, gradient)
            if put_off is None:
                layer.accumulate()
            else:
                layer.accumulate_beside(put_off)
                self._put_off.setdefault(step.microbatch, []).append((layer, put_off, kept.samples))
            self._sums.came(layer.flats)
            layer.release()
            gradient = x.grad if x.grad is not None else torch.zeros_like(x)
        if not self.stage.begins_with(step.chunk):
            self._boundaries[True, False].send(gradient)

    def _run_weight_gradients(self, step: Pass) -> None:
        for layer, put_off, samples in self._put_off.pop(step.microbatch):
            if put_off.products:
                with self._unit_span(step.kind.value, layer, samples):
                    put_off.work_out()
                layer.accumulate()
            self._sums.came(layer.flats)

    def _unit_span(self, kind: str, layer: Layer, samples: int) -> AbstractContextManager[None]:
        return self.recorder.span(kind, layer.name, unit=layer.name, samples=samples)

    @staticmethod
    def _run_again(layer: Layer, x: Tensor) -> Tensor:
        if layer.router is not None:
            layer.router.counting = False
        with torch.enable_grad():
            out = layer.run(x)
        if layer.router is not None:
            layer.router.counting = True
        return out

    @property
    def routers(self) -> dict[int, Router]:
        """By the number of the block."""
        layers = [layer for chunk in self._layers for layer in chunk]
        blocks = [int(layer.weights[0].name.split(".")[1]) for layer in layers if layer.router is not None]
        return dict(zip(blocks, (layer.router for layer in layers if layer.router is not None)))

    # Gradients

    @property
    def flats(self) -> list[FlatWeights]:
        return [flat for unit in self.units for flat in unit.flats]

    def _own_flats(self) -> list[FlatWeights]:
        """Of units that no other part of the plan has."""
        shared = {piece.name for _, pieces in self._buckets for piece in pieces}
        return [flat for flat in self.flats if flat.slots[0].held.name not in shared]

    def _expected_gradients(self) -> list[FlatWeights]:
        """Each as often as an iteration adds to it."""
        twice = 1 if self._later is None else 2
        return [flat for step in self._passes if step.kind is Kind.BACKWARD
                for layer in self._layers[step.chunk] for flat in layer.flats * twice]

    def _sum_gradients(self) -> None:
        self._sums.finish()
        own = self._own_flats()
        self._sum_over_parts([flat for flat in self.flats if flat not in own])

    def _sum_over_parts(self, flats: list[FlatWeights]) -> None:
        sums = [flat.contribution() for flat in flats]
        views = {slot.held.name: (slot.held, slot.of(whole))
                 for flat, whole in zip(flats, sums) for slot in flat.slots}
        for ranks, pieces in self._buckets:
            parts = [_piece_of(*views[piece.name], piece.ranges) for piece in pieces]
            joined = torch.cat([part.flatten() for part in parts])
            self.groups.of(ranks).all_reduce(joined)
            for part, summed in zip(parts, joined.split([part.numel() for part in parts])):
                part.copy_(summed.view_as(part))
        for flat, whole in zip(flats, sums):
            flat.set_sum(whole)


def _piece_of(held: Held, view: Tensor, ranges: tuple[range, ...]) -> Tensor:
    own = tuple(slice(r.start - h.start, r.stop - h.start) for r, h in zip(ranges, held.ranges))
    return view[own]
