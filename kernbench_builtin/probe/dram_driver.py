"""Drive one DRAM controller alone: address patterns in, rates and latencies out, beside what arithmetic says.

The controller is any component with a method `geometry()` (see `dram.DramGeometry`); it hangs on wires that are too
wide to matter.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
from attrs import field, frozen

from kernbench_builtin.components.dram import DramGeometry
from kernbench_builtin.probe.dram_forms import ClosedForm, closed_form
from kernbench_builtin.probe.dram_workload import PATTERNS, DramCase, Timed, chain, check, workload
from kernbench_builtin.probe.driven.asker import Asker
from kernbench_core.component import ComponentBase
from kernbench_core.engine import ComponentClasses, Hardware, Limits, Watchdog
from kernbench_core.environment import Environment
from kernbench_core.errors import UsageError
from kernbench_core.graph import Edge, EdgeKind, Graph, Node
from kernbench_core.messages import Transaction
from kernbench_core.process import no_automatic_collection
from kernbench_core.units import GRID_NS
from kernbench_core.values import Region

_DRIVER, _CHAIN = "driver", "chain"
_WIDER = 64
"""How many times wider than the controller its wires are."""


@frozen
class DramPoint:
    """Hold one measurement: outstanding requests, or offered B/ns; achieved B/ns and part of the peak; latencies in ns.

    The latencies are those of a chain, or of reads where there are any: a write may be acknowledged before it is done.
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

    def replay(self, requests: Iterable[tuple[str, tuple[Region, ...]]], outstanding: int) -> DramPoint:
        """Measure with requests (operation, ranges) of one's own, in order, `outstanding` under way at any time."""
        with no_automatic_collection():
            hardware, controller = self._machine()
            driver: Any = hardware.components[_DRIVER]
            sent = self._transactions(driver, requests)
            driver.keep(sent, outstanding)
            return self._run(hardware, controller, sent, outstanding, None, self.geometry.peak)

    def trace(self, requests: list[Timed]) -> DramPoint:
        """Measure with the requests of a trace, each at its time."""
        hardware, controller, sent = self._scheduled(requests)
        total = sum(each.total for each in sent)
        span = requests[-1][0] - requests[0][0]
        return self._run(hardware, controller, sent, None, total / span if span else None, self.geometry.peak)

    def latencies(self, requests: list[Timed]) -> list[float]:
        """Return what each request of a trace takes, in ns."""
        hardware, controller, sent = self._scheduled(requests)
        self._run(hardware, controller, sent, None, None, self.geometry.peak)
        return [each.elapsed for each in sent]

    def beside(self, requests: list[Timed], links: Iterator[tuple[str, tuple[Region, ...]]]) -> float:
        """Return the mean ns of dependent reads, the next of `links` when one is answered, beside those of a trace."""
        hardware, controller, sent = self._scheduled(requests)
        self._chain(hardware, sent, links)
        return self._run(hardware, controller, sent, None, None, self.geometry.peak).mean_ns

    def _chain(
        self, hardware: Hardware, sent: list[Transaction], links: Iterator[tuple[str, tuple[Region, ...]]]
    ) -> None:
        driver: Any = hardware.components[_DRIVER]
        beside: Any = hardware.components[_CHAIN]
        driver.unanswered = len(sent)
        beside.follow(driver, lambda: self._transactions(beside, [next(links)])[0])

    def _scheduled(self, requests: list[Timed]) -> tuple[Hardware, ComponentBase, list[Transaction]]:
        hardware, controller = self._machine()
        driver: Any = hardware.components[_DRIVER]
        sent = self._transactions(driver, [(op, regions) for _, op, regions in requests])
        driver.schedule(sent, [time for time, _, _ in requests])
        return hardware, controller, sent

    def _measure(self, case: DramCase, outstanding: int | None, offered: float | None) -> DramPoint:
        self.check(case)
        with no_automatic_collection():  # what is made is kept
            return self._measured(case, outstanding, offered)

    def _measured(self, case: DramCase, outstanding: int | None, offered: float | None) -> DramPoint:
        hardware, controller = self._machine()
        driver: Any = hardware.components[_DRIVER]
        sent = self._transactions(driver, self.workload(case))
        if offered is None:
            driver.keep(sent, outstanding)
        else:
            gaps = np.random.default_rng(case.seed + 1).exponential(1.0, case.requests)
            gaps *= case.chunk / offered / gaps.mean()  # the offered load is exact
            driver.schedule(sent, np.cumsum(gaps).tolist())
        if case.chain:
            self._chain(hardware, sent, chain(case, self.geometry))
        return self._run(hardware, controller, sent, outstanding, offered, self.peak(case))

    def _run(
        self, hardware: Hardware, controller: ComponentBase, sent: list[Transaction],
        outstanding: int | None, offered: float | None, peak: float,
    ) -> DramPoint:  # fmt: skip
        """Let everything happen, and take what was measured."""
        geometry = self._ask(controller)
        Watchdog(hardware.env, Limits(), None).run()
        ends = [wire.available_at for wire in controller.internal_wires]
        last = max([each.tail for each in sent])
        beside: Any = hardware.components[_CHAIN]
        chained = beside.chained
        if not chained:
            last = max([last, *ends])
        span = last - min([each.born for each in sent])
        reads = chained or [each for each in sent if each.op == "read"]
        took = np.array([each.tail - each.born for each in reads or sent])
        achieved = sum([each.total for each in sent]) / span
        found: tuple[int, ...] = geometry.outcomes() if geometry.outcomes is not None else ()
        return DramPoint(
            outstanding, offered, achieved, achieved / peak, float(took.mean()),
            float(np.quantile(took, 0.5)), float(np.quantile(took, 0.99)),
            found[0] / sum(found) if sum(found) else None,
        )  # fmt: skip

    def check(self, case: DramCase) -> None:
        """Raise UsageError when the controller cannot be asked this."""
        check(case, self.geometry, self._node.impl)

    def workload(self, case: DramCase) -> Iterator[tuple[str, tuple[Region, ...]]]:
        """Yield (operation, physical ranges) of every request."""
        return workload(case, self.geometry)

    def closed_form(self, case: DramCase) -> ClosedForm:
        """Return what the controller should reach, or can never be above."""
        return closed_form(case, self.geometry, self.peak(case))

    # The machine ----------------------------------------------------------------------------------

    def _machine(self) -> tuple[Hardware, ComponentBase]:
        """Build the controller and two drivers, each with wires of its own; nothing has happened yet.

        An answer holds its wire until its last byte is there, however wide that is.
        """
        here = self._node.id
        wide = 1e5 * _WIDER
        ways = [way for driver in (_DRIVER, _CHAIN) for way in ((driver, here), (here, driver))]
        edges = [Edge(a, b, EdgeKind.HBM, wide, GRID_NS) for a, b in ways]
        graph = Graph.of([Node(_DRIVER, _DRIVER, _DRIVER), Node(_CHAIN, _DRIVER, _DRIVER), self._node], edges)
        hardware = Hardware(Environment(), graph)
        hardware.build(_WithDriver(self._classes))
        return hardware, hardware.components[here]

    def _transactions(self, driver: Any, asked: Iterable[tuple[str, tuple[Region, ...]]]) -> list[Transaction]:
        path, on_done = (driver.id, self._node.id), driver.go_on
        return [
            Transaction(op, regions, sum([each.rows * each.row_bytes for each in regions]), path, on_done)
            for op, regions in asked
        ]


@frozen
class _WithDriver:
    """Give the classes of the machine, and the driver."""

    _classes: ComponentClasses = field()

    def load(self, name: str) -> Any:
        return Asker if name == _DRIVER else self._classes.load(name)


__all__ = ["PATTERNS", "ClosedForm", "DramCase", "DramPoint", "DramProbe"]
