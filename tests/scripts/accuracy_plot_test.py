#!/usr/bin/env python3
"""Two reports give the same SVG, byte for byte, as the one kept beside them, and wrong input a precise error.

    accuracy_plot_test.py SCRIPT             exit 1 and a diff where they differ
    accuracy_plot_test.py SCRIPT --update    rewrites the picture
"""

import difflib
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path

HERE = Path(__file__).resolve().parent / "accuracy"
PICTURE = HERE / "expected.svg"


def plot(arguments: list[str], stdin: str = "") -> subprocess.CompletedProcess:
    return subprocess.run([sys.executable, sys.argv[1], *arguments], input=stdin, capture_output=True, text=True,
                          cwd=HERE, timeout=60, encoding="utf-8")


def require(holds: bool, what: str) -> None:
    if not holds:
        raise SystemExit(what)


def check_picture() -> None:
    drawn = plot(["calibration.json", "validation.json", "--title", "Calibration"])
    require(drawn.returncode == 0, drawn.stderr)
    if "--update" in sys.argv:
        PICTURE.write_text(drawn.stdout, encoding="utf-8")
    expected = PICTURE.read_text(encoding="utf-8")
    difference = "\n".join(difflib.unified_diff(expected.splitlines(), drawn.stdout.splitlines(), "expected", "drawn",
                                                lineterm=""))
    require(not difference, difference)
    ElementTree.fromstring(drawn.stdout)
    # alpha: |0|, |0.15|, |-0.05|, median 5 %; beta: |-0.3|, |-0.1|, median 20 %; all five: 0, 5, 10, 15, 30, median
    # 10 %, three of five within 10 %, four within 20 %. The rows without a time or a prediction do not count.
    for text in ("5 of 7 runs, median error 10.0 %, 60 % within 10 %, 80 % within 20 %",
                 ">Calibration<", ">validation<", ">alpha lab<", ">beta &amp; co<",
                 "beta &lt;x&gt;: measured 0.5 s, predicted 0.35 s (-30.0 %)"):
        require(text in drawn.stdout, f"the picture lacks: {text}")


def check_stdin() -> None:
    text = (HERE / "validation.json").read_text(encoding="utf-8")
    piped = plot(["--title", "validation"], text)
    require(piped.stdout == plot(["validation.json"]).stdout, "stdin and file give different pictures")


def check_errors() -> None:
    broken = text = '{ "schema": "tangram.accuracy/1", "measurements": [ { "id": "a", '
    cases = (
        (["none.json"], "", 4, "none.json: No such file or directory"),
        (["-"], broken, 4, "stdin:1:66: Expecting property name enclosed in double quotes"),
        (["-"], "{}", 4, "stdin is not tangram.accuracy/1: write it with `tangram accuracy DATASET --json`"),
        (["-"], text + '"reason": "?" } ] }', 4, "stdin: no measurement has both a measured and a predicted time"),
        (["-"], text + '"time_error": 0, "measured_s": 0 } ] }', 4,
         'stdin: "measured_s" of a must be a positive number'),
        (["--colour"], "", 64, "unrecognized arguments: --colour"),
    )
    for arguments, stdin, status, message in cases:
        failed = plot(arguments, stdin)
        require(failed.returncode == status and f"error: {message}" in failed.stderr and not failed.stdout,
                f"{arguments}: exit {failed.returncode}, {failed.stderr}")


check_picture()
check_stdin()
check_errors()
