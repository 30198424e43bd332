#!/usr/bin/env python3
"""Draws predicted against measured iteration times, as `tangram accuracy DATASET --json` writes them, into an SVG."""

from __future__ import annotations

import argparse
import json
import math
import os
import statistics
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn
from xml.sax.saxutils import escape

EXAMPLES = """\
examples:
  tangram accuracy validation.json --json | scripts/accuracy_plot.py -o accuracy.svg
  scripts/accuracy_plot.py calibration.json validation.json -o accuracy.svg
      a panel for each file; a dataset has one colour in all of them
  scripts/accuracy_plot.py a.json b.json --title "before" --title "after" > accuracy.svg

"""

# Geometry, pixels.
SIDE = 500  # of the square in which points lie
LEFT, TOP, GAP = 78, 92, 92
BELOW_AXIS = 64  # tick labels and axis name
LEGEND_ROW = 25
MARGIN = 26

FONT = "Helvetica, Arial, 'DejaVu Sans', sans-serif"
INK, SOFT, GRID = "#1f2933", "#616e7c", "#e4e7eb"
BANDS = ((0.20, "#e1e8f2"), (0.10, "#bfcee4"))  # share off the diagonal, outer first
DASHES = ' stroke-dasharray="5 4"'

# Hues that stay apart with the common colour deficiencies, the more so as markers differ: the "bright" scheme of Paul
# Tol ("Colour Schemes", SRON/EPS/TN/09-002), then darker ones.
COLOURS = ("#4477aa", "#ee6677", "#228833", "#ccaa22", "#33aacc", "#aa3377", "#666666", "#cc6633", "#004488", "#997700",
           "#882255", "#117766")
MARKERS = ("circle", "square", "triangle", "diamond", "down", "cross", "pentagon")


class Problem(Exception):
    """Invalid input."""


@dataclass
class Point:
    dataset: str
    identity: str
    measured: float  # seconds
    predicted: float

    @property
    def error(self) -> float:
        return self.predicted / self.measured - 1


@dataclass
class Panel:
    title: str
    points: list[Point]
    left_out: int  # measurements without a time or not expressible


# Reading --------------------------------------------------------------------------------------------------------------


def number_of(record: dict[str, Any], key: str, where: str) -> float:
    value = record.get(key)
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not value > 0 or math.isinf(value):
        raise Problem(f"{where}: \"{key}\" of {record.get('id', 'a measurement')} must be a positive number")
    return float(value)


def panel_of(text: str, where: str, title: str) -> Panel:
    try:
        document = json.loads(text)
    except json.JSONDecodeError as error:
        raise Problem(f"{where}:{error.lineno}:{error.colno}: {error.msg}") from error
    if not isinstance(document, dict) or document.get("schema") != "tangram.accuracy/1":
        raise Problem(f"{where} is not tangram.accuracy/1: write it with `tangram accuracy DATASET --json`")
    panel = Panel(title, [], 0)
    for record in document.get("measurements", []):
        if "time_error" not in record:
            panel.left_out += 1
            continue
        panel.points.append(Point(str(record.get("dataset", "")), str(record.get("id", "")),
                                  number_of(record, "measured_s", where), number_of(record, "predicted_s", where)))
    if not panel.points:
        raise Problem(f"{where}: no measurement has both a measured and a predicted time")
    return panel


def read_panels(files: list[str], titles: list[str]) -> list[Panel]:
    panels = []
    for i, name in enumerate(files):
        where = "stdin" if name == "-" else name
        try:
            text = sys.stdin.read() if name == "-" else Path(name).read_text(encoding="utf-8")
        except OSError as error:
            raise Problem(f"{name}: {error.strerror}") from error
        default = "" if name == "-" else Path(name).stem.replace("_", " ").replace("-", " ")
        panels.append(panel_of(text, where, titles[i] if i < len(titles) else default))
    return panels


# Scales ---------------------------------------------------------------------------------------------------------------


