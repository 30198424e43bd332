"""What a rank does when: spans of passes and of the units in them, written as a trace that Perfetto opens, and as
timings that `tangram calibrate` reads.

On a GPU spans are taken by events of its stream, so that nothing waits for them before the iteration ends.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Optional, Protocol

import torch


@dataclass(frozen=True)
class Span:
    kind: str  # forward, backward, weight gradient, sync, optimizer
    name: str  # of a unit, or of the pass
    detail: dict[str, Any]
    start: float  # seconds since the epoch
    end: float


class Clock(Protocol):
    def mark(self) -> Any:
        """A moment, to be told by `seconds` later."""

    def seconds(self, mark: Any) -> float:
        """Since the epoch."""


class HostClock:
    def mark(self) -> float:
        return time.time()

    def seconds(self, mark: float) -> float:
        return mark


class StreamClock:
    """Of the current stream of a GPU."""

    def __init__(self) -> None:
        self._origin = self._event()
        torch.cuda.synchronize()
        self._epoch = time.time()

    def mark(self) -> Any:
        return self._event()

    def seconds(self, mark: Any) -> float:
        mark.synchronize()
        return self._epoch + self._origin.elapsed_time(mark) / 1000

    @staticmethod
    def _event() -> Any:
        event = torch.cuda.Event(enable_timing=True)
        event.record()
        return event


class Recorder:
    """Off, it costs a test at each span."""

    def __init__(self, clock: Optional[Clock] = None) -> None:
        self._clock = clock
        self._open: list[tuple[str, str, dict[str, Any], Any, Any]] = []

    @property
    def is_on(self) -> bool:
        return self._clock is not None

    @contextmanager
    def span(self, kind: str, name: str, **detail: Any) -> Iterator[None]:
        if self._clock is None:
            yield
            return
        start = self._clock.mark()
        yield
        self._open.append((kind, name, detail, start, self._clock.mark()))

    def take(self) -> list[Span]:
        """Those since it was called last."""
        if self._clock is None:
            return []
        spans = [Span(kind, name, detail, self._clock.seconds(start), self._clock.seconds(end))
                 for kind, name, detail, start, end in self._open]
        self._open = []
        return spans


OFF = Recorder()


class TraceFile:
    """A rank's spans in the Trace Event Format, a track for passes and one for units."""

    TRACKS = {"pass": 0, "unit": 1}

    def __init__(self, folder: str, rank: int, title: str) -> None:
        os.makedirs(folder, exist_ok=True)
        self._path = Path(folder) / f"rank-{rank:05}.json"
        self._rank = rank
        self._events: list[dict[str, Any]] = [
            {"ph": "M", "name": "process_name", "pid": rank, "args": {"name": title}},
            {"ph": "M", "name": "process_sort_index", "pid": rank, "args": {"sort_index": rank}}]

    def add(self, spans: list[Span]) -> None:
        """Keeps all of a run in memory: traces are for some iterations."""
        for span in spans:
            track = self.TRACKS["unit" if "unit" in span.detail else "pass"]
            self._events.append({"ph": "X", "pid": self._rank, "tid": track, "cat": span.kind,
                                 "name": f"{span.kind} {span.name}", "ts": round(span.start * 1e6, 1),
                                 "dur": round((span.end - span.start) * 1e6, 1), "args": span.detail})

    def write(self) -> None:
        beside = self._path.with_suffix(".tmp")
        beside.write_text(json.dumps({"traceEvents": self._events}), encoding="utf-8")
        os.replace(beside, self._path)
