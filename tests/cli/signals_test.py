#!/usr/bin/env python3
"""Every signal that ends a process, while planning: exit 128 + its number (130 and 143 for SIGINT and SIGTERM), no output
file and no temporary one; while searching ahead: the plan is there, and what was kept until then is whole. What was
ignored at the start, as nohup does with SIGHUP, stays ignored.

    signals_test.py BINARY CONFIGS
"""
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path


# All whose default ends the process, but SIGKILL and those that a fault raises.
ENDING = [signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTRAP, signal.SIGABRT, signal.SIGSYS, signal.SIGUSR1,
          signal.SIGUSR2, signal.SIGALRM, signal.SIGTERM, signal.SIGXCPU, signal.SIGVTALRM, signal.SIGPROF, signal.SIGIO,
          signal.SIGPWR, signal.SIGRTMIN, signal.SIGRTMAX]


def as_usual():
    """In the program's process, before it starts: a test that runs in the background is told to ignore some."""
    for number in ENDING:
        signal.signal(number, signal.SIG_DFL)


def interrupted(binary, number):
    """Stopped while it waits for the model on stdin, and has the cluster already."""
    with tempfile.TemporaryDirectory(prefix="tangram-signal-") as folder:
        with subprocess.Popen([binary, "islands", "-"], cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, preexec_fn=as_usual) as process:
            time.sleep(0.3)
            process.send_signal(number)
            process.wait(timeout=20)
        return process.returncode, sorted(os.listdir(folder))


def interrupted_while_planning(binary, configs, number):
    """Stopped once the temporary output exists; the plan takes seconds, the signal is sent at once."""
    with tempfile.TemporaryDirectory(prefix="tangram-signal-") as folder:
        command = [binary, "plan", f"{configs}/clusters/fleet-10k.json", f"{configs}/models/llama-3.1-405b.yaml", "-o",
                   "plan.json"]
        with subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              preexec_fn=as_usual) as process:
            while process.poll() is None and not os.listdir(folder):
                time.sleep(0.001)
            process.send_signal(number)
            output = process.stdout.read()
            process.wait(timeout=60)
        return process.returncode, sorted(os.listdir(folder)), output


def interrupted_while_searching_ahead(binary, configs, number):
    """Stopped once the plan is written: those of dozens that were made are kept at most."""
    with tempfile.TemporaryDirectory(prefix="tangram-signal-") as folder:
        command = [binary, "plan", f"{configs}/clusters/h100-a100-v100.json", f"{configs}/models/gpt-6.7b.yaml", "-o",
                   "plan.json", "--cache", "kept.sqlite"]
        with subprocess.Popen([*command, "--ahead"], cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                              preexec_fn=as_usual) as process:
            while process.poll() is None and not os.path.exists(f"{folder}/plan.json"):
                time.sleep(0.001)
            time.sleep(0.05)
            process.send_signal(number)
            said = process.stderr.read().decode()
            process.wait(timeout=60)
        written = Path(folder, "plan.json").read_bytes()
        again = subprocess.run([*command, "-v"], cwd=folder, capture_output=True, text=True, check=True)
        assert "3 searches looked up, 0 made" in again.stderr, again.stderr
        assert Path(folder, "plan.json").read_bytes() == written
        assert "searched ahead" not in said and "what was written before stays" in said, said
        return process.returncode


def ignored(binary, number):
    """It goes on, and ends by what comes after."""
    with tempfile.TemporaryDirectory(prefix="tangram-signal-") as folder:
        with subprocess.Popen([binary, "islands", "-"], cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, preexec_fn=lambda: signal.signal(number, signal.SIG_IGN)) as process:
            time.sleep(0.3)
            process.send_signal(number)
            time.sleep(0.1)
            going_on = process.poll() is None
            process.terminate()
            process.wait(timeout=20)
        return going_on, process.returncode


def main():
    binary, configs = Path(sys.argv[1]).resolve(), Path(sys.argv[2]).resolve()
    for number in ENDING:
        got = interrupted_while_planning(binary, configs, number)
        assert got == (128 + number, [], b""), (number, got)
    assert ignored(binary, signal.SIGHUP) == (True, 143)
    for number, code in ((signal.SIGINT, 130), (signal.SIGTERM, 143)):
        got = interrupted(binary, number)
        assert got == (code, []), got
        got = interrupted_while_planning(binary, configs, number)
        assert got == (code, [], b""), got
        assert interrupted_while_searching_ahead(binary, configs, number) == code


if __name__ == "__main__":
    main()
