"""Token files as a source of samples: pairs of Megatron-LM (PREFIX.bin and PREFIX.idx) and .npy, mapped.

A file is one row of tokens; documents of a pair follow each other. Window k is the tokens from k (length - 1) on. Every
epoch visits each window once, in an order of its own. It comes from a Feistel permutation, of which any place can be
worked out alone: a table of all windows would take 8 bytes each on every rank.
"""

from __future__ import annotations

import hashlib
import struct
from dataclasses import dataclass
from mmap import mmap
from pathlib import Path

import torch
from torch import Tensor

from .errors import PlanError
from .files import Npy, mapped, tensor_at

PAIR_MAGIC = b"MMIDIDX\x00\x00"
PAIR_HEADER = struct.Struct("<9sQBQQ")  # magic, version, type of tokens, sequences, ends of documents
PAIR_TYPES = {1: "u1", 2: "i1", 3: "i2", 4: "i4", 5: "i8", 8: "u2"}
PAIR_FLOATS = {6: "float64", 7: "float32"}

# Of each type of integers one of the same width that every PyTorch has, and the bits that count of it as int64.
TYPES = {"u1": (torch.uint8, -1), "i1": (torch.int8, -1), "i2": (torch.int16, -1), "i4": (torch.int32, -1),
         "i8": (torch.int64, -1), "u2": (torch.int16, 0xFFFF), "u4": (torch.int32, 0xFFFFFFFF), "u8": (torch.int64, -1)}
ROUNDS = 4  # after which a Feistel permutation looks random (Luby and Rackoff, SIAM J. Comput. 17(2), 1988)


def permuted(place: int, count: int, key: bytes) -> int:
    """The place-th of `count` things in the order of the key: each place has another one."""
    half = max(1, ((count - 1).bit_length() + 1) // 2)
    while True:
        left, right = place >> half, place & ((1 << half) - 1)
        for turn in range(ROUNDS):
            digest = hashlib.blake2b(struct.pack("<BQ", turn, right), key=key, digest_size=8).digest()
            left, right = right, left ^ (int.from_bytes(digest, "little") & ((1 << half) - 1))
        place = left << half | right
        if place < count:  # else on along the cycle, which comes back to a place below `count`
            return place


@dataclass(frozen=True)
class _Row:
    """All tokens of a file."""

    path: str
    mapped: Tensor
    mask: int  # of the bits that count

    def read(self, first: int, count: int) -> Tensor:
        return self.mapped[first:first + count].to(torch.int64) & self.mask


def _row(path: str, memory: mmap, kind: str, first: int, count: int) -> _Row:
    """`kind`: of TYPES; `first`: byte."""
    dtype, mask = TYPES[kind]
    return _Row(path, tensor_at(memory, dtype, (count,), first), mask)


class TokenFile:
    """Samples of the iteration at work by their number in the batch, the same on every rank."""

    def __init__(self, row: _Row, vocabulary: int, batch: int, seed: int) -> None:
        self.iteration = 0
        self._row = row
        self._vocabulary = vocabulary
        self._batch = batch
        self._seed = seed

    @property
    def path(self) -> str:
        return self._row.path

    @property
    def count(self) -> int:
        return len(self._row.mapped)

    def read(self, first: int, count: int) -> Tensor:
        """Of the row of all tokens."""
        return self._row.read(first, count)

    def tokens(self, samples: range, length: int) -> Tensor:
        rows = [self._window(self.first_of(sample, length), length) for sample in samples]
        return torch.stack(rows) if rows else torch.empty((0, length), dtype=torch.int64)

    def first_of(self, sample: int, length: int) -> int:
        """Where a sample begins in the row of all tokens."""
        windows = (self.count - 1) // (length - 1)
        if windows < 1:
            raise PlanError(f"{self.path} has {self.count} tokens, and a sample {length}: give a longer file or a plan "
                            "for shorter sequences")
        epoch, place = divmod(self.iteration * self._batch + sample, windows)
        return permuted(place, windows, f"{self._seed}/{epoch}".encode()) * (length - 1)

    def _window(self, first: int, length: int) -> Tensor:
        tokens = self._row.read(first, length)
        wrong = ((tokens < 0) | (tokens >= self._vocabulary)).nonzero()
        if len(wrong):
            at = int(wrong[0])
            raise PlanError(f"{self._row.path}: token {first + at} is {int(tokens[at])}, the model's vocabulary ends "
                            f"before {self._vocabulary}: tokens have to come from the model's tokenizer")
        return tokens


def open_tokens(path: str, vocabulary: int, batch: int, seed: int) -> TokenFile:
    """A .npy, or a pair by its prefix or by one of its files. `batch`: samples of an iteration."""
    if path.endswith(".npy"):
        row = _open_npy(path)
    else:
        row = _open_pair(path[:-len(".bin")] if path.endswith((".bin", ".idx")) else path)
    return TokenFile(row, vocabulary, batch, seed)


def _need(path: str) -> mmap:
    if not Path(path).exists():
        raise PlanError(f"{path} does not exist: give PREFIX of the files PREFIX.bin and PREFIX.idx that Megatron-LM's "
                        "preprocessing wrote, or a .npy with one row of integers")
    return mapped(path)


def _open_pair(prefix: str) -> _Row:
    index, tokens = _need(prefix + ".idx"), _need(prefix + ".bin")
    if len(index) < PAIR_HEADER.size or index[:len(PAIR_MAGIC)] != PAIR_MAGIC:
        raise PlanError(f"{prefix}.idx is not an index of Megatron-LM: it does not begin with {PAIR_MAGIC!r}")
    _, version, code, sequences, ends = PAIR_HEADER.unpack(index[:PAIR_HEADER.size])
    if version != 1:
        raise PlanError(f"{prefix}.idx has version {version}: 1 is supported")
    if code not in PAIR_TYPES:
        raise PlanError(f"{prefix}.idx: its tokens are of type {PAIR_FLOATS.get(code, code)}, not integers")
    if len(index) < PAIR_HEADER.size + 12 * sequences + 8 * ends:
        raise PlanError(f"{prefix}.idx is cut off: it has {len(index)} bytes, too few for {sequences} sequences")
    lengths = tensor_at(index, torch.int32, (sequences,), PAIR_HEADER.size).to(torch.int64)
    pointers = tensor_at(index, torch.int64, (sequences,), PAIR_HEADER.size + 4 * sequences)
    width, count = int(PAIR_TYPES[code][1]), int(lengths.sum())
    if not torch.equal(pointers, width * (lengths.cumsum(0) - lengths)) or len(tokens) != width * count:
        raise PlanError(f"{prefix}.bin has {len(tokens)} bytes, and {prefix}.idx describes {count} tokens of {width} "
                        "bytes, one after another: they are not a pair")
    return _row(prefix + ".bin", tokens, PAIR_TYPES[code], 0, count)


def _open_npy(path: str) -> _Row:
    npy = Npy(path, _need(path))
    if npy.kind[0] not in "<|" or npy.kind[1:] not in TYPES:
        raise PlanError(f"{path} has elements of type {npy.kind}, not integers in little-endian order: save it with "
                        '.astype("<i4")')
    if len(npy.shape) != 1:
        raise PlanError(f"{path} has the shape {npy.shape}, not one row: save it with .reshape(-1)")
    npy.require_whole(int(npy.kind[2:]))
    return _row(path, npy.memory, npy.kind[1:], npy.first, npy.shape[0])
