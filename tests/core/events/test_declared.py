"""A class may not hide an attribute that its base declares: where the base is compiled, nobody would ask the class."""

from __future__ import annotations

import importlib
import re
from pathlib import Path
from typing import Any

import pytest

from kernbench_core.component import ComponentBase
from kernbench_core.errors import ComponentError
from kernbench_core.events.copying import slots_of
from kernbench_core.events.queue import Scheduled
from kernbench_core.kernel.commands import KernelCommand
from kernbench_core.messages import Command, MsgBase, Transaction
from kernbench_core.testing import Rig
from kernbench_core.wire import Wire
from kernbench_core.workers.worker import Works

CORE = Path(__file__).parents[3] / "kernbench_core"


def nothing(self: Any) -> None:
    """Be what a property asks."""


@pytest.mark.parametrize(
    ("base", "name", "declares"),
    [
        (MsgBase, "nbytes", "MsgBase"),
        (MsgBase, "callbacks", "Scheduled"),
        (Scheduled, "callbacks", "Scheduled"),
        (Command, "done", "Command"),
        (Transaction, "path", "MsgBase"),
        (Wire, "bandwidth", "Wire"),
        (Wire, "waits", "Waits"),
        (ComponentBase, "params", "ComponentBase"),
        (ComponentBase, "arrive", "ComponentBase"),
        (ComponentBase, "id", "Works"),
        (ComponentBase, "served", "Reported"),
        (ComponentBase, "env", "Reported"),
    ],
)
@pytest.mark.parametrize("hides", [property(nothing), nothing, 7, "a slot"])
def test_what_a_base_declares_is_not_hidden(base: type, name: str, declares: str, hides: Any) -> None:
    """By a property, a method, a value or another slot; the sentence says who declares it and what to do."""
    body = {"__slots__": (name,)} if hides == "a slot" else {name: hides}
    with pytest.raises(ComponentError) as caught:
        type("Hiding", (base,), {"__module__": "mine", **body})
    assert str(caught.value) == (
        f"mine.Hiding must not have `{name}` on the class: {declares} declares it as an attribute of each object, "
        f"which core reads past the class; set `self.{name}`, or choose another name."
    )


def test_a_mixin_that_comes_first_hides_too() -> None:
    """What stands before a base among the bases of a class is asked before it."""

    class Mixin:
        nbytes = 7

    with pytest.raises(ComponentError, match=r"Mixed must not have `nbytes` on the class"):
        type("Mixed", (Mixin, MsgBase), {})
    assert type("Behind", (MsgBase, Mixin), {})().nbytes == 0


def test_what_is_new_or_meant_for_classes_stays() -> None:
    """Names of its own, methods to override, defaults of classes, annotations, and hooks of other bases."""
    told = []

    class Registers:
        def __init_subclass__(cls, word: str, **options: Any) -> None:
            super().__init_subclass__(**options)
            told.append(word)

    class Own(MsgBase, Registers, word="told"):
        __slots__ = ("own",)
        data_op = True
        nbytes: int

        def answered(self) -> None:
            self.own = 1

    class Model(ComponentBase):
        """Say what models say on their class."""

        servers = 2
        ON_HEAD = True
        bound_is_exact = False
        params: Any

        def overhead(self, msg: MsgBase) -> float:
            return 3.0

    class Further(Model):
        servers = 3

    assert told == ["told"]
    assert Rig(Further).feed(0, msg=Own(100)).run().arrivals[0].time == 6.0


def test_a_property_and_the_slot_of_a_plug_in_may_be_overridden() -> None:
    """They are asked by way of the class in both forms."""

    class Words(KernelCommand):
        complete = property(nothing)

    class Slot(MsgBase):
        __slots__ = ("own",)

    class Worked(Slot):
        own = property(nothing)

    assert Words.complete is not KernelCommand.complete
    assert Worked().own is None


@pytest.mark.parametrize("file", ["messages", "wire", "reporting", "workers/worker", "component", "events/queue"])
def test_all_that_lies_in_c_is_known(file: str) -> None:
    """Each attribute that a .pxd gives a base has a slot by which both forms know it.

    The slot is in its class, or in `ComponentBase` for what lies in C beside other things that a hop looks at.
    """
    module = importlib.import_module("kernbench_core." + file.replace("/", "."))
    found = 0
    for name, body in re.findall(r"^cdef class (\w+).*:\n((?:    .*\n|\n)+)", (CORE / f"{file}.pxd").read_text(), re.M):
        for names in re.findall(r"^    cdef public \w+ ([^(\n]+)$", body, re.M):
            cls = getattr(module, name)
            if name != "EventQueue":
                assert set(names.split(", ")) <= {*slots_of(cls), *slots_of(Works), *slots_of(ComponentBase)}, name
                found += 1
    assert found
