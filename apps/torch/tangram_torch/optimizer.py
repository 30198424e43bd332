"""Adam with decoupled weight decay (arXiv 1711.05101) on the master copies, after clipping over all stages."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from .communication import Group
from .flat import FlatWeights, Slot

MOMENTS = ("exp_avg", "exp_avg_sq")  # as torch.optim names them
NORMED_AT_ONCE = 1 << 24  # elements whose squares are added up in the gradient's precision, and these sums in fp64


@dataclass(frozen=True)
class AdamSettings:
    learning_rate: float = 3e-4
    betas: tuple[float, float] = (0.9, 0.95)
    epsilon: float = 1e-8
    weight_decay: float = 0.1  # of matrices; vectors have none
    clip: float = 1.0  # highest norm of all gradients; 0: no limit


@dataclass(frozen=True)
class _Stepped:
    """Neighbours in what a rank owns of a flat tensor that decay, or that do not."""

    flat: FlatWeights
    first: int
    last: int
    parameter: torch.nn.Parameter  # a view of the master copy


class Optimizer:
    """Steps what the rank owns of all its flat tensors that are trained. `first_part` tells which part counts
    a weight where each must be counted once, if several have it."""

    def __init__(self, flats: list[FlatWeights], device: torch.device, world: Group, part: int,
                 first_part: dict[str, int], settings: AdamSettings) -> None:
        self._flats = flats
        self._device = device
        self._world = world
        self._part = part
        self._first_part = first_part
        self._clip = settings.clip
        self._stepped: list[_Stepped] = []
        groups: dict[bool, list[torch.nn.Parameter]] = {True: [], False: []}
        for flat in flats:
            for decays, first, last in runs_of(flat):
                stepped = _Stepped(flat, first, last, torch.nn.Parameter(flat.master[first:last]))
                self._stepped.append(stepped)
                groups[decays].append(stepped.parameter)
        fused = {"fused": True} if device.type == "cuda" and torch.__version__ >= "2" else {}
        self._adam = torch.optim.AdamW(
            [{"params": groups[decays], "weight_decay": settings.weight_decay if decays else 0.0}
             for decays in (True, False)],
            lr=settings.learning_rate, betas=settings.betas, eps=settings.epsilon, **fused)

    def set_learning_rate(self, rate: float) -> None:
        for group in self._adam.param_groups:
            group["lr"] = rate

    def is_counted(self, flat: FlatWeights, slot: Slot) -> bool:
        """Of all ranks that own the same of a weight, one counts it."""
        return flat.is_counted(slot) and self._first_part.get(slot.held.name, self._part) == self._part

    def norm(self) -> float:
        """Of all gradients of the model, the same on every rank. Not finite where one of them is not."""
        squares = torch.zeros(1, dtype=torch.float64, device=self._device)
        for flat in self._flats:
            for slot, first, last in flat.own_pieces():
                if flat.gradient is not None and self.is_counted(flat, slot):
                    for piece in flat.gradient[first:last].split(NORMED_AT_ONCE):
                        squares += torch.linalg.vector_norm(piece).double().square()
        self._world.all_reduce(squares)
        return float(squares.sqrt())

    def step(self, norm: float, scale: float = 1.0) -> None:
        """Of gradients that are `scale` times too large; `norm` is that of these."""
        factor = 1.0 / scale
        if self._clip > 0 and norm / scale > self._clip:
            factor *= self._clip / (norm / scale)
        for flat in self._flats:
            flat.gradient = torch.zeros_like(flat.master) if flat.gradient is None else flat.gradient.mul_(factor)
        for stepped in self._stepped:
            whole = stepped.flat.gradient
            assert whole is not None
            stepped.parameter.grad = whole[stepped.first:stepped.last]
        self._adam.step()
        for stepped in self._stepped:
            stepped.parameter.grad = None
        for flat in self._flats:
            flat.refresh()
        self.forget()

    def forget(self) -> None:
        """Drops the gradients."""
        for flat in self._flats:
            flat.gradient = None

    # Checkpoints

    def steps_of(self, flat: FlatWeights, first: int) -> int:
        """Done to a part of what the rank owns: of weights that were not trained before, fewer than of others."""
        return int(self._state_of(flat, first).get("step", 0))

    def states_of(self, flat: FlatWeights, first: int, last: int) -> dict[str, Tensor]:
        """Of a part of what the rank owns, which lies in one run of neighbours; none before the first step."""
        state = self._state_of(flat, first)
        if not state:
            return {}
        start = self._of(flat, first).first
        return {name: state[name][first - start:last - start] for name in MOMENTS if name in state}

    def _state_of(self, flat: FlatWeights, first: int) -> dict[str, Any]:
        """Nothing of what is not trained."""
        return self._adam.state.get(self._of(flat, first).parameter, {}) if flat.trained else {}

    def set_states(self, flat: FlatWeights, first: int, last: int, states: dict[str, Tensor], steps: int) -> None:
        stepped = self._of(flat, first)
        state = self._adam.state[stepped.parameter]
        state["step"] = torch.tensor(float(steps), device=flat.master.device if self._on_device else "cpu")
        for name, value in states.items():
            whole = state.setdefault(name, torch.zeros_like(stepped.parameter))
            whole[first - stepped.first:last - stepped.first].copy_(value)

    @property
    def _on_device(self) -> bool:
        """Fused kernels keep the count of steps beside the moments."""
        return bool(self._adam.defaults.get("fused"))

    def _of(self, flat: FlatWeights, place: int) -> _Stepped:
        return next(s for s in self._stepped if s.flat is flat and s.first <= place < s.last)


def runs_of(flat: FlatWeights) -> list[tuple[bool, int, int]]:
    """(decays, first, last) of what the rank owns: matrices decay, vectors do not."""
    runs: list[tuple[bool, int, int]] = []
    for slot, first, last in flat.own_pieces():
        decays = not slot.held.weight.is_vector
        if runs and runs[-1][0] == decays and runs[-1][2] == first:
            first = runs.pop()[1]
        runs.append((decays, first, last))
    return runs
