"""What a user can be told. Nothing here needs PyTorch."""

import importlib.util
import sys


class PlanError(Exception):
    """The plan cannot be run: str() says why."""


class SettingsError(Exception):
    """The run cannot begin: str() says what to change."""


def without_torch() -> str:
    """What to do where this Python has no PyTorch; empty: it has."""
    if importlib.util.find_spec("torch") is not None:
        return ""
    return (f"{sys.executable} has no PyTorch: install it (apt install python3-torch, or pip install torch), or put a "
            "Python that has it first in PATH")
