#!/usr/bin/env python3
"""Asks a user's own Galvatron: its search engine, unchanged, plans one stage (pp = 1) of a slice on a shape.

Galvatron plans from profiles. They are written for each question from what the question says: layer times from the
model's FLOPs at the rate that the GPU sustains, memory from parameters and from the activations of Korthikanti et al.
(arXiv 2205.05198, equation 4, without the scores that fused attention never stores), collectives as the host gives them.
What it returns is a strategy; the host costs it with its own model, measured profiles included.

What has to be guarded, because Galvatron would not say so:
  - degrees are powers of two: other shapes are never asked;
  - a batch that dp does not divide is rounded down and then looks fast: such strategies are taken out of its list;
  - it does not know how many stages follow: with pp = 1 it counts the activations of one microbatch, so that those of k in
    flight are k times the profile's; it is asked for growing k until the memory is full;
  - strategies may differ from layer to layer, a stage of the host's has one: a mixed answer is asked for again with the
    strategy that most layers have, with and without recompute;
  - above 20 GB it keeps a fifth of the memory back, which the host's usable memory already leaves out.
"""
import contextlib
import json
import os
import pathlib
import sys
from collections import Counter

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import tangram_plugin as tangram  # noqa: E402

MIB = 1 << 20
CACHE_FROM_MIB = 20 * 1024  # above it Galvatron keeps CACHE_SHARE for PyTorch's allocator
CACHE_SHARE = 0.2
STATE_BYTES = 16  # of mixed-precision Adam per parameter, as Galvatron counts model states
NAME = "slice"
engine_class = arguments_class = None


def load_galvatron():
    global engine_class, arguments_class
    here = pathlib.Path(__file__).resolve().parent  # this file has the name of the package
    sys.path[:] = [place for place in sys.path if pathlib.Path(place).resolve() != here]
    home = os.environ.get("GALVATRON_HOME")
    if home:
        sys.path.insert(0, home)
    try:
        from galvatron.core.search_engine.args_schema import GalvatronSearchArgs
        from galvatron.core.search_engine.search_engine import GalvatronSearchEngine
        import galvatron_dp_core  # noqa: F401
    except Exception as missing:
        raise tangram.Unavailable(f"Galvatron does not import: {type(missing).__name__}: {missing}") from missing
    engine_class, arguments_class = GalvatronSearchEngine, GalvatronSearchArgs


class Layers:
    """What the profiles of one question are made of; all layers of the slice are alike."""

    def __init__(self, query):
        self.count, shape, block = query.uniform_blocks()
        if block["expert_parameters"]:
            raise tangram.Unsupported("experts: Galvatron's search has no expert parallelism")
        file, counted = query.model["file"], query.model["counted"]
        self.hidden = shape["hidden"]
        self.sequence = file["training"]["sequence_length"]
        self.vocabulary = file["architecture"]["vocabulary"]
        self.precision = query.precision()
        self.parameters = block["parameters"]
        rate = query.matrix_flops_per_s()
        self.forward_ms = block["forward_flops_per_sample"] / rate * 1e3
        self.head_ms = counted["head_forward_flops_per_sample"] / rate * 1e3 if query.head else 0.0
        self.other_parameters = (query.embedding * counted["embedding_parameters"] +
                                 query.head * counted["head_parameters"])

    def time_profile(self):
        return {f"layertype_0_bsz1_seq{self.sequence}": self.forward_ms,
                f"layertype_other_bsz1_seq{self.sequence}": self.head_ms}

    def memory_profile(self, degrees, in_flight, head):
        tokens = self.sequence * self.hidden
        activation = {str(tp): 34 * tokens / tp * in_flight / MIB for tp in degrees}
        activation["checkpoint"] = 2 * tokens * in_flight / MIB
        logits = 6 * self.sequence * self.vocabulary if head else 0
        other = {"model_states": {str(tp): STATE_BYTES * self.other_parameters / tp / MIB for tp in degrees},
                 "activation": {str(tp): (logits / tp + 2 * tokens * in_flight) / MIB for tp in degrees}}
        if not self.other_parameters:
            other["activation"] = {str(tp): 0.0 for tp in degrees}
        layer = {"parameter_size": 4 * self.parameters / MIB, "tp_activation_per_bsz_dict": activation}
        profile = {}
        for ending in ("_sp", ""):
            profile[f"layertype_0{ending}"] = {str(self.sequence): layer}
            for stage in ("off", "on_first", "on_last"):
                profile[f"other_memory_pp_{stage}{ending}"] = {str(self.sequence): other}
        return profile


