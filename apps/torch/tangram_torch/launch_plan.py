"""The launch plan (tangram.launch_plan/1) as far as a run needs it: the model, and for every rank what it works on.

Goes in: the file that `tangram plan -o` wrote. Comes out: values. Ranges are half-open; samples of a transfer count from
the start of a microbatch, positions from the start of a sample.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Optional, Union

from .details import Details
from .encoders import TEXT, Encoder, Json, Stream, crossing, read_encoders
from .errors import PlanError

SCHEMA = "tangram.launch_plan/1"


@dataclass(frozen=True)
class Attention:
    heads: int
    kv_heads: int
    head_dim: int
    sliding_window: int  # positions that a query sees, its own among them; 0: all
    qkv_bias: bool
    output_bias: bool
    qk_norm: bool
    # Multi-head latent attention (arXiv 2405.04434); kv_lora_rank 0: there is none.
    q_lora_rank: int
    kv_lora_rank: int
    qk_nope_head_dim: int
    qk_rope_head_dim: int
    v_head_dim: int

    @property
    def latent(self) -> bool:
        return self.kv_lora_rank > 0


@dataclass(frozen=True)
class FeedForward:
    hidden: int  # of the dense part; 0: there is none
    gated: bool
    bias: bool
    experts: int
    experts_per_token: int
    expert_hidden: int
    shared_hidden: int
    shared_gate: bool
    router_bias: bool
    expert_groups: int  # experts are chosen from the best `groups_per_token` of so many groups
    groups_per_token: int


NOT_QUANTIZED, NF4, NF4_DOUBLE = "none", "nf4", "nf4-double"


@dataclass(frozen=True)
class Adapters:
    """Low-rank adapters (LoRA, arXiv 2106.09685) beside frozen matrices."""

    rank: int
    alpha: int
    targets: frozenset[str]  # as PEFT calls them for Llama
    base: str = NOT_QUANTIZED  # how the frozen matrices are held: nf4 and nf4-double are 4 bits

    @property
    def scale(self) -> float:
        return self.alpha / self.rank


@dataclass(frozen=True)
class BlockType:
    name: str
    hidden: int
    tokens: int  # of a sample, in the mean; 0: its positions
    causal: bool  # else tokens see those behind them, too
    attention: Attention
    feed_forward: FeedForward
    norms: int
    norm_bias: bool  # LayerNorm; else RMSNorm
    parallel_attention: bool


@dataclass(frozen=True)
class Model:
    name: str
    hidden: int
    vocabulary: int
    learned_positions: int  # 0: rotary positions
    embedding_projection: int  # width of the token embedding where it is not `hidden`; 0: it is
    tied: bool
    final_norm: bool
    final_norm_bias: bool
    blocks: tuple[BlockType, ...]  # of the encoders, then of the language model
    encoders: tuple[Encoder, ...] = ()
    trained: bool = True  # the language model, embedding and head
    adapters: Optional[Adapters] = None  # of the language model, which is not trained then
    details: Details = field(default_factory=Details)  # of the language model

    @property
    def language(self) -> range:
        return range(self.encoders[-1].blocks.stop if self.encoders else 0, len(self.blocks))

    def encoder_of(self, block: int) -> Optional[Encoder]:
        return next((encoder for encoder in self.encoders if block in encoder.blocks), None)

    def trains(self, block: int) -> bool:
        encoder = self.encoder_of(block)
        return self.trained if encoder is None else encoder.trained

    def crossing(self, cut: int, positions: int) -> list[Stream]:
        """What crosses the cut in front of a block; `positions`: of a sample."""
        text = Stream(TEXT, positions, self.hidden, self.trained)
        return crossing(self.encoders, self.language, cut, text, self.trained or self.adapters is not None)

    def adapters_of(self, block: int) -> Optional[Adapters]:
        return self.adapters if block in self.language else None


@dataclass(frozen=True)
class Training:
    sequence_length: int
    batch: int  # samples of an iteration
    precision: str
    optimizer: str
    exchanges_heads: bool = False  # over cp, for positions; else keys and values of all positions are gathered


@dataclass(frozen=True)
class Degrees:
    """Attention and dense matrices are split over tp x cp x dp = the ranks of the part, experts over etp x ep x edp."""

    tp: int
    cp: int
    dp: int
    ep: int
    etp: int
    sequence_parallel: bool
    dp_replicate: int = 1  # groups of neighbours inside which ZeRO shards

    @property
    def ranks(self) -> int:
        return self.tp * self.cp * self.dp

    @property
    def edp(self) -> int:
        return self.ranks // (self.ep * self.etp)

    @property
    def expert_replicate(self) -> int:
        return min(self.dp_replicate, self.edp)


@dataclass(frozen=True)
class BlockPolicy:
    zero: int
    recompute: str  # none, selective, full


@dataclass(frozen=True)
class Part:
    samples: int  # of a whole microbatch
    first_sample: int  # of the microbatch
    first_rank: int
    degrees: Degrees
    zero_of_ends: int
    policies: tuple[BlockPolicy, ...]  # of the stage's blocks, in the order of its chunks
    # Nanoseconds of a forward and a backward pass, and what of the latter are weight gradients that can be put off.
    times: tuple[int, int, int]
    peak_memory: int = 0  # bytes of a GPU, as predicted; 0: not said

    @property
    def ranks(self) -> range:
        return range(self.first_rank, self.first_rank + self.degrees.ranks)


@dataclass(frozen=True)
class Stage:
    id: int
    pipeline: int
    chunks: tuple[range, ...]  # blocks of the model
    embedding: bool
    head: bool
    warmup: int
    put_off: int  # microbatches beyond warmup + 1 that are held for their weight gradients, under zero bubble
    parts: tuple[Part, ...]

    @property
    def puts_off(self) -> bool:
        """Whether backward passes leave weight gradients for later. Without room for them they are whole."""
        return any(part.times[2] > 0 for part in self.parts)

    @property
    def blocks(self) -> list[int]:
        return [block for chunk in self.chunks for block in chunk]

    def begins_with(self, chunk: int) -> bool:
        """Whether the chunk has the embedding, and nothing in front of it."""
        return self.embedding and chunk == 0

    def ends_with(self, chunk: int) -> bool:
        """Whether the chunk has the head, and nothing behind it."""
        return self.head and chunk + 1 == len(self.chunks)


@dataclass(frozen=True)
class Transfer:
    """What one rank sends another for one microbatch in the forward direction; backward is the reverse. Positions count
    the tokens of the block in front of the boundary: inside an encoder as many as samples have in the mean."""

    source: int
    target: int
    samples: range
    positions: range


@dataclass(frozen=True)
class Pipeline:
    id: int
    first_sample: int  # of the batch
    samples: int
    microbatch: int
    microbatches: int
    stages: tuple[int, ...]

    def samples_of(self, index: int) -> int:
        """Of a microbatch; the last one may be smaller."""
        return min(self.microbatch, self.samples - index * self.microbatch)


@dataclass(frozen=True)
class Colocated:
    """Encoders on all ranks of the pipelines, in turn with the language model, whose blocks alone stages have."""

    each_microbatch: bool  # else once an iteration, in front of all passes and behind them
    parts: dict[str, Part]  # of each encoder: all ranks, as its lanes of tp each


@dataclass(frozen=True)
class Rank:
    """Coordinates follow from its number (topology.py)."""

    host: str
    gpu: str  # its type
    stage: int
    part: int


@dataclass(frozen=True)
class LaunchPlan:
    id: str
    model: Model
    training: Training
    group: int  # microbatches that take turns in the chunks of a stage; 0: one chunk a stage
    zero_bubble: bool  # weight gradients are put off
    pipelines: tuple[Pipeline, ...]
    stages: tuple[Stage, ...]
    boundaries: dict[tuple[int, int], tuple[Transfer, ...]]  # by the ids of the stages
    links: dict[tuple[int, int], tuple[int, int]]  # nanoseconds: latency of a transfer, and how long it takes the link
    ranks: tuple[Rank, ...]
    predicted_iteration: float  # seconds
    colocated: Optional[Colocated] = None

    @property
    def parts(self) -> list[Part]:
        return [part for stage in self.stages for part in stage.parts]

    def part_of(self, rank: int) -> Part:
        return self.stages[self.ranks[rank].stage].parts[self.ranks[rank].part]

    def with_details(self, details: Details) -> LaunchPlan:
        return replace(self, model=replace(self.model, details=details))


def read_plan(path: Union[str, Path]) -> LaunchPlan:
    """The plan of a file. Raises PlanError where it is none, or where the model is one that this runtime has not."""
    try:
        json_plan = json.loads(Path(path).read_text(encoding="utf-8"))
    except (OSError, ValueError) as reason:
        raise PlanError(f"{path}: {reason}") from reason
    if not isinstance(json_plan, dict) or json_plan.get("schema") != SCHEMA:
        raise PlanError(f"{path} is not a launch plan: its schema is not {SCHEMA}")
    try:
        return plan_of(json_plan)
    except (KeyError, IndexError, TypeError) as reason:
        raise PlanError(f"{path} is not a whole launch plan (tangram check tells more): {reason!r}") from reason


def plan_of(json_plan: Json) -> LaunchPlan:
    pipelines: list[Pipeline] = []
    for p in json_plan["pipelines"]:
        before = sum(other.samples for other in pipelines)
        pipelines.append(Pipeline(p["id"], before, p["samples"], p["microbatch"], p["num_microbatches"],
                                  tuple(p["stages"])))
    training = json_plan["model"]["training"]
    gpus = {island["id"]: island["gpu_type"] for island in json_plan["islands"]}
    schedule = json_plan["execution"].get("schedule", "1f1b")
    if schedule not in ("1f1b", "zero-bubble"):
        raise PlanError(f"the schedule {schedule} is not one that this runtime has: 1f1b, zero-bubble")
    zero_bubble = schedule == "zero-bubble"
    model = _model_of(json_plan["model"])
    first_block = model.language.start if "colocated" in json_plan else 0
    return LaunchPlan(
        id=json_plan["plan_id"],
        model=model,
        training=Training(training["sequence_length"], training["global_batch_samples"], training["precision"],
                          training["optimizer"]["name"], training.get("context_exchange") == "all-to-all"),
        group=json_plan["execution"].get("interleaving", {}).get("group", 0),
        pipelines=tuple(pipelines),
        zero_bubble=zero_bubble,
        stages=tuple(_stage_of(stage, first_block, zero_bubble) for stage in json_plan["stages"]),
        boundaries={(b["from"], b["to"]): tuple(_transfer_of(t) for t in b["transfers"])
                    for b in json_plan["boundaries"]},
        links={(b["from"], b["to"]): (_nanoseconds(b["latency_ms"]), _nanoseconds(b["occupancy_ms"]))
               for b in json_plan["boundaries"]} if zero_bubble else {},
        ranks=tuple(Rank(r["host"], gpus[r["island"]], r["stage"], r["part"]) for r in json_plan["ranks"]),
        predicted_iteration=json_plan["predicted"]["iteration_s"],
        colocated=_colocated_of(json_plan["colocated"], model, len(json_plan["ranks"])) if first_block else None,
    )


def _model_of(json_model: Json) -> Model:
    a = json_model["architecture"]
    types = {t["name"]: _block_type_of(t) for t in a["types"]}
    blocks = [types[run["type"]] for run in a["blocks"] for _ in range(run["count"])]
    encoders = read_encoders(json_model["name"], a, json_model.get("data", {}), [block.hidden for block in blocks])
    language: Json = next((m for m in a.get("modules", []) if m["kind"] == "language"), {})
    model = Model(json_model["name"], a["hidden"], a["vocabulary"], a["learned_positions"],
                  a.get("embedding_projection", 0), a["tied_embeddings"], a["final_norm"], a["norm"] == "layernorm",
                  tuple(blocks), encoders, language.get("trainable", True), _adapters_of(language))
    for block in blocks[model.language.start:]:
        if not block.causal or block.hidden != model.hidden:
            raise PlanError(f"blocks of type {block.name} are an encoder's, of which the model file says no more: give it "
                            "tokens_in and a connector")
    return model


def _adapters_of(module: Json) -> Optional[Adapters]:
    lora = module.get("lora")
    if lora is None:
        return None
    base = lora.get("base_quantization", NOT_QUANTIZED)
    if base not in (NOT_QUANTIZED, NF4, NF4_DOUBLE):
        raise PlanError(f'frozen weights held as "{base}": {NOT_QUANTIZED}, {NF4} and {NF4_DOUBLE} are known')
    return Adapters(lora["r"], lora["lora_alpha"], frozenset(lora["target_modules"]), base)


def _refuse_hybrid(t: Json) -> None:
    """Layers that are not a transformer's, by the keys that say so."""
    for key in ("mamba2", "gated_delta", "only", "output_gate"):
        if key in t:
            raise PlanError(f'blocks of type {t["name"]} have "{key}": transformer layers alone are trained')
    if t.get("moe", {}).get("latent_hidden", 0) > 0:
        raise PlanError(f'experts of type {t["name"]} have "latent_hidden": those as wide as it alone are trained')


