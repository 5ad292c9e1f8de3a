"""Results under a key and what was read: found where all of that is as it was, whatever was read in between."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from kernbench_core.cache import Cache
from kernbench_core.runs.cached.reads import digest_of, find, keep, place_of_variable

KEY = "a" * 64


def sha(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def test_what_was_read_decides(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file, one that is not there, and a variable; what depends on nothing lies under the key itself."""
    cache, file, gone = Cache(tmp_path / "cache"), tmp_path / "file", str(tmp_path / "gone")
    assert find(cache, KEY, tmp_path) is None
    assert keep(cache, KEY, tmp_path, {}, {"r": b"none"}, {}) == KEY
    assert find(cache, KEY, tmp_path) == (KEY, {"r": b"none"})
    kept = {}
    for text, value in (("1", None), ("2", None), ("1", "x"), ("1", "")):
        file.write_text(text)
        monkeypatch.delenv("READ", raising=False)
        if value is not None:
            monkeypatch.setenv("READ", value)
        reads = {str(file): sha(text), gone: "", "$READ": "" if value is None else sha(value)}
        assert reads == {place: digest_of(place) for place in (str(file), gone, place_of_variable("READ"))}
        kept[text, value] = keep(cache, KEY, tmp_path, reads, {"r": f"{text} {value}".encode()}, {"kind": "run"})
    assert len(set(kept.values()) | {KEY}) == 5
    file.write_text("1")
    monkeypatch.delenv("READ")
    assert find(cache, KEY, tmp_path) == (kept["1", None], {"r": b"1 None"})
    monkeypatch.setenv("READ", "")
    assert find(cache, KEY, tmp_path) == (kept["1", ""], {"r": b"1 "})
    assert find(cache, KEY, tmp_path / "elsewhere") is None  # where names of files mean others
    Path(gone).write_text("")
    assert find(cache, KEY, tmp_path) is None


def test_the_latest_eight_sets_are_known(tmp_path: Path) -> None:
    cache, file = Cache(tmp_path / "cache"), tmp_path / "file"
    for number in range(10):
        keep(cache, KEY, tmp_path, {str(file): sha(str(number))}, {"r": str(number).encode()}, {})
    found = []
    for number in range(10):
        file.write_text(str(number))
        found.append(find(cache, KEY, tmp_path) is not None)
    assert found == [False] * 2 + [True] * 8


@pytest.mark.parametrize("wrong", [b"no JSON", b"3", b"[3]", b"[[]]"])
def test_a_list_of_another_form_is_none(tmp_path: Path, wrong: bytes) -> None:
    cache = Cache(tmp_path)
    cache.put(KEY, {"reads.json": wrong}, {})
    assert find(cache, KEY, tmp_path) is None
    assert keep(cache, KEY, tmp_path, {"$NO_SUCH": ""}, {"r": b""}, {}) is not None
    assert find(cache, KEY, tmp_path) is not None
