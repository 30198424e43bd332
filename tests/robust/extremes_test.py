#!/usr/bin/env python3
"""Every number of the schemas of input files, one at a time at its extremes: an error with its place, or an answer within
10 s. Documents hold every number that the schemas know; what a schema adds later and no document holds is an error here.

    extremes_test.py BINARY REPOSITORY [all]      a seeded sample of 160 runs; all, or TANGRAM_EXTREMES=all: every one
"""
import copy
import json
import os
import random
import subprocess
import sys
import tempfile
from pathlib import Path

from trials import ENVIRONMENT, Trial, slowest

LIMIT_S = 10
SAMPLE = 160
HUGE = "1.7976931348623157e308"
EXTREMES = ["0", "-1", "5e-324", "1e-308", "1e-30", HUGE, "1e999", "9223372036854775807", "18446744073709551616", "NaN",
            "-Infinity", '"NaN"', '"1"', "null", "0.5", "true"]

LINK = {"bandwidth_gb_s": 32, "latency_us": 5}
GPU = {"vendor": "acme", "architecture": "odd", "multiprocessors": 80, "memory_gib": 40, "reserved_gib": 3,
       "memory_bandwidth_gb_s": 1500,
       "peak_tflops": {"fp32": 20, "tf32": 100, "fp16": 300, "bf16": 300, "fp8": 600, "fp4": 1200},
       "peer_link": {"bandwidth_gb_s": 300, "latency_us": 3, "ramp_us": 20, "reach": 8, "pair_gb_s": 50}, "pcie": dict(LINK),
       "calibration": {"gemm_efficiency": 0.6, "attention_forward": 0.4, "attention_backward": 0.3, "memory_efficiency": 0.8,
                       "kernel_launch_us": 5, "host_issue_us": 5, "unvectorized_gvalues_s": 200,
                       "fused_kernels": {"gemm_efficiency": 0.6, "fp8_efficiency": 0.5, "fp4_efficiency": 0.4, "memory_efficiency": 0.8},
                       "native_attention": {"forward": 0.7, "backward": 0.6, "forward_extra_keys": 500,
                                            "backward_extra_keys": 600, "head_dim_multiple": 64,
                                            "forward_extra_head_dim": 60, "backward_extra_head_dim": 40,
                                            "forward_least_head_dim": 128, "backward_least_head_dim": 90,
                                            "widest_value_dim": 128, "early_forward_extra_keys": 900,
                                            "early_backward_extra_keys": 1000}},
       "price_per_hour_usd": 2}
CLUSTER = {
    "schema": "tangram.cluster/1", "name": "odd", "gpus": {"Odd": GPU},
    "nodes": [
        {"name": "a-{}", "count": 2, "labels": {"rack": "r1"},
         "gpus": [{"type": "Odd", "count": 2, "link": {**LINK, "ramp_us": 9, "clique": 2},
                   "measured": {"gemm_tflops": 150, "memory_bandwidth_gb_s": 1200, "usable_memory_gib": 36,
                                "link_bandwidth_gb_s": 30}}],
         "host_link": dict(LINK), "network": {"cards": 2, "bandwidth_gbit_s": 100, "latency_us": 5},
         "price_per_hour_usd": 5,
         "overrides": {"a-2": {"measured": {"Odd": {"gemm_tflops": 140, "memory_bandwidth_gb_s": 1100, "usable_memory_gib": 35,
                                                    "link_bandwidth_gb_s": 29}},
                               "network": {"cards": 1, "bandwidth_gbit_s": 100, "latency_us": 6}}}},
        {"name": "b", "labels": {"rack": "r2"}, "gpus": [{"type": "A10G", "count": 2}],
         "network": {"bandwidth_gbit_s": 25, "latency_us": 20}}],
    "links": [{"between": {"rack": ["r1", "r2"]}, "bandwidth_gbit_s": 10, "latency_us": 50}],
    "measured_links": {"nodes": ["a-1", "a-2"], "bandwidth_gbit_s": [[0, 90], [90, 0]], "latency_us": [[0, 6], [6, 0]]}}
MLA = {"q_lora_rank": 64, "kv_lora_rank": 32, "qk_nope_head_dim": 16, "qk_rope_head_dim": 8, "v_head_dim": 16}
MOE = {"experts": 8, "experts_per_token": 2, "expert_hidden": 128, "shared_hidden": 128, "latent_hidden": 64, "expert_groups": 4,
       "groups_per_token": 2}
