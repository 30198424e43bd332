#!/usr/bin/env python3
"""Measures layer times of a GPU with PyTorch and writes tangram.profile/1, which `tangram plan --profile` takes."""

from __future__ import annotations

import argparse
import datetime
import difflib
import gc
import json
import os
import re
import statistics
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Callable, Iterator, NoReturn

EXAMPLES = """\
examples:
  scripts/profile_gpu.py llama-3-8b.json --seq 4096,8192 --samples 1,2,4 --tp 1,2,4,8 -o h100.json
      a Hugging Face config.json: its block, embedding and head; then `tangram plan ... --profile h100.json`
  scripts/profile_gpu.py plan.json -o h100.json
      the model of a launch plan, as `tangram plan ... -o plan.json` wrote it: any model that Tangram reads
  scripts/profile_gpu.py --hidden 4096 --heads 32 --kv-heads 8 --ffn 14336 --gated --vocabulary 128256 --seq 8192
      dimensions by hand
  scripts/profile_gpu.py llama-3-8b.json --dry-run
      what would be measured, without PyTorch and without a GPU
  torchrun --nproc-per-node 8 scripts/profile_gpu.py llama-3-8b.json -o h100.json
      the curves of collectives among the 8 GPUs as well

"""

ABOUT = """\
what a row is:
  One microbatch on one GPU. With tp > 1 the GPU computes its shard (its heads, its columns) and the exchanges are left
  out; Tangram adds them. Backward holds the gradients of inputs and of weights, added to those of earlier microbatches
  in the parameters' precision. Dropout is off; experts get equally many tokens. Times are medians. Kept bytes are those
  of the storages that autograd saves, each counted once, without parameters.
exit status: 0 done, 1 nothing could be measured, 4 invalid input, 64 usage
"""

TANGRAM_READS_MORE = "Tangram reads more models: `tangram plan FLEET MODEL -o plan.json`, then give plan.json here"
VOCABULARY_QUANTUM = 128  # columns per tp rank are a multiple of it (Megatron-LM, make_vocab_size_divisible_by)
RMS_EPSILON = 1e-6
ADAM_BYTES = 28  # a parameter's step in fp32: reads weight, gradient and two moments, writes all but the gradient


class Problem(Exception):
    """Ends the program with a message, a hint and an exit status."""

    def __init__(self, message: str, hint: str = "", status: int = 4):
        super().__init__(message)
        self.hint = hint
        self.status = status


def note(text: str) -> None:
    print(f"{Path(sys.argv[0]).name}: {text}", file=sys.stderr, flush=True)


# Models ---------------------------------------------------------------------------------------------------------------


@dataclass
class Block:
    """A block type: the keys of tangram.model/1, without name and tokens."""

    name: str
    dimensions: dict[str, Any]
    tokens: int = 0  # of an encoder's block; 0: the sequence length

    @property
    def experts(self) -> dict[str, Any] | None:
        return self.dimensions.get("moe")


@dataclass
class Model:
    blocks: list[Block]
    vocabulary: int = 0  # 0: no embedding and no head is measured
    hidden: int = 0
    learned_positions: int = 0
    embedding_projection: int = 0
    final_norm: bool = True
    norm: str = "rmsnorm"
    training: dict[str, Any] = field(default_factory=dict)


class Section:
    """Reads keys of one JSON object and says precisely what is wrong with them."""

    def __init__(self, values: Any, where: str):
        if not isinstance(values, dict):
            raise Problem(f"{where} must be an object")
        self.values = values
        self.where = where

    def integer(self, key: str, fallback: int | None = None, least: int = 1) -> int:
        value = self.values.get(key)
        if value is None:
            value = fallback
        if value is None:
            raise Problem(f"{self.where}: missing key \"{key}\"")
        if isinstance(value, bool) or not isinstance(value, int) or value < least:
            raise Problem(f"{self.where}: \"{key}\" must be an integer of at least {least}, not {json.dumps(value)}")
        return value

    def boolean(self, key: str, fallback: bool) -> bool:
        value = self.values.get(key, fallback)
        if not isinstance(value, bool):
            raise Problem(f"{self.where}: \"{key}\" must be true or false, not {json.dumps(value)}")
        return value

    def choice(self, key: str, fallback: str, allowed: tuple[str, ...]) -> str:
        value = self.values.get(key, fallback)
        if value not in allowed:
            raise Problem(f"{self.where}: \"{key}\" must be one of {', '.join(allowed)}, not {json.dumps(value)}")
        return value

    def section(self, key: str) -> "Section":
        return Section(self.values.get(key), f"{self.where}: \"{key}\"")

    def sections(self, key: str, what: str) -> list["Section"]:
        items = self.values.get(key, [])
        if not isinstance(items, list):
            raise Problem(f"{self.where}: \"{key}\" must be an array")
        return [Section(item, f"{self.where}: {what}") for item in items]

    def has(self, key: str) -> bool:
        return self.values.get(key) is not None


