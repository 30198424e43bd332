"""The layers of a transformer on a rank's slices of their weights: functions of an activation and of the weights.

`w` gives a weight by the end of its name, `d` what a model file does not say of a layer (details.py).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from typing import Any, Optional

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.autograd import Function
from torch.utils.checkpoint import checkpoint

from .details import Details, Rotary, frequencies
from .launch_plan import Attention, BlockType
from .parallel import Parallel
from .topology import piece
from .weight_gradients import Weights
from .weights import KeyValueHeads, key_value_heads

ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "silu": F.silu, "relu": F.relu, "gelu": F.gelu, "gelu_tanh": lambda x: F.gelu(x, approximate="tanh")}

FUSED: Any = getattr(F, "scaled_dot_product_attention", None)  # from PyTorch 2.0 on
FUSED_RMS_NORM: Any = getattr(F, "rms_norm", None)  # from PyTorch 2.4 on


def norm(d: Details, w: Weights, name: str, x: Tensor, epsilon: Optional[float] = None) -> Tensor:
    weight, bias = w[name + ".weight"], w.get(name + ".bias")
    epsilon = d.epsilon if epsilon is None else epsilon
    if bias is not None:
        return F.layer_norm(x, weight.shape, weight, bias, epsilon)
    if FUSED_RMS_NORM is not None and not d.norm_offset:
        return FUSED_RMS_NORM(x, weight.shape, weight, epsilon)
    wide = x.float() if x.dtype in (torch.float16, torch.bfloat16) else x
    normed = wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + epsilon)
    if d.norm_offset:  # in full precision, as 1 + w is close to 1
        return (normed * (weight.to(wide.dtype) + d.norm_offset)).to(x.dtype)
    return normed.to(x.dtype) * weight


def rotate(rotary: Rotary, x: Tensor, positions: range) -> Tensor:
    """Rotary positions of (samples, positions, heads, width): halves of what turns lie beside each other, and before
    what does not turn."""
    half = int(x.shape[-1] * rotary.fraction) // 2
    turned: Tensor = Turned.apply(x, *waves(rotary, half, positions, x.dtype, x.device))
    return turned


class Turned(Function):
    """Keeps nothing of what it turns: its gradient is turned back."""

    @staticmethod
    def forward(ctx: Any, *arguments: Any, **_: Any) -> Tensor:
        x, ctx.cosine, ctx.sine = arguments
        return turn(x, ctx.cosine, ctx.sine)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Optional[Tensor], ...]:
        return turn(gradients[0], ctx.cosine, -ctx.sine), None, None


def turn(x: Tensor, cosine: Tensor, sine: Tensor) -> Tensor:
    half = cosine.shape[-1]
    first, second = x[..., :half], x[..., half:2 * half]
    out = torch.empty_like(x, memory_format=torch.contiguous_format)
    torch.mul(first, cosine, out=out[..., :half]).addcmul_(second, sine, value=-1)
    torch.mul(second, cosine, out=out[..., half:2 * half]).addcmul_(first, sine)
    out[..., 2 * half:].copy_(x[..., 2 * half:])
    return out


@lru_cache(maxsize=8)
def waves(rotary: Rotary, half: int, positions: range, dtype: torch.dtype,
          device: torch.device) -> tuple[Tensor, Tensor]:
    """Cosines and sines of (1, positions, 1, half), the same for all layers and microbatches."""
    wide = torch.float64 if dtype is torch.float64 else torch.float32
    radians = torch.tensor(frequencies(rotary, 2 * half), dtype=wide, device=device)
    steps = torch.arange(positions.start, positions.stop, dtype=wide, device=device)
    angles = torch.outer(steps, radians)[None, :, None, :]
    cosine, sine = ((rotary.magnitude * wave).to(dtype) for wave in (angles.cos(), angles.sin()))
    return cosine, sine


def attention_mask(queries: range, keys: int, causal: bool, window: int, device: torch.device) -> Tensor:
    """True where a query sees a key."""
    distance = torch.arange(queries.start, queries.stop, device=device)[:, None] - torch.arange(keys, device=device)
    mask = distance >= 0 if causal else torch.ones_like(distance, dtype=torch.bool)
    return mask & (distance.abs() < window) if window else mask


def cap(z: Tensor, limit: float) -> Tensor:
    return limit * torch.tanh(z / limit) if limit else z


def attend(query: Tensor, key: Tensor, value: Tensor, mask: Optional[Tensor], causal: bool, limit: float) -> Tensor:
    """Of (samples, heads, positions, width). Without a mask, every query sees the keys up to its own, or all of them: for
    that PyTorch has its fastest kernels."""
    if mask is None or (FUSED is not None and not limit):
        return FUSED(query, key, value, attn_mask=mask, is_causal=mask is None and causal)
    scores = cap(query @ key.transpose(-1, -2) / math.sqrt(query.shape[-1]), limit)
    return scores.masked_fill(~mask, float("-inf")).softmax(dim=-1) @ value


def attention(p: Parallel, d: Details, block: BlockType, w: Weights, x: Tensor, rotary: bool,
              selective: bool) -> Tensor:
    """The rank's part of the sum over its tensor group. `selective`: scores are worked out anew for the gradient."""
    a = block.attention
    query, key, value, read = (latent_heads if a.latent else heads)(p, d, a, w, x, rotary)
    if p.exchanges_heads:
        query, key, value, read = own_heads(p, query, key, value, read)
    else:
        key, value = p.gather_context(key), p.gather_context(value)
    if d.attention_scale is not None:
        query = query * (d.attention_scale * math.sqrt(query.shape[-1]))
    window = a.sliding_window if a.sliding_window < p.positions else 0
    queries = range(p.positions) if p.exchanges_heads else p.context_range
    whole = len(queries) == p.positions or not block.causal
    plain = FUSED is not None and whole and not window and not d.attention_cap
    mask = None if plain else attention_mask(queries, p.positions, block.causal, window, x.device)
    q, k, v = (t.transpose(1, 2) for t in (query, read_by(read, key), read_by(read, value)))
    if selective:
        out = checkpoint(attend, q, k, v, mask, block.causal, d.attention_cap, use_reentrant=False)
    else:
        out = attend(q, k, v, mask, block.causal, d.attention_cap)
    out = out.transpose(1, 2)
    return w.linear((p.to_positions(out) if p.exchanges_heads else out).flatten(2), "attention.output")


