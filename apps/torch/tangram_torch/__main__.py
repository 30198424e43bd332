"""python -m tangram_torch PLAN: `train.py` does it."""

from .settings import read_settings
from .train import run_and_exit

run_and_exit(read_settings())
