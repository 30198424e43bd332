"""Low-rank adapters as a folder that Hugging Face's PEFT loads."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

import torch

from .config import read_json
from .encoders import Json
from .errors import PlanError
from .files import PathLike
from .hugging_face import Piece, fill
from .launch_plan import Model
from .safetensors import create
from .tensor_names import Source, names_of, sources_of
from .weights import ADAPTER_IN, ADAPTER_OUT, Weight, weights_of_model

FILE, CONFIG = "adapter_model.safetensors", "adapter_config.json"
PREFIX = "base_model.model."  # of the module that PEFT puts around a model
THEIRS = {ADAPTER_IN: ".lora_A.weight", ADAPTER_OUT: ".lora_B.weight"}


def export_adapters(folder: PathLike, model: Model, config: PathLike, pieces: Iterable[Piece],
                    dtype: torch.dtype = torch.bfloat16) -> None:
    """Writes the adapters of a model and what PEFT has to know of them; `config` is the config.json of the model, and
    pieces are as for hugging_face.export_to."""
    folder = Path(folder)
    described = read_json(config)
    weights = [weight for weight in weights_of_model(model) if weight.of_adapter]
    sources = _sources(model, described, weights)
    folder.mkdir(parents=True, exist_ok=True)
    if (folder / FILE).exists():
        raise PlanError(f"{folder} has {FILE} already: give an empty folder")
    file = create(folder / FILE, {source.tensor: (dtype, source.shape) for source in sources.values()})
    fill(folder, {source.tensor: file for source in sources.values()}, sources, weights, pieces)
    text = json.dumps(_config(model, sources), indent=2) + "\n"
    (folder / CONFIG).write_text(text, encoding="utf-8")


def _sources(model: Model, config: Json, weights: list[Weight]) -> dict[str, Source]:
    names = names_of(config.get("model_type"))
    if names.fused or names.transposed:
        raise PlanError(f"adapters of model_type {config['model_type']} cannot be written for PEFT: it has queries, keys "
                        "and values in one matrix")
    matrices = sources_of(model, config)
    sources = {}
    for weight in weights:
        ending = ADAPTER_IN if weight.name.endswith(ADAPTER_IN) else ADAPTER_OUT
        module = _module(matrices[weight.name[:-len(ending)]])
        sources[weight.name] = Source(PREFIX + module + THEIRS[ending], weight.shape, (range(weight.shape[0]),), False)
    return sources


def _module(matrix: Source) -> str:
    return matrix.tensor[:-len(".weight")]


def _config(model: Model, sources: dict[str, Source]) -> Json:
    """Beside routed experts, which have none, modules are named whole: the ends of their names are alike."""
    assert model.adapters is not None
    modules = {source.tensor[len(PREFIX):source.tensor.rindex(".lora_")] for source in sources.values()}
    if not any(block.feed_forward.experts for block in model.blocks):
        modules = {module.rsplit(".", 1)[-1] for module in modules}
    return {"peft_type": "LORA", "task_type": "CAUSAL_LM", "base_model_name_or_path": None, "r": model.adapters.rank,
            "lora_alpha": model.adapters.alpha, "lora_dropout": 0.0, "target_modules": sorted(modules), "bias": "none",
            "fan_in_fan_out": False, "inference_mode": True}
