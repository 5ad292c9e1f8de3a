"""The schemas beside the presets are up to date, and the files that name them fit; so do the examples of the manual."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from kernbench_builtin.machines import configuration_schema
from kernbench_core.cli import main
from kernbench_core.plugins import Plugins, load_plugins
from kernbench_core.runs import configure
from kernbench_core.topology.strict_yaml import plain, read_yaml
from tests.conftest import SOURCE_TREE, loaded_tool

REPO = Path(__file__).parents[1]
PACKAGES = ("kernbench_core", "kernbench_builtin", "kernbench_ccl", "plugins_example")
#: Of collectives, not of machines.
OTHER = {"ccl.yaml"}
FILES = sorted(
    str(path.relative_to(REPO)) for name in PACKAGES for path in (REPO / name).rglob("*.yaml") if path.name not in OTHER
)
LINE = "# yaml-language-server: $schema="
PAGES = [
    (page.name, example)
    for page in sorted((REPO / "docs").glob("*.md"))
    for example in re.findall(r"```yaml\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)
    if not re.search(r"impl: (?!builtin|example)", example) and not example.startswith(("# ccl.yaml", "# plan", "- "))
]


@pytest.fixture(scope="module")
def tool(plugins: Plugins) -> Iterator[ModuleType]:
    with loaded_tool("schemas") as module:
        yield module


@pytest.fixture(scope="module")
def plugins() -> Iterator[Plugins]:
    """Load the plug-ins of this tree, the example among them."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(REPO / "plugins_example")
        yield load_plugins([*SOURCE_TREE, "example = kernbench_example.plugin"], installed=False)


def faults(schema: Any, data: Any) -> list[str]:
    return [f"{each.json_path}: {each.message}" for each in Draft202012Validator(schema).iter_errors(data)]


def shipped(path: Path) -> Any:
    """Return the schema that the first line of a file names."""
    first = path.read_text(encoding="utf-8").partition("\n")[0]
    assert first.startswith(LINE), f"{path} must begin with {LINE}PATH"
    return json.loads((path.parent / first.removeprefix(LINE)).read_text(encoding="utf-8"))


def test_the_schemas_are_what_is_registered(tool: ModuleType) -> None:
    stale = [path for path, text in tool.texts().items() if (REPO / path).read_text(encoding="utf-8") != text]
    assert stale == [], "run python tools/schemas.py"


def test_the_command_prints_the_schema(plugins: Plugins, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["topology", "schema"], plugins) == 0
    found = capsys.readouterr().out
    assert found == (REPO / "plugins_example/kernbench_example/topology.schema.json").read_text(encoding="utf-8")
    assert main(["topology", "schema", "chain"], plugins) == 0
    chain = json.loads(capsys.readouterr().out)
    assert chain["properties"]["routers"]["description"] == "Routers of the chain."
    assert (chain["properties"]["routers"]["minimum"], chain["properties"]["routers"]["maximum"]) == (2, 64)
    assert main(["topology", "schema", "--merged"], plugins) == 0
    assert "base" not in json.loads(capsys.readouterr().out)["properties"]
    assert main(["topology", "schema", "cubes"], plugins) == 2
    assert capsys.readouterr().err.splitlines()[-1] == (
        "error: section must be one at the top of a configuration, not 'cubes'. Did you mean 'cube'?"
    )


@pytest.mark.parametrize("file", FILES)
def test_a_file_begins_with_the_schema_that_it_fits(file: str) -> None:
    """And a slip in it does not."""
    path = REPO / file
    schema, data = shipped(path), plain(read_yaml(path.read_text(encoding="utf-8"), file))
    assert faults(schema, data) == []
    (fault,) = faults(schema, data | {"sytem": {}})
    assert fault.startswith("$: 'sytem' does not match any of the regexes: '^[^:]+:")


PICKED = {
    "components: {pe_gemm: {impl: '%s'}}": (
        ("kernbench-example:example.slow_gemm", "example:slow_gemm", "example:example.slow_gemm"),
        ("example:slow_gem", "kernbench-example:slow_gemm", "acme:example.gemm"),
    ),
    "overrides: [{match: '*', impl: '%s'}]": (("example:sfu", "any:builtin.sram"), ("example:builtin.sra",)),
    "system: {network: {topology: '%s'}}": (("example:example.hypercube", "example:hypercube"), ("example:cube",)),
    "'%s': {routers: 8}": (("chain", "example:chain"), ("example:chains",)),
}


@pytest.mark.parametrize("text", PICKED)
def test_a_vendor_may_stand_before_a_name(plugins: Plugins, text: str) -> None:
    """As the manual has it; not before what nobody registers. Parameters are those of the name without it."""
    schema = configuration_schema(plugins.components, plugins.networks, plugins.machines)
    right, wrong = PICKED[text]
    assert [faults(schema, plain(read_yaml(text % name, "x"))) for name in right] == [[]] * len(right)
    assert all(faults(schema, plain(read_yaml(text % name, "x"))) for name in wrong)
    for name in ("example.slow_gemm", "example:slow_gemm", "kernbench-example:example.slow_gemm"):
        (fault,) = faults(schema, {"components": {"pe_gemm": {"impl": name, "params": {"rosw": 2}}}})
        assert "'rosw' was unexpected" in fault


def test_a_section_with_its_vendor_is_checked_as_the_section(plugins: Plugins) -> None:
    """Its keys, their ranges, and that it stands alone, in a file and in what files give together."""
    node = {"router": {"impl": "builtin.forwarding", "params": {"overhead": "1 ns"}}}
    ways = (("chain", "$.chain"), ("example:chain", "$['example:chain']"))
    for (name, at), merged in itertools.product(ways, (False, True)):
        schema = configuration_schema(plugins.components, plugins.networks, plugins.machines, merged=merged)
        chain = {"routers": 64, "clock": "1 GHz", "link": {"width": "32 B", "latency": "1 ns"}}
        assert faults(schema, {name: chain, "components": node}) == []
        assert faults(schema, {name: chain | {"routers": 99}, "components": node}) == [
            f"{at}.routers: 99 is greater than the maximum of 64"
        ]
        assert faults(schema, {name: chain, "components": node, "mesh": {}})
        assert faults(schema, {name: chain, "components": node, "cube": {}})
        assert faults(schema, {name: chain, "components": {"pe_gemm": {}}})


def test_whole_presets_leave_nothing_out(plugins: Plugins) -> None:
    """And a manifest's configuration, with everything that its command laid over it, is one."""
    schema = configuration_schema(plugins.components, plugins.networks, plugins.machines, merged=True)
    for name in plugins.topologies:
        assert faults(schema, dict(configure(plugins, name).data)) == []
    laid = configure(plugins, "tiny", str(REPO / "kernbench_ccl/idealised.yaml"), ["system.sips=3"])
    assert faults(schema, dict(laid.data)) == []


@pytest.mark.parametrize(("page", "example"), PAGES, ids=[f"{page}-{i}" for i, (page, _) in enumerate(PAGES)])
def test_an_example_of_the_manual_fits(plugins: Plugins, page: str, example: str) -> None:
    schema = json.loads((REPO / "plugins_example/kernbench_example/topology.schema.json").read_text(encoding="utf-8"))
    assert faults(schema, plain(read_yaml(example, page))) == []
