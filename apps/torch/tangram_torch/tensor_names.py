"""How Hugging Face calls the tensors of each family, and which rows of a tensor a weight is."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Optional

from torch import Tensor

from .config import MODEL_TYPES
from .encoders import Json
from .errors import PlanError
from .launch_plan import Attention, Model
from .weights import ROUTER_CORRECTION, Weight, weights_of_model

Ranges = tuple[range, ...]

LISTED = 5  # names in an error
FUSED = ("attention.query", "attention.key", "attention.value")


@dataclass(frozen=True)
class Names:
    """How a family calls its tensors, by our names without numbers, `weight` and `bias`."""

    block: str  # what names in `parts` follow
    ends: dict[str, str]
    parts: dict[str, str]
    fused: str = ""  # part that has the rows of queries, keys and values: "blocks", or "heads" where these take turns
    transposed: bool = False  # matrices of blocks
    buffers: str = r"\.rotary_emb\.inv_freq$"  # that old files have and that are no weights

    @property
    def base(self) -> str:
        """What all names but that of the output begin with, in files of a model with a head."""
        return self.block.split(".")[0] + "."


def _gated(prefix: str, theirs: str, gate: str = "gate_proj", up: str = "up_proj",
           down: str = "down_proj") -> dict[str, str]:
    return {f"{prefix}.{ours}": f"{theirs}.{name}" for ours, name in (("gate", gate), ("up", up), ("down", down))}


_LLAMA_ENDS = {"embedding.tokens": "model.embed_tokens", "head.norm": "model.norm", "head.output": "lm_head"}
_LLAMA_PARTS = {
    "attention_norm": "input_layernorm", "feed_forward_norm": "post_attention_layernorm",
    "attention.query": "self_attn.q_proj", "attention.key": "self_attn.k_proj", "attention.value": "self_attn.v_proj",
    "attention.output": "self_attn.o_proj", "attention.query_norm": "self_attn.q_norm",
    "attention.key_norm": "self_attn.k_norm", **_gated("feed_forward", "mlp")}
_EXPERTS = {"router": "mlp.gate", **_gated("experts", "mlp.experts.{}")}
_QWEN_MOE = {**_LLAMA_PARTS, **_EXPERTS, **_gated("shared", "mlp.shared_expert"),
             "shared_gate": "mlp.shared_expert_gate"}
_MIXTRAL = {**_LLAMA_PARTS, "router": "block_sparse_moe.gate",
            **_gated("experts", "block_sparse_moe.experts.{}", "w1", "w3", "w2")}
_GEMMA2 = {**_LLAMA_PARTS, "attention_post_norm": "post_attention_layernorm",
           "feed_forward_norm": "pre_feedforward_layernorm", "feed_forward_post_norm": "post_feedforward_layernorm"}
_DEEPSEEK = {**_LLAMA_PARTS, **_EXPERTS, **_gated("shared", "mlp.shared_experts"),
             "router_correction": "mlp.gate.e_score_correction_bias",
             "attention.query_down": "self_attn.q_a_proj", "attention.query_down_norm": "self_attn.q_a_layernorm",
             "attention.query_up": "self_attn.q_b_proj",  # what our attention.query is where there is a query_down
             "attention.key_value_down": "self_attn.kv_a_proj_with_mqa",
             "attention.key_value_down_norm": "self_attn.kv_a_layernorm",
             "attention.key_value_up": "self_attn.kv_b_proj"}
_GPT2 = Names(
    "transformer.h.{}.", {"embedding.tokens": "transformer.wte", "embedding.positions": "transformer.wpe",
                          "head.norm": "transformer.ln_f", "head.output": "lm_head"},
    {"attention_norm": "ln_1", "feed_forward_norm": "ln_2", "attention.query": "attn.c_attn",
     "attention.key": "attn.c_attn", "attention.value": "attn.c_attn", "attention.output": "attn.c_proj",
     "feed_forward.up": "mlp.c_fc", "feed_forward.down": "mlp.c_proj"},
    "blocks", True, r"\.attn\.(masked_)?bias$")
_NEOX = Names(
    "gpt_neox.layers.{}.", {"embedding.tokens": "gpt_neox.embed_in", "head.norm": "gpt_neox.final_layer_norm",
                            "head.output": "embed_out"},
    {"attention_norm": "input_layernorm", "feed_forward_norm": "post_attention_layernorm",
     "attention.query": "attention.query_key_value", "attention.key": "attention.query_key_value",
     "attention.value": "attention.query_key_value", "attention.output": "attention.dense",
     "feed_forward.up": "mlp.dense_h_to_4h", "feed_forward.down": "mlp.dense_4h_to_h"},
    "heads", False, r"\.attention\.((masked_)?bias|rotary_emb\.inv_freq)$")
_OPT = Names(
    "model.decoder.layers.{}.",
    {"embedding.tokens": "model.decoder.embed_tokens", "embedding.positions": "model.decoder.embed_positions",
     "embedding.projection": "model.decoder.project_in", "head.projection": "model.decoder.project_out",
     "head.norm": "model.decoder.final_layer_norm", "head.output": "lm_head"},
    {**_LLAMA_PARTS, "attention.output": "self_attn.out_proj", "attention_norm": "self_attn_layer_norm",
     "feed_forward_norm": "final_layer_norm", "feed_forward.up": "fc1", "feed_forward.down": "fc2"})


def names_of(model_type: Any) -> Names:
    own = {"gpt2": _GPT2, "gpt_neox": _NEOX, "opt": _OPT}
    parts = {"mixtral": _MIXTRAL, "gemma2": _GEMMA2, "qwen2_moe": _QWEN_MOE, "qwen3_moe": _QWEN_MOE,
             "deepseek_v2": _DEEPSEEK, "deepseek_v3": _DEEPSEEK}
    if model_type not in MODEL_TYPES:
        raise PlanError(f'model_type "{model_type}" is not supported: {", ".join(MODEL_TYPES)} are')
    return own.get(model_type) or Names("model.layers.{}.", _LLAMA_ENDS, parts.get(model_type, _LLAMA_PARTS))


@dataclass(frozen=True)
class Source:
    """Where a checkpoint has a weight. Row i of the weight is the i-th of `rows` of the tensor or its transpose."""

    tensor: str
    shape: tuple[int, ...]
    rows: tuple[range, ...]  # one after another
    transposed: bool

    def views(self, tensor: Tensor, ranges: Ranges) -> list[Tensor]:
        """Of the tensor, those whose rows together are a slice of the weight."""
        upright = tensor.t() if self.transposed else tensor
        columns = tuple(slice(r.start, r.stop) for r in ranges[1:])
        found, first = [], 0
        for rows in self.rows:
            own = rows[max(ranges[0].start - first, 0):max(ranges[0].stop - first, 0)]
            if len(own) > 0:
                found.append(upright[(slice(own.start, own.stop, own.step), *columns)])
            first += len(rows)
        return found


def sources_of(model: Model, config: Json) -> dict[str, Source]:
    """Of each weight but those of adapters."""
    if model.encoders:
        raise PlanError(f"checkpoints of Hugging Face are read and written for text models, and {model.name} has encoders")
    names = names_of(config.get("model_type"))
    sources = {weight.name: _source(names, model, config, weight) for weight in weights_of_model(model)
               if not weight.of_adapter}
    nameless = [name for name, source in sources.items() if source is None]
    if nameless:
        raise PlanError(f"models of model_type {config['model_type']} have no {listed(nameless)}: the plan is one for "
                        "another model")
    return {name: source for name, source in sources.items() if source is not None}


def _source(names: Names, model: Model, config: Json, weight: Weight) -> Optional[Source]:
    stem, kind = weight.name, "weight"
    for ending in (".weight", ".bias", "_bias"):
        if stem.endswith(ending):
            stem, kind = stem[:-len(ending)], ending[1:]
    in_block = re.match(r"blocks\.(\d+)\.(?:(experts)\.(\d+)\.)?(.*)", stem)
    if in_block is None:
        tensor = f"{names.ends[stem]}.{kind}" if stem in names.ends else None
        return Source(tensor, weight.shape, (range(weight.shape[0]),), False) if tensor else None
    index, experts, expert, part = in_block.groups()
    part = f"experts.{part}" if experts else part
    if part not in names.parts:
        return None
    attention = model.blocks[int(index)].attention
    theirs = names.parts["attention.query_up" if part == "attention.query" and attention.q_lora_rank else part]
    tensor = names.block.format(index) + theirs.format(expert)
    if not weight.name.endswith(ROUTER_CORRECTION):
        tensor += "." + kind
    rows = _rows(names, attention, part, weight.shape[0], config.get("rope_interleave", True))
    fused = names.fused and part in FUSED
    shape = (3 * weight.shape[0] if fused else weight.shape[0], *weight.shape[1:])
    transposed = names.transposed and len(shape) == 2
    return Source(tensor, shape[::-1] if transposed else shape, tuple(rows), transposed)


def _rows(names: Names, a: Attention, part: str, count: int, interleaved: bool) -> Iterator[range]:
    if part in FUSED and names.fused == "blocks":
        first = FUSED.index(part) * count
        yield range(first, first + count)
    elif part in FUSED and names.fused == "heads":
        for head in range(a.heads):
            first = (3 * head + FUSED.index(part)) * a.head_dim
            yield range(first, first + a.head_dim)
    elif part == "attention.query" and a.latent and interleaved:
        width = a.qk_nope_head_dim + a.qk_rope_head_dim
        for head in range(a.heads):
            yield from _pairs_apart(head * width, a.qk_nope_head_dim, width)
    elif part == "attention.key_value_down" and interleaved:
        yield from _pairs_apart(0, a.kv_lora_rank, a.kv_lora_rank + a.qk_rope_head_dim)
    else:
        yield range(count)


def _pairs_apart(first: int, plain: int, width: int) -> Iterator[range]:
    """Rows that turn in pairs: DeepSeek has the two of a pair beside each other, layers.rotate half of all between."""
    yield range(first, first + plain)
    yield range(first + plain, first + width, 2)
    yield range(first + plain + 1, first + width, 2)


def listed(names: list[str]) -> str:
    more = f" and {len(names) - LISTED} more" if len(names) > LISTED else ""
    return ", ".join(names[:LISTED]) + more
