"""Drive one DRAM controller alone: address patterns in, rates and latencies out, beside what arithmetic says.

The controller is any component with a method `geometry()` (see `dram.DramGeometry`); it hangs on wires that are too
wide to matter.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from attrs import field, frozen

from kernbench_builtin.components.dram import DramGeometry, DramPlace
from kernbench_core.component import ComponentBase
from kernbench_core.engine import ComponentClasses, Hardware, Limits, Watchdog
from kernbench_core.environment import Environment
from kernbench_core.errors import UsageError
from kernbench_core.graph import Edge, EdgeKind, Graph, Node
from kernbench_core.messages import MsgBase, Transaction
from kernbench_core.units import GRID_NS, format_bytes
from kernbench_core.values import Region

PATTERNS = ("sequential", "stride", "random", "onebank")
_DRIVER = "driver"
_WIDER = 64
"""How many times wider than the controller its wires are."""
_ROWS = 4096


@frozen
class DramCase:
    """Say what a controller is asked: `requests` of `chunk` bytes by `pattern`, `stride` bytes apart for stride.

    `read_ratio` is the fraction of reads; which requests they are, and random addresses, follow `seed`.
    """

    pattern: str
    chunk: int
    requests: int
    read_ratio: float = 1.0
    stride: int = 4096
    seed: int = 0


@frozen
class DramPoint:
    """Hold one measurement: outstanding requests, or offered B/ns; achieved B/ns and part of the peak; latencies in ns.

    The latencies are those of reads, where there are any: a write may be acknowledged before it is done.
    `hit_rate` is the part of bursts that found their row open, None for a model without rows.
    """

    outstanding: int | None
    offered: float | None
    achieved: float
    share: float
    mean_ns: float
    p50_ns: float
    p99_ns: float
    hit_rate: float | None


@frozen
class ClosedForm:
    """Say what arithmetic promises for a saturated controller: part of the peak, and the rule that decides."""

    share: float
    rule: str


class DramProbe:
    """Drive the controller that stands at `node`; raise UsageError when its model or a case does not allow it."""

    def __init__(self, node: Node, classes: ComponentClasses) -> None:
        self._node = node
        self._classes = classes
        self.geometry = self._ask(self._machine()[1])

    def _ask(self, component: ComponentBase) -> DramGeometry:
        ask = getattr(component, "geometry", None)
        found = ask() if callable(ask) else None
        if not isinstance(found, DramGeometry):
            raise UsageError(
                f"{self._node.impl} must have a method geometry() that returns a DramGeometry, to be driven alone, but "
                "it has none; choose another model for hbm_ctrl, or add the method."
            )
        return found

    def default_chunk(self, pattern: str) -> int:
        """Return the bytes of a request when nobody says: 4 KiB in a row, else one burst."""
        return 4096 if pattern == "sequential" else self.geometry.burst_bytes

    def peak(self, case: DramCase) -> float:
        """Return the peak rate, in B/ns, of the channels that a pattern uses."""
        return self.geometry.channel_bandwidth if case.pattern == "onebank" else self.geometry.peak

    def closed_loop(self, case: DramCase, outstanding: int) -> DramPoint:
        """Measure with `outstanding` requests under way at any time: a new one for each answer."""
        return self._measure(case, outstanding, None)

    def open_loop(self, case: DramCase, load: float) -> DramPoint:
        """Measure with requests at random times (exponential gaps), `load` of the peak on average."""
        return self._measure(case, None, load * self.peak(case))

    def _measure(self, case: DramCase, outstanding: int | None, offered: float | None) -> DramPoint:
        self.check(case)
        hardware, controller = self._machine()
        geometry = self._ask(controller)
        driver: Any = hardware.components[_DRIVER]
        sent = [self._transaction(driver, op, regions) for op, regions in self.workload(case)]
        if offered is None:
            driver.keep(sent, outstanding)
        else:
            gaps = np.random.default_rng(case.seed + 1).exponential(1.0, case.requests)
            gaps *= case.chunk / offered / gaps.mean()  # the offered load is exact
            driver.schedule(sent, np.cumsum(gaps).tolist())
        Watchdog(hardware.env, Limits(), None).run(lambda: False)
        ends = [wire.available_at for wire in controller.internal_wires]
        span = max([*ends, *(each.tail for each in sent)]) - min(each.born for each in sent)
        reads = [each for each in sent if each.op == "read"]
        took = np.array([each.elapsed for each in reads or sent])
        achieved = case.requests * case.chunk / span
        found: tuple[int, ...] = geometry.outcomes() if geometry.outcomes is not None else ()
        return DramPoint(
            outstanding, offered, achieved, achieved / self.peak(case), float(took.mean()),
            float(np.quantile(took, 0.5)), float(np.quantile(took, 0.99)),
            found[0] / sum(found) if sum(found) else None,
        )  # fmt: skip

    def check(self, case: DramCase) -> None:
        """Raise UsageError when the controller cannot be asked this."""
        g = self.geometry
        if case.pattern == "onebank" and g.address is None:
            raise UsageError(
                f"pattern onebank must have a controller with banks, but {self._node.impl} has none; choose a model "
                "with banks for hbm_ctrl, or another pattern."
            )
        if case.pattern == "onebank" and (case.chunk % g.burst_bytes or case.chunk > g.row_bytes):
            raise UsageError(
                f"--chunk must be whole bursts of {g.burst_bytes} B in a row of {format_bytes(g.row_bytes)} for "
                f"pattern onebank, not {format_bytes(case.chunk)}."
            )
        if case.pattern == "stride" and case.stride > g.span_bytes // 2:
            raise UsageError(
                f"--stride must be at most {format_bytes(g.span_bytes // 2)}, half of what the controller is driven "
                f"over, not {format_bytes(case.stride)}."
            )
        if case.chunk > g.span_bytes // 16:
            raise UsageError(
                f"--chunk must be at most {format_bytes(g.span_bytes // 16)}, not {format_bytes(case.chunk)}."
            )

    def workload(self, case: DramCase) -> Iterator[tuple[str, tuple[Region, ...]]]:
        """Yield (operation, physical ranges) of every request."""
        rng = np.random.default_rng(case.seed)
        reads = (rng.random(case.requests) < case.read_ratio).tolist()
        span = self.geometry.span_bytes
        slots = rng.integers(0, span // case.chunk, case.requests).tolist() if case.pattern == "random" else []
        step = case.stride if case.pattern == "stride" else case.chunk
        turns = max(1, (span - case.chunk) // step)
        for index, read in enumerate(reads):
            op = "read" if read else "write"
            if case.pattern == "onebank":
                yield op, self._in_one_bank(index % _ROWS, case.chunk)
            else:
                base = slots[index] * case.chunk if slots else index % turns * step
                yield op, (Region(base, case.chunk),)

    def _in_one_bank(self, row: int, chunk: int) -> tuple[Region, ...]:
        burst, address = self.geometry.burst_bytes, self.geometry.address
        assert address is not None
        return tuple(Region(address(DramPlace(0, 0, row, column)), burst) for column in range(chunk // burst))

    # What arithmetic says -------------------------------------------------------------------------

    def closed_form(self, case: DramCase) -> ClosedForm | None:
        """Return what a saturated controller should reach, or None where turning the bus around decides."""
        g = self.geometry
        if g.locate is None:
            return self._rowless(case)
        if 0.0 < case.read_ratio < 1.0:
            return None
        t = g.timing
        lost = (t["tRTP"] + t["tRP"] + t["tRFC"] + t["tRCDRD"]) / t["tREFI"]
        uses = _Uses.of(self, case)
        cycles = {
            "tRC": t["tRC"],
            "tRAS + tRP": t["tRAS"] + t["tRP"],
            "tRCD + tRTP + tRP": t["tRCDRD"] + t["tRTP"] + t["tRP"],
        }
        if not case.read_ratio:
            cycles["tRCD + tCWL + tBL + tWR + tRP"] = t["tRCDWR"] + t["tCWL"] + t["tBL"] + t["tWR"] + t["tRP"]
            del cycles["tRCD + tRTP + tRP"]
        slowest = max(cycles, key=lambda name: cycles[name])
        per_activation = max(t["tFAW"] / 4, t["tRRD_S"])
        times = {
            "data bus, tBL a burst": uses.bursts * t["tBL"],
            "bank groups, tCCD_L a burst": uses.bursts_of_group * t["tCCD_L"],
            "activations, max(tFAW / 4, tRRD)": uses.activations * per_activation,
            f"one bank, {slowest}": uses.of_bank * cycles[slowest],
        }
        rule = max(times, key=lambda name: times[name])
        rest = f", less refresh {lost:.1%}" if lost else ""
        return ClosedForm(uses.bursts * t["tBL"] / times[rule] * (1 - lost) * uses.useful, rule + rest)

    def _rowless(self, case: DramCase) -> ClosedForm:
        """Return the promise of a model without rows, for the channels that a case uses, in whole bursts."""
        g, moved = self.geometry, dict[int, int]()
        if g.shares is None:
            return ClosedForm(g.sustained, "efficiency x peak")
        for _, regions in self.workload(case):
            for channel, nbytes in g.shares(regions):
                moved[channel] = moved.get(channel, 0) + nbytes
        useful = case.requests * case.chunk / sum(moved.values())
        rule = "efficiency x peak"
        if len(moved) < g.channels:
            rule += f", {len(moved)} of {g.channels} channels"
        if useful < 1.0:
            rule += f", {useful:.0%} of the bursts' bytes"
        return ClosedForm(g.sustained * useful * len(moved) / g.channels, rule)

    # The machine ----------------------------------------------------------------------------------

    def _machine(self) -> tuple[Hardware, ComponentBase]:
        """Build the controller and a driver; nothing has happened yet."""
        here = self._node.id
        wide = 1e5 * _WIDER
        edges = [Edge(a, b, EdgeKind.HBM, wide, GRID_NS) for a, b in ((_DRIVER, here), (here, _DRIVER))]
        graph = Graph.of([Node(_DRIVER, _DRIVER, _DRIVER), self._node], edges)
        hardware = Hardware(Environment(), graph)
        hardware.build(_WithDriver(self._classes))
        return hardware, hardware.components[here]

    def _transaction(self, driver: Any, op: str, regions: tuple[Region, ...]) -> Transaction:
        total = sum(region.nbytes for region in regions)
        return Transaction(op, regions, total, (_DRIVER, self._node.id), driver.next)


@frozen
class _Uses:
    """Count what the requests of a case use, on an average channel, group and bank of those used."""

    bursts: float
    bursts_of_group: float
    activations: float
    of_bank: float
    useful: float

    @classmethod
    def of(cls, probe: DramProbe, case: DramCase) -> _Uses:
        g = probe.geometry
        assert g.locate is not None
        per_group = max(1, g.banks // g.bank_groups)
        opened: dict[tuple[int, int], int] = {}
        bursts: dict[int, int] = {}
        groups: dict[tuple[int, int], int] = {}
        activations: dict[tuple[int, int], int] = {}
        for _, regions in probe.workload(case):
            for region in regions:
                first = region.base // g.burst_bytes * g.burst_bytes
                for at in range(first, region.base + region.nbytes, g.burst_bytes):
                    place = g.locate(at)
                    bank, group = (place.channel, place.bank), (place.channel, place.bank // per_group)
                    bursts[place.channel] = bursts.get(place.channel, 0) + 1
                    groups[group] = groups.get(group, 0) + 1
                    if opened.get(bank) != place.row:
                        opened[bank] = place.row
                        activations[bank] = activations.get(bank, 0) + 1
        total, acts = sum(bursts.values()), sum(activations.values())
        moved = total * g.burst_bytes
        return cls(
            total / len(bursts), total / len(groups), acts / len(bursts), acts / len(activations),
            case.requests * case.chunk / moved * len(bursts) * g.channel_bandwidth / probe.peak(case),
        )  # fmt: skip


class _Driver(ComponentBase):
    """Send requests to the controller, a new one for each answer or each at its time."""

    def __init__(self, node: Node, hardware: Hardware) -> None:
        super().__init__(node, hardware)
        self._left: Iterator[Transaction] = iter(())

    def keep(self, sent: list[Transaction], outstanding: int) -> None:
        """Keep `outstanding` requests under way."""
        self._left = iter(sent[outstanding:])
        for each in sent[:outstanding]:
            self.env.inject(each, self._go)

    def schedule(self, sent: list[Transaction], times: list[float]) -> None:
        """Send each request at its own time (ns)."""
        for each, time in zip(sent, times, strict=True):
            self.env.inject(each, self._go, time)

    def next(self, _: Transaction) -> None:
        """Take an answer, and send the next request at its time."""
        following = next(self._left, None)
        if following is not None:
            self.env.inject(following, self._go)

    def _go(self, msg: MsgBase) -> None:
        msg.born = self.env.now
        msg.hop = 1
        self.out_ports[msg.path[1]].send(msg, self.env.now, self.env.now)


@frozen
class _WithDriver:
    """Give the classes of the machine, and the driver."""

    _classes: ComponentClasses = field()

    def load(self, name: str) -> Any:
        return _Driver if name == _DRIVER else self._classes.load(name)
