"""What a path of communication does wrong on purpose, each with a plan in which somebody must notice."""

from unittest import mock

import tangram_torch.boundary
import tangram_torch.communication
import tangram_torch.experts
import tangram_torch.flat
import tangram_torch.gradient_sums
import tangram_torch.handover
import tangram_torch.optimizer
import tangram_torch.parallel
import tangram_torch.pipeline
import tangram_torch.unit
import tangram_torch.weight_gradients

OFF = 1 + 1e-6


def _scaled(owner, name):
    """A function whose result is a little too large."""
    right = getattr(owner, name)

    def wrong(*arguments, **options):
        result = right(*arguments, **options)
        return (result[0] * OFF, *result[1:]) if isinstance(result, tuple) else result * OFF

    return mock.patch.object(owner, name, staticmethod(wrong))


def _sends(backward, positions=None):
    """`positions`: of the activations that are sent wrong; None: all."""
    right = tangram_torch.boundary.Boundary.send

    def wrong(self, activation, ends):
        is_wrong = self._backward is backward and positions in (None, self._parallel.positions)
        right(self, activation * OFF if is_wrong else activation, ends)

    return mock.patch.object(tangram_torch.boundary.Boundary, "send", wrong)


def _skipped(owner, name):
    return mock.patch.object(owner, name, lambda *_, **__: None)


def _without_group(owner, name, attribute):
    """A method whose group does not exist for it."""
    right = getattr(owner, name)

    def wrong(self, *arguments):
        with mock.patch.object(getattr(self, attribute), "ranks", getattr(self, attribute).ranks[:1]):
            return right(self, *arguments)

    return mock.patch.object(owner, name, wrong)


def _stale(owner, name):
    """Gathers nothing: the rank goes on with its own shard and zeros."""
    right = getattr(owner, name)

    def wrong(self, out, shard):
        right(self, out, shard)
        if self.size > 1:
            out.view(self.size, -1)[1 - min(self.index, 1)] = 0

    return mock.patch.object(owner, name, wrong)


def _router_load():
    right = tangram_torch.experts.Router.correct
    return mock.patch.object(tangram_torch.experts.Router, "correct", lambda self, load: right(self, -load))


def _without_beside():
    right = tangram_torch.flat.FlatWeights.take

    def wrong(self):
        right(self)
        return []

    return mock.patch.object(tangram_torch.flat.FlatWeights, "take", wrong)


def _too_early():
    right = tangram_torch.gradient_sums.GradientSums.begin
    return mock.patch.object(tangram_torch.gradient_sums.GradientSums, "begin",
                             lambda self, expected: right(self, expected[1:]))


def _products(change):
    """Works out other products than those that were put off."""
    right = tangram_torch.weight_gradients.PutOff.work_out

    def wrong(self):
        self.products = change(self.products)
        right(self)

    return mock.patch.object(tangram_torch.weight_gradients.PutOff, "work_out", wrong)


def _hands_over(backward):
    right = tangram_torch.handover.Handover.run

    def wrong(self, shard, out):
        right(self, shard * OFF if shard is not None and self._backward is backward else shard, out)

    return mock.patch.object(tangram_torch.handover.Handover, "run", wrong)


def _swapped_items():
    """Items of a sample change their places."""
    right = tangram_torch.unit.put_items

    def wrong(p, out, x, made, placed):
        return right(p, out, x, made, [items[::-1] for items in placed])

    return mock.patch.object(tangram_torch.unit, "put_items", wrong)


def _all_tokens_count():
    return mock.patch.object(tangram_torch.unit.Ends, "_counted", lambda self, x: None)