MAMBA2 = {"heads": 8, "head_dim": 32, "groups": 2, "state": 16, "convolution": 4, "chunk": 64}
GATED_DELTA = {"value_heads": 8, "value_head_dim": 32, "key_heads": 4, "key_head_dim": 32, "convolution": 4, "chunk": 64}
MOE_RUN = {**MOE, "first_dense_layers": 1, "every": 1}
TRAINING = {"sequence_length": 512, "global_batch_samples": 16, "microbatch": 1, "gradient_bytes_per_parameter": 4, "gradient_bucket": 1000000, "attention_kernel": "native",
            "sharding_group": 2, "optimizer": {"name": "adam", "state_bytes_per_parameter": 12, "offload_fraction": 0.5}}
DENSE = {"schema": "tangram.model/1", "name": "dense",
         "architecture": {"hidden": 256, "layers": 4, "heads": 8, "kv_heads": 4, "head_dim": 32, "ffn_hidden": 512,
                          "norms_per_block": 2, "sliding_window": 128, "full_attention_every": 2, "vocabulary": 1000,
                          "learned_positions": 512, "embedding_projection": 128, "extra_embedding_parameters": 10,
                          "encoders": [{"name": "v", "hidden": 128, "layers": 2, "heads": 4, "kv_heads": 2, "head_dim": 32,
                                        "ffn_hidden": 256, "norms_per_block": 2, "sliding_window": 64,
                                        "full_attention_every": 2, "tokens_per_sample": 128, "patch_parameters": 100,
                                        "projector_parameters": 100}]},
         "training": TRAINING}
EXPERTS = {"schema": "tangram.model/1", "name": "experts",
           "architecture": {"hidden": 256, "layers": 4, "heads": 8, "ffn_hidden": 512, "vocabulary": 1000, "mla": MLA,
                            "moe": MOE_RUN,
                            "encoders": [{"name": "v", "hidden": 128, "layers": 2, "heads": 4, "ffn_hidden": 256, "mla": MLA,
                                          "moe": MOE_RUN, "tokens_per_sample": 128}]},
           "training": {"sequence_length": 512, "global_batch_tokens": 8192, "routing_imbalance": 1.5,
                        "precision": "fp8", "wide_layers": {"first": 1, "last": 1},
                        "packing": {"mean_length": 100, "p95_length": 200}}}
BLOCK = {"hidden": 256, "heads": 8, "kv_heads": 4, "head_dim": 32, "ffn_hidden": 512, "norms_per_block": 2,
         "sliding_window": 128}
BLOCKS = {"schema": "tangram.model/1", "name": "blocks",
          "architecture": {"hidden": 256, "vocabulary": 1000,
                           "types": [{"name": "t", **BLOCK, "tokens": 512},
                                     {"name": "e", "hidden": 256, "heads": 8, "ffn_hidden": 512, "mla": MLA, "moe": MOE}],
                           "blocks": [{"type": "t", "count": 4}, {"type": "e", "count": 2}]},
          "training": {"sequence_length": 512, "global_batch_samples": 16,
                       "packing": {"lengths": [{"tokens": 64, "sequences": 10}, {"tokens": 512, "sequences": 1}]}}}
MAMBA = {"schema": "tangram.model/1", "name": "mamba",
         "architecture": {"hidden": 256, "layers": 4, "only": "mixer", "mamba2": MAMBA2, "vocabulary": 1000},
         "training": {"sequence_length": 512, "global_batch_samples": 16}}
DELTA = {"schema": "tangram.model/1", "name": "delta",
         "architecture": {"hidden": 256, "layers": 4, "gated_delta": GATED_DELTA, "ffn_hidden": 512, "vocabulary": 1000},
         "training": {"sequence_length": 512, "global_batch_samples": 16}}
HYBRID = {"schema": "tangram.model/1", "name": "hybrid",
          "architecture": {"hidden": 256, "vocabulary": 1000,
                           "types": [{"name": "m", "only": "mixer", "mamba2": MAMBA2},
                                     {"name": "d", "gated_delta": GATED_DELTA, "ffn_hidden": 512}],
                           "blocks": [{"type": "m", "count": 4}, {"type": "d", "count": 2}]},
          "training": {"sequence_length": 512, "global_batch_samples": 16}}
