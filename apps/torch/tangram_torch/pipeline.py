"""A rank's work in one iteration: passes over microbatches in the order of the schedule, then the sums of gradients."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from typing import Optional

import torch
from torch import Tensor

from .boundary import Boundary, Receiver, routes_between, routes_of, sides_of
from .chain import Chain, KeptPasses, Streams
from .colocated import ColocatedEncoders, Setting
from .communication import Groups
from .encoders import TEXT, Encoder, Stream
from .experts import Router
from .flat import FlatWeights
from .gradient_sums import GradientSums
from .holders import Bucket
from .launch_plan import BlockPolicy, LaunchPlan
from .parallel import Parallel
from .recorder import Recorder
from .samples import Microbatch, Source, predicted_tokens
from .schedule import Kind, Pass
from .topology import place_of
from .unit import EncoderEnds, Ends, Layer, Precision, UnitWeights, block_layer
from .weight_gradients import Later, PutOff
from .weights import Held, units_of
from .zero_bubble import passes_of


@dataclass
class _Kept:
    """What a microbatch leaves in a chunk for its backward pass."""

    batch: Microbatch
    passes: KeptPasses
    loss: Optional[Tensor]


class RankProgram:
    """Everything that a rank has of the model, and what it does with it."""

    def __init__(self, plan: LaunchPlan, rank: int, groups: Groups, precision: Precision, device: torch.device,
                 source: Source, buckets: list[Bucket], recorder: Recorder) -> None:
        self.plan = plan
        self.place = place_of(plan, rank)
        self.groups = groups
        self.precision = precision
        self.device = device
        self.source = source
        self.recorder = recorder
        self.stage = plan.stages[plan.ranks[rank].stage]
        self.pipeline = plan.pipelines[self.stage.pipeline]
        self._parallels: dict[int, Parallel] = {}
        self.parallel = self._split(plan.training.sequence_length)
        self.units = [UnitWeights(unit, self.place, groups, precision, device) for unit in units_of(plan, rank)]
        self._colocated = ColocatedEncoders(Setting(plan, groups, precision, device, source, recorder))
        self._ends = Ends(self.parallel, plan.model, self._end("embedding"), self._end("head"))
        self.loss_scale = 1.0
        self._later = Later() if self.stage.puts_off else None
        self._chains = self._make_chains()
        self._passes = passes_of(plan, rank)
        self._boundaries = self._make_boundaries()
        self._buckets = [bucket for bucket in buckets if rank in bucket[0]]
        self._batches: dict[int, Microbatch] = {}
        self._kept: dict[tuple[int, int], _Kept] = {}
        self._put_off: dict[int, list[tuple[Layer, PutOff, int]]] = {}  # of microbatches, with their samples
        self._sums = GradientSums(self._flats_of_stage(shared=False), device)
        self.most_in_flight = 0
        self.most_held = 0  # of microbatches, those among them whose weight gradients are put off

    # Making

    def _end(self, name: str) -> Optional[UnitWeights]:
        return next((unit for unit in self.units if unit.name == name), None)

    def _split(self, positions: int) -> Parallel:
        """How the rank's part splits an activation of so many."""
        if positions not in self._parallels:
            self._parallels[positions] = Parallel(self.place, self.groups, positions,
                                                  self.plan.training.exchanges_heads)
        return self._parallels[positions]

    def _make_chains(self) -> list[Chain]:
        """Of each chunk."""
        policies = dict(zip(self.stage.blocks, self.place.part.policies))
        layers = [[layer for b in chunk for layer in self._layers_of(b, policies[b])] for chunk in self.stage.chunks]
        if self.stage.embedding:
            layers[0].insert(0, self._ends.embedding_layer())
        if self.stage.head:
            layers[-1].append(self._ends.head_layer())
        return [Chain(of_chunk, self._crossing(chunk, at_start=True) or self._of_lanes(chunk))
                for chunk, of_chunk in enumerate(layers)]

    def _of_lanes(self, chunk: int) -> list[Stream]:
        """What the first chunk reads of colocated encoders."""
        return [Stream(e.encoder.name, e.encoder.tokens_out, self.plan.model.hidden, e.encoder.passes_gradients)
                for e in self._colocated.encoders if self.stage.begins_with(chunk)]

    def _layers_of(self, block: int, policy: BlockPolicy) -> list[Layer]:
        """A block with what stands in front of it and behind it at the ends of modules."""
        model, units = self.plan.model, {unit.name: unit for unit in self.units}
        encoder = model.encoder_of(block)
        if encoder is not None:
            return self._encoder_ends(encoder).layers_of(block, policy, units, self._later)
        entries = [self._encoder_ends(e).entry_layer() for e in model.encoders] if block == model.language.start else []
        return entries + [block_layer(self.parallel, model, block, policy, units[f"blocks.{block}"], self._later)]

    def _encoder_ends(self, encoder: Encoder) -> EncoderEnds:
        inside, out = self._split(encoder.tokens_in), self._split(encoder.tokens_out)
        return EncoderEnds(encoder, self._ends, inside, out, self.source, self.precision, self.device)

    def _crossing(self, chunk: int, at_start: bool) -> list[Stream]:
        """What enters a chunk forward, or leaves it; nothing at the ends of the model."""
        if self.stage.begins_with(chunk) if at_start else self.stage.ends_with(chunk):
            return []
        blocks = self.stage.chunks[chunk]
        return self.plan.model.crossing(blocks.start if at_start else blocks.stop, self.parallel.positions)

    def _streams(self, step: Pass, incoming: bool) -> list[Stream]:
        """What a pass receives, or what it sends."""
        streams = self._crossing(step.chunk, at_start=incoming is not step.backward)
        return [stream for stream in streams if stream.gradients] if step.backward else streams

    def _make_boundaries(self) -> dict[tuple[bool, bool, Stream], Boundary]:
        """By (backward, incoming), and what crosses."""
        made = {}
        for side in sides_of(self.plan, self.stage.id):
            for stream in {stream: None for chunk in range(len(self.stage.chunks))
                           for stream in self._crossing(chunk, side.target)}:
                if self.plan.model.encoders:  # where the plan counts the tokens of the mean sample
                    routes = routes_between(self.plan, self.place, side, stream.positions)
                else:
                    routes = routes_of(self.plan, self.place, side)
                made[side.backward, side.incoming, stream] = Boundary(self._split(stream.positions), self.groups, routes,
                                                                      side.backward)
        return made

    # Passes

    def run(self) -> float:
        """One iteration up to the gradients. Returns the rank's share of the loss."""
        self._sums.begin(self._expected_gradients())
        self._loss = torch.zeros((), dtype=self.precision.master, device=self.device)
        self._batches.clear()
        if self.stage.head:
            self._ends.scale = 1.0 / predicted_tokens(self.source, self.plan.model.encoders, self.plan.training.batch,
                                                      self.parallel.positions)
        self._colocated.begin()
        receiver = Receiver([self._call_of(step) for step in self._passes])
        for number, step in enumerate(self._passes):
            arrived = receiver.take(number) or {}
            self._ends.batch = self._batch_of(step)
            with self.recorder.span(step.kind.value, str(step.microbatch), chunk=step.chunk):
                if step.kind is Kind.FORWARD:
                    self._run_forward(step, arrived)
                elif step.kind is Kind.BACKWARD:
                    self._run_backward(step, arrived)
                else:
                    self._run_weight_gradients(step)
        for boundary in self._boundaries.values():
            boundary.finish()
        self._colocated.finish()
        with self.recorder.span("sync", "gradients"):
            self._sum_gradients()
        return float(self._loss) if self.place.tp == 0 else 0.0

    def _samples_of(self, microbatch: int) -> range:
        """The rank's samples in a microbatch."""
        return self.place.samples(self.pipeline.samples_of(microbatch))

    def _batch_of(self, step: Pass) -> Microbatch:
        if step.backward:
            return self._kept[step.chunk, step.microbatch].batch
        batch = self._microbatch(step.microbatch)
        at_end = self.stage.begins_with(step.chunk) or self.stage.ends_with(step.chunk)
        return self._with_tokens(batch) if at_end and step.kind is Kind.FORWARD else batch

    def _microbatch(self, microbatch: int) -> Microbatch:
        """Without tokens."""
        if microbatch not in self._batches:
            own = self._samples_of(microbatch)
            first = self.pipeline.first_sample + microbatch * self.pipeline.microbatch
            samples = range(first + own.start, first + own.stop)
            items = {encoder.name: self.source.items(encoder, samples) for encoder in self.plan.model.encoders}
            self._batches[microbatch] = Microbatch(samples, items)
        return self._batches[microbatch]

    def _with_tokens(self, batch: Microbatch) -> Microbatch:
        tokens = self.source.tokens(batch.samples, self.parallel.positions + 1)
        if self.device.type == "cuda":  # so that the host need not wait for the passes before
            tokens = tokens.pin_memory().to(self.device, non_blocking=True)
        return replace(batch, tokens=tokens)

    def _call_of(self, step: Pass) -> Optional[Callable[[], Callable[[], Streams]]]:
        """Calls for what a pass receives; None where it receives nothing."""
        streams = [] if step.kind is Kind.WEIGHT else self._streams(step, incoming=True)
        if not streams:
            return None

        def call() -> Callable[[], Streams]:
            batch = self._microbatch(step.microbatch)
            expected = {stream.name: self._expect(stream, step.backward, batch) for stream in streams}
            return lambda: {name: arrived() for name, arrived in expected.items()}

        return call

    def _expect(self, stream: Stream, backward: bool, batch: Microbatch) -> Callable[[], Tensor]:
        ends = batch.rows_before(stream.name)
        shape = (ends[-1], len(self._split(stream.positions).shard_range), stream.width)
        shard = torch.empty(shape, dtype=self.precision.compute, device=self.device)
        return self._boundaries[backward, True, stream].expect(shard, ends)

    def _send(self, step: Pass, batch: Microbatch, streams: Streams) -> None:
        for stream in self._streams(step, incoming=False):
            boundary = self._boundaries[step.backward, False, stream]
            boundary.send(streams[stream.name].detach(), batch.rows_before(stream.name))

    def _run_forward(self, step: Pass, streams: Streams) -> None:
        kept = self._kept[step.chunk, step.microbatch] = _Kept(self._ends.batch, [], None)
        self.most_in_flight = max(self.most_in_flight, len(self._kept))
        self.most_held = max(self.most_held, len(self._kept) + len(self._put_off))
        samples = len(kept.batch.samples)
        if self.stage.begins_with(step.chunk):
            self._colocated.before_forward(step.microbatch)
            streams.update(self._colocated.streams(kept.batch))
        kept.passes = self._chains[step.chunk].forward(streams, lambda layer: self._unit_span("forward", layer, samples))
        if self.stage.ends_with(step.chunk):
            kept.loss = streams[TEXT].detach()
            self._loss += kept.loss
        self._send(step, kept.batch, streams)

    def _run_backward(self, step: Pass, gradients: Streams) -> None:
        kept = self._kept.pop((step.chunk, step.microbatch))
        if kept.loss is not None:
            gradients = {TEXT: torch.full_like(kept.loss, self.loss_scale)}
        samples = len(kept.batch.samples)
        Chain.backward(kept.passes, gradients, lambda layer: self._accumulating(layer, step.microbatch, samples))
        if self.stage.begins_with(step.chunk):
            self._colocated.take(kept.batch, gradients)
            self._colocated.behind_backward()
        self._send(step, kept.batch, gradients)

    @contextmanager
    def _accumulating(self, layer: Layer, microbatch: int, samples: int) -> Iterator[None]:
        """Around a layer's backward pass, which may put weight gradients off."""
        put_off = None if self._later is None else self._later.collect()
        with self._unit_span("backward", layer, samples):
            yield
        if put_off is None:
            layer.accumulate()
        else:
            layer.accumulate_beside(put_off)
            self._put_off.setdefault(microbatch, []).append((layer, put_off, samples))
        self._sums.came(layer.trained)

    def _run_weight_gradients(self, step: Pass) -> None:
        for layer, put_off, samples in self._put_off.pop(step.microbatch):
            if put_off.products:
                with self._unit_span(step.kind.value, layer, samples):
                    put_off.work_out()
                layer.accumulate()
            self._sums.came(layer.trained)

    def _unit_span(self, kind: str, layer: Layer, samples: int) -> AbstractContextManager[None]:
        return self.recorder.span(kind, layer.name, unit=layer.name, samples=samples)

    @property
    def routers(self) -> dict[int, Router]:
        """By the number of the block."""
        layers = [layer for chain in self._chains for layer in chain.layers] + self._colocated.layers
        blocks = [int(layer.weights[0].name.split(".")[1]) for layer in layers if layer.router is not None]
        return dict(zip(blocks, (layer.router for layer in layers if layer.router is not None)))

    # Gradients

    @property
    def flats(self) -> list[FlatWeights]:
        return [flat for unit in self.units + self._colocated.units for flat in unit.flats]

    def _flats_of_stage(self, shared: bool) -> list[FlatWeights]:
        """Those that are trained, of units that other parts of the plan have, too, or of the others."""
        names = {piece.name for _, pieces in self._buckets for piece in pieces}
        return [flat for unit in self.units for flat in unit.flats
                if flat.trained and (flat.slots[0].held.name in names) is shared]

    def _expected_gradients(self) -> list[FlatWeights]:
        """Each as often as an iteration adds to it."""
        twice = 1 if self._later is None else 2
        return [flat for step in self._passes if step.kind is Kind.BACKWARD
                for layer in self._chains[step.chunk].layers for flat in layer.trained * twice]

    def _sum_gradients(self) -> None:
        self._sums.finish()
        self._sum_over_parts(self._flats_of_stage(shared=True))

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
