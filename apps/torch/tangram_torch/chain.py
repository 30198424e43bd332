"""Layers one behind the other: forward, and backward as far as anything is trained."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Optional

import torch
from torch import Tensor

from .encoders import Stream
from .unit import Layer

Streams = dict[str, Tensor]  # by name
Around = Callable[[Layer], AbstractContextManager[None]]  # of a layer's pass


@dataclass(frozen=True)
class _Pass:
    layer: Layer
    inputs: tuple[Tensor, ...]
    out: Optional[Tensor]  # None: it is worked out again


KeptPasses = list[_Pass]  # of layers that have a backward pass


class Chain:
    def __init__(self, layers: list[Layer], entering: Iterable[Stream] = ()) -> None:
        self.layers = layers
        self._entering = {stream.name: stream.gradients for stream in entering}
        self._find_backward()

    def _find_backward(self) -> None:
        gradients = dict(self._entering)
        for layer in self.layers:
            layer.has_backward = bool(layer.trained) or any(gradients[name] for name in layer.reads)
            gradients[layer.writes] = layer.has_backward

    def forward(self, streams: Streams, around: Around) -> KeptPasses:
        """What leaves is in `streams` then, in place of what entered."""
        kept, gradients = [], dict(self._entering)
        for layer in self.layers:
            inputs = tuple(streams.pop(name).detach().requires_grad_(gradients[name]) for name in layer.reads)
            layer.gather()
            with torch.set_grad_enabled(layer.has_backward and not layer.recompute), around(layer):
                out = layer.run(*inputs)
            layer.release()
            if layer.has_backward:
                kept.append(_Pass(layer, inputs, None if layer.recompute else out))
            streams[layer.writes], gradients[layer.writes] = out, layer.has_backward
        return kept

    @staticmethod
    def backward(kept: KeptPasses, gradients: Streams, around: Around) -> None:
        """From the gradients of what left to those of what entered, where it needs one. Of each layer they are left at its
        weights when `around` is through."""
        while kept:
            done = kept.pop()
            layer, gradient = done.layer, gradients.pop(done.layer.writes)
            layer.gather()
            with around(layer):
                torch.autograd.backward(_run_again(done) if done.out is None else done.out, gradient)
            layer.release()
            for name, x in zip(layer.reads, done.inputs):
                if x.requires_grad:
                    gradients[name] = x.grad if x.grad is not None else torch.zeros_like(x)


def _run_again(done: _Pass) -> Tensor:
    router = done.layer.router
    if router is not None:
        router.counting = False
    with torch.enable_grad():
        out = done.layer.run(*done.inputs)
    if router is not None:
        router.counting = True
    return out
