"""Which SIPs and PEs a group has."""

from __future__ import annotations

import pytest

from kernbench_ccl.plan import make_group
from kernbench_core.errors import UsageError
from kernbench_core.graph import PeSite
from kernbench_core.peers import Channel

SITES = tuple(
    PeSite(sip * 4 + pe, sip, 0, pe, f"sip{sip}.cube0.pe{pe}", "", "", "", "") for sip in range(3) for pe in range(4)
)


def test_ranks_are_the_sips_in_the_order_given() -> None:
    """By default all of them and all of their PEs."""
    everyone = make_group(SITES)
    assert (everyone.name, everyone.sips, everyone.world, everyone.n_pe) == ("world", (0, 1, 2), 3, 4)
    assert everyone.pes == ((0, 1, 2, 3), (4, 5, 6, 7), (8, 9, 10, 11))
    some = make_group(SITES, [2, 0], pes=[3, 1], name="mine", channel=Channel("mine", slots=2))
    assert (some.sips, some.pes, some.channel) == ((2, 0), ((9, 11), (1, 3)), Channel("mine", slots=2))
    assert everyone.channel == Channel("world")


@pytest.mark.parametrize("sips", [[], [0, 0], [3]])
def test_other_sips_are_refused(sips: list[int]) -> None:
    """None, one twice, one that is not there."""
    with pytest.raises(UsageError) as caught:
        make_group(SITES, sips)
    assert str(caught.value) == (
        f"group 'world' must be of different SIPs of this run, not {sips}; this run has [0, 1, 2]."
    )
