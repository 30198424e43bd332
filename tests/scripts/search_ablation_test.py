#!/usr/bin/env python3
"""scripts/ablation --search: one line for each switch and one with everything on; a wrong name lists all names.

    search_ablation_test.py TANGRAM SCRIPTS CONFIGS
"""
import os
import subprocess
import sys
from pathlib import Path

TANGRAM, SCRIPTS, CONFIGS = sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3])


def check(condition, message):
    if not condition:
        sys.exit(message)


def cells(line):
    return [cell.strip() for cell in line.strip("|").split("|")]


def check_table():
    command = [sys.executable, SCRIPTS / "ablation", "--search", "--binary", TANGRAM, "--pairs", "amp:gpt-13b",
               "--switches", "knapsack", "merged"]
    wrong = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    check(wrong.returncode != 0 and "merged" in wrong.stderr, wrong.stderr)
    run = subprocess.run(command[:-1], capture_output=True, text=True, timeout=300, check=False)
    check(run.returncode == 0, run.stderr)
    lines = [cells(line) for line in run.stdout.splitlines()]
    check([line[0] for line in lines[2:]] == ["`knapsack`", "nothing, once more"], run.stdout)
    check(all(len(line) == len(lines[0]) for line in lines), run.stdout)
    again = lines[-1]
    check(again[3:6] == ["1.00 to 1.00", "+0.00", "+0.00 %"], run.stdout)  # labels, gap and time do not scatter


def check_names():
    plan = [TANGRAM, "plan", CONFIGS / "clusters" / "amp.json", CONFIGS / "models" / "gpt-13b.yaml", "-q", "-o", "-"]
    run = subprocess.run(plan, env={**os.environ, "TANGRAM_SEARCH_WITHOUT": "presolve,knapsak"}, capture_output=True,
                         text=True, timeout=60, check=False)
    check(run.returncode != 0, run.stdout)
    check('"knapsak"' in run.stderr and 'did you mean "knapsack"?' in run.stderr, run.stderr)
    check("names: completion," in run.stderr, run.stderr)


check_names()
check_table()
