"""Entries of the cache: whole or absent, bounded, shared by processes, and never in the way."""

from __future__ import annotations

import errno
import hashlib
import os
import random
import re
import signal
import subprocess
import time
from pathlib import Path
from unittest.mock import Mock

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
@given(at=st.integers(0, 10_000), change=st.integers(1, 255) | st.none())
def test_any_damage_is_a_miss_and_goes(cache: Cache, at: int, change: int | None) -> None:
    """One byte that is another one, wherever; and files that are cut there."""
    cache.put(key("x"), {"name": "thing"}, b"0123456789")
    file = only_file(cache)
    data = bytearray(file.read_bytes())
    if change is None:
        del data[at % len(data) :]
    else:
        data[at % len(data)] ^= change
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


def test_a_get_is_a_use_and_the_least_recent_are_pruned(cache: Cache) -> None:
    """By size, and by age."""
    for number, name in enumerate("abc"):
        cache.put(key(name), {}, b"x" * 1000)
        os.utime(cache._path(key(name)), ns=(number, number))
    cache.get(key("a"))
    size = next(cache.entries()).nbytes
    assert [entry.key for entry in cache.entries()] == [key("a"), key("c"), key("b")]
    assert cache.prune(2 * size) == ([size], [size, size])
    assert cache.get(key("b")) is None and cache.get(key("c")) is not None
    os.utime(cache._path(key("c")), (time.time() - 100, time.time() - 100))
    assert [len(cache.prune(older_s=seconds)[0]) for seconds in (101, 99)] == [0, 1]
    assert [entry.key for entry in cache.entries()] == [key("a")]


def test_a_full_disk_and_a_folder_that_cannot_be_are_one_warning(
    cache: Cache, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The entry that was there stays, nothing else is left behind, and later there may be room again."""
    cache.put(key("x"), {}, b"before")
    with monkeypatch.context() as patch, pytest.warns(KernbenchWarning) as told:
        patch.setattr(Path, "replace", Mock(side_effect=OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))))
        assert not cache.put(key("x"), {}, b"after") and not cache.put(key("y"), {}, b"after")
    sentence = f"nothing is kept in the cache: No space left on device in {str(cache.folder)!r}."
    assert [str(each.message) for each in told] == [sentence]
    assert cache.get(key("x")) == ({}, b"before") and cache.get(key("y")) is None
    file = only_file(cache)
    assert cache.put(key("y"), {}, b"later") and cache.get(key("y")) == ({}, b"later")
    below = Cache(file / "cache")  # a file stands in its place: also for who is allowed everything
    with pytest.warns(KernbenchWarning, match="nothing is kept in the cache: (Not a directory|File exists) in ") as one:
        assert not below.put(key("x"), {}) and not below.put(key("x"), {})
    assert len(one) == 1 and below.get(key("x")) is None and not list(below.entries())
    assert below.prune(0) == ([], [])


def test_what_a_killed_process_left_goes_when_it_is_old(cache: Cache) -> None:
    cache.put(key("x"), {}, b"1")
    for name, age in (("a.tmp", 7200), ("b.tmp", 60)):
        (cache.folder / name).write_bytes(b"half")
        os.utime(cache.folder / name, (time.time() - age, time.time() - age))
    Cache(cache.folder).put(key("y"), {})
    assert {path.name for path in cache.folder.iterdir()} == {"b.tmp", f"{key('x')}.entry", f"{key('y')}.entry"}


def writer(folder: Path, own: str) -> Program:
    """Return what writes entries under one key, and as many under keys of its own, until it is killed."""

    def program() -> int:
        cache, name = Cache(folder, 300_000), key("shared")
        print("ready", flush=True)
        for number in range(100_000):
            content = (b"%d " % number) * 2000
            cache.put(name, {"digest": hashlib.sha256(content).hexdigest()}, content)
            cache.put(key(f"{number}{own}"), {}, content)
            check(cache, name)
        return 0

    return program


def check(cache: Cache, name: str) -> bool:
    """Return whether there is such an entry, which is whole then."""
    found = cache.get(name)
    assert found is None or found[0] in ({}, {"digest": hashlib.sha256(found[1]).hexdigest()})
    return found is not None


@pytest.mark.parametrize("number", range(3))
def test_two_processes_write_at_once_and_are_killed_in_the_middle(tmp_path: Path, number: int) -> None:
    """One key and many, while a third reads: each time all of one or of the other, within the bound."""
    children = [Forked(writer(tmp_path, name), stdout=subprocess.PIPE) for name in "ab"]
    assert [child.stdout.readline() for child in children if child.stdout] == ["ready\n"] * 2
    cache, seen, until = Cache(tmp_path), 0, time.monotonic() + random.Random(number).uniform(0.1, 0.3)
    while time.monotonic() < until or not seen:
        seen += check(cache, key("shared"))
    assert [child.poll() for child in children] == [None, None]  # whatever they read was whole, too
    for child in children:
        child.send_signal(signal.SIGKILL)
        child.communicate()
    entries = list(cache.entries())
    assert sum(entry.nbytes for entry in entries) <= 300_000 * 17 / 16 + 20_000
    assert all(check(cache, entry.key) for entry in entries)
    assert cache.put(key("next"), {}, b"1") and cache.get(key("next")) == ({}, b"1")


def test_the_users_folder_and_bound(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("XDG_CACHE_HOME", "KERNBENCH_CACHE", "KERNBENCH_CACHE_BYTES"):
        monkeypatch.delenv(name, raising=False)
    for name, value, found in (
        ("HOME", str(tmp_path), (f"{tmp_path}/.cache/kernbench", 2 << 30)),
        ("XDG_CACHE_HOME", "relative", (f"{tmp_path}/.cache/kernbench", 2 << 30)),
        ("XDG_CACHE_HOME", "/xdg", ("/xdg/kernbench", 2 << 30)),
        ("KERNBENCH_CACHE", "/own", ("/own", 2 << 30)), ("KERNBENCH_CACHE_BYTES", "4096", ("/own", 4096)),
    ):  # fmt: skip
        monkeypatch.setenv(name, value)
        assert (str(Cache.of_user().folder), Cache.of_user().most_bytes) == found
    assert Cache.of_user() is Cache.of_user()
    monkeypatch.setenv("KERNBENCH_CACHE_BYTES", "2 GiB")
    told = "variable KERNBENCH_CACHE_BYTES must be a number of bytes, as 2147483648, not '2 GiB'."
    with pytest.raises(UsageError, match=f"^{re.escape(told)}$"):
        Cache.of_user()
