"""A unit at work: a block, the embedding or the head of a stage, with its weights."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import partial
from typing import Optional

import torch
from torch import Tensor

from .communication import Groups
from .ends import embed, head_loss
from .experts import Router, run_experts
from .flat import FlatWeights
from .launch_plan import BlockPolicy, Model
from .layers import run_block
from .parallel import Parallel
from .topology import Place
from .weight_gradients import Later, PutOff, Weights
from .weights import TOKENS, Unit, held_by


@dataclass(frozen=True)
class Precision:
    compute: torch.dtype  # of weights and activations
    master: torch.dtype  # of gradients that are summed up, and of what the optimizer steps


class UnitWeights:
    """The slices of a unit on this rank: one flat tensor of dense weights, one of experts where there are any."""

    def __init__(self, unit: Unit, place: Place, groups: Groups, precision: Precision, device: torch.device) -> None:
        self.name = unit.name
        held = [h for h in (held_by(place, weight) for weight in unit.weights) if h is not None]
        self.flats = []
        for routed in (False, True):
            slices = [h for h in held if (h.weight.expert is not None) is routed]
            if slices:
                copies, replicas = (groups.of(ranks) for ranks in place.sharing(routed, unit.zero))
                self.flats.append(FlatWeights(slices, copies, replicas, groups, unit.zero, precision.compute,
                                              precision.master, device))

    @property
    def parameters(self) -> dict[str, torch.nn.Parameter]:
        return {name: p for flat in self.flats for name, p in flat.parameters.items()}


@dataclass
class Layer:
    """What a pass goes through: a function of an activation, and the weights that it needs."""

    name: str  # of its unit
    weights: list[UnitWeights]
    run: Callable[[Tensor], Tensor]
    recompute: bool = False
    router: Optional[Router] = None

    @property
    def flats(self) -> list[FlatWeights]:
        return [flat for unit in self.weights for flat in unit.flats]

    def gather(self) -> None:
        for flat in self.flats:
            flat.gather()

    def release(self) -> None:
        for flat in self.flats:
            flat.release()

    def accumulate(self) -> None:
        for flat in self.flats:
            flat.accumulate()

    def accumulate_beside(self, put_off: PutOff) -> None:
        """Adds what is not put off, and leaves it with the rest where each microbatch is summed over copies."""
        for flat in self.flats:
            if flat.zero < 2 or not put_off.products:
                flat.accumulate()
            else:
                put_off.beside += flat.take()


def short_names(weights: Iterable[UnitWeights], prefix: str, later: Optional[Later] = None) -> Weights:
    names: dict[str, Tensor] = {}
    for unit in weights:
        names.update((name[len(prefix):], parameter) for name, parameter in unit.parameters.items())
    return Weights(names, later)


def block_layer(parallel: Parallel, model: Model, index: int, policy: BlockPolicy, unit: UnitWeights,
                later: Optional[Later]) -> Layer:
    block = model.blocks[index]
    w = short_names([unit], f"blocks.{index}.", later)
    any_weight = next(iter(unit.parameters.values()))
    router = None
    experts: Optional[Callable[[Tensor], Tensor]] = None
    if block.feed_forward.experts:
        router = chosen = Router(block.feed_forward, model.details, torch.float32, any_weight.device)

        def experts(x: Tensor) -> Tensor:
            return run_experts(parallel, w, chosen, x)

    rotary, selective = model.learned_positions == 0, policy.recompute == "selective"
    run = partial(run_block, parallel, model.details, block, w, rotary=rotary, selective=selective, experts=experts)
    return Layer(unit.name, [unit], run, policy.recompute == "full", router)


@dataclass
class Ends:
    """The first and the last layer of the model, on the ranks that have them."""

    parallel: Parallel
    model: Model
    embedding: Optional[UnitWeights] = None
    head: Optional[UnitWeights] = None
    tokens: Tensor = field(default_factory=lambda: torch.empty(0))  # of the microbatch at work, one position more

    def embedding_layer(self) -> Layer:
        assert self.embedding is not None
        w = short_names([self.embedding], "")
        return Layer("embedding", [self.embedding], lambda _: embed(self.parallel, self.model, w, self._of_context(0)))

    def head_layer(self, scale: float) -> Layer:
        """From an activation to the loss of the rank's tokens, times `scale`."""
        assert self.head is not None
        weights = [self.head]
        if self.model.tied and TOKENS not in self.head.parameters:
            assert self.embedding is not None
            weights.append(self.embedding)
        w = short_names(weights, "")
        return Layer("head", weights, lambda x: scale * head_loss(self.parallel, self.model, w, x, self._of_context(1)))

    def _of_context(self, shift: int) -> Tensor:
        own = self.parallel.context_range
        return self.tokens[:, own.start + shift:own.stop + shift]
