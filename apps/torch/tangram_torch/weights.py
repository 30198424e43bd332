"""The weights of a model, each with its whole shape, and the slice of it that a rank holds. Nothing here needs PyTorch.

Matrices are (outputs, inputs). Column-parallel matrices are split by rows, row-parallel ones by columns (Megatron-LM,
arXiv 1909.08053, section 3). Key-value heads that are fewer than tp are held by several tp ranks.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import Enum
from typing import Iterator, Optional

from .encoders import Connector, Encoder
from .launch_plan import NOT_QUANTIZED, Adapters, BlockType, FeedForward, LaunchPlan, Model
from .topology import Place, Ranks, piece

TOKENS = "embedding.tokens"
ROUTER_CORRECTION = ".router_correction"
# Of a low-rank adapter, by the name of the matrix that it stands beside: what it multiplies first, and what then.
ADAPTER_IN, ADAPTER_OUT = ".adapter_in", ".adapter_out"
# Matrices by the name that PEFT has for them.
ADAPTED = {"q_proj": ("attention.query",), "k_proj": ("attention.key",), "v_proj": ("attention.value",),
           "o_proj": ("attention.output",), "gate_proj": ("feed_forward.gate", "shared.gate"),
           "up_proj": ("feed_forward.up", "shared.up"), "down_proj": ("feed_forward.down", "shared.down")}


class Sharing(Enum):
    """What ranks that hold the same slice for the same tokens have of its gradient."""

    EQUAL = "equal"  # all of it
    PARTS = "parts"  # each a part: of the heads or the positions it works on
    SEQUENCE = "sequence"  # a part under sequence parallelism, all of it without


@dataclass(frozen=True)
class KeyValueHeads:
    query_heads: int
    heads: int
    width: int


@dataclass(frozen=True)
class Weight:
    name: str
    shape: tuple[int, ...]
    split: Optional[int] = None  # dimension that is split; None: every rank of the group holds all of it
    sharing: Sharing = Sharing.EQUAL
    key_value: Optional[KeyValueHeads] = None  # rows are split by these
    expert: Optional[int] = None  # split over expert-tp, on the ranks of one ep coordinate
    experts: int = 0
    trained: bool = True
    quantization: str = NOT_QUANTIZED  # of a frozen matrix

    @property
    def is_quantized(self) -> bool:
        return self.quantization != NOT_QUANTIZED

    @property
    def of_adapter(self) -> bool:
        return self.name.endswith((ADAPTER_IN, ADAPTER_OUT))

    @property
    def is_vector(self) -> bool:
        return len(self.shape) == 1


@dataclass(frozen=True)
class Held:
    """A rank's slice of a weight."""

    weight: Weight
    ranges: tuple[range, ...]  # of every dimension
    sharers: Ranks  # ranks that hold the same slice and work on the same tokens, this one among them
    sums: bool  # their gradients are parts of a sum; else they are equal

    @property
    def name(self) -> str:
        return self.weight.name

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(len(r) for r in self.ranges)

    @property
    def numel(self) -> int:
        return math.prod(self.shape)


def whole(weight: Weight) -> Held:
    """As a rank has it that holds all of it, and alone."""
    return Held(weight, tuple(range(n) for n in weight.shape), (0,), False)


def held_by(place: Place, weight: Weight) -> Optional[Held]:
    """None: another expert-parallel rank holds it."""
    ranges = [range(n) for n in weight.shape]
    if weight.expert is not None:
        if weight.expert not in piece(weight.experts, place.ep, place.degrees.ep):
            return None
        if weight.split is None:
            return Held(weight, tuple(ranges), place.expert_tensor, True)
        ranges[weight.split] = piece(weight.shape[weight.split], place.etp, place.degrees.etp)
        return Held(weight, tuple(ranges), (place.rank,), False)
    if weight.split is None:
        sums = weight.sharing is Sharing.PARTS or (weight.sharing is Sharing.SEQUENCE and place.sequence_parallel)
        return Held(weight, tuple(ranges), place.tensor, sums)
    if weight.key_value is not None:
        heads, sharers = key_value_heads(place, weight.key_value)
        width = weight.key_value.width
        ranges[weight.split] = range(heads.start * width, heads.stop * width)
        return Held(weight, tuple(ranges), sharers, True)
    ranges[weight.split] = piece(weight.shape[weight.split], place.tp, place.degrees.tp)
    return Held(weight, tuple(ranges), (place.rank,), False)


