"""Matrices in 4 bits: NF4, 16 levels at the quantiles of a normal distribution, and a scale of 64 values (QLoRA,
arXiv 2305.14314, section 3 and appendix E).

A matrix (rows, columns) becomes bytes: two values in each, row by row, rows filled up to whole blocks of 64 values; then
the scales. These are in fp32, or with double quantization in 8 bits each: what they have above their least, in 255 steps,
256 of them sharing step and least in fp32.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

LEVELS = (-1.0, -0.6961928009986877, -0.5250730514526367, -0.39491748809814453, -0.28444138169288635,
          -0.18477343022823334, -0.09105003625154495, 0.0, 0.07958029955625534, 0.16093020141124725,
          0.24611230194568634, 0.33791524171829224, 0.44070982933044434, 0.5626170039176941, 0.7229568362236023, 1.0)
BLOCK = 64  # values of a scale
SCALES = 256  # scales that are quantized together
AT_ONCE = 1 << 16  # blocks that are widened at a time: what that needs beside the matrix is 80 MB


@dataclass(frozen=True)
class Layout:
    """Where the bytes of a matrix lie."""

    rows: int
    columns: int
    double: bool

    @property
    def blocks(self) -> int:
        return self.rows * -(-self.columns // BLOCK)

    @property
    def codes(self) -> int:
        return self.blocks * BLOCK // 2

    @property
    def groups(self) -> int:
        return -(-self.blocks // SCALES)

    @property
    def bytes(self) -> int:
        return self.codes + (-(-self.blocks // 4) * 4 + 8 * self.groups if self.double else 4 * self.blocks)


def quantized(matrix: Tensor, double: bool) -> Tensor:
    """The bytes of a matrix."""
    layout = Layout(matrix.shape[0], matrix.shape[1], double)
    wide = matrix.to(torch.float32)
    filled = torch.nn.functional.pad(wide, (0, -wide.shape[1] % BLOCK)).reshape(layout.blocks, BLOCK)
    largest = filled.abs().amax(1)
    scales = _scale_bytes(largest, layout)
    # By the scales that will be read again.
    held = _scales(scales, layout).clamp_min(torch.finfo(torch.float32).tiny)
    bounds = torch.tensor([(a + b) / 2 for a, b in zip(LEVELS, LEVELS[1:])], dtype=torch.float32, device=matrix.device)
    codes = torch.bucketize(filled / held[:, None], bounds).to(torch.uint8).reshape(-1, 2)
    return torch.cat((codes[:, 0] << 4 | codes[:, 1], scales))


def dequantized(data: Tensor, layout: Layout, dtype: torch.dtype) -> Tensor:
    """The matrix that bytes stand for."""
    levels = torch.tensor(LEVELS, dtype=torch.float32, device=data.device)
    scales = _scales(data[layout.codes:layout.bytes], layout)
    values = torch.empty((layout.blocks, BLOCK), dtype=dtype, device=data.device)
    packed = data[:layout.codes].view(layout.blocks, BLOCK // 2)
    for first in range(0, layout.blocks, AT_ONCE):
        some = packed[first:first + AT_ONCE]
        codes = torch.stack((some >> 4, some & 15), 2).reshape(-1, BLOCK).to(torch.int64)
        values[first:first + AT_ONCE] = levels[codes] * scales[first:first + AT_ONCE, None]
    return values.view(layout.rows, -1)[:, :layout.columns]


def _scale_bytes(scales: Tensor, layout: Layout) -> Tensor:
    if not layout.double:
        return scales.contiguous().view(torch.uint8)
    padding = layout.groups * SCALES - layout.blocks
    groups = torch.cat((scales, scales[-1:].expand(padding))).reshape(layout.groups, SCALES)
    least = groups.amin(1)
    step = (groups.amax(1) - least) / 255
    steps = ((groups - least[:, None]) / step.clamp_min(torch.finfo(torch.float32).tiny)[:, None]).round()
    narrow = steps.clamp(0, 255).to(torch.uint8).reshape(-1)[:layout.blocks]
    narrow = torch.nn.functional.pad(narrow, (0, -layout.blocks % 4))
    return torch.cat((torch.cat((least, step)).contiguous().view(torch.uint8), narrow))


def _scales(data: Tensor, layout: Layout) -> Tensor:
    if not layout.double:
        return data.clone().view(torch.float32)
    least, step = data[:8 * layout.groups].clone().view(torch.float32).split(layout.groups)
    narrow = data[8 * layout.groups:8 * layout.groups + layout.blocks].to(torch.float32)
    group = torch.arange(layout.blocks, device=data.device) // SCALES
    return least[group] + step[group] * narrow


class Quantized:
    """A frozen matrix that is held in 4 bits. `data` is where its bytes lie, or will once they are gathered."""

    def __init__(self, data: Tensor, layout: Layout) -> None:
        self._data, self._layout = data, layout

    @property
    def shape(self) -> tuple[int, int]:
        return self._layout.rows, self._layout.columns

    @property
    def device(self) -> torch.device:
        return self._data.device

    def widened(self, dtype: torch.dtype) -> Tensor:
        return dequantized(self._data, self._layout, dtype)
