#!/usr/bin/env python3
"""Plans that scripts/plan_all keeps, compared by scripts/same_plans. Usage: same_plans_test.py TANGRAM SCRIPTS"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path


def run(*command):
    return subprocess.run([sys.executable, *map(str, command)], capture_output=True, text=True, check=False)


def changed(source, target, change):
    plan = json.loads(source.read_text(encoding="utf-8"))
    change(plan)
    target.write_text(json.dumps(plan), encoding="utf-8")


def check(tangram, scripts, folder):
    before, after = folder / "before", folder / "after"
    name = "two-desktops--gpt2-medium.json"
    kept = run(scripts / "plan_all", "--binary", tangram, "--pairs", "two-desktops:gpt2-medium", "--keep", before)
    assert (before / name).is_file(), kept.stdout + kept.stderr
    after.mkdir()

    def compared():
        done = run(scripts / "same_plans", before, after)
        assert done.stderr == "", done.stderr
        return done.returncode, done.stdout.splitlines()

    assert compared() == (1, [f"{name}: only in {before}", "1 plans, 1 differ"]), compared()

    def another_version(plan):
        plan["provenance"]["version"] = "9.9.9"
        plan["plan_id"] = "0" * 32

    changed(before / name, after / name, another_version)
    assert compared() == (0, ["1 plans, all the same"]), compared()

    changed(before / name, after / name, lambda plan: plan["predicted"].update(iteration_s=7.5))
    code, lines = compared()
    assert code == 1 and lines[0].startswith(f"{name}: predicted.iteration_s: ") and lines[0].endswith(", 7.5"), lines

    changed(before / name, after / name, lambda plan: plan["stages"].append({}))
    code, lines = compared()
    assert code == 1 and ": nothing, {}" in lines[0], lines

    changed(before / name, after / name, lambda plan: plan.update(model=plan.pop("model")))
    assert compared() == (1, [f"{name}: all: its keys are in another order", "1 plans, 1 differ"]), compared()

    target = run(scripts / "plan_all", "--binary", tangram, "--pairs", "two-desktops:gpt2-medium", "--keep", after,
                 "--target", "megatron")
    assert target.returncode == 0, target.stdout + target.stderr
    plan = json.loads((after / name).read_text(encoding="utf-8"))
    assert plan["execution"]["runtime"] == "megatron", plan["execution"]

    none = run(scripts / "same_plans", folder, folder)
    assert none.returncode == 2 and "neither folder holds a plan" in none.stderr, none


def main(tangram, scripts):
    with tempfile.TemporaryDirectory() as folder:
        check(tangram, Path(scripts), Path(folder))
    print("ok")


if __name__ == "__main__":
    main(*sys.argv[1:])
