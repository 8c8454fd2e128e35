"""What steps of different ranks have to wait for, from the memory that they touch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from pypto.runtime.distributed.regions import Region


@dataclass
class Access:
    """A part of an allocation that a step of a rank touches."""

    rank: int
    step: int
    region: Region
    writes: bool


@dataclass
class Order:
    """Which steps of other ranks a step has to wait for."""

    world: int
    accesses: dict[int, list[Access]] = field(default_factory=dict)
    known: list[list[int]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.known = [[-1] * self.world for _ in range(self.world)]

    def waits(self, rank: int, touched: Sequence[tuple[Region, bool]]) -> dict[int, int]:
        """The last step of every other rank that has to be over before a step of ``rank`` that touches these."""
        needed: dict[int, int] = {}
        for region, writes in touched:
            for access in self.accesses.get(region.base, ()):
                conflict = access.rank != rank and (writes or access.writes)
                if conflict and access.region.overlaps(region):
                    needed[access.rank] = max(needed.get(access.rank, -1), access.step)
        new = {other: step for other, step in needed.items() if step > self.known[rank][other]}
        for other, step in new.items():
            self.known[rank][other] = step
        return new

    def add(self, rank: int, step: int, touched: Sequence[tuple[Region, bool]]) -> None:
        """Remember what a step touches."""
        for region, writes in touched:
            accesses = self.accesses.setdefault(region.base, [])
            last = accesses[-1] if accesses else None
            if last is not None and (last.rank, last.region, last.writes) == (rank, region, writes):
                last.step = step
            else:
                accesses.append(Access(rank, step, region, writes))

    def meet(self, counts: Sequence[int]) -> None:
        """All ranks have met: everything before is over."""
        self.accesses.clear()
        for rank in range(self.world):
            self.known[rank] = [count - 1 for count in counts]
