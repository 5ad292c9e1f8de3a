"""What the machine's script has of a run."""

from __future__ import annotations

from kernbench_builtin.machines.drawing import draw_machine
from kernbench_builtin.pages.report import RunPage
from kernbench_builtin.pages.report.machine_section import MACHINE
from tests.builtin.report.pages import result
from tests.core.small_machine import machine


def test_a_launch_is_the_time_of_its_programs() -> None:
    """Not the longer one from when the host asked to when it knew, so that shares are those of `launches`."""
    uses = [{"name": "pe0.pe_gemm", "utilisation": 0.25, "busy_ns": 10.0}, {"name": "a->b", "utilisation": 0.5}]
    launch = {"kernel": "k", "injected_ns": 10.0, "started_ns": 20.0, "ended_ns": 60.0, "completed_ns": 90.0}
    made = result(launches=[{**launch, "busiest": uses}, {**launch, "kernel": "l", "busiest": []}])
    assert MACHINE.data is not None
    data = MACHINE.data(RunPage("r", made, draw_machine(machine()).to_json()))
    assert data is not None
    assert data["launches"] == [
        {"name": "1: k", "at": "20 ns", "from": 20.0, "to": 60.0, "exact": [["pe0.pe_gemm", 0.25], ["a->b", 0.5]]},
        {"name": "2: l", "at": "20 ns", "from": 20.0, "to": 60.0, "exact": []},
    ]


def test_launches_on_several_sips_say_theirs() -> None:
    """Two of one kernel are told apart; where all ran on one SIP, or none says where, there is nothing to say."""
    launch = {"kernel": "k", "started_ns": 20.0, "ended_ns": 60.0, "busiest": []}

    def names(*sips: list[int] | None) -> list[str]:
        made = result(launches=[{**launch, "sips": each} for each in sips])
        assert MACHINE.data is not None
        data = MACHINE.data(RunPage("r", made, draw_machine(machine()).to_json()))
        assert data is not None
        return [each["name"] for each in data["launches"]]

    assert names([0], [1], [0, 1, 2], None) == ["1: k on SIP 0", "2: k on SIP 1", "3: k on SIPs 0-2", "4: k"]
    assert names([1], [1]) == names(None, None) == ["1: k", "2: k"]
