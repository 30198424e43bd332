"""python -m tangram_torch PLAN: `train.py` does it."""

import sys

from .train import main

sys.exit(main())
