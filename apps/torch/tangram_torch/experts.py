"""A mixture of experts over an expert group: tokens go to the ranks that hold their experts and come back.

An owner has expert-tp ranks; each gets the token and answers with its part of the sum, and the sender adds the parts.
Every chosen expert gets its token: there is no capacity.
"""

from __future__ import annotations

import torch
from torch import Tensor

from . import grouped_experts
from .details import Details
from .launch_plan import FeedForward
from .layers import feed_forward
from .parallel import Parallel
from .weight_gradients import Weights

CORRECTION_STEP = 0.001  # of DeepSeek-V3's router, arXiv 2412.19437, section 4.2


class Router:
    """Which experts a token goes to, and with which gates. With `router_bias` a correction that is not trained evens
    out the load (DeepSeek-V3, arXiv 2412.19437, section 2.1.2)."""

    def __init__(self, shape: FeedForward, details: Details, dtype: torch.dtype, device: torch.device) -> None:
        self.shape = shape
        self.details = details
        self.correction = torch.zeros(shape.experts, dtype=dtype, device=device)
        self.load = torch.zeros(shape.experts, dtype=dtype, device=device)  # tokens since the last step
        self.counting = True  # not where a forward pass is run again for its gradient

    def choose(self, logits: Tensor) -> tuple[Tensor, Tensor]:
        """Gates and experts, both (rows, experts per token)."""
        kind = logits.dtype
        if logits.dtype in (torch.float16, torch.bfloat16):
            logits = logits.float()
        scores = logits.sigmoid() if self.shape.router_bias else logits.softmax(dim=-1)
        chosen = self._of_best_groups(scores + self.correction).topk(self.shape.experts_per_token, dim=-1).indices
        gates = scores.gather(-1, chosen)
        if self.details.gates_sum_to_one:
            gates = gates / gates.sum(-1, keepdim=True)
        return (gates * self.details.gate_scale).to(kind), chosen

    def _of_best_groups(self, scores: Tensor) -> Tensor:
        """Those of other groups become -inf. A group is as good as its best expert (arXiv 2405.04434, section 2.2.2)
        or, with `router_bias`, as its two best ones (arXiv 2412.19437, section 2.1.2)."""
        groups = self.details.expert_groups or self.shape.expert_groups
        chosen = self.details.chosen_groups or self.shape.groups_per_token
        if chosen == groups:
            return scores
        by_group = scores.unflatten(-1, (groups, -1))
        counted = min(2 if self.shape.router_bias else 1, by_group.shape[-1])
        best = by_group.topk(counted, dim=-1).values.sum(-1).topk(chosen, dim=-1).indices
        others = torch.ones_like(by_group[..., 0], dtype=torch.bool).scatter(-1, best, False)
        return by_group.masked_fill(others.unsqueeze(-1), float("-inf")).flatten(-2)

    def count(self, chosen: Tensor) -> None:
        if self.counting:
            self.load += torch.bincount(chosen.flatten(), minlength=self.shape.experts)

    def correct(self, load: Tensor) -> None:
        """From the load of all ranks in an iteration."""
        self.load.zero_()
        if self.shape.router_bias:
            self.correction += CORRECTION_STEP * torch.sign(load.mean() - load).to(self.correction.dtype)


def run_experts(p: Parallel, w: Weights, router: Router, x: Tensor) -> Tensor:
    """On rows that no other rank of the expert group has."""
    rows = x.flatten(0, 1)
    gates, chosen = router.choose(w.linear(rows, "router"))
    router.count(chosen)
    order = chosen.flatten().argsort(stable=True)
    token = order.div(chosen.shape[1], rounding_mode="floor")
    answers = _answers(p, router, w, rows[token], chosen.flatten()[order])
    weighted = answers * gates.flatten()[order].unsqueeze(-1)
    return torch.zeros_like(rows).index_add(0, token, weighted).view_as(x)


def _answers(p: Parallel, router: Router, w: Weights, rows: Tensor, expert: Tensor) -> Tensor:
    """What the experts answer to rows that are sorted by expert."""
    d, experts = p.place.degrees, router.shape.experts
    held = experts // d.ep
    counts = torch.bincount(expert, minlength=experts).view(d.ep, held)
    per_owner = counts.sum(1).tolist()
    # Each owner is so many expert-tp ranks in a row, and each of them wants all of its rows.
    blocks = rows.split(per_owner)
    outgoing_rows = torch.cat([block for block in blocks for _ in range(d.etp)])
    outgoing = [n for n in per_owner for _ in range(d.etp)]
    table = counts.repeat_interleave(d.etp, 0)
    arrived_counts = p.experts.exchange_rows(table, [1] * p.experts.size, [1] * p.experts.size)
    incoming = arrived_counts.sum(1).tolist()
    arrived = p.exchange(outgoing_rows, outgoing, incoming)
    returned = p.exchange(_run_held(p, router.details, w, held, arrived, arrived_counts), incoming, outgoing)
    # Back in the order of owners: the parts of an owner's ranks are summed.
    parts = returned.split(outgoing)
    return torch.cat([sum(parts[o * d.etp + 1:(o + 1) * d.etp], parts[o * d.etp]) for o in range(d.ep)])


def _run_held(p: Parallel, d: Details, w: Weights, held: int, rows: Tensor, counts: Tensor) -> Tensor:
    """The rank's experts on rows that came by member and, of each member, by expert: counts (members, held)."""
    expert = torch.arange(held, device=rows.device).repeat(counts.shape[0]).repeat_interleave(counts.flatten())
    by_expert = expert.argsort(stable=True)
    first = p.place.ep * held
    prefixes = [f"experts.{first + e}." for e in range(held)]
    if grouped_experts.can_group(w, prefixes, rows):
        answers = grouped_experts.feed_forwards(d, w, prefixes, rows[by_expert], counts.sum(0))
    else:
        shares = rows[by_expert].split(counts.sum(0).tolist())
        answers = torch.cat([feed_forward(d, w, prefix, share, adds_bias=p.place.etp == 0)
                             for prefix, share in zip(prefixes, shares)])
    return torch.zeros_like(rows).index_copy(0, by_expert, answers)

