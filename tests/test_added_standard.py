"""A standard of memories that a plug-in brings, from its file to the times of a burst: one record and one line."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from kernbench_builtin.components.dram import DramPlace
from kernbench_builtin.memory_standards import HBM2_2000, Figure, MemoryStandard
from kernbench_builtin.probe.dram_driver import DramProbe
from kernbench_core.cli import main
from kernbench_core.errors import ConfigError, PluginError
from kernbench_core.graph import Node
from kernbench_core.params import resolve_params
from kernbench_core.plugins import Plugins, load_plugins
from kernbench_core.runs import configure
from kernbench_core.testing import Rig
from kernbench_core.topology import compile_topology
from kernbench_core.values import Region
from tests.conftest import SOURCE_TREE

BANK = "builtin.hbm_ctrl_bank"
#: Rates and clocks of powers of two, and times that no other standard has.
STANDARD = """
from attrs import evolve
from kernbench_builtin.memory_standards import HBM2_2000, Figure
from kernbench_core import MemoryStandardEntry

kernbench_api = 1
FAST = evolve(HBM2_2000, tCL=Figure("7 ns", "chosen"), tRCDRD=Figure("11 ns", "chosen"), tRP=Figure("9 ns", "chosen"))


def kernbench_memory_standards():
    return [MemoryStandardEntry(f"{__name__}.fast", f"{__name__}:FAST", "HBM2 with short times.")]
"""
SETS = (f"components.hbm_ctrl.impl={BANK}", "components.hbm_ctrl.params.standard=")


@pytest.fixture
def loaded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], Plugins]]:
    """Give what loads the plug-ins of this tree with a file of a test, `mine.py`."""

    monkeypatch.setattr(sys, "path", [*sys.path])

    def load(text: str) -> Plugins:
        file = tmp_path / "mine.py"
        file.write_text(text)
        return load_plugins([*SOURCE_TREE, str(file)], installed=False)

    yield load
    sys.modules.pop("mine", None)


def controller(plugins: Plugins, standard: str) -> dict[str, Any]:
    """Return the parameters of a controller of a machine that is compiled from a configuration."""
    config = configure(plugins, "tiny", sets=[SETS[0], f"{SETS[1]}{standard}"])
    graph = compile_topology(config, plugins)
    return next(dict(node.params) for node in graph.nodes.values() if node.kind == "hbm_ctrl")


def test_its_figures_are_the_defaults_and_are_what_a_burst_takes(loaded: Callable[[str], Plugins]) -> None:
    """A lone read of a closed row takes tRCDRD + tCL and two clocks of 1 ns; of what it leaves alone, HBM2's are."""
    plugins = loaded(STANDARD)
    params = controller(plugins, "mine.fast")
    assert (params["standard"], params["tCL"], params["tRCDRD"], params["tRP"]) == ("mine.fast", 7, 11, 9)
    assert {name: params[name] for name in ("tRAS", "tRC", "channel_bandwidth", "banks")} == {
        "tRAS": 34, "tRC": 48, "channel_bandwidth": 16, "banks": 16,
    }  # fmt: skip
    given = {"standard": "mine.fast", "tCL": "8 ns", "overhead": "0 ns", "refresh": "none"}
    values, wrong = resolve_params(plugins.components.declared(BANK), given, str)
    assert (wrong, values["tCL"], values["tRP"]) == ([], 8, 9)
    probe = DramProbe(Node("it", "hbm_ctrl", BANK, values | {"tCL": 7}), plugins.components)
    assert probe.geometry.address is not None
    burst = Region(probe.geometry.address(DramPlace(0, 0, 0, 0)), 32)
    assert probe.latencies([(256 - 2**-12, "read", (burst,))])[0] == pytest.approx(11 + 7 + 2, abs=0.01)


def test_what_compiles_and_rigs_have_it_alike(loaded: Callable[[str], Plugins]) -> None:
    """A rig takes the name of a model with it, too; a changed file is noticed by who compiles the same again."""
    plugins = loaded(STANDARD)
    first = controller(plugins, "mine.fast")
    under_test: Any = Rig(BANK, {"standard": "mine.fast"}, catalogue=plugins.components).under_test
    assert under_test.timing.tCL == first["tCL"] == 7
    assert controller(loaded(STANDARD.replace('"7 ns"', '"6 ns"')), "mine.fast")["tCL"] == 6


