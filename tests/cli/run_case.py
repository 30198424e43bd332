#!/usr/bin/env python3
"""Runs one case file through the real binary and compares what it says, byte for byte.

    run_case.py BINARY CONFIGS CASE      compare; exit 1 and a diff when something differs
    TANGRAM_UPDATE=1 run_case.py ...     write what the binary says into the case file instead; exit 1 where a line
                                         that "has" asks for is gone, a command newly fails with 1 (a bug) or a signal
    scripts/update_goldens               does so for every case

A case is a text file of sections, each begun by a line "--- NAME". They are worked through in order, in an empty
folder in which `configs` is the repository's and `inputs` a copy of the folder beside this script:

    --- file NAME            the section's text becomes that file
    --- replace FILE NEW     lines "OLD => NEW": FILE with its texts replaced, each of which it must have, becomes NEW
    --- env                  NAME=value lines for the commands that follow
    --- stdin                of the next command
    --- run                  one command line; its first word is `tangram`
    --- exit N               of the last run; 0 when there is no such section
    --- stdout, --- stderr   exactly; must be empty when there is no such section; $FOLDER is the case's folder
    --- stdout has           each line is part of a line of it; "--- stdout any": not compared; the same for stderr
    --- same A B             the two files have the same bytes
    --- absent NAME          no such file; "*" and "?" match
"""
import difflib
import glob
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

STREAMS = ("stdout", "stderr")
TIMEOUT = 300  # s for one command: what hangs ends; under sanitizers on a busy machine a search takes a minute


class Failure(Exception):
    pass


def read_sections(path):
    sections = []
    for line in path.read_text(encoding="utf-8").splitlines(keepends=True):
        if line.startswith("--- "):
            sections.append([line[4:].split(), ""])
        elif sections:
            sections[-1][1] += line
        elif line.strip() and not line.startswith("#"):
            raise Failure(f"{path}: text before the first section: {line!r}")
    return sections


def write_sections(path, sections):
    head = []
    for line in path.read_text(encoding="utf-8").splitlines(keepends=True):
        if line.startswith("--- "):
            break
        head.append(line)
    body = "".join("--- " + " ".join(words) + "\n" + text for words, text in sections)
    path.write_text("".join(head) + body, encoding="utf-8")


