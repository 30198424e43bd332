#!/usr/bin/env python3
"""The example of planning as a library gives the plan that the program gives, and says what is wrong with its inputs.
Usage: example_test.py TANGRAM PLAN_ONCE INPUTS"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path


def run(*words):
    return subprocess.run([str(word) for word in words], capture_output=True, text=True, check=False)


def main(tangram, plan_once, inputs):
    fleet, model = Path(inputs) / "tiny.json", Path(inputs) / "mini.yaml"
    with tempfile.TemporaryDirectory() as folder:
        example, program = Path(folder) / "example.json", Path(folder) / "program.json"
        done = run(plan_once, fleet, model, example)
        assert done.returncode == 0, done.stderr
        planned = run(tangram, "plan", fleet, model, "-o", program, "--cache", "off")
        assert planned.returncode == 0, planned.stderr
        assert example.read_bytes() == program.read_bytes()
        seconds = json.loads(example.read_text())["predicted"]["iteration_s"]
        assert done.stdout == f"{seconds:.6f} s an iteration, written to {example}\n", done.stdout

        missing = run(plan_once, Path(folder) / "missing.json", model, example)
        assert missing.returncode == 1 and "missing.json" in missing.stderr, missing
        assert run(plan_once).returncode == 64


main(*sys.argv[1:])