@dataclass
class Scale:
    """Both axes of all panels: logarithms from `least` to `most`, so that the diagonal is a diagonal."""

    least: float
    most: float

    @staticmethod
    def around(points: list[Point]) -> "Scale":
        values = [value for point in points for value in (point.measured, point.predicted)]
        room = 1.25
        return Scale(min(values) / room, max(values) * room)

    def share(self, value: float) -> float:
        return math.log(value / self.least) / math.log(self.most / self.least)

    def ticks(self) -> list[float]:
        """1, 2, 5 per decade; only 1 where there are more than three decades."""
        steps = (1, 2, 5) if self.most / self.least <= 1000 else (1,)
        first, last = math.floor(math.log10(self.least)), math.ceil(math.log10(self.most))
        values = [float(f"{step}e{power}") for power in range(first, last + 1) for step in steps]
        return [value for value in values if self.least <= value <= self.most]

    def fine(self) -> list[float]:
        """2 to 9 in each decade: the small marks on the axes."""
        first, last = math.floor(math.log10(self.least)), math.ceil(math.log10(self.most))
        values = [float(f"{step}e{power}") for power in range(first, last + 1) for step in range(2, 10)]
        return [value for value in values if self.least <= value <= self.most]


def percent(share: float) -> str:
    return f"{100 * share:.1f} %"


# Drawing --------------------------------------------------------------------------------------------------------------


def place(value: float) -> str:
    """Coordinates with one decimal, without -0 and trailing zeros."""
    text = f"{value:.1f}"
    text = text[:-2] if text.endswith(".0") else text
    return "0" if text == "-0" else text


def text_at(x: float, y: float, text: str, size: int = 13, anchor: str = "start", fill: str = INK,
            extra: str = "") -> str:
    return (f'<text x="{place(x)}" y="{place(y)}" font-size="{size}" text-anchor="{anchor}" fill="{fill}"{extra}>'
            f"{escape(text)}</text>")


def line(x1: float, y1: float, x2: float, y2: float, colour: str, width: float = 1, extra: str = "") -> str:
    return (f'<line x1="{place(x1)}" y1="{place(y1)}" x2="{place(x2)}" y2="{place(y2)}" stroke="{colour}" '
            f'stroke-width="{width:g}"{extra}/>')


def polygon(x: float, y: float, radius: float, corners: int, turn: float) -> str:
    angles = [turn + 2 * math.pi * i / corners for i in range(corners)]
    points = " ".join(f"{place(x + radius * math.sin(a))},{place(y - radius * math.cos(a))}" for a in angles)
    return f'<polygon points="{points}"/>'


def marker(kind: str, x: float, y: float, radius: float = 4.2) -> str:
    if kind == "circle":
        return f'<circle cx="{place(x)}" cy="{place(y)}" r="{radius:g}"/>'
    if kind == "cross":
        arm, half = radius * 1.15, radius * 0.42
        outline = ((-half, -arm), (half, -arm), (half, -half), (arm, -half), (arm, half), (half, half), (half, arm),
                   (-half, arm), (-half, half), (-arm, half), (-arm, -half), (-half, -half))
        return f'<polygon points="{" ".join(f"{place(x + dx)},{place(y + dy)}" for dx, dy in outline)}"/>'
    shapes = {"square": (4, math.pi / 4, 1.2), "triangle": (3, 0.0, 1.3), "diamond": (4, 0.0, 1.3),
              "down": (3, math.pi, 1.3), "pentagon": (5, 0.0, 1.15)}
    corners, turn, grow = shapes[kind]
    return polygon(x, y, radius * grow, corners, turn)


def style_of(index: int) -> tuple[str, str]:
    return COLOURS[index % len(COLOURS)], MARKERS[index % len(MARKERS)]


