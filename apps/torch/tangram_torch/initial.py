"""Initial weights, each slice worked out where it is held: the same for every plan."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable

import torch
from torch import Tensor

from .experts import Router
from .flat import FlatWeights
from .launch_plan import Model
from .weights import ADAPTER_OUT, ROUTER_CORRECTION, Held, router_correction, whole

DEVIATION = 0.02  # of matrices, as in GPT-2
ROWS = 256  # that one seed makes

Initial = Callable[[Held], Tensor]


def drawn(model: Model, seed: int, deviation: float = DEVIATION, vectors: float = 0.0) -> Initial:
    """Normal values; of matrices that add to the residual stream narrower ones (GPT-2: 1 / sqrt(2 layers)). Norms
    multiply by 1, biases and what adapters multiply last are 0, give or take `vectors`; corrections of routers are 0."""
    narrow = 1 / math.sqrt(2 * len(model.blocks))

    def value(held: Held) -> Tensor:
        name = held.name
        if name.endswith(ROUTER_CORRECTION):
            return torch.zeros(held.shape)
        if name.endswith(ADAPTER_OUT):
            return vectors * normal(seed, held)
        if held.weight.is_vector:
            mean = 1.0 - model.details.norm_offset if name.endswith("norm.weight") else 0.0
            return mean + vectors * normal(seed, held)
        adds = name.endswith((".output", ".down")) and not name.startswith("head")
        return normal(seed, held) * deviation * (narrow if adds else 1.0)

    return value


def normal(seed: int, held: Held) -> Tensor:
    """The slice of a whole that is drawn some rows at a time."""
    rows, columns = held.ranges[0], held.weight.shape[1:]
    pieces = []
    for first in range(rows.start // ROWS * ROWS, rows.stop, ROWS):
        count = min(ROWS, held.weight.shape[0] - first)
        digest = hashlib.blake2b(f"{seed}/{held.name}/{first}".encode(), digest_size=8).digest()
        generator = torch.Generator().manual_seed(int.from_bytes(digest, "little") >> 1)
        whole = torch.randn((count, *columns), generator=generator, dtype=torch.float32)
        pieces.append(whole[max(rows.start - first, 0):rows.stop - first])
    drawn_rows = torch.cat(pieces)
    return drawn_rows if not columns else drawn_rows[:, held.ranges[1].start:held.ranges[1].stop]


def load(flats: list[FlatWeights], routers: dict[int, Router], initial: Initial) -> None:
    """`routers` by the number of the block."""
    for flat in flats:
        flat.load(initial)
    for block, router in routers.items():
        if router.shape.router_bias:
            router.correction.copy_(initial(whole(router_correction(block, router.shape))))
