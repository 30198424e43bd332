"""A unit at work: a block, an end of the model or of an encoder, with its weights."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Optional

import torch
from torch import Tensor

from .communication import Groups
from .encoder_ends import DETAILS, connect, counted, embed_patches, put_items
from .encoders import TEXT, Encoder
from .ends import embed, head_loss
from .experts import Router, run_experts
from .flat import FlatWeights
from .launch_plan import BlockPolicy, Model
from .layers import run_block
from .parallel import Parallel
from .quantized import QuantizedWeights
from .samples import Microbatch, Source
from .topology import Place
from .weight_gradients import Later, PutOff, SumOf, Weights
from .weights import TOKENS, Unit, held_by


@dataclass(frozen=True)
class Precision:
    compute: torch.dtype  # of weights and activations
    master: torch.dtype  # of gradients that are summed up, and of what the optimizer steps


class UnitWeights:
    """The slices of a unit on this rank: flat tensors of dense weights and of experts where there are any, of what is
    trained and of what is not."""

    def __init__(self, unit: Unit, place: Place, groups: Groups, precision: Precision, device: torch.device) -> None:
        self.name = unit.name
        self.flats = []
        for weights, routed, zero in unit.flats():
            slices = [h for h in (held_by(place, weight) for weight in weights) if h is not None]
            if not slices:
                continue
            copies, replicas = (groups.of(ranks) for ranks in place.sharing(routed, zero))
            if slices[0].weight.is_quantized:
                self.flats.append(QuantizedWeights(slices, copies, replicas, groups, zero, device))
            else:
                self.flats.append(FlatWeights(slices, copies, replicas, groups, zero, precision.compute,
                                              precision.master, device))

    @property
    def parameters(self) -> dict[str, Any]:
        return {name: p for flat in self.flats for name, p in flat.parameters.items()}


@dataclass
class Layer:
    """What a pass goes through: a function of activations, and the weights that it needs."""

    name: str  # of its unit
    weights: list[UnitWeights]
    run: Callable[..., Tensor]
    recompute: bool = False
    router: Optional[Router] = None
    reads: tuple[str, ...] = (TEXT,)  # names of streams
    writes: str = TEXT
    has_backward: bool = True  # else nothing in it or in front of it is trained

    @property
    def flats(self) -> list[FlatWeights]:
        return [flat for unit in self.weights for flat in unit.flats]

    @property
    def trained(self) -> list[FlatWeights]:
        return [flat for flat in self.flats if flat.trained]

    def gather(self) -> None:
        for flat in self.flats:
            flat.gather()

    def release(self) -> None:
        for flat in self.flats:
            flat.release()

    def accumulate(self) -> None:
        for flat in self.trained:
            flat.accumulate()

    def accumulate_beside(self, put_off: PutOff) -> None:
        """Adds what is not put off, and leaves it with the rest where each microbatch is summed over copies."""
        for flat in self.trained:
            if flat.zero < 2 or not put_off.products:
                flat.accumulate()
            else:
                put_off.beside += flat.take()


def short_names(weights: Iterable[UnitWeights], prefix: str, later: Optional[Later] = None,
                scale: float = 1.0) -> Weights:
    """`scale`: of what adapters give."""
    names: dict[str, Tensor] = {}
    sums: dict[str, SumOf] = {}
    for flat in (flat for unit in weights for flat in unit.flats):
        names.update((name[len(prefix):], parameter) for name, parameter in flat.parameters.items())
        sums.update((name[len(prefix):], sum_of) for name, sum_of in flat.sums().items())
    return Weights(names, sums, later, scale)


def block_layer(parallel: Parallel, model: Model, index: int, policy: BlockPolicy, unit: UnitWeights,
                later: Optional[Later]) -> Layer:
    block = model.blocks[index]
    details = model.details if index in model.language else DETAILS
    any_weight = next(iter(unit.parameters.values()))
    adapters = model.adapters_of(index)
    w = short_names([unit], f"blocks.{index}.", later if model.trains(index) else None,
                    1.0 if adapters is None else adapters.scale)
    router = None
    experts: Optional[Callable[[Tensor], Tensor]] = None
    if block.feed_forward.experts:
        router = chosen = Router(block.feed_forward, details, torch.float32, any_weight.device)

        def experts(x: Tensor) -> Tensor:
            return run_experts(parallel, w, chosen, x)

    encoder = model.encoder_of(index)
    rotary = (model.learned_positions if encoder is None else encoder.learned_positions) == 0
    run = partial(run_block, parallel, details, block, w, rotary=rotary, selective=policy.recompute == "selective",
                  experts=experts)
    stream = TEXT if encoder is None else encoder.name
    return Layer(unit.name, [unit], run, policy.recompute == "full", router, (stream,), stream)


@dataclass
class Ends:
    """The first and the last layer of the model, on the ranks that have them."""

    parallel: Parallel
    model: Model
    embedding: Optional[UnitWeights] = None
    head: Optional[UnitWeights] = None
    batch: Microbatch = field(default_factory=Microbatch)  # at work
    scale: float = 1.0  # of the loss

    def embedding_layer(self) -> Layer:
        assert self.embedding is not None
        w = short_names([self.embedding], "")
        return Layer("embedding", [self.embedding], lambda: embed(self.parallel, self.model, w, self._of_context(0)),
                     reads=())

    def head_layer(self) -> Layer:
        """From an activation to the loss of the rank's tokens, times `scale`."""
        assert self.head is not None
        weights = [self.head]
        if self.model.tied and TOKENS not in self.head.parameters:
            assert self.embedding is not None
            weights.append(self.embedding)
        w = short_names(weights, "")

        def loss(x: Tensor) -> Tensor:
            return self.scale * head_loss(self.parallel, self.model, w, x, self._of_context(1), self._counted(x))

        return Layer("head", weights, loss)

    def _of_context(self, shift: int) -> Tensor:
        own = self.parallel.context_range
        return self.batch.tokens[:, own.start + shift:own.stop + shift]

    def _counted(self, x: Tensor) -> Optional[Tensor]:
        """None: all tokens are predicted."""
        mask: Optional[Tensor] = None
        for encoder in self.model.encoders:
            own = counted(self.parallel.context_range, self.batch.items[encoder.name], encoder.tokens_out)
            mask = own if mask is None else mask * own
        return None if mask is None else mask.to(x.device)


