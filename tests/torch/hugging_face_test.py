#!/usr/bin/env python3
"""Checkpoints of Hugging Face, in and out, and what config.json says; files of the safetensors format.

    hugging_face_test.py FOLDER_OF_TANGRAM_TORCH [NAME...]     exit 77 where no Python here has PyTorch
"""

import copy
import json
import os
import struct
import sys
import tempfile

sys.dont_write_bytecode = True
sys.path.insert(0, sys.argv[1])
from with_torch import need_torch

need_torch()
import torch

import hugging_face_models as models
import plans
from cases import Cases, refused
from one_process import OPTIONS, Tokens
from processes import run_ranks
from tangram_torch import checkpoint, hugging_face, peft, safetensors
from tangram_torch.config import details_of, read_details
from tangram_torch.run import Run
from tangram_torch.weights import weights_of_model, whole

LENGTH = 8
LAYOUTS = {"one rank": [([[0, 4]], [plans.part(4)])],
           "unlike stages": [([[0, 1]], [plans.part(4, tp=2)]), ([[1, 4]], [plans.part(2), plans.part(2, tp=2, ep=2)])],
           "ZeRO": [([[0, 2]], [plans.part(4, dp=3, zero=3)]), ([[2, 4]], [plans.part(4, dp=2, tp=2, ep=2, zero=1)])]}
test = Cases()


def work_on(plan, rank, folder):
    """Leaves the rank's weights in the folder; the loss of a step."""
    initial = hugging_face.initial_from(os.path.join(folder, "checkpoint"), plan.model)
    run = Run(plan, rank, OPTIONS, Tokens(plan.model.vocabulary, plan.training.batch), initial)
    held = [(slot.held.name, slot.held.ranges, flat.parameters[slot.held.name].detach().clone())
            for flat in run.program.flats for slot in flat.slots]
    held += [(f"blocks.{block}.router_correction", (range(len(router.correction)),), router.correction.clone())
             for block, router in run.program.routers.items() if router.shape.router_bias]
    torch.save([(name, [(r.start, r.stop) for r in ranges], value) for name, ranges, value in held],
               os.path.join(folder, f"weights{rank}"))
    return run.step().loss


def record_of(config, architecture, layout):
    stages = copy.deepcopy(LAYOUTS[layout])
    if not any("moe" in block for block in architecture["types"]):
        for part in (part for _, parts in stages for part in parts):
            part["parallel"]["ep"] = 1
    return {**plans.make(architecture, [(4, 4, stages)], length=LENGTH), "config": config}


def judge_family(config, architecture):
    tensors = models.tensors_of(config)
    batch = Tokens(models.VOCABULARY, 4).tokens(range(4), LENGTH + 1)
    right = models.loss_of(config, tensors, batch)
    for files, layout in enumerate(("one rank", "unlike stages"), 1):
        record = record_of(config, architecture, layout)
        plan = plans.plan_from(record)
        with tempfile.TemporaryDirectory() as folder:
            models.write_folder(os.path.join(folder, "checkpoint"), config, tensors, files)
            losses = run_ranks(record, work_on, folder)
            test.equal([round(loss - right, 9) for loss in losses], [0.0] * len(losses), f"loss of {layout}")
            pieces = [(name, tuple(range(*r) for r in ranges), value) for rank in range(len(plan.ranks))
                      for name, ranges, value in torch.load(os.path.join(folder, f"weights{rank}"))]
            judge_export(folder, plan, unlike(pieces), tensors)


def judge_export(folder, plan, pieces, tensors):
    out, config = os.path.join(folder, "out"), os.path.join(folder, "checkpoint", "config.json")
    hugging_face.export_to(out, plan.model, config, pieces, torch.float32, shard_bytes=20_000)
    with open(os.path.join(out, "config.json"), "rb") as exported, open(config, "rb") as original:
        test.equal(exported.read(), original.read(), "config.json")
    with open(os.path.join(out, "model.safetensors.index.json"), encoding="utf-8") as file:
        index = json.load(file)
    test.equal(sorted(index["weight_map"]), sorted(tensors), "names")
    test.equal(index["metadata"]["total_size"], sum(4 * t.numel() for t in tensors.values()), "size")
    files = {path: safetensors.File(os.path.join(out, path)) for path in set(index["weight_map"].values())}
    for name, path in index["weight_map"].items():
        test.check(torch.equal(files[path].tensor(name), tensors[name]), f"{name} is exported as it was")


