"""All ranks of a plan on this machine: python3 -m tangram_torch.launch PLAN [OPTION...]

The first rank that fails ends the others. Options are those of a run.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from typing import Optional

from .launch_plan import PlanError, read_plan
from .settings import read_settings

GRACE = 5.0  # seconds between asking a rank to end and ending it
POLL = 0.05


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def environment_of(rank: int, world: int, port: int) -> dict[str, str]:
    folder = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    path = os.pathsep.join(filter(None, (folder, os.environ.get("PYTHONPATH"))))
    ranks = {"RANK": rank, "LOCAL_RANK": rank, "WORLD_SIZE": world, "LOCAL_WORLD_SIZE": world}
    return {**os.environ, **{name: str(value) for name, value in ranks.items()}, "PYTHONPATH": path,
            "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}


def run_all(world: int, arguments: list[str]) -> int:
    """The exit code of the first rank that failed; 0: none did."""
    port = free_port()
    command = [sys.executable, "-u", "-m", "tangram_torch", *arguments]
    ranks = [subprocess.Popen(command, env=environment_of(rank, world, port)) for rank in range(world)]
    try:
        return _first_failure(ranks)
    finally:
        _end(ranks)


def _first_failure(ranks: list["subprocess.Popen[bytes]"]) -> int:
    running = list(enumerate(ranks))
    while running:
        for number, process in list(running):
            code = process.poll()
            if code is None:
                continue
            running.remove((number, process))
            if code < 0:
                print(f"rank {number} was ended by {signal.Signals(-code).name}", file=sys.stderr, flush=True)
            if code != 0:
                return 128 - code if code < 0 else code
        time.sleep(POLL)
    return 0


def _end(ranks: list["subprocess.Popen[bytes]"]) -> None:
    for process in ranks:
        if process.poll() is None:
            process.terminate()
    deadline = time.monotonic() + GRACE
    for process in ranks:
        try:
            process.wait(max(0.0, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def main(arguments: Optional[list[str]] = None) -> int:
    given = sys.argv[1:] if arguments is None else arguments
    settings = read_settings(given)  # a wrong argument is said once, and not by every rank
    try:
        plan = read_plan(settings.plan)
    except PlanError as wrong:
        print(wrong, file=sys.stderr)
        return 64
    return run_all(len(plan.ranks), given)


if __name__ == "__main__":
    sys.exit(main())
