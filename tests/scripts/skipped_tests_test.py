#!/usr/bin/env python3
"""What ctest skipped or saw fail is listed with what the test printed. Usage: skipped_tests_test.py SCRIPTS"""

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
add_test(NAME "part: fails" COMMAND sh -c "echo first; echo; seq 25; exit 3")
add_test(NAME "part: hangs" COMMAND sh -c "echo asleep; exec sleep 60")
add_test(NAME "part: fails silently" COMMAND false)
set_tests_properties("part: hangs" PROPERTIES TIMEOUT 1)
set_tests_properties("part: wants a thing" "part: wants another" PROPERTIES SKIP_RETURN_CODE 77)
"""


def main(scripts):
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "CMakeLists.txt").write_text(PROJECT, encoding="utf-8")
        build = folder / "build"
        subprocess.run(["cmake", "-S", folder, "-B", build, "-G", "Ninja"], check=True, capture_output=True)
        assert subprocess.run(["ctest", "--test-dir", build], capture_output=True, check=False).returncode == 8
        command = f"set -euo pipefail; root={folder}; source {scripts}/build.sh; skipped_tests {build}; failed_tests {build}"
        done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout == ("skipped: part: wants a thing: there is no thing\n"
                           "skipped: part: wants another: no: other\n"
                           "failed: part: fails\n" + "".join(f"  {n}\n" for n in range(6, 26)) +
                           "failed: part: hangs\n  asleep\n"
                           "failed: part: fails silently\n"), done.stdout
    print("ok")


if __name__ == "__main__":
    main(sys.argv[1])
