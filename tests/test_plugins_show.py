"""`kernbench plugins show` tells what a plug-in registers, and what its models take, are wired to and count."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from kernbench_core.cli import main
from kernbench_core.plugins import Plugins, load_plugins
from kernbench_core.runs import configure
from kernbench_core.topology import compile_topology
from tests.conftest import SOURCE_TREE


@pytest.fixture(scope="module")
def plugins() -> Iterator[Plugins]:
    """Load the plug-ins of this tree, the example among them."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(Path(__file__).parent.parent / "plugins_example")
        yield load_plugins([*SOURCE_TREE, "example = kernbench_example.plugin"], installed=False)


def shown(plugins: Plugins, capsys: pytest.CaptureFixture[str], name: str) -> dict[str, object]:
    assert main(["plugins", "show", name, "--json"], plugins) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["schema"] == "kernbench.plugin/1"
    return dict(found["plugin"])


def test_models_tell_their_parameters_and_statistics(plugins: Plugins, capsys: pytest.CaptureFixture[str]) -> None:
    """As their classes declare them, for every model of the tree."""
    for name in ("builtin", "example"):
        for model in shown(plugins, capsys, name)["entries"]["components"]:  # type: ignore[index]
            cls = plugins.components.load(model["name"])
            assert [each["name"] for each in model["params"]] == [param.name for param in cls.PARAMS]
            assert [(each["name"], each["unit"], each["combine"]) for each in model["statistics"]] == [
                (stat.name, stat.unit, stat.combine) for stat in cls.STATS
            ]


def test_ports_are_those_of_the_machine(plugins: Plugins, capsys: pytest.CaptureFixture[str]) -> None:
    """The kinds at the other ends of all edges of a node, in the plug-in's own preset too."""
    models = {each["name"]: each for each in shown(plugins, capsys, "example")["entries"]["components"]}  # type: ignore[index]
    (gemm,) = models["example.slow_gemm"]["ports"]
    graph = compile_topology(configure(plugins, gemm["preset"]), plugins)
    node = next(node.id for node in graph.nodes.values() if node.kind == "pe_gemm")
    assert gemm["sources"] == sorted({graph.nodes[src].kind for src, dst in graph.edges if dst == node})
    assert gemm["sinks"] == sorted({graph.nodes[dst].kind for src, dst in graph.edges if src == node})
    units = ["pe_cpu", "pe_scheduler", "pe_tcm"]
    assert models["example.sfu"]["ports"] == [
        {"kind": "pe_sfu", "preset": "example-pair", "sources": units, "sinks": units}
    ]
    assert [each["kind"] for each in models["example.retimed_port"]["ports"]] == ["io_ucie", "ucie", "link"]


def test_the_page_has_all_of_it(
    plugins: Plugins, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Names of everything, a table for each model, in 80 columns."""
    monkeypatch.setenv("COLUMNS", "80")
    described = shown(plugins, capsys, "example")
    assert main(["plugins", "show", "kernbench_example (source tree)"], plugins) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[:2] == [
        "example",
        "  from kernbench_example (source tree), module kernbench_example.plugin, for",
    ]
    for entries in described["entries"].values():  # type: ignore[attr-defined]
        for entry in entries:
            assert any(line.startswith(entry["name"]) for line in lines)
    assert max(map(len, lines)) <= 80
    assert "  ports of pe_sfu: in from pe_cpu, pe_scheduler, pe_tcm; out to pe_cpu," in lines


def test_a_plugin_that_nobody_has_is_refused(plugins: Plugins, capsys: pytest.CaptureFixture[str]) -> None:
    """With the nearest one there is."""
    assert main(["plugins", "show", "exemple"], plugins) == 2
    assert capsys.readouterr().err == (
        "error: plug-in must be a registered name or a part of one, not 'exemple'. Did you mean 'example'?\n"
    )