LORA = {"r": 8, "lora_alpha": 16}
MERGER = {"kind": "merger", "widths": [512, 256, 256], "norm": "layernorm", "norm_width": 512, "extra_parameters": 10}
VISION = {"name": "vision", "hidden": 128, "layers": 2, "heads": 4, "ffn_hidden": 256, "tokens_in": 64, "tokens_out": 16,
          "connector": MERGER}
AUDIO = {"name": "audio", "hidden": 128, "layers": 2, "heads": 4, "ffn_hidden": 256, "tokens_in": 64, "tokens_out": 8,
         "connector": {"kind": "resampler", "widths": [128, 64, 256], "queries": 8}}
FIXED = {"tp": 1, "cp": 1, "ep": 1}
ITEMS = {"mean": 1.5, "p95": 4, "max": 6, "none": 0.1, "tokens_in": 64, "tokens_out": 16}
MODULES = {"schema": "tangram.model/1", "name": "modules",
           "architecture": {"hidden": 256, "layers": 4, "heads": 8, "ffn_hidden": 512, "vocabulary": 1000,
                            "encoders": [VISION, AUDIO],
                            "edges": [{"from": "vision", "to": "language", "from_layers": [0], "into_layers": [0]},
                                      {"from": "audio", "to": "language"}]},
           "data": {"vision": ITEMS}, "training": {**TRAINING, "constraints": {"vision": FIXED}, "lora": LORA}}
EXPLICIT = {"schema": "tangram.model/1", "name": "explicit",
            "architecture": {"hidden": 256, "vocabulary": 1000, "extra_embedding_parameters": 100,
                             "types": [{"name": "v", "hidden": 128, "heads": 4, "ffn_hidden": 256, "causal": False,
                                        "tokens": 64},
                                       {"name": "t", "heads": 8, "ffn_hidden": 512}],
                             "blocks": [{"type": "v", "count": 2}, {"type": "t", "count": 4}],
                             "modules": [{"name": "vision", "kind": "encoder", "blocks": 2, "tokens_in": 64,
                                          "tokens_out": 16, "patch_parameters": 100,
                                          "connector": {"kind": "resampler", "widths": [128, 64, 256], "queries": 16,
                                                        "norm": "layernorm", "norm_width": 128, "extra_parameters": 10}},
                                         {"name": "language", "kind": "language", "blocks": 4, "constraint": FIXED, "lora": LORA}]},
            "training": {"sequence_length": 512, "global_batch_samples": 16}}
PROFILE_BLOCK = {"hidden": 256, "heads": 8, "moe": MOE, "mla": MLA}
ROW = {"tp": 1, "cp": 1, "ep": 1, "etp": 1, "samples": 1, "forward_ms": 0.02, "backward_ms": 0.04, "activation_bytes": 1000}
PROFILE = {"schema": "tangram.profile/1", "gpu": "A10G", "source": "made up", "includes_tp_communication": False,
           "units": [{"kind": "block", "block": BLOCK, "dtype": "bf16", "flash_attention": True, "sequence_length": 512,
                      "rows": [dict(ROW)]},
                     {"kind": "block", "block": PROFILE_BLOCK, "dtype": "bf16", "flash_attention": True,
                      "sequence_length": 512, "rows": [dict(ROW)]},
                     {"kind": "block", "block": {"hidden": 256, "only": "mixer", "mamba2": MAMBA2}, "dtype": "bf16",
                      "flash_attention": True, "sequence_length": 512, "rows": [dict(ROW)]},
                     {"kind": "block", "block": {"hidden": 256, "gated_delta": GATED_DELTA, "ffn_hidden": 512},
                      "dtype": "bf16", "flash_attention": True, "sequence_length": 512, "rows": [dict(ROW)]},
                     {"kind": "head", "vocabulary": 1000, "hidden": 256, "dtype": "bf16", "sequence_length": 512,
                      "rows": [dict(ROW)]}],
           "collectives": [{"operation": "all_reduce", "ranks_per_node": 2, "nodes": 1, "sharing": 1,
                            "points": [{"bytes": 1024, "time_us": 20}, {"bytes": 1048576, "time_us": 1200}]}]}


