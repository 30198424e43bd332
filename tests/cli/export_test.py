#!/usr/bin/env python3
"""Exports of the command line: scripts pass shellcheck, and start what they say.

    export_test.py BINARY CONFIGS      exit 77 (skipped) without shellcheck

The scripts are run with a stand-in for torchrun and python3 that writes down how it was called.
"""
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

STAND_IN = """#!/usr/bin/env bash
{ printf '%s ' "$(basename -- "$0")" "$@"
  printf 'RANK=%s LOCAL_RANK=%s WORLD_SIZE=%s CVD=%s\\n' "${RANK-}" "${LOCAL_RANK-}" "${WORLD_SIZE-}" "$CUDA_VISIBLE_DEVICES"
} >>"$CALLS"
"""


def run(*words, **more):
    done = subprocess.run(words, capture_output=True, text=True, check=False, **more)
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, words))}: exit {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


def calls_of(folder, scratch, *arguments):
    """What every node script starts, by node."""
    tools = scratch / "tools"
    tools.mkdir(exist_ok=True)
    for name in ("torchrun", "python3"):
        (tools / name).write_text(STAND_IN)
        (tools / name).chmod(0o755)
    calls = {}
    for script in sorted(folder.glob("nodes/*.sh")):
        record = scratch / "calls"
        record.unlink(missing_ok=True)
        environment = dict(os.environ, PATH=f"{tools}:{os.environ['PATH']}", CALLS=str(record))
        run(str(script), *arguments, env=environment)
        calls[script.stem] = sorted(record.read_text().splitlines())
    return calls


def main(binary, configs):
    if shutil.which("shellcheck") is None:
        print("skipped: no shellcheck; sudo apt-get install shellcheck")
        sys.exit(77)
    inputs = Path(__file__).parent / "inputs"
    with tempfile.TemporaryDirectory() as name:
        scratch = Path(name)
        plan = scratch / "plan.json"
        run(binary, "plan", inputs / "tiny.json", inputs / "mini.yaml", "--target", "megatron", "-q", "-o", plan)
        for form in ("generic", "megatron"):
            run(binary, "export", plan, "--to", form, "-o", scratch / form)
        windows = scratch / "windows.json"
        run(binary, "plan", inputs / "tiny.json", inputs / "windows.yaml", "--target", "megatron", "-q", "-o", windows)
        run(binary, "export", windows, "--to", "megatron", "-o", scratch / "windows")
        wrapped = (("slurm", "generic"), ("kubernetes", "generic"), ("slurm", "megatron"), ("kubernetes", "megatron"))
        for form, program in wrapped:
            run(binary, "export", plan, "--to", form, "--program", program, "-o", scratch / f"{form}-{program}")
        for script in sorted([*scratch.glob("**/*.sh"), *scratch.glob("**/*.sbatch")]):
            run("shellcheck", script)
        calls = calls_of(scratch / "generic", scratch, "train.py", "a b")
        for node, lines in calls.items():
            assert len(lines) == 1 and lines[0].startswith("torchrun --nnodes "), (node, lines)
            assert " train.py a b " in lines[0], lines
    print("ok")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
