"""Tiny models as Hugging Face has them: config.json, tensors by name, and the loss that the formulas of each family
give on these names. Written apart from the runtime: nothing here comes from its tables."""

import json
import math
import os
import struct

import torch
import torch.nn.functional as F

import plans

LAYERS, HIDDEN, VOCABULARY, POSITIONS = 4, 16, 24, 12
CODES = {torch.float64: "F64", torch.float32: "F32", torch.float16: "F16", torch.bfloat16: "BF16"}


# Tensors, with the shapes that transformers gives them


def _llama_shapes(c, i):
    heads, kv = c["num_attention_heads"], c["num_key_value_heads"]
    width = c.get("head_dim") or HIDDEN // heads
    kind = c["model_type"]
    shapes = {"self_attn.q_proj.weight": (heads * width, HIDDEN), "self_attn.k_proj.weight": (kv * width, HIDDEN),
              "self_attn.v_proj.weight": (kv * width, HIDDEN), "self_attn.o_proj.weight": (HIDDEN, heads * width)}
    if "qk_rope_head_dim" in c:
        nope, rope, rank = c["qk_nope_head_dim"], c["qk_rope_head_dim"], c["q_lora_rank"]
        shapes = {"self_attn.kv_a_proj_with_mqa.weight": (c["kv_lora_rank"] + rope, HIDDEN),
                  "self_attn.kv_a_layernorm.weight": (c["kv_lora_rank"],),
                  "self_attn.kv_b_proj.weight": (heads * (nope + c["v_head_dim"]), c["kv_lora_rank"]),
                  "self_attn.o_proj.weight": (HIDDEN, heads * c["v_head_dim"])}
        shapes.update({"self_attn.q_a_proj.weight": (rank, HIDDEN), "self_attn.q_a_layernorm.weight": (rank,),
                       "self_attn.q_b_proj.weight": (heads * (nope + rope), rank)} if rank else
                      {"self_attn.q_proj.weight": (heads * (nope + rope), HIDDEN)})
    if kind in ("qwen2", "qwen2_moe"):
        shapes.update({f"self_attn.{p}_proj.bias": (n * width,) for p, n in (("q", heads), ("k", kv), ("v", kv))})
    if kind in ("qwen3", "qwen3_moe"):
        shapes.update({"self_attn.q_norm.weight": (width,), "self_attn.k_norm.weight": (width,)})
    norms = ["input_layernorm", "post_attention_layernorm"]
    if kind == "gemma2":
        norms += ["pre_feedforward_layernorm", "post_feedforward_layernorm"]
    shapes.update({f"{norm}.weight": (HIDDEN,) for norm in norms})
    return {**shapes, **_feed_forward_shapes(c, i)}


def _gated_shapes(prefix, inner, names=("gate_proj", "up_proj", "down_proj")):
    return {f"{prefix}.{name}.weight": (HIDDEN, inner) if name == names[2] else (inner, HIDDEN) for name in names}


def is_dense(c, i):
    return "num_experts_per_tok" not in c or i in c.get("mlp_only_layers", ()) or i < c.get("first_k_dense_replace", 0)


def _feed_forward_shapes(c, i):
    if is_dense(c, i):
        return _gated_shapes("mlp", c["intermediate_size"])
    count = c.get("num_local_experts") or c.get("num_experts") or c["n_routed_experts"]
    if c["model_type"] == "mixtral":
        shapes = {"block_sparse_moe.gate.weight": (count, HIDDEN)}
        for e in range(count):
            shapes.update(_gated_shapes(f"block_sparse_moe.experts.{e}", c["intermediate_size"], ("w1", "w3", "w2")))
        return shapes
    shapes = {"mlp.gate.weight": (count, HIDDEN)}
    for e in range(count):
        shapes.update(_gated_shapes(f"mlp.experts.{e}", c["moe_intermediate_size"]))
    if c["model_type"] == "qwen2_moe":
        shapes.update(_gated_shapes("mlp.shared_expert", c["shared_expert_intermediate_size"]))
        shapes["mlp.shared_expert_gate.weight"] = (1, HIDDEN)
    if c.get("n_shared_experts"):
        shapes.update(_gated_shapes("mlp.shared_experts", c["n_shared_experts"] * c["moe_intermediate_size"]))
    if c["model_type"] == "deepseek_v3":
        shapes["mlp.gate.e_score_correction_bias"] = (count,)
    return shapes