@dataclass
class EncoderEnds:
    """The first and the last layer of an encoder, and where its items enter the language model."""

    encoder: Encoder
    ends: Ends  # of the language model on this rank
    inside: Parallel  # of the encoder's tokens
    out: Parallel  # of those that it makes
    source: Source
    precision: Precision
    device: torch.device

    def layers_of(self, block: int, policy: BlockPolicy, units: Mapping[str, UnitWeights],
                  later: Optional[Later]) -> list[Layer]:
        """A block of the encoder, with what stands in front of its first one and behind its last one."""
        layers = [block_layer(self.inside, self.ends.model, block, policy, units[f"blocks.{block}"], later)]
        if block == self.encoder.blocks[0]:
            patches = units.get(f"patches.{self.encoder.name}")
            layers.insert(0, self._patches_layer([] if patches is None else [patches]))
        connector = units.get(f"connector.{self.encoder.name}")
        if connector is not None and block == self.encoder.blocks[-1]:
            layers.append(self._connector_layer(connector))
        return layers

    def _patches_layer(self, units: list[UnitWeights]) -> Layer:
        w = short_names(units, f"encoders.{self.encoder.name}.")
        return Layer(f"patches.{self.encoder.name}", units, lambda: self._embedded(w), reads=(), writes=self.encoder.name)

    def _embedded(self, w: Weights) -> Tensor:
        patches = self.source.patches(self.encoder, self.ends.batch.samples)
        return embed_patches(self.inside, self.encoder, w, patches.to(self.device, self.precision.compute))

    def _connector_layer(self, unit: UnitWeights) -> Layer:
        w = short_names([unit], f"encoders.{self.encoder.name}.connector.")
        return Layer(unit.name, [unit], partial(connect, self.inside, self.out, self.encoder, w),
                     reads=(self.encoder.name,), writes=self.encoder.name)

    def entry_layer(self) -> Layer:
        """In front of the first block of the language model."""
        name = self.encoder.name

        def enter(x: Tensor, made: Tensor) -> Tensor:
            return put_items(self.ends.parallel, self.out, x, made, self.ends.batch.items[name])

        return Layer(f"items.{name}", [], enter, reads=(TEXT, name))
