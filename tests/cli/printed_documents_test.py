#!/usr/bin/env python3
"""Every document that --json prints is one that `tangram schema` describes: each command is run, what it prints is held
against the schema that the document names, which refuses a key more and describes no key that is never printed. Skipped
(77) without the package python3-jsonschema.

    printed_documents_test.py BINARY
"""
import copy
import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path

try:
    import jsonschema
except ImportError as missing:
    print(f"skipped: {missing}; sudo apt-get install python3-jsonschema")
    sys.exit(77)

BINARY = Path(sys.argv[1]).resolve()
ROOT = Path(__file__).resolve().parents[2]
INPUTS = ROOT / "tests" / "cli" / "inputs"
TINY, MINI = INPUTS / "tiny.json", INPUTS / "mini.yaml"
LONG = ("h100-a100-v100", "mixtral-8x7b")  # a first plan comes at once, all searches of these commands take longer
PLUGIN = ROOT / "scripts" / "plugin_sdk" / "example.py"
TIMINGS = ROOT / "configs" / "timings" / "two-desktops-gpt2-xl.jsonl"
PTX = ROOT / "tests" / "data" / "ptx"
REPORTS = ROOT / "tests" / "data" / "cluster" / "reports"
FILES = {"cluster", "model", "profile", "timings", "measurements", "launch_plan", "kernels", "operator_times",
         "serving_measurements"}  # schema_test.py holds these true


def run(*words, exits=0):
    done = subprocess.run([BINARY, *map(str, words)], capture_output=True, text=True, check=False)
    assert done.returncode == exits, (words, done.returncode, done.stdout[-500:], done.stderr)
    return done.stdout


def stopped(*words):
    """The document of a command whose time limit leaves it time for a first plan, however slow the machine is."""
    for seconds in ("2", "4", "8", "16", "32", "64"):
        document = json.loads(run(*words, "--json", "--time-limit", seconds, exits=6))
        if document["schema"] != "tangram.error/1":
            return document
    raise AssertionError((words, document))


def wrong_ranks(plan, folder):
    """A plan in which two ranks have changed places."""
    document = json.loads(plan.read_text())
    first, last = document["ranks"][0], document["ranks"][-1]
    first["stage"], last["stage"] = last["stage"], first["stage"]
    path = folder / "wrong.json"
    path.write_text(json.dumps(document))
    return path


def untimed(graph, folder):
    """A kernel graph, one of whose kernels has a time on no GPU."""
    document = json.loads(graph.read_text())
    del document["kernels"][0]["times"]
    path = folder / "untimed.json"
    path.write_text(json.dumps(document))
    return path


def two_gpus(folder):
    """The GPUs that the kernel graph has times of."""
    nodes = [
        {"name": name, "gpus": [{"type": gpu, "count": 1}], "network": {"bandwidth_gbit_s": 200, "latency_us": 2}}
        for name, gpu in (("old", "T4"), ("new", "L40S"))
    ]
    path = folder / "two_gpus.json"
    path.write_text(json.dumps({"schema": "tangram.cluster/1", "name": "two", "nodes": nodes}))
    return path


def talker(folder):
    """A plugin that answers where nobody reads."""
    path = folder / "talker.json"
    path.write_text(json.dumps({"schema": "tangram.parallelizer/1",
                                "command": [sys.executable, str(ROOT / "tests" / "plugins" / "misbehave.py"), "prints"],
                                "query_timeout_s": 0.5}))
    return path


def without_copies(schedule, folder):
    """The first segment alone, on the other GPU type: the rest reads what nobody sends."""
    document = json.loads(schedule.read_text())
    document["copies"] = []
    for segment in document["segments"]:
        segment["takes"] = segment["sends"] = []
    first = document["segments"][0]
    (other,) = [gpu["gpu"] for gpu in document["gpus"] if gpu["gpu"] != first["gpu"]]
    moved = {**first, "gpu": other, "kernels": first["kernels"][:1], "seconds": 0}
    document["segments"] = [moved, {**first, "kernels": first["kernels"][1:]}, *document["segments"][1:]]
    for segment in document["segments"]:
        segment["waits"] = []
    broken = folder / "broken.json"
    broken.write_text(json.dumps(document))
    return broken


def both_phases(folder):
    for phase in ("prefill", "decode"):
        graph = folder / f"{phase}.json"
        run("kernels", "synth", MINI, "--phase", phase, "--context", "128", "--gpu", "A100-80,L40S", "-q", "-o", graph)
        yield graph


