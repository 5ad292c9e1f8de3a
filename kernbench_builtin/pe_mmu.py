"""The address translation of a PE: a component, and a utility that pe_dma calls."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import ClassVar

from kernbench_core.component import ComponentBase
from kernbench_core.context import RunContext
from kernbench_core.graph import Node
from kernbench_core.messages import MsgBase
from kernbench_core.params import Param
from kernbench_core.regions import Region


class PeMmu(ComponentBase):
    """Charge the translation of the pages that a transfer touches.

    Models: one fixed look-up time per page that a chunk touches, each page once.
    Ignores: The TLB never misses: every look-up takes the same time. Look-ups of several chunks do not contend.
    Timing: pages touched x tlb_overhead, before the chunk leaves the DMA; the same for commands and tile tokens.
    Source: an estimate of a few cycles at 1 GHz, unverified.
    """

    PARAMS: ClassVar[tuple[Param, ...]] = (
        Param("tlb_overhead", "time", "2 ns", "Look-up time of one page."),
    )

    def __init__(self, node: Node, ctx: RunContext) -> None:
        super().__init__(node, ctx)
        self._tlb_overhead: float = self.params["tlb_overhead"]

    def overhead(self, msg: MsgBase) -> float:
        """Return the look-up time of one page in ns."""
        return self._tlb_overhead

    def translation_ns(self, regions: Iterable[Region]) -> float:
        """Return the time in ns to translate every page that `regions` touch; called by pe_dma per chunk."""
        self.served += 1
        return self._tlb_overhead * pages_touched(regions, self.ctx.page_bytes)


def pages_touched(regions: Iterable[Region], page: int) -> int:
    """Return how many different pages of `page` bytes hold bytes of `regions`."""
    count, reached = 0, -1
    for first, last in sorted(run for region in regions for run in _page_runs(region, page)):
        if last > reached:
            count += last - max(first, reached + 1) + 1
            reached = last
    return count


def _page_runs(region: Region, page: int) -> Iterator[tuple[int, int]]:
    """Yield the (first, last) pages of a region, row by row unless its rows leave no page out."""
    if region.rows == 1 or abs(region.pitch) <= page:
        yield region.start // page, (region.end - 1) // page
        return
    for row in range(region.rows):
        at = region.base + row * region.pitch
        yield at // page, (at + region.row_bytes - 1) // page
