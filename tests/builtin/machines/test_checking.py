"""The largest machine that is checked, and one that is by one larger: in counts, in bytes, and in both."""

from __future__ import annotations

import re

import pytest

from kernbench_builtin.machines.checking import Plan, check
from kernbench_builtin.machines.specification import Spec
from kernbench_core.errors import ConfigError
from kernbench_core.topology.section_reader import read_whole
from tests.core.offered import OFFERED
from tests.core.small_machine import TEXT
from tests.core.topology.text_config import parse_config

ONE_CUBE = "sip.mesh={width: 1, height: 1}"
NO_ROOM = "the address fields or the package have no room."


def checked(*sets: str) -> Plan:
    config = parse_config(TEXT, "m.yaml", sets=sets)
    return check(config, read_whole(config, Spec), OFFERED.networks)


def faults(*sets: str) -> tuple[str, ...]:
    """Return the sentences about a machine, without where each key was written."""
    with pytest.raises(ConfigError) as caught:
        checked(*sets)
    return tuple(re.sub(r"^(--set .*|m\.yaml:[0-9:]+): ", "", sentence) for sentence in caught.value.problems)


def test_the_largest_cube_has_256_pes() -> None:
    """As many as 8 bits of an address tell apart, each with a router of its own."""
    plan = checked("cube.pes=256", "cube.hbm.capacity=256 MiB", ONE_CUBE)
    assert len(plan.design.pes) == len(set(plan.layout.pes)) == 256


def test_a_larger_cube_is_not_laid_out() -> None:
    """Its mesh, which has 8 routers, is not complained about, too."""
    sets = ("cube.hbm.capacity=257 MiB", "cube.mesh={rows: 3, columns: 3}")
    assert faults("cube.pes=257", *sets) == (f"cube.pes must be at most 256, not 257; {NO_ROOM}",)
    assert faults("cube.pes=256", "cube.hbm.capacity=256 MiB", sets[1]) == (
        "cube.mesh must have a router for each of 256 PEs, but 3 x 3 with 1 under HBM leaves 8; give more rows or "
        "columns, or a smaller hbm_zone.",
    )


#: What is wrong with all of the machines below, so that no large one is laid out or linked: a page and a network.
WRONG = ("system.page_bytes=24 B", "cube.hbm.capacity=96 B", "system.network.topology=cable")


@pytest.mark.parametrize(
    ("most", "beyond", "sentence"),
    [
        (("system.sips=512",), ("system.sips=513",), f"system.sips must be at most 512, not 513; {NO_ROOM}"),
        (("sip.mesh={width: 256, height: 1}",), ("sip.mesh={width: 257, height: 1}",),
         f"sip.mesh must be at most 256, not 257; {NO_ROOM}"),
        (("sip.io_chiplets=4",), ("sip.io_chiplets=5",), f"sip.io_chiplets must be at most 4, not 5; {NO_ROOM}"),
        (("cube.pes=256", "cube.hbm.capacity=6144 B", "sip.mesh={width: 16, height: 16}"),
         ("cube.pes=32", "cube.hbm.capacity=768 B", "sip.mesh={width: 12, height: 19}", "system.sips=9"),
         "system.sips must give at most 65536 PEs, not 65664; model a smaller machine."),
        (("pe.tcm.capacity=64 GiB",), ("pe.tcm.capacity=65 GiB",),
         "pe.tcm.capacity must be at most 64 GiB for one unit, not 65 GiB."),
    ],
)  # fmt: skip
def test_a_machine_has_as_much_as_addresses_tell_apart(
    most: tuple[str, ...], beyond: tuple[str, ...], sentence: str
) -> None:
    """9 bits for packages, 8 for their cubes, 36 for the bytes of a unit; 4 sides for chiplets; 2¹⁶ PEs in all."""
    network, page = faults(*WRONG, ONE_CUBE, *most)
    assert (network[:29], page[:43]) == ("system.network.topology must ", "system.page_bytes must be a power of two of")
    assert faults(*WRONG, ONE_CUBE, *beyond) == (network, sentence, page)
