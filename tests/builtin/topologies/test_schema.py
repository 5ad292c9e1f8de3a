"""The schema of a whole configuration and the compiler agree on machines with random slips in them."""

from __future__ import annotations

import copy
import re
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from kernbench_builtin.machines import configuration_schema
from kernbench_core.errors import ConfigError
from kernbench_core.plugins import Plugins
from kernbench_core.runs import configure
from kernbench_core.topology import compile_topology

PRESETS = ("tiny", "mesh", "a100_node")
QUANTITIES = (
    "8 ns", "12 GB/s", "-3 ns", "0 ns", "-0 ns", "1,000 ns", "4 KiB", "1.5 B", "1.5 KiB", "10 mm", "2 GHz",
    "0.1 ns/mm", "32 GT/s", "1e30 s", " 7 ns ", ".5 ns", "5. ns", "1e1 ns", "1e1000 ns", "8ns", "8 NS", "8", "ns",
)
NAMES = (
    "auto", "ring", "switch", "mesh_2d", "on", "tcm", "acme.none", "builtin.pe_gemm", "builtin.hbm_ctrl_bank",
    "builtin.hbm_ctrl", "builtin.forwarding", "builtin.router_vc", "pe_tcm",
)
KEYS = (
    "bandwidth", "latency", "lanes", "rate", "generation", "impl", "params", "width", "height", "rows", "columns",
    "match", "attach", "overhead", "chunk_bytes", "units", "title", "base", "mesh", "system", "links", "topology",
)
VALUES = (
    *(*QUANTITIES, *NAMES, 0, 1, 2, -1, 4.0, 2.5, 1e20, -1e20, True, False, None, [], {}, {"a": 1}, [1]),
    *([{"match": "*", "impl": "builtin.pe_math"}], [{"match": "*.pe_gemm", "params": {"rows": 0}}], [{"impl": None}]),
    {"pe_x": {"impl": "builtin.pe_math", "params": {"lanes": 8}}}, {"pe_gemm": {"impl": "builtin.pe_math"}},
)
#: What only the whole machine, or arithmetic, can tell; a schema cannot. docs/configuration.md lists it.
BEYOND = re.compile(
    r"components must name an implementation for"
    r"|components\.\w+ must not repeat a kind of pe\.units"
    r"|pe\.units\.\w+ must be (a new kind|named in)"
    r"|pe\.units\.\w+\.attach must be another unit of the PE"
    r"|(pe\.units\.\w+|overrides\.\d+)\.impl must be a component for"
    r"|overrides\.\d+\.params\.\w+(\.\w+)? must be a declared parameter"
    r"|[\w.]+\.match must match at least one"
    r"|(system\.sips|sip\.mesh|sip\.io_chiplets|cube\.pes|cube\.mesh[\w.]*|system\.network\.(width|height)|mesh\.rows) "
    r"|(cube\.hbm\.capacity|[\w.]+\.capacity|system\.page_bytes) must (be|split)"
    r"|[\w.]+ must be an? .*\bsize( of at least .*)?, not '[\d.]+ B'\.$"
    r"|[\w.]+ must be .*, not '1e30 s'\. That is too large to be meant\.$"
)


