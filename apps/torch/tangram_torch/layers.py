"""The layers of a transformer on a rank's slices of their weights: functions of an activation and of the weights.

`w` gives a weight by the end of its name. What a model file does not say of a layer is as the models of its form have
it: SiLU where feed-forwards are gated and GELU (tanh) where not, rotary positions of base 10,000 where none are
learned, 1e-5 under the root of norms, gates of chosen experts that sum up to 1.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Optional

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from .launch_plan import Attention, BlockType
from .parallel import Parallel
from .topology import piece
from .weights import KeyValueHeads, key_value_heads

Weights = Mapping[str, Tensor]

EPSILON = 1e-5
ROTARY_BASE = 10_000.0


def norm(w: Weights, name: str, x: Tensor) -> Tensor:
    weight, bias = w[name + ".weight"], w.get(name + ".bias")
    if bias is not None:
        return F.layer_norm(x, weight.shape, weight, bias, EPSILON)
    wide = x.float() if x.dtype in (torch.float16, torch.bfloat16) else x
    return (wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + EPSILON)).to(x.dtype) * weight


def rotate(x: Tensor, positions: range) -> Tensor:
    """Rotary positions (arXiv 2104.09864) of (samples, positions, heads, width), halves beside each other."""
    half = x.shape[-1] // 2
    wide = torch.float64 if x.dtype is torch.float64 else torch.float32
    exponents = torch.arange(half, dtype=wide, device=x.device) / half
    steps = torch.arange(positions.start, positions.stop, dtype=wide, device=x.device)
    angles = torch.outer(steps, ROTARY_BASE ** -exponents)[None, :, None, :]
    cosine, sine = angles.cos().to(x.dtype), angles.sin().to(x.dtype)
    first, second = x[..., :half], x[..., half:2 * half]
    return torch.cat((first * cosine - second * sine, second * cosine + first * sine), dim=-1)


def causal_mask(queries: range, keys: int, window: int, device: torch.device) -> Tensor:
    """True where a query sees a key."""
    distance = torch.arange(queries.start, queries.stop, device=device)[:, None] - torch.arange(keys, device=device)
    mask = distance >= 0
    return mask & (distance < window) if window else mask


def attend(query: Tensor, key: Tensor, value: Tensor, mask: Tensor) -> Tensor:
    """Of (samples, heads, positions, width)."""
    if hasattr(F, "scaled_dot_product_attention"):  # from PyTorch 2.0 on
        return F.scaled_dot_product_attention(query, key, value, attn_mask=mask)
    scores = query @ key.transpose(-1, -2) / math.sqrt(query.shape[-1])
    return scores.masked_fill(~mask, float("-inf")).softmax(dim=-1) @ value


def attention(p: Parallel, block: BlockType, w: Weights, x: Tensor, rotary: bool, selective: bool) -> Tensor:
    """The rank's part of the sum over its tensor group. `selective`: scores are worked out anew for the gradient."""
    a = block.attention
    query, key, value = (latent_heads if a.latent else heads)(p, a, w, x, rotary)
    mask = causal_mask(p.context_range, p.positions, a.sliding_window, x.device)
    inputs = [t.transpose(1, 2) for t in (query, p.gather_context(key), p.gather_context(value))]
    out = checkpoint(attend, *inputs, mask, use_reentrant=False) if selective else attend(*inputs, mask)
    return F.linear(out.transpose(1, 2).flatten(2), w["attention.output"])


