"""What is said below the table of why a row took its time."""

from __future__ import annotations

import pytest

from kernbench_ccl.measure.remarks import broken, remarks
from tests.ccl.measure.rows import row


@pytest.mark.parametrize(
    ("form", "idealised", "rest"),
    [
        (13400.0, False, "7.4 us more for the steps of {} by its formula, "
                         "1.4 us less, as they overlap more than it says"),
        (9000.0, False, "3 us more for the steps of {} by its formula, "
                        "3 us more, which that leaves out: dies, memories, waits of the kernel"),
        (9000.0, True, "3 us more for the steps of {} by its formula, "
                       "3 us more, which that leaves out: waits of the kernel, as with one message under way"),
        (11999.5, True, "6 us more for the steps of {} by its formula"),
        (None, False, "6 us more for this one and the machine between its links"),
        (None, True, "6 us more for this one"),
    ],
)  # fmt: skip
def test_the_parts_of_a_time_add_up(form, idealised, rest):
    """To 12 us, with a bound of 6 us; what takes no time on an ideal machine is no part there."""
    found = remarks([row(1024, formula_ns=form, bound_reason="cut")], True, idealised=idealised)
    rest = rest.format("ccl.ring_all_reduce")
    assert found == [
        f"# 1 KiB: 12 us is 6 us for any algorithm (cut), {rest}; busiest is sip0->sip1, 91% of the time"
    ]


def test_a_remark_breaks_at_blanks_alone():
    """Where a terminal is too narrow for it; a table stays as wide as it is, and so does all in a file."""
    remark = "# left out: ccl.mesh_all_reduce must run on one of the networks mesh_2d, not 'ring'"
    assert broken(remark, 80) == [remark[:76], "#   'ring'"]
    assert broken(remark, None) == broken(remark, 83) == [remark]
    row = "#       size  ring  direct"
    assert broken(row, 10) == [row] and broken("        1024  2.52", 10) == ["        1024  2.52"]
