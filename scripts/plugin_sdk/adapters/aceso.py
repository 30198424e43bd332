#!/usr/bin/env python3
"""Asks a user's own Aceso: its search, unchanged, plans one stage of a slice on the GPUs of one node.

Aceso plans operators, thirteen to a layer, from profiles of each at every samples per replica and tensor-parallel size. They are
written for each question from what the question says: times of matrix products from the model's FLOPs at the rate that the GPU
sustains, of the others from the bytes they move, kept activations from Korthikanti et al. (arXiv 2205.05198, equation 2), tensor
parallelism's all-reduces as the host gives them. What it returns is a strategy; the host costs it with its own model.

What has to be guarded, because Aceso would not say so:
  - a stage of Aceso's has 1, 2, 4 or 8 GPUs of one node: other shapes are never asked;
  - the samples of a microbatch are the question's: its moves that change them are taken out of its table, and no profile is there
    for samples that dp does not divide, which it would round down;
  - a stage alone cannot trade GPUs with others: the moves that exchange tp and dp are its own, but off by default;
  - it adds the hand-over to other stages, which the host prices: they get a bandwidth at which they cost nothing;
  - its profiles' reserved memory is the allocator's, which the host's usable memory already leaves out;
  - it knows how many microbatches are in flight by the number of stages behind: it is asked for growing numbers until the memory
    is full;
  - it stops by the clock: it gets all the time it wants, and ends by the number of its trials;
  - it recomputes single operators, a stage of the host's whole layers: one with a recomputed operator is recomputed in full;
  - its state is in modules, read once from the command line: they are loaded anew for each run.
"""
import csv
import importlib
import json
import os
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import tangram_plugin as tangram  # noqa: E402

MIB = 1 << 20
MODULES = ("aceso_search", "aceso_cost_model", "aceso_policy", "aceso_prims", "aceso_utils", "model_ops_info")
MODEL = "scale-layer"  # of Aceso's models the one whose number of layers is an argument
KEPT_MOVES = {"dec_op", "inc_dp", "dec_dp", "inc_tp", "dec_tp"}
NO_COST_GB_S = 1e12
NO_LIMIT_S = 10 ** 9
LOGIT_BYTES = 6  # of a logit: bf16, and fp32 in the loss
COLUMNS = ("op_name", "forward-compute", "backward-compute", "input_size", "output_size", "weights", "activations",
           "fwd_reserved", "bwd_reserved")
EMBEDDING, FINAL_NORM, HEAD = "encoder-embedding", "final-layernorm", "gpt-post-process"


def find_aceso():
    """The folder of aceso_search.py."""
    home = os.environ.get("ACESO_HOME")
    if not home:
        raise tangram.Unavailable("Aceso is not found: ACESO_HOME is not set")
    for folder in (pathlib.Path(home) / "search", pathlib.Path(home)):
        if (folder / "aceso_search.py").is_file():
            return folder.resolve()
    raise tangram.Unavailable(f"Aceso is not found: ACESO_HOME is {home}, which has no search/aceso_search.py")


def load_aceso():
    sys.path.insert(0, str(find_aceso()))


class Operator:
    """One of Aceso's, for one sample: `whole` parts are the same on every GPU, the others are divided by tp."""

    def __init__(self, name, flops=0, moved=0, parameters=0, kept=0, kept_whole=0, moved_whole=0, forward_reduce=0,
                 backward_reduce=0):
        self.name = name
        self.flops, self.moved, self.moved_whole = flops, moved, moved_whole
        self.parameters = parameters
        self.kept, self.kept_whole = kept, kept_whole
        self.forward_reduce, self.backward_reduce = forward_reduce, backward_reduce  # bytes all-reduced among tp GPUs


