"""What a base of kernbench declares for its objects, a subclass cannot hide: compiled code reads the declared place."""

from __future__ import annotations

from typing import Any

import pytest

import kernbench_core as kb
from kernbench_core.messages import MsgBase
from kernbench_core.wire import Wire


@pytest.mark.parametrize(
    ("base", "owner", "name"),
    [
        (MsgBase, "MsgBase", "nbytes"),
        (MsgBase, "MsgBase", "hop"),
        (MsgBase, "Scheduled", "callbacks"),
        (kb.ComponentBase, "ComponentBase", "params"),
        (kb.ComponentBase, "Works", "id"),
        (kb.ComponentBase, "Reported", "served"),
        (kb.ComponentBase, "Waits", "waits"),
        (Wire, "Wire", "bandwidth"),
    ],
)
@pytest.mark.parametrize("given", [property(lambda self: 4.0), 4, None])
def test_a_class_that_hides_a_declared_attribute_is_refused(base: type, owner: str, name: str, given: object) -> None:
    """Times would differ between the two forms of the core, and neither would say so."""
    with pytest.raises(TypeError) as caught:
        type("Hiding", (base,), {name: given, "__module__": "acme"})
    assert str(caught.value) == (
        f"acme.Hiding must leave {name!r} to {owner}, which declares it for each of its objects and reads it there; "
        "set it on the object, or choose another name."
    )


def test_a_slot_of_the_same_name_and_a_class_below_another_are_refused() -> None:
    """However far below the base a class is."""

    class Plain(MsgBase):
        __slots__ = ("colour",)

    for more in ({"__slots__": ("nbytes",)}, {"nbytes": 3}):
        with pytest.raises(TypeError, match="must leave 'nbytes' to MsgBase"):
            type("Below", (Plain,), dict(more))


def test_what_is_a_models_own_is_taken() -> None:
    """New slots, defaults that a subclass of the user's own changes, and what bases offer to be changed."""

    class Model(kb.ComponentBase):
        ON_HEAD = True
        servers = 3
        back_pressure = True
        __slots__ = ("rows",)

        def overhead(self, msg: Any) -> float:
            return 1.0

    class Changed(Model):
        rows = 4

    class Message(MsgBase):
        data_op = True

    assert (Changed.rows, Changed.servers, Message.data_op) == (4, 3, True)