SCHEDULE = {"schema": "tangram.disaggregation/1", "cluster": {"name": "pair", "digest": "0"}, "kernels": ["1"],
            "objective": "throughput", "requests_per_micro_batch": 4,
            "predicted": {"period_s": 1e-5, "bound_s": 1e-5, "gap": 0, "simulated_period_s": 1e-5},
            "phases": [{"phase": "step", "passes": 1, "in_flight": 2, "latency_s": 1e-5}],
            "gpus": [{"gpu": name, "count": 1, "busy_s": 1e-5, "memory": 100, "usable_memory": 1000} for name in "AB"],
            "links": [{"from": "A", "to": "B", "lanes": 2}],
            "patterns": [{"phase": "step", "layers": [0], "kernels": [{"kernel": "k", "gpu": "A"}]}],
            "segments": [{"phase": "step", "gpu": "A", "kernels": ["k"], "sends": [0], "seconds": 1e-5},
                         {"phase": "step", "gpu": "A", "stream": 1, "waits": [0], "kernels": ["l"], "seconds": 1e-5},
                         {"phase": "step", "gpu": "B", "takes": [0], "kernels": ["m"], "seconds": 1e-5}],
            "copies": [{"buffer": "x", "ranges": [{"offset": 0, "bytes": 8}], "from": "A", "to": "B",
                        "link_seconds": 1e-6, "gpu_seconds": 1e-6}]}

SERVING = {"schema": "tangram.serving_measurements/1", "source": "by hand",
           "cases": [{"name": "dense", "cluster": "a100-l40s", "model": "gpt2-medium", "prompt_tokens": 64, "generated_tokens": 16,
                      "requests": 4, "message_us": 5, "message_gpu_us": 2,
                      "rows": [{"arm": "replicas", "in_flight": 2, "tokens_s": 1000, "published_tokens_s": 1100}]}]}


def resolved(schema, node):
    while "$ref" in node:
        node = schema["$defs"][node["$ref"].rsplit("/", 1)[1]]
    return node


def branches(schema, node):
    """The node, what it refers to, and its alternatives."""
    node = resolved(schema, node)
    yield node
    for word in ("oneOf", "anyOf", "allOf"):
        for choice in node.get(word, []):
            yield from branches(schema, choice)


def is_numeric(node):
    kinds = node.get("type", [])
    return bool({"integer", "number"} & set(kinds if isinstance(kinds, list) else [kinds]))


def names_of(schema, node, path=()):
    """Paths of all numbers of a schema; "*" stands for a member or an item of any name."""
    for branch in branches(schema, node):
        if is_numeric(branch):
            yield path
        for key, child in branch.get("properties", {}).items():
            yield from names_of(schema, child, (*path, key))
        for word in ("items", "additionalProperties"):
            if isinstance(branch.get(word), dict):
                yield from names_of(schema, branch[word], (*path, "*"))


def places_of(value, path=()):
    """Paths of all numbers of a document."""
    if isinstance(value, (dict, list)):
        pairs = value.items() if isinstance(value, dict) else enumerate(value)
        for key, child in pairs:
            yield from places_of(child, (*path, key))
    elif isinstance(value, (int, float)) and not isinstance(value, bool):
        yield path


def fits(place, name):
    return len(place) == len(name) and all(n in ("*", p) for p, n in zip(place, name))


def with_number(document, place, text):
    """The document as text, with `text` as written in the place of one number."""
    changed = copy.deepcopy(document)
    at = changed
    for key in place[:-1]:
        at = at[key]
    at[place[-1]] = "@here@"
    return json.dumps(changed, indent=1).replace('"@here@"', text)


def limits_at(schema, name):
    """The bounds of a number, in its schema: both are taken."""
    node, found = [schema], []
    for key in name:
        step = []
        for one in node:
            for branch in branches(schema, one):
                if key == "*":
                    step += [branch[w] for w in ("items", "additionalProperties") if isinstance(branch.get(w), dict)]
                elif key in branch.get("properties", {}):
                    step.append(branch["properties"][key])
        node = step
    for one in node:
        for branch in branches(schema, one):
            found += [json.dumps(branch[bound]) for bound in ("minimum", "maximum") if bound in branch]
    return found


