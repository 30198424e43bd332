#!/usr/bin/env python3
"""A tiny Llama learns a text on unlike stages as one process does: text_test.py FOLDER_OF_TANGRAM_TORCH

The text is a licence that every Debian has, byte by byte.
"""

import json
import os
import re
import struct
import subprocess
import sys
import tempfile
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, sys.argv[1])
from with_torch import need_torch

need_torch()
import plans

TEXT = Path("/usr/share/common-licenses/GPL-3")
STEPS = 15
LLAMA = plans.model([plans.block_type(hidden=64, heads=4, kv_heads=2, head_dim=16, ffn=128)],
                    [{"type": "dense", "count": 4}], vocabulary=256)
LLAMA["hidden"] = 64
ALONE = plans.make(LLAMA, [(16, 4, [(plans.one_chunk(0, 4), [plans.part(4)])])], length=32)
# Two pipelines: fan-out from tp 2 to a mixed stage, and ZeRO 3 over three samples.
MIXED = plans.make(LLAMA, [
    (10, 4, [(plans.one_chunk(0, 3), [plans.part(4, tp=2, recompute="full")]),
             (plans.one_chunk(3, 4), [plans.part(3), plans.part(1)])]),
    (6, 3, [(plans.one_chunk(0, 4), [plans.part(3, dp=2, zero=3)])])], length=32)


def call(*words, **environment):
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True, timeout=600,
                          env=dict(os.environ, **environment))
    assert done.returncode == 0, (words, done.stdout, done.stderr)
    return done.stdout


def write_tokens(path):
    """A .npy file of bytes, https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html"""
    text = TEXT.read_bytes()
    header = repr({"descr": "|u1", "fortran_order": False, "shape": (len(text),)}).encode()
    header += b" " * (-(10 + len(header) + 1) % 64) + b"\n"
    path.write_bytes(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + text)


def curve(plan, tokens, runtime):
    said = call(sys.executable, "-m", "tangram_torch.launch", plan, "--data", tokens, "--steps", STEPS, "--precision",
                "fp64", "--learning-rate", "3e-3", "--warmup-steps", "5", PYTHONPATH=runtime)
    return [float(loss) for loss in re.findall(r"^step \d+  loss ([\d.]+)", said, re.M)]


def main(runtime):
    with tempfile.TemporaryDirectory() as folder:
        tokens = Path(folder, "text.npy")
        write_tokens(tokens)
        curves = []
        for record in (ALONE, MIXED):
            plan = Path(folder, "plan.json")
            plan.write_text(json.dumps(record))
            curves.append(curve(plan, tokens, runtime))
    reference, learned = curves
    assert len(learned) == STEPS and learned == reference, (learned, reference)
    assert learned[-1] < 0.85 * learned[0], learned
    print(f"ok: loss {learned[0]} to {learned[-1]} in {STEPS} steps on {len(MIXED['ranks'])} ranks, as on one")


main(sys.argv[1])
