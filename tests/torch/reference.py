"""The same model on one process, written as plainly as possible and apart from the runtime: whole weights by name, one
sample at a time, loops over heads and experts. What plans are compared with."""

import math

import torch
import torch.nn.functional as F

from tangram_torch.details import Details


def norm(d, w, name, x):
    epsilon = d.latent_epsilon if "down_norm" in name else d.epsilon
    if name + ".bias" in w:
        centred = x - x.mean(-1, keepdim=True)
        x = centred / (centred.pow(2).mean(-1, keepdim=True) + epsilon).sqrt()
        return x * (w[name + ".weight"] + d.norm_offset) + w[name + ".bias"]
    return x / (x.pow(2).mean(-1, keepdim=True) + epsilon).sqrt() * (w[name + ".weight"] + d.norm_offset)


ADAPTER_SCALE = 1.5


def linear(w, name, x):
    out = x @ w[name].t()
    if name + ".adapter_in" in w:
        out = out + ADAPTER_SCALE * (w[name + ".adapter_out"] @ (w[name + ".adapter_in"] @ x.t())).t()
    return out + w[name + "_bias"] if name + "_bias" in w else out


def radians(r, pair, width):
    """That a pair turns per position: base^(-2 pair / width), less where the context has been stretched."""
    plain = r.base ** (-2 * pair / width)
    if r.scaling == "llama3":
        length = 2 * math.pi / plain  # of a wave, in positions
        if length < r.context / r.fast:
            return plain
        if length > r.context / r.slow:
            return plain / r.factor
        smooth = (r.context / length - r.slow) / (r.fast - r.slow)
        return (1 - smooth) * plain / r.factor + smooth * plain
    if r.scaling == "yarn":
        low, high = (width * math.log(r.context / (turns * 2 * math.pi)) / (2 * math.log(r.base))
                     for turns in (r.fast, r.slow))
        low, high = max(math.floor(low), 0), min(math.ceil(high), width - 1)
        ramp = min(max((pair - low) / (high - low if high > low else 0.001), 0), 1)
        return ramp * plain / r.factor + (1 - ramp) * plain
    return plain / r.factor


def rotated(d, x):
    """Pairs (i, i + half) turn: as complex numbers."""
    width = int(x.shape[-1] * d.rotary.fraction)
    half = width // 2
    steps = torch.tensor([radians(d.rotary, pair, width) for pair in range(half)], dtype=x.dtype)
    angles = torch.arange(x.shape[0], dtype=x.dtype)[:, None] * steps
    turned = torch.complex(x[:, :half], x[:, half:width]) * torch.polar(
        torch.full_like(angles, d.rotary.magnitude), angles)
    return torch.cat((turned.real, turned.imag, x[:, width:]), -1)


def capped(z, limit):
    return torch.tanh(z / limit) * limit if limit else z


def attend(d, query, key, value, causal, window):
    """One head of one sample or item."""
    rows = []
    scale = 1 / math.sqrt(query.shape[-1]) if d.attention_scale is None else d.attention_scale
    for i in range(query.shape[0]):
        first = max(0, i + 1 - window) if window else 0
        last = i + 1 if causal else min(key.shape[0], i + window) if window else key.shape[0]
        scores = capped(key[first:last] @ query[i] * scale, d.attention_cap)
        rows.append(scores.softmax(0) @ value[first:last])
    return torch.stack(rows)


def plain_heads(d, w, a, x, rotary):
    query, key, value = (linear(w, "attention." + name, x) for name in ("query", "key", "value"))
    for h in range(a.heads):
        kv = h // (a.heads // a.kv_heads)
        q = query[:, h * a.head_dim:(h + 1) * a.head_dim]
        k = key[:, kv * a.head_dim:(kv + 1) * a.head_dim]
        v = value[:, kv * a.head_dim:(kv + 1) * a.head_dim]
        if a.qk_norm:
            q, k = norm(d, w, "attention.query_norm", q), norm(d, w, "attention.key_norm", k)
        yield (rotated(d, q), rotated(d, k), v) if rotary else (q, k, v)