class Case:
    def __init__(self, binary, configs, sections, update):
        self.binary = binary
        self.sections = sections
        self.update = update
        self.scratch = tempfile.TemporaryDirectory(prefix="tangram-case-")
        self.folder = Path(self.scratch.name)
        os.symlink(configs, self.folder / "configs")
        shutil.copytree(Path(__file__).resolve().parent / "inputs", self.folder / "inputs")
        self.environment = {"PATH": os.environ.get("PATH", ""), "HOME": str(self.folder), "LC_ALL": "C.UTF-8"}
        for name in ("ASAN_OPTIONS", "UBSAN_OPTIONS", "LLVM_PROFILE_FILE", "GCOV_PREFIX", "LD_LIBRARY_PATH"):
            if name in os.environ:
                self.environment[name] = os.environ[name]
        self.stdin = ""
        self.result = None
        self.command = ""
        self.unmet = []  # what no rewriting mends

    def work(self):
        for index, (words, text) in enumerate(self.sections):
            kind, arguments = words[0], words[1:]
            if kind == "file":
                target = self.folder / arguments[0]
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_text(text, encoding="utf-8")
            elif kind == "replace":
                self.replace(self.folder / arguments[0], self.folder / arguments[1], text)
            elif kind == "env":
                self.environment.update(line.split("=", 1) for line in text.split("\n") if line)
            elif kind == "stdin":
                self.stdin = text
            elif kind == "run":
                self.run(text.strip())
                self.compare(index)
            elif kind == "same":
                a, b = ((self.folder / name).read_bytes() for name in arguments)
                if a != b:
                    raise Failure(f"{arguments[0]} and {arguments[1]} differ")
            elif kind == "absent":
                if found := glob.glob(str(self.folder / arguments[0])):
                    raise Failure(f"{found} exist")
            elif kind not in ("exit", *STREAMS):
                raise Failure(f"unknown section {kind!r}")

    @staticmethod
    def replace(source, target, text):
        content = source.read_text(encoding="utf-8")
        for line in text.splitlines():
            old, new = line.split(" => ")
            if old not in content:
                raise Failure(f"{source.name} has no {old!r}")
            content = content.replace(old, new, 1)
        target.write_text(content, encoding="utf-8")

    def run(self, command):
        self.command = command
        words = shlex.split(command)
        if words[0] != "tangram":
            raise Failure("a command begins with tangram")
        self.result = subprocess.run([self.binary, *words[1:]], cwd=self.folder, env=self.environment, timeout=TIMEOUT,
                                     input=self.stdin, capture_output=True, text=True, encoding="utf-8", check=False)
        self.stdin = ""
        for stream in STREAMS:
            setattr(self.result, stream, getattr(self.result, stream).replace(str(self.folder), "$FOLDER"))

    def expectations(self, index):
        """The sections that speak of the run at `index`, by kind."""
        found = {}
        for words, text in self.sections[index + 1:]:
            if words[0] not in ("exit", *STREAMS):
                break
            found[words[0]] = (words, text)
        return found

    def compare(self, index):
        expected = self.expectations(index)
        got = {"stdout": self.result.stdout, "stderr": self.result.stderr}
        if self.update:
            self.rewrite(index, expected, got)
            return
        for stream in STREAMS:
            words, text = expected.get(stream, ([stream], ""))
            mode = words[1] if len(words) > 1 else "exactly"
            if mode == "has" and (missing := self.missing_line(text, got[stream])):
                raise Failure(f"$ {self.command}\n{stream} does not have {missing!r}:\n{got[stream]}")
            if mode == "exactly" and got[stream] != text:
                diff = difflib.unified_diff(text.splitlines(keepends=True), got[stream].splitlines(keepends=True),
                                            f"expected {stream}", f"actual {stream}")
                raise Failure(f"$ {self.command}\n" + "".join(diff))
        wanted = self.wanted_exit(expected)
        if self.result.returncode != wanted:
            raise Failure(f"$ {self.command}\nexit {self.result.returncode}, expected {wanted}\n{got['stderr']}")

    @staticmethod
    def wanted_exit(expected):
        return int(expected["exit"][0][1]) if "exit" in expected else 0

    @staticmethod
    def missing_line(wanted, got):
        return next((line for line in wanted.splitlines() if line not in got), None)

    def rewrite(self, index, expected, got):
        code, wanted = self.result.returncode, self.wanted_exit(expected)
        if code != wanted and (code == 1 or code < 0):
            raise Failure(f"$ {self.command}\nexit {code}, expected {wanted}\n{got['stderr']}")
        if code != wanted:
            print(f"$ {self.command}\nexit {wanted} became {code}")
        fresh = [[["exit", str(code)], ""]] if code != 0 else []
        for stream in STREAMS:
            words, text = expected.get(stream, ([stream], ""))
            if len(words) > 1:
                fresh.append([words, text])
                if words[1] == "has" and (missing := self.missing_line(text, got[stream])):
                    self.unmet.append(f"$ {self.command}\n{stream} does not have {missing!r}; change the case by hand")
            elif got[stream]:
                fresh.append([[stream], got[stream]])
        self.sections[index + 1:index + 1 + len(expected)] = fresh


def main():
    binary, configs, path = Path(sys.argv[1]).resolve(), Path(sys.argv[2]).resolve(), Path(sys.argv[3])
    update = os.environ.get("TANGRAM_UPDATE") == "1"
    try:
        sections = read_sections(path)
        case = Case(binary, configs, sections, update)
        case.work()
    except Failure as failure:
        print(f"{path.name}: {failure}")
        return 1
    if update:
        write_sections(path, case.sections)
    for text in case.unmet:
        print(f"{path.name}: {text}")
    return 1 if case.unmet else 0


if __name__ == "__main__":
    sys.exit(main())
