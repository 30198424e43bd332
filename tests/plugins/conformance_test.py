#!/usr/bin/env python3
"""`tangram parallelizers`: the examples of the SDK pass its test, plugins with mistakes are told which, `list` shows what is
found where, and a plan takes the examples' plans.

    conformance_test.py BINARY CPP_EXAMPLE
"""
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

BINARY, CPP_EXAMPLE = (os.path.abspath(path) for path in sys.argv[1:3])
ROOT = Path(__file__).resolve().parents[2]
SDK = ROOT / "scripts" / "plugin_sdk"
INPUTS = ROOT / "tests" / "cli" / "inputs"

HEAD = "#!/usr/bin/env python3\nimport sys\nsys.path.insert(0, %r)\nimport tangram_plugin as tangram\n" % str(SDK)

# What a plugin's author may get wrong: the check that fails, and a part of what is said about it.
MISTAKES = {
    "half": ("plans pass the re-check", "GPUs, the shape has",
             "def solve(query):\n    yield query.plan(dp=max(1, query.gpus // 2))\n"),
    "raises": ("answers every question", "ZeroDivisionError", "def solve(query):\n    return 1 / 0\n"),
    "mute": ("finds a plan where there is one", "no plan for any question", "def solve(query):\n    return []\n"),
    "dice": ("answers repeat", "from a second process",
             "import os\ndef solve(query):\n    if query.microbatch % query.gpus == 0:\n"
             "        yield query.plan(dp=query.gpus, strategy=os.getpid())\n"),
    "forgets": ("infeasible means infeasible", "is infeasible, yet",
                "def solve(query):\n"
                "    if query.block_count == 1 and query.usable_bytes < 2 ** 32:\n"
                "        raise tangram.Infeasible('too tight')\n"
                "    if query.microbatch % query.gpus == 0:\n"
                "        yield query.plan(dp=query.gpus, recompute='full')\n"),
}


def run(*arguments, **environment):
    return subprocess.run([BINARY, *map(str, arguments)], capture_output=True, text=True,
                          env={**os.environ, **environment}, check=False)


def write_program(path, text):
    path.write_text(text)
    path.chmod(0o755)


def check_examples():
    for example in (SDK / "example.py", CPP_EXAMPLE):
        done = run("parallelizers", "test", example)
        assert done.returncode == 0 and "FAIL" not in done.stdout, done.stdout + done.stderr
        done = run("plan", INPUTS / "tiny.json", INPUTS / "mini.yaml", "--parallelizer", example, "--json")
        assert done.returncode == 0, done.stderr
        plan = json.loads(done.stdout)
        assert plan["provenance"]["outside_parallelizers"][0]["plans"] > 0
        named = {part["parallelizer"] for stage in plan["stages"] for part in stage["parts"]}
        assert named == {Path(example).stem}, named
        print(f"ok: {Path(example).name} passes its test and makes plans")
    assert len((SDK / "example.py").read_text().splitlines()) <= 45
    alone = subprocess.run([sys.executable, SDK / "example.py"], capture_output=True, text=True, check=False)
    assert alone.returncode == 2 and "tangram parallelizers test" in alone.stderr


def check_mistakes(folder):
    for name, (expected, said, code) in MISTAKES.items():
        program = folder / name
        write_program(program, f"{HEAD}{code}tangram.serve(solve, name={name!r}, version='1')\n")
        done = run("parallelizers", "test", program, "--json")
        assert done.returncode == 5, (name, done.stdout, done.stderr)
        failed = [check for check in json.loads(done.stdout)["checks"] if not check["ok"]]
        assert failed and failed[0]["expected"] == expected and said in failed[0]["seen"], (name, failed)
        print(f"ok: {name}: {failed[0]['seen'][:90]}")


def check_list(folder):
    home = folder / "home"
    first, second, path = folder / "first", home / "tangram" / "parallelizers", folder / "bin"
    for place in (first, second, path):
        place.mkdir(parents=True)
    manifest = "schema: tangram.parallelizer/1\nsummary: %s\ncommand: [" + sys.executable + ", " + str(SDK / "example.py")
    (first / "mine.yaml").write_text(manifest % "the first" + "]\n")
    (second / "mine.yaml").write_text(manifest % "hidden" + "]\n")
    (second / "broken.yaml").write_text("schema: tangram.parallelizer/1\ncomand: [x]\n")
    (second / "absent.yaml").write_text(
        "schema: tangram.parallelizer/1\ncommand: [no-such-program-anywhere]\ninstall: get it first\n")
    write_program(path / "tangram-parallelizer-onpath", f"#!/bin/sh\nexec {sys.executable} {SDK / 'example.py'}\n")
    places = {"XDG_CONFIG_HOME": str(home), "PATH": f"{path}:{os.environ['PATH']}",
              "TANGRAM_PARALLELIZER_PATH": str(first)}
    done = run("parallelizers", "list", "--json", **places)
    assert done.returncode == 0, done.stderr
    listed = [(entry["name"], entry["state"], entry.get("where", ""), entry.get("to_do", ""))
              for entry in json.loads(done.stdout)["parallelizers"]]
    for expected in (("mine", "ready", str(first / "mine.yaml"), ""), ("mine", "hidden", str(second / "mine.yaml"), ""),
                     ("broken", "bad manifest", str(second / "broken.yaml"), "fix the manifest"),
                     ("absent", "not available", str(second / "absent.yaml"), "get it first"),
                     ("onpath", "ready", str(path / "tangram-parallelizer-onpath"), "")):
        assert expected in listed, (expected, listed)
    assert "get it first" in run("parallelizers", "list", **places).stdout
    done = run("plan", INPUTS / "tiny.json", INPUTS / "mini.yaml", "--parallelizer", "mime", **places)
    assert done.returncode == 64 and 'did you mean "mine"?' in done.stderr, done.stderr
    done = run("plan", INPUTS / "tiny.json", INPUTS / "mini.yaml", "--parallelizer", "broken", **places)
    assert done.returncode == 4 and 'did you mean "command"?' in done.stderr, done.stderr
    done = run("plan", INPUTS / "tiny.json", INPUTS / "mini.yaml", "--parallelizer", "mine,enumerator", **places)
    assert done.returncode == 0, done.stderr
    print("ok: found by folder, user folder and PATH; what is hidden, broken or absent says so")


def main():
    with tempfile.TemporaryDirectory() as name:
        check_examples()
        check_mistakes(Path(name))
        check_list(Path(name))


if __name__ == "__main__":
    main()