def planted():
    """(what is wrong, the plan in which it is, how)."""
    p, flat = tangram_torch.parallel, tangram_torch.flat.FlatWeights
    tensor, without = "tensor parallel, replicated key-value heads", "tensor parallel without sequence parallel"
    yield "activations between stages", "fan-in from dp 2 x tp 1 to tp 4", _sends(False)
    yield "gradients between stages", "fan-out from tp 2 to dp 3", _sends(True)
    yield "positions gathered over tp", tensor, _scaled(p._Gather, "forward")
    yield "their gradients", tensor, _scaled(p._Gather, "backward")
    yield "partial sums scattered over tp", tensor, _scaled(p._Scatter, "forward")
    yield "their gradients", tensor, _scaled(p._Scatter, "backward")
    yield "partial sums over tp", without, _scaled(p._Sum, "forward")
    yield "gradients summed over tp", without, _scaled(p._Copy, "backward")
    yield "rows taken for experts", "experts under tp without sequence parallel", _scaled(p._Take, "backward")
    yield "rows given back by experts", "experts under tp without sequence parallel", _scaled(p._Collect, "forward")
    yield "keys and values over cp", "context parallel", _scaled(p._Gather, "forward")
    yield "positions exchanged for heads", "heads exchanged for positions", _scaled(p._ToHeads, "forward")
    yield "their gradients", "heads exchanged for positions", _scaled(p._ToHeads, "backward")
    yield "heads exchanged for positions", "heads exchanged for positions, windows", _scaled(p._ToPositions, "backward")
    yield "rows between experts", "experts over ep 4", _scaled(p._Exchange, "forward")
    yield "their gradients", "experts over ep 4", _scaled(p._Exchange, "backward")
    yield "partial gradients over tp", tensor, _skipped(flat, "_sum_parts")
    for zero in range(3):
        yield f"gradients over copies, ZeRO {zero}", f"ZeRO {zero} over unequal samples", (
            _skipped(flat, "reduce") if zero < 2 else _without_group(flat, "accumulate", "copies"))
    for zero in range(1, 4):
        yield f"gradients over groups, ZeRO {zero}", f"ZeRO {zero} inside groups", _without_group(flat, "reduce", "replicas")
    for zero in range(2):
        yield f"gradients summed before the last microbatch, ZeRO {zero}", f"ZeRO {zero} over unequal samples", _too_early()
    yield "weights over copies, ZeRO 1", "ZeRO 1 over unequal samples", _stale(
        tangram_torch.communication.Group, "all_gather_into")
    yield "weights over copies, ZeRO 3", "ZeRO 3 over unequal samples", _stale(
        tangram_torch.communication.Group, "all_gather_into")
    for name in ("mixed stage", "two unequal pipelines", "tied table over two stages, unlike tp"):
        yield "sums over parts", name, _skipped(tangram_torch.pipeline.RankProgram, "_sum_over_parts")
    for zero_bubble in ("zero bubble, four stages", "zero bubble, ZeRO 0 to 3 over two copies"):
        yield "a weight gradient that is dropped", zero_bubble, _products(lambda products: products[1:])
        yield "a weight gradient that is added twice", zero_bubble, _products(lambda products: products + products[:1])
    yield "weight gradients that nobody works out", "zero bubble, four stages", _skipped(
        tangram_torch.pipeline.RankProgram, "_run_weight_gradients")
    yield "what waits beside weight gradients", "zero bubble, ZeRO 0 to 3 over two copies", _without_beside()
    stages, frozen = "an encoder cut over stages, microbatches without items", "a frozen encoder under ZeRO 3"
    yield "activations of items between stages", stages, _sends(False, 5)
    yield "gradients of items between stages", stages, _sends(True, 5)
    yield "what comes out of an encoder between stages", frozen, _sends(False, 2)
    yield "items at their places", stages, _swapped_items()
    yield "tokens of items that are predicted", stages, _all_tokens_count()
    lanes = "lanes of tp 2 for each microbatch, two pipelines"
    yield "what lanes hand over", "a colocated encoder in three phases, unequal stages", _hands_over(False)
    yield "gradients that lanes get back", lanes, _hands_over(True)
    yield "gradients over lanes", lanes, _skipped(flat, "reduce")
    yield "a frozen weight over copies", frozen, _stale(tangram_torch.communication.Group, "all_gather_into")
    yield "the norm of gradients", "mixed stage", _skipped_norm()
    yield "the load of experts", "latent attention, router correction", _router_load()


def _skipped_norm():
    right = tangram_torch.optimizer.Optimizer.norm
    return mock.patch.object(tangram_torch.optimizer.Optimizer, "norm", lambda self: right(self) * OFF)
