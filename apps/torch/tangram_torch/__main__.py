"""python -m tangram_torch PLAN: `train.py` does it."""

import sys

from .errors import without_torch
from .settings import USAGE, read_settings

settings = read_settings()
if missing := without_torch():
    print(missing, file=sys.stderr)
    sys.exit(USAGE)

from .train import run_and_exit  # noqa: E402

run_and_exit(settings)
