#!/usr/bin/env python3
"""The scripts that judge the cost model, on measurements that `tangram accuracy` itself made with known figures:
scripts/calibrate finds these figures again, scripts/ablation finds an error where something that they need is off.

    accuracy_scripts_test.py TANGRAM CONFIGS SCRIPTS
"""
import json
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

SCRIPTS = Path(sys.argv[3])
# Neither where the search starts nor what ships, and whole in the digits that are written.
TRUTH = {"gemm_efficiency": 0.61, "attention_forward": 0.54, "attention_backward": 0.21, "memory_efficiency": 0.58,
         "host_issue_us": 92}
GPU = "A100-40GB-SXM"
TOLERANCE = 0.05
# hidden, layers, heads, microbatch, sequence: small ones wait for the host, wide ones for products, long ones for
# attention and, unfused, for memory.
SHAPES = ((512, 12, 8, 1, 512), (1024, 12, 16, 2, 1024), (4096, 4, 32, 4, 2048), (8192, 2, 64, 2, 2048),
          (2048, 4, 16, 1, 16384), (1024, 4, 8, 1, 32768))


def measurement(number, hidden, layers, heads, microbatch, sequence, recompute, fused):
    return {
        "id": f"made-{number}", "dataset": "llm_foundry", "quality": "A", "split": "calibration",
        "gpus": [{"type": GPU, "count": 8, "per_node": 8}],
        "model": {"name": "made", "hidden": hidden, "layers": layers, "heads": heads, "vocab": 50304},
        "tp": 1, "pp": 1, "dp": 8, "mbs": microbatch, "gbs": 64 * microbatch, "seq": sequence, "precision": "bf16",
        "recompute": recompute, "flash_attention": fused, "zero": 1, "iter_time_s": 1.0,
    }


def measurements():
    rows = []
    for hidden, layers, heads, microbatch, sequence in SHAPES:
        for recompute in ("none", "full"):
            for fused in (True, False):
                rows.append(measurement(len(rows), hidden, layers, heads, microbatch, sequence, recompute, fused))
    return rows


def check(condition, message):
    if not condition:
        sys.exit(message)


def make_truth(tangram, rows, folder):
    """The rows with the iteration times that the known figures give."""
    gpus = folder / "truth.json"
    gpus.write_text(json.dumps({"schema": "tangram.gpus/1", "gpus": {GPU: {"like": GPU, "calibration": TRUTH}}}))
    dataset = folder / "rows.json"
    dataset.write_text(json.dumps(rows))
    run = subprocess.run([tangram, "accuracy", dataset, "--gpus", gpus, "--json"], capture_output=True, text=True,
                         timeout=60, check=True)
    predicted = {line["id"]: line.get("predicted_s") for line in json.loads(run.stdout)["measurements"]}
    for row in rows:
        row["iter_time_s"] = predicted[row["id"]]
        check(row["iter_time_s"], f"{row['id']} cannot be expressed")
    dataset.write_text(json.dumps(rows))
    return dataset


def script(name, tangram, dataset, catalogue, *options):
    command = [sys.executable, SCRIPTS / name, dataset, "--binary", tangram, "--catalogue", catalogue, *options]
    return subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)


def written(catalogue, name):
    text = (catalogue / "nvidia-ampere.json").read_text(encoding="utf-8")
    patterns = {figure: rf'"{name}": .*?"{figure}": ([0-9.]+)' for figure in TRUTH}
    return {figure: float(re.search(pattern, text, re.DOTALL).group(1)) for figure, pattern in patterns.items()}


def check_calibrate(tangram, configs, catalogue, dataset):
    only_shown = script("calibrate", tangram, dataset, catalogue, "--gpu", "A100", "--evaluations", "10")
    check(only_shown.returncode == 0, only_shown.stderr)
    for file in sorted(catalogue.iterdir()):
        check(file.read_bytes() == (configs / "gpus" / file.name).read_bytes(), f"{file.name} changed without --write")

    run = script("calibrate", tangram, dataset, catalogue, "--gpu", "A100", "--write")
    check(run.returncode == 0, run.stderr)
    found = written(catalogue, GPU)
    for figure, truth in TRUTH.items():
        check(abs(found[figure] / truth - 1) <= TOLERANCE, f"{figure}: {found[figure]} of {truth}\n{run.stdout}")
    check("A30" in run.stdout, f"A30 has figures of A100\n{run.stdout}")
    check(written(catalogue, "A30") == written(configs / "gpus", "A30"), "another GPU type's figures changed")


def check_validation_refused(tangram, catalogue, dataset, rows):
    refused = [dict(row) for row in rows]
    refused[3]["split"] = "validation"
    dataset.write_text(json.dumps(refused))
    run = script("calibrate", tangram, dataset, catalogue)
    check(run.returncode != 0 and 'made-3 says split "validation"' in run.stderr, run.stderr)


def check_ablation(tangram, catalogue, dataset):
    """The catalogue has the known figures by now: only what the rows do not need is without effect when off."""
    run = script("ablation", tangram, dataset, catalogue)
    check(run.returncode == 0, run.stderr)
    lines = [[cell.strip() for cell in line.strip("|").split("|")] for line in run.stdout.splitlines()]
    mean = {line[0]: float(line[3].rstrip(" %")) for line in lines[2:]}
    check(len(mean) == 11 and all(line[1] == "24" for line in lines[2:]), run.stdout)
    check(mean.pop("everything on") < 1, run.stdout)
    # One GPU exchanges nothing.
    needless = [mean.pop(name) for name in list(mean) if name.startswith(("no gap", "short messages", "no hierarchical", "no overlap"))]
    check(len(needless) == 4 and max(needless) < 2, run.stdout)
    check(all(error > max(needless) + 1 for error in mean.values()), run.stdout)


def main():
    tangram, configs = sys.argv[1], Path(sys.argv[2])
    with tempfile.TemporaryDirectory(prefix="tangram-accuracy-scripts-") as name:
        folder = Path(name)
        catalogue = folder / "gpus"
        shutil.copytree(configs / "gpus", catalogue)
        rows = measurements()
        dataset = make_truth(tangram, rows, folder)
        check_calibrate(tangram, configs, catalogue, dataset)
        check_ablation(tangram, catalogue, dataset)
        check_validation_refused(tangram, catalogue, dataset, rows)


if __name__ == "__main__":
    main()
