#!/usr/bin/env python3
"""The benchmark of planning again, on a small fleet: every plan is the same byte for byte, and what counts as missed. How
fast this machine is, is not tested. Usage: replan_bench_test.py TANGRAM SCRIPT"""

import subprocess
import sys
import tempfile
from pathlib import Path

from script_module import module_of


def check_run(tangram, script):
    with tempfile.TemporaryDirectory() as folder:
        table = Path(folder) / "rows.csv"
        done = subprocess.run([sys.executable, script, "--binary", tangram, "--gpus", "64", "--models", "gpt-6.7b", "--runs",
                               "1", "--csv", str(table)], capture_output=True, text=True, check=False)
        assert done.returncode in (0, 1) and "differ" not in done.stdout, done.stdout + done.stderr
        rows = [line.split(",") for line in table.read_text(encoding="utf-8").splitlines()[1:]]
        assert [row[1] for row in rows] == ["same", "swapped", "lost", "returned", "added", "throttled"], rows
        assert all(row[-1] == "True" for row in rows), rows


def check_misses(bench):
    row = {"model": "m", "change": "lost", "speedup": 4.9, "same_plan": True}
    assert bench.misses(row, True) == ["m, lost: 4.9 times as fast, not 5"], bench.misses(row, True)
    assert bench.misses(row, False) == []
    assert bench.misses({**row, "same_plan": False}, False) == ["m, lost: the plans differ"]


def main(tangram, script):
    check_misses(module_of(script))
    check_run(tangram, script)
    print("ok")


if __name__ == "__main__":
    main(*sys.argv[1:])