def _block_type_of(t: Json) -> BlockType:
    _refuse_hybrid(t)
    none = dict.fromkeys(("q_lora_rank", "kv_lora_rank", "qk_nope_head_dim", "qk_rope_head_dim", "v_head_dim"), 0)
    attention = Attention(t["heads"], t.get("kv_heads", t["heads"]), t.get("head_dim", 0), t["sliding_window"],
                          t["qkv_bias"], t["output_bias"], t.get("qk_norm", False), **{**none, **t.get("mla", {})})
    dense: Json = {"experts": 0, "experts_per_token": 0, "expert_hidden": 0, "shared_hidden": 0,
                   "shared_gate": False, "router_bias": False, "expert_groups": 1, "groups_per_token": 1}
    feed_forward = FeedForward(t.get("ffn_hidden", 0), t["gated"], t["ffn_bias"], **{**dense, **t.get("moe", {})})
    return BlockType(t["name"], t["hidden"], t.get("tokens", 0), t["causal"], attention, feed_forward,
                     t["norms_per_block"], t["norm"] == "layernorm", t["parallel_attention"])


def _nanoseconds(milliseconds: float) -> int:
    return round(1e6 * milliseconds)


def _times_of(predicted: Json) -> tuple[int, int, int]:
    forward, backward, weight = (_nanoseconds(predicted[key])
                                 for key in ("forward_ms", "backward_ms", "weight_gradient_ms"))
    return forward, backward, weight


