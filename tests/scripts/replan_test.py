#!/usr/bin/env python3
"""Thirty days of a fleet, from Slurm and from Kubernetes: the log of decisions is a golden file.

    replan_test.py TANGRAM SCRIPT MODEL GOLDEN       TANGRAM_UPDATE=1 writes GOLDEN instead

Two racks of A100 and one of V100, 4 GPUs a node. Each day's state is told to scripts/replan.py as both reports; what
they decide must be the same, every change must have a reason, and a day without an event must change nothing.
"""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

RACKS = {"r1": [f"a{i}" for i in range(1, 4)], "r2": [f"a{i}" for i in range(4, 7)], "r3": ["v1", "v2"]}
SPARES = ["a7", "a8"]
SLURM_GRES = {"a": "gpu:a100-sxm4-80gb:4(S:0-1)", "v": "gpu:tesla_v100-sxm2-32gb:4(S:0-1)"}
PRODUCT = {"a": ("NVIDIA-A100-SXM4-80GB", "81920"), "v": ("Tesla-V100-SXM2-32GB", "32768")}
NETWORK = "4x100Gbit,infiniband"

# Day: what happens. "down" and "up" name nodes (added with their first "up"), "slow" and "well" throttled ones.
EVENTS = {
    2: {"down": ["a5"]},
    4: {"up": ["a5"]},
    6: {"slow": ["a2"]},
    8: {"well": ["a2"]},
    10: {"up": ["a7"]},
    12: {"down": ["a3"]},
    15: {"down": ["a4", "a5", "a6"]},
    18: {"up": ["a4", "a5", "a6"]},
    20: {"down": ["v1"]},
    22: {"up": ["v1", "a3"]},
    24: {"up": ["a8"]},
    26: {"slow": ["v2"]},
    28: {"down": ["v2"], "well": ["v2"]},
}
DAYS = 30


def history():
    """(day, nodes that exist, those that are down, those that are slow, whether something happened)"""
    nodes = [name for rack in RACKS.values() for name in rack]
    down, slow = set(), set()
    for day in range(1, DAYS + 1):
        event = EVENTS.get(day, {})
        nodes += [name for name in event.get("up", []) if name not in nodes]
        down = (down | set(event.get("down", []))) - set(event.get("up", []))
        slow = (slow | set(event.get("slow", []))) - set(event.get("well", []))
        yield day, list(nodes), down, slow, bool(event) or day == 1


def slurm(nodes, down):
    return "\n".join(
        f"NodeName={name} Arch=x86_64 CoresPerSocket=32\n   CPUTot=128 AvailableFeatures=gpu ActiveFeatures=gpu\n"
        f"   Gres={SLURM_GRES[name[0]]}\n   NodeAddr={name} NodeHostName={name} Version=23.02.7\n"
        f"   State={'DOWN+DRAIN' if name in down else 'IDLE'} ThreadsPerCore=2\n" for name in nodes)


def kubernetes(nodes, down):
    items = []
    for name in nodes:
        product, memory = PRODUCT[name[0]]
        items.append({
            "apiVersion": "v1", "kind": "Node",
            "metadata": {"name": name, "labels": {"nvidia.com/gpu.product": product, "nvidia.com/gpu.memory": memory,
                                                  "nvidia.com/gpu.count": "4"}},
            "spec": {"unschedulable": True} if name in down else {},
            "status": {"capacity": {"nvidia.com/gpu": "4"}, "allocatable": {"nvidia.com/gpu": "4"},
                       "conditions": [{"type": "Ready", "status": "True"}]}})
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": items})


class Job:
    """One repository that a scheduled job keeps current."""

    def __init__(self, tangram, script, model, source, folder):
        self.command = [sys.executable, script, "--tangram", tangram, "--from", source, "--model", model,
                        "--network", NETWORK, "--summary", str(folder / "change.md"), "--plan", str(folder / "plan.json"),
                        "--fleet", str(folder / "fleet.json")]
        self.tangram, self.folder, self.log = tangram, folder, []
        # One of the jobs looks ahead, the other keeps nothing: their logs are to be the same.
        self.environment = {**os.environ, "TANGRAM_CACHE": str(folder / "cache.sqlite") if source == "kubernetes" else "off"}
        if source == "kubernetes":
            self.command.append("--ahead")

    def run(self, day, report, slow):
        (self.folder / "nodes").write_text(report, encoding="utf-8")
        plan, text = self.folder / "plan.json", self.folder / "change.md"
        before = plan.read_bytes() if plan.exists() else b""
        text.unlink(missing_ok=True)
        edits = [word for name in sorted(slow) for word in ("--set", f"node({name}).compute=60%")]
        done = subprocess.run([*self.command, str(self.folder / "nodes"), "--date", f"day-{day:02}", "--", *edits],
                              capture_output=True, text=True, check=False, env=self.environment)
        assert done.returncode in (0, 2) and "ahead" not in done.stderr, (day, done.stderr)
        changed = done.returncode == 2
        assert changed == (plan.read_bytes() != before) == text.exists(), day
        self.log.append(f"{done.returncode} {done.stdout}")
        if changed:
            judged = subprocess.run([self.tangram, "check", str(plan)], capture_output=True, text=True, check=False)
            assert judged.returncode == 0, judged.stdout
            assert " change " in done.stdout and ": " in done.stdout, "a change has a reason"
        return changed


def main(tangram, script, model, golden):
    with tempfile.TemporaryDirectory() as scratch:
        jobs = []
        for source in ("slurm", "kubernetes"):
            folder = Path(scratch) / source
            folder.mkdir()
            jobs.append((Job(tangram, script, model, source, folder), slurm if source == "slurm" else kubernetes))
        for day, nodes, down, slow, event in history():
            for job, report in jobs:
                changed = job.run(day, report(nodes, down), slow)
                assert event or not changed, f"day {day}: nothing happened, but the plan changed"
        logs = ["".join(job.log) for job, _ in jobs]
        assert logs[0] == logs[1], "Slurm and Kubernetes report the same fleet, but decisions differ:\n" + "\n".join(logs)
    if os.environ.get("TANGRAM_UPDATE") == "1":
        Path(golden).write_text(logs[0], encoding="utf-8")
    expected = Path(golden).read_text(encoding="utf-8")
    assert logs[0] == expected, f"the log of decisions is another:\n{logs[0]}"
    print("ok")


if __name__ == "__main__":
    main(*sys.argv[1:])
