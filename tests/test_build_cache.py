"""A compiled module is used again where all that it was made of is the same, and its bytes are those written."""

from __future__ import annotations

import os
import shutil
import sys
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tools.build_cache import BuildCache, key, makers, sources_seen

#: `room.far` sees the types of `room.near` and, by these, those of `room.base`; `room.alone` sees none.
SOURCES = {
    "room/__init__.py": "",
    "room/base.py": "class Base: pass\n",
    "room/base.pxd": "cdef class Base:\n    cdef int number\n",
    "room/near.py": "from room.base import Base\n\n\nclass Near(Base): pass\n",
    "room/near.pxd": "from room.base cimport Base\n\n\ncdef class Near(Base):\n    pass\n",
    "room/far.py": "from room.near import Near\n",
    "room/far.pxd": "from libc.stdint cimport uint16_t\nfrom room.near cimport Near\n",
    "room/alone.py": "from room.base import Base\n",
    "room/twice.py": "NUMBER = 1\n",
    "room/twice.pyx": "from room.base cimport Base\nNUMBER = 2\n",
}
MODULES = {
    f"room.{name}": f"room/{name}.{'pyx' if name == 'twice' else 'py'}"
    for name in ("base", "near", "far", "alone", "twice")
}


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Write the sources into the present folder."""
    for name, text in SOURCES.items():
        (tmp_path / "checkout" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "checkout" / name).write_text(text)
    monkeypatch.chdir(tmp_path / "checkout")
    return tmp_path / "checkout"


def seen() -> dict[str, list[str]]:
    """Return the sources that each module sees, as they are now."""
    dependencies = pytest.importorskip("Cython.Build.Dependencies")
    pytest.importorskip("Cython.Utils").clear_function_caches()
    dependencies._dep_tree = None
    tree = dependencies.create_dependency_tree(quiet=True)
    return {name: sources_seen(source, tree) for name, source in MODULES.items()}


def keys(by: tuple[str, ...] = ("a compiler",)) -> dict[str, str]:
    return {name: key(by, sources) for name, sources in seen().items()}


def test_a_module_is_made_of_its_sources_and_of_all_types_that_it_sees(checkout: Path) -> None:
    """Of those that types bring with them too; not of Cython's own, nor of the code of other modules."""
    assert seen() == {
        "room.base": ["room/base.pxd", "room/base.py"],
        "room.near": ["room/base.pxd", "room/near.pxd", "room/near.py"],
        "room.far": ["room/base.pxd", "room/far.pxd", "room/far.py", "room/near.pxd"],
        "room.alone": ["room/alone.py"],
        "room.twice": ["room/base.pxd", "room/twice.py", "room/twice.pyx"],
    }


@pytest.mark.parametrize(
    ("edited", "made_anew"),
    [
        ("room/base.pxd", {"base", "near", "far", "twice"}),
        ("room/near.pxd", {"near", "far"}),
        ("room/base.py", {"base"}),
        ("room/twice.py", {"twice"}),
        ("room/twice.pyx", {"twice"}),
        ("room/alone.pxd", {"alone"}),
        ("room/__init__.py", set()),
    ],
)
def test_an_edit_makes_those_anew_that_see_it(checkout: Path, edited: str, made_anew: set[str]) -> None:
    """Also a file that was not there before, and whatever the times of files are."""
    before = keys()
    times = checkout.stat()
    with (checkout / edited).open("a") as file:
        file.write("# edited\n")
    os.utime(edited, ns=(times.st_atime_ns, times.st_mtime_ns))
    after = keys()
    assert {name for name in MODULES if before[name] != after[name]} == {f"room.{name}" for name in made_anew}


