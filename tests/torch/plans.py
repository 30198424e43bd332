"""Small launch plans by hand: every technique, every way in which stages and pipelines may be unlike."""

import copy
import itertools

from tangram_torch.config import details_of
from tangram_torch.launch_plan import plan_of
from tangram_torch.topology import Place


def block_type(name="dense", hidden=16, heads=4, kv_heads=4, head_dim=4, ffn=24, gated=True, bias=False, norm="rmsnorm",
               norms=2, **more):
    record = {"name": name, "hidden": hidden, "heads": heads, "kv_heads": kv_heads, "head_dim": head_dim,
              "qk_norm": False, "sliding_window": 0, "causal": True, "qkv_bias": bias, "output_bias": bias,
              "gated": gated, "ffn_bias": bias, "norm": norm, "norms_per_block": norms, "parallel_attention": False}
    if ffn:
        record["ffn_hidden"] = ffn
    record.update(more)
    return record


def moe(experts=4, chosen=2, hidden=8, shared=0, **more):
    return {"experts": experts, "experts_per_token": chosen, "expert_hidden": hidden, "shared_hidden": shared,
            "shared_gate": False, "router_bias": False, **more}


def model(types, blocks, tied=False, positions=0, norm="rmsnorm", projection=0, vocabulary=24, final_norm=True):
    architecture = {"vocabulary": vocabulary, "hidden": 16, "tied_embeddings": tied, "learned_positions": positions,
                    "norm": norm, "final_norm": final_norm, "extra_embedding_parameters": 0, "types": types,
                    "blocks": blocks}
    if projection:
        architecture["embedding_projection"] = projection
    return architecture


LLAMA = model([block_type(kv_heads=2)], [{"type": "dense", "count": 4}])
GPT = model([block_type(gated=False, bias=True, norm="layernorm")], [{"type": "dense", "count": 4}], tied=True,
            positions=12, norm="layernorm")
NEOX = model([block_type(gated=False, bias=True, norm="layernorm", parallel_attention=True)],
             [{"type": "dense", "count": 4}], norm="layernorm")
OPT_350M = model([block_type(gated=False, bias=True, norm="layernorm")], [{"type": "dense", "count": 4}], tied=True,
                 positions=12, norm="layernorm", projection=8, final_norm=False)
GEMMA = model([block_type(norms=4, kv_heads=2), block_type("windowed", norms=4, kv_heads=2, sliding_window=3)],
              [{"type": "dense", "count": 1}, {"type": "windowed", "count": 1}] * 2, tied=True)
QWEN = model([block_type(kv_heads=2, qkv_bias=True, qk_norm=True)], [{"type": "dense", "count": 4}])
MIXTRAL = model([block_type("moe", kv_heads=2, ffn=0, moe=moe())], [{"type": "moe", "count": 4}])
QWEN_MOE = model([block_type("moe", ffn=0, moe=moe(shared=8, shared_gate=True))], [{"type": "moe", "count": 4}])
EXPERT_BIAS = model([block_type("moe", ffn=0, bias=True, moe=moe())], [{"type": "moe", "count": 4}])
LATENT = {"q_lora_rank": 6, "kv_lora_rank": 4, "qk_nope_head_dim": 4, "qk_rope_head_dim": 2, "v_head_dim": 3}
GROUPED = model([block_type("moe", ffn=0, moe=moe(expert_groups=2, groups_per_token=1))],
                [{"type": "moe", "count": 4}])
DEEPSEEK = model([block_type(mla=LATENT), block_type("moe", ffn=0, mla=LATENT, moe=moe(shared=8, router_bias=True))],
                 [{"type": "dense", "count": 1}, {"type": "moe", "count": 3}])


