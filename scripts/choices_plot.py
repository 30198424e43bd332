#!/usr/bin/env python3
"""Draws the choices of `tangram plan ... --pareto N --json`: throughput over what it costs, in money and in GPUs."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

EXAMPLES = """\
examples:
  tangram plan fleet.json model.yaml --pareto 12 --json | scripts/choices_plot.py -o choices.svg
  scripts/choices_plot.py choices.json > choices.svg

"""

# Geometry, pixels.
WIDTH, HEIGHT = 440, 300  # of a panel
LEFT, TOP, GAP, BELOW = 84, 60, 96, 56
FONT = "Helvetica, Arial, 'DejaVu Sans', sans-serif"
INK, SOFT, GRID, MARK = "#1f2933", "#616e7c", "#e4e7eb", "#4477aa"
TICKS = 5


class Problem(Exception):
    """Invalid input."""


def choices_of(text: str, where: str) -> dict[str, Any]:
    try:
        document = json.loads(text)
    except json.JSONDecodeError as error:
        raise Problem(f"{where}:{error.lineno}:{error.colno}: {error.msg}") from None
    if not isinstance(document, dict) or document.get("schema") != "tangram.choices/1":
        raise Problem(f"{where}: not a list of choices (schema tangram.choices/1): make one with plan --pareto N --json")
    if not document.get("choices"):
        raise Problem(f"{where}: the list is empty")
    return document


def step_of(most: float) -> float:
    """A round distance between ticks: 1, 2 or 5 times a power of ten."""
    power = 1.0
    while power * 10 <= most / TICKS:
        power *= 10
    while power > most / TICKS:
        power /= 10
    return next(power * factor for factor in (1, 2, 5, 10) if power * factor >= most / TICKS)


def number(value: float) -> str:
    return f"{value:,.0f}" if value >= 10 or value == int(value) else f"{value:g}"


def text(x: float, y: float, words: str, anchor: str = "middle", colour: str = SOFT, size: int = 12, more: str = "") -> str:
    return (f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="{colour}" font-size="{size}"{more}>'
            f"{escape(words)}</text>")


def panel(left: float, name: str, points: list[tuple[float, float]]) -> list[str]:
    """Points of (cost, tokens a second), both axes from zero."""
    x_step, y_step = step_of(max(x for x, _ in points)), step_of(max(y for _, y in points))
    x_most = x_step * -(-max(x for x, _ in points) // x_step)
    y_most = y_step * -(-max(y for _, y in points) // y_step)

    def place(x: float, y: float) -> tuple[float, float]:
        return left + x / x_most * WIDTH, TOP + HEIGHT - y / y_most * HEIGHT

    lines = []
    for i in range(int(y_most / y_step + 0.5) + 1):
        x, y = place(0, i * y_step)
        lines.append(f'<path d="M{x:.1f} {y:.1f}h{WIDTH}" stroke="{GRID}"/>')
        lines.append(text(x - 8, y + 4, number(i * y_step), "end"))
    for i in range(int(x_most / x_step + 0.5) + 1):
        x, y = place(i * x_step, 0)
        lines.append(f'<path d="M{x:.1f} {y:.1f}v-{HEIGHT}" stroke="{GRID}"/>')
        lines.append(text(x, y + 18, number(i * x_step)))
    lines.append(text(left + WIDTH / 2, TOP + HEIGHT + 42, name, colour=INK))
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in (place(*point) for point in sorted(points)))
    lines.append(f'<polyline points="{path}" fill="none" stroke="{MARK}" stroke-opacity="0.4"/>')
    for point in points:
        x, y = place(*point)
        lines.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4.5" fill="{MARK}"/>')
    return lines


def draw(document: dict[str, Any]) -> str:
    choices = document["choices"]
    panels = [("GPUs", [(c["gpus"], c["tokens_per_s"]) for c in choices])]
    if all(c["dollars_per_hour"] is not None for c in choices):
        panels.append(("dollars an hour", [(c["dollars_per_hour"], c["tokens_per_s"]) for c in choices]))
    width = LEFT + len(panels) * WIDTH + (len(panels) - 1) * GAP + 30
    height = TOP + HEIGHT + BELOW
    lines = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
             f'viewBox="0 0 {width} {height}" font-family="{FONT}">',
             f'<rect width="{width}" height="{height}" fill="#ffffff"/>',
             text(LEFT, 28, f"{document.get('model', '')} on {document.get('fleet', '')}", "start", INK, 15),
             text(LEFT, 47, "tokens a second, as predicted", "start")]
    for i, (name, points) in enumerate(panels):
        lines += panel(LEFT + i * (WIDTH + GAP), name, points)
    return "\n".join([*lines, "</svg>", ""])


def main() -> int:
    parser = argparse.ArgumentParser(description=EXAMPLES + (__doc__ or ""),
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("choices", nargs="?", default="-", help="file of plan --pareto N --json; - is standard input")
    parser.add_argument("-o", "--output", default="-", help="SVG file; - is standard output")
    arguments = parser.parse_args()
    try:
        where = "standard input" if arguments.choices == "-" else arguments.choices
        source = sys.stdin.read() if arguments.choices == "-" else Path(arguments.choices).read_text(encoding="utf-8")
        drawing = draw(choices_of(source, where))
    except (OSError, Problem) as problem:
        print(f"error: {problem}", file=sys.stderr)
        return 4
    if arguments.output == "-":
        sys.stdout.write(drawing)
    else:
        Path(arguments.output).write_text(drawing, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
