"""Encoders on all ranks of the pipelines, in turn with the language model (Karnati et al., arXiv 2605.27678). All ranks
of a pipeline are lanes of an encoder, which share the samples of a round: a microbatch, or all of an iteration."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Optional

import torch
from torch import Tensor

from .chain import Chain, KeptPasses, Streams
from .communication import Groups
from .encoders import Encoder
from .flat import FlatWeights
from .gradient_sums import GradientSums
from .handover import Handover, Round, Share, share_of
from .launch_plan import LaunchPlan
from .parallel import Parallel
from .recorder import Recorder
from .samples import Microbatch, Source
from .topology import Place, place_of
from .unit import EncoderEnds, Ends, Layer, Precision, UnitWeights
from .weights import colocated_units_of


@dataclass(frozen=True)
class Setting:
    """Of a rank."""

    plan: LaunchPlan
    groups: Groups
    precision: Precision
    device: torch.device
    source: Source
    recorder: Recorder


class ColocatedEncoder:
    """One of them on a rank: its lane, and as the first stage of a pipeline what it reads of all lanes."""

    def __init__(self, setting: Setting, encoder: Encoder) -> None:
        plan, rank, groups = setting.plan, setting.groups.rank, setting.groups
        assert plan.colocated is not None
        self.encoder = encoder
        self._setting = setting
        place = Place(rank, plan.colocated.parts[encoder.name])
        inside, self._out = (Parallel(place, groups, n) for n in (encoder.tokens_in, encoder.tokens_out))
        self._reading = Parallel(place_of(plan, rank), groups, encoder.tokens_out)
        self._ends = Ends(inside, plan.model)
        self.units = [UnitWeights(unit, place, groups, setting.precision, setting.device)
                      for unit in colocated_units_of(plan, encoder)]
        self.chain = self._make_chain(inside, place)
        self._sums = GradientSums([flat for flat in self._flats if flat.trained], setting.device)
        # Of the round at work:
        self._makers: list[Share] = []
        self._readers: list[Share] = []
        self._counts: dict[int, int] = {}  # items of its samples
        self._kept: KeptPasses = []
        self._read: Optional[Tensor] = None  # the rank's positions
        self._returned: Optional[Tensor] = None  # the same of its gradient

    def _make_chain(self, inside: Parallel, place: Place) -> Chain:
        s = self._setting
        ends = EncoderEnds(self.encoder, self._ends, inside, self._out, s.source, s.precision, s.device)
        units = {unit.name: unit for unit in self.units}
        return Chain([layer for block, policy in zip(self.encoder.blocks, place.part.policies)
                      for layer in ends.layers_of(block, policy, units, None)])

    @property
    def _flats(self) -> list[FlatWeights]:
        return [flat for unit in self.units for flat in unit.flats]

    def begin(self, rounds: int) -> None:
        """Of an iteration."""
        self._sums.begin([flat for layer in self.chain.layers for flat in layer.trained * rounds])

    def finish(self) -> None:
        self._sums.finish()

    def forward(self, turn: Round) -> None:
        plan, source = self._setting.plan, self._setting.source
        self._makers, self._readers = turn.makers(plan, self.encoder), turn.readers(plan, self.encoder)
        self._counts = {sample: len(items) for sample, items in
                        zip(turn.samples, source.items(self.encoder, turn.samples))}
        own = self._own(self._makers)
        assert own is not None
        self._ends.batch = Microbatch(range(own.samples[0], own.samples[-1] + 1) if own.samples else range(0))
        streams: Streams = {}
        self._kept = self.chain.forward(streams, self._span)
        made = self._out.to_shard(streams[self.encoder.name].detach())
        reader = self._own(self._readers)
        self._read, self._returned = self._empty(reader), self._empty(reader)
        Handover(self._setting.groups, self._makers, self._readers, self._counts, False).run(made, self._read)

    def backward(self) -> None:
        if not self.encoder.passes_gradients:
            return
        gradient = self._empty(self._own(self._makers))
        assert gradient is not None
        Handover(self._setting.groups, self._readers, self._makers, self._counts, True).run(self._returned, gradient)
        Chain.backward(self._kept, {self.encoder.name: self._out.from_shard(gradient)}, self._accumulating)

    def stream(self, batch: Microbatch) -> Tensor:
        """What the first chunk reads of a microbatch."""
        assert self._read is not None
        return self._reading.from_shard(self._read[self._rows(batch)])

    def take(self, batch: Microbatch, gradient: Tensor) -> None:
        """Of what it read."""
        assert self._returned is not None
        self._returned[self._rows(batch)] = self._reading.to_shard(gradient)

    def _rows(self, batch: Microbatch) -> slice:
        """Of the round's items that the rank reads, those of a microbatch: its samples are neighbours."""
        own = self._own(self._readers)
        assert own is not None
        before = own.samples[:own.samples.index(batch.samples[0])] if batch.samples else ()
        first, count = (sum(self._counts[sample] for sample in samples) for samples in (before, batch.samples))
        return slice(first, first + count)

    def _own(self, shares: list[Share]) -> Optional[Share]:
        return share_of(shares, self._setting.groups.rank)

    def _empty(self, share: Optional[Share]) -> Optional[Tensor]:
        if share is None:
            return None
        shape = (sum(self._counts[sample] for sample in share.samples), len(share.positions), self._setting.plan.model.hidden)
        return torch.zeros(shape, dtype=self._setting.precision.compute, device=self._setting.device)

    @contextmanager
    def _span(self, layer: Layer, kind: str = "forward") -> Iterator[None]:
        samples = len(self._ends.batch.samples)
        with self._setting.recorder.span(kind, layer.name, unit=layer.name, samples=samples):
            yield

    @contextmanager
    def _accumulating(self, layer: Layer) -> Iterator[None]:
        with self._span(layer, "backward"):
            yield
        layer.accumulate()
        self._sums.came(layer.trained)


