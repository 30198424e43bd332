#!/usr/bin/env python3
"""What plans for a runtime gain from one binary to the next: programs that answer as told, and one small pair of the
real one. Usage: runtimes_test.py TANGRAM SCRIPT"""

import csv
import subprocess
import sys
import tempfile
from pathlib import Path

# Plans that take so many nanoseconds, by target; those of 13 deadlock. A negative answer is an exit code without a plan.
PROGRAM = """#!/usr/bin/env python3
import json, sys
words = sys.argv[1:]
if words[0] == "simulate":
    plan = json.load(open(words[1]))
    transfers = "forward-blocking" if plan["execution"] else "blocking"
    assert words[2:] == ["--transfers", transfers, "--json", "-q"], words
    sys.exit(3) if plan["ns"] == 13 else print(json.dumps({"iteration_ns": plan["ns"]}))
    sys.exit()
answer = %(answers)s[words[words.index("--target") + 1]]
while answer == "endless":
    pass
if answer < 0:
    print("error: as told", file=sys.stderr)
    sys.exit(-answer)
with open(words[words.index("-o") + 1], "w") as file:
    # An odd time has an interleaved plan.
    json.dump({"ns": answer, "execution": {"interleaving": {"group": 4}} if answer %% 2 else {}, "provenance": {"optimal": True}}, file)
"""


def program(folder, name, megatron, flagscale):
    path = Path(folder) / name
    path.write_text(PROGRAM % {"answers": {"megatron": megatron, "flagscale": flagscale}}, encoding="utf-8")
    path.chmod(0o755)
    return str(path)


def run(script, *words):
    return subprocess.run([sys.executable, script, *words], capture_output=True, text=True, check=False)


def compared(script, before, after, *words):
    """Exit code, what is printed, and the rows of `amp:gpt2-medium` by two programs with these answers."""
    with tempfile.TemporaryDirectory() as folder:
        table = Path(folder) / "rows.csv"
        done = run(script, "amp:gpt2-medium", "--before", program(folder, "old", *before), "--binary",
                   program(folder, "new", *after), "--csv", str(table), *words)
        with open(table, encoding="utf-8") as file:
            return done, list(csv.DictReader(file))


def check_speedups(script):
    # 3 / 2 and 6 / 1: their geometric mean is the root of 9.
    done, rows = compared(script, (3 * 10**9, 6 * 10**9), (2 * 10**9, 10**9))
    assert done.returncode == 0 and not done.stderr, done.stdout + done.stderr
    assert "| amp:gpt2-medium | megatron | 3 s | 2 s | 1.5000 |" in done.stdout, done.stdout
    assert "- both: 3.0000 (2), 1.5000 to 6.0000" in done.stdout, done.stdout
    assert [row["after_s"] for row in rows] == ["2.0", "1.0"], rows


def check_worse(script):
    done, rows = compared(script, (1000, 1000), (1001, 1000))
    assert done.returncode == 1 and "slower: amp:gpt2-medium megatron\n" in done.stdout, done.stdout
    assert float(rows[1]["speedup"]) == 1, rows
    done, _ = compared(script, (1000, 1000), (-3, 13))  # plans are lost
    assert done.returncode == 1, done.stdout
    assert "slower: amp:gpt2-medium megatron, amp:gpt2-medium flagscale\n" in done.stdout, done.stdout


def check_without_plan(script):
    done, rows = compared(script, (-3, 13), (1000, 1000))
    assert done.returncode == 0, done.stdout + done.stderr
    assert "| amp:gpt2-medium | megatron | no plan | 1e-06 s | - |" in done.stdout, done.stdout
    assert "| amp:gpt2-medium | flagscale | deadlock | 1e-06 s | - |" in done.stdout, done.stdout
    assert "- both: none to compare" in done.stdout and rows[0]["before_s"] == "", done.stdout
    done, rows = compared(script, (1000, 1000), (-70, "endless"), "--most-seconds", "2")
    assert done.returncode == 2 and "exit 70: error: as told" in done.stderr, done.stdout + done.stderr
    assert [row["after"] for row in rows] == ["failed", "skipped"], rows


def check_names(script):
    for name, said in (("amp:none", "nothing in configs/models is called none"), ("none", "no case is called none")):
        done = run(script, name, "--binary", "none")
        assert done.returncode != 0 and said in done.stderr, done.stderr
    with tempfile.TemporaryDirectory() as folder:
        done = run(script, "amp-*", "two-desktops:gpt2-m*", "--binary", program(folder, "new", 1000, 1000))
    assert done.returncode == 0, done.stdout + done.stderr
    pairs = [line.split(" | ")[0] for line in done.stdout.splitlines()[2:]]
    assert pairs == 2 * ["| amp-16"] + 2 * ["| two-desktops:gpt2-medium"], pairs


def check_program(tangram, script):
    done = run(script, "two-desktops:gpt2-medium", "--binary", tangram, "--before", tangram)
    assert done.returncode == 0 and "- both: 1.0000 (2), 1.0000 to 1.0000" in done.stdout, done.stdout + done.stderr


if __name__ == "__main__":
    binary, path = sys.argv[1:]
    check_speedups(path)
    check_worse(path)
    check_without_plan(path)
    check_names(path)
    check_program(binary, path)
    print("ok")
