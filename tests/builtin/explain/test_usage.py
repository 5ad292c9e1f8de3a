"""Use over time: bins of a run against what a naive count of busy nanoseconds gives."""

from __future__ import annotations

import pytest

from kernbench_builtin.explain.causes import RecordingEnvironment
from kernbench_builtin.explain.usage import BINS, Filling, UsageSampler, filling_of
from kernbench_core.component import ComponentBase
from kernbench_core.engine.hardware import Hardware
from kernbench_core.environment import Environment, ProcessGenerator
from kernbench_core.graph import Graph, Node
from kernbench_core.messages import MsgBase
from kernbench_core.testing import line


class Serve(ComponentBase):
    """Serve for as long as the message is large, in ns."""

    def run(self, env: Environment, msg: MsgBase) -> ProcessGenerator:
        yield env.timeout(float(msg.nbytes))

    def emit(self, msg: MsgBase, head: float, tail: float) -> None:
        """End here."""


class Send(ComponentBase):
    """Pass on."""


class Classes:
    """Look the two up."""

    def load(self, name: str) -> type[ComponentBase]:
        return {"serve": Serve, "send": Send}[name]


def sampled(*sends: tuple[float, int], total: float) -> dict[str, tuple[int, tuple[float, ...]]]:
    """Send (time, bytes) from a over 1 B/ns to b, which serves; return resources and use of each kind."""
    nodes = [Node("a", "send", "send"), Node("b", "serve", "serve")]
    hardware = Hardware(env := RecordingEnvironment(), Graph.of(nodes, line("a", "b", bandwidth=1.0, latency=1.0)))
    hardware.build(Classes())
    sampler = UsageSampler(hardware)
    env.sample_with(sampler.sample, sampler.first)
    for time, nbytes in sends:
        env.inject(MsgBase(nbytes, ("a", "b")), hardware.components["a"].arrive, at=time)
    for tick in range(int(total)):
        env.timeout(float(tick + 1))
    while env.advance(1000):
        pass
    return {use.kind: (use.resources, use.utilisation) for use in sampler.usage(total)}


@pytest.mark.parametrize("scale", [1600, 4000])
def test_bins_show_when_a_resource_was_busy(scale: int) -> None:
    """A wire that is busy in the first quarter, and a server that is in the second, show there and nowhere else."""
    used = sampled((0.0, scale // 4), total=float(scale))
    quarter = BINS // 4
    wire, unit = used["pe wire"], used["serve"]
    assert wire[0] == unit[0] == 1
    assert wire[1][: quarter - 1] == pytest.approx((1.0,) * (quarter - 1), abs=0.1)
    assert wire[1][quarter + 1 :] == (0.0,) * (BINS - quarter - 1)
    assert unit[1][quarter + 1 : 2 * quarter - 1] == pytest.approx((1.0,) * (quarter - 2), abs=0.1)
    assert unit[1][: quarter - 1] == (0.0,) * (quarter - 1)


def test_use_sums_to_the_busy_time() -> None:
    """Over all bins, use is busy time: the transfer's, and as much service."""
    used = sampled((30.0, 50), (200.0, 25), total=400.0)
    for _, shares in used.values():
        assert sum(shares) * 400.0 / BINS == pytest.approx(75.0, abs=0.01)


def test_what_is_booked_ahead_counts_when_it_happens() -> None:
    """Ten messages that are put on a wire at once keep it busy for their time, one after another."""
    used = sampled(*[(0.0, 20)] * 10, total=400.0)
    wire = used["pe wire"][1]
    assert wire[:18] == pytest.approx((1.0,) * 18, abs=0.1)
    assert wire[21:] == (0.0,) * (BINS - 21)


def test_a_run_of_no_time_has_no_use() -> None:
    """There is nothing to divide by."""
    assert sampled(total=0.0) == {}


def test_filling_is_summed_up_by_kind_and_only_of_units_that_tell_of_it() -> None:
    """Two of one kind and one of another; a unit that lost nothing, or says nothing of it, is not there."""
    kinds = zip("bcdef", "xxyyz", strict=True)
    nodes = [Node("a", "send", "send"), *(Node(name, kind, "serve") for name, kind in kinds)]
    edges = [each for name in "bcdef" for each in line("a", name, bandwidth=1.0, latency=1.0)]
    hardware = Hardware(RecordingEnvironment(), Graph.of(nodes, edges))
    hardware.build(Classes())
    times = {"b": (10.0, 1.0), "c": (30.0, 4.0), "d": (20.0, 6.0), "e": (5.0, 0.0), "f": (9.0, 0.0)}
    for name, (busy, filling) in times.items():
        hardware.components[name].busy_ns, hardware.components[name].filling_ns = busy, filling
    found = filling_of(hardware, 100.0)
    assert found == (Filling("y", 1, 20.0, 6.0), Filling("x", 2, 40.0, 5.0))
    assert [each.share for each in found] == [0.3, 0.125]
