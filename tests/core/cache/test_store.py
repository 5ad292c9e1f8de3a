"""Entries of the cache: whole or absent, bounded, shared by processes, and never in the way."""

from __future__ import annotations

import errno
import hashlib
import os
import random
import signal
import subprocess
import time
import warnings
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kernbench_core.cache.store import Cache
from kernbench_core.errors import KernbenchWarning, UsageError
from tests.core.forked import Forked, Program


def key(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def only_file(cache: Cache) -> Path:
    (found,) = cache.folder.iterdir()
    return found


@pytest.fixture
def cache(tmp_path: Path) -> Cache:
    return Cache(tmp_path / "cache")


def test_what_was_put_is_there_for_another_cache_of_the_folder(cache: Cache) -> None:
    """Byte for byte; the last of one key stays, others are not there."""
    about, data = {"kind": "test", "name": "é\n"}, b"\n\0\n\xff" + bytes(70_000)
    cache.put(key("x"), {}, b"old")
    cache.put(key("x"), about, data)
    again = Cache(cache.folder)
    assert again.get(key("x")) == (about, data)
    assert again.get(key("y")) is None
    (entry,) = again.entries()
    size = only_file(cache).stat().st_size
    assert (entry.key, entry.about, entry.nbytes) == (key("x"), about, size)
    again.remove(key("x"))
    assert cache.get(key("x")) is None and not list(cache.entries())


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(at=st.integers(0, 10_000), change=st.one_of(st.integers(1, 255), st.sampled_from(["cut", "none"])))
def test_any_damage_is_a_miss_and_goes(cache: Cache, at: int, change: int | str) -> None:
    """One byte that is another one, wherever; and files that are cut."""
    cache.put(key("x"), {"name": "thing"}, b"0123456789")
    file = only_file(cache)
    data = bytearray(file.read_bytes())
    if isinstance(change, int):
        data[at % len(data)] ^= change
    else:
        data = {"cut": data[: at % len(data)], "none": bytearray()}[change]
    file.write_bytes(data)
    (entry,) = cache.entries()
    assert entry.about == {"name": "thing"} or b'{"name": "thing"}\n' not in data
    assert cache.get(key("x")) is None and not file.exists()


@pytest.mark.parametrize("seed", range(3))
def test_the_bound_is_kept_and_the_least_recent_go(tmp_path: Path, seed: int) -> None:
    """Against a list by hand of what was used when: nothing that is younger than what stayed has gone."""
    rng = random.Random(seed)
    cache = Cache(tmp_path, 100_000)
    order: list[str] = []
    for number in range(60):
        name = key(f"{rng.randrange(60)}") if number % 3 else key(f"n{number}")
        if name in order and rng.random() < 0.5 and cache.get(name) is not None:
            order.remove(name)
        else:
            cache.put(name, {}, rng.randbytes(rng.randrange(100, 12000)))
            order = [each for each in order if each != name]
        order.append(name)
        os.utime(cache._path(name), ns=(number, number))  # as clocks may not tell them apart
        there = {entry.key for entry in cache.entries()}
        assert sum(entry.nbytes for entry in cache.entries()) <= 100_000
        assert there == set(order[-len(there) :])
    assert 10 < len(there) < len(order)


def test_a_get_is_a_use(cache: Cache) -> None:
    for number, name in enumerate("abc"):
        cache.put(key(name), {}, b"x" * 1000)
        os.utime(cache._path(key(name)), ns=(number, number))
    cache.get(key("a"))
    size = next(cache.entries()).nbytes
    assert [entry.key for entry in cache.entries()] == [key("a"), key("c"), key("b")]
    assert cache.prune(2 * size) == ([size], [size, size])
    assert cache.get(key("b")) is None and cache.get(key("c")) is not None


def test_pruning_by_age(cache: Cache) -> None:
    cache.put(key("old"), {}, b"")
    cache.put(key("new"), {}, b"")
    os.utime(cache._path(key("old")), (time.time() - 100, time.time() - 100))
    assert cache.prune(older_s=101)[0] == []
    assert len(cache.prune(older_s=99)[0]) == 1
    assert [entry.key for entry in cache.entries()] == [key("new")]


def test_an_entry_larger_than_the_bound_is_not_kept(tmp_path: Path) -> None:
    cache = Cache(tmp_path, 1000)
    cache.put(key("small"), {}, b"")
    with pytest.warns(KernbenchWarning) as told:
        cache.put(key("x"), {}, bytes(2000))
    assert str(told[0].message).startswith("nothing is kept in the cache: 1.987 KiB is more")
    assert cache.get(key("small")) is not None and cache.get(key("x")) is None


def test_a_full_disk_is_one_warning(cache: Cache, monkeypatch: pytest.MonkeyPatch) -> None:
    """The entry that was there stays, nothing else is left behind, and later there may be room again."""
    cache.put(key("x"), {}, b"before")

    def full(self: Path, target: Path) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch, warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        patch.setattr(Path, "replace", full)
        assert not cache.put(key("x"), {}, b"after")
        assert not cache.put(key("y"), {}, b"after")
    assert [str(each.message) for each in told] == [
        f"nothing is kept in the cache: No space left on device in {str(cache.folder)!r}."
    ]
    assert cache.get(key("x")) == ({}, b"before") and cache.get(key("y")) is None
    assert only_file(cache).name == f"{key('x')}.entry"
    assert cache.put(key("y"), {}, b"later")
    assert cache.get(key("y")) == ({}, b"later")


def test_a_folder_that_cannot_be_is_one_warning(tmp_path: Path) -> None:
    """A file stands in its place: also for who is allowed everything."""
    (tmp_path / "file").write_text("")
    cache = Cache(tmp_path / "file" / "cache")
    with pytest.warns(KernbenchWarning, match="nothing is kept in the cache: (Not a directory|File exists) in "):
        cache.put(key("x"), {})
    cache.put(key("x"), {})
    assert cache.get(key("x")) is None and not list(cache.entries())
    assert cache.prune(0) == ([], [])


def test_what_a_killed_process_left_goes_when_it_is_old(cache: Cache) -> None:
    cache.put(key("x"), {}, b"1")
    for name, age in (("a.tmp", 7200), ("b.tmp", 60)):
        (cache.folder / name).write_bytes(b"half")
        os.utime(cache.folder / name, (time.time() - age, time.time() - age))
    Cache(cache.folder).put(key("y"), {})
    left = {path.name for path in cache.folder.iterdir()}
    assert left == {"b.tmp", f"{key('x')}.entry", f"{key('y')}.entry"}


def writer(folder: Path, count: int, own: str) -> Program:
    """Return what writes so many entries under one key, and as many under keys of its own."""

    def program() -> int:
        cache, name = Cache(folder, 300_000), key("shared")
        print("ready", flush=True)
        for number in range(count):
            content = (b"%d " % number) * 2000
            cache.put(name, {"digest": hashlib.sha256(content).hexdigest()}, content)
            cache.put(key(f"{number}{own}"), {}, content)
            found = cache.get(name)
            assert found is None or hashlib.sha256(found[1]).hexdigest() == found[0]["digest"]
        print("done")
        return 0

    return program


def test_two_processes_write_at_once(tmp_path: Path) -> None:
    """One key and many, while a third reads: each time all of one or of the other, within the bound."""
    children = [Forked(writer(tmp_path, 40, name), stdout=subprocess.PIPE) for name in "ab"]
    cache, seen = Cache(tmp_path), 0
    while any(child.poll() is None for child in children):
        found = cache.get(key("shared"))
        seen += found is not None
        assert found is None or hashlib.sha256(found[1]).hexdigest() == found[0]["digest"]
    assert [child.communicate()[0] for child in children] == ["ready\ndone\n"] * 2
    assert seen and sum(entry.nbytes for entry in cache.entries()) <= 300_000 * 17 / 16 + 20_000
    assert all(entry.about.keys() <= {"digest"} for entry in cache.entries())


@pytest.mark.parametrize("number", range(3))
def test_killed_in_the_middle_of_writing(tmp_path: Path, number: int) -> None:
    """At a random moment: each entry that is there is whole."""
    child = Forked(writer(tmp_path, 100_000, "a"), stdout=subprocess.PIPE)
    assert child.stdout is not None and child.stdout.readline() == "ready\n"
    time.sleep(random.Random(number).uniform(0.01, 0.15))
    child.send_signal(signal.SIGKILL)
    child.communicate()
    cache = Cache(tmp_path)
    entries = list(cache.entries())
    assert all(entry.about.keys() <= {"digest"} and cache.get(entry.key) is not None for entry in entries)
    cache.put(key("next"), {}, b"1")
    assert cache.get(key("next")) == ({}, b"1")


def test_the_users_folder_and_bound(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    told: dict[str, Any] = {}
    for name, value in (
        ("HOME", str(tmp_path)), ("XDG_CACHE_HOME", "relative"), ("XDG_CACHE_HOME", "/xdg"),
        ("KERNBENCH_CACHE", str(tmp_path / "own")), ("KERNBENCH_CACHE_BYTES", "4096"),
    ):  # fmt: skip
        monkeypatch.setenv(name, value)
        if name == "HOME":
            for other in ("XDG_CACHE_HOME", "KERNBENCH_CACHE", "KERNBENCH_CACHE_BYTES"):
                monkeypatch.delenv(other, raising=False)
        found = Cache.of_user()
        told[f"{name} {value}"] = str(found.folder), found.most_bytes
    own = str(tmp_path / "own")
    assert list(told.values()) == [
        (f"{tmp_path}/.cache/kernbench", 2 << 30), (f"{tmp_path}/.cache/kernbench", 2 << 30),
        ("/xdg/kernbench", 2 << 30), (own, 2 << 30), (own, 4096),
    ]  # fmt: skip
    assert Cache.of_user() is Cache.of_user()
    monkeypatch.setenv("KERNBENCH_CACHE_BYTES", "2 GiB")
    with pytest.raises(UsageError) as caught:
        Cache.of_user()
    assert str(caught.value) == (
        "variable KERNBENCH_CACHE_BYTES must be a number of bytes, as 2147483648, not '2 GiB'."
    )
