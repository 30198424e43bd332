"""What units took, as `tangram calibrate` reads it (tangram.timings/1): a header and a line for each unit and step."""

from __future__ import annotations

import json
import math
import os
from collections import defaultdict
from pathlib import Path
from typing import Any

from .launch_plan import LaunchPlan, Model
from .recorder import Span
from .schedule import Kind
from .topology import place_of
from .weights import weights_of_block

SCHEMA = "tangram.timings/1"


def forward_flops(model: Model, unit: str, positions: int) -> float:
    """Of a token: products with the weights that it meets, and half of the scores with all positions."""
    if not unit.startswith("blocks."):
        return 0.0 if unit == "embedding" else 2.0 * model.hidden * model.vocabulary
    index = int(unit.split(".")[1])
    block = model.blocks[index]
    met = block.feed_forward.experts_per_token / max(1, block.feed_forward.experts)
    weights = sum(math.prod(w.shape) * (1.0 if w.expert is None else met) for w in weights_of_block(model, index))
    a = block.attention
    width = a.v_head_dim + a.qk_nope_head_dim + a.qk_rope_head_dim if a.latent else 2 * a.head_dim
    return 2.0 * weights + a.heads * width * positions


def _factor(kind: Kind, unit: str, again: bool, puts_off: bool) -> float:
    """Forward passes that a pass is worth: a backward pass is two, and one more where the forward pass is run again.
    Blocks may put one of them off."""
    put_off = puts_off and unit.startswith("blocks.")
    if kind is Kind.WEIGHT:
        return 1.0 if put_off else 0.0
    return 1.0 if kind is Kind.FORWARD else 2.0 + again - put_off


def spans_of_units(plan: LaunchPlan, rank: int, spans: list[Span], slowdown: float) -> list[Span]:
    """Passes of an emulation shared out among their units by FLOPs, in times of the plan."""
    stage, place = plan.stages[plan.ranks[rank].stage], place_of(plan, rank)
    pipeline = plan.pipelines[stage.pipeline]
    again = {f"blocks.{block}" for block, policy in zip(stage.blocks, place.part.policies)
             if policy.recompute == "full"}
    made = []
    kinds = {kind.value: kind for kind in Kind}
    for span in (s for s in spans if s.kind in kinds):
        chunk = span.detail["chunk"]
        units = [f"blocks.{block}" for block in stage.chunks[chunk]]
        if stage.ends_with(chunk):
            units.append("head")
        factors = [_factor(kinds[span.kind], unit, unit in again, stage.puts_off) for unit in units]
        flops = [factor * forward_flops(plan.model, unit, plan.training.sequence_length)
                 for factor, unit in zip(factors, units)]
        samples = len(place.samples(pipeline.samples_of(int(span.name))))
        seconds = (span.end - span.start) / slowdown
        made += [Span(span.kind, unit, {"unit": unit, "samples": samples}, span.start,
                      span.start + seconds * share / sum(flops)) for unit, share in zip(units, flops)]
    return made


class TimingsFile:
    """Of one rank, in a folder. Lines are whole whenever the run ends."""

    def __init__(self, folder: str, plan_path: str, plan: LaunchPlan, rank: int,
                 runtime: str = "tangram_torch") -> None:
        os.makedirs(folder, exist_ok=True)
        self._path = Path(folder) / f"rank-{rank:05}.jsonl"
        self._plan = plan
        self._rank = rank
        record = json.loads(Path(plan_path).read_text(encoding="utf-8"))
        training, architecture = record["model"]["training"], record["model"]["architecture"]
        self._write([{"schema": SCHEMA, "plan": plan.id, "runtime": runtime, "precision": training["precision"],
                      "flash_attention": training["flash_attention"], "sequence_length": training["sequence_length"],
                      "vocabulary": architecture["vocabulary"], "hidden": architecture["hidden"],
                      "includes_tp_communication": True, "types": architecture["types"]}], "w")
        self._types = [run["type"] for run in architecture["blocks"] for _ in range(run["count"])]

    def add(self, step: int, spans: list[Span]) -> None:
        """Of the microbatches of a step, which are whole alike, the mean."""
        seconds: dict[tuple[str, int], dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
        for span in spans:
            if "unit" in span.detail and span.detail["samples"] > 0:
                seconds[span.name, span.detail["samples"]][span.kind].append(span.end - span.start)
        self._write([self._row(step, name, samples, kinds) for (name, samples), kinds in seconds.items()
                     if kinds["forward"] and kinds["backward"]], "a")

    def _row(self, step: int, name: str, samples: int, kinds: dict[str, list[float]]) -> dict[str, Any]:
        part = self._plan.part_of(self._rank)
        d = part.degrees
        row: dict[str, Any] = {"step": step, "rank": self._rank, "gpu": self._plan.ranks[self._rank].gpu,
                               "unit": "block" if name.startswith("blocks.") else name}
        recompute = "none"
        if name.startswith("blocks."):
            block = int(name.split(".")[1])
            row["type"] = self._types[block]
            stage = self._plan.stages[self._plan.ranks[self._rank].stage]
            recompute = part.policies[stage.blocks.index(block)].recompute
        row.update({"samples": samples, "tp": d.tp, "cp": d.cp, "ep": d.ep, "etp": d.etp,
                    "sequence_parallel": d.sequence_parallel, "recompute": recompute})
        mean = {kind: sum(seconds) / len(seconds) for kind, seconds in kinds.items() if seconds}
        row["forward_ms"] = round(1000 * mean["forward"], 6)
        row["backward_ms"] = round(1000 * (mean["backward"] + mean.get(Kind.WEIGHT.value, 0.0)), 6)
        return row

    def _write(self, rows: list[dict[str, Any]], mode: str) -> None:
        with open(self._path, mode, encoding="utf-8") as file:
            file.writelines(json.dumps(row) + "\n" for row in rows)