# Queries, keys and values of (samples, positions, heads, width), and which head of keys and values each query head reads.
Heads = tuple[Tensor, Tensor, Tensor, list[int]]


def own_heads(p: Parallel, query: Tensor, key: Tensor, value: Tensor, read: list[int]) -> Heads:
    """All positions of what this rank of cp attends with; too few keys and values for all ranks are repeated."""
    if key.shape[2] % p.context.size:
        key, value, read = read_by(read, key), read_by(read, value), list(range(len(read)))
    query, key, value = p.to_heads(query), p.to_heads(key), p.to_heads(value)
    first = p.context.index * key.shape[2]
    return query, key, value, [read[head] - first for head in piece(len(read), p.context.index, p.context.size)]


def heads(p: Parallel, d: Details, a: Attention, w: Weights, x: Tensor, rotary: bool) -> Heads:
    """Of the rank's share of the tensor group."""

    def project(name: str) -> Tensor:
        return w.linear(x, "attention." + name, f"attention.{name}_bias").unflatten(-1, (-1, a.head_dim))

    query, key, value = project("query"), project("key"), project("value")
    if a.qk_norm:
        query, key = norm(d, w, "attention.query_norm", query), norm(d, w, "attention.key_norm", key)
    if rotary:
        query, key = (rotate(d.rotary, t, p.context_range) for t in (query, key))
    own = piece(a.heads, p.place.tp, p.place.degrees.tp)
    held, _ = key_value_heads(p.place, KeyValueHeads(a.heads, a.kv_heads, a.head_dim))
    read = [head * a.kv_heads // a.heads - held.start for head in own]
    return query, key, value, read


def read_by(read: list[int], x: Tensor) -> Tensor:
    """Of (samples, positions, heads, width), the heads that queries read; each one's gradient is a sum over its queries."""
    held = x.shape[2]
    each = len(read) // held
    if read == list(range(held)):
        return x
    if read == [head // each for head in range(held * each)]:
        return x.unsqueeze(3).expand(-1, -1, -1, each, -1).flatten(2, 3)
    return x.index_select(2, torch.tensor(read, device=x.device))


def latent_heads(p: Parallel, d: Details, a: Attention, w: Weights, x: Tensor, rotary: bool) -> Heads:
    """Multi-head latent attention, arXiv 2405.04434, section 2.1; the rotary part of keys is one for all heads."""
    source = x
    if a.q_lora_rank:
        source = w.linear(x, "attention.query_down", "attention.query_down_bias")
        source = norm(d, w, "attention.query_down_norm", source, d.latent_epsilon)
    query = w.linear(source, "attention.query").unflatten(-1, (-1, a.qk_nope_head_dim + a.qk_rope_head_dim))
    down = w.linear(x, "attention.key_value_down", "attention.key_value_down_bias")
    latent, shared = down.split((a.kv_lora_rank, a.qk_rope_head_dim), dim=-1)
    latent = norm(d, w, "attention.key_value_down_norm", latent, d.latent_epsilon)
    up = w.linear(latent, "attention.key_value_up")
    key, value = up.unflatten(-1, (-1, a.qk_nope_head_dim + a.v_head_dim)).split(
        (a.qk_nope_head_dim, a.v_head_dim), dim=-1)
    plain, turned = query.split((a.qk_nope_head_dim, a.qk_rope_head_dim), dim=-1)
    shared = shared.unsqueeze(2)
    if rotary:
        turned, shared = (rotate(d.rotary, t, p.context_range) for t in (turned, shared))
    key = torch.cat((key, shared.expand(-1, -1, key.shape[2], -1)), dim=-1)
    return torch.cat((plain, turned), dim=-1), key, value, list(range(query.shape[2]))


class Gated(Function):
    """activation(gate) * up, which keeps for its gradient what fused kernels keep: gate and up."""

    @staticmethod
    def forward(ctx: Any, *arguments: Any, **_: Any) -> Tensor:
        gate, up, ctx.activation = arguments
        ctx.save_for_backward(gate, up)
        out: Tensor = ctx.activation(gate) * up
        return out

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Optional[Tensor], ...]:
        gate, up = ctx.saved_tensors
        with torch.enable_grad():
            again = gate.detach().requires_grad_()
            activated = ctx.activation(again)
        of_gate, = torch.autograd.grad(activated, again, gradients[0] * up)
        return of_gate, gradients[0] * activated.detach(), None


def activated(d: Details, gate: Optional[Tensor], up: Tensor) -> Tensor:
    """Between the matrices of a feed-forward; without a gate where it has none."""
    activation = ACTIVATIONS[d.activation or ("gelu_tanh" if gate is None else "silu")]
    inner: Tensor = activation(up) if gate is None else Gated.apply(gate, up, activation)
    return inner


def feed_forward(d: Details, w: Weights, prefix: str, x: Tensor, adds_bias: bool = False) -> Tensor:
    """The rank's part of the sum over the ranks that split it; the last bias is added by one of them at most."""
    up = w.linear(x, prefix + "up", prefix + "up_bias")
    gate = w.linear(x, prefix + "gate", prefix + "gate_bias") if prefix + "gate" in w else None
    return w.linear(activated(d, gate, up), prefix + "down", prefix + "down_bias" if adds_bias else None)


def plus(x: Tensor, bias: Optional[Tensor]) -> Tensor:
    return x if bias is None else x + bias


def run_block(p: Parallel, d: Details, block: BlockType, w: Weights, x: Tensor, rotary: bool, selective: bool,
              experts: Optional[Callable[[Tensor], Tensor]]) -> Tensor:
    """x -> a = x + attention(norm x) -> a + feed-forward(norm a); under parallel attention both read x. Models with
    four norms have one behind each, too (Gemma 2). With norms behind sums: norm(x + attention(x)) (OPT-350M)."""

    def attend_to(narrow: Tensor) -> Tensor:
        wide = p.enter(narrow)
        return plus(p.leave(attention(p, d, block, w, wide, rotary, selective)), w.get("attention.output_bias"))

    if d.norms_behind:
        out = norm(d, w, "attention_norm", x + attend_to(x))
        return norm(d, w, "feed_forward_norm", out + run_feed_forwards(p, d, block, w, out, experts))
    normed = norm(d, w, "attention_norm", x)
    attended = attend_to(normed)
    if block.norms == 4:
        attended = norm(d, w, "attention_post_norm", attended)
    out = x + attended
    narrow = normed
    if block.norms > 1:
        narrow = norm(d, w, "feed_forward_norm", x if block.parallel_attention else out)
    added = run_feed_forwards(p, d, block, w, narrow, experts)
    if block.norms == 4:
        added = norm(d, w, "feed_forward_post_norm", added)
    return out + added


def run_feed_forwards(p: Parallel, d: Details, block: BlockType, w: Weights, narrow: Tensor,
                      experts: Optional[Callable[[Tensor], Tensor]]) -> Tensor:
    """The dense one, the shared experts and the routed ones, as far as the block has them."""
    f = block.feed_forward
    terms = []
    wide = p.enter(narrow) if f.hidden or f.shared_hidden else narrow
    if f.hidden:
        terms.append(plus(p.leave(feed_forward(d, w, "feed_forward.", wide)), w.get("feed_forward.down_bias")))
    if f.shared_hidden:
        shared = plus(p.leave(feed_forward(d, w, "shared.", wide)), w.get("shared.down_bias"))
        terms.append(shared * w.linear(narrow, "shared_gate").sigmoid() if f.shared_gate else shared)
    if experts is not None:
        terms.append(p.from_own_rows(experts(p.to_own_rows(narrow))))
    out = terms[0]
    for term in terms[1:]:
        out = out + term
    return out
