"""Everything a Tangram parallelizer written in Python needs: one file, standard library alone.

    import tangram_plugin as tangram

    def solve(query):
        yield query.plan(tp=1, dp=query.gpus)

    tangram.serve(solve, name="all-data-parallel", version="1")

A parallelizer answers one question: what are the best ways to run these blocks of the model as one pipeline stage on
these equal GPUs? It may answer with any number of plans, or raise:

    tangram.Infeasible(message, needed_bytes=...)   no plan fits the memory; true for every slice that contains this one
    tangram.Unsupported(message)                    this shape and microbatch cannot be planned

The host recomputes time and memory of each plan with its own cost model, so that plans of all parallelizers compare. What
a plugin claims about them (forward_ns, static_bytes, ...) is checked for sense and shown beside the recomputed numbers;
it need not claim anything. Print what you like: the protocol has a descriptor of its own.

Try it with   tangram parallelizers test ./my_planner.py   and use it with   tangram plan ... --parallelizer ./my_planner.py
(the file must be executable and begin with #!/usr/bin/env python3).
"""
import json
import os
import select
import sys
import traceback

PROTOCOL = 1


class Infeasible(Exception):
    """Nothing fits. needed_bytes: memory per GPU that the leanest plan needs."""

    def __init__(self, message="", needed_bytes=None):
        super().__init__(message)
        self.needed_bytes = needed_bytes


class Unsupported(Exception):
    """This shape or microbatch cannot be planned, whatever the slice."""


class Unavailable(Exception):
    """Raised before serve(): what this plugin stands on is not installed. The message says what to do."""


class Query:
    """One question. Attributes, all plain values as they came:

    blocks            [(type name, count)] of the slice, in order; block_count is their sum
    embedding, head   whether the slice holds them; slice is the whole record
    gpus, nodes, per_node, gpu, usable_bytes        the shape; shape is the whole record, with intra and inter links
    microbatch        samples of one microbatch, over all data-parallel replicas: dp is no more, and where it does not
                      divide them a stage takes as long as its fullest replica
    max_in_flight     more microbatches in flight than this are never needed
    allow             set of techniques: tp sp cp ep dp zero1 zero2 zero3 recompute_selective recompute_full
    demands           what the target's runtime wants of the strategy (--target), {} for none: degrees, recompute (full: of
                      all blocks), sequence_parallel (wherever tp > 1), zero1 (wherever dp or cp > 1), whole_stage_experts,
                      whole_recompute (full: of all blocks or of none), tp_at_ends, equal_samples (dp divides the
                      microbatch); plans that do not keep it are rejected
    upper_bound_ns    slower plans (forward + backward) are of no use; None: no bound
    model             {"file": the model as tangram.model/1, "counted": parameters and FLOPs per block}
    profiles          measured profiles as tangram.profile/1; empty: none
    deadline_ms, seed
    """

    def __init__(self, message, materials, channel):
        self.id = message["id"]
        self.slice = message["slice"]
        self.shape = materials[message["shape"]]
        self.model = materials[message["model"]]
        self.profiles = materials[message["profiles"]] if "profiles" in message else []
        self.blocks = [(run["type"], run["count"]) for run in self.slice["blocks"]]
        self.block_count = sum(count for _, count in self.blocks)
        self.embedding = self.slice["embedding"]
        self.head = self.slice["head"]
        self.nodes = self.shape["nodes"]
        self.per_node = self.shape["per_node"]
        self.gpus = self.nodes * self.per_node
        self.gpu = self.shape["gpu"]
        self.usable_bytes = self.gpu["usable_bytes"]
        self.microbatch = message["microbatch"]
        self.max_in_flight = message["in_flight"]["max"]
        self.allow = set(message["allow"])
        self.demands = message.get("demands", {})
        self.upper_bound_ns = message.get("upper_bound_ns")
        self.deadline_ms = message.get("deadline_ms")
        self.seed = message.get("seed", 0)
        self._channel = channel

    def plan(self, tp=1, cp=1, dp=1, ep=1, etp=1, sequence_parallel=False, zero=0, recompute="none", layers=None,
             strategy=None, dp_replicate=1, **claims):
        """One way to run the slice. recompute: none, selective or full; layers: blocks recomputed in full, from the
        stage's first. strategy: anything of your own, returned to exporters as it is. dp_replicate: groups of neighbours of
        dp inside which ZeRO shards; what the job wants of them is sharding_group of the model file. claims: forward_ns,
        backward_ns, gradient_sync_ns, optimizer_step_ns, static_bytes, transient_bytes, activation_bytes_per_in_flight."""
        stage = {"blocks": self.slice["blocks"], "zero": zero, "recompute": {"mode": recompute},
                 "degrees": {"tp": tp, "cp": cp, "dp": dp, "ep": ep, "etp": etp,
                             "sequence_parallel": sequence_parallel}}
        if dp_replicate > 1:
            stage["degrees"]["dp_replicate"] = dp_replicate
        if recompute == "full":
            stage["recompute"]["layers"] = self.block_count if layers is None else layers
        if strategy is not None:
            stage["strategy"] = strategy
        stage.update((name, value) for name, value in claims.items() if value is not None)
        return {"stages": [stage]}

    def uniform_blocks(self):
        """(count, shape, counted) of a slice whose blocks are all alike: their entry in the model file, and what the host
        counted of one of them."""
        if len(self.blocks) != 1:
            raise Unsupported("several types of blocks in one slice")
        name, count = self.blocks[0]

        def entry(entries):
            return next(one for one in entries if one["name"] == name)
        return count, entry(self.model["file"]["architecture"]["types"]), entry(self.model["counted"]["blocks"])

    def precision(self):
        """bf16, fp16 or fp32, for planners that know neither fp4, fp8 nor TF32."""
        said = self.model["file"]["training"]["precision"]
        return {"fp4": "bf16", "fp8": "bf16", "tf32": "fp32"}.get(said, said)

    def matrix_flops_per_s(self):
        """What the GPU sustains in that precision."""
        peak = self.gpu["peak_flops"]
        return peak.get(self.precision(), max(peak.values())) * self.gpu["gemm_efficiency"]

    def progress(self, message):
        """One line for people who wait."""
        self._channel.send({"type": "progress", "id": self.id, "message": message})

    def cancelled(self):
        """Whether the host has lost interest. Pass can_cancel=True to serve() and ask now and then in long searches."""
        return self._channel.was_cancelled(self.id)