class Layers:
    """The slice as operators; all of its layers are alike."""

    def __init__(self, query):
        self.count, shape, block = query.uniform_blocks()
        if block["expert_parameters"]:
            raise tangram.Unsupported("experts: Aceso has no expert parallelism")
        if any(key not in shape for key in ("heads", "kv_heads", "head_dim", "ffn_hidden")):
            raise tangram.Unsupported("Aceso's operators are those of multi-head attention and a feed-forward network")
        self.heads = shape["heads"]
        file, counted = query.model["file"], query.model["counted"]
        tokens = file["training"]["sequence_length"]
        mask = tokens * shape["hidden"] if file["training"].get("dropout") else 0
        self.layer = layer_operators(shape, block, tokens, mask)
        hidden = tokens * shape["hidden"]
        self.before = [Operator(EMBEDDING, moved_whole=4 * hidden, kept_whole=mask,
                                parameters=counted["embedding_parameters"])]
        self.after = [Operator(FINAL_NORM, moved_whole=4 * hidden, kept_whole=2 * hidden),
                      Operator(HEAD, flops=counted["head_forward_flops_per_sample"], kept_whole=2 * hidden,
                               kept=LOGIT_BYTES * tokens * file["architecture"]["vocabulary"],
                               parameters=counted["head_parameters"], backward_reduce=2 * hidden)]
        self.before_count, self.after_count = int(query.embedding), len(self.after) * int(query.head)

    def operators(self):
        """In the order that Aceso's profiles have them, each layer's once."""
        return self.before + self.layer + self.after

    def names(self):
        """Of the slice, in order."""
        before = [operator.name for operator in self.before[:self.before_count]]
        after = [operator.name for operator in self.after[:self.after_count]]
        return before + [operator.name for operator in self.layer] * self.count + after

    def recomputed(self, flags):
        """Layers with a recomputed operator."""
        inner = flags[self.before_count:self.before_count + self.count * len(self.layer)]
        return sum(any(inner[i:i + len(self.layer)]) for i in range(0, len(inner), len(self.layer)))


def layer_operators(shape, block, tokens, mask):
    """Per token and value two bytes are kept. Scores, which fused attention never stores, are kept by nobody."""
    hidden, ffn = tokens * shape["hidden"], tokens * shape["ffn_hidden"]
    queries, keys = tokens * shape["heads"] * shape["head_dim"], tokens * shape["kv_heads"] * shape["head_dim"]
    gates = 2 if shape.get("gated") else 1
    values = {"qkv": shape["hidden"] * (queries + 2 * keys) // tokens, "dense": shape["hidden"] * queries // tokens,
              "up": shape["hidden"] * shape["ffn_hidden"] * gates, "down": shape["hidden"] * shape["ffn_hidden"]}
    attention = 2 * tokens * queries / (2 if shape.get("causal") else 1)  # of scores, and again of their sum
    flops = {key: 2 * tokens * value for key, value in values.items()}
    scale = block["forward_flops_per_sample"] / (sum(flops.values()) + 2 * attention)  # what the host counts in all
    share = block["parameters"] / sum(values.values())
    product = lambda key, name, **more: Operator(name, flops=flops[key] * scale, parameters=values[key] * share, **more)
    return [
        Operator("enc-1st-layernorm", moved_whole=4 * hidden, kept_whole=2 * hidden),
        product("qkv", "enc-attention-qkv", kept=2 * (queries + 2 * keys), kept_whole=2 * hidden,
                backward_reduce=2 * hidden),
        Operator("enc-attention-score", flops=attention * scale),
        Operator("enc-attention-softmax"),
        Operator("enc-attention-dropout"),
        Operator("enc-attention-context", flops=attention * scale, kept=2 * queries),
        product("dense", "enc-attention-dense", forward_reduce=2 * hidden),
        Operator("enc-post-attention-dropout", moved_whole=6 * hidden, kept_whole=mask),
        Operator("enc-2nd-layernorm", moved_whole=4 * hidden, kept_whole=2 * hidden),
        product("up", "enc-MLP-GEMM-1", kept_whole=2 * hidden, backward_reduce=2 * hidden),
        Operator("enc-MLP-gelu", moved=2 * ffn * (gates + 1), kept=2 * ffn * gates),
        product("down", "enc-MLP-GEMM-2", kept=2 * ffn, forward_reduce=2 * hidden),
        Operator("enc-post-MLP-dropout", moved_whole=6 * hidden, kept_whole=mask),
    ]


