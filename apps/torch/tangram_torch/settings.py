"""The command line of a run."""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from typing import Optional

PRECISIONS = ("bf16", "fp16", "fp32", "fp64")

DESCRIPTION = """Trains the model of a launch plan, one process a rank. The scripts that `tangram export --to torch` wrote
start it; by hand: torchrun --nproc-per-node N -m tangram_torch plan.json [OPTION...]"""


@dataclass(frozen=True)
class Settings:
    plan: str
    steps: int
    data: Optional[str]
    precision: Optional[str]  # None: that of the plan
    seed: int
    learning_rate: float
    warmup_steps: int
    decay_steps: int
    weight_decay: float
    clip: float
    save: Optional[str]
    save_every: int
    load: Optional[str]
    timings: Optional[str]
    timeout: float
    device: Optional[str]


def parser() -> argparse.ArgumentParser:
    options = argparse.ArgumentParser(prog="tangram_torch", description=DESCRIPTION,
                                      formatter_class=argparse.RawDescriptionHelpFormatter)
    add = options.add_argument
    add("plan", metavar="PLAN", help="launch plan (tangram.launch_plan/1)")
    add("--steps", type=_positive, default=100, metavar="N", help="iterations to train up to, those of a checkpoint "
        "that is gone on with among them (100)")
    add("--data", metavar="FILE", help="tokens: PREFIX of Megatron-LM's PREFIX.bin and PREFIX.idx, or a .npy file; "
        "without, tokens are made up")
    add("--precision", choices=PRECISIONS, help="of weights and activations (that of the plan)")
    add("--seed", type=int, default=1, metavar="N", help="of initial weights and of the order of data (1)")
    add("--learning-rate", type=float, default=3e-4, metavar="X", help="highest one (3e-4)")
    add("--warmup-steps", type=int, default=0, metavar="N", help="in which the learning rate rises to it (0)")
    add("--decay-steps", type=int, default=0, metavar="N",
        help="after which a cosine has lowered it to a tenth; 0: it stays (0)")
    add("--weight-decay", type=float, default=0.1, metavar="X", help="of matrices (0.1)")
    add("--clip", type=float, default=1.0, metavar="X", help="highest norm of gradients; 0: any (1)")
    add("--save", metavar="FOLDER", help="write checkpoints there, and go on with the last one that is there")
    add("--save-every", type=_positive, default=100, metavar="N", help="iterations between checkpoints (100)")
    add("--load", metavar="FOLDER", help="start with the last checkpoint there, of this plan or of another one")
    add("--timings", metavar="FOLDER", help="write what each pass took, for tangram calibrate")
    add("--timeout", type=float, default=45.0, metavar="S",
        help="seconds of silence after which a rank is taken for lost, and the run ends (45)")
    add("--device", choices=("cpu", "cuda"), help="default: cuda where there is a GPU")
    return options


def read_settings(arguments: Optional[list[str]] = None) -> Settings:
    """Ends the process with a message where an argument is wrong."""
    return Settings(**vars(parser().parse_args(arguments)))


def _positive(text: str) -> int:
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"{text} is less than 1")
    return value
