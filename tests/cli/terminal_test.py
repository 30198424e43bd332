#!/usr/bin/env python3
"""On a pseudo-terminal one progress line is rewritten and colors are on; off it, or with NO_COLOR, neither. Tables are as
wide as the terminal, and what init is not told it asks for.

    terminal_test.py BINARY CONFIGS
"""
import fcntl
import os
import pty
import struct
import subprocess
import sys
import tempfile
import termios
from pathlib import Path


def on_terminal(command, extra, answers=None, columns=0):
    """What the command writes to a terminal that is both its stdout and its stderr; with answers, its stdin as well."""
    try:
        master, slave = pty.openpty()
    except OSError as problem:  # no /dev/pts, as in a bare chroot
        print(f"skipped: no pseudo-terminal to be had: {problem}")
        sys.exit(77)
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24 if columns else 0, columns, 0, 0))
    environment = {"PATH": os.environ["PATH"], "HOME": "/nonexistent", "TERM": "xterm", **extra}
    with tempfile.TemporaryDirectory() as folder:
        with subprocess.Popen(command, stdin=subprocess.DEVNULL if answers is None else slave, stdout=slave, stderr=slave, env=environment,
                              cwd=folder) as process:
            os.close(slave)
            text = b""
            if answers is not None:
                os.write(master, answers.encode())
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


def check_width(binary):
    """The list of parallelizers, whose descriptions wrap, fits a narrow terminal and uses a wide one."""
    lengths = {}
    for columns in (72, 160):
        text = on_terminal([binary, "parallelizers", "list", "--color", "never"], {}, columns=columns)
        lengths[columns] = max(len(line) for line in text.splitlines() if "ZeRO" in line or "Megatron" in line)
    assert lengths[72] <= 72 < 100 < lengths[160] <= 160, lengths


def check_questions(binary, folder):
    """Wrong answers are asked again; what is written is what was said."""
    job = folder / "job"
    answers = "2x8xH100-80GB-SMX\n2x8xH100-80GB-SXM\n4xT4\n\n8x400Gbit,infinibad\n8x400Gbit,infiniband\ngpt-6.8b\ngpt-6.7b\n"
    text = on_terminal([binary, "init", job], {}, answers=answers)
    for hint in ('did you mean "H100-80GB-SXM"?', 'did you mean "infiniband"?', 'did you mean "gpt-6.7b"?'):
        assert hint in text, text
    cluster = (job / "cluster.json").read_text()
    assert '"h100-[1-2]"' in cluster and '"t4-1"' in cluster and '"kind": "infiniband"' in cluster, cluster
    assert "name: gpt-6.7b" in (job / "model.yaml").read_text()


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
    check_width(binary)
    with tempfile.TemporaryDirectory() as folder:
        check_questions(binary, Path(folder))


if __name__ == "__main__":
    main()
