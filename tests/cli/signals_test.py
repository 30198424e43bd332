#!/usr/bin/env python3
"""SIGINT and SIGTERM while planning: exit 130 and 143, no output file and no temporary one.

    signals_test.py BINARY CONFIGS
"""
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path


def interrupted(binary, number):
    """Stopped while it waits for the model on stdin, and has the cluster already."""
    with tempfile.TemporaryDirectory(prefix="tangram-signal-") as folder:
        with subprocess.Popen([binary, "islands", "-"], cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE) as process:
            time.sleep(0.3)
            process.send_signal(number)
            process.wait(timeout=20)
        return process.returncode, sorted(os.listdir(folder))


def interrupted_while_planning(binary, configs, number):
    """Stopped once the temporary output exists; the plan takes seconds, the signal is sent at once."""
    with tempfile.TemporaryDirectory(prefix="tangram-signal-") as folder:
        command = [binary, "plan", f"{configs}/clusters/fleet-10k.json", f"{configs}/models/llama-3.1-405b.yaml", "-o",
                   "plan.json"]
        with subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
            while process.poll() is None and not os.listdir(folder):
                time.sleep(0.001)
            process.send_signal(number)
            output = process.stdout.read()
            process.wait(timeout=60)
        return process.returncode, sorted(os.listdir(folder)), output


def main():
    binary, configs = Path(sys.argv[1]).resolve(), Path(sys.argv[2]).resolve()
    for number, code in ((signal.SIGINT, 130), (signal.SIGTERM, 143)):
        got = interrupted(binary, number)
        assert got == (code, []), got
        got = interrupted_while_planning(binary, configs, number)
        assert got == (code, [], b""), got


if __name__ == "__main__":
    main()
