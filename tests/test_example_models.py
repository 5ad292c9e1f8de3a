"""The models of the example plug-in, one in each style, fed by hand."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from kernbench_core.cli import main
from kernbench_core.plugins import load_plugins
from kernbench_core.testing import Ping, Rig, assert_ready_at
from tests.conftest import SOURCE_TREE

REPO = Path(__file__).parents[1]


@pytest.fixture(autouse=True)
def _source_tree() -> Iterator[None]:
    """Import the example from its folder."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(REPO / "plugins_example")
        yield


class Lookup(Ping):
    """Ask for the function of some elements."""

    __slots__ = ("elements",)

    def __init__(self, elements: int) -> None:
        super().__init__()
        self.elements = elements


def rig(module: str, name: str, **params: object) -> Rig:
    return Rig(getattr(import_module(f"kernbench_example.{module}"), name), params, inputs=4, outputs=4)


def served(rig: Rig, *elements: int) -> list[tuple[float, float | None]]:
    """Feed a command every 10 ns, each over wires of its own; return when the service of each began and ended."""
    for turn, count in enumerate(elements):
        rig.feed(10 * turn, port=turn, output=turn, msg=Lookup(count))
    return [(line.t_start, line.t_end) for line in rig.run().log]


def test_the_plug_in_module_loads_nothing_that_simulates_or_computes() -> None:
    """Every command imports it, `kernbench --help` as well."""
    heavy = {"kernbench_core.component", "numpy", "simpy"}
    program = f"import kernbench_example.plugin, sys; print({heavy!r} & {{*sys.modules}})"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(REPO), str(REPO / "plugins_example")])}
    told = subprocess.run([sys.executable, "-c", program], env=environment, check=True, capture_output=True, text=True)
    assert told.stdout == "set()\n"


def test_retimers_delay_head_and_tail() -> None:
    """Wires of 1 ns and 100 B/ns, the port, two retimers; the bytes are serialised once, as in any cut-through."""
    port = rig("retimed_port", "RetimedPort", overhead="4 ns", retimers=2, retimer="10 ns")
    assert_ready_at(port.feed(0, nbytes=200), 1 + 4 + 2 * 10 + 1 + 200 / 100)


def test_a_batch_is_what_waits() -> None:
    """Three wait while the first is served; of a batch the elements are counted together, and one load."""
    unit = rig("batching_sfu", "BatchingSfu", load="100 ns", lanes=16)
    # 17 elements take two cycles; 16 + 1 + 1 take two as well, though three by themselves
    assert served(unit, 17, 16, 1, 1) == [(1, 1 + 102), *[(103, 103 + 102)] * 3]
    assert [arrival.time for arrival in unit.arrivals] == [104, 206, 206, 206]


def test_a_batch_has_a_limit() -> None:
    """What is left waits for the next batch, which begins at once, in the order of arrivals."""
    unit = rig("batching_sfu", "BatchingSfu", load="100 ns", lanes=16, batch=2)
    assert served(unit, 16, 16, 16, 16) == [(1, 102), (102, 204), (102, 204), (204, 305)]


def test_batches_of_one_without_a_load_are_the_served_model() -> None:
    """The same clock and lanes, written in two styles."""
    commands = (16, 400, 33, 1)
    one = served(rig("batching_sfu", "BatchingSfu", load="0 ns", batch=1), *commands)
    assert one == served(rig("sfu", "Sfu"), *commands)
    assert one == [(1, 2), (11, 36), (36, 39), (39, 40)]


@pytest.mark.parametrize("parts", [0, 3])
def test_parts_that_do_not_fit_are_refused(parts: int, capsys: pytest.CaptureFixture[str]) -> None:
    plugins = load_plugins([*SOURCE_TREE, "example = kernbench_example.plugin"], installed=False)
    unit = str(REPO / "plugins_example/kernbench_example/sfu.yaml")
    args: Any = ["run", "example-silu", "--topology", "tiny", "-p", f"parts={parts}", "--components", unit]
    assert main(args, plugins) == 2
    said = f"error: parameter 'parts' must divide 'block', which is 1024, not {parts}; give a divisor.\n"
    assert capsys.readouterr().err == said
