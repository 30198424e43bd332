"""Items of multimodal samples: made up, or .npy files of what encoders read of their tokens, whose places are runs of a
token in the token file.

A file has the shape (items, tokens of an item, values of a token). The k-th run of an encoder's token in the row of all
tokens, as long as the tokens that come out of its connector, is the place of its k-th item. Items that the end of a sample
cuts are left out there.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, Union

import torch
from torch import Tensor

from .data import TokenFile
from .encoders import Encoder
from .errors import PlanError
from .files import Npy, mapped, tensor_at
from .samples import Placed
from .synthetic import Synthetic

FLOATS = {"f2": torch.float16, "f4": torch.float32, "f8": torch.float64}
SCANNED = 1 << 24  # tokens at once


class ItemSource(Protocol):
    iteration: int

    def of_sample(self, encoder: Encoder, sample: int) -> list[Placed]: ...

    def patches(self, encoder: Encoder, sample: int, item: Placed) -> Tensor:
        """(tokens of an item, values of a token)."""


class ReadSamples:
    """Tokens, and items of encoders: samples of the iteration at work."""

    def __init__(self, tokens: Union[Synthetic, TokenFile], items: ItemSource) -> None:
        self._tokens = tokens
        self._items = items
        self.iteration = 0

    def tokens(self, samples: range, length: int) -> Tensor:
        self._tokens.iteration = self.iteration
        return self._tokens.tokens(samples, length)

    def items(self, encoder: Encoder, samples: range) -> list[list[Placed]]:
        self._items.iteration = self.iteration
        return [self._items.of_sample(encoder, sample) for sample in samples]

    def patches(self, encoder: Encoder, samples: range) -> Tensor:
        found = [self._items.patches(encoder, sample, item)
                 for sample, of_sample in zip(samples, self.items(encoder, samples)) for item in of_sample]
        return torch.stack(found) if found else torch.empty((0, encoder.tokens_in, encoder.values))


class SyntheticItems:
    """As many as the model file says in the mean, of normal values, anywhere behind a sample's first token."""

    def __init__(self, encoders: tuple[Encoder, ...], length: int, seed: int) -> None:
        self.iteration = 0
        self._encoders = encoders
        self._length = length
        self._seed = seed

    def of_sample(self, encoder: Encoder, sample: int) -> list[Placed]:
        generator = self._generator(sample, 0)
        wanted = [e for e in self._encoders for _ in range(_count(e, generator))]
        order = [wanted[i] for i in torch.randperm(len(wanted), generator=generator).tolist()]
        while sum(e.tokens_out for e in order) >= self._length:
            order.pop()
        free = self._length - 1 - sum(e.tokens_out for e in order)
        gaps = sorted(torch.randint(free + 1, (len(order),), generator=generator).tolist())
        placed, before = [], 1
        for number, (e, gap) in enumerate(zip(order, gaps)):
            if e is encoder:
                placed.append(Placed(number, before + gap))
            before += e.tokens_out
        return placed

    def patches(self, encoder: Encoder, sample: int, item: Placed) -> Tensor:
        return torch.randn((encoder.tokens_in, encoder.values), generator=self._generator(sample, 1 + item.number))

    def _generator(self, sample: int, what: int) -> torch.Generator:
        return torch.Generator().manual_seed(hash((self._seed, self.iteration, sample, what)) % (1 << 63))


def _count(encoder: Encoder, generator: torch.Generator) -> int:
    """Those with any have more than the mean, by as much as others have none."""
    counts = encoder.counts
    some, share = map(float, torch.rand(2, generator=generator))
    if some < counts.none:
        return 0
    mean = counts.mean / max(1 - counts.none, 1e-9)
    count = int(mean) + (share < mean % 1)
    return min(count, counts.most) if counts.most else count


@dataclass
class _File:
    path: str
    values: Tensor  # (items, tokens, values)
    starts: Tensor  # of the items' places in the row of tokens


class FileItems:
    """`wanted`: of encoders by name, a file and the token of its places. Others have no items."""

    def __init__(self, encoders: tuple[Encoder, ...], tokens: TokenFile, length: int,
                 wanted: dict[str, tuple[str, int]]) -> None:
        self.iteration = 0
        self._tokens = tokens
        self._length = length
        self._files = {e.name: _open(e, tokens, *wanted[e.name]) for e in encoders if e.name in wanted}

    def of_sample(self, encoder: Encoder, sample: int) -> list[Placed]:
        file = self._files.get(encoder.name)
        if file is None:
            return []
        self._tokens.iteration = self.iteration
        window = self._tokens.first_of(sample, self._length + 1)
        last = window + self._length - encoder.tokens_out
        ends = torch.searchsorted(file.starts, torch.tensor([window, last + 1])).tolist()
        return [Placed(number, int(file.starts[number]) - window) for number in range(*ends)]

    def patches(self, encoder: Encoder, sample: int, item: Placed) -> Tensor:
        return self._files[encoder.name].values[item.number].float()


def _open(encoder: Encoder, tokens: TokenFile, path: str, token: int) -> _File:
    npy = Npy(path, mapped(path))
    if npy.kind[0] not in "<|" or npy.kind[1:] not in FLOATS or npy.columns_first:
        raise PlanError(f"{path} has elements of type {npy.kind}, not floats in little-endian order, row by row: save it "
                        'with numpy.ascontiguousarray(x, "<f4")')
    if len(npy.shape) != 3 or npy.shape[1] != encoder.tokens_in or not encoder.can_read(npy.shape[2]):
        raise PlanError(f"{path} has the shape {npy.shape}, not (items, {encoder.tokens_in}, {encoder.values}), as "
                        f"{encoder.name} reads {encoder.values} values of each of {encoder.tokens_in} tokens of an item")
    npy.require_whole(int(npy.kind[2:]))
    values = tensor_at(npy.memory, FLOATS[npy.kind[1:]], npy.shape, npy.first)
    starts = _starts(encoder, tokens, path, token)
    if len(starts) != len(values):
        raise PlanError(f"{path} has {len(values)} items, and {tokens.path} places for {len(starts)}: runs of token {token}")
    return _File(path, values, starts)


def _starts(encoder: Encoder, tokens: TokenFile, path: str, token: int) -> Tensor:
    """Where the runs of a token begin."""
    found = [first + (tokens.read(first, SCANNED) == token).nonzero().flatten()
             for first in range(0, tokens.count, SCANNED)]
    places, length = torch.cat(found), encoder.tokens_out
    runs = places[:len(places) // length * length].view(-1, length)
    broken = (runs[:, -1] - runs[:, 0] != length - 1).nonzero().flatten().tolist()
    if len(places) % length or broken:
        at = int(runs[broken[0], 0]) if broken else int(places[-1])
        raise PlanError(f"{tokens.path}: token {token} at {at} is not in a run of {length}, as many as {encoder.name} makes "
                        "of an item")
    return runs[:, 0].contiguous()