def encoder(name, hidden, blocks, tokens_in, tokens_out, columns, connector=None, trainable=True, **more):
    """(its type of blocks, its module); `columns`: of the embedding of its tokens."""
    module = {"name": name, "kind": "encoder", "blocks": blocks, "tokens_in": tokens_in, "tokens_out": tokens_out,
              "patch_parameters": columns * hidden, "trainable": trainable}
    if connector:
        module["connector"] = {"kind": "mlp", "bias": True, "norm": "none", "extra_parameters": 0, "trainable": True,
                               **connector}
    record = block_type(name, hidden=hidden, head_dim=hidden // 4, ffn=12, causal=False, **more)
    return {**record, "sliding_window": more.get("sliding_window", tokens_in), "tokens": tokens_in + 1}, module


def multimodal(language, *encoders, blocks=2):
    """The first blocks of a language model, behind encoders."""
    types, modules = zip(*encoders)
    count = sum(module["blocks"] for module in modules)
    return {**language, "types": [*types, *language["types"]],
            "blocks": [{"type": m["name"], "count": m["blocks"]} for m in modules]
            + [{"type": language["types"][0]["name"], "count": blocks}],
            "extra_embedding_parameters": sum(module["patch_parameters"] for module in modules),
            "modules": [*modules, {"name": "language", "kind": "language", "blocks": blocks, "trainable": True}],
            "edges": [{"from": module["name"], "to": "language"} for module in modules]}


def frozen(architecture, *names):
    """As `freeze` names them: "vision", "vision.connector"."""
    made = copy.deepcopy(architecture)
    for name in names:
        module, connector = next(m for m in made["modules"] if m["name"] == name.split(".")[0]), "." in name
        (module["connector"] if connector else module)["trainable"] = False
    return made


def adapted(architecture, *targets, base="none"):
    """With adapters of scale 1.5 (reference.py) beside these matrices of the language model, or all of them. `base`: how
    the frozen matrices are held."""
    made = copy.deepcopy(architecture)
    count = sum(run["count"] for run in made["blocks"])
    modules = made.setdefault("modules", [{"name": "language", "kind": "language", "blocks": count}])
    language = modules[-1]
    language.update(trainable=False, lora={"r": 2, "lora_alpha": 3, "target_modules": list(targets or ADAPTABLE),
                                           "base_quantization": base})
    return made


ADAPTABLE = ("q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj")


def lanes(module, tp=1, sp=False, zero1=False, recompute="none"):
    return {"module": module, "tp": tp, "sequence_parallel": sp, "zero1": zero1, "recompute": recompute}


# A class token, learned positions, a merger with a norm behind the merge; rotary positions, a pool.
VISION = encoder("vision", 8, 2, 5, 2, 9, {"kind": "merger", "widths": [16, 12, 16], "norm": "layernorm", "norm_width": 16},
                 gated=False, bias=True, norm="layernorm")
AUDIO = encoder("audio", 24, 1, 6, 3, 6, {"kind": "pool", "widths": [24, 16], "norm": "rmsnorm", "norm_width": 24,
                                          "bias": False}, kv_heads=2)
LLAVA = multimodal(LLAMA, VISION)
OMNI = multimodal(GPT, encoder("vision", 8, 1, 4, 2, 3, {"kind": "merger", "widths": [16, 8, 12, 16], "norm": "rmsnorm",
                                                         "norm_width": 8}, sliding_window=2), AUDIO)
THREE_HEADS = multimodal(LLAMA, encoder("vision", 12, 2, 5, 2, 9, {"kind": "merger", "widths": [24, 16]}, heads=3,
                                        kv_heads=3))
FUYU = multimodal(QWEN, encoder("pixels", 16, 2, 3, 3, 5))


def plan_from(record):
    """With the details of a config.json, where the record has one."""
    plan = plan_of(record)
    return plan.with_details(details_of(record["config"])) if "config" in record else plan


def part(samples, tp=1, cp=1, dp=1, ep=1, etp=1, sp=None, zero=0, recompute="none", layers=None, runs=None, replicate=1):
    record = {"samples": samples, "zero": zero,
              "parallel": {"tp": tp, "cp": cp, "dp": dp, "ep": ep, "etp": etp,
                           "sequence_parallel": tp > 1 if sp is None else sp},
              "recompute": {"granularity": recompute, "method": "block", "layers": 99 if layers is None else layers}}
    if replicate > 1:
        record["parallel"]["dp_replicate"] = replicate
    if runs:
        record["block_runs"] = [{"blocks": blocks, "zero": z, "recompute": r} for blocks, z, r in runs]
    return record


def make(architecture, pipelines, length=8, group=0, colocated=None):
    """pipelines: of each (samples, microbatch, stages), and of each stage (chunks, parts) or (chunks, parts, warm-up).
    colocated: (turns, encoders), whose blocks stages do not count."""
    plan = {"schema": "tangram.launch_plan/1", "plan_id": "by-hand",
            "model": {"name": "tiny", "architecture": architecture,
                      "training": {"sequence_length": length, "precision": "fp32", "gradient_bytes_per_parameter": 4,
                                   "global_batch_samples": sum(p[0] for p in pipelines),
                                   "flash_attention": True,
                                   "optimizer": {"name": "adam", "state_bytes_per_parameter": 12}}},
            "execution": {"interleaving": {"group": group}} if group else {}, "predicted": {"iteration_s": 0.1},
            "pipelines": [], "stages": [], "boundaries": [], "ranks": [],
            "islands": [{"id": 0, "gpu_type": "GPU"}]}
    if colocated:
        plan["colocated"] = {"turns": colocated[0], "encoders": colocated[1:]}
    for samples, microbatch, stages in pipelines:
        _add_pipeline(plan, samples, microbatch, stages, length)
    return plan


def _add_pipeline(plan, samples, microbatch, stages, length):
    first = len(plan["stages"])
    microbatches = -(-samples // microbatch)
    chunks = len(stages[0][0])
    group = plan["execution"].get("interleaving", {}).get("group", 0)
    for s, (blocks, parts, *warmup) in enumerate(stages):
        depth = len(stages) - 1 - s
        lead = warmup[0] if warmup else depth if chunks == 1 else (chunks - 1) * group + 2 * depth
        plan["stages"].append({"id": first + s, "pipeline": len(plan["pipelines"]), "chunks": blocks,
                               "embedding": s == 0, "head": s + 1 == len(stages),
                               "schedule": {"warmup": min(lead, microbatches * chunks)}, "parts": parts})
        for p, record in enumerate(parts):
            degrees = record["parallel"]
            count = degrees["tp"] * degrees["cp"] * degrees["dp"]
            record["ranks"] = {"first": len(plan["ranks"]), "count": count}
            for _ in range(count):
                rank = len(plan["ranks"])
                plan["ranks"].append({"rank": rank, "host": "h", "island": 0, "local_rank": rank, "stage": first + s, "part": p,
                                      "tp": 0, "cp": 0, "dp": 0, "ep": 0, "etp": 0})
    plan["pipelines"].append({"id": len(plan["pipelines"]), "samples": samples, "microbatch": microbatch,
                              "num_microbatches": microbatches, "stages": list(range(first, first + len(stages)))})
    behind = range(first + 1, first + len(stages)) if chunks == 1 else [*range(first + 1, first + len(stages)), first]
    for source, target in zip(range(first, first + len(stages)), behind):
        plan["boundaries"].append({"from": source, "to": target,
                                   "transfers": _transfers(plan, source, target, microbatch, length)})


def _transfers(plan, source, target, microbatch, length):
    whole = plan_of({**plan, "boundaries": [], "pipelines": []})
    length = whole.model.blocks[whole.stages[source].chunks[0].stop - 1].tokens or length
    sides = [[(rank, Place(rank, p)) for p in whole.stages[stage].parts for rank in p.ranks]
             for stage in (source, target)]
    transfers = []
    for (src, sender), (dst, receiver) in itertools.product(*sides):
        pairs = [(side.samples(microbatch), side.shard_range(length)) for side in (sender, receiver)]
        samples, positions = ((max(a.start, b.start), min(a.stop, b.stop)) for a, b in zip(*pairs))
        if samples[0] < samples[1] and positions[0] < positions[1]:
            transfers.append({"src": src, "dst": dst, "samples": list(samples), "seq": list(positions)})
    return transfers


def one_chunk(first, last):
    return [[first, last]]


def two_stages(left, right, microbatch=4, samples=8, **more):
    return lambda architecture, **options: make(
        architecture, [(samples, microbatch, [(one_chunk(0, 2), left), (one_chunk(2, 4), right)])], **more, **options)


def zero_bubble(plan, put_off=None, times=(3.0, 6.0, 2.5)):
    """The plan with its weight gradients put off: as many as the stage's place says, or `put_off`. Times of passes, in
    milliseconds, differ from part to part, so that stages wait here and there."""
    plan["execution"]["schedule"] = "zero-bubble"
    for stage in plan["stages"]:
        position = plan["pipelines"][stage["pipeline"]]["stages"].index(stage["id"])
        stage["schedule"]["put_off"] = position if put_off is None else put_off
        for number, record in enumerate(stage["parts"]):
            slower = 1 + 0.25 * ((stage["id"] + number) % 3)
            record["predicted"] = dict(zip(("forward_ms", "backward_ms", "weight_gradient_ms"),
                                           (slower * time for time in times)))
    for boundary in plan["boundaries"]:
        boundary.update(latency_ms=0.7, occupancy_ms=0.4)
    return plan


def zero_bubble_cases():
    """(name, plan)."""

    def like(name):
        return zero_bubble(dict(usual_cases())[name])

    def row(architecture, microbatches, *stages):
        cuts = [[[i, i + 1]] for i in range(4)]
        return make(architecture, [(2 * microbatches, 2, list(zip(cuts, map(copy.deepcopy, stages))))])

    plain = [part(2)]
    yield "zero bubble, four stages", zero_bubble(row(LLAMA, 6, plain, plain, plain, plain))
    yield "zero bubble, all weight gradients at the end", zero_bubble(row(LLAMA, 5, plain, plain, plain, plain), 5)
    yield "zero bubble, nothing beyond 1F1B is held", zero_bubble(row(LLAMA, 5, plain, plain, plain, plain), 0)
    yield "zero bubble, ZeRO 0 to 3 over two copies", zero_bubble(
        row(LLAMA, 5, *([part(2, dp=2, zero=zero)] for zero in range(4))))
    yield "zero bubble, tensor parallel with and without sequence parallel", zero_bubble(
        row(QWEN, 5, [part(2, tp=2)], [part(2, tp=2, sp=False)], [part(2, tp=4)], [part(2, tp=2, zero=1)]))
    yield "zero bubble, context parallel", zero_bubble(
        row(QWEN, 4, [part(2, cp=2)], [part(2, cp=2, tp=2)], plain, [part(2, cp=2, zero=2)]))
    yield "zero bubble, recompute block by block", zero_bubble(
        row(LLAMA, 5, [part(2, recompute="full")], [part(2, recompute="selective")],
            [part(2, dp=2, zero=3, recompute="full")], [part(2, tp=2, recompute="full")]))
    yield "zero bubble, experts", zero_bubble(
        row(MIXTRAL, 5, [part(2, dp=2, ep=2, zero=2)], [part(2, tp=2, etp=2)], [part(2, tp=2, ep=2, zero=3)], plain))
    yield "zero bubble, shared experts with a gate", zero_bubble(
        row(QWEN_MOE, 4, plain, [part(2, tp=2, ep=2)], [part(2, dp=2, ep=2, recompute="full")], plain))
    yield "zero bubble, latent attention, router correction", zero_bubble(
        row(DEEPSEEK, 4, plain, [part(2, tp=2, ep=2)], [part(2, dp=2, ep=2, zero=1)], plain))
    yield "zero bubble, a projected embedding, biases", zero_bubble(
        row(OPT_350M, 4, [part(2, dp=2, zero=3)], [part(2, tp=2)], plain, [part(2, dp=2, zero=3)]))
    partly = zero_bubble(row(LLAMA, 5, plain, [part(2, dp=2, zero=3, recompute="full")], [part(2, dp=2)], plain))
    for record in partly["stages"][1]["parts"]:
        record["predicted"]["weight_gradient_ms"] = 0.0
    partly["stages"][1]["schedule"]["put_off"] = 0
    yield "zero bubble, a stage whose backward passes are whole", partly
    for name in ("mixed stage", "mixed stage with experts under ZeRO", "runs of blocks under unlike ZeRO",
                 "two unequal pipelines with experts", "three pipelines, mixed stages, unlike degrees",
                 "a smaller last microbatch that leaves a replica idle", "tied table over two stages, unlike tp",
                 "more microbatches in flight", "four norms, windows"):
        yield "zero bubble, " + name, like(name)


def over_heads(plan):
    plan["model"]["training"]["context_exchange"] = "all-to-all"
    return plan


def cases():
    """(name, plan)."""
    yield from usual_cases()
    yield from zero_bubble_cases()
    yield from multimodal_cases()
    yield from colocated_cases()


def staged_cases():
    """(name, plan): every kind of message."""
    usual = dict(cases())
    for name in ("odd sequence under tensor parallel", "context parallel with experts", "ZeRO 3 over unequal samples",
                 "three pipelines, mixed stages, unlike degrees", "two encoders over three stages",
                 "a colocated encoder in three phases, unequal stages"):
        yield name, usual[name]


def adapter_cases():
    """(name, plan)."""
    whole = one_chunk(0, 4)
    yield "adapters on one rank", make(adapted(LLAMA), [(4, 2, [(whole, [part(2)])])])
    yield "adapters, replicated key-value heads", make(adapted(LLAMA), [(4, 2, [(whole, [part(2, tp=4)])])])
    yield "adapters without sequence parallel", make(adapted(LLAMA), [(4, 2, [(whole, [part(2, tp=2, sp=False)])])])
    yield "adapters beside two matrices, context parallel", make(
        adapted(QWEN, "q_proj", "down_proj"), [(4, 2, [(whole, [part(2, cp=2, tp=2)])])])
    for zero in range(1, 4):
        yield f"adapters under ZeRO {zero} over unequal samples", make(
            adapted(LLAMA), [(7, 3, [(whole, [part(3, dp=2, tp=2, zero=zero)])])])
    yield "adapters under ZeRO 3 inside groups", make(
        adapted(LLAMA), [(7, 4, [(whole, [part(4, dp=4, zero=3, replicate=2)])])])
    yield "adapters, tied table over two stages", two_stages([part(4, tp=2, zero=1)], [part(4, tp=4, zero=2)])(adapted(GPT))
    yield "adapters, recomputed in full and selectively", two_stages(
        [part(4, tp=2, recompute="full")], [part(4, dp=2, recompute="selective")])(adapted(LLAMA))
    yield "adapters of unequal pipelines", make(
        adapted(LLAMA), [(6, 2, [(one_chunk(0, 3), [part(2, tp=2)]), (one_chunk(3, 4), [part(2)])]),
                         (3, 3, [(whole, [part(3, dp=3, zero=1)])])])
    # Without tensor parallelism by columns, whose ranks have scales of their own where rows are this short.
    yield "adapters beside 4 bits", make(adapted(LLAMA, base="nf4"), [(4, 2, [(whole, [part(2)])])])
    yield "adapters beside 4 bits, context parallel, with biases", make(
        adapted(QWEN, base="nf4-double"), [(4, 2, [(whole, [part(2, cp=2)])])])
    for zero in (1, 3):
        yield f"adapters beside 4 bits under ZeRO {zero} over unequal samples", make(
            adapted(LLAMA, base="nf4-double"), [(7, 3, [(whole, [part(3, dp=3, zero=zero)])])])
    yield "adapters beside 4 bits, recomputed over two stages", two_stages(
        [part(4, dp=2, zero=3, recompute="full")], [part(4, dp=4, zero=3, recompute="selective")])(
            adapted(GPT, base="nf4"))
    yield "adapters beside experts in 4 bits", make(
        adapted(QWEN_MOE, base="nf4"), [(4, 2, [(whole, [part(2, dp=2, ep=2, zero=3)])])])
    yield "adapters beside latent attention in 4 bits", make(
        adapted(DEEPSEEK, base="nf4-double"), [(4, 2, [(whole, [part(2, dp=2, ep=2)])])])
    yield "adapters beside shared experts", make(
        adapted(QWEN_MOE), [(4, 2, [(whole, [part(2, tp=2, dp=2, ep=2, zero=1)])])])
    yield "adapters beside latent attention", make(adapted(DEEPSEEK), [(4, 2, [(whole, [part(2, tp=2, ep=2)])])])
    yield "adapters, interleaved", make(
        adapted(LLAMA), [(8, 2, [([[0, 1], [2, 3]], [part(2, tp=2)]), ([[1, 2], [3, 4]], [part(2, dp=2, zero=1)])])],
        group=2)
    yield "adapters behind a trained encoder", make(
        adapted(LLAVA), [(8, 2, [(one_chunk(0, 2), [part(2)]), (one_chunk(2, 4), [part(2, tp=2)])])])
    yield "adapters behind an encoder whose weight gradients are put off", zero_bubble(make(
        adapted(LLAVA), [(8, 2, [(one_chunk(0, 3), [part(2, dp=2)]), (one_chunk(3, 4), [part(2, zero=1)])])]))
    yield "zero bubble with adapters alone", zero_bubble(make(
        adapted(LLAMA), [(8, 2, [(one_chunk(0, 2), [part(2, dp=2, zero=2)]), (one_chunk(2, 4), [part(2)])])]))
    yield "adapters behind a frozen encoder", make(
        adapted(frozen(LLAVA, "vision")), [(8, 2, [(one_chunk(0, 2), [part(2)]), (one_chunk(2, 4), [part(2, dp=2)])])])


def usual_cases():
    """(name, plan)."""
    yield from adapter_cases()
    yield "one rank", make(LLAMA, [(4, 2, [(one_chunk(0, 4), [part(2)])])])
    yield "tensor parallel, replicated key-value heads", make(LLAMA, [(4, 2, [(one_chunk(0, 4), [part(2, tp=4)])])])
    yield "tensor parallel without sequence parallel", make(
        LLAMA, [(4, 2, [(one_chunk(0, 4), [part(2, tp=4, sp=False)])])])
    yield "odd sequence under tensor parallel", two_stages([part(4, tp=2, sp=False)], [part(4, tp=4, sp=False)],
                                                          length=7)(GPT)
    yield "context parallel", make(LLAMA, [(4, 2, [(one_chunk(0, 4), [part(2, cp=2, tp=2)])])])
    for zero in range(4):
        yield f"ZeRO {zero} over unequal samples", make(
            LLAMA, [(7, 3, [(one_chunk(0, 4), [part(3, dp=2, tp=2, zero=zero)])])])
    for zero in range(1, 4):
        yield f"ZeRO {zero} inside groups", make(
            LLAMA, [(7, 4, [(one_chunk(0, 4), [part(4, dp=4, zero=zero, replicate=2)])])])
        yield f"experts under ZeRO {zero} inside groups", make(
            MIXTRAL, [(8, 4, [(one_chunk(0, 2), [part(4, dp=4, zero=zero, replicate=2)]),
                              (one_chunk(2, 4), [part(4, dp=4, ep=2, zero=zero, replicate=2)])])])
    yield "groups beside another pipeline", make(GPT, [(8, 4, [(one_chunk(0, 4), [part(4, dp=4, zero=3, replicate=2)])]),
                                                       (4, 2, [(one_chunk(0, 4), [part(2, dp=2, zero=2)])])])
    yield "fan-in from dp 2 x tp 1 to tp 4", two_stages([part(4, dp=2)], [part(4, tp=4)])(LLAMA)
    yield "fan-out from tp 2 to dp 3", two_stages([part(6, tp=2)], [part(6, dp=3)], 6, 18)(GPT)
    yield "overlap of dp 2 and dp 3, cp on one side", two_stages([part(6, dp=2, cp=2)], [part(6, dp=3)], 6, 12)(QWEN)
    yield "tied table over two stages, unlike tp", two_stages([part(4, tp=2, zero=1)], [part(4, tp=4, zero=2)])(GPT)
    yield "tied table on one stage under ZeRO 3", make(GPT, [(4, 2, [(one_chunk(0, 4), [part(2, dp=2, zero=3)])])])
    yield "recompute in full, the first layers, selective", make(
        LLAMA, [(8, 2, [(one_chunk(0, 2), [part(2, tp=2, recompute="full", layers=1)]),
                        (one_chunk(2, 3), [part(2, recompute="selective")]),
                        (one_chunk(3, 4), [part(2, dp=2, recompute="full", zero=3)])])])
    yield "runs of blocks under unlike ZeRO", make(
        LLAMA, [(8, 4, [(one_chunk(0, 4), [part(4, dp=4, zero=1,
                                                runs=[(1, 0, "none"), (2, 3, "full"), (1, 2, "selective")])])])])
    yield "mixed stage", two_stages([part(1), part(3, tp=2)], [part(2, dp=2), part(2, cp=2)])(LLAMA)
    yield "mixed stage with experts under ZeRO", two_stages(
        [part(2, ep=2, dp=2, zero=2), part(2, tp=2, ep=2)], [part(4, dp=2, ep=2, zero=3)])(MIXTRAL)
    yield "two unequal pipelines", make(GPT, [(6, 2, [(one_chunk(0, 3), [part(2, tp=2)]), (one_chunk(3, 4), [part(2)])]),
                                              (3, 3, [(one_chunk(0, 4), [part(3, dp=3, zero=1)])])])
    yield "two unequal pipelines with experts", make(
        MIXTRAL, [(6, 2, [(one_chunk(0, 3), [part(2, dp=2, ep=2)]), (one_chunk(3, 4), [part(2, tp=2, etp=2)])]),
                  (3, 3, [(one_chunk(0, 4), [part(3, tp=2, ep=2, zero=3)])])])
    yield "more microbatches in flight", make(
        LLAMA, [(12, 2, [(one_chunk(0, 2), [part(2)], 3), (one_chunk(2, 4), [part(2, tp=2)], 0)])])
    yield "a smaller last microbatch that leaves a replica idle", two_stages([part(4, dp=4)], [part(4, tp=2)], 4, 9)(
        LLAMA)
    yield "idle replicas with experts", two_stages([part(4, dp=4, ep=4, zero=2)], [part(4, tp=2, ep=2)], 4, 9)(MIXTRAL)
    yield "interleaved", make(
        LLAMA, [(8, 2, [([[0, 1], [2, 3]], [part(2, tp=2)]), ([[1, 2], [3, 4]], [part(2, dp=2, zero=1)])])], group=2)
    yield "interleaved, tied, a group that is not whole", make(
        GPT, [(10, 2, [([[0, 1], [2, 3]], [part(2)]), ([[1, 2], [3, 4]], [part(2, recompute="full")])])], group=2)
    yield "interleaved, unlike degrees", make(
        LLAMA, [(8, 4, [([[0, 1], [2, 3]], [part(4, tp=2, dp=2, zero=1)]),
                        ([[1, 2], [3, 4]], [part(4, dp=2, zero=3)])])], group=2)
    yield "interleaved, a mixed stage", make(
        LLAMA, [(8, 2, [([[0, 1], [2, 3]], [part(1), part(1)]), ([[1, 2], [3, 4]], [part(2, tp=2)])])], group=2)
    yield "experts over ep 4", make(MIXTRAL, [(8, 4, [(one_chunk(0, 4), [part(4, dp=4, ep=4)])])])
    yield "experts over ep 2 x expert-tp 2 and tp", make(
        MIXTRAL, [(4, 2, [(one_chunk(0, 4), [part(2, dp=2, tp=2, ep=2, etp=2)])])])
    yield "experts over ep 2 beside copies, recomputed", make(
        MIXTRAL, [(8, 4, [(one_chunk(0, 4), [part(4, dp=4, ep=2, zero=1, recompute="full")])])])
    yield "experts under tp without sequence parallel", make(
        QWEN_MOE, [(4, 2, [(one_chunk(0, 4), [part(2, tp=2, ep=2, sp=False)])])])
    yield "shared experts with a gate", make(QWEN_MOE, [(4, 2, [(one_chunk(0, 4), [part(2, tp=2, ep=2)])])])
    yield "experts with biases over expert-tp", make(
        EXPERT_BIAS, [(4, 2, [(one_chunk(0, 4), [part(2, tp=2, dp=2, etp=2, ep=2)])])])
    yield "latent attention, router correction", make(
        DEEPSEEK, [(8, 4, [(one_chunk(0, 1), [part(4, tp=2)]), (one_chunk(1, 4), [part(4, dp=2, tp=2, ep=4, zero=1)])])])
    yield "experts of the best groups", make(GROUPED, [(4, 2, [(one_chunk(0, 4), [part(2, tp=2, ep=2)])])])
    yield "parallel attention", two_stages([part(4, tp=2)], [part(4, dp=2, tp=2)])(NEOX)
    yield "projected embedding, no last norm", two_stages([part(4, tp=2)], [part(4, dp=2, zero=3)])(OPT_350M)
    yield "four norms, windows", make(GEMMA, [(4, 2, [(one_chunk(0, 4), [part(2, cp=2, tp=2, zero=2)])])])
    yield "biases and norms on heads", make(QWEN, [(4, 2, [(one_chunk(0, 4), [part(2, tp=4, zero=1)])])])
    yield "context parallel with experts", make(
        MIXTRAL, [(4, 2, [(one_chunk(0, 4), [part(2, cp=2, tp=2, ep=4, zero=1)])])])
    yield "heads exchanged for positions", over_heads(
        two_stages([part(4, cp=2, zero=2)], [part(4, cp=2, dp=2, recompute="selective")])(LLAMA))
    yield "heads exchanged for positions, repeated keys and values, tensor parallel", over_heads(
        make(QWEN, [(4, 2, [(one_chunk(0, 4), [part(2, cp=2, tp=2)])])]))
    yield "heads exchanged for positions, windows", over_heads(
        make(GEMMA, [(4, 2, [(one_chunk(0, 4), [part(2, cp=2, recompute="full")])])]))
    yield "heads exchanged for positions, latent attention", over_heads(
        make(DEEPSEEK, [(4, 2, [(one_chunk(0, 4), [part(2, cp=4, ep=2)])])]))
    yield "three pipelines, mixed stages, unlike degrees", make(LLAMA, [
        (4, 2, [(one_chunk(0, 2), [part(1), part(1)]), (one_chunk(2, 4), [part(2, tp=2)])]),
        (4, 2, [(one_chunk(0, 1), [part(2)]), (one_chunk(1, 4), [part(2, dp=2, zero=3)])]),
        (1, 1, [(one_chunk(0, 4), [part(1)])])])
    yield from as_config_says()


def multimodal_cases():
    """(name, plan)."""
    yield "an encoder on one rank", make(LLAVA, [(4, 2, [(one_chunk(0, 4), [part(2)])])])
    yield "an encoder cut over stages, microbatches without items", make(
        LLAVA, [(6, 1, [(one_chunk(0, 1), [part(1)]), (one_chunk(1, 3), [part(1)]), (one_chunk(3, 4), [part(1)])])])
    yield "an encoder under tp 2, its language model under tp 4", two_stages([part(2, tp=2)], [part(2, tp=4)], 2, 6)(LLAVA)
    yield "an encoder of three heads, its language model under tp 4 and under cp 2 with tp 2", make(
        THREE_HEADS, [(4, 2, [(one_chunk(0, 2), [part(2)]), (one_chunk(2, 3), [part(2, tp=4)]),
                              (one_chunk(3, 4), [part(2, cp=2, tp=2)])])])
    yield "an encoder under dp 2 without sequence parallel, its language model under cp 2", two_stages(
        [part(4, dp=2, tp=2, sp=False)], [part(4, cp=2, tp=2)])(LLAVA)
    yield "an encoder and its language model under cp 2 and tp 2", make(
        LLAVA, [(4, 2, [(one_chunk(0, 4), [part(2, cp=2, tp=2, zero=1)])])])
    yield "an encoder recomputed, under unlike ZeRO", make(
        LLAVA, [(7, 3, [(one_chunk(0, 4), [part(3, dp=2, zero=2, runs=[(1, 3, "full"), (1, 1, "selective"), (1, 2, "full"),
                                                                       (1, 0, "none")])])])])
    yield "two encoders over three stages", make(
        OMNI, [(6, 2, [(one_chunk(0, 1), [part(2, tp=2)]), (one_chunk(1, 2), [part(2, dp=2, zero=3)]),
                       (one_chunk(2, 4), [part(2, cp=2)])])], length=12)
    yield "two encoders under tp 4", make(OMNI, [(4, 2, [(one_chunk(0, 4), [part(2, tp=4)])])], length=12)
    yield "an encoder without a connector", two_stages([part(2, tp=2)], [part(2)], 2, 4)(FUYU)
    yield "two unequal pipelines with an encoder", make(LLAVA, [
        (4, 2, [(one_chunk(0, 2), [part(1), part(1)]), (one_chunk(2, 4), [part(2)])]),
        (3, 3, [(one_chunk(0, 4), [part(3, tp=2)])])])
    yield "a frozen encoder under ZeRO 3", two_stages([part(4, dp=2, zero=3, recompute="full")], [part(4, tp=2)])(
        frozen(LLAVA, "vision"))
    yield "a frozen encoder and connector, unequal pipelines", make(frozen(LLAVA, "vision", "vision.connector"), [
        (4, 2, [(one_chunk(0, 1), [part(2, tp=2)]), (one_chunk(1, 4), [part(2)])]),
        (2, 2, [(one_chunk(0, 4), [part(2, zero=1)])])])
    yield "the connector alone is trained", make(frozen(LLAVA, "vision", "language"), [
        (4, 2, [(one_chunk(0, 1), [part(2)]), (one_chunk(1, 3), [part(2, tp=2)]), (one_chunk(3, 4), [part(2)])])])
    yield "the encoder alone is trained", two_stages([part(2, tp=2)], [part(2, dp=2, zero=3)], 2, 4)(
        frozen(LLAVA, "vision.connector", "language"))
    yield "zero bubble, a frozen encoder", zero_bubble(make(frozen(LLAVA, "vision"), [
        (5, 1, [(one_chunk(0, 1), [part(1)]), (one_chunk(1, 3), [part(1)]), (one_chunk(3, 4), [part(1)])])]))
    yield "interleaved, with an encoder", make(
        LLAVA, [(8, 2, [([[0, 1], [2, 3]], [part(2, tp=2)]), ([[1, 2], [3, 4]], [part(2)])])], group=2)


def colocated_cases():
    """(name, plan)."""
    yield "a colocated encoder for each microbatch", make(
        LLAVA, [(5, 2, [(one_chunk(0, 2), [part(2, dp=2)])])], colocated=("per-microbatch", lanes("vision", zero1=True)))
    yield "lanes of tp 2 for each microbatch, two pipelines", make(
        LLAVA, [(4, 2, [(one_chunk(0, 2), [part(2, cp=2)])]), (3, 3, [(one_chunk(0, 2), [part(3, tp=2)])])],
        colocated=("per-microbatch", lanes("vision", tp=2, sp=True, recompute="full")))
    yield "a colocated encoder in three phases, unequal stages", make(
        LLAVA, [(7, 2, [(one_chunk(0, 1), [part(2, dp=2)]), (one_chunk(1, 2), [part(2, tp=2)])])],
        colocated=("three-phase", lanes("vision", zero1=True, recompute="selective")))
    yield "two colocated encoders in three phases, two pipelines", make(
        OMNI, [(5, 2, [(one_chunk(0, 1), [part(2, tp=2)]), (one_chunk(1, 2), [part(2, cp=2)])]),
               (4, 2, [(one_chunk(0, 1), [part(2, dp=2, zero=3)]), (one_chunk(1, 2), [part(2, tp=2, sp=False)])])],
        length=12, colocated=("three-phase", lanes("vision", tp=2), lanes("audio", tp=1, zero1=True)))
    yield "colocated encoders, one of them frozen", make(
        frozen(OMNI, "vision", "vision.connector"), [(6, 2, [(one_chunk(0, 1), [part(2, dp=2)]),
                                                             (one_chunk(1, 2), [part(2, tp=2)])])],
        length=12, colocated=("three-phase", lanes("vision", tp=2, sp=True), lanes("audio")))
    yield "a frozen colocated encoder, its connector trained, interleaved stages", make(
        multimodal(LLAMA, encoder("vision", 8, 1, 5, 2, 9, {"kind": "merger", "widths": [16, 16]}, False), blocks=4),
        [(8, 2, [([[0, 1], [2, 3]], [part(2)]), ([[1, 2], [3, 4]], [part(2)])])], group=2,
        colocated=("three-phase", lanes("vision", zero1=True)))


def as_config_says():
    """Details of layers that are not the usual ones."""

    def like(record, model_type, **config):
        return {**record, "config": {"model_type": model_type, "hidden_size": 16, **config}}

    yield "Gemma 2 as its config says", like(
        two_stages([part(4, tp=2)], [part(4, cp=2, recompute="selective")])(GEMMA), "gemma2",
        attn_logit_softcapping=2.0, final_logit_softcapping=3.0)
    yield "GPT-NeoX as its config says", like(two_stages([part(4, tp=2)], [part(4, dp=2)])(NEOX), "gpt_neox",
                                              rotary_pct=0.5, layer_norm_eps=0.01)
    yield "OPT-350M as its config says", like(two_stages([part(4, tp=2)], [part(4, dp=2)])(OPT_350M), "opt",
                                              do_layer_norm_before=False)
    yield "Llama 3.1 as its config says", like(
        two_stages([part(4, tp=2)], [part(4, cp=2)])(LLAMA), "llama", rope_theta=20.0,
        rope_scaling={"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
                      "original_max_position_embeddings": 12})
    yield "Qwen 1.5 MoE as its config says", like(
        make(QWEN_MOE, [(4, 2, [(one_chunk(0, 4), [part(2, tp=2, ep=2)])])]), "qwen2_moe")
    yield "DeepSeek V3 as its config says", like(
        two_stages([part(4, tp=2)], [part(4, dp=2, ep=2)])(DEEPSEEK), "deepseek_v3", n_group=2, topk_group=1,
        qk_nope_head_dim=4, qk_rope_head_dim=2, rope_theta=50.0,
        rope_scaling={"type": "yarn", "factor": 4, "mscale": 1.0, "mscale_all_dim": 0.5,
                      "original_max_position_embeddings": 8, "beta_fast": 1, "beta_slow": 0.1})
