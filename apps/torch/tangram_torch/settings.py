"""The command line of a run."""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from typing import Any, Optional

USAGE = 64  # exit code where an input is wrong
PRECISIONS = ("bf16", "fp16", "fp32", "fp64")

DESCRIPTION = """Trains the model of a launch plan, one process a rank. The scripts that `tangram export --to torch` wrote
start it; by hand: torchrun --nproc_per_node N -m tangram_torch plan.json [OPTION...]"""


@dataclass(frozen=True)
class Settings:
    plan: str
    steps: int
    data: Optional[str]
    items: dict[str, tuple[str, int]]
    weights: Optional[str]
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
    trace: Optional[str]
    emulate: bool
    slowdown: float
    slower: dict[str, float]
    timeout: float
    device: Optional[str]
    share_gpus: bool


def parser() -> argparse.ArgumentParser:
    options = argparse.ArgumentParser(prog="tangram_torch", description=DESCRIPTION,
                                      formatter_class=argparse.RawDescriptionHelpFormatter)
    add = options.add_argument
    add("plan", metavar="PLAN", help="launch plan (tangram.launch_plan/1)")
    add("--steps", type=_positive, default=100, metavar="N", help="iterations to train up to, those of a checkpoint "
        "that is gone on with among them (100)")
    add("--data", metavar="FILE", help="tokens: PREFIX of Megatron-LM's PREFIX.bin and PREFIX.idx, or a .npy file; "
        "without, tokens are made up")
    add("--items", type=_items, action=_Added, default={}, metavar="ENCODER=FILE:TOKEN", help="of a multimodal model, with "
        "--data: a .npy file of what the encoder reads, (items, tokens of an item, values of a token), whose places are "
        "the runs of a token in --data; without both, items are made up")
    add("--weights", metavar="FOLDER", help="of a Hugging Face checkpoint (safetensors): initial weights, and what its "
        "config.json says of the layers")
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
    add("--trace", metavar="FOLDER", help="write what each rank does when, for Perfetto (ui.perfetto.dev)")
    add("--emulate", action="store_true", help="do not compute: wait as long as the plan predicts for each pass, and hold "
        "messages back as its links would, so that any plan runs on one machine")
    add("--slowdown", type=_factor, default=1.0, metavar="X", help="times of an emulation are X times as long (1); what "
        "is printed is not")
    add("--slower", type=_slower, action=_Added, default={}, metavar="GPU=X", help="of an emulation: this GPU type "
        "computes X times as long as the plan predicts")
    add("--timeout", type=float, default=45.0, metavar="S",
        help="seconds of silence after which a rank is taken for lost, and the run ends (45)")
    add("--device", choices=("cpu", "cuda"), help="default: cuda where there is a GPU")
    add("--share-gpus", action="store_true", help="ranks share this machine's GPUs, and send through host memory: to try a "
        "plan where there are fewer GPUs than ranks")
    return options


def read_settings(arguments: Optional[list[str]] = None) -> Settings:
    """Ends the process with a message where an argument is wrong."""
    return Settings(**vars(parser().parse_args(arguments)))


def _factor(text: str) -> float:
    value = float(text)
    if not 0 < value < float("inf"):
        raise argparse.ArgumentTypeError(f"{text} is not a positive number")
    return value


def _slower(text: str) -> tuple[str, float]:
    gpu, separator, factor = text.partition("=")
    if not gpu or not separator:
        raise argparse.ArgumentTypeError(f"{text} is not GPU=X")
    return gpu, _factor(factor)


def _items(text: str) -> tuple[str, tuple[str, int]]:
    encoder, separator, rest = text.partition("=")
    path, colon, token = rest.rpartition(":")
    if not (encoder and separator and path and colon and token.isdigit()):
        raise argparse.ArgumentTypeError(f"{text} is not ENCODER=FILE:TOKEN")
    return encoder, (path, int(token))


class _Added(argparse.Action):
    def __call__(self, parser: argparse.ArgumentParser, namespace: argparse.Namespace, values: Any,
                 option_string: Optional[str] = None) -> None:
        setattr(namespace, self.dest, {**getattr(namespace, self.dest), values[0]: values[1]})


def _positive(text: str) -> int:
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"{text} is less than 1")
    return value
