"""A training run: steps, a line of progress each, checkpoints, and how it ends where something fails."""

from __future__ import annotations

import math
import os
import socket
import sys
import time
import traceback
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import NoReturn, Optional

import torch
import torch.distributed as dist

from . import checkpoint
from .checkpoint import CheckpointError, Position
from .communication import Groups, barrier
from .config import read_details
from .data import open_tokens
from .emulate import EmulatedRank, WallClock, groups_of_stages, read_emulated, run_iteration
from .errors import PlanError, SettingsError
from .hugging_face import CONFIG, initial_from
from .initial import drawn
from .items import FileItems, ReadSamples, SyntheticItems
from .launch_plan import LaunchPlan, read_plan
from .recorder import Clock, HostClock, Recorder, StreamClock, TraceFile
from .run import Options, Run, StepResult
from .settings import USAGE, Settings
from .synthetic import Synthetic
from .timings import TimingsFile, spans_of_units
from .topology import place_of
from .watch import Watch

FAILED = 1
COLLECTIVE_TIMEOUT = timedelta(hours=1)  # a rank that is gone is noticed by the watch, long before
GIB = 2**30
LOWEST_RATE = 0.1  # of the highest learning rate, at the end of the cosine


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
    if plan.training.precision == "fp8":
        raise PlanError("the plan is for fp8, which this runtime does not have; --precision bf16 trains all the same")
    if plan.training.precision == "tf32":
        torch.backends.cuda.matmul.allow_tf32 = True
        return "fp32"
    return plan.training.precision


def check_precision(precision: str, device: torch.device) -> None:
    if precision == "fp16" and device.type == "cpu":
        raise SettingsError("fp16 needs a GPU: PyTorch has no such products on CPUs; --precision bf16 or fp32")


def device_of(settings: Settings, local_rank: int) -> torch.device:
    name = settings.device or ("cuda" if torch.cuda.is_available() else "cpu")
    if name == "cpu":
        return torch.device(name)
    count = torch.cuda.device_count()
    if count == 0 or (local_rank >= count and not settings.share_gpus):
        raise SettingsError(f"local rank {local_rank} has no GPU: this host shows {count}; start the plan's node scripts, "
                            "or give --share-gpus, or --device cpu")
    return torch.device(name, local_rank % count)


def backend_of(settings: Settings, device: torch.device) -> str:
    return "gloo" if device.type == "cpu" or settings.share_gpus else "nccl"


def grow_segments() -> None:
    """Lets the allocator grow what it has instead of leaving gaps between tensors of unlike sizes, unless the environment
    says otherwise: without, some 8 GiB of 80 were lost to gaps with samples of 65,536 tokens."""
    set_allocator = getattr(torch._C, "_accelerator_setAllocatorSettings", None)  # from PyTorch 2.9 on
    set_allocator = set_allocator or getattr(torch.cuda.memory, "_set_allocator_settings", None)  # from 2.1 on
    if set_allocator and not {"PYTORCH_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF"} & os.environ.keys():
        set_allocator("expandable_segments:True")


def environment(name: str) -> int:
    try:
        return int(os.environ[name])
    except (KeyError, ValueError) as reason:
        raise SettingsError(f"the variable {name} is not set to a number: start this with torchrun, or with the scripts "
                            "that tangram export wrote") from reason


def clock_of(device: torch.device) -> Clock:
    if device.type == "cuda":
        return StreamClock()
    return HostClock()


def source_of(settings: Settings, plan: LaunchPlan) -> ReadSamples:
    encoders, length = plan.model.encoders, plan.training.sequence_length
    unknown = sorted(settings.items.keys() - {encoder.name for encoder in encoders})
    if unknown:
        raise SettingsError(f"--items {unknown[0]}: the model has no such encoder")
    if settings.data is None:
        if settings.items:
            raise SettingsError("--items without --data, whose tokens say where items are")
        return ReadSamples(Synthetic(plan.model.vocabulary, settings.seed), SyntheticItems(encoders, length, settings.seed))
    if encoders and not settings.items:
        raise SettingsError(f"--data without --items {encoders[0].name}=FILE:TOKEN: {plan.model.name} has encoders")
    tokens = open_tokens(settings.data, plan.model.vocabulary, plan.training.batch, settings.seed)
    return ReadSamples(tokens, FileItems(encoders, tokens, length, settings.items))


