#!/usr/bin/env python3
"""Plans a job again and again while one thing of the fleet or the job takes value after value.

{} in an option's text is replaced by each of the values. Writes a table (tab-separated: the value, tokens a second,
seconds an iteration, GPUs in use, dollars per million tokens) and, with -o, draws it. A value for which no plan is
possible has a row without figures.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from pathlib import Path
from typing import Any, Optional
from xml.sax.saxutils import escape

EXAMPLES = """\
examples:
  scripts/sweep.py fleet.json model.yaml --add 'gpu=H100,nodes={}' --values 1,2,4,8 -o sweep.svg
  scripts/sweep.py fleet.json model.yaml --set 'link(zone:a,zone:b).bandwidth={}Gbit' --values 1,5,10,50
  scripts/sweep.py fleet.json model.yaml --values 1024,2048,4096 -- --seq-len {}

"""

COLUMNS = ("value", "tokens_per_s", "iteration_s", "gpus", "cost_per_mtoken")
NO_PLAN = 3  # exit code of tangram

# Geometry, pixels.
WIDTH, HEIGHT, LEFT, TOP, BELOW, RIGHT = 520, 300, 84, 60, 56, 30
FONT = "Helvetica, Arial, 'DejaVu Sans', sans-serif"
INK, SOFT, GRID, MARK = "#1f2933", "#616e7c", "#e4e7eb", "#4477aa"
TICKS = 5

Row = dict[str, Any]


class Problem(Exception):
    """A run that failed for another reason than that no plan is possible."""


def row_of(value: str, plan: Optional[dict[str, Any]]) -> Row:
    if plan is None:
        return {"value": value} | dict.fromkeys(COLUMNS[1:])
    predicted = plan["predicted"]
    return {"value": value, "tokens_per_s": predicted["tokens_per_s"], "iteration_s": predicted["iteration_s"],
            "gpus": len(plan["ranks"]), "cost_per_mtoken": predicted["cost_per_mtoken"] or None}


def run(command: list[str], value: str) -> Row:
    done = subprocess.run([word.replace("{}", value) for word in command], capture_output=True, text=True, check=False)
    if done.returncode == NO_PLAN:
        return row_of(value, None)
    if done.returncode != 0:
        raise Problem(done.stderr.strip() or f"{command[0]} ended with {done.returncode}")
    return row_of(value, json.loads(done.stdout))


def table(rows: list[Row]) -> str:
    def cell(value: Any) -> str:
        return "-" if value is None else f"{value:.6g}" if isinstance(value, float) else str(value)

    return "".join("\t".join(line) + "\n" for line in (COLUMNS, *([cell(r[c]) for c in COLUMNS] for r in rows)))


def step_of(most: float) -> float:
    """A round distance between ticks: 1, 2 or 5 times a power of ten."""
    power = 1.0
    while power * 10 <= most / TICKS:
        power *= 10
    while power > most / TICKS:
        power /= 10
    return next(power * factor for factor in (1, 2, 5, 10) if power * factor >= most / TICKS)


def text(x: float, y: float, words: str, anchor: str = "middle", colour: str = SOFT, size: int = 12) -> str:
    return (f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="{colour}" font-size="{size}">'
            f"{escape(words)}</text>")


def draw(rows: list[Row], title: str, name: str) -> str:
    """Values at equal distances, in their order; tokens a second from zero."""
    most = max((r["tokens_per_s"] for r in rows if r["tokens_per_s"] is not None), default=1.0)
    step = step_of(most)
    top = step * -(-most // step)
    width, height = LEFT + WIDTH + RIGHT, TOP + HEIGHT + BELOW
    lines = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
             f'viewBox="0 0 {width} {height}" font-family="{FONT}">',
             f'<rect width="{width}" height="{height}" fill="#ffffff"/>', text(LEFT, 28, title, "start", INK, 15),
             text(LEFT, 47, "tokens a second, as predicted", "start")]
    for i in range(int(top / step + 0.5) + 1):
        y = TOP + HEIGHT - i * step / top * HEIGHT
        lines += [f'<path d="M{LEFT} {y:.1f}h{WIDTH}" stroke="{GRID}"/>', text(LEFT - 8, y + 4, f"{i * step:,.0f}", "end")]
    points = []
    for i, row in enumerate(rows):
        x = LEFT + (i + 0.5) * WIDTH / len(rows)
        lines.append(text(x, TOP + HEIGHT + 18, row["value"]))
        if row["tokens_per_s"] is not None:
            points.append((x, TOP + HEIGHT - row["tokens_per_s"] / top * HEIGHT))
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    lines.append(f'<polyline points="{path}" fill="none" stroke="{MARK}" stroke-opacity="0.4"/>')
    lines += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4.5" fill="{MARK}"/>' for x, y in points]
    lines.append(text(LEFT + WIDTH / 2, TOP + HEIGHT + 42, name, colour=INK))
    return "\n".join([*lines, "</svg>", ""])


def parse(words: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=EXAMPLES + (__doc__ or ""),
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cluster")
    parser.add_argument("model")
    parser.add_argument("--values", required=True, help="what {} stands for, in turn: 1,2,4")
    for name in ("drop", "add", "set"):
        parser.add_argument(f"--{name}", action="append", default=[], metavar="WHAT", help=f"as of tangram plan --{name}")
    parser.add_argument("--tangram", default="tangram", help="the program (default: on the PATH)")
    parser.add_argument("-o", "--output", help="SVG file")
    parser.add_argument("options", nargs="*", help="behind --: more options of tangram plan")
    return parser.parse_args(words)


def main() -> int:
    arguments = parse(sys.argv[1:])
    varied = [f"--{name}={what}" for name in ("drop", "add", "set") for what in getattr(arguments, name)]
    varied += arguments.options
    if not any("{}" in word for word in varied):
        print("error: no option has {} in it: nothing varies", file=sys.stderr)
        return 64
    command = [arguments.tangram, "plan", arguments.cluster, arguments.model, "--json", "-q", *varied]
    try:
        rows = [run(command, value) for value in arguments.values.split(",")]
        sys.stdout.write(table(rows))
        if arguments.output:
            title = f"{Path(arguments.model).stem} on {Path(arguments.cluster).stem}"
            name = next(word for word in varied if "{}" in word)
            Path(arguments.output).write_text(draw(rows, title, name), encoding="utf-8")
    except (OSError, Problem) as problem:
        print(f"error: {problem}", file=sys.stderr)
        return 4
    return 0


if __name__ == "__main__":
    sys.exit(main())
