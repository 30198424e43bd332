"""Files in the memory of the process: what is read of a tensor is loaded, and no more."""

from __future__ import annotations

import ast
import math
import mmap
import struct
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Union

import torch
from torch import Tensor

from .errors import PlanError

PathLike = Union[str, Path]


def bytes_of(dtype: torch.dtype, shape: Sequence[int]) -> int:
    return math.prod(shape) * torch.empty(0, dtype=dtype).element_size()


def mapped(path: PathLike, writes: bool = False) -> mmap.mmap:
    """A file that is not empty."""
    try:
        with open(path, "r+b" if writes else "rb") as file:
            return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_WRITE if writes else mmap.ACCESS_READ)
    except ValueError as reason:
        raise PlanError(f"{path} is empty") from reason
    except OSError as reason:
        raise PlanError(f"{path} cannot be read: {reason.strerror}") from reason


def tensor_at(memory: mmap.mmap, dtype: torch.dtype, shape: Sequence[int], offset: int) -> Tensor:
    """Shares the memory: it must not be written to unless the file is mapped for writes."""
    count = math.prod(shape)
    if count == 0:
        return torch.empty(tuple(shape), dtype=dtype)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*buffer is not writable.*")
        return torch.frombuffer(memory, dtype=dtype, count=count, offset=offset).view(tuple(shape))


NPY_MAGIC = b"\x93NUMPY"


class Npy:
    """The header of a .npy file: https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html"""

    def __init__(self, path: str, memory: mmap.mmap) -> None:
        if memory[:6] != NPY_MAGIC or len(memory) < 12:
            raise PlanError(f"{path} is not a .npy file: it does not begin with {NPY_MAGIC!r}")
        start, width = (10, "<H") if memory[6] == 1 else (12, "<I")
        self.path = path
        self.memory = memory
        self.first: int = start + struct.unpack(width, memory[8:start])[0]  # byte of the elements
        try:
            header = ast.literal_eval(memory[start:self.first].decode("utf-8").strip())
            self.kind: str = header["descr"]
            self.shape: tuple[int, ...] = tuple(header["shape"])
            self.columns_first = bool(header["fortran_order"])
        except (ValueError, SyntaxError, KeyError, TypeError) as reason:
            raise PlanError(f"{path} has no header of a .npy file: {reason}") from reason

    def require_whole(self, width: int) -> None:
        """`width`: bytes of an element."""
        if len(self.memory) != self.first + width * math.prod(self.shape):
            raise PlanError(f"{self.path} is cut off: it has {len(self.memory)} bytes for {math.prod(self.shape)} elements "
                            f"of {width}")