def latent_heads(d, w, a, x, rotary):
    source = norm(d, w, "attention.query_down_norm", linear(w, "attention.query_down", x)) if a.q_lora_rank else x
    query = source @ w["attention.query"].t()
    down = linear(w, "attention.key_value_down", x)
    up = norm(d, w, "attention.key_value_down_norm", down[:, :a.kv_lora_rank]) @ w["attention.key_value_up"].t()
    shared = down[:, a.kv_lora_rank:]
    plain, turned, wide = a.qk_nope_head_dim, a.qk_rope_head_dim, a.v_head_dim
    for h in range(a.heads):
        q = query[:, h * (plain + turned):(h + 1) * (plain + turned)]
        kv = up[:, h * (plain + wide):(h + 1) * (plain + wide)]
        parts = (q[:, plain:], shared)
        q_turned, k_turned = (rotated(d, part) for part in parts) if rotary else parts
        yield torch.cat((q[:, :plain], q_turned), -1), torch.cat((kv[:, :plain], k_turned), -1), kv[:, plain:]


def attention(d, w, block, x, rotary):
    a = block.attention
    heads = (latent_heads if a.latent else plain_heads)(d, w, a, x, rotary)
    attended = [attend(d, *head, block.causal, a.sliding_window) for head in heads]
    return linear(w, "attention.output", torch.cat(attended, -1))


FUNCTIONS = {
    "silu": lambda x: x * torch.sigmoid(x),
    "relu": lambda x: x * (x > 0),
    "gelu": lambda x: x * (1 + torch.erf(x / math.sqrt(2))) / 2,
    "gelu_tanh": lambda x: 0.5 * x * (1 + torch.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x ** 3)))}


def feed_forward(d, w, prefix, x):
    up = linear(w, prefix + "up", x)
    if prefix + "gate" in w:
        up = FUNCTIONS[d.activation or "silu"](linear(w, prefix + "gate", x)) * up
    else:
        up = FUNCTIONS[d.activation or "gelu_tanh"](up)
    return linear(w, prefix + "down", up)


class Correction:
    """Of a router that has one: experts with few tokens in an iteration are chosen sooner in the next."""

    def __init__(self, experts):
        self.value = torch.zeros(experts)
        self.load = [0] * experts

    def update(self):
        mean = sum(self.load) / len(self.load)
        for e, load in enumerate(self.load):
            self.value[e] += 0.001 * ((load < mean) - (load > mean))
        self.load = [0] * len(self.load)


def of_best_groups(d, f, scores):
    """Experts that may be chosen."""
    count = d.expert_groups or f.expert_groups
    each = f.experts // count
    groups = [range(g * each, (g + 1) * each) for g in range(count)]
    counted = 2 if f.router_bias else 1
    groups.sort(key=lambda g: -sum(sorted((float(scores[e]) for e in g), reverse=True)[:counted]))
    return [e for g in groups[:d.chosen_groups or f.groups_per_token] for e in g]


def experts(d, w, f, x, correction):
    rows = []
    for row in x:
        logits = w["router"] @ row
        scores = torch.sigmoid(logits) if f.router_bias else logits.softmax(0)
        wanted = scores + correction.value
        best = sorted(of_best_groups(d, f, wanted), key=lambda e: -float(wanted[e]))[:f.experts_per_token]
        total = sum(scores[e] for e in best) if d.gates_sum_to_one else 1
        rows.append(sum(d.gate_scale * scores[e] / total * feed_forward(d, w, f"experts.{e}.", row) for e in best))
        for e in best:
            correction.load[e] += 1
    return torch.stack(rows)


def feed_forwards(d, w, f, x, correction):
    out = torch.zeros_like(x)
    if f.hidden:
        out = out + feed_forward(d, w, "feed_forward.", x)
    if f.shared_hidden:
        shared = feed_forward(d, w, "shared.", x)
        out = out + (shared * torch.sigmoid(x @ w["shared_gate"].t()) if f.shared_gate else shared)
    return out + experts(d, w, f, x, correction) if f.experts else out


