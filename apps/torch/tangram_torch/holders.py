"""Weights that ranks of several parts hold: of unequal pipelines, of mixed stages, tied tables of two stages. Nothing
here needs PyTorch.

Parts may split a weight over unlike tp, so it is cut into pieces each of which a rank holds whole or not at all. The
gradient of a piece is summed over all ranks that hold it.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

from .launch_plan import LaunchPlan, Part
from .topology import Place, Ranks
from .weights import Held, Weight, held_by, units_of


@dataclass(frozen=True)
class Piece:
    name: str
    ranges: tuple[range, ...]  # of the whole weight
    ranks: Ranks  # all that hold it


def shared_pieces(plan: LaunchPlan) -> dict[str, list[Piece]]:
    """By weight, in the order of their ranges: of all weights that lie in one flat tensor with one that several parts
    hold, so that the whole tensor is summed in one way."""
    holders: dict[str, list[tuple[int, Held]]] = defaultdict(list)
    parts: dict[str, set[int]] = defaultdict(set)
    for part in plan.parts:
        places = [Place(rank, part) for rank in part.ranks]
        for weight in (w for w in _weights_of(plan, part) if w.trained):
            parts[weight.name].add(part.first_rank)
            for place in places:
                held = held_by(place, weight)
                if held is not None:
                    holders[weight.name].append((place.rank, held))
    wanted = {name for group in _neighbours(plan) if any(len(parts[name]) > 1 for name in group) for name in group}
    return {name: _pieces(name, holders[name]) for name in sorted(wanted)}


def _weights_of(plan: LaunchPlan, part: Part) -> list[Weight]:
    """The same on all of its ranks."""
    return [weight for unit in units_of(plan, part.first_rank) for weight in unit.weights]


def _neighbours(plan: LaunchPlan) -> list[list[str]]:
    """Names of weights that lie in one flat tensor somewhere."""
    groups = []
    for part in plan.parts:
        for unit in units_of(plan, part.first_rank):
            groups += [[weight.name for weight in weights] for weights, _, _ in unit.flats()]
    return groups


def first_part(plan: LaunchPlan) -> dict[str, int]:
    """The first rank of the first part that holds a weight: it counts the weight where each must be counted once."""
    first: dict[str, int] = {}
    for part in plan.parts:
        for weight in _weights_of(plan, part):
            first[weight.name] = min(first.get(weight.name, part.first_rank), part.first_rank)
    return first


Bucket = tuple[Ranks, list[Piece]]


def buckets_of(pieces: dict[str, list[Piece]]) -> list[Bucket]:
    """Pieces of a block, or of the ends, that the same ranks hold: one sum for all of them. In an order that all ranks
    share."""
    buckets: dict[tuple[tuple[str, int], Ranks], list[Piece]] = defaultdict(list)
    for piece in (piece for of_weight in pieces.values() for piece in of_weight):
        start, number = piece.name.split(".")[:2]
        buckets[(start, int(number)) if start == "blocks" else ("", 0), piece.ranks].append(piece)
    return [(ranks, buckets[place, ranks]) for place, ranks in sorted(buckets)]


def _pieces(name: str, holders: list[tuple[int, Held]]) -> list[Piece]:
    weight = holders[0][1].weight
    split = weight.split
    if split is None:
        return [Piece(name, holders[0][1].ranges, tuple(sorted(rank for rank, _ in holders)))]
    ends = sorted({end for _, held in holders for end in (held.ranges[split].start, held.ranges[split].stop)})
    pieces = []
    for first, last in zip(ends, ends[1:]):
        ranges = list(holders[0][1].ranges)
        ranges[split] = range(first, last)
        ranks = tuple(sorted(rank for rank, held in holders
                             if held.ranges[split].start <= first and last <= held.ranges[split].stop))
        pieces.append(Piece(name, tuple(ranges), ranks))
    return pieces