def unlike(pieces):
    """Without those that lie inside others. What several ranks hold alike comes several times."""
    for name, ranges, value in pieces:
        inside = any(other == name and theirs != ranges and all(set(a) <= set(b) for a, b in zip(ranges, theirs))
                     for other, theirs, _ in pieces)
        if not inside:
            yield name, ranges, value


@test
def every_family():
    for config, architecture in models.families():
        with test.within(config["model_type"]):
            judge_family(config, architecture)


def save_run(plan, rank, folder):
    """Leaves a checkpoint of the run."""
    initial = hugging_face.initial_from(os.path.join(folder, "checkpoint"), plan.model)
    run = Run(plan, rank, OPTIONS, Tokens(plan.model.vocabulary, plan.training.batch), initial)
    checkpoint.save(run, os.path.join(folder, "saved"), checkpoint.Position(0, 1.0, 0))


@test
def checkpoints_of_runs_are_exported():
    for config, architecture in models.families():
        if config["model_type"] not in ("gpt2", "gpt_neox", "qwen2_moe", "deepseek_v3"):
            continue
        record, tensors = record_of(config, architecture, "ZeRO"), models.tensors_of(config)
        with tempfile.TemporaryDirectory() as folder, test.within(config["model_type"]):
            models.write_folder(os.path.join(folder, "checkpoint"), config, tensors)
            run_ranks(record, save_run, folder)
            saved = checkpoint.latest(os.path.join(folder, "saved"))
            judge_export(folder, plans.plan_from(record), checkpoint.slices_of(saved), tensors)


def save_adapted(plan, rank, folder):
    """Leaves a checkpoint behind two steps; the loss of the third."""
    initial = hugging_face.initial_from(os.path.join(folder, "checkpoint"), plan.model, seed=3)
    run = Run(plan, rank, OPTIONS, Tokens(plan.model.vocabulary, plan.training.batch), initial)
    run.step(), run.step()
    checkpoint.save(run, os.path.join(folder, "saved"), checkpoint.Position(2, 1.0, 0))
    return run.step().loss


def merged(config, tensors, adapters, scale):
    """What the adapters make of the weights, which are the checkpoint's otherwise."""
    out = {name: tensor.double() for name, tensor in tensors.items()}
    for name in (name for name in adapters if name.endswith(".lora_A.weight")):
        matrix = name[len("base_model.model."):-len(".lora_A.weight")] + ".weight"
        out[matrix] = out[matrix] + scale * adapters[name.replace("lora_A", "lora_B")].double() @ adapters[name].double()
    return out


@test
def adapters_are_exported_for_peft():
    for config, architecture in models.families():
        if config["model_type"] not in ("llama", "qwen2_moe"):
            continue
        adapted, tensors = plans.adapted(architecture), models.tensors_of(config)
        record = record_of(config, adapted, "ZeRO")
        model = plans.plan_from(record).model
        with tempfile.TemporaryDirectory() as folder, test.within(config["model_type"]):
            models.write_folder(os.path.join(folder, "checkpoint"), config, tensors)
            losses = run_ranks(record, save_adapted, folder)
            out = os.path.join(folder, "out")
            pieces = checkpoint.slices_of(checkpoint.latest(os.path.join(folder, "saved")))
            peft.export_adapters(out, model, os.path.join(folder, "checkpoint", "config.json"), pieces, torch.float32)
            file = safetensors.File(os.path.join(out, "adapter_model.safetensors"))
            adapters = {name: file.tensor(name) for name in file.names}
            with open(os.path.join(out, "adapter_config.json"), encoding="utf-8") as text:
                said = json.load(text)
            name = "base_model.model.model.layers.1.self_attn.k_proj.lora_B.weight"
            test.equal(tuple(adapters[name].shape), (len(tensors["model.layers.1.self_attn.k_proj.weight"]), 2), "shape")
            test.equal((said["r"], said["lora_alpha"]), (2, 3), "config")
            test.check(("q_proj" in said["target_modules"]) is (config["model_type"] == "llama"), "names of modules")
            batch = Tokens(models.VOCABULARY, 4).tokens(range(4), LENGTH + 1)
            right = models.loss_of(config, merged(config, tensors, adapters, 1.5), batch)
            test.equal([abs(float(right) - loss) < 1e-6 for loss in losses], [True] * len(losses), "loss with adapters")
            test.check(abs(float(right) - models.loss_of(config, tensors, batch)) > 1e-4, "adapters have learned")


