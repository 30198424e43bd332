#!/usr/bin/env python3
"""More is never worse: generated fleets and models, planned as they are and with one thing more: a node like one of the
fleet, a node of another type, a GPU with its share of the network in the only node of its type, a faster network for all
nodes of a type. Where both
searches ended, the best closed form of the larger fleet is no longer, and its simulated plan at most a little (what is
fastest by simulation is sought, not proven). So it is where nothing is fixed of the model any more, neither its tp nor a
GPU type. And with nodes renamed, and nodes and keys in another order, nothing changes, nor where all types are named.
Every fourth model has adapters trained beside it.
Fleets have at most 16 GPUs: beyond, some of what small parts may do is not offered, which the space names.

    more_is_never_worse_test.py BINARY [COUNT [SEED]]      COUNT, or TANGRAM_METAMORPHIC: 40 pairs if not given
"""
import copy
import json
import os
import random
import subprocess
import sys
import tempfile
from pathlib import Path

COUNT = 40
BY_LUCK = 0.002  # of simulated times
TYPES = ["A100-80GB-SXM", "A100-40GB-PCIe", "V100-16GB-PCIe", "T4", "L4", "RTX-4090", "H100-80GB-SXM", "A10G"]
BRIDGED = {"A100-40GB-PCIe"}  # a bridge joins two of them; three in a node have none, so that a third one takes it away
NO_PLAN = 3
MOST_GPUS = 16


def random_node(rng, name):
    return {"name": name, "gpus": [{"type": rng.choice(TYPES), "count": rng.choice([1, 2, 3, 4, 4, 6, 8])}],
            "network": {"bandwidth_gbit_s": rng.choice([1, 10, 25, 100, 400]), "latency_us": rng.choice([2, 10, 50])}}


def gpus_of(fleet):
    return sum(node["gpus"][0]["count"] for node in fleet["nodes"])


def random_fleet(rng):
    while gpus_of(fleet := any_fleet(rng)) > MOST_GPUS:
        pass
    return fleet


def any_fleet(rng):
    nodes = []
    for kind in range(rng.choice([1, 1, 2, 2, 3])):
        node = random_node(rng, f"k{kind}")
        count = rng.choice([1, 1, 2, 2, 3])
        for i in range(count):
            nodes.append({**copy.deepcopy(node), "name": f"k{kind}-{i}"})
    return {"schema": "tangram.cluster/1", "name": "generated", "nodes": nodes}


def random_model(rng):
    hidden = rng.choice([512, 1024, 2048])
    return {"schema": "tangram.model/1", "name": "generated",
            "architecture": {"vocabulary": rng.choice([1000, 32000, 128000]), "hidden": hidden,
                             "layers": rng.choice([4, 7, 12, 16]), "heads": rng.choice([8, 12 if hidden % 12 == 0 else 16]),
                             "ffn_hidden": 4 * hidden, "tied_embeddings": rng.random() < 0.4},
            "training": {"sequence_length": rng.choice([512, 1000, 2048, 4096]),
                         "global_batch_samples": rng.choice([1, 3, 8, 16, 30, 64, 127, 128])}}


def a_node_more(fleet, rng):
    node = copy.deepcopy(rng.choice(fleet["nodes"]))
    node["name"] += "-more"
    fleet["nodes"].append(node)


def a_type_more(fleet, rng):
    present = {node["gpus"][0]["type"] for node in fleet["nodes"]}
    node = random_node(rng, "other")
    node["gpus"][0]["type"] = rng.choice([name for name in TYPES if name not in present])
    fleet["nodes"].append(node)


def a_gpu_more(fleet, rng):
    types = [node["gpus"][0]["type"] for node in fleet["nodes"]]
    alone = [node for node in fleet["nodes"] if types.count(node["gpus"][0]["type"]) == 1]
    alone = [node for node in alone if node["gpus"][0]["type"] not in BRIDGED or node["gpus"][0]["count"] != 2]
    if not alone:
        return False
    node = rng.choice(alone)
    count = node["gpus"][0]["count"]
    node["gpus"][0]["count"] += 1
    # Parts of a node count on their share of its network, whether the rest is used or not.
    node["network"]["bandwidth_gbit_s"] *= (count + 1) / count
    return True


def a_faster_network(fleet, rng):
    kind = rng.choice(fleet["nodes"])["gpus"][0]["type"]
    for node in fleet["nodes"]:
        if node["gpus"][0]["type"] == kind:
            node["network"]["bandwidth_gbit_s"] *= 2


