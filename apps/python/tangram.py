"""Plans the training of large language models on mixed GPU fleets with one call.

    import tangram
    plan = tangram.plan("cluster.json", "model.yaml", target="megatron", forbid=["zero3"], time_limit=60)
    print(plan["predicted"]["iteration_s"])

Runs the program `tangram`: that of the environment's $TANGRAM, else the one that this module was installed with, else
the first on the PATH.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
import warnings
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Union

__all__ = ["Error", "plan", "program"]

Document = dict[str, Any]
Input = Union[str, "os.PathLike[str]", Mapping[str, Any]]
Value = Union[None, bool, int, float, str, "os.PathLike[str]", Iterable[str]]

_REPEATED = {"add", "drop", "set"}  # one change of the fleet each time; the lists of other options are joined by commas


class Error(Exception):
    """There is no plan. str() says why and what to do, `exit_code` is that of the program (3: no plan is feasible, 4: an
    input is invalid, 6: none was found within the limits of the search, 64: wrong usage; `tangram --help` has all), and
    `errors` are those of tangram.error/1: kind, code, message, hint, place."""

    def __init__(self, message: str, exit_code: int, errors: list[Document]) -> None:
        super().__init__(message)
        self.exit_code = exit_code
        self.errors = errors


def program() -> str:
    """The path of the program that plan() runs; Error where there is none."""
    prefix = Path(__file__).resolve().parents[3:4]  # of lib/python3/dist-packages
    installed = [str(folder / "bin" / "tangram") for folder in prefix if os.access(folder / "bin" / "tangram", os.X_OK)]
    found = os.environ.get("TANGRAM") or next(iter(installed), None) or shutil.which("tangram")
    if found is None:
        raise Error("the program tangram was not found: install it, or name it in the variable TANGRAM", 127, [])
    return found


def plan(cluster: Input, model: Input, **options: Value) -> Document:
    """What `tangram plan CLUSTER MODEL --json` prints: the launch plan, as `tangram schema launch_plan` describes it.

    cluster, model: a path, the name of a shipped file, or a dict of what such a file holds.
    options: those of `tangram plan`, with _ for -: True for a switch, a list where several values are taken; None and
        False leave an option out. With `pareto` the choices come back, with `against` the decision.

    Raises Error. Warns where the plan is not all that was asked for: a search that was stopped early, a parallelizer
    that failed."""
    with tempfile.TemporaryDirectory(prefix="tangram-") as folder:
        files = [_file(cluster, Path(folder, "cluster.json")), _file(model, Path(folder, "model.yaml"))]
        command = [program(), "plan", *files, *_flags(options), "--json", "--quiet"]
        try:
            done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
        except OSError as reason:
            raise Error(f"{command[0]} cannot be started: {reason.strerror}", 127, []) from reason
    said = done.stderr.strip()
    document = _parsed(done.stdout)
    if document is None or document.get("schema") == "tangram.error/1":
        errors = [] if document is None else document["errors"]
        raise Error(said or f"{command[0]} ended with {done.returncode}", done.returncode, errors)
    if done.returncode in (5, 6):
        what = "a parallelizer failed" if done.returncode == 5 else "the search was stopped early"
        warnings.warn(said or f"{what}: the best plan that was found", RuntimeWarning, stacklevel=2)
    return document


def _file(given: Input, path: Path) -> str:
    if not isinstance(given, Mapping):
        return os.fspath(given)
    path.write_text(json.dumps(given), encoding="utf-8")  # JSON is YAML, too
    return str(path)


def _flags(options: Mapping[str, Value]) -> list[str]:
    flags = []
    for name, value in options.items():
        flag = "--" + name.replace("_", "-")
        if value is None or value is False:
            continue
        if value is True:
            flags.append(flag)
        elif isinstance(value, (str, int, float, os.PathLike)):
            flags.append(f"{flag}={os.fspath(value) if isinstance(value, os.PathLike) else value}")
        elif name in _REPEATED:
            flags += [f"{flag}={item}" for item in value]
        else:
            flags.append(f"{flag}={','.join(os.fspath(item) for item in value)}")
    return flags


def _parsed(text: str) -> Document | None:
    try:
        return json.loads(text)
    except ValueError:
        return None
