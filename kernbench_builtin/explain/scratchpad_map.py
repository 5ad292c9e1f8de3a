"""What the scratchpads held over time: a recorder that is attached when asked for, and what it found."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import attrs

from kernbench_core.callsite import describe_site
from kernbench_core.memory.scratchpad import Birth, TcmBlock, TcmTable


@attrs.frozen
class Held:
    """One block of a scratchpad: what it is for, the kernel line it was born at, where it lies, from when to when.

    `offset` and `nbytes` are bytes (rounded up to the alignment), times ns; `to_ns` is None for one that was held to
    the end.
    """

    op: str
    shape: tuple[int, ...]
    dtype: str
    line: str
    offset: int
    nbytes: int
    from_ns: float
    to_ns: float | None


@attrs.frozen
class TcmUse:
    """What one PE's scratchpad of `size` bytes held: the peak in bytes, when it was first reached (ns), and of what.

    `steps` are (ns, bytes): how much is held from that time on.
    """

    pe: str
    size: int
    peak_bytes: int
    peak_ns: float
    at_peak: tuple[Held, ...]
    steps: tuple[tuple[float, int], ...]


@attrs.frozen(repr=False)
class TcmMap:
    """What the scratchpads held, the PE with the highest peak first; `total_ns` is how long the run took."""

    uses: tuple[TcmUse, ...]
    total_ns: float

    def __repr__(self) -> str:
        most = "".join(f", at most {use.peak_bytes:,} B of {use.size:,} on {use.pe}" for use in self.uses[:1])
        return f"<TcmMap of {len(self.uses)} scratchpads{most}>"

    def to_json(self) -> list[dict[str, Any]]:
        """Return plain JSON types: what was held for the PE with the highest peak, the peaks of all."""
        return [
            {
                "pe": use.pe,
                "size": use.size,
                "peak_bytes": use.peak_bytes,
                "peak_ns": use.peak_ns,
                **({"at_peak": [attrs.asdict(held) for held in use.at_peak], "steps": use.steps} if not rank else {}),
            }
            for rank, use in enumerate(self.uses)
        ]


@attrs.define(eq=False)
class _Open:
    """A block that was handed out; it does not refer to the block, which lives as long as it is referred to."""

    birth: Birth
    offset: int
    nbytes: int
    from_ns: float
    to_ns: float | None = None

    def held(self) -> Held:
        birth = self.birth
        line = describe_site(birth.site)
        return Held(birth.op, birth.shape, birth.dtype, line, self.offset, self.nbytes, self.from_ns, self.to_ns)


@attrs.define(eq=False)
class _Log:
    table: TcmTable
    live: dict[int, _Open] = attrs.field(factory=dict)
    steps: list[tuple[float, int]] = attrs.field(factory=list)
    used: int = 0
    peak: int = 0
    peak_ns: float = 0.0
    at_peak: tuple[_Open, ...] = ()


class TcmRecorder:
    """Note what scratchpads hand out and take back. `now` tells the simulated time in ns."""

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._logs: list[_Log] = []

    def attach(self, table: TcmTable) -> None:
        """Record a scratchpad from now on."""
        log = _Log(table)
        self._logs.append(log)
        table.watch(partial(self._born, log), partial(self._gone, log))

    def result(self, total_ns: float) -> TcmMap:
        """Return what was found until now, highest peak first."""
        uses = []
        for log in self._logs:
            held = tuple(block.held() for block in log.at_peak)
            uses.append(TcmUse(log.table.pe, log.table.fit.size, log.peak, log.peak_ns, held, tuple(log.steps)))
        return TcmMap(tuple(sorted(uses, key=lambda use: (-use.peak_bytes, use.peak_ns, use.pe))), total_ns)

    def _born(self, log: _Log, block: TcmBlock) -> None:
        now, used = self._now(), log.table.fit.used
        log.live[block.address] = _Open(block.birth, block.offset, used - log.used, now)
        self._step(log, now, used)
        if used > log.peak:
            log.peak, log.peak_ns = used, now
            log.at_peak = tuple(log.live[address] for address in sorted(log.live))

    def _gone(self, log: _Log, address: int) -> None:
        now = self._now()
        log.live.pop(address).to_ns = now
        self._step(log, now, log.table.fit.used)

    def _step(self, log: _Log, now: float, used: int) -> None:
        log.used = used
        log.steps.append((now, used))
