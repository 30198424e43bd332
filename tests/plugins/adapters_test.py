#!/usr/bin/env python3
"""What the adapters of other planners work out by themselves, without those planners: the profiles that Aceso reads, and what
is said where a planner is not installed.

    adapters_test.py BINARY
"""
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

BINARY = os.path.abspath(sys.argv[1])
ADAPTERS = Path(__file__).resolve().parents[2] / "scripts" / "plugin_sdk" / "adapters"
sys.path.insert(0, str(ADAPTERS))
sys.dont_write_bytecode = True
import aceso  # noqa: E402

TOKENS, HIDDEN, HEADS, VOCABULARY, COUNT = 2048, 1024, 16, 32000, 3
PARAMETERS = 12 * HIDDEN ** 2
FLOPS = 24 * TOKENS * HIDDEN ** 2 + 4 * TOKENS ** 2 * HIDDEN  # Narayanan et al., arXiv 2104.04473, one layer forward
RATE, BANDWIDTH = 1e14, 1e12


def query(**more):
    """A layer of GPT's: feed-forward four times as wide, no gate, scores of all pairs."""
    kind = {"name": "dense", "hidden": HIDDEN, "heads": HEADS, "kv_heads": HEADS, "head_dim": HIDDEN // HEADS,
            "ffn_hidden": 4 * HIDDEN, "gated": False, "causal": False}
    counted = {"blocks": [{"name": "dense", "parameters": PARAMETERS, "expert_parameters": 0,
                           "forward_flops_per_sample": FLOPS}],
               "embedding_parameters": 7, "head_parameters": 9, "head_forward_flops_per_sample": 11}
    model = {"file": {"architecture": {"vocabulary": VOCABULARY, "types": [kind]},
                      "training": {"sequence_length": TOKENS, "precision": "bf16", "dropout": True}}, "counted": counted}
    rows = [{"operation": "all_reduce", "ranks": 2, "stride": 1, "bytes": size << 20, "seconds": 1e-5 + 1e-5 * size}
            for size in (1, 2, 4)]
    values = {"blocks": [("dense", COUNT)], "model": model, "embedding": True, "head": False, "gpus": 4, "microbatch": 6,
              "allow": {"tp", "dp"}, "shape": {"collectives": rows},
              "gpu": {"peak_flops": {"bf16": RATE}, "gemm_efficiency": 1.0, "memory_bandwidth_bytes_per_s": BANDWIDTH}}
    question = aceso.tangram.Query.__new__(aceso.tangram.Query)  # of what the adapter looks at, not of a whole message
    vars(question).update(values, **more)
    return question


def column(layers, machine, name, samples=1, tp=1):
    index = aceso.COLUMNS.index(name)
    return sum(machine.row(operator, samples, tp)[index] for operator in layers.layer)


def check_profiles():
    layers = aceso.Layers(query())
    machine = aceso.Machine(query())
    # Korthikanti et al., arXiv 2205.05198: sbh (10 + 24 / t) bytes are kept of a layer whose scores are not.
    for samples, tp in ((1, 1), (2, 1), (1, 2), (4, 8)):
        kept = column(layers, machine, "activations", samples, tp) if tp <= 2 else sum(
            (operator.kept / tp + operator.kept_whole) * samples for operator in layers.layer) / aceso.MIB
        assert abs(kept * aceso.MIB - TOKENS * HIDDEN * samples * (10 + 24 / tp)) < 1, (samples, tp, kept)
    # Two bytes a parameter.
    assert abs(column(layers, machine, "weights") * aceso.MIB - 2 * PARAMETERS) < 1
    # Products take FLOPS / RATE; norms move 4 sh bytes, dropouts 6 sh, GeLU 2 * 2 * 4 sh: 36 sh in all.
    forward = FLOPS / RATE + 36 * TOKENS * HIDDEN / BANDWIDTH
    assert abs(column(layers, machine, "forward-compute") - forward * 1e6) < 1e-6 * forward * 1e6
    assert abs(column(layers, machine, "backward-compute") - 2 * forward * 1e6) < 1e-6 * forward * 1e6
    # Two all-reduces of 2 sh = 4 MiB forward, 5e-5 s each; a half of what is divided.
    divided = FLOPS / RATE + 16 * TOKENS * HIDDEN / BANDWIDTH
    halved = divided / 2 + 20 * TOKENS * HIDDEN / BANDWIDTH + 2 * 5e-5
    assert abs(column(layers, machine, "forward-compute", 1, 2) - halved * 1e6) < 1e-6 * halved * 1e6
    assert abs(machine.all_reduce_s(3 << 20, 2) - 4e-5) < 1e-12  # between 2 and 4 MiB
    assert abs(machine.all_reduce_s(8 << 20, 2) - 9e-5) < 1e-12  # beyond, along the last line
    print("ok: a layer's profile adds up to what is published of a layer")


def check_slices():
    layers = aceso.Layers(query())
    assert len(layers.names()) == 1 + 13 * COUNT and layers.names()[0] == aceso.EMBEDDING
    assert len(aceso.Layers(query(embedding=False, head=True)).names()) == 13 * COUNT + 2
    flags = [0] * len(layers.names())
    assert layers.recomputed(flags) == 0
    flags[0] = flags[1] = flags[13] = flags[14] = 1  # the embedding, the first layer twice, the second once
    assert layers.recomputed(flags) == 2
    assert aceso.samples_of_a_replica(query()) == [6, 3]  # four replicas would get a sample and a half
    assert aceso.first_degrees(query(), layers) == (4, 1)
    assert aceso.first_degrees(query(allow={"dp"}, gpus=2), layers) == (1, 2)
    for impossible in (query(allow={"dp"}), query(blocks=[("dense", 1), ("dense", 1)])):
        try:
            aceso.first_degrees(impossible, aceso.Layers(impossible))
        except aceso.tangram.Unsupported:
            continue
        raise AssertionError(impossible)
    print("ok: operators of a slice, recomputed layers, degrees to begin with")


def check_missing():
    with tempfile.TemporaryDirectory() as empty:
        for variables, why in (({}, "ACESO_HOME is not set"), ({"ACESO_HOME": empty}, "has no search/aceso_search.py")):
            environment = {name: value for name, value in os.environ.items() if not name.endswith("_HOME")}
            done = subprocess.run([BINARY, "parallelizers", "list", "--json"], capture_output=True, text=True, check=True,
                                  env={**environment, "HOME": empty, **variables})
            listed = {entry["name"]: entry for entry in json.loads(done.stdout)["parallelizers"]}
            assert listed["aceso"]["state"] == "not available" and why in listed["aceso"]["says"], listed
            assert "git clone" in listed["aceso"]["to_do"], listed
            assert "is not a package" not in listed["galvatron"]["says"], listed  # its adapter has the package's name
    print("ok: list says what is missing and what to do")


if __name__ == "__main__":
    check_profiles()
    check_slices()
    check_missing()