def powers_of_two(most):
    return [1 << i for i in range(most.bit_length()) if 1 << i <= most]


def hardware_profiles(query):
    """Bandwidths in GB/s (bus bandwidth of the longest message), times in ms by MiB."""
    bandwidth, times = {}, {}
    rows = {}
    for row in query.shape["collectives"]:
        rows.setdefault((row["operation"], row["ranks"], row["stride"]), []).append((row["bytes"], row["seconds"]))
    for (operation, ranks, stride), points in rows.items():
        nbytes, seconds = max(points)
        if operation == "all_reduce":
            near = 1 if stride == 1 else 0
            bandwidth[f"allreduce_size_{ranks}_consec_{near}"] = 2 * (ranks - 1) / ranks * nbytes / seconds / 1e9
        if stride == 1 and operation in ("all_reduce", "all_to_all"):
            word = {"all_reduce": "allreduce", "all_to_all": "all2all"}[operation]
            for size, time in points:
                times[f"{word}_size_{ranks}_{size // MIB}MB_time"] = time * 1e3
    for ranks in powers_of_two(query.gpus):
        near = bandwidth.get(f"allreduce_size_{ranks}_consec_1")
        if near:
            bandwidth.setdefault(f"allreduce_size_{ranks}_consec_0", near)
    return bandwidth, times


def write_profiles(query, layers, in_flight):
    folder = pathlib.Path.cwd() / "profiles"
    folder.mkdir(exist_ok=True)
    bandwidth, times = hardware_profiles(query)
    size = f"{query.nodes}nodes_{query.per_node}gpus_per_node"
    files = {
        f"computation_profiling_{layers.precision}_{NAME}_all.json": layers.time_profile(),
        f"memory_profiling_{layers.precision}_{NAME}_all.json":
            layers.memory_profile(powers_of_two(query.gpus), in_flight, query.head),
        f"allreduce_bandwidth_{size}.json": bandwidth,
        f"p2p_bandwidth_{size}.json": {"pp_size_2": query.shape["intra"]["bandwidth_bytes_per_s"] / 1e9},
        f"sp_time_{size}.json": times,
        "overlap_coefficient.json": {"overlap_coe": 1.1256},  # what Galvatron's authors measured on 8 x A100
    }
    for name, content in files.items():
        (folder / name).write_text(json.dumps(content), encoding="utf-8")
    return str(folder)


def arguments_for(query, layers, folder):
    arguments = arguments_class()
    arguments.hardware_info.num_nodes = query.nodes
    arguments.hardware_info.num_gpus_per_node = query.per_node
    arguments.model_info.hidden_size = layers.hidden
    arguments.parallelism_info.mixed_precision = layers.precision
    arguments.parallelism_info.default_dp_type = "zero2" if "zero2" in query.allow else "ddp"
    arguments.parallelism_info.pipeline_type = "pipedream_flush"
    arguments.common_train_info.seq_length = layers.sequence
    arguments.common_train_info.sequence_parallel = "sp" in query.allow
    space = arguments.search_space_info
    space.disable_pp = space.disable_cp = space.disable_sp = 1  # Ulysses is no technique of the host's
    space.disable_tp = int("tp" not in query.allow)
    space.disable_dp = int("dp" not in query.allow)
    space.disable_fsdp = int("zero3" not in query.allow)
    space.disable_ckpt = int("recompute_full" not in query.allow)
    space.max_pp_deg = 1
    space.max_tp_deg = query.per_node
    arguments.options_info.log_dir = str(pathlib.Path.cwd() / "logs")
    for name in ("memory_profiling_path", "time_profiling_path", "allreduce_bandwidth_config_path",
                 "p2p_bandwidth_config_path", "overlap_coe_path", "sp_time_path"):
        setattr(arguments.profiling_info, name, folder)
    return arguments


