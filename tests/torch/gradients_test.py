#!/usr/bin/env python3
"""Gradients of one layer: products that add to sums by themselves, rotary positions turned back, keys that queries share,
each beside what autograd makes of the formula; and what is said of memory.

    gradients_test.py FOLDER_OF_TANGRAM_TORCH [NAME...]     exit 77 where no Python here has PyTorch
"""

import sys
from unittest import mock

sys.dont_write_bytecode = True
sys.path.insert(0, sys.argv[1])
from with_torch import need_torch

need_torch()
import torch
import torch.nn.functional as F
from cases import Cases
from tangram_torch import weight_gradients
from tangram_torch.details import Rotary
from tangram_torch.layers import read_by, rotate, waves
from tangram_torch.train import GIB, memory_line
from tangram_torch.weight_gradients import Later, Weights, products_add

test = Cases()


def close(a, b):
    return bool(((a - b).abs() <= 1e-12 * (1 + b.abs())).all())


def layer():
    torch.manual_seed(3)
    return (torch.randn(2, 5, 6, dtype=torch.float64), torch.randn(4, 6, dtype=torch.float64), torch.randn(4, dtype=torch.float64),
            torch.randn(2, 5, 4, dtype=torch.float64))


def by_autograd():
    x, weight, bias, gradient = layer()
    x, weight, bias = (t.requires_grad_() for t in (x, weight, bias))
    F.linear(x, weight, bias).backward(gradient)
    return x.grad, weight.grad, bias.grad


def with_sum(later, times):
    """x's gradient, the sum over so many microbatches, the bias's gradient, and what is left at the weight."""
    x, weight, bias, gradient = layer()
    x, weight, bias = (t.requires_grad_() for t in (x, weight, bias))
    total = torch.ones(4, 6, dtype=torch.float64)
    w = Weights({"up": weight, "up_bias": bias}, {"up": lambda: total}, later)
    for _ in range(times):
        put_off = None if later is None else later.collect()
        x.grad = bias.grad = None
        w.linear(x, "up", "up_bias").backward(gradient)
        if put_off is not None:
            put_off.work_out()
    return x.grad, total, bias.grad, weight.grad


@test
def products_add_to_the_sum_at_once_or_later():
    of_x, of_weight, of_bias = by_autograd()
    for later in (None, Later()):
        for times in (1, 3):
            x, total, bias, left = with_sum(later, times)
            test.check(close(x, of_x) and close(bias, of_bias), "gradients of input and bias")
            test.check(close(total, 1 + times * of_weight), f"the sum over {times}")
            test.check(left is None, "nothing is left at the weight")


@test
def narrow_products_add_to_wide_sums_on_gpus_alone():
    cpu = torch.device("cpu")
    test.check(products_add(torch.float64, torch.float64, cpu), "fp64")
    test.check(not products_add(torch.bfloat16, torch.float32, cpu), "bf16 to fp32")


@test
def without_training_the_product_is_that_of_pytorch():
    x, weight, _, _ = layer()
    with torch.no_grad(), mock.patch.object(weight_gradients, "_Linear", None):
        test.check(close(Weights({"up": weight}, {"up": lambda: weight}).linear(x, "up"), F.linear(x, weight)), "product")


@test
def rotary_positions_turn_as_autograd_of_the_formula():
    for fraction in (1.0, 0.5):
        rotary = Rotary(fraction=fraction)
        torch.manual_seed(4)
        x = torch.randn(2, 7, 3, 8, dtype=torch.float64, requires_grad=True)
        gradient = torch.randn(2, 7, 3, 8, dtype=torch.float64)
        half = int(8 * fraction) // 2
        cosine, sine = waves(rotary, half, range(2, 9), x.dtype, x.device)
        first, second = x[..., :half], x[..., half:2 * half]
        formula = torch.cat((first * cosine - second * sine, second * cosine + first * sine, x[..., 2 * half:]), dim=-1)
        wanted, = torch.autograd.grad(formula, x, gradient)
        out = rotate(rotary, x, range(2, 9))
        got, = torch.autograd.grad(out, x, gradient)
        test.check(close(out, formula) and close(got, wanted), f"{fraction} of a head")


@test
def keys_that_queries_share_are_as_by_index():
    torch.manual_seed(5)
    for read in ([0, 1], [0, 0, 0, 1, 1, 1], [1, 0, 1], [0, 0, 1]):
        x = torch.randn(2, 3, 2, 4, dtype=torch.float64, requires_grad=True)
        gradient = torch.randn(2, 3, len(read), 4, dtype=torch.float64)
        by_index = x.index_select(2, torch.tensor(read))
        out = read_by(read, x)
        wanted, = torch.autograd.grad(by_index, x, gradient)
        got, = torch.autograd.grad(out, x, gradient)
        test.check(close(out, by_index) and close(got, wanted), f"heads {read}")


@test
def memory_is_of_the_rank_that_has_the_most_beside_its_plan():
    line = memory_line([10.0 * GIB, 6.0 * GIB], [10 * GIB, 5 * GIB])
    test.check(line == "memory: at most 1.20 of the plan's: rank 1 had 6.0 GiB, the plan says 5.0", line)
    test.check(memory_line([3.0 * GIB], [0]) == "memory: at most 3.0 GiB on a GPU", "nothing planned")


if __name__ == "__main__":
    sys.exit(test.run(sys.argv[2:]))
