"""Work for units of the kind pe_sfu, by which `kernbench plugins check example` drives them."""

from __future__ import annotations

from kernbench_core.testing import ModelTestbench, Ping, Probe, line


class Lookup(Ping):
    """Ask for the function of some elements, as a kernel's command does."""

    __slots__ = ("elements",)

    def __init__(self, elements: int) -> None:
        super().__init__()
        self.elements = elements


def drive(testbench: ModelTestbench) -> None:
    """Ask for look-ups of all sizes: many at once, and some when the unit has nothing to do."""
    machine = testbench.machine({"cpu": Probe, "sfu": testbench.model}, line("cpu", "sfu"))
    for at_ns in (0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 5000, 5000, 9000):
        machine.send(("cpu", "sfu"), at_ns, msg=Lookup(testbench.random.randrange(1, 1024)))
