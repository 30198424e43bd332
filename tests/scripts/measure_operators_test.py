#!/usr/bin/env python3
"""scripts/measure_operators.py on a processor: its tables are of their schema, and tangram fits rooflines to them.

    measure_operators_test.py shapes TANGRAM CONFIGS SCRIPT      needs no PyTorch
    measure_operators_test.py measure TANGRAM CONFIGS SCRIPT     exit 77 where no Python here has PyTorch
"""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

sys.dont_write_bytecode = True
from torch_python import python_with_torch

TANGRAM, CONFIGS, SCRIPT = sys.argv[2], Path(sys.argv[3]), sys.argv[4]


def require(holds, what):
    if not holds:
        raise SystemExit(what)


def call(command, expected=0):
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, env={**os.environ, "OMP_NUM_THREADS": "1"})
    require(done.returncode == expected, f"{command}: exit {done.returncode}\n{done.stdout}{done.stderr}")
    return done


def judge_shapes():
    listed = call([sys.executable, SCRIPT, "--dry-run"]).stdout.splitlines()
    require([line.split(":")[0] for line in listed] == ["gemm", "attention_prefill", "experts", "stream"], listed)
    for line in listed:
        table = json.loads((CONFIGS / "kernels" / f"{line.split(':')[0]}.json").read_text(encoding="utf-8"))
        numbers = len(table["rows"][0]) - len(table["gpus"])
        require(line.split("(")[1].split(")")[0].strip(",").count(",") + 1 == numbers, line)
    for arguments, said in ((["--operator", "gem"], "is no operator"), (["--dtype", "fp8"], "for products alone"),
                            ([], "-o FOLDER is missing"), (["-o", "/nowhere/at/all"], "-o FOLDER is missing")):
        require(said in call([sys.executable, SCRIPT, *arguments], 64).stderr, arguments)


def judge_measured():
    python = python_with_torch()
    with tempfile.TemporaryDirectory() as folder:
        small = [python, SCRIPT, "--device", "cpu", "--gpu", "A10", "--dtype", "fp32", "--repetitions", "1"]
        call([*small, "--operator", "stream", "--shapes", "4", "-o", f"{folder}/times"])
        call([*small, "--operator", "gemm", "--shapes", "4", "-o", f"{folder}/times"])
        for operator, numbers in (("stream", 1), ("gemm", 3)):
            table = json.loads(Path(folder, "times", f"{operator}.json").read_text(encoding="utf-8"))
            require(table["operator"] == operator and table["gpus"] == ["A10"] and table["rows"], table)
            require(all(len(row) == numbers + 1 and row[-1] > 0 for row in table["rows"]), table["rows"])
        fitted = call([TANGRAM, "kernels", "accuracy", f"{folder}/times/stream.json", "-o", f"{folder}/fitted.json"])
        require("A10" in fitted.stdout, fitted.stdout)
        require("inference" in json.loads(Path(folder, "fitted.json").read_text(encoding="utf-8")), "nothing was fitted")


if __name__ == "__main__":
    judge_shapes() if sys.argv[1] == "shapes" else judge_measured()
