"""The fleets and models that benchmarks grow on: nodes of 8 GPUs, each type in a hall of its own, halls joined by 400
Gbit/s."""
from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from all_pairs import ROOT

# Network cards of a node and Gbit/s of each, as the vendors' reference nodes have them (DGX V100, A100, H100, H200, B200).
NETWORKS = {
    "V100-32GB-SXM": (4, 100, "infiniband"),
    "A100-40GB-SXM": (8, 200, "infiniband"),
    "A100-80GB-SXM": (8, 200, "infiniband"),
    "H100-80GB-SXM": (8, 400, "infiniband"),
    "H200-141GB-SXM": (8, 400, "infiniband"),
    "B200-180GB-SXM": (8, 400, "infiniband"),
    "L40S": (2, 200, "roce"),
    "T4": (1, 50, "ethernet"),
}
TYPES = ("H100-80GB-SXM", "A100-80GB-SXM", "V100-32GB-SXM", "H200-141GB-SXM", "A100-40GB-SXM", "B200-180GB-SXM", "L40S", "T4")


@dataclass
class Case:
    name: str
    nodes: dict[str, int]  # by GPU type, 8 GPUs each
    model: Path | dict[str, Any]
    most_seconds: float = math.inf
    most_gap: float = math.inf
    most_relaxed_gap: float = math.inf
    most_mib: float = math.inf

    @property
    def gpus(self) -> int:
        return 8 * sum(self.nodes.values())


def gpt(layers: int, hidden: int = 4096) -> dict[str, Any]:
    """A GPT-3 of these layers."""
    return {
        "schema": "tangram.model/1",
        "name": f"gpt-{layers}",
        "architecture": {
            "vocabulary": 50272, "hidden": hidden, "layers": layers, "heads": hidden // 128, "ffn_hidden": 4 * hidden,
            "gated": False, "norm": "layernorm", "qkv_bias": True, "output_bias": True, "ffn_bias": True,
            "learned_positions": 2048, "tied_embeddings": True,
        },
        "training": {"sequence_length": 2048, "global_batch_samples": 128, "precision": "fp16"},
    }


def shipped(name: str) -> Path:
    return ROOT / "configs" / "models" / f"{name}.yaml"


def cases() -> list[Case]:
    h100, a100, v100, h200, a40, b200, l40s, t4 = TYPES
    return [
        Case("64", {h100: 4, a100: 4}, gpt(34), 0.3, 0),
        Case("144", {a100: 6, v100: 6, a40: 6}, gpt(26), 0.5, 0),
        Case("512", {h100: 24, a100: 24, v100: 16}, shipped("llama-3-70b"), 1, 0.03),
        Case("2048", {h100: 96, h200: 64, a100: 64, a40: 32}, shipped("deepseek-v3"), 5, 0.03),
        Case("16384", {h100: 768, h200: 256, b200: 128, a100: 384, a40: 256, v100: 128, l40s: 64, t4: 64},
             shipped("llama-3.1-405b"), 10, math.inf, 0.20, 1024),
    ]


def fleet_of(case: Case) -> dict[str, Any]:
    nodes = []
    for gpu, count in case.nodes.items():
        hall = gpu.lower().replace("-", "")
        cards, gigabits, kind = NETWORKS[gpu]
        nodes.append({
            "name": f"{hall}-[{1:04d}-{count:04d}]",
            "gpus": [{"type": gpu, "count": 8}],
            "network": {"cards": cards, "bandwidth_gbit_s": gigabits, "kind": kind},
            "labels": {"hall": hall},
        })
    return {"schema": "tangram.cluster/1", "name": f"scale-{case.gpus}", "nodes": nodes,
            "links": [{"between": "hall", "bandwidth_gbit_s": 400, "latency_us": 12}]}
