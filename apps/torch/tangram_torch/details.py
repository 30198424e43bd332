"""What a model file does not say of its layers. Nothing here needs PyTorch."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Optional


@dataclass(frozen=True)
class Rotary:
    """Rotary positions (arXiv 2104.09864), stretched for contexts longer than the model was first trained on. What
    turns less than `slow` times over the first context is slowed down by `factor`, what turns more than `fast` times is
    not, and between them is a ramp: over turns (llama3), or over pairs of the head (yarn, arXiv 2309.00071, section
    3.2)."""

    base: float = 10_000.0
    fraction: float = 1.0  # of a head that turns
    scaling: str = "default"  # default, linear, llama3, yarn
    factor: float = 1.0
    context: int = 0  # positions, at first
    slow: float = 1.0
    fast: float = 1.0
    magnitude: float = 1.0  # of what has turned


@dataclass(frozen=True)
class Details:
    """As they are unless the config.json of a model says otherwise."""

    epsilon: float = 1e-5  # under the root of norms
    latent_epsilon: float = 1e-5  # of norms inside latent attention
    norm_offset: float = 0.0  # added to the weights of norms: 1 in Gemma
    norms_behind: bool = False  # x -> norm(x + f(x)), not x + f(norm x)
    activation: Optional[str] = None  # one of layers.ACTIVATIONS; None: silu where gated, gelu_tanh where not
    rotary: Rotary = field(default_factory=Rotary)
    attention_scale: Optional[float] = None  # of scores; None: 1 / sqrt(width of a head)
    attention_cap: float = 0.0  # scores z become cap tanh(z / cap); 0: they do not
    logit_cap: float = 0.0
    embedding_scale: float = 1.0
    position_offset: int = 0  # rows of the table of positions before that of the first one
    gates_sum_to_one: bool = True  # of chosen experts
    gate_scale: float = 1.0
    expert_groups: Optional[int] = None  # None: as the plan has them
    chosen_groups: Optional[int] = None


@lru_cache(maxsize=None)
def frequencies(rotary: Rotary, width: int) -> tuple[float, ...]:
    """Radians per position of each of the width / 2 pairs that turn."""
    plain = [rotary.base ** (-2 * pair / width) for pair in range(width // 2)]
    return tuple(f * (kept + (1 - kept) / rotary.factor) for f, kept in zip(plain, _kept(rotary, width, plain)))


def _kept(rotary: Rotary, width: int, plain: list[float]) -> list[float]:
    """Of each frequency the share that is not slowed down."""
    if rotary.scaling == "llama3":
        turns = [rotary.context * f / (2 * math.pi) for f in plain]
        return [_between_0_and_1((t - rotary.slow) / (rotary.fast - rotary.slow)) for t in turns]
    if rotary.scaling != "yarn":
        return [0.0] * len(plain)

    def pair_that_turns(times: float) -> float:
        return width * math.log(rotary.context / (times * 2 * math.pi)) / (2 * math.log(rotary.base))

    first = max(math.floor(pair_that_turns(rotary.fast)), 0)
    last = min(math.ceil(pair_that_turns(rotary.slow)), width - 1)
    return [1 - _between_0_and_1((pair - first) / max(last - first, 0.001)) for pair in range(len(plain))]


def _between_0_and_1(x: float) -> float:
    return min(max(x, 0.0), 1.0)
