"""A digest of a model's code changes with its module, its bases', and what these import of their own package."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from kernbench_builtin.machines.figures import models

FILES = {
    "maker/__init__.py": "",
    "maker/unit.py": "from maker.base import Base\nfrom . import tables\n\nclass Unit(Base):\n    n = tables.N\n",
    "maker/base.py": "from maker.rates import (\n    RATE,\n)\n\nclass Base:\n    rate = RATE\n",
    "maker/rates.py": "RATE = 1\n",
    "maker/tables.py": "def rows():\n    from maker.deep.late import ROWS\n    return ROWS\nN = 1\n",
    "maker/deep/__init__.py": "",
    "maker/deep/late.py": "ROWS = 1\n\ndef again():\n    import maker.unit\n",
    "maker/other.py": "class Other:\n    pass\n",
}


@pytest.fixture(autouse=True)
def made_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Let each test have a package of its own, and nothing remembered of another one."""
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    yield
    _forget()


def _forget() -> None:
    for name in [name for name in sys.modules if name.partition(".")[0] == "maker"]:
        del sys.modules[name]
    models._digest.cache_clear()
    models._module.cache_clear()
    importlib.invalidate_caches()


def digests(tmp_path: Path, **changed: str) -> tuple[str, str]:
    """Return the digests of two models; `changed` files are commented on, by name."""
    _forget()
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text + changed.get(Path(name).stem, ""))
    parts: list[Any] = []
    for module, name in (("maker.unit", "Unit"), ("maker.other", "Other")):
        part = getattr(importlib.import_module(module), name)()
        part.node = SimpleNamespace(impl=f"maker.{name.lower()}")
        parts.append(part)
    found = models.model_digests(parts)
    assert list(found) == ["maker.other", "maker.unit"]
    return found["maker.unit"], found["maker.other"]


@pytest.mark.parametrize("file", ["late", "unit", "base", "rates", "tables"])
def test_what_a_model_imports_is_its_code(tmp_path: Path, file: str) -> None:
    """Its module, its base's, a table in brackets, a sibling, and one that it imports when it is called.

    The last imports the first again, in a circle.
    """
    before, other = digests(tmp_path)
    after, still = digests(tmp_path, **{file: "# changed\n"})
    assert before != after and other == still
    assert digests(tmp_path)[0] == before


def test_another_model_changes_nothing(tmp_path: Path) -> None:
    """Of the same package, and of no concern to it."""
    unit, before = digests(tmp_path)
    after = digests(tmp_path, other="# changed\n")
    assert after[0] == unit and after[1] != before


def test_a_model_that_is_compiled_has_the_digest_of_its_source(tmp_path: Path) -> None:
    """One source, one digest; of one whose source is not there, that of what was compiled."""
    before = digests(tmp_path)
    compiled = tmp_path / "maker" / "unit.cpython-311-x86_64-linux-gnu.so"
    compiled.write_bytes(b"\x7fELF")
    sys.modules["maker.unit"].__file__ = str(compiled)
    model = sys.modules["maker.unit"].Unit()
    model.node = SimpleNamespace(impl="maker.unit")
    for is_there in (True, False):
        models._digest.cache_clear()
        models._module.cache_clear()
        assert (models.model_digests([model])["maker.unit"] == before[0]) is is_there
        (tmp_path / "maker" / "unit.py").unlink(missing_ok=True)


def test_a_model_without_a_file_has_no_digest() -> None:
    """As one that a notebook defines."""
    model = type("Typed", (), {"__module__": "maker.nowhere"})()
    model.node = SimpleNamespace(impl="maker.typed")
    assert models.model_digests([model]) == {"maker.typed": ""}
