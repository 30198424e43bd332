"""Runs of the program that must end in an answer or an error of its own: no signal, no exit 1, within a time."""
import os
import re
import resource
import subprocess
import time

LIMIT_S = 20
BUSY = 6  # a machine with other work takes so much longer; the time of its processors is what counts
ANSWERS = {0, 2, 3, 4, 5, 6, 64}  # 1 is a bug
CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f\x80-\x9f]")
ENVIRONMENT = {**os.environ, "TANGRAM_CACHE": "off", "HOME": "/nonexistent"}


class Trial:
    """One run, and what is wrong with how it ended (empty: nothing)."""

    def __init__(self, command, folder, limit=LIMIT_S):
        self.command = [str(word) for word in command]
        begin, used = time.monotonic(), processor_seconds()
        try:
            done = subprocess.run(self.command, cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, timeout=BUSY * limit,
                                  env=ENVIRONMENT, check=False)
            self.code, self.out, self.err = done.returncode, text_of(done.stdout), text_of(done.stderr)
        except subprocess.TimeoutExpired as late:
            self.code, self.out, self.err = None, text_of(late.stdout), text_of(late.stderr)
        self.seconds = min(time.monotonic() - begin, processor_seconds() - used)
        self.wrong = self.judge(limit)

    def judge(self, limit):
        if self.code is None or self.seconds > limit:
            return f"no end within {limit} s"
        if self.code not in ANSWERS:
            return f"exit {self.code}"
        if CONTROLS.search(self.out + self.err):
            return "control characters are printed"
        if self.code in (4, 64) and "error:" not in self.err:
            return "an error without a word"
        return ""

    def has_place(self, name):
        """An error says where in the file it is."""
        return re.search(rf"{re.escape(name)}:\d+:\d+: error:", self.err) is not None

    def __str__(self):
        said = "\n    ".join(self.err.strip().splitlines()[:6])
        return f"{self.wrong}: {' '.join(self.command)} ({self.seconds:.1f} s)\n    {said}"


def processor_seconds():
    """Of the runs that have ended."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def text_of(data):
    return (data or b"").decode("utf-8", "replace")


def slowest(trials, count=3):
    ranked = sorted(trials, key=lambda trial: -trial.seconds)[:count]
    return "; ".join(f"{trial.seconds:.1f} s {' '.join(trial.command[1:4])}" for trial in ranked)