def heads_of(section: Section, hidden: int, heads_key: str, kv_key: str, kv_heads: int | None = None) -> dict[str, Any]:
    heads = section.integer(heads_key)
    kv_heads = section.integer(kv_key, kv_heads or heads) if kv_key else heads
    if heads % kv_heads:
        raise Problem(f"{section.where}: \"{heads_key}\" ({heads}) is not a multiple of \"{kv_key}\" ({kv_heads})")
    if not section.has("head_dim") and hidden % heads:
        raise Problem(f"{section.where}: {hidden} is not a multiple of \"{heads_key}\" ({heads})",
                      "give \"head_dim\" where heads do not span the width")
    return {"heads": heads, "kv_heads": kv_heads, "head_dim": section.integer("head_dim", hidden // heads)}


def dimensions(hidden: int, heads: dict[str, Any], **others: Any) -> dict[str, Any]:
    """Every key of a block in the order in which Tangram writes them; `others` replaces defaults."""
    values = {"hidden": hidden, **heads, "qk_norm": False, "sliding_window": 0, "causal": True, "qkv_bias": False,
              "output_bias": False, "ffn_hidden": 0, "gated": True, "ffn_bias": False, "moe": None, "norm": "rmsnorm",
              "norms_per_block": 2, "parallel_attention": False}
    values.update(others)
    return {key: value for key, value in values.items()
            if not (key == "ffn_hidden" and value == 0) and not (key == "moe" and value is None)}


def moe_of(section: Section, keys: dict[str, str], **others: Any) -> dict[str, Any]:
    values = {"experts": section.integer(keys["experts"]),
              "experts_per_token": section.integer(keys["experts_per_token"]),
              "expert_hidden": section.integer(keys["expert_hidden"]),
              "shared_hidden": 0, "shared_gate": False, "router_bias": False, **others}
    if values["experts_per_token"] > values["experts"]:
        raise Problem(f"{section.where}: a token goes to {values['experts_per_token']} experts, "
                      f"but there are only {values['experts']}")
    return values


def block_of(section: Section, defaults: dict[str, Any]) -> dict[str, Any]:
    """One block in tangram.model/1, with both feed-forwards where it names both."""
    unknown = {"mla": "latent attention", "mamba2": "Mamba-2", "gated_delta": "the gated delta rule",
               "only": "a layer of one part", "output_gate": "gated attention"}
    for key, what in unknown.items():
        if section.has(key):
            raise Problem(f"{section.where}: {what} (\"{key}\") cannot be measured by this script")
    hidden = section.integer("hidden", defaults.get("hidden"))
    moe = None
    if section.has("moe"):
        inner = section.section("moe")
        if inner.integer("latent_hidden", 0, 0):
            raise Problem(f"{inner.where}: experts in a latent width cannot be measured by this script")
        same = {key: key for key in ("experts", "experts_per_token", "expert_hidden")}
        moe = moe_of(inner, same, shared_hidden=inner.integer("shared_hidden", 0, 0),
                     shared_gate=inner.boolean("shared_gate", False),
                     router_bias=inner.boolean("router_bias", False))
    return dimensions(
        hidden, heads_of(section, hidden, "heads", "kv_heads"),
        qk_norm=section.boolean("qk_norm", False), sliding_window=section.integer("sliding_window", 0, 0),
        causal=section.boolean("causal", defaults.get("causal", True)),
        qkv_bias=section.boolean("qkv_bias", False), output_bias=section.boolean("output_bias", False),
        ffn_hidden=section.integer("ffn_hidden", 0 if moe else None, 0 if moe else 1),
        gated=section.boolean("gated", True), ffn_bias=section.boolean("ffn_bias", False), moe=moe,
        norm=section.choice("norm", defaults.get("norm", "rmsnorm"), ("rmsnorm", "layernorm")),
        norms_per_block=section.integer("norms_per_block", 2, 0),
        parallel_attention=section.boolean("parallel_attention", False))


def without(values: dict[str, Any], *keys: str, **replaced: Any) -> dict[str, Any]:
    return {**{key: value for key, value in values.items() if key not in keys}, **replaced}


def variants_of(section: Section, block: dict[str, Any], name: str, tokens: int = 0) -> list[Block]:
    """A chain's types: dense and mixture of experts, windowed and full."""
    layers = section.integer("layers")
    kinds = [(name, block)]
    if "moe" in block:
        moe = section.section("moe")
        first, every = moe.integer("first_dense_layers", 0, 0), moe.integer("every", 1)
        dense = any(i < first or (i + 1) % every for i in range(layers))
        kinds = [(f"{name}-dense", without(block, "moe"))] if dense else []
        kinds.append((name, without(block, "ffn_hidden")))
    if section.integer("full_attention_every", 0, 0):
        kinds += [(f"{kind}-full", without(values, sliding_window=0)) for kind, values in kinds]
    return [Block(kind, values, tokens) for kind, values in kinds]


def architecture_of(section: Section) -> Model:
    model = Model([], section.integer("vocabulary"), section.integer("hidden"))
    model.learned_positions = section.integer("learned_positions", 0, 0)
    model.embedding_projection = section.integer("embedding_projection", 0, 0)
    model.final_norm = section.boolean("final_norm", True)
    model.norm = section.choice("norm", "rmsnorm", ("rmsnorm", "layernorm"))
    defaults = {"hidden": model.hidden, "norm": model.norm}
    if section.has("types"):
        for inner in section.sections("types", "a type"):
            model.blocks.append(Block(str(inner.values.get("name", "")), block_of(inner, defaults),
                                      inner.integer("tokens", 0, 0)))
        return model
    for inner in section.sections("encoders", "an encoder"):
        block = block_of(inner, {"causal": False})
        model.blocks += variants_of(inner, block, str(inner.values.get("name")), inner.integer("tokens_per_sample"))
    model.blocks += variants_of(section, block_of(section, defaults), "block")
    return model


# Hugging Face: the families whose blocks differ in dimensions alone. Defaults are those of the configuration classes in
# huggingface/transformers (src/transformers/models/<type>/configuration_<type>.py).


def hf_layer_norm(config: Section, keys: dict[str, str], ffn: int, **others: Any) -> dict[str, Any]:
    hidden = config.integer(keys["hidden"])
    biases = {"qkv_bias": True, "output_bias": True, "ffn_bias": True}
    return dimensions(hidden, heads_of(config, hidden, keys["heads"], ""), ffn_hidden=ffn, gated=False,
                      norm="layernorm", **{**biases, **others})


def hf_gpt2(config: Section) -> dict[str, Any]:
    inner = config.integer("n_inner", 4 * config.integer("n_embd"))
    return hf_layer_norm(config, {"hidden": "n_embd", "heads": "n_head"}, inner)


HF_KEYS = {"hidden": "hidden_size", "heads": "num_attention_heads"}


def hf_opt(config: Section) -> dict[str, Any]:
    bias = config.boolean("enable_bias", True)
    affine = config.boolean("layer_norm_elementwise_affine", True)
    block = hf_layer_norm(config, HF_KEYS, config.integer("ffn_dim"), qkv_bias=bias, output_bias=bias, ffn_bias=bias,
                       norms_per_block=2 if affine else 0)
    return without(block, norm="layernorm" if affine else "rmsnorm")


def hf_gpt_neox(config: Section) -> dict[str, Any]:
    bias = config.boolean("attention_bias", True)
    return hf_layer_norm(config, HF_KEYS, config.integer("intermediate_size"), qkv_bias=bias, output_bias=bias,
                      parallel_attention=config.boolean("use_parallel_residual", True))


def hf_gated(config: Section, kv_heads: int | None = None, **others: Any) -> dict[str, Any]:
    hidden = config.integer("hidden_size")
    heads = heads_of(config, hidden, "num_attention_heads", "num_key_value_heads", kv_heads)
    return dimensions(hidden, heads, **{"ffn_hidden": config.integer("intermediate_size", 0, 0), **others})


def hf_llama(config: Section) -> dict[str, Any]:
    bias = config.boolean("attention_bias", False)
    return hf_gated(config, qkv_bias=bias, output_bias=bias, ffn_bias=config.boolean("mlp_bias", False))


def hf_mistral(config: Section) -> dict[str, Any]:
    # Absent means the class default of 4096; null means none.
    window = config.integer("sliding_window", 0 if "sliding_window" in config.values else 4096, 0)
    return hf_gated(config, 8, sliding_window=window)


def no_windows(config: Section) -> None:
    if config.boolean("use_sliding_window", False):
        raise Problem(f"{config.where}: \"use_sliding_window\" is not read here", TANGRAM_READS_MORE)


def hf_qwen2(config: Section) -> dict[str, Any]:
    no_windows(config)
    return hf_gated(config, 32, qkv_bias=True)


def hf_qwen3(config: Section) -> dict[str, Any]:
    no_windows(config)
    bias = config.boolean("attention_bias", False)
    config.values.setdefault("head_dim", 128)
    return hf_gated(config, 32, qk_norm=True, qkv_bias=bias, output_bias=bias)


def hf_mixtral(config: Section) -> dict[str, Any]:
    moe = moe_of(config, {"experts": "num_local_experts", "experts_per_token": "num_experts_per_tok",
                          "expert_hidden": "intermediate_size"})
    return hf_gated(config, 8, moe=moe, ffn_hidden=0, sliding_window=config.integer("sliding_window", 0, 0))


def hf_qwen3_moe(config: Section) -> dict[str, Any]:
    if config.values.get("mlp_only_layers") or config.integer("decoder_sparse_step", 1) != 1:
        raise Problem(f"{config.where}: dense layers between mixtures of experts are not read here", TANGRAM_READS_MORE)
    moe = moe_of(config, {"experts": "num_experts", "experts_per_token": "num_experts_per_tok",
                          "expert_hidden": "moe_intermediate_size"})
    bias = config.boolean("attention_bias", False)
    return hf_gated(config, 4, moe=moe, ffn_hidden=0, qk_norm=True, qkv_bias=bias, output_bias=bias)


HF_FAMILIES: dict[str, Callable[[Section], dict[str, Any]]] = {
    "gpt2": hf_gpt2, "gpt_neox": hf_gpt_neox, "llama": hf_llama, "mistral": hf_mistral, "mixtral": hf_mixtral,
    "opt": hf_opt, "qwen2": hf_qwen2, "qwen3": hf_qwen3, "qwen3_moe": hf_qwen3_moe}


def hf_model(config: Section) -> Model:
    family = str(config.values["model_type"])
    if family not in HF_FAMILIES:
        near = difflib.get_close_matches(family, HF_FAMILIES, 1, 0.75)
        hint = f"did you mean \"{near[0]}\"? " if near else ""
        raise Problem(f"{config.where}: unknown model type \"{family}\"",
                      f"{hint}read here are {', '.join(HF_FAMILIES)}. {TANGRAM_READS_MORE}")
    block = HF_FAMILIES[family](config)
    model = Model([Block(family, block)], config.integer("vocab_size"), block["hidden"], norm=block["norm"])
    if family == "gpt2":
        model.learned_positions = config.integer("n_positions")
    if family == "opt":
        model.learned_positions = config.integer("max_position_embeddings") + 2  # OPTLearnedPositionalEmbedding
        width = config.integer("word_embed_proj_dim", block["hidden"])
        model.embedding_projection = 0 if width == block["hidden"] else width
        model.final_norm = block["norms_per_block"] > 0 and config.boolean("do_layer_norm_before", True)
    return model


def parse(path: Path) -> Any:
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise Problem(f"{path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise Problem(f"{path}: no UTF-8: {error.reason} at byte {error.start}") from error
    try:
        return json.loads(re.sub(r"^\s*//.*$", "", text, flags=re.MULTILINE))
    except json.JSONDecodeError as error:
        if path.suffix not in (".yaml", ".yml"):
            raise Problem(f"{path}:{error.lineno}:{error.colno}: {error.msg}") from error
    try:
        import yaml
    except ImportError:
        raise Problem(f"{path}: YAML needs python3-yaml, which is not installed",
                      "or `tangram plan FLEET MODEL -o plan.json`, then give plan.json here") from None
    try:
        return yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise Problem(f"{path}: {error}") from error


def read_model(path: Path) -> Model:
    document = Section(parse(path), str(path))
    if document.values.get("schema") == "tangram.launch_plan/1":
        document = document.section("model")
    if "model_type" in document.values:
        return hf_model(document)
    if document.values.get("schema") != "tangram.model/1":
        raise Problem(f"{path} is no model",
                      "a Hugging Face config.json has \"model_type\"; tangram.model/1 and launch plans have \"schema\"")
    if "from" in document.values:
        model = read_model(path.parent / str(document.values["from"]))
    else:
        model = architecture_of(document.section("architecture"))
    model.training = document.values.get("training") or {}
    return model


def model_by_hand(args: argparse.Namespace) -> Model:
    given = {"hidden": args.hidden, "heads": args.heads}
    if args.experts is None:
        given["ffn"] = args.ffn
    else:
        given.update({"expert-ffn": args.expert_ffn, "experts-per-token": args.experts_per_token})
    missing = [f"--{key}" for key, value in given.items() if value is None]
    if missing:
        raise Problem(f"no model file, and {', '.join(missing)} missing", "see --help for examples", 64)
    norm = args.norm or ("rmsnorm" if args.gated else "layernorm")
    values = {"hidden": args.hidden, "heads": args.heads, "gated": args.gated, "norm": norm, "qk_norm": args.qk_norm,
              "qkv_bias": args.bias, "output_bias": args.bias, "ffn_bias": args.bias,
              "kv_heads": args.kv_heads, "head_dim": args.head_dim, "ffn_hidden": args.ffn}
    if args.experts is not None:
        values["moe"] = {"experts": args.experts, "experts_per_token": args.experts_per_token,
                         "expert_hidden": args.expert_ffn, "shared_hidden": args.shared_ffn or 0}
        values.pop("ffn_hidden")
    section = Section({key: value for key, value in values.items() if value is not None}, "command line")
    return Model([Block("block", block_of(section, {}))], args.vocabulary or 0, args.hidden,
                 learned_positions=args.learned_positions, norm=norm)


# What is measured -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Degrees:
    tp: int = 1
    ep: int = 1
    etp: int = 1
    sequence_parallel: bool = False

    def record(self) -> dict[str, Any]:
        out: dict[str, Any] = {"tp": self.tp}
        if self.ep > 1:
            out["ep"] = self.ep
        if self.etp > 1:
            out["etp"] = self.etp
        if self.sequence_parallel:
            out["sequence_parallel"] = True
        return out

    def __str__(self) -> str:
        experts = (f" ep{self.ep}" if self.ep > 1 else "") + (f" etp{self.etp}" if self.etp > 1 else "")
        return f"tp{self.tp}{experts}" + (" sp" if self.sequence_parallel else "")


@dataclass
class Unit:
    kind: str  # "block", "embedding", "head"
    title: str
    block: Block | None
    tokens: int
    degrees: list[Degrees]


def why_unfit(block: dict[str, Any] | None, degrees: Degrees, tokens: int) -> str:
    """Empty: a shard of these degrees exists. Without a block: of embedding or head, which are padded."""
    tp = degrees.tp
    if degrees.sequence_parallel and tokens % tp:
        return f"{tokens} tokens do not divide by tp {tp}"
    if block is None:
        return ""
    if block["heads"] % tp:
        return f"{block['heads']} heads do not divide by tp {tp}"
    if block["kv_heads"] % tp and tp % block["kv_heads"]:
        return f"{block['kv_heads']} key-value heads and tp {tp} do not divide"
    moe = block.get("moe", {"shared_hidden": 0, "experts": 0, "expert_hidden": 0})
    divided = (("feed-forward width", block.get("ffn_hidden", 0), "tp", tp),
               ("width of shared experts", moe["shared_hidden"], "tp", tp),
               ("number of experts", moe["experts"], "ep", degrees.ep),
               ("width of experts", moe["expert_hidden"], "etp", degrees.etp))
    for what, width, degree, ranks in divided:
        if width % ranks:
            return f"the {what}, {width}, does not divide by {degree} {ranks}"
    return ""


def why_unmeasurable(block: dict[str, Any], tokens: int) -> str:
    if 0 < block["sliding_window"] < tokens:
        return f"PyTorch has no kernel for a window of {block['sliding_window']} tokens; measure lengths up to that"
    if block["norms_per_block"] not in (0, 1, 2, 4):
        return f"{block['norms_per_block']} norms in a block are not known here"
    return ""


def degrees_asked(args: argparse.Namespace, experts: bool) -> Iterator[Degrees]:
    """Megatron-LM shards activations of mixtures of experts along the sequence as soon as tp > 1."""
    for tp in args.tp:
        modes = [False, True] if args.sequence_parallel == "both" else [args.sequence_parallel == "only"]
        if tp == 1 or experts:
            modes = [tp > 1]
        for mode in modes:
            for etp in args.etp or sorted({1, tp}) if experts else [1]:
                for ep in args.ep if experts else [1]:
                    yield Degrees(tp, ep, etp, mode)


def degrees_of(args: argparse.Namespace, block: Block | None, tokens: int, title: str) -> list[Degrees]:
    out = []
    for degrees in degrees_asked(args, block is not None and block.experts is not None):
        reason = why_unfit(block.dimensions if block else None, degrees, tokens)
        if reason:
            note(f"{title}, {degrees}: left out: {reason}")
        else:
            out.append(degrees)
    return out


def seen_by(block: Block, tokens: int) -> Block:
    """A window that holds all tokens is none, as Tangram writes it."""
    if block.dimensions["sliding_window"] < tokens:
        return block
    return Block(block.name, {**block.dimensions, "sliding_window": 0}, block.tokens)


def units_of(args: argparse.Namespace, model: Model, lengths: list[int]) -> Iterator[Unit]:
    seen: list[tuple[dict[str, Any], int]] = []
    for given in model.blocks:
        for tokens in [given.tokens] if given.tokens else lengths:
            block = seen_by(given, tokens)
            if (block.dimensions, tokens) in seen:
                continue
            seen.append((block.dimensions, tokens))
            title = f"{block.name}, {tokens} tokens"
            reason = why_unmeasurable(block.dimensions, tokens)
            if reason:
                note(f"{title}: left out: {reason}")
            else:
                yield Unit("block", title, block, tokens, degrees_of(args, block, tokens, title))
    if model.embedding_projection:
        note("embedding and head are left out: their width differs from the blocks'")
    elif model.vocabulary:
        for kind in ("embedding", "head"):
            for tokens in lengths:
                title = f"{kind}, {tokens} tokens"
                yield Unit(kind, title, None, tokens, degrees_of(args, None, tokens, title))


# The layers, as Megatron-LM computes them -----------------------------------------------------------------------------

torch: Any = None
functional: Any = None
rms_norm: Any = None
swiglu: Any = None


def import_torch() -> None:
    global torch, functional, rms_norm, swiglu
    try:
        import torch as module
    except ImportError as error:
        raise Problem(f"PyTorch cannot be imported: {error}", "install it for this interpreter, " + sys.executable,
                      1) from error
    torch, functional = module, module.nn.functional
    rms_norm, swiglu = (function.apply for function in fused_functions())


@dataclass
class Setting:
    """Where and in what the layers compute."""

    device: Any
    dtype: Any
    fused: bool
    warmup: int
    repetitions: int

    def values(self, *shape: int, scale: float = 1.0) -> Any:
        return torch.randn(*shape, device=self.device, dtype=self.dtype) * scale

    def parameter(self, *shape: int) -> Any:
        return self.values(*shape, scale=0.02).requires_grad_()


class Shards:
    """Stands in for all-gather and reduce-scatter along the first dimension: the other ranks' rows are constants."""

    def __init__(self, setting: Setting, shape: tuple[int, ...], count: int):
        self.count = count
        self.rows = shape[0] // count
        self.buffers: list[Any] = []
        self.next = 0
        if count > 1:
            self.make = lambda: setting.values(*shape)
            self.gradient = self.make()
            self.gather_function, self.scatter_function = exchange_functions()

    def begin(self) -> None:
        self.next = 0

    def gather(self, shard: Any) -> Any:
        if self.count == 1:
            return shard
        if self.next == len(self.buffers):
            self.buffers.append(self.make())
        self.next += 1
        return self.gather_function.apply(shard, self.buffers[self.next - 1])

    def scatter(self, full: Any) -> Any:
        return full if self.count == 1 else self.scatter_function.apply(full, self.rows, self.gradient)


def sequence_shards(setting: Setting, degrees: Degrees, tokens: int, samples: int, hidden: int) -> Shards:
    return Shards(setting, (tokens, samples, hidden), degrees.tp if degrees.sequence_parallel else 1)


def exchange_functions() -> tuple[Any, Any]:
    class Gather(torch.autograd.Function):
        @staticmethod
        def forward(context: Any, shard: Any, full: Any) -> Any:
            context.rows = shard.shape[0]
            return full.view_as(full)

        @staticmethod
        def backward(context: Any, gradient: Any) -> Any:
            return gradient[:context.rows], None

    class Scatter(torch.autograd.Function):
        @staticmethod
        def forward(context: Any, full: Any, rows: int, gradient: Any) -> Any:
            context.full_gradient = gradient
            return full[:rows]

        @staticmethod
        def backward(context: Any, gradient: Any) -> Any:
            return context.full_gradient, None, None

    return Gather, Scatter


def fused_functions() -> tuple[Any, Any]:
    """RMSNorm and SwiGLU that keep for backward what the fused kernels of training runtimes keep: their inputs."""

    class RmsNorm(torch.autograd.Function):
        @staticmethod
        def forward(context: Any, x: Any, weight: Any) -> Any:
            wide = x.float()
            scale = torch.rsqrt(wide.square().mean(-1, keepdim=True) + RMS_EPSILON)
            context.save_for_backward(x, weight, scale)
            return (wide * scale).to(x.dtype) * weight

        @staticmethod
        def backward(context: Any, gradient: Any) -> Any:
            # y = w h, h = x r, r = (mean x^2 + e)^-1/2:  dx = r (w g - h mean(w g h)),  dw = sum g h
            x, weight, scale = context.saved_tensors
            normal, wide = x.float() * scale, gradient.float()
            inner = wide * weight
            outer = (inner - normal * (inner * normal).mean(-1, keepdim=True)) * scale
            return outer.to(x.dtype), (wide * normal).flatten(0, -2).sum(0).to(weight.dtype)

    class SwiGlu(torch.autograd.Function):
        @staticmethod
        def forward(context: Any, inner: Any) -> Any:
            context.save_for_backward(inner)
            gate, up = inner.chunk(2, dim=-1)
            return functional.silu(gate) * up

        @staticmethod
        def backward(context: Any, gradient: Any) -> Any:
            # silu(a) = a s(a), silu'(a) = s(a) (1 + a (1 - s(a)))
            gate, up = context.saved_tensors[0].chunk(2, dim=-1)
            share = torch.sigmoid(gate)
            slope = share * (1 + gate * (1 - share))
            return torch.cat((gradient * up * slope, gradient * gate * share), dim=-1)

    return RmsNorm, SwiGlu


class Norm:
    def __init__(self, setting: Setting, width: int, kind: str, affine: bool = True):
        self.layer = kind == "layernorm"
        self.weight = setting.parameter(width) if affine else None
        self.bias = setting.parameter(width) if affine and self.layer else None
        self.constant = None if affine or self.layer else torch.ones(width, device=setting.device, dtype=setting.dtype)

    def parameters(self) -> list[Any]:
        return [p for p in (self.weight, self.bias) if p is not None]

    def __call__(self, x: Any) -> Any:
        width = x.shape[-1:]
        if self.layer:
            return functional.layer_norm(x, width, self.weight, self.bias)
        weight = self.constant if self.weight is None else self.weight
        if hasattr(torch.ops.aten, "_fused_rms_norm"):
            return functional.rms_norm(x, width, weight, RMS_EPSILON)
        return rms_norm(x, weight)


class Linear:
    def __init__(self, setting: Setting, inputs: int, outputs: int, bias: bool):
        self.weight = setting.parameter(outputs, inputs)
        self.bias = setting.parameter(outputs) if bias else None

    def parameters(self) -> list[Any]:
        return [self.weight] if self.bias is None else [self.weight, self.bias]

    def __call__(self, x: Any) -> Any:
        return functional.linear(x, self.weight, self.bias)


class FeedForward:
    def __init__(self, setting: Setting, hidden: int, columns: int, gated: bool, bias: bool):
        self.gated = gated
        self.enter = Linear(setting, hidden, columns * (2 if gated else 1), bias)
        self.leave = Linear(setting, columns, hidden, bias)

    def parameters(self) -> list[Any]:
        return self.enter.parameters() + self.leave.parameters()

    def __call__(self, x: Any) -> Any:
        inner = self.enter(x)
        if self.gated:
            return self.leave(swiglu(inner))
        return self.leave(functional.gelu(inner, approximate="tanh"))


class Attention:
    """One tp shard: its heads of the queries, its (at least one) key-value heads."""

    def __init__(self, setting: Setting, block: dict[str, Any], tp: int, tokens: int, rotary: bool):
        self.heads = block["heads"] // tp
        self.kv_heads = max(1, block["kv_heads"] // tp)
        self.width = block["head_dim"]
        self.causal, self.fused = block["causal"], setting.fused
        rows = (self.heads + 2 * self.kv_heads) * self.width
        self.project = Linear(setting, block["hidden"], rows, block["qkv_bias"])
        self.leave = Linear(setting, self.heads * self.width, block["hidden"], block["output_bias"])
        self.norms = [Norm(setting, self.width, block["norm"]) for _ in range(2 if block["qk_norm"] else 0)]
        self.constants: list[Any] = []
        if rotary:
            angles = torch.arange(tokens)[:, None] / 10_000 ** (torch.arange(0, self.width, 2) / self.width)
            angles = torch.cat((angles, angles), dim=-1)[:, None, None, :self.width]
            self.constants = [angles.cos().to(setting.device, setting.dtype),
                              angles.sin().to(setting.device, setting.dtype)]
        self.rotary = rotary
        if not self.fused:
            mask = torch.zeros(1, tokens, tokens, device=setting.device, dtype=setting.dtype)
            if self.causal:
                mask.masked_fill_(torch.ones_like(mask, dtype=torch.bool).triu(1), float("-inf"))
            self.mask = mask
            self.constants.append(mask)

    def parameters(self) -> list[Any]:
        norms = [p for norm in self.norms for p in norm.parameters()]
        return self.project.parameters() + self.leave.parameters() + norms

    def turn(self, x: Any) -> Any:
        cos, sin = self.constants[:2]
        first, second = x.chunk(2, dim=-1)
        return x * cos + torch.cat((-second, first), dim=-1) * sin

    def fused_core(self, q: Any, k: Any, v: Any) -> Any:
        q, k, v = (x.permute(1, 2, 0, 3) for x in (q, k, v))
        options = {}
        if self.kv_heads < self.heads:
            if torch_version() >= (2, 5):
                options["enable_gqa"] = True
            else:
                k, v = (x.repeat_interleave(self.heads // self.kv_heads, dim=1) for x in (k, v))
        out = functional.scaled_dot_product_attention(q, k, v, is_causal=self.causal, **options)
        return out.permute(2, 0, 1, 3)

    def unfused_core(self, q: Any, k: Any, v: Any) -> Any:
        tokens, samples = q.shape[:2]
        if self.kv_heads < self.heads:
            k, v = (x.repeat_interleave(self.heads // self.kv_heads, dim=2) for x in (k, v))
        q, k, v = (x.reshape(tokens, samples * self.heads, self.width).transpose(0, 1) for x in (q, k, v))
        mask = self.mask.expand(samples * self.heads, tokens, tokens)
        scores = torch.baddbmm(mask, q, k.transpose(1, 2), alpha=self.width ** -0.5)
        out = torch.bmm(torch.softmax(scores, dim=-1), v)
        return out.transpose(0, 1).reshape(tokens, samples, self.heads, self.width)

    def __call__(self, x: Any) -> Any:
        tokens, samples = x.shape[:2]
        counts = (self.heads, self.kv_heads, self.kv_heads)
        parts = self.project(x).split([n * self.width for n in counts], dim=-1)
        q, k, v = (part.reshape(tokens, samples, n, self.width) for part, n in zip(parts, counts))
        if self.norms:
            q, k = self.norms[0](q), self.norms[1](k)
        if self.rotary:
            q, k = self.turn(q), self.turn(k)
        out = self.fused_core(q, k, v) if self.fused else self.unfused_core(q, k, v)
        return self.leave(out.reshape(tokens, samples, self.heads * self.width))


class Experts:
    """Router, permutation, this rank's experts one after the other, un-permutation. The router's choice is computed and
    then replaced by one that gives every expert equally many tokens, as --moe-router-force-load-balancing does in
    Megatron-LM; what ep ranks send each other is as much as they get, what etp ranks gather stands here already."""

    def __init__(self, setting: Setting, block: dict[str, Any], degrees: Degrees, rows: int):
        moe = block["moe"]
        self.per_token = moe["experts_per_token"]
        count, local = moe["experts"], moe["experts"] // degrees.ep
        self.router = Linear(setting, block["hidden"], count, False)
        self.experts = [FeedForward(setting, block["hidden"], moe["expert_hidden"] // degrees.etp, block["gated"],
                                    block["ffn_bias"]) for _ in range(local)]
        routes = rows * self.per_token
        self.choice = (torch.arange(routes, device=setting.device) % count).reshape(rows, self.per_token)
        self.order = torch.argsort(self.choice.flatten(), stable=True)
        self.back = torch.argsort(self.order)
        gathered = routes * degrees.etp
        self.sizes = [gathered // local + (i < gathered % local) for i in range(local)]
        self.exchanged = degrees.ep > 1
        self.exchange = Shards(setting, (gathered, block["hidden"]), degrees.etp)
        self.source = self.order // self.per_token
        self.constants = [self.choice, self.order, self.back, self.source]

    def parameters(self) -> list[Any]:
        return self.router.parameters() + [p for expert in self.experts for p in expert.parameters()]

    def __call__(self, x: Any) -> Any:
        shape = x.shape
        x = x.reshape(-1, shape[-1])
        scores = torch.softmax(self.router(x).float(), dim=-1)
        torch.topk(scores.detach(), self.per_token, dim=-1)
        weights = scores.gather(1, self.choice)
        weights = (weights / weights.sum(-1, keepdim=True)).to(x.dtype)
        routed = x.index_select(0, self.source)
        if self.exchanged:
            routed = routed.index_select(0, self.order)  # received in the order of ranks, wanted in that of experts
        self.exchange.begin()
        routed = self.exchange.gather(routed)
        parts = [expert(part) for expert, part in zip(self.experts, routed.split(self.sizes)) if part.shape[0]]
        out = self.exchange.scatter(torch.cat(parts))
        if self.exchanged:
            out = out.index_select(0, self.back)
        out = out.index_select(0, self.back).reshape(-1, self.per_token, shape[-1])
        return (out * weights.unsqueeze(-1)).sum(1).reshape(shape)


class TransformerBlock:
    def __init__(self, setting: Setting, block: dict[str, Any], degrees: Degrees, tokens: int, samples: int,
                 rotary: bool):
        hidden, moe = block["hidden"], block.get("moe")
        self.shards = sequence_shards(setting, degrees, tokens, samples, hidden)
        count = block["norms_per_block"]
        self.norms = [Norm(setting, hidden, block["norm"], count > 0) for _ in range(max(count, 2))]
        self.single_norm = count == 1
        self.parallel = block["parallel_attention"]
        self.attention = Attention(setting, block, degrees.tp, tokens, rotary)
        columns = (block.get("ffn_hidden", 0) + (moe["shared_hidden"] if moe else 0)) // degrees.tp
        self.dense = FeedForward(setting, hidden, columns, block["gated"], block["ffn_bias"]) if columns else None
        self.experts = Experts(setting, block, degrees, self.shards.rows * samples) if moe else None
        self.gate = Linear(setting, hidden, 1, False) if moe and moe["shared_gate"] else None

    def parameters(self) -> list[Any]:
        parts = [*self.norms, self.attention, self.dense, self.experts, self.gate]
        return [p for part in parts if part is not None for p in part.parameters()]

    def constants(self) -> list[Any]:
        return self.attention.constants + (self.experts.constants if self.experts else [])

    def feed_forward(self, x: Any) -> Any:
        out = None
        if self.dense is not None:
            out = self.shards.scatter(self.dense(self.shards.gather(x)))
            if self.gate is not None:
                out = out * torch.sigmoid(self.gate(x))
        if self.experts is not None:
            routed = self.experts(x)
            out = routed if out is None else out + routed
        return out

    def __call__(self, x: Any) -> Any:
        self.shards.begin()
        first, second, *after = self.norms
        entered = first(x)
        attended = self.shards.scatter(self.attention(self.shards.gather(entered)))
        if self.parallel:
            return x + attended + self.feed_forward(entered if self.single_norm else second(x))
        x = x + (after[0](attended) if after else attended)
        out = self.feed_forward(x if self.single_norm else second(x))
        return x + (after[1](out) if after else out)


def local_columns(vocabulary: int, tp: int) -> int:
    return -(-vocabulary // (VOCABULARY_QUANTUM * tp)) * VOCABULARY_QUANTUM


class Embedding:
    """Rows of other ranks are masked, as Megatron-LM's VocabParallelEmbedding does."""

    def __init__(self, setting: Setting, model: Model, degrees: Degrees, tokens: int, samples: int):
        self.shards = sequence_shards(setting, degrees, tokens, samples, model.hidden)
        self.tp = degrees.tp
        self.columns = local_columns(model.vocabulary, self.tp)
        self.table = setting.parameter(self.columns, model.hidden)
        positions = model.learned_positions > 0
        self.positions = setting.parameter(tokens, 1, model.hidden) if positions else None
        self.tokens = torch.randint(0, model.vocabulary, (tokens, samples), device=setting.device)

    def parameters(self) -> list[Any]:
        return [self.table] if self.positions is None else [self.table, self.positions]

    def constants(self) -> list[Any]:
        return []

    def __call__(self, _: Any) -> Any:
        self.shards.begin()
        if self.tp == 1:
            out = functional.embedding(self.tokens, self.table)
        else:
            foreign = self.tokens >= self.columns
            out = functional.embedding(self.tokens.masked_fill(foreign, 0), self.table)
            out = out.masked_fill(foreign.unsqueeze(-1), 0)
        if self.positions is not None:
            out = out + self.positions
        return self.shards.scatter(out)


class Head:
    """Final norm, logits of this rank's columns, cross-entropy in fp32 over them."""

    def __init__(self, setting: Setting, model: Model, degrees: Degrees, tokens: int, samples: int):
        self.shards = sequence_shards(setting, degrees, tokens, samples, model.hidden)
        self.norm = Norm(setting, model.hidden, model.norm) if model.final_norm else None
        columns = local_columns(model.vocabulary, degrees.tp)
        self.output = Linear(setting, model.hidden, columns, False)
        self.targets = torch.randint(0, min(columns, model.vocabulary), (tokens * samples,), device=setting.device)

    def parameters(self) -> list[Any]:
        return self.output.parameters() + (self.norm.parameters() if self.norm else [])

    def constants(self) -> list[Any]:
        return [self.targets]

    def __call__(self, x: Any) -> Any:
        self.shards.begin()
        logits = self.output(self.shards.gather(self.norm(x) if self.norm else x))
        return functional.cross_entropy(logits.reshape(-1, logits.shape[-1]).float(), self.targets)


# Measuring ------------------------------------------------------------------------------------------------------------


class Clock:
    """Marks on the device's own time line, so that the host may run ahead as it does in training."""

    def __init__(self, device: Any):
        self.cuda = device.type == "cuda"

    def mark(self) -> Any:
        if not self.cuda:
            return time.perf_counter()
        event = torch.cuda.Event(enable_timing=True)
        event.record()
        return event

    def wait(self) -> None:
        if self.cuda:
            torch.cuda.synchronize()

    def milliseconds(self, begin: Any, end: Any) -> float:
        return begin.elapsed_time(end) if self.cuda else 1e3 * (end - begin)


def storage_of(tensor: Any) -> tuple[int, int]:
    """Address and bytes."""
    storage = tensor.untyped_storage() if hasattr(tensor, "untyped_storage") else tensor.storage()
    return storage.data_ptr(), storage.nbytes()


def kept_bytes(layer: Any, x: Any) -> int:
    """What the forward pass leaves for backward. What sequence parallelism gathers is kept as a shard, because
    Megatron-LM gathers it again in backward."""
    kept: dict[int, int] = {}

    def pack(tensor: Any) -> Any:
        address, size = storage_of(tensor)
        kept[address] = size
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        output = layer(x)
    for tensor in layer.parameters() + layer.constants():
        kept.pop(storage_of(tensor)[0], None)
    for buffer in layer.shards.buffers:
        address, size = storage_of(buffer)
        if address in kept:
            kept[address] = size // layer.shards.count
    del output
    return sum(kept.values())


def time_passes(setting: Setting, layer: Any, x: Any) -> tuple[float, float]:
    """Medians of forward and backward, milliseconds."""
    clock = Clock(setting.device)
    gradient = None
    marks = []
    for _ in range(setting.warmup + setting.repetitions):
        x.grad = None
        begin = clock.mark()
        output = layer(x)
        turn = clock.mark()
        if gradient is None:
            gradient = torch.randn_like(output)
            turn = clock.mark()
        output.backward(gradient)
        marks.append((begin, turn, clock.mark()))
        del output
    clock.wait()
    marks = marks[setting.warmup:]
    return (statistics.median(clock.milliseconds(a, b) for a, b, _ in marks),
            statistics.median(clock.milliseconds(b, c) for _, b, c in marks))


def layer_of(setting: Setting, model: Model, unit: Unit, degrees: Degrees, samples: int) -> Any:
    if unit.kind == "embedding":
        return Embedding(setting, model, degrees, unit.tokens, samples)
    if unit.kind == "head":
        return Head(setting, model, degrees, unit.tokens, samples)
    assert unit.block is not None
    rotary = model.learned_positions == 0 and not unit.block.tokens and unit.block.dimensions["head_dim"] % 2 == 0
    return TransformerBlock(setting, unit.block.dimensions, degrees, unit.tokens, samples, rotary)


def rounded(milliseconds: float) -> float:
    return max(1e-6, float(f"{milliseconds:.5g}"))


def measure_point(setting: Setting, model: Model, unit: Unit, degrees: Degrees, samples: int) -> dict[str, Any]:
    torch.manual_seed(1)
    layer = layer_of(setting, model, unit, degrees, samples)
    hidden = unit.block.dimensions["hidden"] if unit.block else model.hidden
    x = setting.values(layer.shards.rows, samples, hidden).requires_grad_(unit.kind != "embedding")
    row = {**degrees.record(), "samples": samples}
    kept = kept_bytes(layer, x) if unit.kind == "block" else 0
    forward, backward = time_passes(setting, layer, x)
    row.update({"forward_ms": rounded(forward), "backward_ms": rounded(backward)})
    if kept:
        row["activation_bytes"] = kept
    return row


def is_out_of_memory(error: RuntimeError) -> bool:
    texts = ("out of memory", "can't allocate memory", "ALLOC_FAILED")  # of CUDA, the processor, cuBLAS
    return any(text in str(error) for text in texts)


def try_point(setting: Setting, model: Model, unit: Unit, degrees: Degrees, samples: int) -> dict[str, Any] | None:
    """Nothing where memory did not suffice. The error is dropped first: its traceback holds the tensors."""
    try:
        return measure_point(setting, model, unit, degrees, samples)
    except RuntimeError as error:
        if not is_out_of_memory(error):
            raise
    gc.collect()
    if setting.device.type == "cuda":
        torch.cuda.empty_cache()
    return None


def measure_unit(setting: Setting, model: Model, unit: Unit, counts: list[int], dtype: str) -> dict[str, Any] | None:
    rows = []
    for degrees in unit.degrees:
        for samples in counts:
            row = try_point(setting, model, unit, degrees, samples)
            if row is None:
                note(f"{unit.title}, {degrees}: out of memory at {samples} samples; these and more are left out")
                break
            note(f"{unit.title}, {degrees}, {samples} samples: "
                 f"forward {row['forward_ms']} ms, backward {row['backward_ms']} ms")
            rows.append(row)
    if not rows:
        return None
    out: dict[str, Any] = {"kind": unit.kind}
    if unit.block:
        out.update({"block": unit.block.dimensions, "dtype": dtype, "flash_attention": setting.fused})
    else:
        out.update({"vocabulary": model.vocabulary, "hidden": model.hidden, "dtype": dtype})
    return {**out, "sequence_length": unit.tokens, "rows": rows}


def adam_nanoseconds(setting: Setting) -> float:
    """A parameter's share of one Adam step, with master weights and moments in fp32."""
    count = 1 << (26 if setting.device.type == "cuda" else 20)
    weights = torch.randn(count, device=setting.device).requires_grad_()
    weights.grad = torch.randn_like(weights)
    options = {"fused": True} if setting.device.type == "cuda" and torch_version() >= (2, 0) else {}
    optimizer = torch.optim.Adam([weights], **options)
    clock = Clock(setting.device)
    marks = []
    for _ in range(setting.warmup + setting.repetitions):
        begin = clock.mark()
        optimizer.step()
        marks.append((begin, clock.mark()))
    clock.wait()
    return 1e6 * statistics.median(clock.milliseconds(a, b) for a, b in marks[setting.warmup:]) / count


# Collectives, under torchrun ------------------------------------------------------------------------------------------


@dataclass
class Fleet:
    """The ranks that torchrun started."""

    rank: int = 0
    local_rank: int = 0
    world: int = 1
    local_world: int = 1

    @staticmethod
    def here() -> "Fleet":
        def number(name: str, fallback: int) -> int:
            return int(os.environ.get(name, fallback))

        world = number("WORLD_SIZE", 1)
        return Fleet(number("RANK", 0), number("LOCAL_RANK", 0), world, number("LOCAL_WORLD_SIZE", world))

    def groups(self) -> list[tuple[int, int]]:
        """(ranks per node, nodes): powers of two and whole nodes, on one node and on all."""
        inside = sorted({1 << i for i in range(self.local_world.bit_length())} | {self.local_world})
        inside = [ranks for ranks in inside if ranks <= self.local_world]
        nodes = sorted({1, self.world // self.local_world})
        return [(ranks, count) for count in nodes for ranks in inside if ranks * count > 1]

    def members(self, ranks: int, nodes: int) -> list[int]:
        return [node * self.local_world + rank for node in range(nodes) for rank in range(ranks)]


def exchange_of(operation: str, group: Any, members: list[int], rank: int, tensor: Any) -> Callable[[], Any]:
    """One collective over `tensor`, whose bytes are counted as tangram.profile/1 does: the full tensor, in all-to-all
    what one rank holds."""
    distributed = torch.distributed
    if operation == "all_reduce":
        return lambda: distributed.all_reduce(tensor, group=group)
    if operation == "send_recv":
        if rank == members[0]:
            return lambda: distributed.send(tensor, members[1])
        return lambda: distributed.recv(tensor, members[0])
    shard = torch.empty(tensor.numel() // len(members), dtype=tensor.dtype, device=tensor.device)
    if operation == "all_gather":
        return lambda: distributed.all_gather_into_tensor(tensor, shard, group=group)
    if operation == "reduce_scatter":
        return lambda: distributed.reduce_scatter_tensor(shard, tensor, group=group)
    received = torch.empty_like(tensor)
    return lambda: distributed.all_to_all_single(received, tensor, group=group)


def microseconds(setting: Setting, group: Any, run: Callable[[], Any]) -> float:
    """Of one operation among many in a row; the slowest rank's median over batches."""
    clock, batches = Clock(setting.device), []
    for _ in range(setting.warmup):
        run()
    for _ in range(3):
        torch.distributed.barrier(group=group)
        clock.wait()
        begin = clock.mark()
        for _ in range(setting.repetitions):
            run()
        end = clock.mark()
        clock.wait()
        batches.append(1e3 * clock.milliseconds(begin, end) / setting.repetitions)
    slowest = torch.tensor([statistics.median(batches)], device=setting.device)
    torch.distributed.all_reduce(slowest, op=torch.distributed.ReduceOp.MAX, group=group)
    return float(slowest.item())


def measure_curve(setting: Setting, operation: str, group: Any, members: list[int], rank: int) -> list[dict[str, Any]]:
    cuda = setting.device.type == "cuda"
    dtype = torch.bfloat16 if cuda else torch.float32
    points = []
    for exponent in range(12, 30 if cuda else 21, 2):
        count = len(members) if operation not in ("all_reduce", "send_recv") else 1
        elements = (1 << exponent) // (2 if cuda else 4)
        elements -= elements % count
        tensor = torch.zeros(elements, dtype=dtype, device=setting.device)
        run = exchange_of(operation, group, members, rank, tensor)
        points.append({"bytes": elements * tensor.element_size(),
                       "time_us": float(f"{microseconds(setting, group, run):.5g}")})
    return points


def measure_collectives(setting: Setting, fleet: Fleet) -> list[dict[str, Any]]:
    """Curves, complete on rank 0. One group exchanges at a time. Gloo, on processors, knows all_reduce alone."""
    cuda = setting.device.type == "cuda"
    os.environ.setdefault("USE_LIBUV", "0")  # Debian's PyTorch is built without, and would ask for it all the same
    torch.distributed.init_process_group("nccl" if cuda else "gloo")
    operations = ["all_reduce", "all_gather", "reduce_scatter", "all_to_all", "send_recv"] if cuda else ["all_reduce"]
    curves = []
    for ranks, nodes in fleet.groups():
        members = fleet.members(ranks, nodes)
        group = torch.distributed.new_group(members)
        for operation in operations if fleet.rank in members else []:
            if operation == "send_recv" and len(members) != 2:
                continue
            points = measure_curve(setting, operation, group, members, fleet.rank)
            curves.append({"operation": operation, "ranks_per_node": ranks, "nodes": nodes, "points": points})
            if fleet.rank == 0:
                note(f"{operation} among {ranks} x {nodes}: {points[-1]['bytes']} bytes in {points[-1]['time_us']} us")
        torch.distributed.barrier()
    torch.distributed.destroy_process_group()
    return curves


# The whole ------------------------------------------------------------------------------------------------------------

# What PyTorch calls a GPU, without "NVIDIA" and "Tesla", and what Tangram's catalogue (configs/gpus) calls it.
DRIVER_NAMES = {
    "A100-SXM4-40GB": "A100-40GB-SXM", "A100-SXM4-80GB": "A100-80GB-SXM", "A100-PCIE-40GB": "A100-40GB-PCIe",
    "A100 80GB PCIe": "A100-80GB-PCIe", "A800-SXM4-80GB": "A800-80GB-SXM", "H100 80GB HBM3": "H100-80GB-SXM",
    "H100 PCIe": "H100-80GB-PCIe", "H100 NVL": "H100-94GB-NVL", "H800": "H800-80GB-SXM", "H200": "H200-141GB-SXM",
    "H20": "H20-96GB-SXM", "GH200 480GB": "GH200-96GB", "GH200 144G HBM3e": "GH200-144GB", "GB200": "GB200-186GB",
    "GB300": "GB300-288GB", "B300 SXM6 AC": "B300-288GB-SXM", "B200": "B200-180GB-SXM",
    "V100-SXM2-16GB": "V100-16GB-SXM", "V100-SXM2-32GB": "V100-32GB-SXM", "V100-PCIE-16GB": "V100-16GB-PCIe",
    "P100-SXM2-16GB": "P100-16GB-SXM", "RTX A6000": "A6000",
    "RTX PRO 6000 Blackwell Workstation Edition": "RTX-PRO-6000-96GB", "RTX 6000 Ada Generation": "RTX-6000-Ada",
    "GeForce RTX 3080": "RTX-3080", "GeForce RTX 5090": "RTX-5090", "GeForce RTX 3090": "RTX-3090",
    "GeForce RTX 4090": "RTX-4090", "GeForce RTX 2080 Ti": "RTX-2080-Ti", "TITAN RTX": "Titan-RTX",
    "AMD Instinct MI210": "MI210-64GB", "AMD Instinct MI250X": "MI250X-64GB-GCD", "AMD Instinct MI300X": "MI300X-192GB",
    "AMD Instinct MI325X": "MI325X-256GB", "AMD Instinct MI350X": "MI350X-288GB", "AMD Instinct MI355X": "MI355X-288GB",
    "T4": "T4", "L4": "L4", "L40": "L40", "L40S": "L40S", "A10": "A10", "A10G": "A10G", "A30": "A30", "A40": "A40"}


def torch_version() -> tuple[int, int]:
    major, minor = re.match(r"(\d+)\.(\d+)", torch.__version__).groups()
    return int(major), int(minor)


def device_here(args: argparse.Namespace, fleet: Fleet) -> Any:
    if args.device == "cpu":
        return torch.device("cpu")
    if not torch.cuda.is_available():
        built = torch.version.cuda or getattr(torch.version, "hip", None)
        reason = "finds no GPU" if built else "was built without CUDA"
        raise Problem(f"no GPU: PyTorch {torch.__version__} {reason}",
                      "--device cpu measures the processor, to try the script", 1)
    device = torch.device("cuda", fleet.local_rank)
    torch.cuda.set_device(device)
    return device


def gpu_name(args: argparse.Namespace, device: Any) -> str:
    if args.gpu:
        return args.gpu
    if device.type == "cpu":
        raise Problem("--device cpu needs --gpu NAME: what the profile shall say it measured", "", 64)
    driver = re.sub(r"^(NVIDIA |Tesla )+", "", torch.cuda.get_device_name(device))
    if driver not in DRIVER_NAMES:
        raise Problem(f"\"{driver}\" has no known name in Tangram's catalogue",
                      "give it with --gpu, as configs/gpus or the fleet calls it", 64)
    return DRIVER_NAMES[driver]


def setting_of(args: argparse.Namespace, device: Any, precision: str, fused: bool) -> Setting:
    if fused and not hasattr(functional, "scaled_dot_product_attention"):
        raise Problem(f"fused attention needs PyTorch 2.0, this is {torch.__version__}", "use --attention unfused", 1)
    if device.type == "cpu" and precision in ("fp16", "tf32"):
        raise Problem(f"a processor does not compute in {precision}", "use --dtype fp32 or bf16", 64)
    torch.backends.cuda.matmul.allow_tf32 = precision == "tf32"
    dtype = {"bf16": torch.bfloat16, "fp16": torch.float16}.get(precision, torch.float32)
    return Setting(device, dtype, fused, args.warmup, args.repetitions)


def source_of(args: argparse.Namespace, setting: Setting, adam: float) -> str:
    if args.source:
        return args.source
    parts = [f"scripts/profile_gpu.py, PyTorch {torch.__version__}"]
    if setting.device.type == "cuda":
        runtime = f"CUDA {torch.version.cuda}" if torch.version.cuda else f"ROCm {torch.version.hip}"
        parts += [runtime, torch.cuda.get_device_name(setting.device)]
    parts += [f"median of {setting.repetitions}", "dropout off"]
    return ", ".join(parts) + f"; Adam {adam:.3g} ns a parameter ({ADAM_BYTES / adam:.4g} GB/s in fp32)"


def written(document: dict[str, Any]) -> str:
    """JSON with one row a line. Equal documents give equal text."""
    def inner(value: Any, indent: str) -> str:
        if isinstance(value, list) and value and isinstance(value[0], dict):
            lines = [f"{indent}  {inner(item, indent + '  ')}" for item in value]
            return "[\n" + ",\n".join(lines) + f"\n{indent}]"
        if isinstance(value, dict) and any(isinstance(v, list) for v in value.values()):
            lines = [f"{indent}  {json.dumps(key)}: {inner(v, indent + '  ')}" for key, v in value.items()]
            return "{\n" + ",\n".join(lines) + f"\n{indent}}}"
        return json.dumps(value)

    return inner(document, "") + "\n"


def save(text: str, path: str | None) -> None:
    if path is None or path == "-":
        sys.stdout.write(text)
        return
    temporary = Path(f"{path}.{os.getpid()}.tmp")
    temporary.write_text(text, encoding="utf-8")
    temporary.replace(path)
    note(f"wrote {path}")


def positive(text: str) -> int:
    if not text.isdigit() or int(text) == 0:
        raise argparse.ArgumentTypeError(f"\"{text}\" is no positive integer")
    return int(text)


def positives(text: str) -> list[int]:
    return sorted({positive(part) for part in text.split(",")})


def day(text: str) -> str:
    try:
        return datetime.date.fromisoformat(text).isoformat()
    except ValueError:
        raise argparse.ArgumentTypeError(f"\"{text}\" is not a date: write YYYY-MM-DD") from None


class Parser(argparse.ArgumentParser):
    examples = EXAMPLES

    def format_help(self) -> str:
        return self.examples + super().format_help()

    def error(self, message: str) -> NoReturn:
        print(f"{self.prog}: error: {message}\n  hint: see --help for examples", file=sys.stderr)
        raise SystemExit(64)


def arguments() -> argparse.Namespace:
    parser = Parser(prog="profile_gpu.py", description=__doc__, epilog=ABOUT, usage="profile_gpu.py [MODEL] [options]",
                    formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False)
    add = parser.add_argument
    add("model", nargs="?", type=Path, metavar="MODEL",
        help="Hugging Face config.json, tangram.model/1 or a launch plan; without it, the dimensions below")
    add("-o", "--output", metavar="FILE", help="default: stdout")
    what = parser.add_argument_group("what to measure")
    add = what.add_argument
    add("--seq", type=positives, metavar="N,...", help="sequence lengths; default: the model's, else 2048")
    add("--samples", type=positives, default=[1, 2, 4], metavar="N,...", help="samples of a microbatch; default 1,2,4")
    add("--tp", type=positives, default=[1], metavar="N,...", help="tensor-parallel degrees; default 1")
    add("--ep", type=positives, default=[1], metavar="N,...", help="expert-parallel degrees; default 1")
    add("--etp", type=positives, metavar="N,...", help="expert-tensor-parallel degrees; default: 1 and tp")
    add("--sequence-parallel", nargs="?", const="only", choices=["only", "both"],
        help="shards with tp > 1 split the residual stream as well; \"both\": measured with and without")
    add("--dtype", choices=["bf16", "fp16", "fp32", "tf32"],
        help="of the matrix products; default: the model's, else bf16 (cpu: fp32)")
    add("--attention", choices=["fused", "unfused"],
        help="F.scaled_dot_product_attention, or products and softmax; default: the model's, else fused")
    add("--no-edges", action="store_true", help="neither embedding nor head")
    by_hand = parser.add_argument_group("dimensions by hand")
    add = by_hand.add_argument
    for flag, text in (("hidden", "width"), ("heads", ""), ("kv-heads", "default: --heads"), ("head-dim", ""),
                       ("ffn", "feed-forward width"), ("experts", ""), ("experts-per-token", ""),
                       ("expert-ffn", "width of an expert"), ("shared-ffn", "width of the shared experts together"),
                       ("vocabulary", "without it neither embedding nor head is measured")):
        add(f"--{flag}", type=positive, metavar="N", help=text)
    add("--gated", action="store_true", help="SwiGLU, three matrices; else GELU")
    add("--norm", choices=["rmsnorm", "layernorm"], help="default: rmsnorm where gated")
    add("--bias", action="store_true", help="of all products")
    add("--qk-norm", action="store_true")
    add("--learned-positions", type=positive, default=0, metavar="N", help="a position table instead of rotation")
    how = parser.add_argument_group("how")
    add = how.add_argument
    add("--device", choices=["cuda", "cpu"], default="cuda")
    add("--gpu", metavar="NAME", help="the GPU type as Tangram calls it; default: from the driver's name")
    add("--repetitions", type=positive, default=20, metavar="N", help="default 20")
    add("--warmup", type=positive, default=5, metavar="N", help="default 5")
    add("--source", metavar="TEXT", help="default: this script, the software and how it measured")
    add("--date", type=day, metavar="YYYY-MM-DD", help="default: today")
    add("--dry-run", action="store_true", help="list what would be measured")
    return parser.parse_args()


def list_units(units: list[Unit], samples: list[int]) -> None:
    for unit in units:
        for degrees in unit.degrees:
            print(f"{unit.title}, {degrees}, samples {','.join(map(str, samples))}")
        if unit.block:
            print(f"  {json.dumps(unit.block.dimensions)}")


def precision_of(args: argparse.Namespace, model: Model) -> str:
    precision = args.dtype or model.training.get("precision") or ("fp32" if args.device == "cpu" else "bf16")
    if precision not in ("bf16", "fp16", "fp32", "tf32"):
        raise Problem(f"{precision} cannot be measured by this script", "give --dtype bf16, fp16, fp32 or tf32")
    return precision


def run(args: argparse.Namespace) -> int:
    fleet = Fleet.here()
    model = read_model(args.model) if args.model else model_by_hand(args)
    if args.no_edges:
        model.vocabulary = 0
    training = Section(model.training, f"{args.model}: \"training\"")
    units = list(units_of(args, model, args.seq or [training.integer("sequence_length", 2048)]))
    if args.dry_run:
        list_units(units, args.samples)
        return 0
    if args.output and not Path(args.output).resolve().parent.is_dir():
        raise Problem(f"{args.output}: no such folder", "", 64)
    precision = precision_of(args, model)
    fused = args.attention == "fused" if args.attention else bool(model.training.get("flash_attention", True))
    import_torch()
    device = device_here(args, fleet)
    gpu = gpu_name(args, device)
    setting = setting_of(args, device, precision, fused)
    curves = measure_collectives(setting, fleet) if fleet.world > 1 else []
    if fleet.rank > 0:
        return 0
    if fleet.world == 1 and device.type == "cuda" and torch.cuda.device_count() > 1:
        note(f"{torch.cuda.device_count()} GPUs are here: under torchrun their collectives are measured as well")
    measured = [measure_unit(setting, model, unit, args.samples, precision) for unit in units]
    measured = [unit for unit in measured if unit is not None]
    if not measured and not curves:
        raise Problem("nothing could be measured", "the notes above say why", 1)
    adam = adam_nanoseconds(setting)
    note(f"Adam: {adam:.3g} ns a parameter, {ADAM_BYTES / adam:.4g} GB/s")
    document = {"schema": "tangram.profile/1", "gpu": gpu, "source": source_of(args, setting, adam),
                "date": args.date or datetime.datetime.now(datetime.timezone.utc).date().isoformat(),
                "includes_tp_communication": False, "units": measured}
    if curves:
        document["collectives"] = curves
    save(written(document), args.output)
    return 0


def exit_status(work: Callable[[], int]) -> int:
    """Of the work, or of what stopped it."""
    try:
        return work()
    except Problem as problem:
        note(f"error: {problem}")
        if problem.hint:
            print(f"  hint: {problem.hint}", file=sys.stderr)
        return problem.status
    except OSError as error:
        note(f"error: {error.filename}: {error.strerror}" if error.filename else f"error: {error}")
        return 4
    except RuntimeError as error:  # of PyTorch or its drivers
        note(f"error: {error}")
        return 1
    except KeyboardInterrupt:
        return 130


if __name__ == "__main__":
    sys.exit(exit_status(lambda: run(arguments())))
