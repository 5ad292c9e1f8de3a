"""The drivers of core: what is sent to a model, by the kind of node that it is made for."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

import numpy as np

from kernbench_builtin.checks.components.testbench import Driver
from kernbench_core.memory.atomic_access import AtomicMemory, AtomicTransaction
from kernbench_core.messages import Transaction
from kernbench_core.testing.rig import Probe, edge
from kernbench_core.testing.testbench import ModelTestbench
from kernbench_core.values.region import Region

#: Where the model is: some read their place from it.
_HERE: Final = "sip0.cube0.{}"
_SIZES: Final = (0, 1, 64, 100, 256, 4096)
_ROUNDS: Final = 24
#: Bytes of rows that memories are asked for: bursts, lines, no powers of two, and more than most queues hold.
_ROWS: Final = (32, 64, 64, 96, 96, 256, 256, 1024, 8192, 12288)
_LONGEST_OF_SEVERAL: Final = 1024
#: More reads and writes than most queues of memories have places.
_ACCESSES: Final = 72


def pass_messages(testbench: ModelTestbench) -> None:
    """Send messages of all sizes over two of it, some at one instant, from side to side, or for it to answer."""
    here, there = (_HERE.format(f"{testbench.model.kind or 'node'}{number}") for number in range(2))
    beside = {"west": here, "north": here, "east": there}
    joined = [*((side, node, 64.0) for side, node in beside.items()), (here, there, 48.0)]
    edges = [edge(*ends, bandwidth=rate) for a, b, rate in joined for ends in ((a, b), (b, a))]
    machine = testbench.machine({here: testbench.model, there: testbench.model, **dict.fromkeys(beside, Probe)}, edges)
    at = 0.0
    for number in range(_ROUNDS):
        source, destination = testbench.random.sample(sorted(beside), 2)
        path = tuple(dict.fromkeys((source, beside[source], beside[destination], destination)))
        machine.send(path[:-1] if number % 4 == 3 else path, at, testbench.random.choice(_SIZES))
        at += testbench.random.choice((0.0, 0.0, 0.5, 7.0, 200.0))


def access_memory(testbench: ModelTestbench) -> None:
    """Read and write it from two sides, at random addresses, alone and many at once; rows with gaps, too.

    Behind every write the other side reads the same. A memory that takes atomic ops is sent some that meet.
    """
    here = _HERE.format(f"{testbench.model.kind}0")
    sides = ("west", "east")
    edges = [each for side in sides for each in (edge(side, here, bandwidth=512.0), edge(here, side, bandwidth=512.0))]
    machine = testbench.machine({here: testbench.model, **dict.fromkeys(sides, Probe)}, edges)
    at = 0.0
    for number in range(_ACCESSES):
        base, row = 32 * testbench.random.randrange(1 << 12), testbench.random.choice(_ROWS)
        rows = 1 if row > _LONGEST_OF_SEVERAL else testbench.random.choice((1, 1, 1, 3, 4))
        region = Region(base, row, rows, 2048 if rows > 1 else 0)
        side, other = testbench.random.sample(sides, 2)
        asked = [(side, "write"), (other, "read")] if number % 3 == 2 else [(side, "read")]
        for asking, op in asked:
            msg = Transaction(op, (region,), region.nbytes, (asking, here), _nothing)
            machine.send((asking, here), at, msg=msg)
        at += 0.0 if number >= _ACCESSES // 2 else testbench.random.choice((0.0, 5.0, 400.0))
    if isinstance(machine.component(here), AtomicMemory):
        for _ in range(_ROUNDS):
            side = testbench.random.choice(sides)
            machine.send((side, here), at, msg=_change(testbench, (side, here)))
            at += testbench.random.choice((0.0, 0.0, 5.0, 400.0))


#: The kinds of node that messages pass, and those that answer reads and writes.
PASSED: Final = ("", "router", "ucie", "io_ucie", "io_noc", "link", "switch", "interface", "pcie_ep")
ACCESSED: Final = ("hbm_ctrl", "sram")
#: The drivers by kind of node; "" is a model for any kind. Plug-ins bring those of other kinds: core has no kernels.
BY_KIND: Final[Mapping[str, Driver]] = MappingProxyType(
    {**dict.fromkeys(PASSED, pass_messages), **dict.fromkeys(ACCESSED, access_memory)}
)


def _change(testbench: ModelTestbench, path: tuple[str, str]) -> AtomicTransaction:
    """Make an atomic op of a few lanes on elements of few bursts, so that many meet."""
    places = sorted(testbench.random.sample(range(64), testbench.random.choice((1, 1, 2, 8))))
    regions = tuple(Region(4 * place, 4) for place in places)
    turns = [testbench.random.choice((1, 1, 3)) for _ in places]
    return AtomicTransaction(
        regions, path, _nothing, addresses=np.array([region.base for region in regions]), turns=np.array(turns),
        sent=4 * sum(turns), returned=testbench.random.choice((0, 4 * sum(turns))), turn=lambda now: None,
    )  # fmt: skip


def _nothing(_: Transaction) -> None:
    """Take an answer; what came is looked at in the end."""
