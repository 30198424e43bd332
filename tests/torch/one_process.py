"""Three steps of a plan beside three steps of one process: losses, norms, gradients and weights."""

import os

import torch

import reference
from tangram_torch import nf4
from tangram_torch.initial import drawn
from tangram_torch.launch_plan import NF4_DOUBLE
from tangram_torch.run import Options, Run
from tangram_torch.samples import Placed
from tangram_torch.weights import ADAPTER_IN, ADAPTER_OUT, ROUTER_CORRECTION, weights_of_model, whole

STEPS = 2  # the second step has moments of the first
TOLERANCE = 1e-9
INITIAL = {"seed": 7, "deviation": 0.3, "vectors": 0.2}
DEVICE = torch.device(os.environ.get("TANGRAM_TEST_DEVICE", "cpu"))  # cuda: all ranks share the machine's first GPU
OPTIONS = Options(precision="fp64", learning_rate=1e-2, timeout=60, device=DEVICE)


class Tokens:
    """Any tokens, other ones in each iteration."""

    def __init__(self, vocabulary, batch):
        self.vocabulary, self.batch, self.iteration = vocabulary, batch, 0

    def tokens(self, samples, length):
        rows = [torch.randint(self.vocabulary, (length,), generator=self._drawn(sample, 0)) for sample in samples]
        return torch.stack(rows) if rows else torch.empty((0, length), dtype=torch.int64)

    def _drawn(self, sample, what):
        return torch.Generator().manual_seed(1000 * what + self.iteration * self.batch + sample)


class Samples(Tokens):
    """And, of multimodal models, any items: none in some samples."""

    def __init__(self, plan):
        super().__init__(plan.model.vocabulary, plan.training.batch)
        self.encoders, self.length = plan.model.encoders, plan.training.sequence_length

    def items(self, encoder, samples):
        return [[Placed(number, first) for number, (name, first) in enumerate(self._places(sample))
                 if name == encoder.name] for sample in samples]

    def patches(self, encoder, samples):
        width = encoder.patch_width - encoder.learned_positions or encoder.hidden
        made = [torch.randn((encoder.tokens_in, width), generator=self._drawn(sample, 1 + item.number), dtype=torch.float64)
                for sample in samples for item in self.items(encoder, range(sample, sample + 1))[0]]
        return torch.stack(made) if made else torch.empty((0, encoder.tokens_in, width))

    def of_batch(self):
        """As reference.loss_of reads them."""
        return [(sample, encoder, item.first, values) for encoder in self.encoders for sample in range(self.batch)
                for item, values in zip(self.items(encoder, range(sample, sample + 1))[0],
                                        self.patches(encoder, range(sample, sample + 1)))]

    def _places(self, sample):
        """(encoder, first place): encoders by turns, beside each other or with a token between them."""
        seed = self.iteration * self.batch + sample
        places, first = [], seed % 2
        for turn in range(seed * 7 % 4):
            encoder = self.encoders[(turn + seed) % len(self.encoders)]
            if first + encoder.tokens_out <= self.length:
                places.append((encoder.name, first))
            first += encoder.tokens_out + (seed % 3 == 0)
        return places


def whole_weights(plan):
    """By name, as one process has them."""
    value = drawn(plan.model, **INITIAL)
    return {w.name: held(w, value(whole(w))).to(torch.float64) for w in weights_of_model(plan.model)
            if not w.name.endswith(ROUTER_CORRECTION)}


def held(weight, value):
    """What is left of a matrix that is held in 4 bits."""
    if not weight.is_quantized:
        return value
    double = weight.quantization == NF4_DOUBLE
    return nf4.dequantized(nf4.quantized(value, double), nf4.Layout(*weight.shape, double), torch.float64)


def is_frozen(plan, name):
    """By the module that a weight belongs to; adapters are trained."""
    if name.endswith((ADAPTER_IN, ADAPTER_OUT)):
        return False
    for encoder in plan.model.encoders:
        if name.startswith(f"encoders.{encoder.name}.connector."):
            return not encoder.connector.trained
        if name.startswith((f"encoders.{encoder.name}.", *(f"blocks.{i}." for i in encoder.blocks))):
            return not encoder.trained
    return not plan.model.trained


def write_expected(plan, folder, steps=STEPS):
    write_expected_of([plan] * steps, folder)


def write_expected_of(plans, folder):
    """Of each step, with the plan that says what it trains: loss, norm, gradients and weights."""
    torch.set_num_threads(1)
    plan = plans[0]
    weights = whole_weights(plan)
    adam = torch.optim.AdamW(
        [{"params": [w for w in weights.values() if w.dim() > 1], "weight_decay": OPTIONS.weight_decay},
         {"params": [w for w in weights.values() if w.dim() == 1], "weight_decay": 0.0}],
        lr=OPTIONS.learning_rate, betas=(0.9, 0.95), eps=1e-8)
    source = Samples(plan)
    corrections = reference.corrections_of(plan.model)
    written = []
    for source.iteration, plan in enumerate(plans):
        trained = [w.requires_grad_(not is_frozen(plan, name)) for name, w in weights.items()]
        trained = [w for w in trained if w.requires_grad]
        batch = source.tokens(range(plan.training.batch), plan.training.sequence_length + 1)
        loss = reference.loss_of(plan.model, weights, batch, corrections, source.of_batch())
        adam.zero_grad(set_to_none=True)  # what has no gradient is not stepped
        loss.backward()
        for w in trained:
            if w.grad is None:  # of an expert without tokens
                w.grad = torch.zeros_like(w)
        gradients = {name: w.grad.clone() for name, w in weights.items() if w.requires_grad}
        norm = float(torch.sqrt(sum(g.pow(2).sum() for g in gradients.values())))
        for w in trained:
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
        self.gradients = {flat: flat.gradient.clone() for flat in self.program.flats if flat.trained}


def start(plan, rank):
    return Recording(plan, rank, OPTIONS, Samples(plan), drawn(plan.model, **INITIAL))


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
                if slot.held.weight.is_quantized:
                    continue  # bytes, of which the loss and the gradients tell
                own = tuple(slice(r.start, r.stop) for r in slot.held.ranges)
                start_of = flat.own.start + first - slot.first
                parts = [("weight ", flat.master, weights)]
                if slot.held.name in gradients:
                    parts.append(("gradient of ", run.gradients[flat], gradients))
                for what, got, whole in parts:
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