def plan_to_train(settings: Settings) -> LaunchPlan:
    plan = read_plan(settings.plan)
    if plan.model.encoders:
        for name in ("weights", "timings"):
            if getattr(settings, name) is not None:
                raise SettingsError(f"--{name} is for text models, and {plan.model.name} has encoders")
    return plan if settings.weights is None else plan.with_details(read_details(Path(settings.weights) / CONFIG))


def memory_line(peaks: list[float], planned: list[int]) -> str:
    """Of the rank whose peak is the largest beside what the plan gives it; bytes, of all ranks."""
    rank = max(range(len(peaks)), key=lambda r: peaks[r] / planned[r] if planned[r] else 0.0)
    if not planned[rank]:
        return f"memory: at most {max(peaks) / GIB:.1f} GiB on a GPU"
    return (f"memory: at most {peaks[rank] / planned[rank]:.2f} of the plan's: rank {rank} had {peaks[rank] / GIB:.1f} GiB, "
            f"the plan says {planned[rank] / GIB:.1f}")


class Training:
    """Of one rank."""

    def __init__(self, settings: Settings, plan: LaunchPlan, rank: int, device: torch.device) -> None:
        self.settings = settings
        self.plan = plan
        self.rank = rank
        self._precision = precision_of(plan, settings)
        check_precision(self._precision, device)
        options = Options(self._precision, settings.learning_rate, settings.weight_decay, settings.clip,
                          device=device)
        self.source = source_of(settings, plan)
        watched = settings.trace is not None or settings.timings is not None
        self.recorder = Recorder(clock_of(device) if watched else None)
        initial = drawn(plan.model, settings.seed)
        if settings.weights:
            initial = initial_from(settings.weights, plan.model, settings.seed)
        self.run = Run(plan, rank, options, self.source, initial, self.recorder)
        self._trace = trace_of(settings, plan, rank)
        self._timings = None if settings.timings is None else TimingsFile(settings.timings, settings.plan, plan, rank)
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
        self._say(f"{self.plan.model.name} on {len(self.plan.ranks)} ranks, {self._precision}; "
                  f"the plan predicts {self.plan.predicted_iteration:.3g} s an iteration")
        while self.step < self.settings.steps:
            self._one_step()
            if self.settings.save and (self.step % self.settings.save_every == 0 or self.step == self.settings.steps):
                self._save()
        self._say_memory()
        if self._trace is not None:
            self._trace.write()

    def _say_memory(self) -> None:
        """Peaks are of what PyTorch's allocator handed out; all ranks tell theirs."""
        device = self.run.program.device
        if device.type != "cuda":
            return
        peaks = torch.zeros(len(self.plan.ranks), dtype=torch.float64, device=device)
        peaks[self.rank] = torch.cuda.max_memory_allocated(device)
        self.run.groups.world.all_reduce(peaks)
        planned = [place_of(self.plan, rank).part.peak_memory for rank in range(len(self.plan.ranks))]
        self._say(memory_line(peaks.tolist(), planned))

    def _one_step(self) -> None:
        self.source.iteration = self.step
        self.run.optimizer.set_learning_rate(learning_rate(self.settings, self.step))
        began = time.monotonic()
        result = self.run.step()
        self.step += 1
        spans = self.recorder.take()
        if self._trace is not None:
            self._trace.add(spans)
        if self._timings is not None:
            self._timings.add(self.step, spans)
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