def printed(folder):
    """(what was run, the document), every command in each of the ways it can end."""
    plan, other, cache = folder / "plan.json", folder / "other.json", folder / "cache.sqlite"
    run("plan", TINY, MINI, "-q", "-o", plan)
    run("plan", TINY, MINI, "-q", "--forbid", "tp,zero1", "--drop", "node=small-1", "-o", other)
    colocated = folder / "colocated.json"
    run("plan", TINY, INPUTS / "two_encoders.yaml", "--placement", "colocated", "-q", "-o", colocated)
    answers = ("--cache", cache, "--parallelizer", PLUGIN, "--microbatch", "8", "-q")
    run("plan", TINY, MINI, *answers, "-o", folder / "by_plugin.json")
    wrong = wrong_ranks(plan, folder)
    graph = folder / "kernels.json"
    run("kernels", "synth", MINI, "--gpu", "T4,L40S", "-q", "-o", graph)
    pair = two_gpus(folder)
    schedule = folder / "schedule.json"
    run("disaggregate", "plan", pair, graph, "--in-flight", "4", "-q", "-o", schedule)
    commands = [
        (0, "accuracy", INPUTS / "measurements.json"),
        (0, "cache", "path", "--cache", cache),
        (0, "cache", "show", "--cache", cache),
        (0, "cache", "verify", "--cache", cache, "--sample", "2"),
        (0, "cache", "clear", "--cache", cache),
        (0, "calibrate", TIMINGS),
        (0, "calibrate", "--from", "runs", INPUTS / "measurements.json"),
        (0, "calibrate", "--from", "kernels", ROOT / "configs" / "measurements" / "kernels" / "norms-forward.json"),
        (0, "check", plan),
        (3, "check", wrong),
        (0, "cluster", "from-slurm", REPORTS / "slurm.json", "--network", "8x400Gbit,infiniband"),
        (0, "compare", TINY, MINI, "--plan", plan),
        (0, "compare", TINY, MINI, "--write-inputs", folder / "inputs"),
        (0, "diff", plan, plan),
        (0, "diff", plan, other),
        (2, "diff", plan, other, "--cluster", TINY, "--exit-code"),
        (0, "explain", plan, TINY),
        (6, "explain", plan, TINY, "--time-limit", "0.001"),
        (0, "explain", other, TINY, "--drop", "node=small-1"),
        (0, "explain", colocated, TINY),
        (0, "export", plan, "--to", "generic", "-o", folder / "start"),
        (0, "gpus"),
        (0, "init", folder / "job", "--nodes", "8xT4", "--model", "gpt-6.7b"),
        (0, "init", "--list"),
        (0, "islands", TINY),
        (0, "disaggregate", "plan", pair, graph),
        (0, "disaggregate", "plan", pair, graph, "--objective", "latency"),
        (0, "disaggregate", "compare", pair, graph),
        (0, "disaggregate", "simulate", pair, graph),
        (0, "disaggregate", "verify", schedule, graph),
        (3, "disaggregate", "verify", without_copies(schedule, folder), graph),
        (0, "disaggregate", "adapt", "a100-l40s", *both_phases(folder), "--rate", "3"),
        (0, "disaggregate", "accuracy", INPUTS / "serving.json"),
        (0, "kernels", "accuracy"),
        (0, "kernels", "check", graph),
        (3, "kernels", "check", untimed(graph, folder)),
        (0, "kernels", "analyze", PTX / "kernels.ptx", "--launch", PTX / "launches.jsonl"),
        (0, "parallelizers", "list"),
        (0, "parallelizers", "test", PLUGIN),
        (5, "parallelizers", "test", talker(folder)),
        (5, "parallelizers", "test", folder / "nobody.py"),
        (0, "plan", TINY, MINI, "--pareto", "2"),
        (0, "plan", TINY, MINI, "--against", plan),
        (2, "plan", TINY, MINI, "--against", other, "--detailed-exitcode"),
        (0, "plan", TINY, MINI, "--against", plan, "--drop", "node=big-2"),
        (3, "plan", TINY, MINI, "--set", "gpu(Big).memory=12%", "--drop", "gpu=Small"),
        (4, "plan", TINY, TINY),
        (64, "plan", TINY, MINI, "--jsn"),
        (0, "simulate", plan),
        (0, "verify", plan),
        (0, "verify", colocated),
        (3, "verify", plan, "--inject", "missing-all-reduce"),
        (0, "version"),
    ]
    for code, *words in commands:
        yield " ".join(map(str, words)), json.loads(run(*words, "--json", exits=code))
    for words in (("compare", *LONG), ("plan", *LONG, "--pareto", "24", "--cache", "off")):
        yield " ".join(words), stopped(*words)


def main():
    programs = (ROOT / "apps" / "tangram").glob("*.cpp")
    named = {name for path in programs for name in re.findall(r'"tangram\.([a-z_]+)/1"', path.read_text())} - FILES
    seen = {}  # keys of the documents of each kind
    with tempfile.TemporaryDirectory(prefix="tangram-documents-") as folder:
        for what, document in printed(Path(folder)):
            name = document["schema"].removeprefix("tangram.").removesuffix("/1")
            schema = json.loads(run("schema", name))
            jsonschema.Draft202012Validator.check_schema(schema)
            validator = jsonschema.Draft202012Validator(schema)
            errors = [f"{'/'.join(map(str, e.path))}: {e.message[:200]}" for e in validator.iter_errors(document)]
            assert not errors, (what, errors)
            worse = copy.deepcopy(document)
            worse["frobnicate"] = 1
            assert not validator.is_valid(worse), (what, "takes unknown keys")
            seen.setdefault(name, set()).update(document)
    listed = run("schema", "--help")
    assert set(seen) == named, (sorted(seen), sorted(named))
    for name, keys in seen.items():
        described = set(json.loads(run("schema", name))["properties"])
        assert keys == described, (name, described - keys)
    assert all(re.search(rf"\b{name}\b", listed) for name in named | FILES), listed
    print(f"{len(seen)} kinds of documents")


if __name__ == "__main__":
    main()
