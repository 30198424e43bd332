"""Which Python tests of scripts on PyTorch run, where this one need not have it."""

import subprocess
import sys
from pathlib import Path

SKIPPED = 77


def python_with_torch() -> str:
    """Ends the test as skipped where no Python here has PyTorch."""
    for python in (sys.executable, "/usr/bin/python3"):
        if not Path(python).exists():
            continue
        if subprocess.run([python, "-c", "import torch"], capture_output=True).returncode == 0:
            return python
    print("skipped: no Python here has PyTorch (scripts/setup torch: 150 MB to load, 640 MB installed)")
    raise SystemExit(SKIPPED)
