"""The order of a stage's passes: 1F1B (arXiv 2006.09503, section 3) with the warm-up that the plan wrote, and
interleaved 1F1B (arXiv 2104.04473, section 2.2), where groups of microbatches take turns in the chunks of a stage. What
zero bubble adds to 1F1B is in zero_bubble.py."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum


class Kind(Enum):
    """The value names spans of traces."""

    FORWARD = "forward"
    BACKWARD = "backward"  # under zero bubble up to the gradient of the input
    WEIGHT = "weight gradient"  # what a backward pass has put off


@dataclass(frozen=True)
class Pass:
    kind: Kind
    microbatch: int
    chunk: int

    @property
    def backward(self) -> bool:
        return self.kind is Kind.BACKWARD


def forward_passes(microbatches: int, chunks: int, group: int) -> Iterator[tuple[int, int]]:
    """(microbatch, chunk): a group goes through the first chunk, then through the second, and so on."""
    for first in range(0, microbatches, group):
        for chunk in range(chunks):
            for microbatch in range(first, min(first + group, microbatches)):
                yield microbatch, chunk


def passes(microbatches: int, warmup: int, chunks: int = 1, group: int = 1) -> list[Pass]:
    """`warmup` forward passes, then one forward and one backward by turns, then the backward passes that are left. They
    go through the chunks from the last to the first."""
    order = list(forward_passes(microbatches, chunks, max(group, 1)))
    forward = [Pass(Kind.FORWARD, microbatch, chunk) for microbatch, chunk in order]
    backward = [Pass(Kind.BACKWARD, microbatch, chunks - 1 - chunk) for microbatch, chunk in order]
    lead = min(warmup, len(order))
    steady = [step for pair in zip(forward[lead:], backward) for step in pair]
    return forward[:lead] + steady + backward[len(order) - lead:]
