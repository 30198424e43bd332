#!/usr/bin/env python3
"""A parallelizer in 40 lines: tensor parallelism inside a node, data parallelism for the rest, and as much sharding and
recompute as the memory asks for, by a rule of thumb. Try it: tangram parallelizers test scripts/plugin_sdk/example.py"""
import tangram_plugin as tangram

STATE_BYTES = {0: 18, 1: 6, 3: 0}  # of parameters, gradients and Adam per parameter that stay unsharded under ZeRO
ALL_BYTES = 18


def parameters(query):
    counted = query.model["counted"]
    each = {block["name"]: block["parameters"] for block in counted["blocks"]}
    total = sum(count * each[name] for name, count in query.blocks)
    return total + query.embedding * counted["embedding_parameters"] + query.head * counted["head_parameters"]


def static_bytes(query, tp, dp, zero):
    kept = STATE_BYTES[zero]
    return parameters(query) / tp * (kept + (ALL_BYTES - kept) / dp)


def solve(query):
    fits = False
    tp = 1
    while tp <= query.per_node:
        dp = query.gpus // tp
        allowed = (tp == 1 or "tp" in query.allow) and (dp == 1 or "dp" in query.allow)
        if query.per_node % tp == 0 and query.microbatch % dp == 0 and allowed:
            for zero in (z for z in STATE_BYTES if z == 0 or (dp > 1 and f"zero{z}" in query.allow)):
                if static_bytes(query, tp, dp, zero) > 0.9 * query.usable_bytes:
                    continue
                fits = True
                for mode in ("none", "selective", "full"):
                    if mode == "none" or f"recompute_{mode}" in query.allow:
                        yield query.plan(tp=tp, dp=dp, zero=zero, recompute=mode)
        tp *= 2
    if not fits:
        raise tangram.Infeasible("no degree leaves room", needed_bytes=int(parameters(query) * ALL_BYTES / query.gpus))


if __name__ == "__main__":
    tangram.serve(solve, name="example", version="1", techniques=["tp", "dp", "zero1", "zero3", "recompute"])
