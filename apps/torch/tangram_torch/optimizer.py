"""Adam with decoupled weight decay (arXiv 1711.05101) on the master copies, after clipping over all stages."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from .communication import Group
from .flat import FlatWeights


@dataclass(frozen=True)
class Settings:
    learning_rate: float = 3e-4
    betas: tuple[float, float] = (0.9, 0.95)
    epsilon: float = 1e-8
    weight_decay: float = 0.1  # of matrices; vectors have none
    clip: float = 1.0  # highest norm of all gradients; 0: no limit


class Optimizer:
    """Steps what the rank owns of all its flat tensors. `first_part` tells which part counts a weight in the norm."""

    def __init__(self, flats: list[FlatWeights], world: Group, part: int, first_part: dict[str, int],
                 settings: Settings) -> None:
        self._flats = flats
        self._world = world
        self._settings = settings
        self._counted: list[tuple[FlatWeights, int, int]] = []
        self._stepped: list[tuple[FlatWeights, int, int, torch.nn.Parameter]] = []
        groups: dict[bool, list[torch.nn.Parameter]] = {True: [], False: []}
        for flat in flats:
            for slot, first, last in flat.own_pieces():
                if flat.is_counted(slot) and first_part[slot.held.name] == part:
                    self._counted.append((flat, first, last))
                parameter = torch.nn.Parameter(flat.master[first:last])
                self._stepped.append((flat, first, last, parameter))
                groups[slot.held.weight.is_vector].append(parameter)
        self._adam = torch.optim.AdamW(
            [{"params": groups[False], "weight_decay": settings.weight_decay},
             {"params": groups[True], "weight_decay": 0.0}],
            lr=settings.learning_rate, betas=settings.betas, eps=settings.epsilon)

    def norm(self) -> float:
        """Of all gradients of the model, the same on every rank. Not finite where one of them is not."""
        squares = self._flats[0].master.new_zeros(1, dtype=torch.float64)
        for flat, first, last in self._counted:
            if flat.gradient is not None:
                squares += flat.gradient[first:last].to(torch.float64).pow(2).sum()
        self._world.all_reduce(squares)
        return float(squares.sqrt())

    def step(self, norm: float, scale: float = 1.0) -> None:
        """Of gradients that are `scale` times too large; `norm` is that of these."""
        factor = 1.0 / scale
        if self._settings.clip > 0 and norm / scale > self._settings.clip:
            factor *= self._settings.clip / (norm / scale)
        for flat, first, last, parameter in self._stepped:
            gradient = flat.gradient[first:last] if flat.gradient is not None else torch.zeros_like(parameter)
            parameter.grad = gradient * factor
        self._adam.step()
        for _, _, _, parameter in self._stepped:
            parameter.grad = None
        for flat in self._flats:
            flat.refresh()
        self.forget()

    def forget(self) -> None:
        """Drops the gradients."""
        for flat in self._flats:
            flat.gradient = None

    def states(self) -> dict[int, dict[str, Tensor]]:
        return {i: self._adam.state[p] for i, (_, _, _, p) in enumerate(self._stepped)}
