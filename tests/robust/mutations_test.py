#!/usr/bin/env python3
"""Damaged input files, over all commands that read files: each run ends in an answer or an error of its own within 20 s,
without a signal, a bug (exit 1) or a control character on the terminal.

    mutations_test.py BINARY REPOSITORY [COUNT [SEED]]      COUNT, or TANGRAM_MUTATIONS: 300 runs if not given
"""
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from trials import ENVIRONMENT, Trial, slowest

COUNT = 300
NUMBER = re.compile(rb"-?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?")
NUMBERS = [b"0", b"-1", b"1", b"2", b"3", b"7", b"1000", b"1e-308", b"1e308", b"9223372036854775807", b"0.5", b"NaN", b"null",
           b'"x"', b"[]", b"{}", b"true"]
PIECES = [b"\x1b[2J", b"\x00", b"\xff", b"\\u001b[31m", b"\xc2\x9b", b"\n", b"\t", b'"', b"{", b"}", b"[", b"]", b":", b",",
          b"- ", b"#", b"//", b"&a", b"*a", b"<<", b"'", b"\\", b"=", b"\xf0\x9f\x92\xa5"]


def flip_byte(text, rng):
    at = rng.randrange(len(text))
    return text[:at] + bytes([rng.randrange(256)]) + text[at + 1:]


def cut(text, rng):
    at = rng.randrange(len(text))
    return text[:at] if rng.random() < 0.3 else text[:at] + text[at + rng.randrange(1, 40):]


def insert(text, rng):
    at = rng.randrange(len(text))
    return text[:at] + rng.choice(PIECES) * rng.choice([1, 1, 1, 3, 2000]) + text[at:]


def repeat(text, rng):
    lines = text.splitlines(keepends=True)
    first = rng.randrange(len(lines))
    some = lines[first:first + rng.randrange(1, 6)]
    return b"".join(lines[:first] + some * rng.choice([2, 2, 3, 40]) + lines[first + len(some):])


def drop_lines(text, rng):
    lines = text.splitlines(keepends=True)
    first = rng.randrange(len(lines))
    return b"".join(lines[:first] + lines[first + rng.randrange(1, 6):])


def swap_lines(text, rng):
    lines = text.splitlines(keepends=True)
    a, b = rng.randrange(len(lines)), rng.randrange(len(lines))
    lines[a], lines[b] = lines[b], lines[a]
    return b"".join(lines)


def change_number(text, rng):
    found = list(NUMBER.finditer(text))
    if not found:
        return flip_byte(text, rng)
    one = rng.choice(found)
    return text[:one.start()] + rng.choice(NUMBERS) + text[one.end():]


def change_word(text, rng):
    found = list(re.finditer(rb'"[^"\n]*"|\w+', text))
    if len(found) < 2:
        return flip_byte(text, rng)
    one, other = rng.choice(found), rng.choice(found)
    return text[:one.start()] + other.group() + text[one.end():]


KINDS = [change_number, change_number, change_word, change_word, flip_byte, cut, insert, repeat, drop_lines, swap_lines]


def damaged(text, rng):
    for _ in range(rng.choice([1, 1, 1, 2, 5])):
        if text:
            text = rng.choice(KINDS)(text, rng)
    return text