class Judge:
    def __init__(self, binary, root, folder):
        self.binary, self.root, self.folder = binary, root, folder
        self.cases, self.missing, self.unread = [], [], []
        Path(folder, "tiny.json").write_bytes((root / "tests/cli/inputs/tiny.json").read_bytes())
        Path(folder, "dense.json").write_text(json.dumps(DENSE), encoding="utf-8")

    def add(self, kind, documents, commands):
        schema = json.loads((self.root / f"configs/schemas/{kind}.schema.json").read_text(encoding="utf-8"))
        for document in documents:
            Path(self.folder, f"{kind}.json").write_text(json.dumps(document, indent=1), encoding="utf-8")
            for command in commands:
                trial = Trial([self.binary, *command], self.folder, LIMIT_S)
                if trial.code != 0:
                    self.unread.append(f"{kind}: {trial}")
        for name in sorted(set(names_of(schema, schema))):
            held = [(document, place) for document in documents for place in places_of(document) if fits(place, name)]
            if not held:
                self.missing.append(f"{kind}: {'/'.join(name)}")
                continue
            document, place = held[0]
            for text in dict.fromkeys(EXTREMES + limits_at(schema, name)):
                for command in commands:
                    self.cases.append((kind, with_number(document, place, text), place, text, command))

    def run(self, cases):
        """What went wrong, and all runs."""
        trials, wrong = [], []
        for kind, text, place, number, command in cases:
            Path(self.folder, f"{kind}.json").write_text(text, encoding="utf-8")
            trial = Trial([self.binary, *command], self.folder, LIMIT_S)
            trials.append(trial)
            if not trial.wrong and trial.code == 4 and not trial.has_place(f"{kind}.json"):
                trial.wrong = "an error without its place"
            if trial.wrong:
                wrong.append(f"{kind} {'/'.join(map(str, place))} = {number}: {trial}")
        return trials, wrong


def made_plan(binary, folder):
    command = [binary, "plan", "tiny.json", "dense.json", "-q", "-o", "made.json"]
    subprocess.run(command, cwd=folder, check=True, stdout=subprocess.DEVNULL, env=ENVIRONMENT)
    return json.loads(Path(folder, "made.json").read_text(encoding="utf-8"))


def main():
    binary, root = Path(sys.argv[1]).resolve(), Path(sys.argv[2]).resolve()
    whole = "all" in (sys.argv[3:] + [os.environ.get("TANGRAM_EXTREMES", "")])
    with tempfile.TemporaryDirectory(prefix="tangram-extremes-") as folder:
        judge = Judge(binary, root, folder)
        Path(folder, "cluster-base.json").write_text(json.dumps(CLUSTER), encoding="utf-8")
        judge.add("cluster", [CLUSTER], [["islands", "cluster.json"], ["plan", "cluster.json", "dense.json"]])
        judge.add("model", [DENSE, EXPERTS, BLOCKS, MODULES, EXPLICIT, MAMBA, DELTA, HYBRID], [["plan", "tiny.json", "model.json"]])
        judge.add("profile", [PROFILE], [["profile", "show", "profile.json"],
                                         ["plan", "cluster-base.json", "dense.json", "--profile", "profile.json"]])
        measured = json.loads((root / "tests/cli/inputs/measurements.json").read_text(encoding="utf-8"))
        judge.add("measurements", [measured], [["accuracy", "measurements.json"]])
        judge.missing = [name for name in judge.missing if not name.startswith("measurements")]  # rows differ in what they print
        judge.add("disaggregation", [SCHEDULE], [["disaggregate", "simulate", "disaggregation.json"]])
        judge.add("serving_measurements", [SERVING], [["disaggregate", "accuracy", "serving_measurements.json"]])
        plan = made_plan(binary, folder)
        judge.add("launch_plan", [plan], [["check", "launch_plan.json"], ["simulate", "launch_plan.json"]])
        judge.missing = [name for name in judge.missing if not name.startswith("launch_plan")]  # a plan holds what applies
        assert not judge.unread, "\n".join(judge.unread)
        assert not judge.missing, f"no document holds {judge.missing}"
        cases = judge.cases if whole else random.Random(7).sample(judge.cases, SAMPLE)
        trials, wrong = judge.run(cases)
    print(f"{len(trials)} of {len(judge.cases)} runs; slowest: {slowest(trials)}")
    if wrong:
        print("\n".join(wrong[:40]))
        sys.exit(f"{len(wrong)} runs are wrong")


if __name__ == "__main__":
    main()
