"""What units took, as `tangram calibrate` reads it (tangram.timings/1): a header and a line for each unit and step."""

from __future__ import annotations

import json
import os
from collections import defaultdict
from pathlib import Path
from typing import Any

from .launch_plan import LaunchPlan
from .recorder import Span

SCHEMA = "tangram.timings/1"


class TimingsFile:
    """Of one rank, in a folder. Lines are whole whenever the run ends."""

    def __init__(self, folder: str, plan_path: str, plan: LaunchPlan, rank: int) -> None:
        os.makedirs(folder, exist_ok=True)
        self._path = Path(folder) / f"rank-{rank:05}.jsonl"
        self._plan = plan
        self._rank = rank
        record = json.loads(Path(plan_path).read_text(encoding="utf-8"))
        training, architecture = record["model"]["training"], record["model"]["architecture"]
        self._write([{"schema": SCHEMA, "plan": plan.id, "runtime": "tangram_torch", "precision": training["precision"],
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
        for kind in ("forward", "backward"):
            row[kind + "_ms"] = round(1000 * sum(kinds[kind]) / len(kinds[kind]), 6)
        return row

    def _write(self, rows: list[dict[str, Any]], mode: str) -> None:
        with open(self._path, mode, encoding="utf-8") as file:
            file.writelines(json.dumps(row) + "\n" for row in rows)