def _with_bias(shapes):
    """Outputs of a matrix come first in it, unless it is a Conv1D of GPT-2."""
    return {**{f"{name}.weight": shape for name, (shape, _) in shapes.items()},
            **{f"{name}.bias": (outputs,) for name, (_, outputs) in shapes.items()}}


def shapes_of(c):
    h, kind = HIDDEN, c["model_type"]
    if kind == "gpt2":
        blocks = _with_bias({"ln_1": ((h,), h), "attn.c_attn": ((h, 3 * h), 3 * h), "attn.c_proj": ((h, h), h),
                             "ln_2": ((h,), h), "mlp.c_fc": ((h, 4 * h), 4 * h), "mlp.c_proj": ((4 * h, h), h)})
        ends = {"transformer.wte.weight": (VOCABULARY, h), "transformer.wpe.weight": (POSITIONS, h),
                "transformer.ln_f.weight": (h,), "transformer.ln_f.bias": (h,)}
        prefix = "transformer.h."
    elif kind == "gpt_neox":
        blocks = _with_bias({"input_layernorm": ((h,), h), "post_attention_layernorm": ((h,), h),
                             "attention.query_key_value": ((3 * h, h), 3 * h), "attention.dense": ((h, h), h),
                             "mlp.dense_h_to_4h": ((24, h), 24), "mlp.dense_4h_to_h": ((h, 24), h)})
        ends = {"gpt_neox.embed_in.weight": (VOCABULARY, h), "gpt_neox.final_layer_norm.weight": (h,),
                "gpt_neox.final_layer_norm.bias": (h,), "embed_out.weight": (VOCABULARY, h)}
        prefix = "gpt_neox.layers."
    elif kind == "opt":
        blocks = _with_bias({**{f"self_attn.{p}": ((h, h), h) for p in ("q_proj", "k_proj", "v_proj", "out_proj")},
                             "self_attn_layer_norm": ((h,), h), "final_layer_norm": ((h,), h), "fc1": ((24, h), 24),
                             "fc2": ((h, 24), h)})
        width, base = c["word_embed_proj_dim"], "model.decoder."
        ends = {base + "embed_tokens.weight": (VOCABULARY, width), base + "embed_positions.weight": (POSITIONS + 2, h)}
        if width != h:
            ends.update({base + "project_in.weight": (h, width), base + "project_out.weight": (width, h)})
        if c["do_layer_norm_before"]:
            ends.update({base + "final_layer_norm.weight": (h,), base + "final_layer_norm.bias": (h,)})
        prefix = base + "layers."
    else:
        ends = {"model.embed_tokens.weight": (VOCABULARY, h), "model.norm.weight": (h,)}
        if not c.get("tie_word_embeddings"):
            ends["lm_head.weight"] = (VOCABULARY, h)
        return {**ends, **{f"model.layers.{i}.{name}": shape for i in range(LAYERS)
                           for name, shape in _llama_shapes(c, i).items()}}
    return {**ends, **{f"{prefix}{i}.{name}": shape for i in range(LAYERS) for name, shape in blocks.items()}}


def tensors_of(c):
    generator = torch.Generator().manual_seed(11)

    def value(name, shape):
        mean = 1.0 if "norm" in name and name.endswith("weight") and c["model_type"] != "gemma2" else 0.0
        return mean + 0.3 * torch.randn(shape, generator=generator)

    return {name: value(name, shape) for name, shape in shapes_of(c).items()}


# Files


def safetensors_bytes(tensors, padding=0):
    """By hand: 8 bytes of length, JSON, data."""
    header, data = {"__metadata__": {"format": "pt"}}, b""
    for name, tensor in tensors.items():
        own = bytes(tensor.contiguous().flatten().view(torch.uint8).tolist())
        header[name] = {"dtype": CODES[tensor.dtype], "shape": list(tensor.shape),
                        "data_offsets": [len(data), len(data) + len(own)]}
        data += own
    text = json.dumps(header).encode() + b" " * padding
    return struct.pack("<Q", len(text)) + text + data


def write_folder(folder, c, tensors, files=1):
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, "config.json"), "w", encoding="utf-8") as file:
        json.dump(c, file)
    names = list(tensors)
    paths = ["model.safetensors"] if files == 1 else [f"model-{i + 1:05}-of-{files:05}.safetensors"
                                                      for i in range(files)]
    for i, path in enumerate(paths):
        with open(os.path.join(folder, path), "wb") as file:
            file.write(safetensors_bytes({name: tensors[name] for name in names[i::files]}, padding=i))
    if files > 1:
        weight_map = {name: paths[i % files] for i, name in enumerate(names)}
        with open(os.path.join(folder, "model.safetensors.index.json"), "w", encoding="utf-8") as file:
            json.dump({"metadata": {}, "weight_map": weight_map}, file)