def run_emulation(settings: Settings, process: Process) -> None:
    emulated = read_emulated(settings.plan)
    unknown = sorted(settings.slower.keys() - {times.gpu for times in emulated.times.values()})
    if unknown:
        raise SettingsError(f"--slower {unknown[0]}: the plan has no such GPU")
    plan = emulated.plan
    groups = Groups(process.rank, process.world, groups_of_stages(plan), COLLECTIVE_TIMEOUT)
    recorder = Recorder(HostClock() if settings.trace or settings.timings else None)
    program = EmulatedRank(emulated, process.rank, groups, WallClock(), recorder, settings.slowdown, settings.slower)
    trace = trace_of(settings, plan, process.rank)
    timings = None
    if settings.timings is not None:
        timings = TimingsFile(settings.timings, settings.plan, plan, process.rank, "tangram_torch --emulate")
    for step in range(settings.steps):
        seconds = run_iteration(program, groups) / settings.slowdown
        spans = recorder.take()
        if trace is not None:
            trace.add(spans)
        if timings is not None:
            timings.add(step + 1, spans_of_units(plan, process.rank, spans, settings.slowdown))
        if process.rank == 0:
            print(f"iteration {step + 1}: {seconds:.4f} s emulated, {plan.predicted_iteration:.4f} s simulated "
                  f"({100 * (seconds / plan.predicted_iteration - 1):+.1f} %)", flush=True)
    if trace is not None:
        trace.write()


def trace_of(settings: Settings, plan: LaunchPlan, rank: int) -> Optional[TraceFile]:
    if settings.trace is None:
        return None
    record = plan.ranks[rank]
    return TraceFile(settings.trace, rank, f"rank {rank}, stage {record.stage} on {record.host}")


@dataclass(frozen=True)
class Process:
    """What the launcher told this process."""

    rank: int
    world: int
    local_rank: int
    local_world: int


def process_of(plan: LaunchPlan) -> Process:
    process = Process(*(environment(name) for name in ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE")))
    if process.world != len(plan.ranks):
        raise SettingsError(f"the plan has {len(plan.ranks)} ranks, and {process.world} processes were started")
    return process


def connect(process: Process, device: torch.device, backend: str, patience: float) -> Optional[Watch]:
    """Joins the ranks; None where there is one alone."""
    if device.type == "cuda":
        torch.cuda.set_device(device)
        grow_segments()
    else:
        torch.set_num_threads(max(1, (os.cpu_count() or 1) // process.local_world))
    os.environ.setdefault("USE_LIBUV", "0")  # Debian's PyTorch is built without, and would ask for it all the same
    dist.init_process_group(backend, timeout=COLLECTIVE_TIMEOUT)
    if process.world == 1:
        return None
    asks_for_libuv = {"use_libuv": False} if "use_libuv" in (dist.TCPStore.__init__.__doc__ or "") else {}
    store = dist.TCPStore(os.environ["MASTER_ADDR"], environment("MASTER_PORT"), is_master=False,
                          wait_for_workers=False, **asks_for_libuv)
    return Watch(store, process.rank, process.world, patience)


def run_rank(settings: Settings) -> int:
    """One rank from its environment to the end of its run. The exit code; why it failed goes to stderr."""
    where = f"rank {os.environ.get('RANK', '?')} on {socket.gethostname()}"
    watch: Optional[Watch] = None
    try:
        plan = plan_to_train(settings)
        process = process_of(plan)
        device = device_of(settings, process.local_rank)
        watch = connect(process, device, backend_of(settings, device), settings.timeout)
        if settings.emulate:
            run_emulation(settings, process)
        else:
            Training(settings, plan, process.rank, device).train()
        if watch is not None:
            watch.stop()
        barrier()
        dist.destroy_process_group()
        return 0
    except Exception as failure:  # whatever it is, who started the run has to see which rank it was, and why
        expected = isinstance(failure, (PlanError, SettingsError, CheckpointError))
        first = f"{os.environ.get('RANK')}: {failure}" if watch is None else watch.report(str(failure))
        if first.startswith(f"{os.environ.get('RANK')}: "):
            print(f"{where}: {failure}" if expected else f"{where}:\n{traceback.format_exc()}", file=sys.stderr, flush=True)
        else:
            print(f"{where} ends: rank {first}", file=sys.stderr, flush=True)
        return USAGE if expected else FAILED


def run_and_exit(settings: Settings) -> NoReturn:
    code = run_rank(settings)
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)  # threads of the backend may wait for other ranks
