#!/usr/bin/env python3
"""What somebody in search of a cheap plan tries first is never cheaper than `plan --objective cost`: no row of
`--pareto 12`, no GPU type alone, no two types alone. Nor do fewer GPUs than `plan --objective gpus` says reach a row's
throughput.

    cheapest_test.py BINARY CONFIGS [FLEET:MODEL...]     without pairs: two small ones, at one microbatch
"""
import itertools
import json
import subprocess
import sys
from pathlib import Path

BINARY, CONFIGS = sys.argv[1], Path(sys.argv[2])
PAIRS = sys.argv[3:] or ["amp:gpt2-medium", "azure-mixed:gpt2-medium"]
JOB = [] if sys.argv[3:] else ["--microbatch", "16"]
ROUNDING = 1e-9
UNFINISHED = 6


def plan(pair, *words, codes=(0, UNFINISHED)):
    fleet, model = pair.split(":")
    command = [BINARY, "plan", CONFIGS / "clusters" / f"{fleet}.json", CONFIGS / "models" / f"{model}.yaml", "-q",
               "--json", *JOB, *words]
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, check=False,
                          env={"TANGRAM_CACHE": "off"})
    assert done.returncode in codes, (command, done.returncode, done.stderr)
    return json.loads(done.stdout)


def cost(document):
    return document["predicted"]["cost_per_mtoken"] if "predicted" in document else float("inf")


def gpu_types(pair):
    path = CONFIGS / "clusters" / f"{pair.split(':')[0]}.json"
    lines = [line for line in path.read_text().splitlines() if not line.lstrip().startswith("//")]
    nodes = json.loads("\n".join(lines))["nodes"]
    return sorted({group["type"] for node in nodes for group in node["gpus"]})


def only(pair, types):
    return [word for other in gpu_types(pair) if other not in types for word in ("--drop", f"gpu={other}")]


def alone(pair, how_many):
    """The cheapest plan of so many GPU types, and the types."""
    found = []
    for types in itertools.combinations(gpu_types(pair), how_many):
        if len(types) < len(gpu_types(pair)):
            found.append((cost(plan(pair, "--objective", "cost", *only(pair, types), codes=(0, 3, UNFINISHED))), types))
    return min(found, default=(float("inf"), ()))


def judge(pair):
    cheapest = cost(plan(pair, "--objective", "cost"))
    rows = plan(pair, "--pareto", "12")["choices"]
    row = min(rows, key=lambda choice: choice["cost_per_mtoken"])["cost_per_mtoken"]
    one, two = alone(pair, 1), alone(pair, 2)
    print(f"{pair}: {cheapest:.4f} $/Mtoken; of --pareto 12 {row:.4f}, one type {one[0]:.4f} ({'+'.join(one[1])}), "
          f"two types {two[0]:.4f} ({'+'.join(two[1])})", flush=True)
    for other in (row, one[0], two[0]):
        assert cheapest <= other * (1 + ROUNDING), (pair, cheapest, other)
    for a, b in itertools.permutations(rows, 2):
        figures = ("iteration_s", "gpus", "dollars_per_hour")
        assert any(a[name] > b[name] for name in figures), (pair, "a row that another beats", a, b)
    for choice in rows[:: max(1, len(rows) // 3)]:
        wanted = f"{choice['tokens_per_s'] * (1 - ROUNDING):.6f}"
        fewest = plan(pair, "--objective", "gpus", "--min-throughput", wanted)
        assert len(fewest["ranks"]) <= choice["gpus"], (pair, len(fewest["ranks"]), choice)
        assert fewest["predicted"]["tokens_per_s"] >= float(wanted) * (1 - ROUNDING), (pair, choice)


for each in PAIRS:
    judge(each)