class _Channel:
    def __init__(self, descriptor):
        self._descriptor = descriptor
        self._buffer = b""
        self._messages = []

    def send(self, message):
        data = (json.dumps(message, separators=(",", ":"), allow_nan=False) + "\n").encode()
        while data:
            data = data[os.write(self._descriptor, data):]

    def receive(self):
        """The next message; None when the host is gone."""
        while not self._messages:
            if not self._fill():
                return None
        return self._messages.pop(0)

    def was_cancelled(self, number):
        while select.select([self._descriptor], [], [], 0)[0]:
            if not self._fill():
                return True
        return any(m.get("type") == "cancel" and m.get("id") == number for m in self._messages)

    def _fill(self):
        data = os.read(self._descriptor, 1 << 16)
        self._buffer += data
        *lines, self._buffer = self._buffer.split(b"\n")
        self._messages += [json.loads(line) for line in lines]
        return bool(data)


def _open_channel():
    if os.environ.get("TANGRAM_PROTOCOL") != str(PROTOCOL):
        print(f"{sys.argv[0]} is a parallelizer of Tangram: tangram parallelizers test {sys.argv[0]}", file=sys.stderr)
        sys.exit(2)
    return _Channel(int(os.environ["TANGRAM_FD"]))


def _answer(solve, query):
    try:
        return {"type": "result", "id": query.id, "plans": list(solve(query) or [])}
    except Infeasible as no:
        answer = {"type": "error", "id": query.id, "code": "infeasible", "message": str(no)}
        if no.needed_bytes is not None:
            answer["needed_bytes"] = no.needed_bytes
        return answer
    except Unsupported as no:
        return {"type": "error", "id": query.id, "code": "unsupported", "message": str(no)}
    except Exception as bug:  # the next question may go better
        traceback.print_exc()
        return {"type": "error", "id": query.id, "code": "internal", "message": f"{type(bug).__name__}: {bug}"}


def serve(solve, *, name, version, deterministic=True, powers_of_two=False, max_gpus=None, max_nodes=None,
          techniques=(), can_cancel=False, setup=None):
    """Answers questions until the host leaves. solve(query) returns or yields plans. setup(): called once before hello;
    may raise Unavailable. powers_of_two, max_gpus, max_nodes: what is never asked."""
    channel = _open_channel()
    try:
        if setup is not None:
            setup()
    except Unavailable as no:
        channel.send({"type": "unavailable", "message": str(no)})
        return
    capabilities = {"shapes": "powers_of_two" if powers_of_two else "any", "max_stages": 1, "frontier": True,
                    "techniques": list(techniques), "cancel": can_cancel, "progress": True}
    if max_gpus is not None:
        capabilities["max_gpus"] = max_gpus
    if max_nodes is not None:
        capabilities["max_nodes"] = max_nodes
    channel.send({"type": "hello", "protocol": PROTOCOL, "name": name, "version": version,
                  "deterministic": deterministic, "capabilities": capabilities})
    materials = {}
    while (message := channel.receive()) is not None:
        kind = message.get("type")
        if kind == "load":
            materials[message["digest"]] = next(message[key] for key in ("model", "shape", "profiles") if key in message)
        elif kind == "solve":
            channel.send(_answer(solve, Query(message, materials, channel)))
        elif kind == "bye":
            return
