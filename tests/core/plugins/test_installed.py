"""Which plug-ins are installed is read once, and again whenever that may be another answer."""

from __future__ import annotations

import importlib.metadata
import shutil
import sys
import tomllib
from pathlib import Path

import pytest

from kernbench_core.plugins.installed import installed_plugins, own_plugins
from tests.core.plugin_site import Site

BENCH = "def kernbench_benches():\n    return []\n"


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Give what grows with every time that what is installed is read."""
    times: list[str] = []
    entry_points = importlib.metadata.entry_points

    def counted(*, group: str) -> importlib.metadata.EntryPoints:
        times.append(group)
        return entry_points(group=group)

    monkeypatch.setattr("importlib.metadata.entry_points", counted)
    return times


def named(package: str) -> list[tuple[str, str, str, str]]:
    return [each for each in installed_plugins() if each[0] == package]


def test_what_has_not_changed_is_read_once(site: Site, read: list[str]) -> None:
    """As often as it is asked for."""
    site.distribution("acme", "1.2", "acme", BENCH)
    first = installed_plugins()
    assert ("acme", "acme", "acme_plugin", "1.2") in first
    assert installed_plugins() == first
    assert read == ["kernbench"]


def test_what_is_installed_later_is_there(site: Site) -> None:
    """Also another version, with another entry."""
    assert named("acme") == []
    site.distribution("acme", "1.2", "acme", BENCH)
    assert named("acme") == [("acme", "acme", "acme_plugin", "1.2")]
    shutil.rmtree(site.folder / "acme-1.2.dist-info")
    site.distribution("acme", "1.3", "acme_two", BENCH)
    assert named("acme") == [("acme", "acme_two", "acme_plugin", "1.3")]
    shutil.rmtree(site.folder / "acme-1.3.dist-info")
    assert named("acme") == []


def test_the_path_is_that_of_now(site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder that joins it, also as the one that the process is in, and one that leaves it."""
    other = Site(tmp_path / "other")
    other.folder.mkdir()
    other.distribution("further", "2.0", "further", BENCH)
    assert named("further") == []
    with monkeypatch.context() as now:
        now.syspath_prepend(str(other.folder))
        assert len(named("further")) == 1
    assert named("further") == []
    monkeypatch.syspath_prepend("")
    assert named("further") == []
    monkeypatch.chdir(other.folder)
    assert len(named("further")) == 1


def test_an_archive_and_a_missing_folder_hold_nothing(
    site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Until the folder is there."""
    archive = tmp_path / "modules.zip"
    archive.write_bytes(b"PK\5\6" + bytes(18))
    later = Site(tmp_path / "later")
    monkeypatch.setattr(sys, "path", [str(archive), str(later.folder), *sys.path])
    assert (named("acme"), named("further")) == ([], [])
    later.folder.mkdir()
    later.distribution("further", "2.0", "further", BENCH)
    assert len(named("further")) == 1


def test_our_own_are_those_of_the_distribution() -> None:
    """What is named for a source tree is what is installed."""
    project = tomllib.loads((Path(__file__).parents[3] / "pyproject.toml").read_text())["project"]
    assert own_plugins() == tuple(f"{name} = {module}" for name, module in project["entry-points"]["kernbench"].items())
    assert [text.partition(" ")[0] for text in own_plugins("builtin.checks", "ccl")] == ["builtin.checks", "ccl"]
    assert own_plugins("builtin") == own_plugins()[:-1]


def test_an_install_that_was_cut_short_is_called_by_its_entry(site: Site) -> None:
    """Without metadata, or without a name in them, there is no other name."""
    torn = site.folder / "torn-0.3.dist-info"
    torn.mkdir(parents=True)
    (torn / "entry_points.txt").write_text("[kernbench]\ntorn = torn_plugin\n")
    assert named("torn") == [("torn", "torn", "torn_plugin", "?")]
