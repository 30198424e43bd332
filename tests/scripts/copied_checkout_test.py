#!/usr/bin/env python3
"""A build tree that was copied along with its checkout builds the copy, and says so; one that was configured with other
options is configured with those that are asked for. Usage: copied_checkout_test.py SCRIPTS"""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path


def scripts_build(checkout, command, **environment):
    """What a command says that knows scripts/build.sh."""
    text = f"set -euo pipefail; root={checkout}; source {checkout}/scripts/build.sh; {command}"
    unset = {name: value for name, value in os.environ.items() if name not in ("CI", "TANGRAM_DEVELOPER")}
    done = subprocess.run(["bash", "-c", text], capture_output=True, text=True, check=False, env={**unset, **environment})
    assert done.returncode == 0, done.stderr
    return done


def configure(checkout, *arguments):
    """What scripts/build.sh says, and the checkout that its build tree is for."""
    done = scripts_build(checkout, f"configure {checkout}/build/test {' '.join(arguments)}")
    cache = (checkout / "build" / "test" / "CMakeCache.txt").read_text(encoding="utf-8")
    [source] = [line.split("=", 1)[1] for line in cache.splitlines() if line.startswith("CMAKE_HOME_DIRECTORY:")]
    return done.stderr, Path(source)


def check_options(checkout):
    """Only what differs is configured again; what nobody asks for stays as it is."""
    folder = checkout / "build" / "test"

    def tests():
        return scripts_build(checkout, f"cached {folder} TANGRAM_BUILD_TESTS").stdout.strip()

    configure(checkout, "-DTANGRAM_BUILD_TESTS=OFF")
    assert tests() == "OFF"
    configure(checkout, "-DTANGRAM_BUILD_TESTS=ON")
    assert tests() == "ON"
    before = (folder / "build.ninja").stat().st_mtime_ns
    configure(checkout, "-DTANGRAM_BUILD_TESTS=ON")
    assert (folder / "build.ninja").stat().st_mtime_ns == before, "configured anew without need"
    configure(checkout)
    assert tests() == "ON"
    assert "WERROR" not in scripts_build(checkout, "echo ${together[@]}").stdout
    for name in ("CI", "TANGRAM_DEVELOPER"):
        assert "-DTANGRAM_WERROR=ON" in scripts_build(checkout, "echo ${together[@]}", **{name: "1"}).stdout


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
        check_options(first)
    print("ok")


if __name__ == "__main__":
    main(sys.argv[1])
