#!/usr/bin/env python3
"""Plans in real processes against one process, and the same with each path of communication doing something wrong:

    run_plans_test.py plans|faults FOLDER_OF_TANGRAM_TORCH [NAME...]     exit 77 where no Python here has PyTorch
"""

import sys

sys.dont_write_bytecode = True
sys.path.insert(0, sys.argv[2])
from with_torch import need_torch

need_torch()
import faults
import plans
from one_process import differences, write_expected
from processes import run_plan


def differences_of(record):
    return [line for lines in run_plan(record, differences, write_expected) for line in lines]


def said(good, what, lines):
    print(f"{'ok' if good else 'FAILED'}: {what}", flush=True)
    for line in lines[:4]:
        print("  " + line, flush=True)
    return good


def judge_plan(name, record):
    found = differences_of(record)
    return said(not found, f"{name}, {len(record['ranks'])} ranks", found)


def judge_fault(what, name, patch):
    with patch:
        found = differences_of(dict(plans.cases())[name])
    return said(bool(found), f"{what}, in: {name}", found[:1])


def main():
    wanted = sys.argv[3:]
    cases = plans.cases() if sys.argv[1] == "plans" else faults.planted()
    judge = judge_plan if sys.argv[1] == "plans" else judge_fault
    results = [judge(*case) for case in cases if not wanted or case[0] in wanted]
    print(f"{sum(results)} of {len(results)} {'as one process' if sys.argv[1] == 'plans' else 'faults found'}")
    return 0 if results and all(results) else 1


if __name__ == "__main__":
    sys.exit(main())
