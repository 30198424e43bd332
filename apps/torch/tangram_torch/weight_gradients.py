"""Weight gradients of a block's linear layers, worked out behind the gradients of their inputs (zero bubble, arXiv
2401.10241, section 2): what a layer read and the gradient of what it gave are kept until then.

Biases, norms, and the weights of embedding and head, whose gradients are as large as the vocabulary, are not put off.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Optional

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.autograd import Function


@dataclass
class _Product:
    weight: Tensor
    read: Tensor
    gradient: Tensor  # of what the layer gave


@dataclass
class PutOff:
    """Of one pass through a layer."""

    products: list[_Product] = field(default_factory=list)
    beside: list[tuple[Tensor, Tensor]] = field(default_factory=list)  # weights, and gradients that wait with them

    @torch.no_grad()
    def work_out(self) -> None:
        """Leaves the gradients at the weights, and lets go of what was kept for them."""
        for weight, gradient in self.beside:
            weight.grad = gradient
        self.beside = []
        while self.products:
            product = self.products.pop()
            rows = product.gradient.flatten(0, -2)
            gradient = rows.t() @ product.read.flatten(0, -2)
            weight = product.weight
            weight.grad = gradient if weight.grad is None else weight.grad + gradient


class Later:
    """Where linear layers leave their products while somebody takes them."""

    def __init__(self) -> None:
        self.open: Optional[PutOff] = None

    def collect(self) -> PutOff:
        """What the backward passes that follow put off."""
        self.open = PutOff()
        return self.open


class _Linear(Function):
    @staticmethod
    def forward(ctx: Any, *arguments: Any, **_: Any) -> Tensor:
        x, weight, bias, ctx.later = arguments
        ctx.weight, ctx.has_bias = weight, bias is not None
        ctx.save_for_backward(x)
        return F.linear(x, weight, bias)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Optional[Tensor], ...]:
        gradient, (x,) = gradients[0], ctx.saved_tensors
        ctx.later.open.products.append(_Product(ctx.weight, x, gradient))
        of_bias = gradient.flatten(0, -2).sum(0) if ctx.has_bias else None
        return gradient @ ctx.weight if ctx.needs_input_grad[0] else None, None, of_bias, None


class Weights(Mapping[str, Tensor]):
    """Weights of a layer by the end of their names, and its products with them."""

    def __init__(self, tensors: Mapping[str, Tensor], later: Optional[Later] = None) -> None:
        self._tensors = tensors
        self._later = later  # None: gradients are not put off

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
        """Of a matrix, and of a bias where the layer has one of this name."""
        weight, added = self._tensors[name], None if bias is None else self._tensors.get(bias)
        if not self.puts_off_gradients:
            return F.linear(x, weight, added)
        return _Linear.apply(x, weight, added, self._later)