class Corpus:
    """Files that are damaged one at a time, and the commands that read them; the others stay whole."""

    def __init__(self, binary, root, folder):
        self.binary, self.folder = str(binary), Path(folder)
        inputs = root / "tests/cli/inputs"
        for file in inputs.iterdir():
            shutil.copy(file, self.folder)
        self.copy(root / "configs/clusters/azure-mixed.json", "fleet.json")
        self.copy(root / "configs/models/hf/gpt2-medium.json", "config.json")
        self.copy(root / "configs/models/deepseek-v2-lite.yaml", "experts.yaml")
        (self.folder / "hf").mkdir()
        shutil.copy(root / "configs/models/hf/deepseek-v2-lite.json", self.folder / "hf")
        self.copy(root / "configs/models/llava-1.5-7b.yaml", "llava.yaml")
        self.copy(root / "configs/profiles/a100-40gb-gpt-350m.json", "profile.json")
        self.copy(root / "configs/timings/two-desktops-gpt2-xl.jsonl", "timings.jsonl")
        self.copy(root / "tests/data/cluster/reports/kubernetes.json", "kubernetes.json")
        self.copy(root / "tests/data/cluster/reports/slurm.txt", "slurm.txt")
        self.copy(root / "tests/data/cluster/reports/slurm.json", "slurm.json")
        self.text("config.yaml", "objective: throughput\ntop: 4\nforbid: [zero3]\njobs: 2\n")
        self.made("plan", "tiny.json", "mini.yaml", "--target", "megatron", "-o", "plan.json")
        self.made("plan", "tiny.json", "mini.yaml", "--forbid", "pp", "-o", "other.json")
        self.made("export", "plan.json", "--to", "megatron", "-o", "start")
        for name in ("arguments.sh", "rankmap.csv", "hostfile"):
            shutil.copy(self.folder / "start" / name, self.folder / name)
        read = ["--cluster", "tiny.json", "--model", "mini.yaml"]
        place = ["--network", "100Gbit,ethernet"]
        self.made("kernels", "synth", "moe.yaml", "--gpu", "L40S,T4", "-o", "kernels.json")
        self.copy(root / "configs/kernels/experts.json", "experts.json")
        self.pairs = [
            ("kernels.json", ["kernels", "show", "kernels.json"]), ("kernels.json", ["kernels", "check", "kernels.json"]),
            ("experts.json", ["kernels", "accuracy", "experts.json"]),
            ("moe.yaml", ["kernels", "synth", "moe.yaml", "--phase", "prefill,decode", "--gpu", "L40S"]),
            ("timings.jsonl", ["calibrate", "timings.jsonl"]),
            ("plan.json", ["calibrate", "timings.jsonl", "--plan", "plan.json"]),
            ("tiny.json", ["islands", "tiny.json"]), ("tiny.json", ["plan", "tiny.json", "mini.yaml"]),
            ("fleet.json", ["islands", "fleet.json"]), ("tiny.json", ["compare", "tiny.json", "mini.yaml", "--no-ablation"]),
            ("tiny.json", ["explain", "plan.json", "tiny.json"]), ("tiny.json", ["check", "plan.json", "--cluster", "tiny.json"]),
            ("tiny.json", ["diff", "plan.json", "other.json", "--cluster", "tiny.json"]),
            ("mini.yaml", ["plan", "tiny.json", "mini.yaml"]), ("moe.yaml", ["plan", "tiny.json", "moe.yaml"]),
            ("config.json", ["plan", "tiny.json", "config.json"]), ("experts.yaml", ["plan", "tiny.json", "experts.yaml"]),
            ("llava.yaml", ["plan", "tiny.json", "llava.yaml"]),
            ("plan.json", ["check", "plan.json"]), ("plan.json", ["simulate", "plan.json"]),
            ("plan.json", ["verify", "plan.json"]), ("plan.json", ["diff", "plan.json", "other.json"]),
            ("plan.json", ["export", "plan.json", "--to", "generic", "-o", "written"]),
            ("plan.json", ["explain", "plan.json", "tiny.json"]),
            ("plan.json", ["plan", "tiny.json", "mini.yaml", "--against", "plan.json"]),
            ("arguments.sh", ["import", "arguments.sh", "rankmap.csv", "--from", "megatron", *read]),
            ("rankmap.csv", ["import", "arguments.sh", "rankmap.csv", "--from", "megatron", *read]),
            ("hostfile", ["import", "arguments.sh", "hostfile", "--from", "megatron", *read]),
            ("sailor_plan.json", ["import", "sailor_plan.json", "--from", "sailor", *read]),
            ("metis.log", ["import", "metis.log", "--from", "metis", *read]),
            ("profile.json", ["profile", "show", "profile.json"]),
            ("measurements.json", ["accuracy", "measurements.json"]),
            ("kubernetes.json", ["cluster", "from-kubernetes", "kubernetes.json", *place]),
            ("slurm.txt", ["cluster", "from-slurm", "slurm.txt", *place]),
            ("slurm.json", ["cluster", "from-slurm", "slurm.json", *place]),
            ("config.yaml", ["plan", "tiny.json", "mini.yaml", "--show-origin"])]

    def copy(self, source, name):
        shutil.copy(source, self.folder / name)

    def text(self, name, text):
        (self.folder / name).write_text(text, encoding="utf-8")

    def made(self, *command):
        subprocess.run([self.binary, *command, "-q"], cwd=self.folder, check=True, stdout=subprocess.DEVNULL, env=ENVIRONMENT)

    def trial(self, number, seed):
        """One run, and the damaged file; each number is a trial of its own that a failure can be repeated by."""
        rng = random.Random(f"{seed}/{number}")
        name, command = self.pairs[number % len(self.pairs)]
        file = self.folder / name
        whole = file.read_bytes()
        file.write_bytes(damaged(whole, rng))
        settings = self.folder / ".tangram.yaml"
        if name == "config.yaml":
            shutil.copy(file, settings)
        try:
            words = [*command, "--json"] if rng.random() < 0.3 else command
            return name, Trial([self.binary, *words], self.folder), file.read_bytes()
        finally:
            file.write_bytes(whole)
            settings.unlink(missing_ok=True)
            shutil.rmtree(self.folder / "written", ignore_errors=True)


def main():
    binary, root = Path(sys.argv[1]).resolve(), Path(sys.argv[2]).resolve()
    given = sys.argv[3:]
    count = int(given[0] if given else os.environ.get("TANGRAM_MUTATIONS", COUNT))
    seed = given[1] if len(given) > 1 else "1"
    keep = os.environ.get("TANGRAM_MUTATIONS_KEEP", "")
    trials, wrong = [], []
    with tempfile.TemporaryDirectory(prefix="tangram-mutations-") as folder:
        corpus = Corpus(binary, root, folder)
        for number in range(count):
            name, trial, text = corpus.trial(number, seed)
            trials.append(trial)
            if trial.wrong:
                wrong.append(f"number {number} of seed {seed}, {name}: {trial}")
                if keep:
                    Path(keep, f"{seed}-{number}-{name}").write_bytes(text)
    answered = sum(trial.code == 0 for trial in trials)
    print(f"{count} runs, {answered} with an answer; slowest: {slowest(trials)}")
    if wrong:
        print("\n".join(wrong[:40]))
        sys.exit(f"{len(wrong)} runs are wrong")


if __name__ == "__main__":
    main()
