"""The reference: written from the code, whole, and nothing in it without a sentence."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import click
import pytest

from kernbench_core.cli import main
from kernbench_core.errors import ConfigError, KernbenchError
from kernbench_core.kernel import TLContext
from kernbench_core.plugins import Plugins, load_plugins
from kernbench_core.runs import configure
from kernbench_core.topology import compile_topology, load_config
from tests.conftest import SOURCE_TREE, loaded_tool

REPO = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def reference() -> Iterator[ModuleType]:
    with loaded_tool("reference") as module:
        yield module


@pytest.fixture(scope="module")
def text(reference: ModuleType) -> ModuleType:
    """Return what refuses things without a sentence; the tool imports it from its own folder."""
    return sys.modules["reference_text"]


@pytest.fixture(scope="module")
def pages(reference: ModuleType) -> dict[str, str]:
    written: dict[str, str] = reference.written()
    return written


@pytest.mark.parametrize("command", [("run",), ("ccl", "all_gather"), ("ccl", "reduce"), ("probe",), ("calibrate",)])
def test_options_are_those_of_the_help(
    pages: dict[str, str], plugins: Plugins, capsys: pytest.CaptureFixture[str], command: tuple[str, ...]
) -> None:
    """What a user is shown by --help stands in the section of the command."""
    assert main([*command, "--help"], plugins) == 0
    shown = set(re.findall(r"^ {2,}.*?(--[a-z][a-z-]+)", capsys.readouterr().out, re.MULTILINE)) - {"--help"}
    section = pages["commands"].partition(f"## `kernbench {' '.join(command)}`\n")[2].partition("\n## ")[0]
    assert len(shown) > 3
    assert {option for option in shown if f"`{option}`" not in section} == set()


def test_every_parameter_of_every_model_is_there(pages: dict[str, str], plugins: Plugins) -> None:
    for name in plugins.components:
        section = pages["components"].partition(f"## `{name}`\n")[2].partition("\n## ")[0]
        declared = [param.name for param in plugins.components.load(name).PARAMS]
        assert [param for param in declared if f"| `{param}` |" not in section] == []


def test_keys_are_those_of_the_presets(pages: dict[str, str]) -> None:
    """Every key of the base that presets lie over is in the table, under the sections that have one."""
    import yaml

    text = (REPO / "kernbench_builtin/topologies/base.yaml").read_text(encoding="utf-8")
    found = yaml.safe_load(text)

    def keys(path: str, below: object) -> Iterator[str]:
        if isinstance(below, dict) and path not in ("system.network.params",):
            for name, value in below.items():
                yield from keys(f"{path}.{name}", value)
        else:
            yield path

    wanted = [key for name in ("system", "host", "sip", "cube", "pe") for key in keys(name, found.get(name, {}))]
    assert len(wanted) > 20
    assert [key for key in wanted if "." in key and f"| `{key}` |" not in pages["configuration"]] == []


def test_a_key_is_marked_as_required_where_a_machine_cannot_be_without_it(
    pages: dict[str, str], plugins: Plugins
) -> None:
    """Every section of a whole machine is emptied in turn: the reader says what it misses."""

    def emptied(whole: Any, path: tuple[str, ...]) -> Any:
        if not path:
            return {}
        return {name: emptied(below, path[1:]) if name == path[0] else below for name, below in whole.items()}

    def sections(path: tuple[str, ...], below: object) -> Iterator[tuple[str, ...]]:
        if isinstance(below, Mapping) and path[-1:] != ("params",):
            yield path
            for name, inner in below.items():
                if (*path, name) != ("components",):
                    yield from sections((*path, name), inner)

    whole = configure(plugins, "tiny").data
    missed: set[str] = set()
    for path in sections((), whole):
        try:
            given = load_config(emptied(whole, path))
            compile_topology(given, plugins)
        except ConfigError as error:
            missed |= {".".join(each) for each in re.findall(r": (\S+) must have the key '(\w+)'", str(error))}
    assert len(missed) > 40
    of_packages = r"(?:system|host|sip|cube|pe)\.[\w.]+(?<!NAME\.impl)"
    page = pages["configuration"]
    assert set(re.findall(rf"^\| `({of_packages})` \|[^|]*\| \*required\* \|", page, re.MULTILINE)) == {
        each for each in missed if not each.startswith("configuration.")
    }
    assert set(re.findall(r"^## `(\w+)`\n\n.* \*Required\.\*$", page, re.MULTILINE)) == {
        each.removeprefix("configuration.") for each in missed if each.startswith("configuration.")
    } - {"components"}


def test_names_of_the_language_hooks_and_errors_are_there(pages: dict[str, str]) -> None:
    for name in ("load", "dot", "composite", "recv_any", "float8e5"):
        assert hasattr(TLContext, name) or name == "composite"  # which a plug-in adds
        assert f"`tl.{name}" in pages["language"]
    hooks = [f"kernbench_{kind}" for kind in load_plugins(SOURCE_TREE, installed=False).points]
    assert [name for name in hooks if f"| `{name}` |" not in pages["hooks"]] == []
    import_module("kernbench_core.host")

    def family(root: type) -> Iterator[str]:
        for each in root.__subclasses__():
            if each.__module__.startswith("kernbench_"):
                yield each.__name__
                yield from family(each)

    assert [name for name in family(KernbenchError) if f"| `{name}` |" not in pages["errors"]] == []


@pytest.mark.parametrize(
    ("make", "told"),
    [
        (lambda tool: tool.said("", "--odd"), "--odd must have a help text; write one."),
        (lambda tool: tool.said(None, "key.odd"), "key.odd must have a help text; write one."),
        (
            lambda tool: tool.sentence(lambda: 0, "tl.odd"),
            "tl.odd must have a docstring that says what it is; write one.",
        ),
        (lambda tool: tool.sentence("f16", "tl.odd"), "tl.odd must have a docstring that says what it is; write one."),
    ],
)
def test_what_has_no_sentence_stops_it(text: ModuleType, make: object, told: str) -> None:
    with pytest.raises(text.Undocumented) as raised:
        make(text)  # type: ignore[operator]
    assert str(raised.value) == told


def test_an_option_without_help_stops_it(reference: ModuleType, text: ModuleType) -> None:
    command = click.Command("odd", params=[click.Option(["--odd"])], help="Be odd.")
    with pytest.raises(text.Undocumented, match="odd must have a help text"):
        reference._options(click.Context(command, info_name="kernbench odd"), command)


def test_every_exported_name_is_there(pages: dict[str, str]) -> None:
    import kernbench
    import kernbench_core

    told = pages["python"] + pages["hooks"]
    for name in (name for name in kernbench.__all__ if not name.startswith("_")):
        assert f"## `kb.{name}`" in told
    for name in (name for name in set(kernbench_core.__all__) - {*kernbench.__all__} if not name.startswith("_")):
        assert f"## `kernbench_core.{name}`" in told or f"## `{name}(" in told


def test_arguments_become_a_list(text: ModuleType) -> None:
    def odd() -> None:
        """Be odd.

        Args:
            a: One.
            b: Two
                and more.

        >>> odd()
        """

    assert text.whole(odd, "odd") == "Be odd.\n\n- `a`: One.\n- `b`: Two\n        and more."


def test_the_pages_are_written_into_a_folder(
    reference: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(reference, "written", lambda: {"hooks": "new\n", "errors": "same\n"})
    assert reference.main([str(tmp_path / "a/b")]) == 0
    assert {page.name: page.read_text() for page in (tmp_path / "a/b").iterdir()} == {
        "hooks.md": "new\n", "errors.md": "same\n",
    }  # fmt: skip
