"""A run of a plan on one rank: its program, its optimizer, and the steps."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta

import torch
import torch.distributed as dist

from .communication import Groups
from .errors import PlanError
from .holders import buckets_of, first_part, shared_pieces
from .initial import Initial, load
from .launch_plan import LaunchPlan
from .optimizer import AdamSettings, Optimizer
from .pipeline import RankProgram
from .recorder import OFF, Recorder
from .samples import Source
from .staged import StagedGroups
from .topology import Place, Ranks
from .unit import Precision
from .weights import colocated_units_of, held_by, units_of

PRECISIONS = {
    "fp64": Precision(torch.float64, torch.float64),
    "fp32": Precision(torch.float32, torch.float32),
    "bf16": Precision(torch.bfloat16, torch.float32),
    "fp16": Precision(torch.float16, torch.float32),
}


@dataclass(frozen=True)
class Options:
    precision: str = "bf16"  # one of PRECISIONS
    learning_rate: float = 3e-4
    weight_decay: float = 0.1
    clip: float = 1.0
    timeout: float = 3600.0  # seconds after which a collective gives up
    device: torch.device = field(default_factory=lambda: torch.device("cpu"))


@dataclass(frozen=True)
class StepResult:
    loss: float  # mean over the tokens of the batch
    norm: float  # of all gradients, before they are clipped
    skipped: bool  # a gradient was not finite, and nothing was stepped


class LossScale:
    """Of fp16: halved where a gradient was not finite, doubled after so many steps where none was."""

    GROWTH = 2000

    def __init__(self, enabled: bool) -> None:
        self.value = 65536.0 if enabled else 1.0
        self.good_steps = 0
        self._enabled = enabled

    def restore(self, value: float, good_steps: int) -> None:
        if self._enabled:
            self.value, self.good_steps = value, good_steps

    def update(self, finite: bool) -> None:
        if not self._enabled:
            return
        self.good_steps = self.good_steps + 1 if finite else 0
        if not finite:
            self.value = max(1.0, self.value / 2)
        elif self.good_steps == self.GROWTH:
            self.value, self.good_steps = self.value * 2, 0


def groups_wanted(plan: LaunchPlan) -> list[Ranks]:
    """Of all ranks: every group that one of them calls a collective in, but those of weights of several parts."""
    wanted: set[Ranks] = set()
    units = [(part, units_of(plan, part.first_rank)) for part in plan.parts]
    if plan.colocated is not None:
        units += [(plan.colocated.parts[encoder.name], colocated_units_of(plan, encoder)) for encoder in plan.model.encoders]
    for part, of_part in units:
        weights = [weight for unit in of_part for weight in unit.weights]
        for place in (Place(rank, part) for rank in part.ranks):
            wanted |= {place.tensor, place.context, place.experts, place.expert_tensor}
            wanted |= {ranks for routed in (False, True) for zero in (0, 1) for ranks in place.sharing(routed, zero)}
            held = (held_by(place, weight) for weight in weights)
            wanted |= {h.sharers for h in held if h is not None and h.sums}
    return sorted(wanted)


class Run:
    """torch.distributed has been initialized with as many ranks as the plan has."""

    def __init__(self, plan: LaunchPlan, rank: int, options: Options, source: Source, initial: Initial,
                 recorder: Recorder = OFF) -> None:
        if plan.training.optimizer != "adam":
            raise PlanError(f"the optimizer {plan.training.optimizer} is not one that this runtime has: adam")
        buckets = buckets_of(shared_pieces(plan))
        wanted = groups_wanted(plan) + [ranks for ranks, _ in buckets]
        made = StagedGroups if options.device.type == "cuda" and dist.get_backend() == "gloo" else Groups
        self.groups: Groups = made(rank, len(plan.ranks), wanted, timedelta(seconds=options.timeout))
        self.program = RankProgram(plan, rank, self.groups, PRECISIONS[options.precision], options.device, source,
                                   buckets, recorder)
        load(self.program.flats, self.program.routers, initial)
        settings = AdamSettings(options.learning_rate, weight_decay=options.weight_decay, clip=options.clip)
        trained = [flat for flat in self.program.flats if flat.trained]
        self.optimizer = Optimizer(trained, options.device, self.groups.world, self.program.place.part.first_rank,
                                   first_part(plan), settings)
        self.scale = LossScale(options.precision == "fp16")
        self.last = StepResult(0.0, 0.0, False)

    def step(self) -> StepResult:
        """One iteration."""
        self.program.loss_scale = self.scale.value
        loss = torch.tensor([self.program.run()], dtype=torch.float64, device=self.program.device)
        self.groups.world.all_reduce(loss)
        norm = self.optimizer.norm()
        finite = norm < float("inf")
        if finite:
            self.before_step()
            with self.program.recorder.span("optimizer", "step"):
                self.optimizer.step(norm, self.scale.value)
            self._correct_routers()
        else:
            self.optimizer.forget()
        self.last = StepResult(float(loss), norm / self.scale.value, not finite)
        self.scale.update(finite)
        return self.last

    def before_step(self) -> None:
        """For those who look at gradients, which are `scale` times too large."""

    def _correct_routers(self) -> None:
        """By the loads of all ranks; every rank takes part in the one sum."""
        plan = self.program.plan
        experts = max((block.feed_forward.experts for block in plan.model.blocks), default=0)
        routers = self.program.routers
        if experts == 0:
            return
        loads = torch.zeros((len(plan.model.blocks), experts), device=self.program.device)
        for block, router in routers.items():
            loads[block, :router.shape.experts] = router.load
        self.groups.world.all_reduce(loads)
        for block, router in routers.items():
            if plan.model.trains(block):
                router.correct(loads[block, :router.shape.experts])