class ColocatedEncoders:
    """Whose turn it is on a rank. Does nothing where a plan has no such encoders."""

    def __init__(self, setting: Setting) -> None:
        plan = setting.plan
        self._each_microbatch = plan.colocated is not None and plan.colocated.each_microbatch
        self._pipeline = plan.pipelines[plan.stages[plan.ranks[setting.groups.rank].stage].pipeline]
        self.encoders = [] if plan.colocated is None else [ColocatedEncoder(setting, e) for e in plan.model.encoders]

    @property
    def units(self) -> list[UnitWeights]:
        return [unit for encoder in self.encoders for unit in encoder.units]

    @property
    def layers(self) -> list[Layer]:
        return [layer for encoder in self.encoders for layer in encoder.chain.layers]

    def begin(self) -> None:
        """Of an iteration."""
        for encoder in self.encoders:
            encoder.begin(self._pipeline.microbatches if self._each_microbatch else 1)
        if not self._each_microbatch:
            self._forward(range(self._pipeline.microbatches))

    def finish(self) -> None:
        if not self._each_microbatch:
            self._backward()
        for encoder in self.encoders:
            encoder.finish()

    def before_forward(self, microbatch: int) -> None:
        if self._each_microbatch:
            self._forward(range(microbatch, microbatch + 1))

    def behind_backward(self) -> None:
        if self._each_microbatch:
            self._backward()

    def streams(self, batch: Microbatch) -> Streams:
        """What the first chunk reads."""
        return {e.encoder.name: e.stream(batch) for e in self.encoders}

    def take(self, batch: Microbatch, gradients: Streams) -> None:
        """Of what the first chunk read."""
        for e in self.encoders:
            if e.encoder.passes_gradients:
                e.take(batch, gradients.pop(e.encoder.name))

    def _forward(self, microbatches: range) -> None:
        for encoder in self.encoders:
            encoder.forward(Round(self._pipeline, microbatches))

    def _backward(self) -> None:
        for encoder in reversed(self.encoders):
            encoder.backward()