class Frame:
    """One panel's square, at (left, top)."""

    def __init__(self, scale: Scale, left: float, top: float):
        self.scale, self.left, self.top = scale, left, top

    def x(self, seconds: float) -> float:
        return self.left + SIDE * self.scale.share(seconds)

    def y(self, seconds: float) -> float:
        return self.top + SIDE * (1 - self.scale.share(seconds))

    def band(self, off: float, colour: str) -> str:
        """Where predictions lie between (1 - off) and (1 + off) times the measurement; clipped to the square."""
        low, high = self.scale.least, self.scale.most
        corners = ((low, low * (1 - off)), (high, high * (1 - off)), (high, high * (1 + off)), (low, low * (1 + off)))
        points = " ".join(f"{place(self.x(m))},{place(self.y(p))}" for m, p in corners)
        return f'<polygon points="{points}" fill="{colour}"/>'

    def grid(self) -> list[str]:
        right, bottom = self.left + SIDE, self.top + SIDE
        out = []
        for value in self.scale.ticks():
            out.append(line(self.x(value), self.top, self.x(value), bottom, GRID))
            out.append(line(self.left, self.y(value), right, self.y(value), GRID))
        return out

    def axes(self) -> list[str]:
        right, bottom = self.left + SIDE, self.top + SIDE
        out = [f'<rect x="{place(self.left)}" y="{place(self.top)}" width="{SIDE}" height="{SIDE}" fill="none" '
               f'stroke="{SOFT}"/>']
        for value in self.scale.fine():
            out.append(line(self.x(value), bottom, self.x(value), bottom + 3, SOFT))
            out.append(line(self.left - 3, self.y(value), self.left, self.y(value), SOFT))
        for value in self.scale.ticks():
            out.append(line(self.x(value), bottom, self.x(value), bottom + 6, SOFT))
            out.append(line(self.left - 6, self.y(value), self.left, self.y(value), SOFT))
            out.append(text_at(self.x(value), bottom + 22, f"{value:g}", 13, "middle", SOFT))
            out.append(text_at(self.left - 10, self.y(value) + 4.5, f"{value:g}", 13, "end", SOFT))
        out.append(text_at(self.left + SIDE / 2, bottom + 48, "measured iteration time (s)", 14, "middle"))
        middle = self.top + SIDE / 2
        turned = f' transform="rotate(-90 {place(self.left - 60)} {place(middle)})"'
        out.append(text_at(self.left - 60, middle, "predicted iteration time (s)", 14, "middle", INK, turned))
        return out

    def diagonal(self) -> str:
        return line(self.left, self.top + SIDE, self.left + SIDE, self.top, SOFT, 1.2, DASHES)

    def key(self) -> list[str]:
        """What the line and the bands are, in the corner where no honest prediction lies."""
        x, y, step = self.left + 16, self.top + 22, 21
        out = [line(x, y - 4.5, x + 26, y - 4.5, SOFT, 1.2, DASHES), text_at(x + 36, y, "predicted = measured", 12)]
        for i, (off, colour) in enumerate(reversed(BANDS)):
            below = y + step * (i + 1)
            out.append(f'<rect x="{place(x)}" y="{place(below - 11)}" width="26" height="13" fill="{colour}"/>')
            out.append(text_at(x + 36, below, f"within \u00b1{100 * off:.0f} %", 12))
        return out

    def points(self, points: list[Point], colour: str, shape: str) -> str:
        marks = []
        for point in sorted(points, key=lambda p: (p.measured, p.predicted, p.identity)):
            tip = f"{point.identity}: measured {point.measured:.4g} s, predicted {point.predicted:.4g} s"
            shown = marker(shape, self.x(point.measured), self.y(point.predicted))
            marks.append(f"<g><title>{escape(tip)} ({100 * point.error:+.1f} %)</title>{shown}</g>")
        return (f'<g fill="{colour}" fill-opacity="0.75" stroke="#ffffff" stroke-width="0.7">\n'
                + "\n".join(marks) + "\n</g>")


def by_dataset(points: list[Point]) -> dict[str, list[Point]]:
    groups: dict[str, list[Point]] = {}
    for point in points:
        groups.setdefault(point.dataset, []).append(point)
    return dict(sorted(groups.items(), key=lambda item: (-len(item[1]), item[0])))


def median_error(points: list[Point]) -> float:
    return statistics.median(abs(point.error) for point in points)


def within(points: list[Point], off: float) -> float:
    return sum(abs(point.error) <= off for point in points) / len(points)


def summary_of(panel: Panel) -> str:
    points = panel.points
    runs = f"{len(points)} of {len(points) + panel.left_out}" if panel.left_out else f"{len(points)}"
    return (f"{runs} runs, median error {percent(median_error(points))}, "
            f"{100 * within(points, 0.1):.0f} % within 10 %, {100 * within(points, 0.2):.0f} % within 20 %")


