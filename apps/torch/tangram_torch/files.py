"""Files in the memory of the process: what is read of a tensor is loaded, and no more."""

from __future__ import annotations

import math
import mmap
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Union

import torch
from torch import Tensor

from .launch_plan import PlanError

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
