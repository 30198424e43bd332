"""Checkpoints of Hugging Face, in and out."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import torch
from torch import Tensor

from .config import read_json
from .encoders import Json
from .errors import PlanError
from .files import PathLike, bytes_of
from .initial import Initial, drawn
from .launch_plan import Model
from .safetensors import File, Layout, create
from .tensor_names import Names, Ranges, Source, listed, names_of, sources_of
from .weights import ROUTER_CORRECTION, Held, Weight, weights_of_model

CONFIG, ONE_FILE, INDEX = "config.json", "model.safetensors", "model.safetensors.index.json"
SHARD_BYTES = 5_000_000_000  # of a file that export writes, as save_pretrained of transformers had it up to 4


def initial_from(folder: PathLike, model: Model, seed: int = 0) -> Initial:
    """Weights of a checkpoint, adapters as `seed` draws them. Raises PlanError where it has not just what the model has
    beside its adapters."""
    config = read_json(Path(folder) / CONFIG)
    sources = sources_of(model, config)
    names = names_of(config["model_type"])
    files = _files_of(Path(folder))
    # Files of a model without its head call their tensors so, too, but without the base.
    base = "" if any(name.startswith(names.base) for name in files) else names.base
    theirs = {s.tensor: s.tensor[len(base):] if s.tensor.startswith(base) else s.tensor for s in sources.values()}
    _compare(Path(folder), files, sources, theirs, names, model, config)

    adapters = drawn(model, seed)

    def value(held: Held) -> Tensor:
        if held.weight.of_adapter:
            return adapters(held)
        source = sources[held.name]
        name = theirs[source.tensor]
        return torch.cat(source.views(files[name].tensor(name), held.ranges))

    return value


def _files_of(folder: Path) -> dict[str, File]:
    """By the name of a tensor."""
    if (folder / ONE_FILE).exists():
        file = File(folder / ONE_FILE)
        return {name: file for name in file.names}
    if not (folder / INDEX).exists():
        raise PlanError(f"{folder} has neither {ONE_FILE} nor {INDEX}: weights of other formats have to be saved as "
                        "safetensors first")
    parts = read_json(folder / INDEX).get("weight_map")
    if not isinstance(parts, dict):
        raise PlanError(f"{folder / INDEX} has no weight_map")
    opened = {part: File(folder / part) for part in sorted(set(parts.values()))}
    absent = [name for name, part in parts.items() if name not in opened[part].names]
    if absent:
        raise PlanError(f"{folder / INDEX} names tensors that their files do not have: {listed(absent)}")
    return {name: opened[part] for name, part in parts.items()}


def _compare(folder: Path, files: dict[str, File], sources: dict[str, Source], theirs: dict[str, str], names: Names,
             model: Model, config: Json) -> None:
    missing = [name for name in theirs.values() if name not in files]
    if missing:
        raise PlanError(f"{folder} has no {listed(missing)}, which the model of the plan has: is it that of {CONFIG}?")
    for source in sources.values():
        name = theirs[source.tensor]
        shape = files[name].shape(name)
        if shape != source.shape:
            raise PlanError(f"{files[name].path}: {name} has the shape {list(shape)}, and {list(source.shape)} in the "
                            "model of the plan")
    ignored = [names.buffers]
    if model.tied:
        ignored.append("^" + re.escape(names.ends["head.output"]) + r"\.weight$")
    for extra in range(config.get("num_nextn_predict_layers") or 0):  # they predict further tokens
        ignored.append("^" + re.escape(names.block.format(len(model.blocks) + extra)))
    used = set(theirs.values())
    left = [name for name in files if name not in used and not any(re.search(pattern, name) for pattern in ignored)]
    if left:
        raise PlanError(f"{folder} has {listed(left)}, which the model of the plan has not: is it that of {CONFIG}?")


# Out

Piece = tuple[str, Ranges, Tensor]  # of a weight by its name: a slice, and its value


def boxes(ranges: Ranges, first: int, values: Tensor) -> Iterator[tuple[Ranges, Tensor]]:
    """Elements from `first` on of a slice that is laid out flat, as slices: what is left of a row, whole rows, and the
    beginning of the last."""
    rows, columns = ranges if len(ranges) == 2 else (range(1), ranges[0])
    while len(values) > 0:
        row, column = divmod(first, len(columns))
        count = min(len(columns) - column, len(values))
        if count == len(columns):
            count = len(values) // count * count
        box = (rows[row:row + max(1, count // len(columns))], columns[column:column + count])
        own = values[:count].view(len(box[0]), len(box[1]))
        yield (box, own) if len(ranges) == 2 else (box[1:], own[0])
        first, values = first + count, values[count:]


def export_to(folder: PathLike, model: Model, config: PathLike, pieces: Iterable[Piece],
              dtype: torch.dtype = torch.bfloat16, shard_bytes: int = SHARD_BYTES) -> None:
    """Writes a folder that transformers can load: a copy of the file `config`, and all weights by the names of
    weights_of_model. Pieces come in any order and go straight to their place on the disk; those of a weight are equal
    or disjoint, and together all of it."""
    folder = Path(folder)
    sources = sources_of(model, read_json(config))
    folder.mkdir(parents=True, exist_ok=True)
    if any(folder.glob("*.safetensors")):
        raise PlanError(f"{folder} has files of a checkpoint already: give an empty folder")
    # Corrections move in steps that bf16 has not.
    layouts: dict[str, Layout] = {
        s.tensor: (torch.float32 if name.endswith(ROUTER_CORRECTION) else dtype, s.shape)
        for name, s in sources.items()}
    files = _create_shards(folder, layouts, shard_bytes)
    fill(folder, files, sources, [w for w in weights_of_model(model) if w.name in sources], pieces)
    (folder / CONFIG).write_bytes(Path(config).read_bytes())


def fill(folder: Path, files: Mapping[str, File], sources: Mapping[str, Source], weights: Sequence[Weight],
         pieces: Iterable[Piece]) -> None:
    """Puts pieces of weights where `sources` say; pieces of others are left out. `files`: by the name of a tensor."""
    come: dict[str, set[Ranges]] = {weight.name: set() for weight in weights}
    for name, ranges, value in pieces:
        if name in come and ranges not in come[name]:
            come[name].add(ranges)
            views = sources[name].views(files[sources[name].tensor].tensor(sources[name].tensor), ranges)
            for view, part in zip(views, value.split([len(view) for view in views])):
                view.copy_(part)
    for weight in weights:
        elements = sum(math.prod(len(r) for r in ranges) for ranges in come[weight.name])
        if elements != math.prod(weight.shape):
            raise PlanError(f"{folder} is no whole checkpoint: of {weight.name}, {elements} of "
                            f"{math.prod(weight.shape)} elements came")
    for file in set(files.values()):
        file.flush()


def _create_shards(folder: Path, layouts: dict[str, Layout], shard_bytes: int) -> dict[str, File]:
    """By the name of a tensor."""
    shards: list[list[str]] = [[]]
    held = 0
    for name, layout in layouts.items():
        if shards[-1] and held + bytes_of(*layout) > shard_bytes:
            shards.append([])
            held = 0
        shards[-1].append(name)
        held += bytes_of(*layout)
    count = len(shards)
    paths = [f"model-{i + 1:05}-of-{count:05}.safetensors" if count > 1 else ONE_FILE for i in range(count)]
    if count > 1:
        index = {"metadata": {"total_size": sum(bytes_of(*layout) for layout in layouts.values())},
                 "weight_map": {name: path for path, shard in zip(paths, shards) for name in shard}}
        (folder / INDEX).write_text(json.dumps(index, indent=2) + "\n", encoding="utf-8")
    files: dict[str, File] = {}
    for path, shard in zip(paths, shards):
        file = create(folder / path, {name: layouts[name] for name in shard})
        files.update((name, file) for name in shard)
    return files
