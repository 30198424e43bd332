"""Who works with whom: the groups of ranks inside a part, from its degrees. Nothing here needs PyTorch.

Ranks of a part are in the order in which Megatron-LM numbers them: tp is the fastest, then cp, then dp; of experts
expert-tp, then ep.
"""

from __future__ import annotations

from dataclasses import dataclass

from .launch_plan import Degrees, LaunchPlan, Part

Ranks = tuple[int, ...]


def piece(n: int, index: int, count: int) -> range:
    """The index-th of `count` pieces of n things."""
    return range(n * index // count, n * (index + 1) // count)


def common_range(a: range, b: range) -> range:
    first = max(a.start, b.start)
    return range(first, max(first, min(a.stop, b.stop)))


def sample_share(samples: int, replica: int, replicas: int) -> range:
    """Of so many samples those of one replica: the first samples % replicas of them have one more."""
    each, more = divmod(samples, replicas)
    first = each * replica + min(replica, more)
    return range(first, first + each + (replica < more))


@dataclass(frozen=True)
class Place:
    """Where a rank stands in its part, and the groups that it belongs to."""

    rank: int
    part: Part

    @property
    def degrees(self) -> Degrees:
        return self.part.degrees

    @property
    def index(self) -> int:
        return self.rank - self.part.first_rank

    @property
    def tp(self) -> int:
        return self.index % self.degrees.tp

    @property
    def cp(self) -> int:
        return self.index // self.degrees.tp % self.degrees.cp

    @property
    def dp(self) -> int:
        return self.index // (self.degrees.tp * self.degrees.cp)

    @property
    def etp(self) -> int:
        return self.index % self.degrees.etp

    @property
    def ep(self) -> int:
        return self.index // self.degrees.etp % self.degrees.ep

    @property
    def sequence_parallel(self) -> bool:
        return self.degrees.sequence_parallel and self.degrees.tp > 1

    @property
    def tensor(self) -> Ranks:
        """tp ranks of the same samples and positions."""
        return self._ranks(range(self.index - self.tp, self.index - self.tp + self.degrees.tp))

    @property
    def context(self) -> Ranks:
        """cp ranks of the same samples and heads."""
        first = self.index - self.cp * self.degrees.tp
        return self._ranks(range(first, first + self.degrees.cp * self.degrees.tp, self.degrees.tp))

    @property
    def experts(self) -> Ranks:
        """ep x expert-tp ranks that hold all experts once, expert-tp the fastest."""
        size = self.degrees.ep * self.degrees.etp
        return self._ranks(range(self.index // size * size, (self.index // size + 1) * size))

    @property
    def expert_tensor(self) -> Ranks:
        """expert-tp ranks of the same experts."""
        return self._ranks(range(self.index - self.etp, self.index - self.etp + self.degrees.etp))

    @property
    def copies(self) -> Ranks:
        """dp x cp ranks that hold the same slices of dense weights."""
        return self._ranks(range(self.tp, self.degrees.ranks, self.degrees.tp))

    @property
    def expert_copies(self) -> Ranks:
        """Ranks that hold the same slices of the same experts."""
        size = self.degrees.ep * self.degrees.etp
        return self._ranks(range(self.index % size, self.degrees.ranks, size))

    def sharing(self, routed: bool, zero: int) -> tuple[Ranks, Ranks]:
        """Of the copies of dense weights, or of experts, those that share what ZeRO shards, which are neighbours, and those
        with equal shards, one of each such group. Under ZeRO 0 all are in one."""
        copies = self.expert_copies if routed else self.copies
        replicate = self.degrees.expert_replicate if routed else self.degrees.dp_replicate
        each = len(copies) if zero == 0 else len(copies) // replicate
        own = copies.index(self.rank)
        return copies[own // each * each:][:each], copies[own % each::each]

    def context_range(self, positions: int) -> range:
        """Of a sample's positions those of this cp rank."""
        return piece(positions, self.cp, self.degrees.cp)

    def shard_range(self, positions: int) -> range:
        """Of these the ones that this tp rank sends and receives, and under sequence parallelism holds."""
        context = self.context_range(positions)
        own = piece(len(context), self.tp, self.degrees.tp)
        return range(context.start + own.start, context.start + own.stop)

    def samples(self, of_microbatch: int) -> range:
        """The rank's samples of a microbatch that has so many; a smaller last one may leave it none."""
        whole = sample_share(self.part.samples, self.dp, self.degrees.dp)
        first, last = (min(self.part.first_sample + end, of_microbatch) for end in (whole.start, whole.stop))
        return range(first, last)

    def _ranks(self, indices: range) -> Ranks:
        return tuple(self.part.first_rank + i for i in indices)


def place_of(plan: LaunchPlan, rank: int) -> Place:
    return Place(rank, plan.part_of(rank))
