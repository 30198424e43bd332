#!/usr/bin/env python3
"""The table of placements of encoders, by a program that answers as told. Usage: placements_test.py SCRIPT"""

import csv
import subprocess
import sys
import tempfile
from pathlib import Path

# By placement: seconds of the plan, its bound and the exit code; or a message with an exit code, and no plan.
PROGRAM = """#!/usr/bin/env python3
import json, sys
words = sys.argv[1:]
assert words[0] == "plan" and words[words.index("--time-limit") + 1] == "7", words
model = json.load(open(words[2]))
assert model["data"] == {"vision": {"mean": 6}}, model
fleet = json.load(open(words[1]))
assert sum(node["gpus"][0]["count"] for node in fleet["nodes"]) == 8, fleet
answer = %(answers)s[words[words.index("--placement") + 1]]
if isinstance(answer[0], str):
    print("error: " + answer[0], file=sys.stderr)
    sys.exit(answer[1])
with open(words[words.index("-o") + 1], "w") as file:
    json.dump({"predicted": {"iteration_s": answer[0]}, "provenance": {"search_bound_s": answer[1]}, "ranks": [0] * 60,
               "idle": [{"gpus": 4}]}, file)
sys.exit(answer[2])
"""


def table(script, homogeneous, colocated, disjoint):
    """What is run, and the rows of h100-64 by a program with these answers."""
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder) / "program"
        answers = {"homogeneous": homogeneous, "colocated": colocated, "disjoint": disjoint}
        program.write_text(PROGRAM % {"answers": answers}, encoding="utf-8")
        program.chmod(0o755)
        rows = Path(folder) / "rows.csv"
        words = ["h100-64", "--binary", str(program), "--seconds", "7", "--csv", str(rows)]
        done = subprocess.run([sys.executable, script, *words], capture_output=True, text=True, check=False)
        if not rows.exists():
            return done, []
        with open(rows, encoding="utf-8") as file:
            return done, list(csv.DictReader(file))


def main():
    script = sys.argv[1]
    done, rows = table(script, (12.0, 11.0, 0), (10.0, 9.5, 6), (11.0, 10.5, 0))
    assert done.returncode == 0 and not done.stderr, done.stdout + done.stderr
    cells = "| h100-64 | internvl3-78b | 12 (11) | 10 (9.5)* | 11 (10.5) | colocated, disjoint +10.0 % |"
    assert cells in done.stdout, done.stdout
    assert [(row["gpus"], row["gpus_used"]) for row in rows] == [("64", "60")] * 3, rows

    done, rows = table(script, ("no plan fits", 3), (10.0, 9.5, 0), (10.005, 9.5, 0))
    assert "| none | 10 (9.5) | 10.01 (9.5) | colocated = disjoint |" in done.stdout, done.stdout
    assert "\nh100-64, homogeneous: no plan fits\n" in done.stdout, done.stdout
    done, _ = table(script, ("no plan fits", 3), ("--placement colocated: no", 4), ("no plan fits", 3))
    assert done.returncode == 0 and "| none | none | none | none |" in done.stdout, done.stdout + done.stderr

    done, _ = table(script, (10.0, 9.5, 0), ("it broke", 70), (10.0, 9.5, 0))
    assert done.returncode == 1 and "h100-64, colocated: exit 70: it broke" in done.stderr, done.stdout + done.stderr
    done = subprocess.run([sys.executable, script, "h800-*"], capture_output=True, text=True, check=False)
    assert done.returncode == 2 and "no case is called h800-*; there are h100-16," in done.stderr, done.stderr


if __name__ == "__main__":
    main()
