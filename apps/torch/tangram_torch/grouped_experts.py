"""A rank's experts in one kernel for each of their matrices, where PyTorch and the GPU have it: one kernel for each expert
leaves a GPU waiting for the host where experts are many and small."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Optional

import torch
import torch.nn.functional as F
from torch import Tensor

from .details import Details
from .layers import activated
from .nf4 import Quantized
from .weight_gradients import Weights

ALIGNMENT = 8  # values of bf16 in the 16 bytes that a row must be a multiple of

Product = Callable[..., Tensor]


def grouped_product() -> Optional[Product]:
    """Of rows, sorted by group, with a matrix for each group; `offs`: where each group's rows end (PyTorch 2.8)."""
    product: Any = getattr(F, "grouped_mm", None) or getattr(torch, "_grouped_mm", None)
    return product


def can_group(w: Weights, prefixes: list[str], rows: Tensor) -> bool:
    """The kernels are of bf16 on Hopper and later, of matrices in two bytes, add no biases and give gradients of weights at
    once."""
    if rows.device.type != "cuda" or rows.dtype != torch.bfloat16 or grouped_product() is None:
        return False
    if torch.cuda.get_device_capability(rows.device) < (9, 0) or w.puts_off_gradients or len(prefixes) < 2:
        return False
    if isinstance(w[prefixes[0] + "up"], Quantized):
        return False
    shapes = [w[prefixes[0] + name].shape for name in ("up", "down")]
    return prefixes[0] + "up_bias" not in w and all(size % ALIGNMENT == 0 for shape in shapes for size in shape)


def feed_forwards(d: Details, w: Weights, prefixes: list[str], rows: Tensor, counts: Tensor) -> Tensor:
    """What feed_forward gives for each expert's rows: `rows` are sorted by expert, counts[e] of them are of the e-th."""
    product = grouped_product()
    assert product is not None
    ends = counts.cumsum(0).to(torch.int32)

    def of(x: Tensor, name: str) -> Tensor:
        matrices = torch.stack([w[prefix + name] for prefix in prefixes])
        return product(x, matrices.transpose(-2, -1), offs=ends)

    up = of(rows, "up")
    gate = of(rows, "gate") if prefixes[0] + "gate" in w else None
    return of(activated(d, gate, up), "down")
