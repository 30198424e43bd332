#!/usr/bin/env python3
"""Checkpoints: a run goes on exactly on other plans, and no finished one is lost when ranks are killed.

    resume_test.py plans FOLDER_OF_TANGRAM_TORCH           losses, gradients and weights over three plans in a row
    resume_test.py kills FOLDER_OF_TANGRAM_TORCH [N]       N random kills of a run (6)
"""

import json
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import time
from functools import partial
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, sys.argv[2])
from with_torch import need_torch

need_torch()
import plans
from one_process import OPTIONS, Samples, start, steps_beside, write_expected_of
from processes import alone, run_ranks
from tangram_torch import checkpoint
from tangram_torch.initial import drawn
from tangram_torch.launch_plan import plan_of
from tangram_torch.run import Run

STEPS = 2  # on each plan

# Each row: plans of one model and one batch, in the order in which the run goes over them.
SERIES = {
    "dense": [
        plans.two_stages([plans.part(4, dp=2, zero=1)], [plans.part(4, tp=4)])(plans.GPT),
        plans.make(plans.GPT, [(6, 2, [(plans.one_chunk(0, 3), [plans.part(2, tp=2, zero=2)]),
                                       (plans.one_chunk(3, 4), [plans.part(2)])]),
                               (2, 1, [(plans.one_chunk(0, 4), [plans.part(1)])])]),
        plans.make(plans.GPT, [(8, 4, [(plans.one_chunk(0, 4), [plans.part(3, dp=3, zero=3), plans.part(1)])])])],
    "experts": [
        plans.make(plans.DEEPSEEK, [(8, 4, [(plans.one_chunk(0, 4), [plans.part(4, dp=4, ep=4, zero=3)])])]),
        plans.make(plans.DEEPSEEK, [(8, 4, [(plans.one_chunk(0, 2), [plans.part(4, tp=2, ep=1, etp=2)]),
                                            (plans.one_chunk(2, 4), [plans.part(4, tp=2, ep=2, zero=1)])])]),
        plans.make(plans.DEEPSEEK, [(8, 4, [(plans.one_chunk(0, 4), [plans.part(4)])])])],
    "an encoder that is frozen at first": [
        plans.two_stages([plans.part(4, dp=2, zero=3)], [plans.part(4, tp=2)])(plans.frozen(plans.LLAVA, "vision")),
        plans.make(plans.frozen(plans.LLAVA, "vision"), [(8, 4, [(plans.one_chunk(0, 2), [plans.part(4, dp=2)])])],
                   colocated=("per-microbatch", plans.lanes("vision", tp=2, sp=True, zero1=True))),
        plans.two_stages([plans.part(4, dp=2, zero=1)], [plans.part(4, zero=1)])(plans.LLAVA),
        plans.make(plans.LLAVA, [(8, 4, [(plans.one_chunk(0, 4), [plans.part(4, tp=2)])])])],
    "adapters": [
        plans.two_stages([plans.part(4, dp=2, zero=1)], [plans.part(4, tp=4)])(plans.adapted(plans.LLAMA)),
        plans.make(plans.adapted(plans.LLAMA), [(8, 4, [(plans.one_chunk(0, 4), [plans.part(4, tp=2, dp=2, zero=3)])])])],
}


def begin_anew(plan, rank, folder, seed):
    """What a checkpoint says to a run that began with the weights of this seed."""
    initial = drawn(plan.model, seed)
    run = Run(plan, rank, OPTIONS, Samples(plan), initial)
    found = checkpoint.latest(folder)
    if found is None:
        checkpoint.save(run, folder, checkpoint.Position(1, 1.0, 0))
        return ""
    try:
        checkpoint.load(run, found)
    except checkpoint.CheckpointError as error:
        return str(error)
    return ""


