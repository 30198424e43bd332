"""Where an encoder begins and ends: the embedding of its tokens, its connector, and how what comes out takes its places
in the sequence. Activations are (items, positions, width)."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from .details import Details
from .encoders import Encoder
from .layers import norm, plus
from .parallel import Parallel
from .samples import Placed
from .topology import common_range, piece
from .weight_gradients import Weights

DETAILS = Details()  # of all encoders: model files say no more of them


def embed_patches(p: Parallel, encoder: Encoder, w: Weights, patches: Tensor) -> Tensor:
    """Of (items, tokens, values of a token): a product with as many columns of the table; column `values` + p of those
    behind them is position p. Columns are split over tp."""
    own = patches[:, p.context_range.start:p.context_range.stop]
    if not encoder.patch_width:
        return p.to_local(own)
    held, values = piece(encoder.patch_width, p.place.tp, p.place.degrees.tp), patches.shape[-1]
    read = range(min(held.start, values), min(held.stop, values))
    out = F.linear(own[..., read.start:read.stop], w["patches"][:, :len(read)])
    if encoder.learned_positions:
        out = out + _positions(p.context_range, w["patches"][:, len(read):].t(), max(held.start - values, 0))
    return p.leave(out)


def _positions(wanted: range, table: Tensor, first: int) -> Tensor:
    """Rows of a table that begins with position `first`; zeros where it has none."""
    common = common_range(wanted, range(first, first + len(table)))
    if len(common) == 0:
        return table.new_zeros((len(wanted), table.shape[1]))
    return F.pad(table[common.start - first:common.stop - first],
                 (0, 0, common.start - wanted.start, wanted.stop - common.stop))


def connect(p: Parallel, out: Parallel, encoder: Encoder, w: Weights, x: Tensor) -> Tensor:
    """From the encoder's last activation, whose positions `p` splits, to tokens of the language model, which `out` does."""
    c = encoder.connector
    assert c is not None
    if c.norm and not c.norms_merged(encoder.hidden):
        x = norm(DETAILS, w, "norm", x)
    tokens = p.gather_context(p.enter(x))[:, encoder.first_token:]
    groups = tokens.unflatten(1, (encoder.tokens_out, encoder.merged))[:, out.context_range.start:out.context_range.stop]
    x = groups.mean(2) if c.kind == "pool" else groups.flatten(2)
    if c.norm and c.norms_merged(encoder.hidden):
        x = norm(DETAILS, w, "norm", x)
    for layer, width in enumerate(c.widths[:-1]):
        if layer > 0:
            x = F.gelu(x)
        name = str(layer)
        if layer % 2 == 0:
            x = x if layer == 0 else out.enter(x)
            if c.splits_rows(layer):
                x = w.linear(x, name, name + "_bias")
                continue
            own = piece(width, out.place.tp, out.place.degrees.tp)
            x = x[..., own.start:own.stop]
        x = plus(out.leave(w.linear(x, name)), w.get(name + "_bias"))
    return x


def put_items(p: Parallel, out: Parallel, x: Tensor, made: Tensor, placed: list[list[Placed]]) -> Tensor:
    """The embedded tokens of samples, with what an encoder made of their items in its places."""
    held, length = p.local_range, out.positions
    rows, sources = [torch.empty(0, dtype=torch.int64)], [torch.empty(0, dtype=torch.int64)]
    items = ((sample, item.first) for sample, of_sample in enumerate(placed) for item in of_sample)
    for number, (sample, first) in enumerate(items):
        own = common_range(range(first, first + length), held)
        positions = torch.arange(own.start, own.stop)
        rows.append(positions + sample * len(held) - held.start)
        sources.append(positions + number * length - first)
    rows_of, sources_of = (torch.cat(index).to(x.device) for index in (rows, sources))
    values = out.whole(made).flatten(0, 1).index_select(0, sources_of)
    return x.flatten(0, 1).index_copy(0, rows_of, values).view_as(x)


def counted(positions: range, placed: list[list[Placed]], length: int) -> Tensor:
    """(samples, positions): 1 where the token behind a position is not an item's, whose tokens nobody predicts."""
    mask = torch.ones((len(placed), len(positions)))
    for row, of_sample in zip(mask, placed):
        for item in of_sample:
            row[max(item.first - 1 - positions.start, 0):max(item.first - 1 + length - positions.start, 0)] = 0
    return mask
