"""Imports nothing of PyTorch: finds a Python that has it, or ends a test as skipped."""

import os
import subprocess
import sys

SKIPPED = 77


def need_torch():
    """Returns where this Python has PyTorch; else starts the test anew with that of Debian. Tests run on processors unless
    TANGRAM_TEST_DEVICE says cuda."""
    if "TANGRAM_TEST_DEVICE" not in os.environ:
        os.environ["CUDA_VISIBLE_DEVICES"] = ""
    try:
        import torch  # noqa: F401
        return
    except ImportError:
        pass
    debian = "/usr/bin/python3"
    tried = os.environ.get("TANGRAM_TEST_PYTHON") == debian
    if not tried and subprocess.run([debian, "-c", "import torch"], capture_output=True).returncode == 0:
        os.environ["TANGRAM_TEST_PYTHON"] = debian
        os.execv(debian, [debian, *sys.argv])
    print("no Python here has PyTorch: scripts/setup torch")
    sys.exit(SKIPPED)
