"""All ranks of a plan on this machine: python3 -m tangram_torch.launch PLAN [OPTION...]

The first rank that fails ends the others. Options are those of a run. Ranks on CPUs, and those of an emulation, share
what they load, so that dozens of them start at once.
"""

from __future__ import annotations

import contextlib
import io
import multiprocessing
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from typing import Optional, Protocol

from .errors import PlanError, without_torch
from .launch_plan import read_plan
from .settings import USAGE, Settings, read_settings

GRACE = 5.0  # seconds between asking a rank to end and ending it
POLL = 0.05
GPU_DEVICES = ("/dev/nvidiactl", "/dev/kfd", "/dev/dxg")  # NVIDIA's, AMD's, those of WSL


class RankProcess(Protocol):
    def poll(self) -> Optional[int]:
        """The exit code, negative for a signal; None while it runs."""

    def terminate(self) -> None: ...

    def kill(self) -> None: ...


class _Forked:
    def __init__(self, settings: Settings, environment: dict[str, str]) -> None:
        self._process = multiprocessing.get_context("fork").Process(target=_run_forked, args=(settings, environment))
        self._process.start()
        self.terminate, self.kill = self._process.terminate, self._process.kill

    def poll(self) -> Optional[int]:
        return self._process.exitcode


def _run_forked(settings: Settings, environment: dict[str, str]) -> None:
    from .train import run_and_exit  # loads PyTorch: the parent has it already

    os.environ.update(environment)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(line_buffering=True)  # as of ranks with an interpreter of their own
    run_and_exit(settings)


@contextlib.contextmanager
def reserved_port() -> Iterator[int]:
    """Of this machine, which the first rank may listen at and nothing else is given as long as this lasts. A socket
    that is bound and does not listen keeps a port from all that do not ask for it by SO_REUSEADDR."""
    with socket.socket() as reservation:
        reservation.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        reservation.bind(("127.0.0.1", 0))
        yield int(reservation.getsockname()[1])


def environment_of(rank: int, world: int, port: int) -> dict[str, str]:
    ranks = {"RANK": rank, "LOCAL_RANK": rank, "WORLD_SIZE": world, "LOCAL_WORLD_SIZE": world}
    return {**{name: str(value) for name, value in ranks.items()}, "MASTER_ADDR": "127.0.0.1",
            "MASTER_PORT": str(port)}


def _may_fork(settings: Settings) -> bool:
    """Not where PyTorch may drive GPUs, as these are not for processes that forked."""
    return settings.emulate or settings.device == "cpu" or not any(os.path.exists(device) for device in GPU_DEVICES)


def start_rank(settings: Settings, arguments: list[str], environment: dict[str, str], forked: bool) -> RankProcess:
    if forked:
        return _Forked(settings, environment)
    folder = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    path = os.pathsep.join(filter(None, (folder, os.environ.get("PYTHONPATH"))))
    return subprocess.Popen([sys.executable, "-u", "-m", "tangram_torch", *arguments],
                            env={**os.environ, **environment, "PYTHONPATH": path})


def run_all(settings: Settings, world: int, arguments: list[str]) -> int:
    """The exit code of the first rank that failed; 0: none did."""
    forked = _may_fork(settings)
    if forked:
        from . import train  # noqa: F401  for all ranks
    ranks: list[RankProcess] = []
    with reserved_port() as port:
        try:
            for rank in range(world):
                ranks.append(start_rank(settings, arguments, environment_of(rank, world, port), forked))
            return _first_failure(ranks)
        finally:
            _end(ranks)


def _first_failure(ranks: list[RankProcess]) -> int:
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


def _end(ranks: list[RankProcess]) -> None:
    running = [process for process in ranks if process.poll() is None]
    for process in running:
        process.terminate()
    deadline = time.monotonic() + GRACE
    while running and time.monotonic() < deadline:
        time.sleep(POLL)
        running = [process for process in running if process.poll() is None]
    for process in running:
        process.kill()


def main(arguments: Optional[list[str]] = None) -> int:
    given = sys.argv[1:] if arguments is None else arguments
    settings = read_settings(given)  # a wrong argument is said once, and not by every rank
    try:
        plan = read_plan(settings.plan)
    except PlanError as wrong:
        print(wrong, file=sys.stderr)
        return USAGE
    if missing := without_torch():
        print(missing, file=sys.stderr)
        return USAGE
    return run_all(settings, len(plan.ranks), given)


if __name__ == "__main__":
    sys.exit(main())