def _colocated_of(c: Json, model: Model, ranks: int) -> Colocated:
    parts = {}
    for e in c["encoders"]:
        encoder = next(encoder for encoder in model.encoders if encoder.name == e["module"])
        zero = int(e["zero1"])
        parts[encoder.name] = Part(0, 0, 0, Degrees(e["tp"], 1, ranks // e["tp"], 1, 1, e["sequence_parallel"]), zero,
                                   (BlockPolicy(zero, e["recompute"]),) * len(encoder.blocks), (0, 0, 0))
    return Colocated(c["turns"] == "per-microbatch", parts)


def _stage_of(s: Json, first_block: int, zero_bubble: bool) -> Stage:
    """Blocks count from `first_block` of the model."""
    chunks = tuple(range(first_block + chunk[0], first_block + chunk[1])
                   for chunk in (s["chunks"] if "chunks" in s else [s["blocks"]]))
    parts: list[Part] = []
    for p in s["parts"]:
        degrees = p["parallel"]
        parts.append(Part(
            p["samples"], sum(other.samples for other in parts), p["ranks"]["first"],
            Degrees(degrees["tp"], degrees["cp"], degrees["dp"], degrees["ep"], degrees["etp"],
                    degrees["sequence_parallel"], degrees.get("dp_replicate", 1)),
            p["zero"], tuple(_policies_of(p, chunks)), _times_of(p["predicted"]) if zero_bubble else (0, 0, 0),
            p.get("predicted", {}).get("peak_memory_bytes", 0)))
    return Stage(s["id"], s["pipeline"], chunks, s["embedding"], s["head"], s["schedule"]["warmup"],
                 s["schedule"].get("put_off", 0), tuple(parts))


def _policies_of(part: Json, chunks: tuple[range, ...]) -> list[BlockPolicy]:
    runs = part.get("block_runs")
    if runs is not None:
        return [BlockPolicy(run["zero"], run["recompute"]) for run in runs for _ in range(run["blocks"])]
    granularity, layers = part["recompute"]["granularity"], part["recompute"]["layers"]
    policies = []
    for chunk in chunks:
        for i in range(len(chunk)):
            recomputed = granularity != "full" or i < layers
            policies.append(BlockPolicy(part["zero"], granularity if recomputed else "none"))
    return policies


def _transfer_of(t: Json) -> Transfer:
    return Transfer(t["src"], t["dst"], range(*t["samples"]), range(*t["seq"]))