@test
def adapters_of_fused_matrices_are_refused():
    config, architecture = next(f for f in models.families() if f[0]["model_type"] == "gpt2")
    folder = tempfile.mkdtemp(dir=scratch)
    models.write_folder(folder, config, models.tensors_of(config))
    model = plans.plan_from(record_of(config, plans.adapted(architecture), "one rank")).model
    refused(test, lambda: peft.export_adapters(os.path.join(folder, "out"), model, os.path.join(folder, "config.json"), []),
            "gpt2", "in one matrix")


def tiny(change=None, kind="llama"):
    """(folder, model) of a family whose tensors `change` has changed."""
    config, architecture = next(f for f in models.families() if f[0]["model_type"] == kind)
    tensors = models.tensors_of(config)
    tensors = (change(tensors) or tensors) if change else tensors
    folder = tempfile.mkdtemp(dir=scratch)
    models.write_folder(folder, config, tensors, 2)
    return folder, plans.plan_from(record_of(config, architecture, "one rank")).model


def load(folder_and_model):
    return hugging_face.initial_from(*folder_and_model)


@test
def what_does_not_fit_is_named():
    refused(test, lambda: load(tiny(lambda t: t.pop("model.norm.weight") is None)), "has no model.norm.weight")
    many = {f"model.layers.{i}.self_attn.q_proj.bias": torch.zeros(16) for i in range(7)}
    refused(test, lambda: load(tiny(lambda t: {**t, **many})), "q_proj.bias and 2 more, which the model")
    refused(test, lambda: load(tiny(lambda t: {**t, "lm_head.weight": torch.zeros(25, 16)})), "lm_head.weight",
            "[25, 16]", "[24, 16]")
    folder, model = tiny()
    os.unlink(os.path.join(folder, "model.safetensors.index.json"))
    refused(test, lambda: load((folder, model)), "neither model.safetensors nor")
    _, qwen = tiny(kind="qwen3")
    folder, _ = tiny(kind="gpt2")
    refused(test, lambda: load((folder, qwen)), "models of model_type gpt2 have no", "query_norm")


@test
def buffers_and_tied_heads_are_no_weights():
    buffers = {f"transformer.h.{i}.attn.{name}": torch.zeros(1) for i in range(4) for name in ("bias", "masked_bias")}
    load(tiny(lambda t: {**t, **buffers, "lm_head.weight": t["transformer.wte.weight"]}, "gpt2"))
    load(tiny(lambda t: {**t, "model.layers.1.self_attn.rotary_emb.inv_freq": torch.zeros(2)}))
    further = {"model.layers.4.eh_proj.weight": torch.zeros(2)}
    load(tiny(lambda t: {**t, **further}, "deepseek_v3"))
    refused(test, lambda: load(tiny(lambda t: {**t, **further})), "model.layers.4.eh_proj.weight")


@test
def names_without_base():
    """As the first files of GPT-2 have them."""
    load(tiny(lambda t: {name[len("transformer."):]: value for name, value in t.items()}, "gpt2"))


@test
def export_wants_all_pieces_once():
    folder, model = tiny()
    initial = load((folder, model))
    held = [whole(weight) for weight in weights_of_model(model)]
    pieces = [(h.name, h.ranges, initial(h)) for h in held]

    def export(name, handed_over):
        out = os.path.join(folder, name)
        hugging_face.export_to(out, model, os.path.join(folder, "config.json"), handed_over)
        return hugging_face.initial_from(out, model)

    name, ranges, value = pieces[0]
    refused(test, lambda: export("fewer", pieces[1:]), "of embedding.tokens, 0 of 384 elements came")
    refused(test, lambda: export("more", [*pieces, (name, (range(3), ranges[1]), value[:3])]), "432 of 384 elements")
    again = export("twice", [*pieces, pieces[0]])
    test.check(torch.equal(again(held[0]), value.bfloat16()), "a piece that comes twice")
    refused(test, lambda: export("twice", pieces), "has files of a checkpoint already")
    cut = export("cut", (piece for piece in pieces for piece in parts_of(*piece)))
    test.check(all(torch.equal(cut(h), initial(h).bfloat16()) for h in held), "pieces that begin and end anywhere")


def parts_of(name, ranges, value):
    """As ZeRO cuts a weight: at any element."""
    flat = value.flatten()
    ends = sorted({0, *torch.randint(len(flat), (3,)).tolist(), len(flat)})
    for first, last in zip(ends, ends[1:]):
        for box, part in hugging_face.boxes(ranges, first, flat[first:last]):
            yield name, box, part


