#!/usr/bin/env python3
"""Matrices in 4 bits against values that are rounded one by one:

    nf4_test.py FOLDER_OF_TANGRAM_TORCH [NAME...]

Exit 77 where no Python here has PyTorch.
"""

import sys

sys.dont_write_bytecode = True
sys.path.insert(0, sys.argv[1])
from with_torch import need_torch

need_torch()
from unittest import mock

import torch
from cases import Cases
from tangram_torch import nf4
from tangram_torch.weight_gradients import Weights

test = Cases()
SHAPES = ((1, 1), (3, 5), (16, 64), (7, 65), (100, 200), (300, 1024))


def drawn(shape):
    return torch.randn(shape, generator=torch.Generator().manual_seed(shape[0] * 1000 + shape[1]))


def after(matrix, double, dtype=torch.float32):
    rows, columns = matrix.shape
    return nf4.dequantized(nf4.quantized(matrix, double), nf4.Layout(rows, columns, double), dtype)


@test
def values_are_the_nearest_levels():
    for shape in SHAPES[:4]:
        matrix = drawn(shape)
        rounded = after(matrix, False)
        for row, got in zip(matrix.tolist(), rounded.tolist()):
            for first in range(0, len(row), nf4.BLOCK):
                block = row[first:first + nf4.BLOCK]
                scale = max(abs(value) for value in block)
                right = [scale * min(nf4.LEVELS, key=lambda level: abs(level - value / scale)) for value in block]
                far = max(abs(a - b) for a, b in zip(right, got[first:first + nf4.BLOCK]))
                test.check(far < 1e-6, f"{shape}: {far} from the nearest level")


@test
def matrices_take_as_many_bits_as_the_planner_counts():
    for double, bits in ((False, 4.5), (True, 4 + 8 / 64 + 32 / (64 * 256))):
        size = nf4.Layout(4096, 4096, double).bytes
        test.equal(nf4.quantized(drawn((64, 4096)), double).numel(), nf4.Layout(64, 4096, double).bytes, "bytes")
        test.check(abs(8 * size / 4096 ** 2 / bits - 1) < 0.001, f"{8 * size / 4096 ** 2} bits, not {bits}")


@test
def many_blocks_are_widened_some_at_a_time():
    matrix = drawn((300, 1024))
    whole = after(matrix, True)
    with mock.patch.object(nf4, "AT_ONCE", 7):
        test.check(torch.equal(after(matrix, True), whole), "seven at a time differ")


@test
def what_was_rounded_stays():
    for shape in SHAPES:
        for double in (False, True):
            once = after(drawn(shape), double)
            test.check((after(once, double) - once).abs().max().item() < 0.01, f"{shape}, double {double}")
            error = (once - drawn(shape)).pow(2).mean().sqrt().item()
            test.check(error < 0.12, f"{shape}, double {double}: off by {error} of a standard deviation")


@test
def zeros_stay_zeros():
    for double in (False, True):
        test.equal(after(torch.zeros(5, 70), double).abs().max().item(), 0.0, f"double {double}")


@test
def whole_blocks_do_not_depend_on_how_ranks_split_a_matrix():
    matrix = drawn((300, 1024))
    whole = after(matrix, False)
    by_rows = torch.cat([after(piece, False) for piece in matrix.chunk(4, 0)])
    by_columns = torch.cat([after(piece, False) for piece in matrix.chunk(4, 1)], 1)
    test.check(torch.equal(whole, by_rows) and torch.equal(whole, by_columns), "pieces differ")


@test
def gradients_pass_a_frozen_matrix():
    matrix, bias = drawn((7, 65)), drawn((7, 1))[:, 0]
    held = nf4.Quantized(nf4.quantized(matrix, True), nf4.Layout(7, 65, True))
    weights = Weights({"w": held, "b": bias})
    x = drawn((4, 65)).double().requires_grad_()
    weights.linear(x, "w").square().sum().backward()
    plain = x.detach().clone().requires_grad_()
    (plain @ after(matrix, True, torch.float64).t()).square().sum().backward()
    test.check(torch.allclose(x.grad, plain.grad, rtol=1e-12), "gradients differ")
    test.equal(weights.linear(x.float(), "w", "b").shape, (4, 7), "with a bias")


sys.exit(test.run(sys.argv[2:]))
