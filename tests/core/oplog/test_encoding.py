"""The encoding that hashes of op logs are made of."""

from __future__ import annotations

import pytest
from attrs import make_class

from kernbench_core.oplog.encoding import canonical
from kernbench_core.values.region import Region

REGION = bytes.fromhex(
    "6f4400000000000000" "730600000000000000526567696f6e" "282c00000000000000"
    "6902000000000000003436" "6902000000000000003634" "69010000000000000033" "690300000000000000313238"
)  # fmt: skip
"""An object of 68 bytes: the string Region, and the tuple (46, 64, 3, 128) of 44."""


def test_a_region_is_encoded_as_it_always_was() -> None:
    """Written by hand from the rule: tag, length, content."""
    assert canonical(Region(46, 64, 3, 128)) == REGION


@pytest.mark.parametrize(("one", "other"), [(make_class("One", ["x"])(1), make_class("Other", ["x"])(1)), (int, str)])
def test_a_class_goes_by_what_it_is_called(one: object, other: object) -> None:
    """Each pair differs in nothing else."""
    assert canonical(one) != canonical(other)
