"""What computes the data of a run, by name: numpy is there, others are of plug-ins, and what they have is checked."""

from __future__ import annotations

import sys
from types import ModuleType

import pytest

import kernbench_core as kb
from kernbench_core.compute.backends import Backend
from kernbench_core.errors import PluginError, UsageError
from kernbench_core.plugins import Plugins, Provider, Registry
from kernbench_core.plugins.registry import PluginFailure
from kernbench_core.runs.backends import open_backend

ACME = Provider("acme", "acme", "1.2")


class Careful(Backend):
    """Be numpy on a device that has a name."""

    name = "acme.careful"

    def __init__(self, device: str) -> None:
        self.asked = device

    @classmethod
    def on(cls, device: str) -> Careful:
        if device == "broken":
            raise RuntimeError("no such board")
        return cls(device)


@pytest.fixture
def named(plugins: Plugins, monkeypatch: pytest.MonkeyPatch) -> Plugins:
    """Return plug-ins with backends of a module of a test, beside numpy."""
    module = ModuleType("acme_backends")
    vars(module).update(Careful=Careful, number=7)
    monkeypatch.setitem(sys.modules, module.__name__, module)
    entries = [
        kb.BackendEntry("acme.careful", "acme_backends:Careful", "Careful.", ("board",)),
        kb.BackendEntry("acme.number", "acme_backends:number", "None at all."),
    ]
    point = plugins.points["backends"]
    given = (*plugins.of(point).given, *((entry, ACME) for entry in entries))
    failures = (PluginFailure(Provider("b", "bee", "3"), "ImportError"),)
    return plugins.having(point, Registry(point.noun, given, failures))


def test_numpy_is_there_without_plug_ins(plugins: Plugins) -> None:
    """And nothing else."""
    assert type(open_backend(plugins, "numpy")) is Backend
    with pytest.raises(UsageError) as caught:
        open_backend(plugins, "torch:cpu")
    assert str(caught.value) == "a backend must be numpy, not 'torch:cpu'; leave it out."


@pytest.mark.parametrize(("name", "device"), [("acme.careful", ""), ("acme.careful:board:1", "board:1")])
def test_what_a_plug_in_registers_is_asked_for_its_device(named: Plugins, name: str, device: str) -> None:
    """It may know more devices than its entry names."""
    found = open_backend(named, name)
    assert isinstance(found, Careful)
    assert found.asked == device


@pytest.mark.parametrize(
    ("name", "error", "sentence"),
    [
        (
            "acme.number", PluginError,
            "backend 'acme.number' of acme 1.2 must be a Backend class of kernbench_core.compute, not 7; "
            "repair or reinstall acme.",
        ),
        ("acme.number:1", UsageError, "backend 'acme.number' has no device, as in 'acme.number:1'; give --backend "
         "acme.number."),
        ("acme.careful:broken", PluginError, "backend 'acme.careful' of acme 1.2 raised RuntimeError: no such board; "
         "repair or reinstall acme."),
        ("acme.other", UsageError, "a backend must be acme.careful, acme.careful:board, acme.number or numpy, not "
         "'acme.other'; give one of these. It may belong to a plug-in that was left out: 'b' (bee 3)."),
    ],
)  # fmt: skip
def test_what_is_no_backend_is_a_sentence(named: Plugins, name: str, error: type[Exception], sentence: str) -> None:
    """Of who asked, or of the plug-in."""
    with pytest.raises(error) as caught:
        open_backend(named, name)
    assert str(caught.value).partition("\n")[0] == sentence
