"""Weight gradients of linear layers. Their products add to the sum over microbatches by themselves where a kernel can, as
Megatron-LM's gradient accumulation fusion does: else each is written, read, and added by a kernel of its own.

Under zero bubble (arXiv 2401.10241, section 2) they are worked out behind the gradients of their inputs: what a layer
read and the gradient of what it gave are kept until then. Biases, norms, and the weights of embedding and head, whose
gradients are as large as the vocabulary, are not put off.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Optional

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.autograd import Function

from .nf4 import Quantized
from .weights import ADAPTER_IN, ADAPTER_OUT


SumOf = Callable[[], Tensor]  # of a weight's gradient over the microbatches so far

# Values of a weight from which its products add by themselves. On an H200 a sum of so many takes 35 us, which such a
# product saves; the host needs 120 us more for it, and where weights are smaller the host is what a GPU waits for.
FEWEST_VALUES = 1 << 23


@lru_cache(maxsize=None)
def products_add(values: torch.dtype, sums: torch.dtype, device: torch.device) -> bool:
    """Whether a product of `values` can add to `sums`. To wider ones, on GPUs from PyTorch 2.8 on."""
    if values is sums:
        return True
    if device.type != "cuda":
        return False
    factor = torch.zeros((16, 16), dtype=values, device=device)
    try:
        _add_product(torch.zeros((16, 16), dtype=sums, device=device), factor, factor)
    except (TypeError, RuntimeError):
        return False
    return True


def _add_product(total: Tensor, left: Tensor, right: Tensor) -> None:
    if total.dtype is left.dtype:
        total.addmm_(left, right)
    else:
        addmm: Any = torch.addmm
        addmm(total, left, right, total.dtype, out=total)


@dataclass(frozen=True)
class _Product:
    """The gradient of a weight, not worked out yet."""

    weight: Tensor
    sum_of: Optional[SumOf]
    read: Tensor
    gradient: Tensor  # of what the layer gave

    @torch.no_grad()
    def work_out(self) -> None:
        """Adds it to the sum, or leaves it at the weight."""
        left, right = self.gradient.flatten(0, -2).t(), self.read.flatten(0, -2)
        if self.sum_of is not None:
            _add_product(self.sum_of(), left, right)
            return
        gradient = left @ right
        self.weight.grad = gradient if self.weight.grad is None else self.weight.grad + gradient


@dataclass
class PutOff:
    """Of one pass through a layer."""

    products: list[_Product] = field(default_factory=list)
    beside: list[tuple[Tensor, Tensor]] = field(default_factory=list)  # weights, and gradients that wait with them

    def work_out(self) -> None:
        """Adds the gradients or leaves them at the weights, and lets go of what was kept for them."""
        for weight, gradient in self.beside:
            weight.grad = gradient
        self.beside = []
        while self.products:
            self.products.pop().work_out()


class Later:
    """Where linear layers leave their products while somebody takes them."""

    def __init__(self) -> None:
        self.open: Optional[PutOff] = None

    def collect(self) -> PutOff:
        """What the backward passes that follow put off."""
        self.open = PutOff()
        return self.open


class _Linear(Function):
    """A linear layer whose weight gradient does not go through autograd."""

    @staticmethod
    def forward(ctx: Any, *arguments: Any, **_: Any) -> Tensor:
        x, weight, bias, ctx.sum_of, ctx.later = arguments
        ctx.weight, ctx.has_bias = weight, bias is not None
        ctx.save_for_backward(x)
        return F.linear(x, weight, bias)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Optional[Tensor], ...]:
        gradient, (x,) = gradients[0], ctx.saved_tensors
        product = _Product(ctx.weight, ctx.sum_of, x, gradient)
        if ctx.later is None:
            product.work_out()
        else:
            ctx.later.open.products.append(product)
        of_bias = gradient.flatten(0, -2).sum(0) if ctx.has_bias else None
        return gradient @ ctx.weight if ctx.needs_input_grad[0] else None, None, of_bias, None, None


class _QuantizedLinear(Function):
    """A linear layer whose frozen matrix is made of 4 bits before each product, and let go behind it."""

    @staticmethod
    def forward(ctx: Any, *arguments: Any, **_: Any) -> Tensor:
        x, ctx.weight, bias = arguments
        return F.linear(x, ctx.weight.widened(x.dtype), bias)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Optional[Tensor], ...]:
        gradient = gradients[0]
        return gradient @ ctx.weight.widened(gradient.dtype) if ctx.needs_input_grad[0] else None, None, None


class Weights(Mapping[str, Tensor]):
    """Weights of a layer by the end of their names, and its products with them. Those in 4 bits are in products alone."""

    def __init__(self, tensors: Mapping[str, Tensor], sums: Optional[Mapping[str, SumOf]] = None,
                 later: Optional[Later] = None, scale: float = 1.0) -> None:
        self._tensors = tensors
        self._sums = sums or {}  # of what products may add to
        self._later = later  # None: gradients are not put off
        self._scale = scale  # of what adapters give

    def __getitem__(self, name: str) -> Tensor:
        return self._tensors[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._tensors)

    def __len__(self) -> int:
        return len(self._tensors)

    @property
    def puts_off_gradients(self) -> bool:
        return self._later is not None and torch.is_grad_enabled()

    def linear(self, x: Tensor, name: str, bias: Optional[str] = None) -> Tensor:
        """Of a matrix, and of a bias where the layer has one of this name; with an adapter beside the matrix what it
        gives, too."""
        out = self._linear(x, name, bias)
        if name + ADAPTER_IN not in self._tensors:
            return out
        narrow = self._linear(x, name + ADAPTER_IN, None)
        return out + self._scale * self._linear(narrow, name + ADAPTER_OUT, None)

    def _linear(self, x: Tensor, name: str, bias: Optional[str]) -> Tensor:
        weight, added = self._tensors[name], None if bias is None else self._tensors.get(bias)
        if isinstance(weight, Quantized):
            return _QuantizedLinear.apply(x, weight, added)
        sum_of = self._sums.get(name)
        if not torch.is_grad_enabled() or (sum_of is None and self._later is None):
            return F.linear(x, weight, added)
        return _Linear.apply(x, weight, added, sum_of, self._later)