def key_value_heads(place: Place, heads: KeyValueHeads) -> tuple[range, Ranks]:
    """Those that the rank's query heads read, and the tp ranks that hold them too."""
    tp = place.degrees.tp
    group = heads.query_heads // heads.heads
    queries = piece(heads.query_heads, place.tp, tp)
    sharing = max(1, tp // heads.heads)
    first = place.tp // sharing * sharing
    return range(queries.start // group, (queries.stop - 1) // group + 1), place.tensor[first:first + sharing]


def weights_of_block(model: Model, index: int) -> Iterator[Weight]:
    own = list(_if_trained(model.trains(index), _weights_of_block(model, index)))
    adapters = model.adapters_of(index)
    if adapters is None:
        yield from own
        return
    yield from (_held_as(adapters.base, weight) for weight in own)
    names = {name for target in adapters.targets for name in ADAPTED[target]}
    if model.blocks[index].attention.latent:
        names.discard("attention.query")  # which has two matrices there
    for weight in (weight for weight in own if weight.name.partition(f"blocks.{index}.")[2] in names):
        yield from _adapter(weight, adapters)


def _held_as(quantization: str, weight: Weight) -> Weight:
    """Matrices of linear layers but for routers and gates of shared experts."""
    narrow = not weight.is_vector and not weight.name.endswith((".router", ".shared_gate"))
    return replace(weight, quantization=quantization) if narrow else weight


def _adapter(beside: Weight, adapters: Adapters) -> Iterator[Weight]:
    """Each is split where it meets the side of the matrix that is split. Of the other one ranks have parts of the
    gradient."""
    outputs, inputs = beside.shape
    by_rows = beside.split == 0
    yield Weight(beside.name + ADAPTER_IN, (adapters.rank, inputs), None if by_rows else 1, Sharing.PARTS)
    yield replace(beside, name=beside.name + ADAPTER_OUT, shape=(outputs, adapters.rank), trained=True,
                  split=0 if by_rows else None, sharing=Sharing.PARTS)


def _if_trained(trained: bool, weights: Iterable[Weight]) -> Iterator[Weight]:
    return (weight if trained else replace(weight, trained=False) for weight in weights)


def _weights_of_block(model: Model, index: int) -> Iterator[Weight]:
    block = model.blocks[index]
    hidden, prefix = block.hidden, f"blocks.{index}."
    yield from _norm(prefix + "attention_norm", hidden, block.norm_bias)
    if block.norms == 4:
        yield from _norm(prefix + "attention_post_norm", hidden, block.norm_bias)
        yield from _norm(prefix + "feed_forward_post_norm", hidden, block.norm_bias)
    if block.norms > 1:
        yield from _norm(prefix + "feed_forward_norm", hidden, block.norm_bias)
    if block.attention.latent:
        yield from _latent_attention(prefix + "attention.", hidden, block)
    else:
        yield from _attention(prefix + "attention.", hidden, block)
    yield from _feed_forwards(prefix, hidden, block)


def weights_of_embedding(model: Model) -> Iterator[Weight]:
    yield from _if_trained(model.trained, _weights_of_embedding(model))


def _weights_of_embedding(model: Model) -> Iterator[Weight]:
    width = model.embedding_projection or model.hidden
    yield Weight(TOKENS, (model.vocabulary, width), 0)
    if model.embedding_projection:
        yield Weight("embedding.projection", (model.hidden, width), sharing=Sharing.SEQUENCE)
    if model.learned_positions:
        yield Weight("embedding.positions", (model.learned_positions, model.hidden), sharing=Sharing.SEQUENCE)


def weights_of_head(model: Model) -> Iterator[Weight]:
    yield from _if_trained(model.trained, _weights_of_head(model))


def _weights_of_head(model: Model) -> Iterator[Weight]:
    width = model.embedding_projection or model.hidden
    if model.final_norm:
        yield from _norm("head.norm", model.hidden, model.final_norm_bias)
    if model.embedding_projection:
        yield Weight("head.projection", (width, model.hidden), sharing=Sharing.SEQUENCE)
    yield Weight(TOKENS if model.tied else "head.output", (model.vocabulary, width), 0)


def weights_of_patches(encoder: Encoder) -> Iterator[Weight]:
    """Columns are what its embedding reads of a token, the last of them its position (patches.py)."""
    if encoder.patch_width:
        shape = (encoder.hidden, encoder.patch_width)
        yield Weight(f"encoders.{encoder.name}.patches", shape, 1, trained=encoder.trained)


def weights_of_connector(encoder: Encoder) -> Iterator[Weight]:
    c = encoder.connector
    if c is not None:
        yield from _if_trained(c.trained, _connector(f"encoders.{encoder.name}.connector.", encoder.hidden, c))


def _connector(prefix: str, hidden: int, c: Connector) -> Iterator[Weight]:
    """Layers in pairs: the first split by rows, the second by columns; one without a pair by columns."""
    if c.norm:  # in front of the merge each rank has its positions, behind it the gradient of what it splits
        sharing = Sharing.PARTS if c.norms_merged(hidden) else Sharing.SEQUENCE
        yield from _norm(prefix + "norm", c.norm, c.norm_bias, sharing)
    for layer, (width_in, width_out) in enumerate(zip(c.widths, c.widths[1:])):
        by_rows = c.splits_rows(layer)
        yield Weight(f"{prefix}{layer}", (width_out, width_in), 0 if by_rows else 1)
        if c.bias:
            yield Weight(f"{prefix}{layer}_bias", (width_out,), 0 if by_rows else None, Sharing.SEQUENCE)


def router_correction(index: int, shape: FeedForward) -> Weight:
    """Of a block's router with `router_bias`: not trained, and in no unit."""
    return Weight(f"blocks.{index}{ROUTER_CORRECTION}", (shape.experts,))


def weights_of_model(model: Model) -> Iterator[Weight]:
    """Each once, corrections of routers among them."""
    yield from weights_of_embedding(model)
    for encoder in model.encoders:
        yield from weights_of_patches(encoder)
        yield from weights_of_connector(encoder)
    for index, block in enumerate(model.blocks):
        yield from weights_of_block(model, index)
        if block.feed_forward.router_bias:
            yield router_correction(index, block.feed_forward)
    yield from (weight for weight in weights_of_head(model) if weight.name != TOKENS)


@dataclass(frozen=True)
class Unit:
    """Weights that are gathered, reduced and stepped together: a block, an end of the model or of an encoder."""

    name: str
    weights: tuple[Weight, ...]
    zero: int

    def flats(self) -> Iterator[tuple[list[Weight], bool, int]]:
        """Weights that lie in one flat tensor, whether they are of routed experts, and their ZeRO stage. What is not
        trained has no gradients and no optimizer states: up to ZeRO 2 nothing of it is sharded."""
        kinds = ((False, True, False), (False, False, False), (False, False, True),
                 (True, True, False), (True, False, False), (True, False, True))
        for routed, trained, quantized in kinds:
            own = [w for w in self.weights if (w.expert is not None) is routed and w.trained is trained and
                   w.is_quantized is quantized]
            if own:
                yield own, routed, self.zero if trained or self.zero == 3 else 0


def _unit(name: str, weights: Iterable[Weight], zero: int) -> Unit:
    return Unit(name, tuple(weights), zero)


def units_of(plan: LaunchPlan, rank: int) -> list[Unit]:
    """Of a rank, in the order of its chunks. Tied tables of one stage are one weight, which the embedding has."""
    stage, part = plan.stages[plan.ranks[rank].stage], plan.part_of(rank)
    units = []
    if stage.embedding:
        units.append(_unit("embedding", weights_of_embedding(plan.model), part.zero_of_ends))
    for block, policy in zip(stage.blocks, part.policies):
        units += units_of_block(plan.model, block, policy.zero, part.zero_of_ends)
    if stage.head:
        here = {w.name for unit in units for w in unit.weights}
        weights = (w for w in weights_of_head(plan.model) if w.name not in here)
        units.append(_unit("head", weights, part.zero_of_ends))
    return units


def colocated_units_of(plan: LaunchPlan, encoder: Encoder) -> list[Unit]:
    """Of a colocated encoder, the same on all ranks."""
    if plan.colocated is None:
        return []
    part = plan.colocated.parts[encoder.name]
    return [unit for block, policy in zip(encoder.blocks, part.policies)
            for unit in units_of_block(plan.model, block, policy.zero, part.zero_of_ends)]


def units_of_block(model: Model, block: int, zero: int, zero_of_ends: int) -> list[Unit]:
    """A block, before the first one of an encoder the embedding of its tokens, behind the last one its connector."""
    encoder = model.encoder_of(block)
    units = [_unit(f"blocks.{block}", weights_of_block(model, block), zero)]
    if encoder is not None and block == encoder.blocks[0]:
        units.insert(0, _unit(f"patches.{encoder.name}", weights_of_patches(encoder), zero_of_ends))
    if encoder is not None and block == encoder.blocks[-1]:
        units.append(_unit(f"connector.{encoder.name}", weights_of_connector(encoder), zero))
    return [unit for unit in units if unit.weights]


def _norm(name: str, width: int, bias: bool, sharing: Sharing = Sharing.SEQUENCE) -> Iterator[Weight]:
    yield Weight(name + ".weight", (width,), sharing=sharing)
    if bias:
        yield Weight(name + ".bias", (width,), sharing=sharing)


def _attention(prefix: str, hidden: int, block: BlockType) -> Iterator[Weight]:
    a = block.attention
    queries, keys = a.heads * a.head_dim, a.kv_heads * a.head_dim
    heads = KeyValueHeads(a.heads, a.kv_heads, a.head_dim)
    yield Weight(prefix + "query", (queries, hidden), 0)
    for name in ("key", "value"):
        yield Weight(prefix + name, (keys, hidden), 0, key_value=heads)
    yield Weight(prefix + "output", (hidden, queries), 1)
    if a.qkv_bias:
        yield Weight(prefix + "query_bias", (queries,), 0)
        for name in ("key", "value"):
            yield Weight(prefix + name + "_bias", (keys,), 0, key_value=heads)
    if a.output_bias:
        yield Weight(prefix + "output_bias", (hidden,), sharing=Sharing.SEQUENCE)
    if a.qk_norm:
        yield from _norm(prefix + "query_norm", a.head_dim, False, Sharing.PARTS)
        yield from _norm(prefix + "key_norm", a.head_dim, False, Sharing.PARTS)


def _latent_attention(prefix: str, hidden: int, block: BlockType) -> Iterator[Weight]:
    a = block.attention
    queries = a.heads * (a.qk_nope_head_dim + a.qk_rope_head_dim)
    latent = a.kv_lora_rank + a.qk_rope_head_dim
    if a.q_lora_rank:
        yield Weight(prefix + "query_down", (a.q_lora_rank, hidden), sharing=Sharing.PARTS)
        yield from _norm(prefix + "query_down_norm", a.q_lora_rank, False, Sharing.PARTS)
    yield Weight(prefix + "query", (queries, a.q_lora_rank or hidden), 0)
    yield Weight(prefix + "key_value_down", (latent, hidden), sharing=Sharing.PARTS)
    yield from _norm(prefix + "key_value_down_norm", a.kv_lora_rank, False, Sharing.PARTS)
    yield Weight(prefix + "key_value_up", (a.heads * (a.qk_nope_head_dim + a.v_head_dim), a.kv_lora_rank), 0)
    yield Weight(prefix + "output", (hidden, a.heads * a.v_head_dim), 1)
    if a.qkv_bias:
        if a.q_lora_rank:
            yield Weight(prefix + "query_down_bias", (a.q_lora_rank,), sharing=Sharing.PARTS)
        yield Weight(prefix + "key_value_down_bias", (latent,), sharing=Sharing.PARTS)
    if a.output_bias:
        yield Weight(prefix + "output_bias", (hidden,), sharing=Sharing.SEQUENCE)


def _feed_forwards(prefix: str, hidden: int, block: BlockType) -> Iterator[Weight]:
    f = block.feed_forward
    if f.hidden:
        yield from _feed_forward(prefix + "feed_forward.", hidden, f.hidden, f.gated, f.bias)
    if f.shared_hidden:
        yield from _feed_forward(prefix + "shared.", hidden, f.shared_hidden, f.gated, f.bias)
        if f.shared_gate:
            yield Weight(prefix + "shared_gate", (1, hidden), sharing=Sharing.SEQUENCE)
    if not f.experts:
        return
    yield Weight(prefix + "router", (f.experts, hidden), sharing=Sharing.PARTS)
    for e in range(f.experts):
        yield from _feed_forward(f"{prefix}experts.{e}.", hidden, f.expert_hidden, f.gated, f.bias, e, f.experts)


def _feed_forward(prefix: str, hidden: int, inner: int, gated: bool, bias: bool, expert: Optional[int] = None,
                  experts: int = 0) -> Iterator[Weight]:
    for name in ("up", "gate") if gated else ("up",):
        yield Weight(prefix + name, (inner, hidden), 0, expert=expert, experts=experts)
        if bias:
            yield Weight(prefix + name + "_bias", (inner,), 0, expert=expert, experts=experts)
    yield Weight(prefix + "down", (hidden, inner), 1, expert=expert, experts=experts)
    if bias:
        yield Weight(prefix + "down_bias", (hidden,), sharing=Sharing.SEQUENCE, expert=expert, experts=experts)
