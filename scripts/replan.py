#!/usr/bin/env python3
"""Keeps a launch plan current: what a scheduled job in continuous integration runs.

Makes cluster.json of what the fleet reports, plans against the plan in the repository, and replaces that plan only where
it no longer fits or another gains enough. Every run adds one line to the log: the date, the decision and its reasons.

Exit codes: 0 nothing changes; 2 the plan changed: open a change with it (--summary is its text); anything else is that of
tangram, and nothing was changed.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

EXAMPLES = """\
examples:
  scontrol show nodes --json > nodes.json
  scripts/replan.py --from slurm nodes.json --network 8x400Gbit,infiniband --model model.yaml --plan plans/job.json
  scripts/replan.py --from kubernetes nodes.json --network 4x200Gbit,roce --model model.yaml --plan plans/job.json \\
      --min-gain 5% --summary change.md -- --set 'node(gpu-07).compute=70%'

"""

CHANGED = 2


class Ended(Exception):
    """A command that ended with another code than it may."""

    def __init__(self, code: int, said: str) -> None:
        super().__init__(said)
        self.code = code


def run(command: list[str], allowed: tuple[int, ...] = (0,)) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode not in allowed:
        raise Ended(done.returncode, done.stderr.strip())
    return done


def read_fleet(arguments: argparse.Namespace, fleet: Path) -> list[str]:
    """Writes the fleet that is reported; returns the nodes that were left out, and why."""
    command = [arguments.tangram, "cluster", f"from-{arguments.source}", *arguments.reports, "-o", str(fleet), "--json", "-q"]
    for network in arguments.network:
        command += ["--network", network]
    for gpu in arguments.gpu:
        command += ["--gpu", gpu]
    return [f"{out['node']}: {out['reason']}" for out in json.loads(run(command).stdout)["left_out"]]


def plan_first(arguments: argparse.Namespace, fleet: Path, target: Path) -> dict[str, Any]:
    run([arguments.tangram, "plan", str(fleet), arguments.model, "-q", "-o", str(target), *arguments.options])
    return {"decision": "change", "reasons": [{"code": "first-plan", "text": "there was no plan"}], "gain": 0}


def plan_again(arguments: argparse.Namespace, fleet: Path, target: Path) -> dict[str, Any]:
    done = run([arguments.tangram, "plan", str(fleet), arguments.model, "-q", "--json", "-o", str(target), "--against",
                arguments.plan, "--min-gain", arguments.min_gain, "--detailed-exitcode", *arguments.options],
               allowed=(0, CHANGED))
    decision = json.loads(done.stdout)
    if (done.returncode == CHANGED) != (decision["decision"] == "change"):
        raise Ended(1, f"exit code {done.returncode}, but the decision is {decision['decision']}")
    if decision["decision"] == "change" and not decision["reasons"]:
        raise Ended(1, "the plan changes without a reason")
    return decision


def look_ahead(arguments: argparse.Namespace, fleet: Path) -> None:
    """The decision stands; what goes wrong here is told and changes nothing."""
    done = subprocess.run([arguments.tangram, "plan", str(fleet), arguments.model, "-q", "--ahead", "--against", arguments.plan,
                           "--min-gain", arguments.min_gain, *arguments.options], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        print(f"nothing was searched ahead: {done.stderr.strip()}", file=sys.stderr)


def line_of(date: str, decision: dict[str, Any]) -> str:
    reasons = "; ".join(f"{reason['code']}: {reason['text']}" for reason in decision["reasons"])
    return f"{date} {decision['decision']} {reasons}\n"


def summary(decision: dict[str, Any], left_out: list[str], difference: str) -> str:
    lines = ["The fleet changed, and with it the launch plan.", ""]
    lines += [f"- {reason['text']}" for reason in decision["reasons"]]
    if left_out:
        lines += ["", "Left out of the fleet:", "", *(f"- {node}" for node in left_out)]
    return "\n".join([*lines, "", "```", difference.rstrip("\n"), "```", ""])


def work(arguments: argparse.Namespace) -> int:
    plan = Path(arguments.plan)
    plan.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=plan.parent, prefix=".replan-") as folder:
        fleet, target = Path(folder) / "cluster.json", Path(folder) / "plan.json"
        left_out = read_fleet(arguments, fleet)
        first = not plan.exists()
        decision = (plan_first if first else plan_again)(arguments, fleet, target)
        changes = decision["decision"] == "change"
        if changes and arguments.summary:
            difference = "" if first else run([arguments.tangram, "diff", str(plan), str(target), "--cluster", str(fleet)]).stdout
            Path(arguments.summary).write_text(summary(decision, left_out, difference), encoding="utf-8")
        if changes:
            os.replace(target, plan)
        line = line_of(arguments.date, decision)
        if arguments.log:
            with open(arguments.log, "a", encoding="utf-8") as log:
                log.write(line)
        sys.stdout.write(line)
        sys.stdout.flush()
        if arguments.ahead:
            look_ahead(arguments, fleet)
        if arguments.fleet:
            os.replace(fleet, arguments.fleet)
    return CHANGED if changes else 0


def parse(words: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=EXAMPLES + (__doc__ or ""),
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("reports", nargs="+", help="what the fleet reports")
    parser.add_argument("--from", dest="source", required=True, choices=("slurm", "kubernetes", "nvidia-smi"))
    parser.add_argument("--model", required=True, help="model.yaml")
    parser.add_argument("--plan", required=True, help="the plan in the repository; made where there is none")
    parser.add_argument("--network", action="append", default=[], help="as of tangram cluster")
    parser.add_argument("--gpu", action="append", default=[], help="as of tangram cluster")
    parser.add_argument("--min-gain", default="2%", help="least gain that is worth a change (default: 2%%)")
    parser.add_argument("--fleet", help="also keep cluster.json here")
    parser.add_argument("--log", help="file of decisions, one line a run")
    parser.add_argument("--summary", help="text of the change, written where the plan changes")
    parser.add_argument("--ahead", action="store_true",
                        help="when the decision is logged, also search for fleets with a node less or more: the next run is faster")
    parser.add_argument("--date", default=datetime.date.today().isoformat(), help="of the line in the log")
    parser.add_argument("--tangram", default="tangram", help="the program (default: on the PATH)")
    split = words.index("--") if "--" in words else len(words)
    arguments = parser.parse_args(words[:split])
    arguments.options = words[split + 1:]  # of tangram plan
    return arguments


def main() -> int:
    arguments = parse(sys.argv[1:])
    try:
        return work(arguments)
    except Ended as ended:
        print(ended, file=sys.stderr)
        return ended.code
    except OSError as problem:
        print(f"error: {problem}", file=sys.stderr)
        return 4


if __name__ == "__main__":
    sys.exit(main())