def budget_mib(usable_bytes):
    mib = int(usable_bytes / MIB)
    return int(mib / (1 - CACHE_SHARE)) if mib / (1 - CACHE_SHARE) > CACHE_FROM_MIB else mib


def make_engine(query, layers, in_flight):
    engine = engine_class(arguments_for(query, layers, write_profiles(query, layers, in_flight)))
    engine.memory_constraint = budget_mib(query.usable_bytes)
    configs = [{"hidden_size": layers.hidden, "layer_num": layers.count, "seq_len": layers.sequence}]
    engine.set_search_engine_info(path=os.getcwd(), model_layer_configs=configs, model_name=NAME)
    engine.initialize_search_engine()
    for name in ("layer_strategy_list", "embedding_lmhead_strategy_list"):
        kept = [s for s in getattr(engine, name) if query.microbatch % s.dp_size == 0]
        setattr(engine, name, kept)
    return engine


def search(query, engine, strategies):
    """The layers' strategies, or None. Two microbatches, so that gradients are accumulated."""
    engine.layer_strategy_list = strategies
    if not strategies or not engine.embedding_lmhead_strategy_list:
        return None
    most_tp = max(s.tp_size for s in strategies)
    found = engine.search_for_single_task(2 * query.microbatch, 2, 1, most_tp, "tp_only")
    return found.get("strategy_list") if found["throughput"] > 0 else None


def kind(strategy):
    return strategy.tp_size, strategy.dp_size, strategy.dp_type.value


def uniform(query, engine):
    """(tp, dp, data-parallel type) and the number of recomputed layers, or None."""
    everything = list(engine.layer_strategy_list)
    found = search(query, engine, everything)
    if found is None:
        return None
    chosen = Counter(map(kind, found)).most_common(1)[0][0]
    if any(kind(s) != chosen for s in found):
        found = search(query, engine, [s for s in everything if kind(s) == chosen])
    engine.layer_strategy_list = everything
    if found is None:
        return None
    return chosen, sum(s.checkpoint for s in found)


def solve(query):
    layers = Layers(query)
    plans, in_flight = {}, 1
    while in_flight <= query.max_in_flight and not query.cancelled():
        with contextlib.redirect_stdout(sys.stderr):
            engine = make_engine(query, layers, in_flight)
            if not engine.layer_strategy_list:
                raise tangram.Unsupported("no dp of Galvatron's divides the microbatch")
            answer = uniform(query, engine)
        if answer is None:
            break
        plans[answer] = in_flight
        in_flight *= 2
    if not plans:
        raise tangram.Infeasible("Galvatron finds no strategy that fits")
    zero = {"ddp": 0, "zero2": 2, "zero3": 3}
    for ((tp, dp, dp_type), checkpointed), holds in plans.items():
        yield query.plan(tp=tp, dp=dp, sequence_parallel=tp > 1 and "sp" in query.allow, zero=zero[dp_type],
                         recompute="full" if checkpointed else "none", layers=checkpointed or None,
                         strategy={"galvatron": {"tp": tp, "dp": dp, "dp_type": dp_type, "checkpoint": checkpointed,
                                                 "in_flight": holds}})


if __name__ == "__main__":
    tangram.serve(solve, name="galvatron", version="adapter-1", powers_of_two=True, can_cancel=True,
                  setup=load_galvatron, techniques=["tp", "sp", "dp", "zero2", "zero3", "recompute_full"])
