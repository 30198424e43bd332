#!/usr/bin/env python3
"""What ctest skipped is listed with the reason that the test printed. Usage: skipped_tests_test.py SCRIPTS"""

import subprocess
import sys
import tempfile
from pathlib import Path

PROJECT = """\
cmake_minimum_required(VERSION 3.25)
project(small NONE)
enable_testing()
add_test(NAME "part: goes well" COMMAND sh -c "echo done")
add_test(NAME "part: wants a thing" COMMAND sh -c "echo begun; echo 'skipped: there is no thing'; exit 77")
add_test(NAME "part: wants another" COMMAND sh -c "echo 'skipped: no: other'; exit 77")
set_tests_properties("part: wants a thing" "part: wants another" PROPERTIES SKIP_RETURN_CODE 77)
"""


def main(scripts):
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "CMakeLists.txt").write_text(PROJECT, encoding="utf-8")
        build = folder / "build"
        for command in (["cmake", "-S", folder, "-B", build, "-G", "Ninja"], ["ctest", "--test-dir", build]):
            subprocess.run(command, check=True, capture_output=True)
        command = f"set -euo pipefail; root={folder}; source {scripts}/build.sh; skipped_tests {build}"
        done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout == ("skipped: part: wants a thing: there is no thing\n"
                           "skipped: part: wants another: no: other\n"), done.stdout
    print("ok")


if __name__ == "__main__":
    main(sys.argv[1])
