"""Installed plug-ins may be left out, and those that fail may be fatal."""

from __future__ import annotations

import json
from importlib.metadata import EntryPoint, distributions

import pytest

from kernbench_core.cli import main
from kernbench_core.errors import PluginError, UsageError
from kernbench_core.plugins import load_plugins
from tests.core.plugin_site import Site

BENCH = "from kernbench_core import BenchEntry\ndef kernbench_benches():\n    return [BenchEntry({name!r}, 'm:f')]\n"


@pytest.fixture
def two(site: Site, monkeypatch: pytest.MonkeyPatch) -> Site:
    """Install one plug-in that is right and one that is broken, and have these alone be installed."""

    def entry_points(*, group: str) -> list[EntryPoint]:
        there = distributions(path=[str(site.folder)])
        return [point for each in there for point in each.entry_points if point.group == group]

    monkeypatch.setattr("importlib.metadata.entry_points", entry_points)
    site.distribution("acme", "1.2", "acme", BENCH.format(name="saxpy"))
    site.distribution("broken", "0.3", "broken", "raise ImportError('no libfoo')")
    return site


def test_one_that_is_not_wanted_is_not_imported(two: Site) -> None:
    """It is no failure; a name of it says why it is missing."""
    plugins = load_plugins(without=["broken", "acme"])
    assert plugins.failures == ()
    assert [str(each) for each in plugins.blocked] == [
        "plug-in 'acme' (acme 1.2) is left out: --no-plugin or KERNBENCH_NO_PLUGIN names it",
        "plug-in 'broken' (broken 0.3) is left out: --no-plugin or KERNBENCH_NO_PLUGIN names it",
    ]
    with pytest.raises(PluginError) as caught:
        plugins.components["acme.sfu"]
    assert str(caught.value) == (
        "component 'acme.sfu' belongs to plug-in 'acme' (acme 1.2), which could not be loaded: --no-plugin or "
        "KERNBENCH_NO_PLUGIN names it"
    )
    with pytest.raises(UsageError) as missing:
        plugins.benches["saxpy"]
    told = (
        "It may belong to a plug-in that was left out: 'acme' (acme 1.2), 'broken' (broken 0.3); --no-plugin or "
        "KERNBENCH_NO_PLUGIN names it."
    )
    assert told in str(missing.value)


def test_the_environment_blocks_too(two: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """That of every process, unless nothing that is installed is wanted."""
    monkeypatch.setenv("KERNBENCH_NO_PLUGIN", "acme")
    assert "saxpy" not in load_plugins().benches
    assert load_plugins(installed=False).blocked == ()


def test_of_two_with_one_name_either_is_left_out_by_its_distribution(two: Site) -> None:
    """And its name leaves out both."""
    two.distribution("other", "2", "acme", BENCH.format(name="daxpy"))
    assert set(load_plugins(without=["other"]).benches) == {"saxpy"}
    assert set(load_plugins(without=["acme", "broken"]).benches) == set()


def test_a_name_that_none_has_is_refused(two: Site) -> None:
    """A run with the plug-in would look like one without."""
    with pytest.raises(UsageError) as caught:
        load_plugins(without=["acne"])
    assert str(caught.value) == (
        "plug-in to be left out (--no-plugin, KERNBENCH_NO_PLUGIN) must be one that is installed, not 'acne'. "
        "Did you mean 'acme'?"
    )


def test_strictly_every_failure_is_an_error(two: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """All of them at once, those of single entries too."""
    two.distribution("half", "2", "half", BENCH.format(name="Bad Name"))
    with pytest.raises(PluginError) as caught:
        load_plugins(strict=True)
    told = [
        "plug-in 'broken' (broken 0.3) is left out: ImportError: no libfoo (broken_plugin.py:2).",
        "bench 'Bad Name' is left out: plug-in 'half' (half 2) must name its benches in lower-case letters, digits, "
        "'-' and '_', not 'Bad Name'.",
    ]
    assert str(caught.value).splitlines() == told
    monkeypatch.setenv("KERNBENCH_STRICT_PLUGINS", "1")
    with pytest.raises(PluginError):
        load_plugins()


def test_the_command_line_says_what_is_wanted(two: Site, capsys: pytest.CaptureFixture[str]) -> None:
    """Before the command's name or behind it; strictly, a broken one ends it with 6."""
    assert main(["plugins", "list", "--json", "--no-plugin", "broken"]) == 0
    out, err = capsys.readouterr()
    assert (json.loads(out)["schema"], "broken" in err) == ("kernbench.plugins/1", False)
    assert main(["--strict-plugins", "plugins", "list"]) == 6
    told = "plug-in 'broken' (broken 0.3) is left out: ImportError: no libfoo (broken_plugin.py:2)"
    assert capsys.readouterr().err == f"error: {told}.\n"
    assert main(["--no-plugin", "brocken", "plugins", "list"]) == 2
    assert capsys.readouterr().err == (
        "error: plug-in to be left out (--no-plugin, KERNBENCH_NO_PLUGIN) must be one that is installed, not "
        "'brocken'. Did you mean 'broken'?\n"
    )


def test_the_list_tells_of_all(two: Site, capsys: pytest.CaptureFixture[str]) -> None:
    """Those that are loaded, that cannot be, and that nobody wants."""
    two.distribution("quiet", "3", "quiet", "")
    assert main(["plugins", "list", "--json", "--no-plugin", "quiet"]) == 0
    found = {each["name"]: each for each in json.loads(capsys.readouterr().out)["plugins"]}
    assert found["acme"] == {
        "name": "acme", "distribution": "acme", "version": "1.2", "api": 1, "module": "acme_plugin",
        "state": "loaded", "reasons": [], "entries": {"benches": ["saxpy"]},
    }  # fmt: skip
    assert found["broken"] == {
        "name": "broken", "distribution": "broken", "version": "0.3", "api": None, "module": None,
        "state": "left out", "reasons": ["ImportError: no libfoo (broken_plugin.py:2)"], "entries": {},
    }  # fmt: skip
    assert (found["quiet"]["state"], found["quiet"]["reasons"]) == (
        "not wanted", ["--no-plugin or KERNBENCH_NO_PLUGIN names it"],
    )  # fmt: skip
    assert main(["plugins", "list"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["plug-in", "distribution", "hooks", "brings", "state"]
    assert [line.split() for line in lines if line.startswith("acme")] == [
        ["acme", "acme", "1.2", "1", "1", "bench", "loaded"]
    ]
    assert "  broken: ImportError: no libfoo (broken_plugin.py:2)." in lines
