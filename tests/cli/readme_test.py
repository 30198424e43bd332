#!/usr/bin/env python3
"""The README shows what the program prints: runs every `$ scripts/tangram ...` of its console blocks and compares.

    readme_test.py TANGRAM README            exit 1 and a diff where they differ
    readme_test.py TANGRAM README --update   rewrites the README's outputs
"""

import difflib
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

BLOCK = re.compile(r"^```console\n(.*?)^```$", re.MULTILINE | re.DOTALL)
PROMPT = "$ scripts/tangram "


def run(tangram: str, command: str, root: Path) -> str:
    environment = {**os.environ, "NO_COLOR": "1", "LC_ALL": "C.UTF-8", "COLUMNS": "100"}
    done = subprocess.run(
        [tangram, *shlex.split(command)], cwd=root, env=environment, capture_output=True, text=True, timeout=120
    )
    if done.returncode not in (0, 3):
        raise SystemExit(f"{command}: exit {done.returncode}\n{done.stderr}")
    return done.stdout


def refresh(block: str, tangram: str, root: Path) -> str:
    """The block with every output replaced by what the program prints now; other commands keep theirs."""
    lines = block.splitlines()
    fresh: list[str] = []
    index = 0
    while index < len(lines):
        line = lines[index]
        fresh.append(line)
        index += 1
        if not line.startswith(PROMPT):
            continue
        while index < len(lines) and not lines[index].startswith("$ "):
            index += 1
        fresh += run(tangram, line[len(PROMPT):], root).rstrip("\n").splitlines()
        if index < len(lines):
            fresh.append("")
    return "\n".join(fresh) + "\n"


def main() -> int:
    tangram, readme = sys.argv[1], Path(sys.argv[2])
    root = readme.resolve().parent
    before = readme.read_text(encoding="utf-8")
    if PROMPT not in before:
        raise SystemExit("the README shows no run of scripts/tangram")
    after = BLOCK.sub(lambda match: "```console\n" + refresh(match.group(1), tangram, root) + "```", before)
    if "--update" in sys.argv:
        readme.write_text(after, encoding="utf-8")
        return 0
    difference = difflib.unified_diff(before.splitlines(), after.splitlines(), "README.md", "printed now", lineterm="")
    text = "\n".join(difference)
    if text:
        print(text)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