def heads(p: Parallel, a: Attention, w: Weights, x: Tensor, rotary: bool) -> tuple[Tensor, Tensor, Tensor]:
    """Queries, keys and values of the rank's heads, keys and values repeated for queries that share them."""

    def project(name: str) -> Tensor:
        return F.linear(x, w["attention." + name], w.get(f"attention.{name}_bias")).unflatten(-1, (-1, a.head_dim))

    query, key, value = project("query"), project("key"), project("value")
    if a.qk_norm:
        query, key = norm(w, "attention.query_norm", query), norm(w, "attention.key_norm", key)
    if rotary:
        query, key = rotate(query, p.context_range), rotate(key, p.context_range)
    own = piece(a.heads, p.place.tp, p.place.degrees.tp)
    held, _ = key_value_heads(p.place, KeyValueHeads(a.heads, a.kv_heads, a.head_dim))
    read = [head * a.kv_heads // a.heads - held.start for head in own]
    if read != list(range(key.shape[2])):
        index = torch.tensor(read, device=x.device)
        key, value = key.index_select(2, index), value.index_select(2, index)
    return query, key, value


def latent_heads(p: Parallel, a: Attention, w: Weights, x: Tensor, rotary: bool) -> tuple[Tensor, Tensor, Tensor]:
    """Multi-head latent attention, arXiv 2405.04434, section 2.1; the rotary part of keys is one for all heads."""
    source = x
    if a.q_lora_rank:
        source = F.linear(x, w["attention.query_down"], w.get("attention.query_down_bias"))
        source = norm(w, "attention.query_down_norm", source)
    query = F.linear(source, w["attention.query"]).unflatten(-1, (-1, a.qk_nope_head_dim + a.qk_rope_head_dim))
    down = F.linear(x, w["attention.key_value_down"], w.get("attention.key_value_down_bias"))
    latent, shared = down.split((a.kv_lora_rank, a.qk_rope_head_dim), dim=-1)
    up = F.linear(norm(w, "attention.key_value_down_norm", latent), w["attention.key_value_up"])
    key, value = up.unflatten(-1, (-1, a.qk_nope_head_dim + a.v_head_dim)).split(
        (a.qk_nope_head_dim, a.v_head_dim), dim=-1)
    plain, turned = query.split((a.qk_nope_head_dim, a.qk_rope_head_dim), dim=-1)
    shared = shared.unsqueeze(2)
    if rotary:
        turned, shared = rotate(turned, p.context_range), rotate(shared, p.context_range)
    key = torch.cat((key, shared.expand(-1, -1, key.shape[2], -1)), dim=-1)
    return torch.cat((plain, turned), dim=-1), key, value


def feed_forward(w: Weights, prefix: str, x: Tensor, adds_bias: bool = False) -> Tensor:
    """The rank's part of the sum over the ranks that split it; the last bias is added by one of them at most."""
    up = F.linear(x, w[prefix + "up"], w.get(prefix + "up_bias"))
    gate = w.get(prefix + "gate")
    if gate is None:
        inner = F.gelu(up, approximate="tanh")
    else:
        inner = F.silu(F.linear(x, gate, w.get(prefix + "gate_bias"))) * up
    return F.linear(inner, w[prefix + "down"], w.get(prefix + "down_bias") if adds_bias else None)


def plus(x: Tensor, bias: Optional[Tensor]) -> Tensor:
    return x if bias is None else x + bias


def run_block(p: Parallel, block: BlockType, w: Weights, x: Tensor, rotary: bool, selective: bool,
              experts: Optional[Callable[[Tensor], Tensor]]) -> Tensor:
    """x -> a = x + attention(norm x) -> a + feed-forward(norm a); under parallel attention both read x. Models with
    four norms have one behind each, too (Gemma 2)."""
    normed = norm(w, "attention_norm", x)
    wide = p.enter(normed)
    attended = plus(p.leave(attention(p, block, w, wide, rotary, selective)), w.get("attention.output_bias"))
    if block.norms == 4:
        attended = norm(w, "attention_post_norm", attended)
    out = x + attended
    narrow = normed
    if block.norms > 1:
        narrow = norm(w, "feed_forward_norm", x if block.parallel_attention else out)
    added = run_feed_forwards(p, block, w, narrow, experts)
    if block.norms == 4:
        added = norm(w, "feed_forward_post_norm", added)
    return out + added


def run_feed_forwards(p: Parallel, block: BlockType, w: Weights, narrow: Tensor,
                      experts: Optional[Callable[[Tensor], Tensor]]) -> Tensor:
    """The dense one, the shared experts and the routed ones, as far as the block has them."""
    f = block.feed_forward
    terms = []
    wide = p.enter(narrow) if f.hidden or f.shared_hidden else narrow
    if f.hidden:
        terms.append(plus(p.leave(feed_forward(w, "feed_forward.", wide)), w.get("feed_forward.down_bias")))
    if f.shared_hidden:
        shared = plus(p.leave(feed_forward(w, "shared.", wide)), w.get("shared.down_bias"))
        terms.append(shared * F.linear(narrow, w["shared_gate"]).sigmoid() if f.shared_gate else shared)
    if experts is not None:
        terms.append(p.from_own_rows(experts(p.to_own_rows(narrow))))
    out = terms[0]
    for term in terms[1:]:
        out = out + term
    return out
