"""Where the model begins and ends: tables over the vocabulary, split over tp, and the loss."""

from __future__ import annotations

from typing import Optional

import torch
import torch.nn.functional as F
from torch import Tensor

from .launch_plan import Model
from .layers import cap, norm
from .parallel import Parallel
from .topology import piece
from .weight_gradients import Weights
from .weights import TOKENS

ROWS_QUANTUM = 8  # of half precision: matrix units load 16 bytes at a time


def embed(p: Parallel, model: Model, w: Weights, tokens: Tensor) -> Tensor:
    """Of (samples, positions of the context range)."""
    table = w[TOKENS]
    held = piece(model.vocabulary, p.place.tp, p.place.degrees.tp)
    inside = (tokens >= held.start) & (tokens < held.stop)
    rows = F.embedding((tokens - held.start).where(inside, torch.zeros_like(tokens)), table)
    x = p.leave(rows * inside.unsqueeze(-1).to(rows.dtype)) * model.details.embedding_scale
    if model.embedding_projection:
        x = w.linear(x, "embedding.projection")
    if model.learned_positions:
        own, offset = p.local_range, model.details.position_offset
        x = x + w["embedding.positions"][own.start + offset:own.stop + offset]
    return x


def head_loss(p: Parallel, model: Model, w: Weights, x: Tensor, targets: Tensor,
              counted: Optional[Tensor] = None) -> Tensor:
    """The sum over the tokens of the context range that count, the same on all ranks of a tensor group."""
    if model.final_norm:
        x = norm(model.details, w, "head.norm", x)
    if model.embedding_projection:
        x = w.linear(x, "head.projection")
    logits = _logits(p.enter(x), w, TOKENS if model.tied else "head.output")
    if logits.dtype in (torch.float16, torch.bfloat16):
        logits = logits.float()
    logits = cap(logits, model.details.logit_cap)
    losses = cross_entropy(p, model.vocabulary, logits, targets)
    return (losses if counted is None else losses * counted).sum()


def _logits(x: Tensor, w: Weights, name: str) -> Tensor:
    """Products with the table. Its rows are padded first, as Megatron-LM pads the vocabulary (make_vocab_size_divisible_by):
    of GPT-2's 50,257 tokens the product would take twice as long on a GPU."""
    columns = w[name].shape[0]
    padding = -columns % ROWS_QUANTUM
    if not padding:
        return w.linear(x, name)
    return F.linear(x, F.pad(w[name], (0, 0, 0, padding)))[..., :columns]


def cross_entropy(p: Parallel, vocabulary: int, logits: Tensor, targets: Tensor) -> Tensor:
    """Of each token, from logits of the rank's piece of the vocabulary: log sum exp z - z_target."""
    if logits.numel() == 0:
        return logits.sum(-1)
    if p.tensor.size == 1:
        return F.cross_entropy(logits.flatten(0, -2), targets.flatten(), reduction="none").view_as(targets)
    held = piece(vocabulary, p.place.tp, p.place.degrees.tp)
    highest = logits.detach().amax(-1)
    p.tensor.all_reduce(highest, highest=True)
    shifted = logits - highest.unsqueeze(-1)
    total = p.sum_of_tensor(shifted.exp().sum(-1))
    inside = (targets >= held.start) & (targets < held.stop)
    index = (targets - held.start).where(inside, torch.zeros_like(targets))
    own = shifted.gather(-1, index.unsqueeze(-1)).squeeze(-1) * inside.to(shifted.dtype)
    return total.log() - p.sum_of_tensor(own)
