#!/usr/bin/env python3
"""scripts/fit_attention finds the figures that made-up times follow, and those of configs/gpus in the published ones.

    fit_attention_test.py FIT_ATTENTION CONFIGS
"""
import json
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

SHARE, EXTRA, PEAK = 0.65, 400, 989.4e12  # what the made-up times of H200 follow


def run(script, *arguments):
    command = [sys.executable, script, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


def made_up(row):
    """The row with times that follow SHARE and EXTRA; heads of 128, no window."""
    if row["gpu"] != "H200" or row["model"] != "llama3.1":
        return row
    pairs = row["batch"] * row["heads"] * row["sequence"] * ((row["sequence"] + 1) / 2 + EXTRA)
    seconds = 2 * pairs * 256 / (SHARE * PEAK)
    return {**row, "forward_ms": seconds * 1e3, "backward_ms": 2.5 * seconds * 1e3}


def main():
    script, configs = Path(sys.argv[1]), Path(sys.argv[2])
    shipped = run(script)
    assert shipped.returncode == 0 and "configs/gpus says the same" in shipped.stdout, shipped.stdout + shipped.stderr

    rows = json.loads((configs / "measurements" / "kernels" / "attention.json").read_text(encoding="utf-8"))["rows"]
    with tempfile.TemporaryDirectory(prefix="tangram-attention-") as folder:
        file = Path(folder, "rows.json")
        file.write_text(json.dumps({"rows": [made_up(row) for row in rows]}), encoding="utf-8")
        catalogue = Path(folder, "gpus")
        shutil.copytree(configs / "gpus", catalogue)
        found = run(script, file, "--catalogue", catalogue)
        assert found.returncode == 1, found.stdout + found.stderr
        assert f"H200-141GB-SXM: backward_extra_keys is 670, fitted {EXTRA}" in found.stdout, found.stdout
        for direction in ("forward", "backward"):
            assert re.search(rf"^H200 +{direction} +{SHARE} +{EXTRA} .*llama3.1\* 0.0 % ", found.stdout, re.M), found.stdout
        broken = Path(folder, "broken.json")
        broken.write_text("{}", encoding="utf-8")
        assert "broken.json" in run(script, broken).stderr


if __name__ == "__main__":
    main()
