"""The collectives that come with kernbench."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from kernbench_ccl.collectives.all_gather import ALL_GATHER
from kernbench_ccl.collectives.all_reduce import ALL_REDUCE
from kernbench_ccl.collectives.all_to_all import ALL_TO_ALL
from kernbench_ccl.collectives.barrier import BARRIER
from kernbench_ccl.collectives.broadcast import BROADCAST
from kernbench_ccl.collectives.gather import GATHER
from kernbench_ccl.collectives.record import CollectiveKind
from kernbench_ccl.collectives.reduce import REDUCE
from kernbench_ccl.collectives.reduce_scatter import REDUCE_SCATTER
from kernbench_ccl.collectives.scatter import SCATTER
from kernbench_ccl.collectives.send_recv import SEND_RECV

COLLECTIVES: Final[Mapping[str, CollectiveKind]] = MappingProxyType(
    {
        kind.name: kind
        for kind in (
            ALL_REDUCE, ALL_GATHER, REDUCE_SCATTER, ALL_TO_ALL, BROADCAST, REDUCE, GATHER, SCATTER, SEND_RECV, BARRIER,
        )
    }
)  # fmt: skip
"""Every collective that comes with kernbench, by its name, in the order of lists."""