def judge_adapters():
    """Checkpoints beside frozen weights: what they hold, and what they are loaded into."""
    whole = plans.make(plans.LLAMA, [(4, 2, [(plans.one_chunk(0, 4), [plans.part(2)])])])
    adapted = plans.make(plans.adapted(plans.LLAMA), [(4, 2, [(plans.one_chunk(0, 4), [plans.part(2, dp=2, zero=3)])])])
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory() as of_whole:
        steps = [(adapted, folder, 3, ""), (adapted, folder, 3, ""), (adapted, folder, 4, "beside other weights"),
                 (whole, folder, 3, "adapters alone"), (whole, of_whole, 5, ""), (adapted, of_whole, 3, "")]
        for record, place, seed, expected in steps:
            said = run_ranks(record, partial(begin_anew, seed=seed), place)
            if any(expected not in text or bool(text) is not bool(expected) for text in said):
                print(f"FAILED: adapters: {said} where {expected!r} was expected")
                return False
        names = {name for name, _, _ in checkpoint.slices_of(checkpoint.latest(folder))}
        good = all(name.endswith((".adapter_in", ".adapter_out")) for name in names) and len(names) == 4 * 7 * 2
    print(f"{'ok' if good else 'FAILED'}: checkpoints of adapters have these alone")
    return good


def judge_series(name, records):
    with tempfile.TemporaryDirectory() as folder:
        alone(write_expected_of, [plan_of(record) for record in records for _ in range(STEPS)], folder)

        def phase(plan, rank, _):
            run = start(plan, rank)
            found = checkpoint.latest(folder)
            done = checkpoint.load(run, found).step if found else 0
            differences = steps_beside(run, range(done, done + STEPS), folder)
            checkpoint.save(run, folder, checkpoint.Position(done + STEPS, 1.0, 0))
            return differences

        differences = [line for record in records for lines in run_ranks(record, phase, folder) for line in lines]
    print(f"{'FAILED' if differences else 'ok'}: {name}, {STEPS} steps on each of {len(records)} plans", flush=True)
    for line in differences[:4]:
        print("  " + line)
    return not differences


def wait_for_step(process):
    """Reads until the run has done a step; None: it ended."""
    for line in process.stdout:
        if found := re.match(r"step (\d+) ", line):
            return int(found.group(1))
    return None


def judge_kills(count):
    """Kills any rank at any time; after each kill the newest finished checkpoint is whole, and the run goes on with it
    or with a later one."""
    choose = random.Random(1)
    record = plans.two_stages([plans.part(4, dp=2, zero=1)], [plans.part(4)])(plans.LLAMA)
    with tempfile.TemporaryDirectory() as folder:
        path, saved = Path(folder, "plan.json"), Path(folder, "saved")
        path.write_text(json.dumps(record), encoding="utf-8")
        command = [sys.executable, "-m", "tangram_torch.launch", str(path), "--steps", "1000000", "--save", str(saved),
                   "--save-every", "1"]
        newest = 0
        for kill in range(count):
            process = subprocess.Popen(command, cwd=sys.argv[2], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            first = wait_for_step(process)
            if first is None or first <= newest:
                print(f"FAILED: kill {kill}: goes on with step {first}, step {newest} was finished\n{process.stderr.read()}")
                return False
            time.sleep(choose.uniform(0.0, 1.0))
            os.kill(choose.choice(ranks_of(process.pid)), signal.SIGKILL)
            ended = time.monotonic()
            process.stdout.read()
            process.wait(60)
            if process.returncode == 0 or time.monotonic() - ended > 60:
                print(f"FAILED: kill {kill}: exit {process.returncode} after {time.monotonic() - ended:.0f} s")
                return False
            complete = checkpoint.latest(str(saved))
            newest = max(newest, int(complete.name.split("-")[1])) if complete else newest
    print(f"ok: {count} kills, {newest} steps")
    return True


def ranks_of(parent):
    children = Path(f"/proc/{parent}/task/{parent}/children").read_text(encoding="utf-8").split()
    return [int(child) for child in children]


def main():
    if sys.argv[1] == "kills":
        return 0 if judge_kills(int(sys.argv[3]) if len(sys.argv) > 3 else 6) else 1
    return 0 if all([judge_series(name, records) for name, records in SERIES.items()] + [judge_adapters()]) else 1


if __name__ == "__main__":
    sys.exit(main())