def run_block(d, w, block, x, rotary, correction):
    if d.norms_behind:
        x = norm(d, w, "attention_norm", x + attention(d, w, block, x, rotary))
        return norm(d, w, "feed_forward_norm", x + feed_forwards(d, w, block.feed_forward, x, correction))
    attended = attention(d, w, block, norm(d, w, "attention_norm", x), rotary)
    if block.norms == 4:
        attended = norm(d, w, "attention_post_norm", attended)
    read = x if block.parallel_attention else x + attended
    added = feed_forwards(d, w, block.feed_forward,
                          norm(d, w, "feed_forward_norm" if block.norms > 1 else "attention_norm", read), correction)
    if block.norms == 4:
        added = norm(d, w, "feed_forward_post_norm", added)
    return x + attended + added


def corrections_of(model):
    return {i: Correction(block.feed_forward.experts) for i, block in enumerate(model.blocks)}


def named(weights, prefix):
    return {name[len(prefix):]: v for name, v in weights.items() if name.startswith(prefix)}


def encoded(model, encoder, weights, corrections, x):
    """What an encoder makes of one item, from (tokens, values): the tokens that take its places."""
    w, d = named(weights, f"encoders.{encoder.name}."), Details()
    table = w.get("patches")
    learned = table is not None and table.shape[1] > encoder.tokens_in
    if table is not None:
        values = x.shape[1]
        x = torch.stack([table[:, :values] @ token for token in x])
        if learned:
            x = x + torch.stack([table[:, values + p] for p in range(encoder.tokens_in)])
    for i in encoder.blocks:
        x = run_block(d, named(weights, f"blocks.{i}."), model.blocks[i], x, not learned, corrections[i])
    c = encoder.connector
    if c is None:
        return x
    w = named(w, "connector.")
    if c.kind == "merger" and c.norm == x.shape[1]:
        x = norm(d, w, "norm", x)
    side_by_side = {"mlp": 1, "merger": c.widths[0] // x.shape[1], "pool": encoder.tokens_in // encoder.tokens_out}[c.kind]
    rows = []
    for t in range(encoder.tokens_out):
        first = encoder.tokens_in - (encoder.tokens_out - t) * side_by_side
        group = x[first:first + side_by_side]
        row = group.mean(0) if c.kind == "pool" else group.reshape(-1)
        if c.norm and (c.kind != "merger" or c.norm != x.shape[1]):
            row = norm(d, w, "norm", row)
        for layer in range(len(c.widths) - 1):
            row = linear(w, str(layer), FUNCTIONS["gelu"](row) if layer else row)
        rows.append(row)
    return torch.stack(rows)


def loss_of(model, weights, tokens, corrections, items=()):
    """Mean over the tokens of a batch but those of items; tokens (samples, positions + 1), items (sample, encoder, first
    of its places, values of its tokens)."""
    total = count = 0
    table, d = weights["embedding.tokens"], model.details
    for number, sample in enumerate(tokens):
        own = [item[1:] for item in items if item[0] == number]
        x = table[sample[:-1]] * d.embedding_scale
        if model.embedding_projection:
            x = x @ weights["embedding.projection"].t()
        if model.learned_positions:
            x = x + weights["embedding.positions"][d.position_offset:][:x.shape[0]]
        predicted = [True] * len(x)
        for encoder, first, values in own:
            made = encoded(model, encoder, weights, corrections, values)
            x = torch.cat((x[:first], made, x[first + len(made):]))
            for place in range(max(first, 1), first + len(made)):
                predicted[place - 1] = False
        for i in model.language:
            x = run_block(d, named(weights, f"blocks.{i}."), model.blocks[i], x, not model.learned_positions, corrections[i])
        if model.final_norm:
            x = norm(d, weights, "head.norm", x)
        if model.embedding_projection:
            x = x @ weights["head.projection"].t()
        logits = capped(x @ (table if model.tied else weights["head.output"]).t(), d.logit_cap)
        losses = F.nll_loss(logits.log_softmax(-1), sample[1:], reduction="none")
        total = total + losses[predicted].sum()
        count += sum(predicted)
    return total / count