class Machine:
    def __init__(self, query):
        self.rate = query.matrix_flops_per_s()
        self.bandwidth = query.gpu["memory_bandwidth_bytes_per_s"]
        self.points = {}
        for row in query.shape["collectives"]:
            if row["operation"] == "all_reduce" and row["stride"] == 1:
                self.points.setdefault(row["ranks"], []).append((row["bytes"], row["seconds"]))

    def all_reduce_s(self, nbytes, ranks):
        """Between the messages that the host gives, and beyond them, along a line."""
        if ranks == 1 or nbytes == 0:
            return 0.0
        points = sorted(self.points[ranks])
        upper = next((i for i, (size, _) in enumerate(points) if size >= nbytes), len(points) - 1)
        (size_a, time_a), (size_b, time_b) = points[max(upper - 1, 0)], points[max(upper, 1)]
        return max(0.0, time_a + (nbytes - size_a) * (time_b - time_a) / (size_b - size_a))

    def row(self, operator, samples, tp):
        """Of a profile: microseconds and MiB."""
        moved = (operator.moved / tp + operator.moved_whole) * samples / self.bandwidth
        forward = operator.flops * samples / tp / self.rate + moved
        backward = 2 * forward + self.all_reduce_s(operator.backward_reduce * samples, tp)
        forward += self.all_reduce_s(operator.forward_reduce * samples, tp)
        kept = (operator.kept / tp + operator.kept_whole) * samples
        return [operator.name, forward * 1e6, backward * 1e6, 0, 0, 2 * operator.parameters / tp / MIB, kept / MIB, 0, 0]


def powers_of_two(most):
    return [1 << i for i in range(most.bit_length()) if 1 << i <= most]


