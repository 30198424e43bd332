#!/usr/bin/env python3
"""Experts in grouped kernels give what one after the other gives, in fp64, with a stand-in for the kernel.

    grouped_experts_test.py FOLDER_OF_TANGRAM_TORCH [NAME...]     exit 77 where no Python here has PyTorch
"""

import sys

sys.dont_write_bytecode = True
sys.path.insert(0, sys.argv[1])
from with_torch import need_torch

need_torch()
import torch
from cases import Cases
from tangram_torch import grouped_experts
from tangram_torch.details import Details
from tangram_torch.layers import feed_forward
from tangram_torch.weight_gradients import Weights

HIDDEN, INNER = 16, 24
test = Cases()


def stand_in(x, matrices, offs):
    """What the kernel computes, a product for each group."""
    begins = [0, *offs.tolist()[:-1]]
    return torch.cat([x[begin:end] @ matrix for begin, end, matrix in zip(begins, offs.tolist(), matrices)])


def weights_of(experts, gated):
    names = ["up", "down"] + (["gate"] if gated else [])
    shapes = {"up": (INNER, HIDDEN), "gate": (INNER, HIDDEN), "down": (HIDDEN, INNER)}
    return {f"experts.{e}.{name}": torch.randn(shapes[name], dtype=torch.float64).requires_grad_()
            for e in range(experts) for name in names}


def one_by_one(tensors, prefixes, rows, counts):
    shares = rows.split(counts.tolist())
    return torch.cat([feed_forward(Details(), Weights(tensors), prefix, share) for prefix, share in zip(prefixes, shares)])


def gradients(out, tensors, rows):
    leaves = [rows, *tensors.values()]
    zeros = [torch.zeros_like(leaf) for leaf in leaves]
    found = torch.autograd.grad(out.square().sum(), leaves, allow_unused=True)
    return [zero if gradient is None else gradient for gradient, zero in zip(found, zeros)]


def compare(counts, gated):
    torch.manual_seed(len(counts))
    tensors = weights_of(len(counts), gated)
    prefixes = [f"experts.{e}." for e in range(len(counts))]
    counted = torch.tensor(counts)
    rows = torch.randn(sum(counts), HIDDEN, dtype=torch.float64).requires_grad_()
    grouped = grouped_experts.feed_forwards(Details(), Weights(tensors), prefixes, rows, counted)
    expected = one_by_one(tensors, prefixes, rows, counted)
    for ours, theirs in zip([grouped, *gradients(grouped, tensors, rows)],
                            [expected, *gradients(expected, tensors, rows)]):
        test.check(torch.allclose(ours, theirs, rtol=1e-12, atol=1e-12), f"{(ours - theirs).abs().max()} off")


@test
def experts_that_all_have_rows():
    for gated in (True, False):
        compare([3, 5, 2, 7], gated)


@test
def experts_without_rows():
    for gated in (True, False):
        compare([0, 4, 0, 0, 9, 0], gated)


@test
def no_groups_on_a_processor():
    rows = torch.zeros(4, HIDDEN, dtype=torch.bfloat16)
    test.check(not grouped_experts.can_group(Weights({}), ["experts.0.", "experts.1."], rows), "grouped")


if __name__ == "__main__":
    grouped_experts.grouped_product = lambda: stand_in
    sys.exit(test.run(sys.argv[2:]))
