"""Files of the safetensors format: the length of a header in 8 bytes, the header as JSON, tensors one after another.

https://huggingface.co/docs/safetensors describes it.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from .errors import PlanError
from .files import PathLike, bytes_of, mapped, tensor_at

DTYPES = {"F64": torch.float64, "F32": torch.float32, "F16": torch.float16, "BF16": torch.bfloat16}
NAMES = {dtype: name for name, dtype in DTYPES.items()}
LONGEST_HEADER = 100_000_000  # bytes; what the format allows


class File:
    """The tensors of a file, mapped."""

    def __init__(self, path: PathLike, writes: bool = False) -> None:
        self.path = path
        self._memory = mapped(path, writes)
        size = len(self._memory)
        length = struct.unpack("<Q", self._memory[:8])[0] if size >= 8 else 0
        if not 2 <= length <= min(size - 8, LONGEST_HEADER):
            raise self._error(f"its first 8 bytes say that a header of {length} bytes follows, in a file of {size}")
        self._data = 8 + length
        self._entries = self._header(self._memory[8:self._data])
        for name, entry in self._entries.items():
            self._check(name, entry, size - self._data)

    @property
    def names(self) -> Collection[str]:
        return self._entries.keys()

    def shape(self, name: str) -> tuple[int, ...]:
        return tuple(self._entries[name]["shape"])

    def tensor(self, name: str) -> Tensor:
        """Nothing of it is read before it is used."""
        entry = self._entries[name]
        if entry["dtype"] not in DTYPES:
            raise PlanError(f"{self.path}: tensor {name} is of type {entry['dtype']}, which is not supported: "
                            f"{', '.join(DTYPES)} are")
        return tensor_at(self._memory, DTYPES[entry["dtype"]], entry["shape"], self._data + entry["data_offsets"][0])

    def flush(self) -> None:
        """To the disk."""
        self._memory.flush()

    def _error(self, what: str) -> PlanError:
        return PlanError(f"{self.path} is not a whole safetensors file: {what}")

    def _header(self, text: bytes) -> dict[str, Any]:
        try:
            header = json.loads(text)
        except ValueError as reason:
            raise self._error(f"its header is not JSON ({reason})") from reason
        if not isinstance(header, dict):
            raise self._error("its header is not a JSON object")
        header.pop("__metadata__", None)
        return header

    def _check(self, name: str, entry: Any, size: int) -> None:
        try:
            shape, (first, last) = entry["shape"], entry["data_offsets"]
            numbers = [*shape, first, last]
            well_formed = isinstance(entry["dtype"], str) and all(type(n) is int and n >= 0 for n in numbers)
        except (KeyError, TypeError, ValueError):
            well_formed = False
        if not well_formed:
            raise self._error(f"tensor {name} has no dtype, shape or data_offsets")
        if not first <= last <= size:
            raise self._error(f"tensor {name} lies at bytes {first} to {last} of {size}: is the download complete?")
        if entry["dtype"] in DTYPES and last - first != bytes_of(DTYPES[entry["dtype"]], shape):
            raise self._error(f"tensor {name} of type {entry['dtype']} and shape {shape} has {last - first} bytes")


Layout = tuple[torch.dtype, Sequence[int]]  # type and shape


def create(path: PathLike, layouts: Mapping[str, Layout]) -> File:
    """A file of zeros, to be filled through its tensors."""
    header: dict[str, Any] = {"__metadata__": {"format": "pt"}}
    end = 0
    for name, (dtype, shape) in layouts.items():
        first, end = end, end + bytes_of(dtype, shape)
        header[name] = {"dtype": NAMES[dtype], "shape": list(shape), "data_offsets": [first, end]}
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)  # tensors begin at multiples of 8
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        file.truncate(8 + len(text) + end)
    return File(path, writes=True)
