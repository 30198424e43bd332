"""A script without .py as a module, with what lies beside it."""

import importlib.util
import sys
from importlib.machinery import SourceFileLoader
from pathlib import Path


def module_of(script):
    name = Path(script).name
    sys.path.insert(0, str(Path(script).parent))
    loader = SourceFileLoader(name, script)
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(name, loader))
    sys.modules[name] = module  # dataclasses look their module up
    loader.exec_module(module)
    return module
