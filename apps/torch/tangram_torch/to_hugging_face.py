"""A checkpoint of a run as a folder that transformers loads:

    python3 -m tangram_torch.to_hugging_face PLAN CHECKPOINTS CONFIG FOLDER [--dtype bf16|fp16|fp32]

CHECKPOINTS is what --save was given, and PLAN any plan of that model. CONFIG is the config.json of the model; FOLDER
gets a copy of it, and the weights. Of a model with low-rank adapters it gets these alone, as PEFT loads them.
"""

from __future__ import annotations

import argparse
import sys
from typing import Optional

import torch

from . import checkpoint
from .checkpoint import CheckpointError
from .config import read_details
from .errors import PlanError
from .hugging_face import export_to
from .launch_plan import read_plan
from .peft import export_adapters
from .settings import USAGE

DTYPES = {"bf16": torch.bfloat16, "fp16": torch.float16, "fp32": torch.float32}


def main(arguments: Optional[list[str]] = None) -> int:
    options = argparse.ArgumentParser(prog="to_hugging_face", description=__doc__,
                                      formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("plan", "checkpoints", "config", "folder"):
        options.add_argument(name, metavar=name.upper())
    options.add_argument("--dtype", choices=sorted(DTYPES), default="bf16", help="of the weights (bf16)")
    given = options.parse_args(arguments)
    try:
        found = checkpoint.latest(given.checkpoints)
        if found is None:
            raise CheckpointError(f"{given.checkpoints} has no complete checkpoint")
        model = read_plan(given.plan).with_details(read_details(given.config)).model
        export = export_to if model.adapters is None else export_adapters
        export(given.folder, model, given.config, checkpoint.slices_of(found), DTYPES[given.dtype])
    except (PlanError, CheckpointError) as wrong:
        print(wrong, file=sys.stderr)
        return USAGE
    print(f"{given.folder}: the weights of {found}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
