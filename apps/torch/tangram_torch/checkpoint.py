"""Checkpoints: every rank writes what it owns of master weights and optimizer states, by the names of weights and the
ranges of their elements, so that any plan of the same model can read them.

    FOLDER/step-00000120/rank-00003.pt    written first, each beside its name and renamed
    FOLDER/step-00000120/complete.json    written last: what lies in a folder without it does not count

Of ranks that own the same, one writes. Beside adapters all else is left out that is frozen: it is what the run began
with, and the sum of its squares says whether another run began with the same.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, BinaryIO, Optional

import torch
from torch import Tensor

from .flat import FlatWeights, Slot
from .hugging_face import boxes
from .launch_plan import LaunchPlan
from .run import Run
from .tensor_names import Ranges
from .weights import colocated_units_of, units_of

FORMAT = "tangram.checkpoint/1"
COMPLETE = "complete.json"
EQUAL_SUMS = 1e-6  # relative: sums of the same weights that plans add up in another order are closer
KEPT = 2  # checkpoints: the newest one, and the one before it


class CheckpointError(Exception):
    """A checkpoint cannot be read: str() says why."""


@dataclass(frozen=True)
class Position:
    """Where a run stands."""

    step: int  # iterations done
    loss_scale: float
    good_steps: int  # since the scale changed


def save(run: Run, folder: str, position: Position) -> None:
    """All ranks call it. A process that ends at any time leaves the last complete checkpoint as it was."""
    target = _folder_of(folder, position.step)
    rank = run.groups.rank
    os.makedirs(target, exist_ok=True)
    run.groups.barrier()
    adapters = run.program.plan.model.adapters is not None
    content = {"format": FORMAT, "pieces": list(_pieces(run)), "routers": {} if adapters else _routers(run)}
    frozen = _squares_of_frozen(run) if adapters else None
    _write(target / f"rank-{rank:05}.pt", lambda file: torch.save(content, file))
    run.groups.barrier()
    if rank == 0:
        plan = run.program.plan
        record = {"format": FORMAT, "plan": plan.id, "model": plan.model.name, **vars(position),
                  "details": asdict(plan.model.details), "frozen_squares": frozen,
                  "ranks": [sorted(sections_of(plan, other)) for other in range(len(plan.ranks))]}
        text = json.dumps(record) + "\n"
        _write(target / COMPLETE, lambda file: _write_all(file, text))
        _forget_old(Path(folder))
    run.groups.barrier()


def latest(folder: str) -> Optional[Path]:
    """The newest complete checkpoint of a folder."""
    complete = sorted(path.parent for path in Path(folder).glob(f"step-*/{COMPLETE}"))
    return complete[-1] if complete else None


def load(run: Run, checkpoint: Path) -> Position:
    """Sets weights, optimizer states and corrections of routers. Raises CheckpointError where something is missing."""
    record = _read_record(checkpoint)
    if record["details"] != asdict(run.program.plan.model.details):
        raise CheckpointError(f"{checkpoint} is of a model whose layers differ: give the --weights that it began with, "
                              "or none as it had none")
    squares = record.get("frozen_squares")
    if squares is not None:
        _compare_frozen(run, checkpoint, squares)
    wanted = _Wanted(run, adapters_alone=squares is not None)
    own = sections_of(run.program.plan, run.groups.rank)
    for rank, sections in enumerate(record["ranks"]):
        if own.isdisjoint(sections):
            continue
        try:
            content = torch.load(checkpoint / f"rank-{rank:05}.pt", map_location="cpu")
        except Exception as reason:
            raise CheckpointError(f"{checkpoint}/rank-{rank:05}.pt cannot be read: {reason}") from reason
        for piece in content["pieces"]:
            wanted.take(piece)
        for block, correction in content["routers"].items():
            if block in run.program.routers:
                run.program.routers[block].correction.copy_(correction)
    wanted.finish(checkpoint)
    return Position(record["step"], record["loss_scale"], record["good_steps"])


def _compare_frozen(run: Run, checkpoint: Path, squares: float) -> None:
    """All ranks call it."""
    if run.program.plan.model.adapters is None:
        raise CheckpointError(f"{checkpoint} has adapters alone, and the plan trains the whole model")
    if abs(_squares_of_frozen(run) - squares) > EQUAL_SUMS * squares:
        raise CheckpointError(f"{checkpoint} has adapters beside other weights: give the --weights, or the --seed, that it "
                              "began with")


def _flats_of(run: Run, adapters_alone: bool) -> list[FlatWeights]:
    """What a checkpoint has: all weights, or beside adapters those that are trained."""
    return [flat for flat in run.program.flats if flat.trained or not adapters_alone]


def _squares_of_frozen(run: Run) -> float:
    """Of every weight that is not trained, each counted once. All ranks call it."""
    squares = torch.zeros(1, dtype=torch.float64, device=run.program.device)
    for flat in run.program.flats:
        for slot, first, last in flat.own_pieces() if not flat.trained else ():
            if run.optimizer.is_counted(flat, slot):
                squares += flat.squares(slot, first, last)
    run.groups.world.all_reduce(squares)
    return float(squares)


def sections_of(plan: LaunchPlan, rank: int) -> set[str]:
    """Which parts of the model a rank holds: each of its blocks, and the ends as one, as their tables may be tied."""
    colocated = [unit for encoder in plan.model.encoders for unit in colocated_units_of(plan, encoder)]
    names = {unit.name for unit in units_of(plan, rank) + colocated}
    return {name if name.startswith("blocks.") else "ends" for name in names}


def _folder_of(folder: str, step: int) -> Path:
    return Path(folder) / f"step-{step:08}"


def _read_record(checkpoint: Path) -> dict[str, Any]:
    try:
        record = json.loads((checkpoint / COMPLETE).read_text(encoding="utf-8"))
    except (OSError, ValueError) as reason:
        raise CheckpointError(f"{checkpoint / COMPLETE}: {reason}") from reason
    if record.get("format") != FORMAT:
        raise CheckpointError(f"{checkpoint} is not a checkpoint of format {FORMAT}")
    return record


def _write(path: Path, write: Callable[[BinaryIO], None]) -> None:
    """Beside it first, so that it is whole or not there."""
    beside = path.with_suffix(".tmp")
    with open(beside, "wb") as file:
        write(file)
        file.flush()
        os.fsync(file.fileno())
    os.replace(beside, path)


def _write_all(file: BinaryIO, text: str) -> None:
    file.write(text.encode())


def _forget_old(folder: Path) -> None:
    """Keeps the newest complete ones; what was left unfinished before them goes, too."""
    complete = sorted(path.parent for path in folder.glob(f"step-*/{COMPLETE}"))
    for path in sorted(folder.glob("step-*")):
        if path < complete[-1] and path not in complete[-KEPT:]:
            (path / COMPLETE).unlink(missing_ok=True)  # first, so that no half of it counts
            shutil.rmtree(path, ignore_errors=True)


# Pieces: elements [first, last) of the rank's slice of a weight, the slice as ranges of the whole weight.
Piece = dict[str, Any]


def _pieces(run: Run) -> Iterator[Piece]:
    optimizer = run.optimizer
    for flat in _flats_of(run, run.program.plan.model.adapters is not None):
        for slot, first, last in flat.own_pieces():
            if not optimizer.is_counted(flat, slot):
                continue
            start = flat.own.start + first - slot.first
            values = {"value": flat.master[first:last], **optimizer.states_of(flat, first, last)}
            yield {"name": slot.held.name, "ranges": [(r.start, r.stop) for r in slot.held.ranges], "first": start,
                   "values": {key: value.detach().clone().cpu() for key, value in values.items()},
                   "steps": optimizer.steps_of(flat, first)}


def slices_of(checkpoint: Path) -> Iterator[tuple[str, Ranges, Tensor]]:
    """All weights of a checkpoint, as slices of each with their values."""
    for rank in range(len(_read_record(checkpoint)["ranks"])):
        content = torch.load(checkpoint / f"rank-{rank:05}.pt", map_location="cpu")
        for piece in content["pieces"]:
            ranges = tuple(range(*r) for r in piece["ranges"])
            for box, value in boxes(ranges, piece["first"], piece["values"]["value"]):
                yield piece["name"], box, value
        for block, correction in content["routers"].items():
            yield f"blocks.{block}.router_correction", (range(len(correction)),), correction


def _routers(run: Run) -> dict[int, Tensor]:
    return {block: router.correction.cpu() for block, router in run.program.routers.items()
            if router.shape.router_bias}


class _Wanted:
    """What a rank owns, filled from pieces of whoever wrote them. `adapters_alone`: all else stays as it is."""

    def __init__(self, run: Run, adapters_alone: bool) -> None:
        self._run = run
        self._flats = _flats_of(run, adapters_alone)
        self._missing: dict[tuple[int, str], Tensor] = {}  # of each slot, elements of the slice that are still missing
        self._slots: dict[str, list[tuple[int, FlatWeights, Slot]]] = {}
        self._values: dict[tuple[int, str], dict[str, Tensor]] = {}
        self._steps: dict[tuple[int, str], int] = {}
        for number, flat in enumerate(self._flats):
            for slot, _, _ in flat.own_pieces():
                self._slots.setdefault(slot.held.name, []).append((number, flat, slot))
                self._missing[number, slot.held.name] = torch.ones(slot.held.shape, dtype=torch.bool)

    def take(self, piece: Piece) -> None:
        for number, _, slot in self._slots.get(piece["name"], []):
            source = [range(*r) for r in piece["ranges"]]
            common = [range(max(a.start, b.start), min(a.stop, b.stop)) for a, b in zip(source, slot.held.ranges)]
            if any(len(r) == 0 for r in common):
                continue
            self._steps[number, slot.held.name] = piece["steps"]
            present = _spread(torch.ones(len(piece["values"]["value"]), dtype=torch.bool), piece, source)
            here, there = _within(common, slot.held.ranges), _within(common, source)
            for key, values in piece["values"].items():
                kept = self._values.setdefault((number, slot.held.name), {})
                whole = kept.setdefault(key, torch.zeros(slot.held.shape, dtype=values.dtype))
                spread = _spread(values, piece, source)[there]
                whole[here] = torch.where(present[there], spread, whole[here])
            self._missing[number, slot.held.name][here] &= ~present[there]

    def finish(self, checkpoint: Path) -> None:
        for number, flat in enumerate(self._flats):
            for slot, first, last in flat.own_pieces():
                start = flat.own.start + first - slot.first
                own = slice(start, start + last - first)
                if slot.held.weight.of_adapter and (number, slot.held.name) not in self._values:
                    continue  # of a run without adapters: they begin here
                if self._missing[number, slot.held.name].flatten()[own].any():
                    raise CheckpointError(f"{checkpoint} has not all of {slot.held.name}: it is of another model, or a "
                                          "file of it is not whole")
                values = {key: whole.flatten()[own] for key, whole in self._values[number, slot.held.name].items()}
                flat.master[first:last].copy_(values.pop("value"))
                if flat.trained and values:
                    self._run.optimizer.set_states(flat, first, last, values, self._steps[number, slot.held.name])
            flat.gather()
            flat.refresh()
            flat.release()


def _spread(values: Tensor, piece: Piece, ranges: list[range]) -> Tensor:
    """A part of a slice in the shape of the slice; elsewhere zeros."""
    shape = [len(r) for r in ranges]
    whole = torch.zeros(int(torch.tensor(shape).prod()), dtype=values.dtype)
    whole[piece["first"]:piece["first"] + len(values)] = values
    return whole.view(shape)


def _within(common: list[range], whole: Any) -> tuple[slice, ...]:
    return tuple(slice(c.start - w.start, c.stop - w.start) for c, w in zip(common, whole))