@test
def config_says():
    path = os.path.join(scratch, "config.json")
    for change, key in [({"rope_scaling": {"rope_type": "longrope"}}, "longrope"),
                        ({"rope_scaling": {"rope_type": "llama3", "factor": 8}}, "low_freq_factor"),
                        ({"hidden_act": "relu2"}, "hidden_act"), ({"model_type": "mamba"}, "mamba"),
                        ({"model_type": "gpt2", "scale_attn_weights": False}, "scale_attn_weights"),
                        ({"model_type": "deepseek_v3", "topk_method": "greedy"}, "topk_method")]:
        write(path, json.dumps({"model_type": "llama", **change}).encode())
        refused(test, lambda: read_details(path), path, key)
    newer, older = (details_of({"model_type": "llama", **rope}) for rope in (
        {"rope_parameters": {"rope_theta": 5e5, "rope_type": "linear", "factor": 2}},
        {"rope_theta": 5e5, "rope_scaling": {"type": "linear", "factor": 2}}))
    test.equal(newer, older, "rope_parameters of transformers 5")
    test.equal((newer.epsilon, newer.activation, newer.rotary.base), (1e-6, "silu", 5e5), "Llama")
    test.equal(details_of({"model_type": "mixtral"}).rotary.base, 1e6, "Mixtral")


@test
def safetensors_by_hand():
    tensors = {"a": torch.tensor([[1.5, -2.0], [0.25, 8.0]]), "b": torch.tensor([3.0], dtype=torch.bfloat16),
               "c": torch.zeros((0, 3), dtype=torch.float64), "d": torch.tensor(1.0, dtype=torch.float16)}
    path = os.path.join(scratch, "by-hand")
    text = (b'{"x":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},'
            b'"y":{"dtype":"BF16","shape":[1],"data_offsets":[8,10]}}')
    write(path, struct.pack("<Q", len(text)) + text + bytes.fromhex("0000c03f" "000000c0" "4040"))
    file = safetensors.File(path)
    test.equal((file.tensor("x").tolist(), file.tensor("y").tolist()), ([1.5, -2.0], [3.0]), "bytes by hand")
    for padding in range(8):
        write(path, models.safetensors_bytes(tensors, padding))
        file = safetensors.File(path)
        test.check(all(torch.equal(file.tensor(name), tensors[name]) for name in tensors), f"padding {padding}")
    made = safetensors.create(path, {"a": (torch.float32, (2, 2)), "e": (torch.float32, (0,))})
    made.tensor("a").copy_(tensors["a"])
    made.flush()
    with open(path, "rb") as written:
        content = written.read()
    length = struct.unpack("<Q", content[:8])[0]
    test.equal(json.loads(content[8:8 + length]),
               {"__metadata__": {"format": "pt"}, "a": {"dtype": "F32", "shape": [2, 2], "data_offsets": [0, 16]},
                "e": {"dtype": "F32", "shape": [0], "data_offsets": [16, 16]}}, "header")
    test.equal(content[8 + length:], struct.pack("<4f", 1.5, -2.0, 0.25, 8.0), "data")
    test.equal(length % 8, 0, "alignment")


@test
def safetensors_that_are_none():
    path = os.path.join(scratch, "wrong")

    def entry(**change):
        return {"x": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8], **change}}

    def read(header, data=b"\0" * 8, length=None):
        text = json.dumps(header).encode() if isinstance(header, dict) else header
        write(path, struct.pack("<Q", len(text) if length is None else length) + text + data)
        return safetensors.File(path)

    refused(test, lambda: read(entry(), b"\0" * 7), path, "tensor x lies at bytes 0 to 8 of 7")
    refused(test, lambda: read(entry(shape=[3])), "tensor x of type F32 and shape [3] has 8 bytes")
    refused(test, lambda: read(entry(shape=[-2])), "tensor x has no dtype, shape or data_offsets")
    refused(test, lambda: read(entry(), length=10 ** 12), "a header of 1000000000000 bytes")
    refused(test, lambda: read(b"{nothing"), "its header is not JSON")
    refused(test, lambda: read(b"[1]"), "its header is not a JSON object")
    refused(test, lambda: read(entry(dtype="F8_E4M3")).tensor("x"), "tensor x is of type F8_E4M3", "BF16 are")
    write(path, b"")
    refused(test, lambda: safetensors.File(path), "is empty")
    refused(test, lambda: safetensors.File(path + "no"), "cannot be read")


def write(path, content):
    with open(path, "wb") as file:
        file.write(content)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as scratch:
        sys.exit(test.run(sys.argv[2:]))
