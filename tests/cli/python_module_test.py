#!/usr/bin/env python3
"""The Python module gives what the program prints, takes paths and dicts, and says what went wrong.
Usage: python_module_test.py TANGRAM FOLDER_OF_THE_MODULE INPUTS"""

import json
import os
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path

sys.dont_write_bytecode = True
BINARY, INPUTS = sys.argv[1], Path(sys.argv[3])
os.environ.update(TANGRAM=BINARY, TANGRAM_CACHE="off")
sys.path.insert(0, sys.argv[2])

import tangram  # noqa: E402  the module under test

FLEET, MODEL = INPUTS / "tiny.json", INPUTS / "mini.yaml"


def printed(*words):
    command = [BINARY, "plan", FLEET, MODEL, *words, "--json", "-q"]
    return json.loads(subprocess.run(command, capture_output=True, text=True, check=False).stdout)


def refused(*inputs, **options):
    try:
        tangram.plan(*inputs, **options)
    except tangram.Error as error:
        return error
    raise AssertionError(f"{inputs}, {options}: there is a plan")


def check_plans():
    assert tangram.plan(FLEET, str(MODEL)) == printed()
    assert tangram.plan(FLEET, MODEL, target="megatron", forbid=["zero1", "mixed"], global_batch=32, offline=True,
                        ahead=False, microbatch=None) == printed("--target", "megatron", "--forbid", "zero1,mixed",
                                                                 "--global-batch", "32", "--offline")
    changes = ["gpu(Big).price=3", "gpu(Big).compute=90%"]
    assert tangram.plan(FLEET, MODEL, set=changes) == printed("--set", changes[0], "--set", changes[1])
    assert tangram.plan(FLEET, MODEL, pareto=2)["schema"] == "tangram.choices/1"


def check_dicts():
    fleet = json.loads(FLEET.read_text())
    model = {"schema": "tangram.model/1", "name": "mini",
             "architecture": {"vocabulary": 32000, "hidden": 2048, "layers": 12, "heads": 16, "ffn_hidden": 5504},
             "training": {"sequence_length": 2048, "global_batch_samples": 64}}
    assert tangram.plan(fleet, model)["plan_id"] == printed()["plan_id"]
    del model["architecture"]["heads"]
    error = refused(fleet, model)
    assert error.exit_code == 4 and "heads" in str(error), error


def check_errors(folder):
    error = refused(folder / "missing.json", MODEL)
    assert error.exit_code == 4 and "missing.json" in str(error), error
    assert error.errors[0]["kind"] == "input" and error.errors[0]["code"], error.errors
    assert refused(FLEET, MODEL, no_such_option=1).exit_code == 64
    assert refused(FLEET, MODEL, time_limit=0).exit_code == 64
    os.environ["TANGRAM"] = str(folder / "nothing")
    assert "cannot be started" in str(refused(FLEET, MODEL))
    os.environ["TANGRAM"], path, os.environ["PATH"] = "", os.environ["PATH"], str(folder)
    assert "was not found" in str(refused(FLEET, MODEL))
    os.environ["TANGRAM"], os.environ["PATH"] = BINARY, path


def check_warning():
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        planned = tangram.plan(FLEET, MODEL, forbid="mixed", time_budget=10)
    assert planned["schema"] == "tangram.launch_plan/1" and "stopped early" in str(caught[0].message), caught


def main():
    check_plans()
    check_dicts()
    check_warning()
    with tempfile.TemporaryDirectory() as folder:
        check_errors(Path(folder))


main()
