#!/usr/bin/env python3
"""A text shows what the program prints: runs every `$ scripts/tangram ...` or `$ tangram ...` of the console blocks of
README.md or of a page of the manual and compares. The runs of a text happen in order, in one empty folder in which
`configs` is the repository's, so that a later one finds what an earlier one wrote.

    readme_test.py TANGRAM TEXT...            exit 1 and a diff where they differ
    readme_test.py TANGRAM TEXT... --update   rewrites the outputs in the texts
"""

import difflib
import os
import re
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BLOCK = re.compile(r"^```console\n(.*?)^```$", re.MULTILINE | re.DOTALL)
PROMPT = re.compile(r"\$ (?:scripts/)?tangram (.*)")


def run(tangram: str, command: str, folder: Path) -> str:
    environment = {**os.environ, "NO_COLOR": "1", "LC_ALL": "C.UTF-8", "COLUMNS": "100"}
    done = subprocess.run(
        [tangram, *shlex.split(command)], cwd=folder, env=environment, capture_output=True, text=True, timeout=300
    )
    if done.returncode not in (0, 3):
        raise SystemExit(f"{command}: exit {done.returncode}\n{done.stderr}")
    return done.stdout


def refresh(block: str, tangram: str, folder: Path) -> str:
    """The block with every output replaced by what the program prints now; other commands keep theirs."""
    lines = block.splitlines()
    fresh: list[str] = []
    index = 0
    while index < len(lines):
        line = lines[index]
        fresh.append(line)
        index += 1
        command = PROMPT.fullmatch(line)
        if not command:
            continue
        while index < len(lines) and not lines[index].startswith("$ "):
            index += 1
        fresh += run(tangram, command[1], folder).rstrip("\n").splitlines()
        if index < len(lines):
            fresh.append("")
    return "\n".join(fresh) + "\n"


def refreshed(text: str, tangram: str) -> str:
    with tempfile.TemporaryDirectory(prefix="tangram-readme-") as folder:
        os.symlink(ROOT / "configs", Path(folder) / "configs")
        return BLOCK.sub(lambda match: "```console\n" + refresh(match.group(1), tangram, Path(folder)) + "```", text)


def main() -> int:
    tangram = str(Path(sys.argv[1]).resolve())
    update = "--update" in sys.argv
    status = 0
    for path in [Path(word) for word in sys.argv[2:] if word != "--update"]:
        before = path.read_text(encoding="utf-8")
        if path.name == "README.md" and not PROMPT.search(before):
            raise SystemExit("the README shows no run of scripts/tangram")
        after = refreshed(before, tangram)
        if update and after != before:
            path.write_text(after, encoding="utf-8")
        if not update and after != before:
            lines = difflib.unified_diff(before.splitlines(), after.splitlines(), str(path), "printed now", lineterm="")
            print("\n".join(lines))
            status = 1
    return status


if __name__ == "__main__":
    sys.exit(main())
