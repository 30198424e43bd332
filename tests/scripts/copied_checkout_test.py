#!/usr/bin/env python3
"""A build tree that was copied along with its checkout builds the copy, and says so. Usage: copied_checkout_test.py SCRIPTS"""

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path


def configure(checkout):
    """What scripts/build.sh says, and the checkout that its build tree is for."""
    command = f"set -euo pipefail; root={checkout}; source {checkout}/scripts/build.sh; configure {checkout}/build/test"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    cache = (checkout / "build" / "test" / "CMakeCache.txt").read_text(encoding="utf-8")
    [source] = [line.split("=", 1)[1] for line in cache.splitlines() if line.startswith("CMAKE_HOME_DIRECTORY:")]
    return done.stderr, Path(source)


def main(scripts):
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name).resolve()
        first, copy = folder / "first", folder / "copy"
        (first / "scripts").mkdir(parents=True)
        shutil.copy(Path(scripts) / "build.sh", first / "scripts")
        (first / "CMakeLists.txt").write_text("cmake_minimum_required(VERSION 3.25)\nproject(small NONE)\n",
                                              encoding="utf-8")
        assert configure(first) == ("", first)
        assert configure(first) == ("", first), "what is configured already is left as it is"
        shutil.copytree(first, copy)
        said, source = configure(copy)
        assert source == copy and f"was made for {first}" in said, (said, source)
        assert configure(copy) == ("", copy)
        assert configure(first) == ("", first)
    print("ok")


if __name__ == "__main__":
    main(sys.argv[1])
