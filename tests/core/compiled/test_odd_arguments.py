"""A slip of a model does not kill the process, although what it calls is compiled: there is an exception."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from kernbench_core.component import ComponentBase
from kernbench_core.messages import MsgBase
from kernbench_core.testing import Rig
from kernbench_core.wire import Wire


class Forward(ComponentBase):
    """Forward what arrives."""


def rig_parts() -> tuple[Any, Wire]:
    """Return a component that forwards, and the wire behind it."""
    component = Rig(Forward, {}, bandwidth=50.0, latency=1.0).under_test
    return component, next(iter(component.out_ports.values()))


@pytest.mark.parametrize(
    "slip",
    [
        lambda part, wire, msg: part.emit(None, 0.0, 0.0),
        lambda part, wire, msg: part.take_answer(None),
        lambda part, wire, msg: wire.send(None, 0.0, 0.0),
        lambda part, wire, msg: wire.deliver(None, 0.0),
        lambda part, wire, msg: wire.charge(None, 1.0, 3.0),
        lambda part, wire, msg: (setattr(msg, "hop", -1000), part.emit(msg, 0.0, 0.0)),
        lambda part, wire, msg: (setattr(msg, "hop", 2), repr(msg)),
        lambda part, wire, msg: (part.out_ports.update(dict.fromkeys(part.out_ports)), part.emit(msg, 0.0, 0.0)),
    ],
)
def test_a_slip_of_a_model_is_an_exception(slip: Callable[[Any, Wire, MsgBase], object]) -> None:
    """As in Python: None instead of a message, a hop that its path has not, a wire that was taken away."""
    component, wire = rig_parts()
    name = next(iter(component.out_ports))
    with pytest.raises((AttributeError, TypeError, IndexError)):
        slip(component, wire, MsgBase(64, (component.id, name)))
