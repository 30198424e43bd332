"""Ends a run with its reason on every rank, soon after one of them has failed, was killed or hangs with its host.

Ranks beat in the store of torch.distributed, each looks after the next one, and the first who notices or fails says
why, once. It depends on no backend: NCCL alone would wait for its timeout.
"""

from __future__ import annotations

import os
import socket
import sys
import threading
import time
from datetime import timedelta
from typing import Any

BEAT = 2.0  # seconds
FAILURE = "tangram/failure"
ENDED_BY_OTHERS = 75


class Watch:
    """Of one rank. `store` is a connection of its own: calls that wait hold up all others of a connection."""

    def __init__(self, store: Any, rank: int, world: int, patience: float) -> None:
        self._store = store
        self._rank = rank
        self._world = world
        self._patience = patience
        self._done = threading.Event()
        self._beats = 0
        self._thread = threading.Thread(target=self._look, name="watch", daemon=True)
        self._store.set_timeout(timedelta(seconds=patience))
        self._thread.start()

    def stop(self) -> None:
        """The run is over: silence is no failure any more."""
        self._done.set()
        self._thread.join()
        self._store.set(self._key(self._rank), "done")

    def report(self, reason: str) -> str:
        """Tells all ranks; returns what the first of them has told."""
        try:
            told = self._store.compare_set(FAILURE, "", f"{self._rank}: {reason}")
        except (RuntimeError, ValueError):
            return f"{self._rank}: {reason}"
        return str(told.decode())

    @staticmethod
    def _key(rank: int) -> str:
        return f"tangram/beat/{rank}"

    def _look(self) -> None:
        other = (self._rank + 1) % self._world
        seen, since = None, time.monotonic()
        while not self._done.wait(BEAT):
            try:
                self._beats += 1
                self._store.set(self._key(self._rank), str(self._beats))
                told = self._store.compare_set(FAILURE, "", "")
                beat = self._store.get(self._key(other))
            except (RuntimeError, ValueError) as lost:
                self._end(f"the first rank's host no longer answers: {lost}")
                return
            if told:
                self._end(f"rank {told.decode()}")
                return
            if beat != seen:
                seen, since = beat, time.monotonic()
            elif beat != b"done" and time.monotonic() - since > self._patience:
                self._end("rank " + self.report(f"rank {other} has not answered for {self._patience:.0f} s"))
                return

    def _end(self, why: str) -> None:
        if self._done.is_set():
            return
        print(f"rank {self._rank} on {socket.gethostname()} ends: {why}", file=sys.stderr, flush=True)
        os._exit(ENDED_BY_OTHERS)