def test_a_second_checkout_has_the_same_keys(checkout: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No path of the first is part of them."""
    before = keys()
    monkeypatch.chdir(shutil.copytree(checkout, tmp_path / "another"))
    assert keys() == before


def test_other_makers_are_another_key(checkout: Path) -> None:
    """Also where the same letters are parted in another way, and where a file has the name of another."""
    by = [("ab", "c"), ("a", "bc"), ("abc",), ("ab", "c", "")]
    assert len({key(each, ["room/base.py"]) for each in by}) == len(by)
    shutil.copy("room/base.py", "room/copy.py")
    assert key(by[0], ["room/base.py"]) != key(by[0], ["room/copy.py"])


#: What stands for a compiler: it says its version, and the folder that it works in.
SAYS = "import os, sys; print(os.environ.get('SAID', '1.0'), os.getcwd(), file=sys.stderr)"


def compiler(**settings: Any) -> SimpleNamespace:
    """Return a compiler as setuptools has it."""
    lists = ("macros", "include_dirs", "libraries", "library_dirs", "runtime_library_dirs", "objects")
    usual = {**{name: [] for name in lists}, "compiler_so": [sys.executable, "-S", "-c", SAYS], "linker_so": ["ld"]}
    return SimpleNamespace(**{**usual, **settings})


def made_by(one: SimpleNamespace, *flags: str, **translator: object) -> list[str]:
    return makers(one, flags or ("-O2",), translator or {"Cython": "3.1"})


@pytest.mark.parametrize(
    "another",
    [
        {"linker_so": ["ld", "-s"]},
        {"macros": [("CYTHON_TRACE", "1")]},
        {"include_dirs": ["/elsewhere/include"]},
        {"libraries": ["m"]},
        {"library_dirs": ["/elsewhere/lib"]},
        {"runtime_library_dirs": ["/elsewhere/lib"]},
        {"objects": ["more.o"]},
        {"compiler_so": [sys.executable, "-S", "-c", f"{SAYS} "]},
    ],
)
def test_another_compiler_is_another_maker(another: dict[str, Any]) -> None:
    """By its commands, as setuptools has them for all modules."""
    assert made_by(compiler(**another)) != made_by(compiler())


def test_a_compiler_of_another_version_is_another_maker(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """As it says itself, whose command is the same; the folder that one builds in changes nothing."""
    before = made_by(compiler())
    monkeypatch.chdir(tmp_path)
    assert made_by(compiler()) == before
    monkeypatch.setenv("SAID", "1.1")
    assert made_by(compiler()) != before


def test_other_flags_and_another_translator_are_other_makers(monkeypatch: pytest.MonkeyPatch) -> None:
    """So is another Python."""
    ours = made_by(compiler())
    assert ours == made_by(compiler(), "-O2") != made_by(compiler(), "-O2", "-ffast-math")
    assert ours != made_by(compiler(), Cython="3.2")
    monkeypatch.setattr(sys, "version", "3.99.0 (another)")
    assert ours != made_by(compiler())


def test_headers_of_an_environment_are_not_part_of_the_makers() -> None:
    """Each checkout has an environment of its own."""
    assert made_by(compiler(include_dirs=[f"{sys.prefix}/include"])) == made_by(compiler())


def test_what_makes_nothing_is_an_error(tmp_path: Path) -> None:
    """That of the operating system, before anything is translated for such a compiler."""
    nowhere = str(tmp_path / "cc")
    with pytest.raises(FileNotFoundError, match=nowhere):
        made_by(compiler(compiler_so=[nowhere]))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "kept" / "modules"


def cache(folder: Path, by: tuple[str, ...] = ("a compiler",)) -> BuildCache:
    return BuildCache(folder, by, {"room.base": ["room/base.py"], "room.near": ["room/near.py"]})


def entry(folder: Path) -> Path:
    """Return the file of the one entry that there is."""
    (file,) = folder.iterdir()
    return file


def test_what_was_kept_is_there_for_others(checkout: Path, folder: Path) -> None:
    """By its name, with the same makers; its bytes may be any."""
    content = b"\x7fELF\n\n\0" * 1000
    assert cache(folder).get("room.base") is None
    cache(folder).put("room.base", content)
    assert cache(folder).get("room.base") == content
    assert cache(folder).get("room.near") is None
    assert cache(folder, ("another compiler",)).get("room.base") is None


@pytest.mark.parametrize("harm", ["cut", "flipped", "empty", "longer", "no checksum"])
def test_a_corrupted_entry_is_made_anew(checkout: Path, folder: Path, harm: str) -> None:
    """It is not used, and what is made then takes its place."""
    cache(folder).put("room.base", b"\x7fELF" * 100)
    whole = entry(folder).read_bytes()
    harmed = {
        "cut": whole[:-1],
        "flipped": whole[:-1] + bytes([whole[-1] ^ 1]),
        "empty": b"",
        "longer": whole + b"\n",
        "no checksum": b"\x7fELF" * 100,
    }
    entry(folder).write_bytes(harmed[harm])
    assert cache(folder).get("room.base") is None
    cache(folder).put("room.base", b"\x7fELF" * 100)
    assert cache(folder).get("room.base") == b"\x7fELF" * 100
    assert entry(folder).read_bytes() == whole


def test_the_entry_of_another_module_is_not_used(checkout: Path, folder: Path) -> None:
    """Its bytes are whole, but it is not what the name of the file says."""
    cache(folder).put("room.near", b"near")
    foreign = entry(folder).read_bytes()
    entry(folder).unlink()
    cache(folder).put("room.base", b"base")
    entry(folder).write_bytes(foreign)
    assert cache(folder).get("room.base") is None


def test_what_was_made_while_a_source_changed_is_not_kept(checkout: Path, folder: Path) -> None:
    """It may be of the source before or after the edit."""
    one = cache(folder)
    Path("room/base.py").write_text("class Base: edited = True\n")
    one.put("room.base", b"of which?")
    assert not folder.exists()
    cache(folder).put("room.base", b"edited")
    assert cache(folder).get("room.base") == b"edited"


def test_a_folder_that_cannot_be_written_to_is_an_error(checkout: Path, folder: Path) -> None:
    """Whoever builds goes on without; nothing is found there."""
    folder.parent.mkdir()
    folder.write_text("a file\n")
    assert cache(folder).get("room.base") is None
    with pytest.raises(FileExistsError):
        cache(folder).put("room.base", b"base")


def test_what_nobody_used_for_thirty_days_goes(checkout: Path, folder: Path) -> None:
    """What was used stays, and so does what is not of the cache."""
    cache(folder).put("room.base", b"base")
    cache(folder).put("room.near", b"near")
    (folder / "notes.txt").write_text("not of the cache\n")
    past = time.time() - 31 * 24 * 3600
    for file in folder.iterdir():
        os.utime(file, (past, past))
    assert cache(folder).get("room.base") == b"base"
    cache(folder).prune()
    assert (cache(folder).get("room.base"), cache(folder).get("room.near")) == (b"base", None)
    assert len([*folder.iterdir()]) == 2


def test_a_thousand_that_were_used_last_stay(checkout: Path, folder: Path) -> None:
    """More than ten times what a build has."""
    cache(folder).put("room.base", b"base")
    for number in range(1001):
        file = folder / f"{number}.kernbench-module"
        file.touch()
        os.utime(file, (time.time() - 3600 - number,) * 2)
    cache(folder).prune()
    left = {file.name.partition(".")[0] for file in folder.iterdir()}
    assert cache(folder).get("room.base") == b"base"
    assert len(left) == 1000 and {"0", "998"} < left and not {"999", "1000"} & left
