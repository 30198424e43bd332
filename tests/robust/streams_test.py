#!/usr/bin/env python3
"""Standard output that is full, closed or read by nobody, outputs that cannot be, parts of files that are missing, and
control characters in names.

    streams_test.py BINARY REPOSITORY
"""
import json
import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

from trials import CONTROLS, ENVIRONMENT

READERS = ["--cluster", "tiny.json", "--model", "mini.yaml"]
COMMANDS = [["--help"], ["--version"], ["help"], ["plan", "--help"], ["version"], ["version", "--json"], ["schema", "cluster"],
            ["manual"], ["completion", "bash"], ["completion", "zsh"], ["completion", "fish"], ["islands", "tiny.json"],
            ["islands", "tiny.json", "--json"], ["plan", "tiny.json", "mini.yaml"], ["plan", "tiny.json", "mini.yaml", "--json"],
            ["plan", "tiny.json", "mini.yaml", "-o", "-"], ["plan", "tiny.json", "mini.yaml", "--show-origin"],
            ["check", "plan.json"], ["check", "plan.json", "--json"], ["simulate", "plan.json"], ["verify", "plan.json"],
            ["explain", "plan.json", "tiny.json"], ["diff", "plan.json", "plan.json"],
            ["compare", "tiny.json", "mini.yaml", "--with", "megatron", "--no-ablation"],
            ["export", "plan.json", "--to", "generic", "-o", "written"],
            ["import", "written-before", "--from", "megatron", *READERS],
            ["accuracy", "measurements.json"], ["parallelizers", "list"], ["cache", "path", "--cache", "kept.sqlite"],
            ["check", "nobody.json", "--json"]]
NOBODY_READS = 128 + signal.SIGPIPE


class Place:
    """A folder with inputs, and the program in it."""

    def __init__(self, binary, root, folder):
        self.binary, self.folder = str(binary), Path(folder)
        for file in (root / "tests/cli/inputs").iterdir():
            (self.folder / file.name).write_bytes(file.read_bytes())
        self.run("plan", "tiny.json", "mini.yaml", "--target", "megatron", "-o", "plan.json", code=0)
        self.run("export", "plan.json", "--to", "megatron", "-o", "written-before", code=0)

    def run(self, *words, code, **streams):
        streams.setdefault("stdout", subprocess.PIPE)
        done = subprocess.run([self.binary, *words], cwd=self.folder, stderr=subprocess.PIPE, env=ENVIRONMENT, check=False,
                              timeout=60, **streams)
        said = done.stderr.decode()
        assert done.returncode == code, (words, done.returncode, said)
        left = [name for name in os.listdir(self.folder) if name.endswith(".tmp")]
        assert not left, (words, left)
        return (done.stdout or b"").decode(), said

    def write(self, name, document):
        text = document if isinstance(document, str) else json.dumps(document, indent=1)
        (self.folder / name).write_text(text, encoding="utf-8")

    def forget(self):
        subprocess.run(["rm", "-rf", "written"], cwd=self.folder, check=True)


def streams_that_take_nothing(place):
    for words in COMMANDS:
        place.forget()
        with open("/dev/full", "wb") as full:
            _, said = place.run(*words, code=4, stdout=full)
        assert "cannot write to standard output: No space left on device" in said and "bug" not in said, (words, said)
        place.forget()
        _, said = place.run(*words, code=4, stdout=None, preexec_fn=lambda: os.close(1))
        assert "cannot write to standard output: it is closed" in said and "bug" not in said, (words, said)
        place.forget()
        reader, writer = os.pipe()
        os.close(reader)
        _, said = place.run(*words, code=NOBODY_READS, stdout=writer)
        os.close(writer)
        assert "standard output" not in said and "bug" not in said, (words, said)
    place.forget()


def the_plan_is_whole_where_stdout_is_not(place):
    """A closed stream is no place where the plan's file could be opened, and a full one does not take the file away."""
    whole = (place.folder / "plan.json").read_bytes()
    for closed in ((1,), (0, 1, 2)):
        (place.folder / "again.json").unlink(missing_ok=True)
        place.run("plan", "tiny.json", "mini.yaml", "--target", "megatron", "-o", "again.json", code=4, stdout=None,
                  preexec_fn=lambda: [os.close(stream) for stream in closed])
        assert (place.folder / "again.json").read_bytes() == whole, closed


def outputs_that_cannot_be(place):
    for words in (["plan", "tiny.json", "mini.yaml", "-o", ""], ["simulate", "plan.json", "--trace", ""],
                  ["export", "plan.json", "--to", "generic", "-o", ""], ["check", "plan.json", "--cluster", ""],
                  ["plan", "tiny.json", "mini.yaml", "--forbid", ""]):
        _, said = place.run(*words, code=64)
        assert "is empty" in said, (words, said)
    os.symlink("second", place.folder / "first")
    os.symlink("first", place.folder / "second")
    _, said = place.run("plan", "tiny.json", "mini.yaml", "-o", "first", code=4)
    assert "first: error: cannot write the file: Too many levels of symbolic links" in said, said
    assert os.readlink(place.folder / "first") == "second"
    _, said = place.run("export", "plan.json", "--to", "generic", "-o", "first", code=4)


