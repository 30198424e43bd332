#!/usr/bin/env python3
"""On a pseudo-terminal one progress line is rewritten and colors are on; off it, or with NO_COLOR, neither.

    terminal_test.py BINARY CONFIGS
"""
import os
import pty
import subprocess
import sys
import tempfile
from pathlib import Path


def on_terminal(command, extra):
    """What the command writes to a terminal that is both its stdout and its stderr."""
    try:
        master, slave = pty.openpty()
    except OSError as problem:  # no /dev/pts, as in a bare chroot
        print(f"skipped: no pseudo-terminal to be had: {problem}")
        sys.exit(77)
    environment = {"PATH": os.environ["PATH"], "HOME": "/nonexistent", "TERM": "xterm", **extra}
    with tempfile.TemporaryDirectory() as folder:
        with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=slave, stderr=slave, env=environment,
                              cwd=folder) as process:
            os.close(slave)
            text = b""
            while True:
                try:
                    chunk = os.read(master, 65536)
                except OSError:  # the other end is closed
                    break
                if not chunk:
                    break
                text += chunk
            process.wait(timeout=60)
    os.close(master)
    assert process.returncode == 0, text
    return text.decode()


def main():
    binary, configs = Path(sys.argv[1]).resolve(), Path(sys.argv[2]).resolve()
    inputs = Path(__file__).resolve().parent / "inputs"
    plan = [binary, "plan", inputs / "tiny.json", inputs / "mini.yaml"]
    rewrite, color = "\r\x1b[K", "\x1b[1m"

    text = on_terminal(plan, {})
    assert text.startswith(rewrite), text[:80]
    assert color in text
    assert text.split(rewrite)[-1].startswith("\x1b[2mfleet"), "the line is cleared before the result"

    text = on_terminal(plan, {"NO_COLOR": "1"})
    assert rewrite in text and color not in text

    assert "\x1b" not in on_terminal(plan, {"TERM": "dumb"})
    assert "\x1b" not in on_terminal([*plan, "-q", "--color", "never"], {})
    assert rewrite not in on_terminal(plan, {"CI": "true"})

    piped = subprocess.run(plan, capture_output=True, text=True, check=True, env={"HOME": "/nonexistent"})
    assert piped.stderr == "" and "\x1b" not in piped.stdout, piped
    forced = subprocess.run([*plan, "--color", "always"], capture_output=True, text=True, check=True,
                            env={"HOME": "/nonexistent", "NO_COLOR": "1"})
    assert color in forced.stdout and rewrite not in forced.stderr
    assert configs.is_dir()


if __name__ == "__main__":
    main()
