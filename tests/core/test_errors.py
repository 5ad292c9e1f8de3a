"""What errors say of errors of others."""

from __future__ import annotations

import sys
from types import ModuleType

import pytest

from kernbench_core.errors import in_words


class Refused(AttributeError):
    """A refusal in words of the module's own."""


@pytest.mark.parametrize(
    ("raised", "more"),
    [
        (Refused("use another."), "; use another"),
        (AttributeError("module has none"), ""),
        (ImportError("no such library"), ""),
    ],
    ids=["refused", "missing", "broken"],
)
def test_a_name_that_a_module_refuses_has_the_modules_words(
    monkeypatch: pytest.MonkeyPatch, raised: Exception, more: str
) -> None:
    """Which an import leaves out; what else happens while the name is looked for is not told."""
    module = ModuleType("odd_names")

    def get(name: str) -> object:
        raise raised

    monkeypatch.setattr(module, "__getattr__", get, raising=False)
    monkeypatch.setitem(sys.modules, "odd_names", module)
    told = "cannot import name 'gone' from 'odd_names' (unknown location)"
    assert in_words(ImportError(told)) == f"ImportError: {told}{more}"
