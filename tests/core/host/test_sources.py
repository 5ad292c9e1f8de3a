"""What is executed of a bench is what was kept of it before, its own modules included."""

from __future__ import annotations

import hashlib
import os
import sys
from pathlib import Path

import pytest

from kernbench_core.host.sources import read_sources


def write(folder: Path, **files: str) -> Path:
    """Write files; `__` stands for a folder, and `_py` is added. Return the first."""
    paths = [folder / f"{name.replace('__', '/')}.py" for name in files]
    for path, text in zip(paths, files.values(), strict=True):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return paths[0]


def test_own_modules_are_found_through_every_form_of_import(tmp_path: Path) -> None:
    """Absolute, relative, of names, inside functions, and of what these import; nothing else in the folder."""
    path = write(
        tmp_path,
        mine="import a, os.path\ndef bench(rt):\n    from pack.inner import deep\n    import plain.leaf\n",
        a="from b import x\n",
        b="import a\nx = 1\n",
        pack__init="",
        pack__inner__init="from . import side\nfrom .. import up\n",
        pack__inner__deep="try:\n    from ...far import y\nexcept ImportError:\n    pass\n",
        pack__inner__side="",
        pack__up="",
        plain__leaf="",
        far="",
        unused="",
        os="",
        json="",
    )
    for name in ("pack/init.py", "pack/inner/init.py"):
        (tmp_path / name).rename(tmp_path / name.replace("init", "__init__"))
    found = read_sources(path)
    assert sorted(found.files) == [
        "a.py", "b.py", "mine.py", "pack/__init__.py", "pack/inner/__init__.py", "pack/inner/deep.py",
        "pack/inner/side.py", "pack/up.py", "plain/leaf.py",
    ]  # fmt: skip
    assert next(iter(found.files)) == "mine.py"
    assert found.hashes["b.py"] == hashlib.sha256(b"import a\nx = 1\n").hexdigest()
    module = found.execute()
    with found.importable():
        module.bench(None)
        assert sys.modules["pack.inner.deep"].__file__ == str(tmp_path / "pack/inner/deep.py")
    assert "pack" not in sys.modules and "a" not in sys.modules


def test_what_changes_later_plays_no_part(tmp_path: Path) -> None:
    """Files that are edited or lost after they were kept are executed as they were, and no bytecode is left."""
    path = write(tmp_path, mine="def bench():\n    import late\n    return late.x\n", late="x = 1\n")
    found = read_sources(path)
    path.write_text("raise ValueError\n")
    (tmp_path / "late.py").unlink()
    module = found.execute()
    with found.importable():
        assert module.bench() == 1
    assert os.listdir(tmp_path) == ["mine.py"]  # noqa: PTH208 - names alone


def test_an_edit_that_a_bytecode_cache_misses_is_seen(tmp_path: Path) -> None:
    """Same size, same time: Python's own loader would run the old text."""
    values = []
    for value in ("1", "2"):
        path = write(tmp_path, mine=f"x = {value}\n")
        os.utime(path, (1, 1))
        values.append(read_sources(path).execute().x)
    assert values == [1, 2]


def test_benches_do_not_see_each_others_modules(tmp_path: Path) -> None:
    """Modules of one name are each bench's own, once for each bench, and what others have loaded comes back."""
    made = []
    text = "import helper_of_benches as h\ndef bench():\n    import helper_of_benches as two\n    return two is h\n"
    for name in ("one", "two"):
        made.append(read_sources(write(tmp_path / name, mine=text, helper_of_benches=f"x = {name!r}\n")))
    modules = [sources.execute() for sources in made]
    assert [module.h.x for module in modules] == ["one", "two"]
    others = sys.modules["helper_of_benches"] = type(sys)("helper_of_benches")
    try:
        for sources, module in zip(made, modules, strict=True):
            with sources.importable():
                assert module.bench()
        assert sys.modules["helper_of_benches"] is others
    finally:
        del sys.modules["helper_of_benches"]
    assert not [finder for finder in sys.meta_path if type(finder).__module__ == "kernbench_core.host.sources"]


@pytest.mark.parametrize("name", ["json", "kernbench_core", "numpy"])
def test_a_name_that_means_something_else_is_no_module_of_the_folder(tmp_path: Path, name: str) -> None:
    """Python's own, kernbench's, and a mere folder that has the name of a library."""
    path = write(tmp_path, mine=f"import {name}\n", **{f"{name}__data": "raise ValueError\n"})
    found = read_sources(path)
    assert list(found.files) == ["mine.py"]
    assert found.modules == {}
