"""The wire format, against the examples of its specification and against protobuf's own encoder."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernbench_builtin.pages.exporters.protobuf import double, fixed64, integer, message, text, varint


def test_the_examples_of_the_specification() -> None:
    """150 in field 1, "testing" in field 2, and a message with 150 in field 3."""
    assert integer(1, 150) == bytes.fromhex("089601")
    assert text(2, "testing") == bytes.fromhex("120774657374696e67")
    assert message(3, integer(1, 150)) == bytes.fromhex("1a03089601")
    assert varint(-2) == bytes.fromhex("feffffffffffffffff01")


@given(st.integers(1, 500), st.integers(0, 2**64 - 1), st.integers(-(2**63), 2**63 - 1), st.floats(allow_nan=False))
def test_numbers_are_as_protobuf_encodes_them(field: int, unsigned: int, signed: int, real: float) -> None:
    """Of all sizes."""
    encoder = pytest.importorskip("google.protobuf.internal.encoder")

    def theirs(make: object, value: object) -> bytes:
        out: list[bytes] = []
        encode = make(field, False, False)  # type: ignore[operator]
        encode(out.append, value, True)
        return b"".join(out)

    assert integer(field, unsigned) == theirs(encoder.UInt64Encoder, unsigned)
    assert integer(field, signed) == theirs(encoder.Int64Encoder, signed)
    assert fixed64(field, unsigned) == theirs(encoder.Fixed64Encoder, unsigned)
    assert double(field, real) == theirs(encoder.DoubleEncoder, real)
