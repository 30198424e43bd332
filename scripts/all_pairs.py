"""What the scripts that go through all shipped fleets and models have in common: which pairs, with which binary, and
what a run of it costs."""
import argparse
import csv
import fnmatch
import os
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
GIVE_UP_S = 600
PLAN, INFEASIBLE, INCOMPLETE = 0, 3, 6


def parser(description):
    """Options that say which pairs are run, and how."""
    options = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--clusters", nargs="+", default=["*"], metavar="NAME", help="fleets, wildcards allowed")
    options.add_argument("--models", nargs="+", default=["*"], metavar="NAME", help="models, wildcards allowed")
    options.add_argument("--pairs", nargs="+", metavar="CLUSTER:MODEL", help="these pairs instead of all")
    options.add_argument("--jobs", "-j", type=int, default=2, metavar="N", help="threads of each plan (default 2)")
    options.add_argument("--csv", metavar="FILE", help="also write the lines as CSV")
    options.add_argument("--binary", metavar="FILE", help="the tangram to run")
    options.add_argument("--plan-options", default="", metavar="TEXT", help="more options for `tangram plan`")
    return options


def add_target(options):
    """--target, whose names the program knows."""
    options.add_argument("--target", default="generic", metavar="RUNTIME", help="plan what this can run (default generic)")


def target_words(options):
    """What says so to the program; nothing for a plan that is for no runtime."""
    return [] if options.target == "generic" else ["--target", options.target]


def chosen(folder, ending, patterns):
    paths = sorted((ROOT / "configs" / folder).glob("*" + ending))
    found = [path for path in paths if any(fnmatch.fnmatch(path.stem, pattern) for pattern in patterns)]
    if not found:
        sys.exit(f"{Path(sys.argv[0]).name}: nothing in configs/{folder} is called {' or '.join(patterns)}")
    return found


def pairs_of(options):
    """(cluster.json, model.yaml), fleet by fleet."""
    if options.pairs:
        names = [pair.partition(":")[::2] for pair in options.pairs]
        return [(chosen("clusters", ".json", [c])[0], chosen("models", ".yaml", [m])[0]) for c, m in names]
    models = chosen("models", ".yaml", options.models)
    return [(cluster, model) for cluster in chosen("clusters", ".json", options.clusters) for model in models]


def binary_of(options):
    """A Release build, brought up to date unless one is named."""
    if options.binary:
        return options.binary
    subprocess.run([str(ROOT / "scripts" / "tangram"), "version"], check=True, stdout=subprocess.DEVNULL)
    return str(ROOT / "build" / "release" / "apps" / "tangram" / "tangram")


def run(command, stdout, stderr, before_start=None):
    """Exit code, seconds, CPU seconds and peak memory in MiB of one process; a signal's code is negative. What is to be
    done in the process before the program starts, such as to limit it, is `before_start`."""
    start = time.monotonic()
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=stdout, stderr=stderr, preexec_fn=before_start)
    while True:
        pid, status, usage = os.wait4(process.pid, os.WNOHANG)
        if pid:
            break
        if time.monotonic() - start > GIVE_UP_S:
            process.kill()
        time.sleep(0.005)
    process.returncode = os.waitstatus_to_exitcode(status)
    seconds = time.monotonic() - start
    return process.returncode, seconds, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


def first_error(path):
    lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    return next((line for line in lines if "error:" in line), "no message").strip()


def write_csv(path, fields, rows):
    with open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, fields)
        writer.writeheader()
        writer.writerows(rows)