def test_wrong_names_are_told_with_those_there_are(loaded: Callable[[str], Plugins]) -> None:
    """Without a machine, at the place where the name stands."""
    plugins = loaded(STANDARD)
    place = "components.hbm_ctrl.params.standard"
    for name, hint in (("mine.fst", " Did you mean 'mine.fast'?"), ("ddr", "")):
        with pytest.raises(ConfigError) as caught:
            controller(plugins, name)
        assert caught.value.problems == (
            f"--set {place}={name}: {place} must be one of 'hbm2_2000', 'hbm3_6400', 'hbm3_6400_8hi', 'hbm4_8000', "
            "'hbm4_8000_8hi', 'mine.fast', not "
            f"{name!r}.{hint}",
        )
    with pytest.raises(ConfigError) as caught:
        controller(load_plugins([*SOURCE_TREE], installed=False), "mine.fast")
    assert caught.value.problems[0].endswith(
        "must be one of 'hbm2_2000', 'hbm3_6400', 'hbm3_6400_8hi', 'hbm4_8000', 'hbm4_8000_8hi', not 'mine.fast'."
    )


def test_a_wrong_figure_is_told_of_the_standard(loaded: Callable[[str], Plugins]) -> None:
    """At the place where its name stands: nobody wrote the figure where the controller's parameters are."""
    with pytest.raises(ConfigError) as caught:
        controller(loaded(STANDARD.replace('"7 ns"', '"-7 ns"')), "mine.fast")
    place = "components.hbm_ctrl.params.standard"
    told = f"--set {place}=mine.fast: {place} gives tCL, which must be a time, not '-7 ns'."
    assert caught.value.problems == (told,)


def test_the_plug_in_that_failed_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With why it did."""
    (tmp_path / "acme_plugin.py").write_text("raise ImportError('no libfoo')")
    monkeypatch.syspath_prepend(tmp_path)
    plugins = load_plugins([*SOURCE_TREE, "acme = acme_plugin"], installed=False)
    with pytest.raises(ConfigError) as caught:
        controller(plugins, "acme.fast")
    assert caught.value.problems[0].endswith(
        "not 'acme.fast'. standard of memories 'acme.fast' belongs to plug-in 'acme' (acme_plugin (source tree)), "
        "which could not be loaded: ImportError: no libfoo (acme_plugin.py:1)."
    )


@pytest.mark.parametrize(
    ("target", "sentence"),
    [
        ("{__name__}:NONE", "must be importable from 'mine:NONE', but that raised AttributeError"),
        ("{__name__}:SETS", "must have a default of 'channel_bandwidth', which it lacks"),
    ],
)
def test_a_record_that_cannot_be_had_is_a_sentence_of_who_names_it(
    loaded: Callable[[str], Plugins], target: str, sentence: str
) -> None:
    """And of nobody else: the others are there, and the schema has them."""
    plugins = loaded(STANDARD.replace("{__name__}:FAST", target) + "\nSETS = 7\n")
    with pytest.raises(PluginError) as caught:
        controller(plugins, "mine.fast")
    assert str(caught.value).startswith("standard of memories 'mine.fast' of file ") and sentence in str(caught.value)
    assert controller(plugins, "hbm4_8000")["tCL"] == 10
    (rate,) = (each for each in plugins.components.declared(BANK) if each.name == "channel_bandwidth")
    assert rate.follows is not None
    assert dict(rate.follows[1]) == {
        "hbm2_2000": "16 GB/s", "hbm3_6400": "25.6 GB/s", "hbm3_6400_8hi": "25.6 GB/s", "hbm4_8000": "32 GB/s",
        "hbm4_8000_8hi": "32 GB/s",
    }  # fmt: skip


def test_commands_list_it(loaded: Callable[[str], Plugins], capsys: pytest.CaptureFixture[str]) -> None:
    """Among the choices of the model, in the schema, and among what the plug-in brings."""
    plugins = loaded(STANDARD)

    def printed(*args: str) -> Any:
        assert main([*args], plugins) == 0
        return json.loads(capsys.readouterr().out)

    model = printed("components", BANK, "--json")["component"]
    choices = ["hbm2_2000", "hbm3_6400", "hbm3_6400_8hi", "hbm4_8000", "hbm4_8000_8hi", "mine.fast"]
    assert model["params"][0]["choices"] == choices
    schema = json.dumps(printed("topology", "schema"))
    assert '"mine.fast"' in schema and "14 ns of hbm2_2000" in schema and "7 ns of mine.fast" in schema
    (entry,) = printed("plugins", "show", "mine", "--json")["plugin"]["entries"]["memory_standards"]
    assert entry["name"] == "mine.fast"


def test_a_record_lacks_nothing_and_holds_figures_only() -> None:
    """Both are told where it is made."""
    with pytest.raises(TypeError, match="missing 28 required keyword-only arguments"):
        MemoryStandard(tCL=Figure("7 ns", "chosen"))  # type: ignore[call-arg]
    with pytest.raises(TypeError) as caught:
        MemoryStandard(**{**HBM2_2000.figures, "tRC": "48 ns"})  # type: ignore[arg-type]
    assert str(caught.value) == "tRC must be a Figure of a value and its source, not '48 ns'"
