"""Encoders in front of a language model, and what of them crosses a cut of the chain of blocks. Nothing here needs
PyTorch.

A sample has some items (images, clips), or none. An encoder works on items one by one: the embedding of their tokens,
its blocks, its connector. What comes out takes the places of the item's tokens in the sequence of the language model.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Optional

from .errors import PlanError

Json = dict[str, Any]

TEXT = ""  # what the language model works on, before its first block the embedded tokens: no encoder is called so
CONNECTORS = ("mlp", "merger", "pool")


@dataclass(frozen=True)
class Connector:
    """Linear layers with GELU between them, behind a norm where there is one."""

    kind: str  # of CONNECTORS
    widths: tuple[int, ...]  # of the layers, input first
    bias: bool
    norm: int  # width of the norm; 0: there is none
    norm_bias: bool
    trained: bool

    def norms_merged(self, hidden: int) -> bool:
        """Whether the norm stands behind the merge of tokens, which were `hidden` wide; else in front of it."""
        return self.kind != "merger" or self.norm != hidden

    def splits_rows(self, layer: int) -> bool:
        """Whether tensor parallelism splits the layer by rows, as another one follows that it splits by columns."""
        return layer % 2 == 0 and layer + 2 < len(self.widths)


@dataclass(frozen=True)
class ItemCounts:
    """Of samples, as far as the model file says it."""

    mean: float = 1.0
    most: int = 0  # 0: not said
    none: float = 0.0  # share of samples without any


@dataclass(frozen=True)
class Encoder:
    name: str
    blocks: range  # of the model
    hidden: int
    tokens_in: int  # of an item
    tokens_out: int
    patch_width: int  # values of a token that its embedding reads; 0: tokens come as they enter the first block
    trained: bool
    connector: Optional[Connector]
    counts: ItemCounts

    @property
    def merged(self) -> int:
        """Tokens that become one."""
        if self.connector is None or self.connector.kind == "mlp":
            return 1
        if self.connector.kind == "pool":
            return self.tokens_in // self.tokens_out
        return self.connector.widths[0] // self.hidden

    @property
    def first_token(self) -> int:
        """That goes on; those before it (a class token) do not."""
        return self.tokens_in - self.merged * self.tokens_out

    @property
    def learned_positions(self) -> int:
        """Positions that its embedding can learn beside what it reads of a token; 0: rotary ones."""
        return self.tokens_in if self.patch_width > self.tokens_in else 0

    @property
    def values(self) -> int:
        """Of a token, at most."""
        return self.patch_width - self.learned_positions or self.hidden

    def can_read(self, values: int) -> bool:
        """Columns that are left over are positions, where it learns them."""
        return 0 < values <= self.values if self.learned_positions else values == self.values

    @property
    def passes_gradients(self) -> bool:
        """Whether what comes out needs a gradient."""
        return self.trained or (self.connector is not None and self.connector.trained)


@dataclass(frozen=True)
class Stream:
    """An activation on its way through the chain: of samples, or of the items of an encoder."""

    name: str  # TEXT, or of an encoder
    positions: int
    width: int
    gradients: bool


def read_encoders(model: str, architecture: Json, data: Json, widths: list[int]) -> tuple[Encoder, ...]:
    """`widths`: of the blocks. Raises PlanError where the model has what this runtime has not."""
    encoders: list[Encoder] = []
    first = patches = 0
    for module in architecture.get("modules", []):
        name, count = module["name"], module["blocks"]
        if module["kind"] == "generator":
            raise PlanError(f"{model} has a generator, {name}: encoders and a language model are trained")
        if module["kind"] == "encoder":
            encoders.append(_encoder(module, range(first, first + count), widths[first], data.get(name, {})))
            patches += module["patch_parameters"]
        first += count
    for edge in architecture.get("edges", []):
        _refuse_edge(edge, {e.name for e in encoders})
    for encoder in encoders:
        if encoder.connector is None and (encoder.hidden, encoder.tokens_in) != (architecture["hidden"], encoder.tokens_out):
            raise PlanError(f"{encoder.name} has no connector, which its width and its tokens ask for: give it one in the "
                            "model file")
    if architecture["extra_embedding_parameters"] != patches:
        raise PlanError(f"{model} has parameters in front of its blocks that belong to no module: give encoders "
                        "patch_parameters and a connector in the model file")
    return tuple(encoders)


def _encoder(module: Json, blocks: range, hidden: int, items: Json) -> Encoder:
    name, parameters = module["name"], module["patch_parameters"]
    if parameters % hidden:
        raise PlanError(f"{name} has {parameters} patch parameters, which are no whole rows of its width {hidden}")
    connector = _connector(name, module["connector"]) if "connector" in module else None
    counts = ItemCounts(items.get("mean", 1.0), int(items.get("max", 0)), items.get("none", 0.0))
    return Encoder(name, blocks, hidden, module["tokens_in"], module["tokens_out"], parameters // hidden,
                   module["trainable"], connector, counts)


def _connector(name: str, c: Json) -> Connector:
    if c["kind"] not in CONNECTORS:
        raise PlanError(f"the connector of {name} is a {c['kind']}: {', '.join(CONNECTORS)} are trained")
    if c["extra_parameters"]:
        raise PlanError(f"the connector of {name} has parameters in no product, of which a model file does not say what "
                        "they do")
    return Connector(c["kind"], tuple(c["widths"]), c["bias"], c.get("norm_width", 0), c["norm"] == "layernorm",
                     c["trainable"])


def _refuse_edge(edge: Json, encoders: set[str]) -> None:
    if edge["to"] in encoders:
        raise PlanError(f"{edge['from']} feeds another encoder, {edge['to']}: encoders that feed the language model are "
                        "trained")
    if "into_layers" in edge:
        raise PlanError(f"{edge['from']} feeds inner layers of the language model: encoders that feed its first one are "
                        "trained")


def crossing(encoders: tuple[Encoder, ...], language: range, cut: int, text: Stream, trained: bool) -> list[Stream]:
    """What crosses the cut in front of block `cut`: until the language model begins its embedded tokens, the activation
    of an encoder that is cut, and what finished encoders made. `text`: the language model's, its gradients those of the
    embedded tokens; `trained`: whether anything of its blocks is."""
    if cut > language.start:
        return [Stream(TEXT, text.positions, text.width,
                       trained or any(encoder.passes_gradients for encoder in encoders))]
    streams = [text]
    for encoder in encoders:
        if encoder.blocks.start < cut < encoder.blocks.stop:
            streams.append(Stream(encoder.name, encoder.tokens_in, encoder.hidden, encoder.trained))
        elif encoder.blocks.stop <= cut:
            streams.append(Stream(encoder.name, encoder.tokens_out, text.width, encoder.passes_gradients))
    return streams


def rows_before(counts: list[int]) -> list[int]:
    """Of each sample the items of those before it, and at last all of them."""
    ends = [0]
    for count in counts:
        ends.append(ends[-1] + count)
    return ends