def samples_of_a_replica(query):
    """For each dp that divides the microbatch, dp = 1 first."""
    return [query.microbatch // dp for dp in powers_of_two(query.gpus) if query.microbatch % dp == 0]


def write_table(path, rows):
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows(rows)


def write_profiles(query, layers):
    """Into folders of the working directory, which is the worker's own."""
    folder = pathlib.Path.cwd() / "profiles"
    for made in (folder, pathlib.Path("logs/trends"), pathlib.Path("found/csv")):
        made.mkdir(parents=True, exist_ok=True)
    machine = Machine(query)
    for samples in samples_of_a_replica(query):
        for tp in powers_of_two(query.gpus):
            rows = [machine.row(operator, samples, tp) for operator in layers.operators()]
            for algorithm in (0, 1):  # by columns and by rows: for the host they are the same
                write_table(folder / f"gpt_{MODEL}_mbs{samples}_tp{tp}_algo{algorithm}.csv", [COLUMNS, *rows])
    for operation in ("all_gather", "all_reduce", "reduce_scatter", "all_to_all"):
        for ranks in powers_of_two(query.gpus)[1:]:
            # Between operators of unequal degrees alone, which one stage of the host's does not have.
            write_table(folder / f"prim_gpt_{MODEL}_{operation}_{ranks}gpus.csv", [("data_size(MB)", "time(ms)")])
    write_table(folder / "p2p_intra_node.csv", [(1,), (NO_COST_GB_S,)])
    write_table(folder / "p2p_inter_node.csv", [(1,), (NO_COST_GB_S,)])
    return f"{folder}/"


def arguments_for(query, layers, profiles):
    return ["aceso_search.py", "--model-name", MODEL, "--model-size", "slice", "--num-layers", layers.count,
            "--global-batch-size", 2 * query.microbatch, "--micro-batch-size", *samples_of_a_replica(query),
            "--num-nodes", query.nodes, "--num-gpus-per-node", query.per_node, "--max-tp", query.gpus,
            "--memory-limit", query.usable_bytes // MIB, "--do-not-consider-reserved-space", "--log-path", "logs/",
            "--profiled-time-path", profiles, "--config-save-path", "found/", "--max-num-hops", 7,
            "--time-budget-total", NO_LIMIT_S, "--start-num-stages", 1, "--end-num-stages", 1,
            "--add-action-tp-dp-exchange", "--no-multi-process"]


def fresh_search(query, layers, profiles):
    for name in MODULES:
        sys.modules.pop(name, None)
    sys.argv = [str(word) for word in arguments_for(query, layers, profiles)]
    search = importlib.import_module("aceso_search")
    sys.modules["model_ops_info"].full_op_list = layers.names()
    moves = set(KEPT_MOVES)
    moves |= {"inc_tp_dec_dp"} if "tp" in query.allow else set()
    moves |= {"inc_dp_dec_tp"} if "dp" in query.allow else set()
    search.action_resource_table[:] = [move for move in search.action_resource_table if move.name in moves]
    return search


def first_degrees(query, layers):
    """Where the search begins: as Aceso would, with the most tensor parallelism that there can be."""
    for tp in reversed(powers_of_two(query.gpus)):
        dp = query.gpus // tp
        allowed = (tp == 1 or "tp" in query.allow) and (dp == 1 or "dp" in query.allow)
        if allowed and layers.heads % tp == 0 and query.microbatch % dp == 0:
            return tp, dp
    raise tangram.Unsupported("no tp divides the heads so that dp divides the microbatch")


def run(query, layers, profiles, first, in_flight):
    """What Aceso writes of the best stage that fits, or None."""
    tp, dp = first
    search = fresh_search(query, layers, profiles)
    original = search.generate_initial_config

    def initial(stages, arguments):
        config = original(stages, arguments)
        stage = config.stages[0]
        stage.num_stages_behind = in_flight - 1
        stage.tp_size, stage.dp_size = [tp] * len(stage.ops), [dp] * len(stage.ops)
        arguments.max_tp = tp  # more does not divide the heads
        return config

    search.generate_initial_config = initial
    found = search.run_search(1)
    file = pathlib.Path(f"found/{MODEL}_slice_1stages_{search.args.config_suffix}.json")
    if found is None or not file.exists():
        return None
    config = json.loads(file.read_text(encoding="utf-8"))
    file.unlink()
    return config if found[1] <= search.args.memory_limit else None


def solve(query):
    layers = Layers(query)
    first = first_degrees(query, layers)
    profiles = write_profiles(query, layers)
    plans, in_flight = {}, 1
    while in_flight <= query.max_in_flight and not query.cancelled():
        config = run(query, layers, profiles, first, in_flight)
        if config is None:
            break
        flags = config["recompute_ops"][0]
        count = layers.recomputed(flags)
        if count and "recompute_full" not in query.allow:
            break
        degrees = config["model_parallel_size_of_each_op"][0][0], config["data_parallel_size_of_each_op"][0][0]
        plans[(*degrees, count)] = {"in_flight": in_flight, "recompute_ops": [i for i, on in enumerate(flags) if on]}
        in_flight *= 2
    if not plans:
        raise tangram.Infeasible("Aceso finds no configuration that fits")
    for (tp, dp, count), found in plans.items():
        whole = query.demands.get("recompute") == "full"
        yield query.plan(tp=tp, dp=dp, recompute="full" if count or whole else "none",
                         layers=layers.count if whole else count or None,
                         sequence_parallel=tp > 1 and bool(query.demands.get("sequence_parallel")),
                         zero=1 if dp > 1 and query.demands.get("zero1") else 0,
                         strategy={"aceso": {"tp": tp, "dp": dp, **found}})


if __name__ == "__main__":
    tangram.serve(solve, name="aceso", version="adapter-1", powers_of_two=True, max_gpus=8, max_nodes=1, can_cancel=True,
                  setup=load_aceso, techniques=["tp", "dp", "recompute_full"])
