"""Three steps of a plan beside three steps of one process: losses, norms, gradients and weights."""

import os

import torch

import reference
from tangram_torch.initial import drawn
from tangram_torch.run import Options, Run
from tangram_torch.weights import Held, units_of

STEPS = 3
TOLERANCE = 1e-9
INITIAL = {"seed": 7, "deviation": 0.3, "vectors": 0.2}
DEVICE = torch.device(os.environ.get("TANGRAM_TEST_DEVICE", "cpu"))  # cuda: all ranks share the machine's first GPU
OPTIONS = Options(precision="fp64", learning_rate=1e-2, timeout=60, device=DEVICE)


class Tokens:
    """Any tokens, other ones in each iteration."""

    def __init__(self, vocabulary, batch):
        self.vocabulary, self.batch, self.iteration = vocabulary, batch, 0

    def tokens(self, samples, length):
        rows = [torch.randint(self.vocabulary, (length,),
                              generator=torch.Generator().manual_seed(self.iteration * self.batch + sample))
                for sample in samples]
        return torch.stack(rows) if rows else torch.empty((0, length), dtype=torch.int64)


def whole_weights(plan):
    """By name, as one process has them."""
    value = drawn(plan.model, **INITIAL)
    everything = {w.name: w for rank in range(len(plan.ranks)) for unit in units_of(plan, rank) for w in unit.weights}
    return {name: value(Held(w, tuple(range(n) for n in w.shape), (0,), False)).to(torch.float64)
            for name, w in everything.items()}


def write_expected(plan, folder, steps=STEPS):
    """Of each step: loss, norm, gradients and weights."""
    torch.set_num_threads(1)
    weights = {name: w.requires_grad_() for name, w in whole_weights(plan).items()}
    adam = torch.optim.AdamW(
        [{"params": [w for w in weights.values() if w.dim() > 1], "weight_decay": OPTIONS.weight_decay},
         {"params": [w for w in weights.values() if w.dim() == 1], "weight_decay": 0.0}],
        lr=OPTIONS.learning_rate, betas=(0.9, 0.95), eps=1e-8)
    source = Tokens(plan.model.vocabulary, plan.training.batch)
    corrections = reference.corrections_of(plan.model)
    written = []
    for source.iteration in range(steps):
        batch = source.tokens(range(plan.training.batch), plan.training.sequence_length + 1)
        loss = reference.loss_of(plan.model, weights, batch, corrections)
        adam.zero_grad()
        loss.backward()
        for w in weights.values():
            if w.grad is None:  # of an expert without tokens
                w.grad = torch.zeros_like(w)
        gradients = {name: w.grad.clone() for name, w in weights.items()}
        norm = float(torch.sqrt(sum(g.pow(2).sum() for g in gradients.values())))
        for w in weights.values():
            w.grad.mul_(min(1.0, OPTIONS.clip / norm))
        adam.step()
        for block, correction in corrections.items():
            if plan.model.blocks[block].feed_forward.router_bias:
                correction.update()
        written.append((float(loss), norm, gradients, {name: w.detach().clone() for name, w in weights.items()}))
    torch.save(written, os.path.join(folder, "expected"))


class Recording(Run):
    """Keeps the gradients of a step."""

    def before_step(self):
        self.gradients = {flat: flat.gradient.clone() for flat in self.program.flats}


def start(plan, rank):
    return Recording(plan, rank, OPTIONS, Tokens(plan.model.vocabulary, plan.training.batch),
                     drawn(plan.model, **INITIAL))


def differences(plan, rank, folder, steps=STEPS):
    """What a rank has that one process has not: lines, none if all is equal."""
    run = start(plan, rank)
    found = steps_beside(run, range(steps), folder)
    return found + _in_flight(plan, rank, run.program)


def steps_beside(run, steps, folder):
    """Runs these steps and compares each with what write_expected left."""
    found = []

    def compare(what, got, right):
        got = got.cpu()
        error = float((got - right).abs().max()) / max(1e-3, float(right.abs().max())) if right.numel() else 0.0
        if not error <= TOLERANCE:
            found.append(f"step {step}, rank {run.groups.rank}: {what} differs by {error:.2g}")

    expected = torch.load(os.path.join(folder, "expected"))
    for step in steps:
        loss, norm, gradients, weights = expected[step]
        run.program.source.iteration = step
        run.step()
        compare("loss", *(torch.tensor(x, dtype=torch.float64) for x in (run.last.loss, loss)))
        compare("norm", *(torch.tensor(x, dtype=torch.float64) for x in (run.last.norm, norm)))
        for flat in run.program.flats:
            for slot, first, last in flat.own_pieces():
                own = tuple(slice(r.start, r.stop) for r in slot.held.ranges)
                start_of = flat.own.start + first - slot.first
                for what, got, whole in (("gradient of ", run.gradients[flat], gradients),
                                         ("weight ", flat.master, weights)):
                    right = whole[slot.held.name][own].flatten()[start_of:start_of + last - first]
                    compare(what + slot.held.name, got[first:last], right)
    return found


def _in_flight(plan, rank, program):
    stage = plan.stages[plan.ranks[rank].stage]
    passes = plan.pipelines[stage.pipeline].microbatches * len(stage.chunks)
    planned, most = min(stage.warmup + 1, passes), min(stage.warmup + 1 + stage.put_off, passes)
    found = []
    if program.most_in_flight != planned:
        found.append(f"rank {rank} held {program.most_in_flight} passes at once, not {planned}")
    if program.most_held > most:
        found.append(f"rank {rank} held {program.most_held} microbatches with those put off, more than {most}")
    return found