CHANGES = {"a node more": a_node_more, "a type more": a_type_more, "a GPU more": a_gpu_more,
           "a faster network": a_faster_network}


def renamed(fleet, rng):
    names = [f"z{i}" for i in range(len(fleet["nodes"]))]
    rng.shuffle(names)
    nodes = [{key: node[key] for key in reversed(list(node))} | {"name": name} for node, name in zip(fleet["nodes"], names)]
    rng.shuffle(nodes)
    return {**fleet, "nodes": nodes}


def with_constraint(model, **fixed):
    return {**model, "training": {**model["training"], "constraints": {"language": fixed}}}


class Planner:
    def __init__(self, binary, folder):
        self.binary = binary
        self.folder = Path(folder)

    def plan(self, fleet, model):
        """(closed form, simulated, proven), or None where there is no plan."""
        cluster, job = self.folder / "cluster.json", self.folder / "model.json"
        cluster.write_text(json.dumps(fleet))
        job.write_text(json.dumps(model))
        done = subprocess.run([self.binary, "plan", cluster, job, "-q", "--json", "--pipelines", "equal"], capture_output=True,
                              text=True, env={**os.environ, "TANGRAM_CACHE": "off"}, check=False)
        if done.returncode == NO_PLAN:
            return None
        assert done.returncode in (0, 6), (done.returncode, done.stderr, cluster.read_text(), job.read_text())
        found = json.loads(done.stdout)
        provenance = found["provenance"]
        # The plan that simulation chose may be slower by closed form: the bound is the best of the space.
        return provenance["search_bound_s"], found["predicted"]["iteration_s"], "not finished" not in provenance.get("note", "")


def is_worse(less, more):
    if less is None:
        return ""
    if more is None:
        return "no plan any more"
    if less[2] and more[2] and more[0] > less[0] * (1 + 1e-9):
        return f"closed form {less[0]:.6g} -> {more[0]:.6g} s, {more[0] / less[0] - 1:+.2%}"
    if more[1] > less[1] * (1 + BY_LUCK):
        return f"simulated {less[1]:.6g} -> {more[1]:.6g} s, {more[1] / less[1] - 1:+.2%}"
    return ""


def judge(planner, rng, adapters):
    """What is wrong, and how often something was compared."""
    fleet, model = random_fleet(rng), random_model(rng)
    if adapters:
        model["training"]["lora"] = {"r": 8}
    before = planner.plan(fleet, model)
    wrong, compared = [], 0
    for name, change in CHANGES.items():
        larger = copy.deepcopy(fleet)
        if change(larger, rng) is False or gpus_of(larger) > MOST_GPUS:
            continue
        compared += 1
        if problem := is_worse(before, planner.plan(larger, model)):
            wrong.append((name, problem, fleet, larger, model))
    types = sorted({node["gpus"][0]["type"] for node in fleet["nodes"]})
    same = {"names and order": (renamed(fleet, rng), model), "all types named": (fleet, with_constraint(model, gpus=types))}
    for name, (other, job) in same.items():
        if (after := planner.plan(other, job)) != before:
            wrong.append((name, f"{before} -> {after}", fleet, other, job))
    fixed = with_constraint(model, tp=rng.choice([1, 2, 4]), gpus=rng.choice(types))
    if problem := is_worse(planner.plan(fleet, fixed), before):
        wrong.append(("nothing fixed", problem, fleet, fleet, fixed))
    return wrong, compared + len(same) + 1


def main():
    binary = sys.argv[1]
    count = int(sys.argv[2]) if len(sys.argv) > 2 else int(os.environ.get("TANGRAM_METAMORPHIC", COUNT))
    first = int(sys.argv[3]) if len(sys.argv) > 3 else 1
    compared = failures = 0
    with tempfile.TemporaryDirectory() as folder:
        planner = Planner(binary, folder)
        for seed in range(first, first + count):
            wrong, looked_at = judge(planner, random.Random(seed), seed % 4 == 0)
            compared += looked_at
            for name, problem, fleet, larger, model in wrong:
                failures += 1
                print(f"seed {seed}: {name}: {problem}\n  {json.dumps(fleet['nodes'])}\n  {json.dumps(larger['nodes'])}\n"
                      f"  {json.dumps(model)}")
    print(f"{count} fleets and models, {compared} comparisons, {failures} worse")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