def places(data: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the path of every value below the root."""
    items: Any = data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ()
    for key, value in items:
        yield (*path, key)
        yield from places(value, (*path, key))


def slip(data: dict[str, Any], draw: st.DataObject) -> None:
    """Drop, add or replace one value, or lay an override over it."""
    *path, key = draw.draw(st.sampled_from(list(places(data))))
    parent: Any = data
    for step in path:
        parent = parent[step]
    what, value = draw.draw(st.sampled_from(["drop", "add", "replace", "replace", "override"])), None
    if what == "drop":
        del parent[key]
        return
    value = copy.deepcopy(draw.draw(st.sampled_from(VALUES)))
    if what == "add" and isinstance(parent, dict):
        parent[draw.draw(st.sampled_from(KEYS))] = value
    elif what == "override":
        override = {"match": "*.pe_math", "impl": draw.draw(st.sampled_from(["builtin.pe_math", None, "acme.none"]))}
        data["overrides"] = [override | {"params": {draw.draw(st.sampled_from(["lanes", "overhead", "no"])): value}}]
    else:
        parent[key] = value


@pytest.fixture(scope="module")
def machines(plugins: Plugins) -> dict[str, dict[str, Any]]:
    """Return the whole configurations of presets, of few packages each."""
    sets = {"a100_node": ["system.sips=2"]}
    return {name: dict(configure(plugins, name, None, sets.get(name, [])).data) for name in PRESETS}


@pytest.fixture(scope="module")
def validator(plugins: Plugins) -> Draft202012Validator:
    schema = configuration_schema(plugins.components, plugins.networks, plugins.machines, merged=True)
    return Draft202012Validator(schema)


@pytest.fixture(scope="module")
def layers(plugins: Plugins) -> Draft202012Validator:
    return Draft202012Validator(configuration_schema(plugins.components, plugins.networks, plugins.machines))


def refusals(plugins: Plugins, data: dict[str, Any]) -> tuple[str, ...]:
    """Return the sentences of the compiler without their places."""
    try:
        compile_topology(data, plugins)
    except ConfigError as fault:
        return tuple(each.removeprefix("<configuration>: ") for each in fault.problems)
    return ()


@given(name=st.sampled_from(PRESETS), slips=st.sampled_from([1, 1, 1, 2]), draw=st.data())
@settings(max_examples=150)
def test_schema_and_compiler_agree(
    plugins: Plugins, machines: dict[str, dict[str, Any]], validator: Draft202012Validator, name: str, slips: int,
    draw: st.DataObject,
) -> None:  # fmt: skip
    """What the compiler takes, the schema takes; what it refuses, the schema refuses, but for what it cannot know."""
    data = copy.deepcopy(machines[name])
    for _ in range(slips):
        slip(data, draw)
    told = [each.message for each in validator.iter_errors(data)]
    refused = refusals(plugins, data)
    assert refused or not told, f"{told} but the compiler takes it"
    if not told:
        assert [each for each in refused if not BEYOND.match(each)] == [], "the schema takes it"


@pytest.mark.parametrize("name", PRESETS)
def test_without_a_slip_both_take_it(
    plugins: Plugins, machines: dict[str, dict[str, Any]], validator: Draft202012Validator, name: str
) -> None:
    assert refusals(plugins, machines[name]) == ()
    assert list(validator.iter_errors(machines[name])) == []


@given(name=st.sampled_from(("tiny", "mesh")), parts=st.integers(1, 3), draw=st.data())
@settings(max_examples=200)
def test_a_layer_that_the_compiler_takes_over_its_base_fits_the_schema_of_files(
    plugins: Plugins, machines: dict[str, dict[str, Any]], layers: Draft202012Validator, name: str, parts: int,
    draw: st.DataObject,
) -> None:  # fmt: skip
    """A few values of the machine, as they are or others; what is missing comes from below."""
    layer: dict[str, Any] = {"base": name}
    for _ in range(parts):
        *path, key = draw.draw(st.sampled_from(list(places(machines[name]))))
        found: Any = machines[name]
        parent = layer
        for step in path:
            found, parent[step] = found[step], parent[step] if isinstance(parent.get(step), dict) else {}
            parent = parent[step]
        parent[key] = copy.deepcopy(draw.draw(st.sampled_from((found[key], *VALUES))))
    told = [each.message for each in layers.iter_errors(layer)]
    try:
        config = configure(plugins, copy.deepcopy(layer))
        compile_topology(config, plugins)
    except ConfigError:
        return
    # an override that covers a wrong value keeps the compiler from looking at it
    assert not told or "overrides" in layer, f"{told} but the compiler takes it"
