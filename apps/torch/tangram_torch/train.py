"""A training run: steps, a line of progress each, checkpoints, and how it ends where something fails."""

from __future__ import annotations

import math
import os
import socket
import sys
import time
import traceback
from collections.abc import Callable
from datetime import timedelta
from typing import Optional

import torch
import torch.distributed as dist

from . import checkpoint
from .checkpoint import CheckpointError, Position
from .initial import drawn
from .launch_plan import LaunchPlan, PlanError, read_plan
from .run import Options, Run, StepResult
from .settings import Settings, read_settings
from .synthetic import Synthetic

USAGE, FAILED = 64, 1
LOWEST_RATE = 0.1  # of the highest learning rate, at the end of the cosine


class SettingsError(Exception):
    """The run cannot begin: str() says what to change."""


def learning_rate(settings: Settings, step: int) -> float:
    """Of the step-th iteration, from 0: a linear rise, then the highest, or a cosine down to a tenth of it."""
    if step < settings.warmup_steps:
        return settings.learning_rate * (step + 1) / settings.warmup_steps
    if settings.decay_steps == 0:
        return settings.learning_rate
    share = min(1.0, (step - settings.warmup_steps) / max(1, settings.decay_steps - settings.warmup_steps))
    return settings.learning_rate * (LOWEST_RATE + (1 - LOWEST_RATE) * 0.5 * (1 + math.cos(math.pi * share)))


def precision_of(plan: LaunchPlan, settings: Settings) -> str:
    if settings.precision is not None:
        return settings.precision
    return {"fp8": "bf16", "tf32": "fp32"}.get(plan.training.precision, plan.training.precision)


def device_of(settings: Settings, local_rank: int) -> torch.device:
    name = settings.device or ("cuda" if torch.cuda.is_available() else "cpu")
    if name == "cuda" and local_rank >= torch.cuda.device_count():
        raise SettingsError(f"local rank {local_rank} has no GPU: this host shows {torch.cuda.device_count()}; start the "
                            "plan's node scripts, or give --device cpu")
    return torch.device(name, local_rank) if name == "cuda" else torch.device(name)


def environment(name: str) -> int:
    try:
        return int(os.environ[name])
    except (KeyError, ValueError) as reason:
        raise SettingsError(f"the variable {name} is not set to a number: start this with torchrun, or with the scripts "
                            "that tangram export wrote") from reason


class Training:
    """Of one rank."""

    def __init__(self, settings: Settings, plan: LaunchPlan, rank: int, device: torch.device) -> None:
        self.settings = settings
        self.plan = plan
        self.rank = rank
        options = Options(precision_of(plan, settings), settings.learning_rate, settings.weight_decay, settings.clip,
                          settings.timeout, device)
        self.source = Synthetic(plan.model.vocabulary, settings.seed)
        self.run = Run(plan, rank, options, self.source, drawn(plan.model, settings.seed))
        self.step = self._start()

    def _start(self) -> int:
        """From the newest checkpoint of --save, else of --load, else from nothing. All ranks find the same one, as they
        look for it before one of them writes."""
        for folder in (self.settings.save, self.settings.load):
            found = checkpoint.latest(folder) if folder else None
            if found is None:
                continue
            position = checkpoint.load(self.run, found)
            self.run.scale.restore(position.loss_scale, position.good_steps)
            self._say(f"goes on from {found}, {position.step} iterations done")
            return position.step
        if self.settings.load:
            raise CheckpointError(f"{self.settings.load} has no complete checkpoint")
        return 0

    def train(self) -> None:
        self._say(f"{self.plan.model.name} on {len(self.plan.ranks)} ranks, {precision_of(self.plan, self.settings)}; "
                  f"the plan predicts {self.plan.predicted_iteration:.3g} s an iteration")
        saved = self.step
        while self.step < self.settings.steps:
            self._one_step()
            if self.settings.save and (self.step % self.settings.save_every == 0 or self.step == self.settings.steps):
                self._save()
                saved = self.step
        if self.settings.save and saved != self.step:
            self._save()

    def _one_step(self) -> None:
        self.source.iteration = self.step
        self.run.optimizer.set_learning_rate(learning_rate(self.settings, self.step))
        began = time.monotonic()
        result = self.run.step()
        self.step += 1
        self._say(self._progress(result, time.monotonic() - began))

    def _progress(self, result: StepResult, seconds: float) -> str:
        tokens = self.plan.training.batch * self.plan.training.sequence_length
        text = (f"step {self.step}  loss {result.loss:.4f}  norm {result.norm:.3f}  {seconds:.3f} s  "
                f"{tokens / seconds:,.0f} tokens/s (predicted {tokens / self.plan.predicted_iteration:,.0f})")
        return text + ("  skipped: a gradient is not finite" if result.skipped else "")

    def _save(self) -> None:
        assert self.settings.save is not None
        scale = self.run.scale
        checkpoint.save(self.run, self.settings.save, Position(self.step, scale.value, scale.good_steps))

    def _say(self, text: str) -> None:
        if self.rank == 0:
            print(text, flush=True)


def start(settings: Settings) -> None:
    """One rank from its environment to the end of its run."""
    plan = read_plan(settings.plan)
    rank, world = environment("RANK"), environment("WORLD_SIZE")
    if world != len(plan.ranks):
        raise SettingsError(f"the plan has {len(plan.ranks)} ranks, and {world} processes were started")
    device = device_of(settings, environment("LOCAL_RANK"))
    if device.type == "cuda":
        torch.cuda.set_device(device)
        os.environ.setdefault("NCCL_ASYNC_ERROR_HANDLING", "1")  # a rank that waits in vain ends; newer name below
        os.environ.setdefault("TORCH_NCCL_ASYNC_ERROR_HANDLING", "1")
    else:
        torch.set_num_threads(max(1, (os.cpu_count() or 1) // environment("LOCAL_WORLD_SIZE")))
    dist.init_process_group("nccl" if device.type == "cuda" else "gloo", timeout=timedelta(seconds=settings.timeout))
    Training(settings, plan, rank, device).train()
    dist.barrier()
    dist.destroy_process_group()


def ended_by(action: Callable[[], None]) -> int:
    """The exit code of a rank; why it failed goes to stderr. The launcher ends the other ranks of the host, and those
    of other hosts end as this one no longer answers."""
    where = f"rank {os.environ.get('RANK', '?')} on {socket.gethostname()}"
    reason: Optional[BaseException] = None
    try:
        action()
        return 0
    except (PlanError, SettingsError, CheckpointError) as wrong:
        print(f"{where}: {wrong}", file=sys.stderr, flush=True)
        return USAGE
    except Exception as failure:  # whatever it is, who started the run has to see which rank it was
        reason = failure
    traceback.print_exception(type(reason), reason, reason.__traceback__)
    print(f"{where} failed: {reason}", file=sys.stderr, flush=True)
    return FAILED


def main(arguments: Optional[list[str]] = None) -> int:
    settings = read_settings(arguments)
    code = ended_by(lambda: start(settings))
    if code != 0:
        sys.stderr.flush()
        os._exit(code)  # threads of the backend may wait for other ranks
    return 0