def parts_that_are_missing(place):
    plan = json.loads((place.folder / "plan.json").read_text(encoding="utf-8"))
    for key in ("boundaries", "targets", "idle"):
        place.write("cut.json", {name: value for name, value in plan.items() if name != key})
        _, said = place.run("check", "cut.json", code=3)
        assert "cut.json:1:1: error:" in said and f'missing key "{key}"' in said, said
    for text, column in (("", "the file is empty"), ("rank,host,local_rank,gpu\n", "lists no rank")):
        (place.folder / "written-before" / "rankmap.csv").write_text(text, encoding="utf-8")
        _, said = place.run("import", "written-before", "--from", "megatron", *READERS, code=3)
        assert "written-before/rankmap.csv:1:1: error:" in said and column in said, said
    for text in ("[]", '{"rows": []}'):
        place.write("none.json", text)
        _, said = place.run("accuracy", "none.json", code=4)
        assert "none.json:1:" in said and "there is no measurement" in said, said


def bytes_that_are_no_text(place):
    """In what an error quotes: JSON stays JSON."""
    for words in (["check", b"no\xff.json", "--json"], ["plan", "tiny.json", b"\xff.yaml", "--json"],
                  ["import", "written-before/arguments.sh", "hosts.bad", "--from", "megatron", *READERS, "--json"]):
        (place.folder / "hosts.bad").write_bytes(b"sm\xffll-1 slots=4\n")
        done = subprocess.run([place.binary, *words], cwd=place.folder, capture_output=True, env=ENVIRONMENT, check=False)
        assert done.returncode in (4, 64), (words, done)
        assert "\ufffd" in json.dumps(json.loads(done.stdout), ensure_ascii=False), (words, done.stdout)


def references_to_nothing(place):
    plan = json.loads((place.folder / "plan.json").read_text(encoding="utf-8"))
    plan["ranks"][1]["part"] = 3
    place.write("nothing.json", plan)
    for words in (["diff", "nothing.json", "plan.json"], ["simulate", "nothing.json"], ["check", "nothing.json"]):
        _, said = place.run(*words, code=4)
        assert '"part" must be at most 0, got 3' in said, said


def controls_are_shown(place):
    """What a terminal obeys does not reach it from a name in a file, wherever names are printed."""
    evil = "e\u001b[2J\u001b]0;title\u0007\u009b31m"
    fleet = json.loads((place.folder / "tiny.json").read_text(encoding="utf-8"))
    fleet["name"] = evil
    fleet["nodes"][0]["name"] = evil
    place.write("evil.json", fleet)
    place.write("evil.yaml", f'schema: tangram.model/1\nname: "\\e[2J"\narchitecture: {{"{evil}": 1}}\n'.replace("\u001b", "\\e"))
    for words in (["islands", "evil.json"], ["islands", "evil.json", "--json"], ["plan", "evil.json", "mini.yaml"],
                  ["plan", "evil.json", "mini.yaml", "-v", "--color", "always"], ["plan", "tiny.json", "evil.yaml"],
                  ["check", "plan.json", "--cluster", "evil.json"], ["plan", "tiny.json", "mini.yaml", "--drop", f"node={evil}"],
                  [evil], ["check", evil], ["plan", "evil.json", evil, "--json"]):
        done = subprocess.run([place.binary, *words], cwd=place.folder, capture_output=True, env=ENVIRONMENT, check=False)
        shown = done.stdout.decode() + done.stderr.decode()
        for style in ("\u001b[0m", "\u001b[1m", "\u001b[2m", "\u001b[31m", "\u001b[32m", "\u001b[33m"):
            shown = shown.replace(style, "") if "--color" in words else shown
        assert not CONTROLS.search(shown), (words, shown)
        assert done.returncode in (0, 3, 4, 64), (words, done.returncode, shown)
        if "--json" in words:
            json.loads(done.stdout)


def main():
    binary, root = Path(sys.argv[1]).resolve(), Path(sys.argv[2]).resolve()
    with tempfile.TemporaryDirectory(prefix="tangram-streams-") as folder:
        place = Place(binary, root, folder)
        streams_that_take_nothing(place)
        the_plan_is_whole_where_stdout_is_not(place)
        outputs_that_cannot_be(place)
        parts_that_are_missing(place)
        bytes_that_are_no_text(place)
        references_to_nothing(place)
        controls_are_shown(place)


if __name__ == "__main__":
    main()
