"""The same model on one process, written as plainly as possible and apart from the runtime: whole weights by name, one
sample at a time, loops over heads and experts. What plans are compared with."""

import math

import torch
import torch.nn.functional as F


def norm(w, name, x):
    if name + ".bias" in w:
        centred = x - x.mean(-1, keepdim=True)
        x = centred / (centred.pow(2).mean(-1, keepdim=True) + 1e-5).sqrt()
        return x * w[name + ".weight"] + w[name + ".bias"]
    return x / (x.pow(2).mean(-1, keepdim=True) + 1e-5).sqrt() * w[name + ".weight"]


def linear(w, name, x):
    out = x @ w[name].t()
    return out + w[name + "_bias"] if name + "_bias" in w else out


def rotated(x):
    """Pairs (i, i + half) turn by position * 10000^(-i / half): as complex numbers."""
    half = x.shape[-1] // 2
    angles = torch.arange(x.shape[0], dtype=x.dtype)[:, None] * 10_000.0 ** (-torch.arange(half, dtype=x.dtype) / half)
    turned = torch.complex(x[:, :half], x[:, half:]) * torch.polar(torch.ones_like(angles), angles)
    return torch.cat((turned.real, turned.imag), -1)


def attend(query, key, value, window):
    """One head of one sample."""
    rows = []
    for i in range(query.shape[0]):
        first = max(0, i + 1 - window) if window else 0
        scores = key[first:i + 1] @ query[i] / math.sqrt(query.shape[-1])
        rows.append(scores.softmax(0) @ value[first:i + 1])
    return torch.stack(rows)


def plain_heads(w, a, x, rotary):
    query, key, value = (linear(w, "attention." + name, x) for name in ("query", "key", "value"))
    for h in range(a.heads):
        kv = h // (a.heads // a.kv_heads)
        q = query[:, h * a.head_dim:(h + 1) * a.head_dim]
        k = key[:, kv * a.head_dim:(kv + 1) * a.head_dim]
        v = value[:, kv * a.head_dim:(kv + 1) * a.head_dim]
        if a.qk_norm:
            q, k = norm(w, "attention.query_norm", q), norm(w, "attention.key_norm", k)
        yield (rotated(q), rotated(k), v) if rotary else (q, k, v)


def latent_heads(w, a, x, rotary):
    source = norm(w, "attention.query_down_norm", linear(w, "attention.query_down", x)) if a.q_lora_rank else x
    query = source @ w["attention.query"].t()
    down = linear(w, "attention.key_value_down", x)
    up = norm(w, "attention.key_value_down_norm", down[:, :a.kv_lora_rank]) @ w["attention.key_value_up"].t()
    shared = down[:, a.kv_lora_rank:]
    plain, turned, wide = a.qk_nope_head_dim, a.qk_rope_head_dim, a.v_head_dim
    for h in range(a.heads):
        q = query[:, h * (plain + turned):(h + 1) * (plain + turned)]
        kv = up[:, h * (plain + wide):(h + 1) * (plain + wide)]
        parts = (q[:, plain:], shared)
        q_turned, k_turned = (rotated(part) for part in parts) if rotary else parts
        yield torch.cat((q[:, :plain], q_turned), -1), torch.cat((kv[:, :plain], k_turned), -1), kv[:, plain:]


def attention(w, block, x, rotary):
    a = block.attention
    heads = (latent_heads if a.latent else plain_heads)(w, a, x, rotary)
    return linear(w, "attention.output", torch.cat([attend(*head, a.sliding_window) for head in heads], -1))


def feed_forward(w, prefix, x):
    up = linear(w, prefix + "up", x)
    if prefix + "gate" in w:
        gate = linear(w, prefix + "gate", x)
        up = gate * torch.sigmoid(gate) * up
    else:
        up = 0.5 * up * (1 + torch.tanh(math.sqrt(2 / math.pi) * (up + 0.044715 * up ** 3)))
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


def experts(w, f, x, correction):
    rows = []
    for row in x:
        logits = w["router"] @ row
        scores = torch.sigmoid(logits) if f.router_bias else logits.softmax(0)
        best = (scores + correction.value).topk(f.experts_per_token).indices.tolist()
        total = sum(scores[e] for e in best)
        rows.append(sum(scores[e] / total * feed_forward(w, f"experts.{e}.", row) for e in best))
        for e in best:
            correction.load[e] += 1
    return torch.stack(rows)


def feed_forwards(w, f, x, correction):
    out = torch.zeros_like(x)
    if f.hidden:
        out = out + feed_forward(w, "feed_forward.", x)
    if f.shared_hidden:
        shared = feed_forward(w, "shared.", x)
        out = out + (shared * torch.sigmoid(x @ w["shared_gate"].t()) if f.shared_gate else shared)
    return out + experts(w, f, x, correction) if f.experts else out


def run_block(w, block, x, rotary, correction):
    attended = attention(w, block, norm(w, "attention_norm", x), rotary)
    if block.norms == 4:
        attended = norm(w, "attention_post_norm", attended)
    read = x if block.parallel_attention else x + attended
    added = feed_forwards(w, block.feed_forward,
                          norm(w, "feed_forward_norm" if block.norms > 1 else "attention_norm", read), correction)
    if block.norms == 4:
        added = norm(w, "feed_forward_post_norm", added)
    return x + attended + added


def corrections_of(model):
    return {i: Correction(block.feed_forward.experts) for i, block in enumerate(model.blocks)}


def loss_of(model, weights, tokens, corrections):
    """Mean over the tokens of a batch; tokens (samples, positions + 1)."""
    total = 0
    table = weights["embedding.tokens"]
    for sample in tokens:
        x = table[sample[:-1]]
        if model.embedding_projection:
            x = x @ weights["embedding.projection"].t()
        if model.learned_positions:
            x = x + weights["embedding.positions"][:x.shape[0]]
        for i, block in enumerate(model.blocks):
            prefix = f"blocks.{i}."
            w = {name[len(prefix):]: v for name, v in weights.items() if name.startswith(prefix)}
            x = run_block(w, block, x, not model.learned_positions, corrections[i])
        if model.final_norm:
            x = norm(weights, "head.norm", x)
        if model.embedding_projection:
            x = x @ weights["head.projection"].t()
        logits = x @ (table if model.tied else weights["head.output"]).t()
        total = total + F.nll_loss(logits.log_softmax(-1), sample[1:], reduction="sum")
    return total / (tokens.shape[0] * (tokens.shape[1] - 1))
