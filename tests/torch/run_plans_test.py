#!/usr/bin/env python3
"""Plans in real processes against one process, and the same with each path of communication doing something wrong:

    run_plans_test.py plans|zero-bubble|multimodal|colocated|staged|faults FOLDER_OF_TANGRAM_TORCH [NAME...]

staged: some of the plans with every message through host memory, as of ranks that share a GPU. Exit 77 where no Python here
has PyTorch.
"""

import hashlib
import os
import sys
import tempfile
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, sys.argv[2])
from with_torch import need_torch

need_torch()
from unittest import mock

import faults
import plans
import tangram_torch.run
import tangram_torch.weight_gradients
from one_process import STEPS, differences, write_expected
from processes import run_plan
from tangram_torch.staged import StagedGroups


EXPECTED = tempfile.TemporaryDirectory()  # what one process has, by what was asked
STEPS_TO_A_FAULT = 2  # what goes wrong in the first step shows in the second at the latest
FEWEST_VALUES = 200  # of these small models, some weights have as many and others have fewer


def leave_expected(plan, folder, steps):
    """Many plans are of one model and one batch: what one process has of these is worked out once."""
    asked = hashlib.sha256(repr((plan.model, plan.training, steps)).encode()).hexdigest()
    kept = Path(EXPECTED.name, asked)
    if not kept.exists():
        kept.mkdir()
        write_expected(plan, kept, steps)
    os.link(kept / "expected", Path(folder, "expected"))


def differences_of(record, steps=STEPS):
    def beside(plan, rank, folder):
        return differences(plan, rank, folder, steps)

    def prepare(plan, folder):
        leave_expected(plan, folder, steps)

    return [line for lines in run_plan(record, beside, prepare) for line in lines]


def said(good, what, lines):
    print(f"{'ok' if good else 'FAILED'}: {what}", flush=True)
    for line in lines[:4]:
        print("  " + line, flush=True)
    return good


def judge_plan(name, record):
    found = differences_of(record)
    return said(not found, f"{name}, {len(record['ranks'])} ranks", found)


def judge_staged(name, record):
    with mock.patch.object(tangram_torch.run, "Groups", StagedGroups):
        return judge_plan(name, record)


def judge_fault(what, name, patch):
    """Noticed are other values, and what the runtime itself asserts."""
    with patch:
        try:
            found = differences_of(dict(plans.cases())[name], STEPS_TO_A_FAULT)
        except RuntimeError as failed:
            found = [line for line in str(failed).splitlines() if line.startswith("AssertionError")]
    return said(bool(found), f"{what}, in: {name}", found[:1])


def shared(cases):
    """Of many cases those that TANGRAM_TEST_SHARE leaves, spread evenly, and a third of them at least."""
    share = max(1 / 3, min(1.0, float(os.environ.get("TANGRAM_TEST_SHARE", "1"))))
    return [case for number, case in enumerate(cases) if int((number + 1) * share) > int(number * share)]


def main():
    wanted = sys.argv[3:]
    cases, judge = {"plans": (plans.usual_cases, judge_plan), "zero-bubble": (plans.zero_bubble_cases, judge_plan),
                    "multimodal": (plans.multimodal_cases, judge_plan),
                    "colocated": (plans.colocated_cases, judge_plan),
                    "staged": (plans.staged_cases, judge_staged), "faults": (faults.planted, judge_fault)}[sys.argv[1]]
    chosen = [case for case in cases() if case[0] in wanted] if wanted else shared(list(cases()))
    with mock.patch.object(tangram_torch.weight_gradients, "FEWEST_VALUES", FEWEST_VALUES):
        results = [judge(*case) for case in chosen]
    print(f"{sum(results)} of {len(results)} {'faults found' if judge is judge_fault else 'as one process'}")
    return 0 if results and all(results) else 1


if __name__ == "__main__":
    sys.exit(main())