def legend(panel: Panel, styles: dict[str, tuple[str, str]], left: float, top: float) -> list[str]:
    """Columns: marker and dataset, rows, median error."""
    rows_at, median_at = left + SIDE * 0.66, left + SIDE * 0.98
    out = [text_at(left + 22, top, "dataset", 12, "start", SOFT), text_at(rows_at, top, "runs", 12, "end", SOFT),
           text_at(median_at, top, "median error", 12, "end", SOFT),
           line(left, top + 8, left + SIDE, top + 8, GRID)]
    for i, (dataset, points) in enumerate(by_dataset(panel.points).items()):
        y = top + LEGEND_ROW * (i + 1) + 2
        colour, shape = styles[dataset]
        out.append(f'<g fill="{colour}" fill-opacity="0.9">{marker(shape, left + 8, y - 4.5, 5.2)}</g>')
        out.append(text_at(left + 22, y, dataset.replace("_", " "), 14))
        out.append(text_at(rows_at, y, str(len(points)), 14, "end"))
        out.append(text_at(median_at, y, percent(median_error(points)), 14, "end"))
    return out


def draw_panel(panel: Panel, scale: Scale, styles: dict[str, tuple[str, str]], left: float, clip: str) -> list[str]:
    frame = Frame(scale, left, TOP)
    out = [text_at(left, TOP - 40, panel.title, 19, "start", INK, ' font-weight="600"'),
           text_at(left, TOP - 17, summary_of(panel), 13, "start", SOFT)]
    out += [f'<clipPath id="{clip}"><rect x="{place(left)}" y="{TOP}" width="{SIDE}" height="{SIDE}"/></clipPath>',
            f'<g clip-path="url(#{clip})">']
    out += frame.grid() + [frame.band(off, colour) for off, colour in BANDS]
    out += [frame.diagonal(), "</g>"]
    out += frame.axes() + frame.key()
    for dataset, points in by_dataset(panel.points).items():
        out.append(frame.points(points, *styles[dataset]))
    return out + legend(panel, styles, left, TOP + SIDE + BELOW_AXIS + 26)


def draw(panels: list[Panel]) -> str:
    everything = [point for panel in panels for point in panel.points]
    styles = {dataset: style_of(i) for i, dataset in enumerate(by_dataset(everything))}
    scale = Scale.around(everything)
    longest = max(len(by_dataset(panel.points)) for panel in panels)
    width = LEFT + len(panels) * SIDE + (len(panels) - 1) * GAP + MARGIN
    height = TOP + SIDE + BELOW_AXIS + 26 + LEGEND_ROW * longest + MARGIN
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
           f'viewBox="0 0 {width} {height}" font-family="{FONT}">',
           f'<rect width="{width}" height="{height}" fill="#ffffff"/>']
    for i, panel in enumerate(panels):
        out += draw_panel(panel, scale, styles, LEFT + i * (SIDE + GAP), f"square{i}")
    return "\n".join([*out, "</svg>"]) + "\n"


# The whole ------------------------------------------------------------------------------------------------------------


class Parser(argparse.ArgumentParser):
    def format_help(self) -> str:
        return EXAMPLES + super().format_help()

    def error(self, message: str) -> NoReturn:
        print(f"accuracy_plot.py: error: {message}\n  hint: see --help for examples", file=sys.stderr)
        raise SystemExit(64)


def arguments() -> argparse.Namespace:
    parser = Parser(prog="accuracy_plot.py", description=__doc__, allow_abbrev=False,
                    usage="accuracy_plot.py [FILE...] [options]")
    parser.add_argument("files", nargs="*", default=["-"], metavar="FILE", help="tangram.accuracy/1; default: stdin")
    parser.add_argument("-o", "--output", metavar="FILE", help="default: stdout")
    parser.add_argument("--title", action="append", default=[], metavar="TEXT",
                        help="of the next panel; default: the file's name")
    return parser.parse_args()


def main() -> int:
    args = arguments()
    try:
        picture = draw(read_panels(args.files, args.title))
    except Problem as problem:
        print(f"accuracy_plot.py: error: {problem}", file=sys.stderr)
        return 4
    if args.output is None:
        sys.stdout.write(picture)
        return 0
    temporary = Path(f"{args.output}.{os.getpid()}.tmp")
    temporary.write_text(picture, encoding="utf-8")
    temporary.replace(args.output)
    return 0


if __name__ == "__main__":
    sys.exit(main())
