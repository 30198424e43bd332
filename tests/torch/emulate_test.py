#!/usr/bin/env python3
"""Plans whose ranks are processes that exchange real messages and wait instead of computing: is an iteration as long as
the simulator says?

    emulate_test.py logical BINARY CONFIGS FOLDER_OF_TANGRAM_TORCH [N]  waiting moves a rank's own time: equal to 1e-6
    emulate_test.py wall BINARY CONFIGS FOLDER_OF_TANGRAM_TORCH [N]     waiting takes its time: within 3 %

Of twenty plans, and on ranks' own time of some more, every N-th (all).

Where parts of a mixed stage send to ranks of their own, the simulator waits for all of them and is later: an emulated
iteration may be shorter then. On the wall clock a machine that does something else beside makes ranks late: a plan is
tried three times at most, and the shortest iteration counts.
"""

import json
import subprocess
import sys
import tempfile
from datetime import timedelta
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, sys.argv[4])
from with_torch import need_torch

need_torch()
from processes import run_ranks
from tangram_torch.communication import Groups
from tangram_torch.emulate import EmulatedRank, LogicalClock, WallClock, emulated_of, groups_of_stages, run_iteration
from tangram_torch.recorder import OFF

CASES = [(cluster, model, ()) for cluster in ("two-desktops", "rtx-mixed-hosts", "amp", "nvlink-pairs", "azure-mixed")
         for model in ("gpt2-xl", "llama-3.2-3b", "gpt-6.7b", "gpt2-medium")]
# What else a plan may be: unequal pipelines, mixed stages.
MORE = [("rtx-mixed-hosts", "gpt2-medium", ("--pipelines", "any")), ("azure-mixed", "opt-350m", ("--pipelines", "any")),
        ("nvlink-pairs", "mixtral-8x7b", ())]
# Whose order of passes both work out, each for itself.
MORE += [(cluster, model, ("--schedule", "zero-bubble"))
         for cluster, model in (("two-desktops", "gpt2-xl"), ("amp", "gpt-6.7b"), ("azure-mixed", "llama-3.2-3b"))]
MORE += [(cluster, model, ("--schedule", "interleaved"))
         for cluster, model in (("azure-mixed", "gpt-6.7b"), ("rtx-mixed-hosts", "gpt2-xl"), ("amp", "gpt-6.7b"))]
# Encoders in pipelines, and in turn with the language model: in three phases, for each microbatch.
MORE += [("nvlink-pairs", "llava-1.5-7b", ("--placement", "disjoint")),
         ("azure-mixed", "llava-1.5-7b", ("--placement", "colocated")),
         ("campus-rtx", "llava-1.5-7b", ("--placement", "colocated", "--forbid", "pipeline"))]
PASS = 0.05  # seconds that a pass is stretched or pressed to, in the mean: a rank needs about 0.5 ms to begin one
LEAST = 6.0  # seconds of an iteration: its start and its end take some milliseconds, too
TRIES = 3
LIMITS = {"logical": 1e-6, "wall": 0.03}


def plan_of(binary, configs, cluster, model, options, folder):
    path = Path(folder, "plan.json")
    done = subprocess.run([binary, "plan", f"{configs}/clusters/{cluster}.json", f"{configs}/models/{model}.yaml",
                           *options, "-q", "-o", str(path)], capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{cluster} x {model}: exit {done.returncode}\n{done.stderr}")
    return json.loads(path.read_text(encoding="utf-8"))


def emulated_seconds(record, kind, folder):
    passes = 2 * max(pipeline["num_microbatches"] for pipeline in record["pipelines"])
    slowdown = 1.0 if kind == "logical" else max(PASS * passes, LEAST) / record["predicted"]["iteration_s"]

    def work(plan, rank, _):
        groups = Groups(rank, len(plan.ranks), groups_of_stages(plan), timedelta(seconds=60))
        clock = LogicalClock() if kind == "logical" else WallClock()
        return run_iteration(EmulatedRank(emulated_of(record), rank, groups, clock, OFF, slowdown), groups) / slowdown

    return run_ranks(record, work, folder)[0]


def is_close(kind, record, ratio):
    mixed = any(len(stage["parts"]) > 1 for stage in record["stages"])
    return ratio - 1 <= LIMITS[kind] and (mixed or 1 - ratio <= LIMITS[kind])


def judge(kind, binary, configs, cluster, model, options):
    with tempfile.TemporaryDirectory() as folder:
        record = plan_of(binary, configs, cluster, model, options, folder)
        simulated = record["predicted"]["iteration_s"]
        best = float("inf")
        for _ in range(1 if kind == "logical" else TRIES):
            best = min(best, emulated_seconds(record, kind, folder))
            if is_close(kind, record, best / simulated):
                break
    ranks, stages, pipelines = (len(record[key]) for key in ("ranks", "stages", "pipelines"))
    parts = max(len(stage["parts"]) for stage in record["stages"])
    print(f"{cluster:16} {model:13} {ranks:3} ranks {stages:2} stages {pipelines} pipelines {parts} parts "
          f"{simulated:10.4f} s simulated {best:10.4f} s emulated {100 * (best / simulated - 1):+7.3f} %", flush=True)
    return is_close(kind, record, best / simulated)


def main(kind, binary, configs, _, every="1"):
    cases = CASES + (MORE if kind == "logical" else [])
    results = [judge(kind, binary, configs, *case) for case in cases[::int(every)]]
    print(f"{sum(results)} of {len(results)} as simulated, within {100 * LIMITS[kind]:g} %")
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:6]))