# The loss, on one sample at a time


def loss_of(c, tensors, batch):
    w = {name: tensor.double() for name, tensor in tensors.items()}
    run = {"gpt2": _gpt2, "gpt_neox": _neox, "opt": _opt}.get(c["model_type"], _llama)
    with torch.no_grad():
        losses = [F.cross_entropy(run(c, w, sample[:-1]), sample[1:], reduction="sum") for sample in batch]
    return float(sum(losses)) / (batch.shape[0] * (batch.shape[1] - 1))


def _linear(w, name, x):
    return F.linear(x, w[name + ".weight"], w.get(name + ".bias"))


def _layer_norm(w, name, x, epsilon=1e-5):
    return F.layer_norm(x, x.shape[-1:], w[name + ".weight"], w[name + ".bias"], epsilon)


def _rms_norm(w, name, x, epsilon, offset=0):
    return x / torch.sqrt((x * x).mean(-1, keepdim=True) + epsilon) * (offset + w[name + ".weight"])


def _heads(x, width):
    return x.view(x.shape[0], -1, width).transpose(0, 1)


def _attend(q, k, v, scale=None, window=0, cap=0):
    """(heads, positions, width); fewer keys and values are repeated."""
    k, v = (t.repeat_interleave(q.shape[0] // t.shape[0], 0) for t in (k, v))
    z = q @ k.transpose(1, 2) * (q.shape[-1] ** -0.5 if scale is None else scale)
    z = cap * torch.tanh(z / cap) if cap else z
    i = torch.arange(q.shape[1])
    seen = i[:, None] >= i[None]
    if window:
        seen &= i[:, None] - i[None] < window
    out = z.masked_fill(~seen, -math.inf).softmax(-1) @ v
    return out.transpose(0, 1).flatten(1)


def _turn(x, radians):
    """x cos + rotate_half(x) sin of the first dimensions."""
    angles = torch.arange(x.shape[-2], dtype=x.dtype)[:, None] * radians
    angles, width = torch.cat((angles, angles), -1), 2 * len(radians)
    turned, half = x[..., :width], len(radians)
    other = torch.cat((-turned[..., half:], turned[..., :half]), -1)
    return torch.cat((turned * angles.cos() + other * angles.sin(), x[..., width:]), -1)


def _turn_pairs(x, radians):
    """Neighbours as complex numbers, as DeepSeek does it."""
    angles = torch.arange(x.shape[-2], dtype=x.dtype)[:, None] * radians
    pairs = torch.view_as_complex(x.unflatten(-1, (-1, 2)).contiguous())
    return torch.view_as_real(pairs * torch.polar(torch.ones_like(angles), angles)).flatten(-2)


def _radians(base, width):
    return 1.0 / base ** (torch.arange(0, width, 2, dtype=torch.float64) / width)


def _yarn(c, width):
    """Inverse frequencies of DeepSeek: corrected between two dimensions."""
    s, base = c["rope_scaling"], c["rope_theta"]
    plain = _radians(base, width)
    dimension = [width * math.log(s["original_max_position_embeddings"] / (turns * 2 * math.pi)) / (2 * math.log(base))
                 for turns in (s["beta_fast"], s["beta_slow"])]
    low, high = max(math.floor(dimension[0]), 0), min(math.ceil(dimension[1]), width - 1)
    mask = 1 - ((torch.arange(width // 2, dtype=torch.float64) - low) / (high - low)).clamp(0, 1)
    return plain / s["factor"] * (1 - mask) + plain * mask


def _gpt2(c, w, tokens):
    x = w["transformer.wte.weight"][tokens] + w["transformer.wpe.weight"][:len(tokens)]

    def conv(name, y):
        return y @ w[name + ".weight"] + w[name + ".bias"]

    for i in range(LAYERS):
        block = f"transformer.h.{i}."
        q, k, v = conv(block + "attn.c_attn", _layer_norm(w, block + "ln_1", x)).split(HIDDEN, -1)
        attended = _attend(*(_heads(t, HIDDEN // c["n_head"]) for t in (q, k, v)))
        x = x + conv(block + "attn.c_proj", attended)
        inner = F.gelu(conv(block + "mlp.c_fc", _layer_norm(w, block + "ln_2", x)), approximate="tanh")
        x = x + conv(block + "mlp.c_proj", inner)
    return _layer_norm(w, "transformer.ln_f", x) @ w["transformer.wte.weight"].t()


def _neox(c, w, tokens):
    x = w["gpt_neox.embed_in.weight"][tokens]
    width = HIDDEN // c["num_attention_heads"]
    radians = _radians(c["rotary_emb_base"], int(width * c["rotary_pct"]))
    for i in range(LAYERS):
        block = f"gpt_neox.layers.{i}."
        fused = _linear(w, block + "attention.query_key_value", _layer_norm(w, block + "input_layernorm", x))
        q, k, v = fused.view(len(tokens), -1, 3 * width).transpose(0, 1).split(width, -1)
        attended = _linear(w, block + "attention.dense", _attend(_turn(q, radians), _turn(k, radians), v))
        inner = F.gelu(_linear(w, block + "mlp.dense_h_to_4h", _layer_norm(w, block + "post_attention_layernorm", x)))
        x = x + attended + _linear(w, block + "mlp.dense_4h_to_h", inner)
    return _linear(w, "embed_out", _layer_norm(w, "gpt_neox.final_layer_norm", x))


def _opt(c, w, tokens):
    base, first = "model.decoder.", c["do_layer_norm_before"]
    projects = base + "project_in.weight" in w
    x = w[base + "embed_tokens.weight"][tokens]
    x = _linear(w, base + "project_in", x) if projects else x
    x = x + w[base + "embed_positions.weight"][2:2 + len(tokens)]
    for i in range(LAYERS):
        block = f"{base}layers.{i}."
        y = _layer_norm(w, block + "self_attn_layer_norm", x) if first else x
        width = HIDDEN // c["num_attention_heads"]
        q, k, v = (_heads(_linear(w, f"{block}self_attn.{p}_proj", y), width) for p in "qkv")
        x = x + _linear(w, block + "self_attn.out_proj", _attend(q, k, v))
        x = x if first else _layer_norm(w, block + "self_attn_layer_norm", x)
        y = _layer_norm(w, block + "final_layer_norm", x) if first else x
        x = x + _linear(w, block + "fc2", _linear(w, block + "fc1", y).relu())
        x = x if first else _layer_norm(w, block + "final_layer_norm", x)
    x = _layer_norm(w, base + "final_layer_norm", x) if first else x
    return (_linear(w, base + "project_out", x) if projects else x) @ w[base + "embed_tokens.weight"].t()


def _llama(c, w, tokens):
    gemma, epsilon = c["model_type"] == "gemma2", c["rms_norm_eps"]
    offset = 1 if gemma else 0
    x = w["model.embed_tokens.weight"][tokens] * (math.sqrt(HIDDEN) if gemma else 1)
    for i in range(LAYERS):
        block = f"model.layers.{i}."

        def norm(name, y):
            return _rms_norm(w, block + name, y, epsilon, offset)

        attention = _latent_attention if "kv_lora_rank" in c else _llama_attention
        attended = attention(c, w, block + "self_attn.", norm("input_layernorm", x), i)
        if gemma:
            x = x + norm("post_attention_layernorm", attended)
            inner = _gated(w, block + "mlp", norm("pre_feedforward_layernorm", x),
                           lambda z: F.gelu(z, approximate="tanh"))
            x = x + norm("post_feedforward_layernorm", inner)
        else:
            x = x + attended
            y = norm("post_attention_layernorm", x)
            x = x + (_gated(w, block + "mlp", y) if is_dense(c, i) else _experts(c, w, block, y))
    x = _rms_norm(w, "model.norm", x, epsilon, offset)
    logits = x @ w["model.embed_tokens.weight" if c.get("tie_word_embeddings") else "lm_head.weight"].t()
    cap = c.get("final_logit_softcapping")
    return cap * torch.tanh(logits / cap) if cap else logits


def _llama_attention(c, w, prefix, x, i):
    width = c.get("head_dim") or HIDDEN // c["num_attention_heads"]
    q, k, v = (_heads(_linear(w, f"{prefix}{p}_proj", x), width) for p in "qkv")
    if prefix + "q_norm.weight" in w:
        q, k = (_rms_norm(w, f"{prefix}{p}_norm", t, c["rms_norm_eps"]) for p, t in (("q", q), ("k", k)))
    radians = _radians(c["rope_theta"], width)
    window = c.get("sliding_window") or 0
    if c["model_type"] == "gemma2":
        window = window if i % 2 == 0 else 0
    scale = c["query_pre_attn_scalar"] ** -0.5 if "query_pre_attn_scalar" in c else None
    out = _attend(_turn(q, radians), _turn(k, radians), v, scale, window, c.get("attn_logit_softcapping", 0))
    return _linear(w, prefix + "o_proj", out)


def _latent_attention(c, w, prefix, x, _):
    nope, rope, rank = c["qk_nope_head_dim"], c["qk_rope_head_dim"], c["kv_lora_rank"]
    if c["q_lora_rank"]:
        narrow = _rms_norm(w, prefix + "q_a_layernorm", _linear(w, prefix + "q_a_proj", x), 1e-6)
        q = _linear(w, prefix + "q_b_proj", narrow)
    else:
        q = _linear(w, prefix + "q_proj", x)
    q = _heads(q, nope + rope)
    down = _linear(w, prefix + "kv_a_proj_with_mqa", x)
    up = _heads(_linear(w, prefix + "kv_b_proj", _rms_norm(w, prefix + "kv_a_layernorm", down[:, :rank], 1e-6)),
                nope + c["v_head_dim"])
    scaling = c.get("rope_scaling")
    radians, scale = _radians(c["rope_theta"], rope), (nope + rope) ** -0.5
    if scaling:
        radians = _yarn(c, rope)
        scale *= (0.1 * scaling["mscale_all_dim"] * math.log(scaling["factor"]) + 1) ** 2
    k_rope = _turn_pairs(down[None, :, rank:], radians).expand(q.shape[0], -1, -1)
    q = torch.cat((q[..., :nope], _turn_pairs(q[..., nope:], radians)), -1)
    k = torch.cat((up[..., :nope], k_rope), -1)
    return _linear(w, prefix + "o_proj", _attend(q, k, up[..., nope:], scale))


def _gated(w, prefix, x, activation=F.silu, names=("gate_proj", "up_proj", "down_proj")):
    gate, up, down = (f"{prefix}.{name}" for name in names)
    return _linear(w, down, activation(_linear(w, gate, x)) * _linear(w, up, x))


def _experts(c, w, block, x):
    mixtral, kind, k = c["model_type"] == "mixtral", c["model_type"], c["num_experts_per_tok"]
    prefix = block + ("block_sparse_moe" if mixtral else "mlp")
    logits = x @ w[prefix + ".gate.weight"].t()
    scores = logits.sigmoid() if kind == "deepseek_v3" else logits.softmax(-1)
    wanted = scores + w.get(prefix + ".gate.e_score_correction_bias", 0)
    if c.get("n_group"):
        groups = wanted.view(len(x), c["n_group"], -1)
        best = groups.topk(2, -1).values.sum(-1) if kind == "deepseek_v3" else groups.amax(-1)
        outside = torch.ones_like(best).scatter(1, best.topk(c["topk_group"], -1).indices, 0.0)
        wanted = wanted - 1e9 * outside.repeat_interleave(groups.shape[-1], -1)
    chosen = wanted.topk(k, -1).indices
    gates = scores.gather(1, chosen)
    if c.get("norm_topk_prob", mixtral):
        gates = gates / gates.sum(-1, keepdim=True)
    gates = gates * c.get("routed_scaling_factor", 1.0)
    out = torch.zeros_like(x)
    names = ("w1", "w3", "w2") if mixtral else ("gate_proj", "up_proj", "down_proj")
    for t in range(len(x)):
        for e, gate in zip(chosen[t].tolist(), gates[t]):
            out[t] += gate * _gated(w, f"{prefix}.experts.{e}", x[t], names=names)
    if kind == "qwen2_moe":
        gate = torch.sigmoid(_linear(w, prefix + ".shared_expert_gate", x))
        out = out + gate * _gated(w, prefix + ".shared_expert", x)
    if c.get("n_shared_experts"):
        out = out + _gated(w, prefix + ".shared_experts", x)
    return out


# All families: (config, architecture of the plan)


def _decoder(kind, **more):
    return {"model_type": kind, "vocab_size": VOCABULARY, "hidden_size": HIDDEN, "num_hidden_layers": LAYERS,
            "num_attention_heads": 4, "num_key_value_heads": 2, "intermediate_size": 24, "rms_norm_eps": 1e-3,
            "rope_theta": 100.0, **more}


def _same(block, **more):
    return plans.model([block], [{"type": block["name"], "count": LAYERS}], **more)


def _first_dense(dense, moe):
    return plans.model([dense, moe], [{"type": "dense", "count": 1}, {"type": "moe", "count": LAYERS - 1}])


def families():
    block, moe = plans.block_type, plans.moe
    layer_norm = {"gated": False, "bias": True, "norm": "layernorm"}
    yield _decoder("llama"), _same(block(kv_heads=2))
    yield _decoder("mistral", sliding_window=3), _same(block(kv_heads=2, sliding_window=3))
    yield _decoder("qwen2", tie_word_embeddings=True), _same(block(kv_heads=2, qkv_bias=True), tied=True)
    yield _decoder("qwen3", head_dim=6), _same(block(kv_heads=2, head_dim=6, qk_norm=True))
    yield (_decoder("mixtral", num_local_experts=4, num_experts_per_tok=2, intermediate_size=8),
           _same(block("moe", kv_heads=2, ffn=0, moe=moe())))
    yield (_decoder("qwen2_moe", num_experts=4, num_experts_per_tok=2, moe_intermediate_size=8,
                    shared_expert_intermediate_size=8, mlp_only_layers=[0]),
           _first_dense(block(kv_heads=2, qkv_bias=True),
                        block("moe", kv_heads=2, qkv_bias=True, ffn=0, moe=moe(shared=8, shared_gate=True))))
    yield (_decoder("qwen3_moe", num_experts=4, num_experts_per_tok=2, moe_intermediate_size=8, norm_topk_prob=True),
           _same(block("moe", kv_heads=2, qk_norm=True, ffn=0, moe=moe())))
    yield (_decoder("gemma2", tie_word_embeddings=True, sliding_window=3, query_pre_attn_scalar=9,
                    attn_logit_softcapping=2.0, final_logit_softcapping=3.0),
           plans.model([block("windowed", norms=4, kv_heads=2, sliding_window=3), block(norms=4, kv_heads=2)],
                       [{"type": "windowed", "count": 1}, {"type": "dense", "count": 1}] * 2, tied=True))
    yield {"model_type": "gpt2", "n_head": 4, "n_embd": HIDDEN}, _same(block(ffn=64, **layer_norm), tied=True,
                                                                       positions=POSITIONS, norm="layernorm")
    yield ({"model_type": "gpt_neox", "num_attention_heads": 2, "rotary_pct": 0.5, "rotary_emb_base": 100},
           _same(block(heads=2, kv_heads=2, head_dim=8, parallel_attention=True, **layer_norm), norm="layernorm"))
    opt = {"model_type": "opt", "num_attention_heads": 4}
    yield ({**opt, "word_embed_proj_dim": HIDDEN, "do_layer_norm_before": True},
           _same(block(**layer_norm), tied=True, positions=POSITIONS + 2, norm="layernorm"))
    yield ({**opt, "word_embed_proj_dim": 8, "do_layer_norm_before": False},
           _same(block(**layer_norm), tied=True, positions=POSITIONS + 2, norm="layernorm", projection=8,
                 final_norm=False))
    latent = {"kv_lora_rank": 4, "qk_nope_head_dim": 4, "qk_rope_head_dim": 8, "v_head_dim": 6}
    deepseek = {**latent, "n_routed_experts": 4, "n_shared_experts": 2, "num_experts_per_tok": 2, "n_group": 2,
                "moe_intermediate_size": 8, "first_k_dense_replace": 1, "topk_group": 1}
    yield (_decoder("deepseek_v2", q_lora_rank=None, topk_method="group_limited_greedy", routed_scaling_factor=1.5,
                    **deepseek),
           _first_dense(block(mla={**latent, "q_lora_rank": 0}),
                        block("moe", ffn=0, mla={**latent, "q_lora_rank": 0}, moe=moe(shared=16))))
    yield (_decoder("deepseek_v3", q_lora_rank=6, norm_topk_prob=True, routed_scaling_factor=2.5, **deepseek,
                    num_nextn_predict_layers=1,
                    rope_scaling={"type": "yarn", "factor": 4, "mscale": 1.0, "mscale_all_dim": 1.0, "beta_fast": 2,
                                  "beta_slow": 0.2, "original_max_position_embeddings": 40}),
           _first_dense(block(mla={**latent, "q_lora_rank": 6}),
                        block("moe", ffn=0, mla={**latent, "q_lora_rank": 6}, moe=moe(shared=16, router_bias=True))))
