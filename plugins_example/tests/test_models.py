"""The models, one in each style, fed by hand."""

from __future__ import annotations

from typing import Any

import pytest

from kernbench_core import ComponentBase
from kernbench_core.testing import Ping, Rig, assert_ready_at
from kernbench_example.batching_sfu import BatchingSfu
from kernbench_example.lookup_tables import LoadTable
from kernbench_example.retimed_port import RetimedPort
from kernbench_example.sfu import Sfu
from kernbench_example.slow_gemm import SlowGemm


class Lookup(Ping):
    """Ask for the function of some elements."""

    __slots__ = ("elements",)

    def __init__(self, elements: int) -> None:
        super().__init__()
        self.elements = elements


class Product(Ping):
    """Ask for a product."""

    m, k, n = 33, 8, 16


def served(model: type[ComponentBase], *asked: int | Any, **params: object) -> list[tuple[float, float | None]]:
    """Feed a command every 10 ns, each over wires of its own; return when the service of each began and ended."""
    rig = Rig(model, params, inputs=4, outputs=4)
    for turn, one in enumerate(asked):
        rig.feed(10 * turn, port=turn, output=turn, msg=Lookup(one) if isinstance(one, int) else one)
    return [(line.t_start, line.t_end) for line in rig.run().log]


def test_retimers_delay_head_and_tail() -> None:
    """Wires of 1 ns and 100 B/ns, the port, two retimers; the bytes are serialised once, as in any cut-through."""
    port = Rig(RetimedPort, {"overhead": "4 ns", "retimers": 2, "retimer": "10 ns"})
    assert_ready_at(port.feed(0, nbytes=200), 1 + 4 + 2 * 10 + 1 + 200 / 100)


def test_a_product_fills_and_drains_the_array_for_every_block() -> None:
    """Three blocks of rows and one of columns; each 8 + 16 + 16 - 2 cycles of 2 ns."""
    unit = Rig(SlowGemm, {"rows": 16, "cols": 16, "clock": "500 MHz"})
    assert_ready_at(unit.feed(0, msg=Product()), 1 + 3 * (8 + 16 + 16 - 2) * 2 + 1)


def test_a_batch_is_what_waits() -> None:
    """Three wait while the first is served; of a batch the elements are counted together, and one load."""
    # 17 elements take two cycles; 16 + 1 + 1 take two as well, though three by themselves
    found = served(BatchingSfu, 17, 16, 1, 1, load="100 ns", lanes=16)
    assert found == [(1, 1 + 102), *[(103, 103 + 102)] * 3]


def test_a_batch_has_a_limit() -> None:
    """What is left waits for the next batch, which begins at once, in the order of arrivals."""
    found = served(BatchingSfu, 16, 16, 16, 16, load="100 ns", lanes=16, batch=2)
    assert found == [(1, 102), (102, 204), (102, 204), (204, 305)]


def test_batches_of_one_without_a_load_are_the_served_model() -> None:
    """The same clock and lanes, written in two styles."""
    commands = (16, 400, 33, 1)
    one = served(BatchingSfu, *commands, load="0 ns", batch=1)
    assert one == served(Sfu, *commands)
    assert one == [(1, 2), (11, 36), (36, 39), (39, 40)]


def test_a_table_that_was_loaded_ahead_is_there_for_the_next_batch() -> None:
    """And for that one alone; loads count once each."""
    found = served(BatchingSfu, LoadTable(), 16, 16, load="100 ns", lanes=16, batch=1)
    assert [end - start for start, end in found if end is not None] == [100, 1, 101]


@pytest.mark.parametrize("parts", [0, 3])
def test_parts_that_do_not_fit_are_refused(parts: int, plugins: Any) -> None:
    """Before anything is simulated."""
    import kernbench_core as kb

    with pytest.raises(kb.UsageError) as caught:
        kb.run("example-silu", topology="example-pair", params={"parts": parts}, plugins=plugins)
    assert str(caught.value) == f"parameter 'parts' must divide 'block', which is 1024, not {parts}; give a divisor."
