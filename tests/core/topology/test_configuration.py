"""Merged configuration: what wins, and that every key keeps its place."""

from __future__ import annotations

import copy
import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernbench_core.cli.shell import Shell
from kernbench_core.errors import ConfigError, UsageError
from kernbench_core.topology import strict_yaml
from kernbench_core.topology.configuration import dotted, load_config, merge
from kernbench_core.topology.strict_yaml import MAX_BYTES, Located
from tests.core.topology.text_config import parse_config


def problems(text: str, **options: object) -> tuple[str, ...]:
    with pytest.raises(ConfigError) as caught:
        parse_config(text, "f.yaml", **options)  # type: ignore[arg-type]
    return caught.value.problems


def test_places_point_at_keys_and_list_items() -> None:
    config = parse_config("sip:\n  ucie:\n    bandwidth: 1\nlist: [1,\n  {a: 2}]\n", "f.yaml")
    assert config.where(("sip", "ucie", "bandwidth")) == "f.yaml:3:5"
    assert config.where(("list", 1, "a")) == "f.yaml:5:4"
    assert config.at(("sip", "ucie", "latency")) == "f.yaml:2:3: sip.ucie.latency"
    assert config.where(("nowhere",)) == "f.yaml"


def test_file_size_is_limited_tightly(tmp_path: Path) -> None:
    path = tmp_path / "big.yaml"
    path.write_text("a: 1\n".ljust(MAX_BYTES))
    assert load_config(path).data == {"a": 1}
    path.write_text("a: 1\n".ljust(MAX_BYTES + 1))
    with pytest.raises(ConfigError) as caught:
        load_config(path)
    assert str(caught.value) == f"{path}: file must be at most 4 MiB, not {MAX_BYTES + 1} B; split it with 'base:'."


def test_a_file_that_is_no_text_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "binary.yaml"
    path.write_bytes(b"a: \xff\n")
    with pytest.raises(ConfigError) as caught:
        load_config(path)
    assert str(caught.value) == f"{path}: file must be UTF-8 text, not bytes like b'\\xff'."


def test_base_overlays_and_settings_are_merged_in_order(tmp_path: Path) -> None:
    (tmp_path / "base.yaml").write_text("a: {x: 1, y: 1, z: 1, w: 1}\noverrides: [1]\n")
    (tmp_path / "top.yaml").write_text("base: base.yaml\na: {y: 2, z: 2, w: 2}\noverrides: [2]\n")
    (tmp_path / "over.yaml").write_text("a:\n  z: 3\n  w: 3\noverrides: [3]\n")
    config = load_config(
        "top", presets={"top": tmp_path / "top.yaml"}, overlays=[tmp_path / "over.yaml"], sets=["a.w=4", "a.v=8 ns"]
    )
    assert config.data == {"a": {"x": 1, "y": 2, "z": 3, "w": 4, "v": "8 ns"}, "overrides": [1, 2, 3]}
    assert config.where(("a", "x")) == f"{tmp_path / 'base.yaml'}:1:5"
    assert config.where(("a", "y")) == f"{tmp_path / 'top.yaml'}:2:5"
    assert config.where(("a", "z")) == f"{tmp_path / 'over.yaml'}:2:3"
    assert config.where(("a", "w")) == "--set a.w=4"
    assert config.where(("overrides", 2)) == f"{tmp_path / 'over.yaml'}:4:13"


def test_another_implementation_inherits_the_parameters_of_the_one_below() -> None:
    """They are marked: who knows the classes keeps those that the new one has."""
    text = "components: {g: {impl: a.b, params: {rows: 1, columns: 2}}}"
    kept = parse_config(text, sets=["components.g.params.rows=3"])
    assert kept.data == {"components": {"g": {"impl": "a.b", "params": {"rows": 3, "columns": 2}}}}
    assert kept.inherited == frozenset()
    other = parse_config(text, sets=["components.g.impl=c.d", "components.g.params={lanes: 4, rows: 5}"])
    assert other.data == {"components": {"g": {"impl": "c.d", "params": {"rows": 5, "columns": 2, "lanes": 4}}}}
    assert other.inherited == {("components", "g", "params", "columns")}


def test_an_unknown_source_is_a_usage_error(tmp_path: Path) -> None:
    with pytest.raises(UsageError) as caught:
        load_config("tinny", presets={"tiny": tmp_path})
    assert str(caught.value) == "topology must be a preset or a file, not 'tinny'. Did you mean 'tiny'?"
    (tmp_path / "f.yaml").write_text("a: 1")
    with pytest.raises(UsageError) as caught:
        load_config(tmp_path / "f.yaml", overlays=["lost.yaml"])
    assert str(caught.value) == "overlay (--components) must be a preset or a file, not 'lost.yaml'."


def test_a_preset_whose_file_is_gone_is_a_sentence(tmp_path: Path) -> None:
    """Named by itself, as an overlay and as a base; not suggested in its own place."""
    lost = tmp_path / "pod.yaml"
    file = tmp_path / "f.yaml"
    file.write_text("a: 1")
    end = f" must have a file, and that of preset 'pod', {str(lost)!r}, is not there; reinstall the plug-in that "
    end += "offers it."
    for what, source, overlays in (("topology", "pod", ()), ("overlay (--components)", file, ("pod",))):
        with pytest.raises(UsageError) as caught:
            load_config(source, overlays=overlays, presets={"pod": lost})
        assert str(caught.value) == what + end
    file.write_text("base: pod")
    with pytest.raises(ConfigError) as faults:
        load_config(file, presets={"pod": lost})
    assert faults.value.problems == (f"{file}:1:1: base{end}",)


def test_faults_of_all_files_and_settings_are_reported_together(tmp_path: Path) -> None:
    (tmp_path / "loop.yaml").write_text("base: loop.yaml\n")
    (tmp_path / "lost.yaml").write_text("\nbase: nowhere.yaml\n")
    with pytest.raises(ConfigError) as caught:
        load_config(tmp_path / "loop.yaml", overlays=[tmp_path / "lost.yaml"], sets=["a..b=1", "a", "a=[1"])
    assert caught.value.problems == (
        f"{tmp_path / 'loop.yaml'}: base must not lead back to 'loop.yaml'; drop it.",
        f"{tmp_path / 'lost.yaml'}:2:1: base must be a preset or a file, not 'nowhere.yaml'.",
        "--set a..b=1: setting must be KEY=VALUE with a dotted key, not 'a..b=1'.",
        "--set a: setting must be KEY=VALUE with a dotted key, not 'a'.",
        "--set a=[1: text must be valid YAML, but did not find expected ',' or ']'.",
    )


_VALUES = st.recursive(
    st.one_of(st.integers(), st.booleans(), st.none(), st.text("abc xyz:#'\"é", max_size=8)),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.text("abcdef", min_size=1, max_size=3), inner, max_size=3)
    ),
    max_leaves=8,
)


@given(st.dictionaries(st.text("abcdef", min_size=1, max_size=3), _VALUES, max_size=4))
def test_json_is_read_as_it_stands(data: dict[str, object]) -> None:
    config = parse_config(json.dumps(data))
    assert config.data == data
    assert all(place.startswith("<text>:1:") for place in config.places.values())


@given(st.dictionaries(st.text("abcdef", min_size=1, max_size=3), _VALUES, max_size=4))
def test_a_mapping_is_read_as_its_json(data: dict[str, object]) -> None:
    """The same keys have places, of their own kind."""
    objects, text = load_config(data), parse_config(json.dumps(data))
    assert objects.data == text.data
    assert {path: f"topology.{dotted(path)}" for path in text.places} == objects.places


_SETTINGS = st.lists(st.tuples(st.sampled_from(["a", "a.b", "a.b.c", "d", "d.a"]), _VALUES), max_size=4)


@given(_SETTINGS)
def test_settings_of_objects_are_those_of_texts(settings: list[tuple[str, object]]) -> None:
    """Each is laid over those before it; nested mappings and dotted keys are one."""
    last = dict(settings)
    below = {"a": {"b": {"c": 1, "e": 2}}, "d": 3}
    found = load_config(below, sets=last)
    assert found.data == load_config(below, sets=[f"{key}={json.dumps(value)}" for key, value in last.items()]).data
    nested = below
    for key, value in last.items():
        for part in reversed(key.split(".")):
            value = {part: value}
        nested = dict(load_config(nested, sets=value).data)  # type: ignore[arg-type]
    assert found.data == nested


def test_a_mapping_stands_on_a_preset_and_below_overlays(tmp_path: Path) -> None:
    (tmp_path / "preset.yaml").write_text("a: {x: 1, y: 2, z: 3}\n")
    (tmp_path / "over.yaml").write_text("a: {z: 5}\n")
    config = load_config(
        {"base": "small", "a": {"y": 4, "z": 4}},
        presets={"small": tmp_path / "preset.yaml"},
        overlays=[tmp_path / "over.yaml"],
        sets={"a.w": 6},
    )
    assert config.data == {"a": {"x": 1, "y": 4, "z": 5, "w": 6}}
    places = [config.where(("a", key)) for key in "xyzw"]
    assert places == [f"{tmp_path / 'preset.yaml'}:1:5", "topology.a.y", f"{tmp_path / 'over.yaml'}:1:5", "set a.w"]
    assert config.latest(("a",)) == "set a.w"
    assert load_config({"a": {"x": 1}, "b": 2}).latest(("a", "x"), ("b",)) == "topology.b"


def test_scalars_become_plain_ones() -> None:
    """So that a manifest can hold them."""
    given = {"a": np.int64(3), "b": np.float32(0.5), "c": np.float64(2.5), "d": np.bool_(True), "e": (1, "x")}
    found = load_config({**given, "f": np.str_("y")}).data
    assert found == {"a": 3, "b": 0.5, "c": 2.5, "d": True, "e": [1, "x"], "f": "y"}
    assert [type(value) for value in found.values()] == [int, float, float, bool, list, str]


def _nested(depth: int) -> dict[str, object]:
    tree: dict[str, object] = {}
    for _ in range(depth - 1):
        tree = {"a": tree}
    return tree


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ({"a": {"b": object}}, "topology.a.b: value must be text, a number, true or false, None, a list or a mapping, "
         "not <class 'object'>."),
        ({"a": [1, {2}]}, "topology.a.1: value must be text, a number, true or false, None, a list or a mapping, not "
         "{2}."),
        ({"a": np.zeros(2)}, "topology.a: value must be text, a number, true or false, None, a list or a mapping, not "
         "array([0., 0.])."),
        ({"a": {3: 4}}, "topology.a: key must be text, not 3."),
        (_nested(66), f"topology{'.a' * 36}…: nesting must be at most 64 deep; flatten it."),
        ({"base": 3}, "topology.base: base must be a preset or a file name, not 3."),
        ({"base": "lost"}, "topology.base: base must be a preset or a file, not 'lost'."),
    ],
)  # fmt: skip
def test_what_yaml_could_not_give_is_refused(given: dict[str, object], problem: str) -> None:
    with pytest.raises(ConfigError) as caught:
        load_config(given)
    assert caught.value.problems == (problem,)


def test_nesting_of_objects_is_limited_tightly() -> None:
    """Of lists and mappings alike."""
    assert load_config(_nested(64)).data == _nested(64)
    lists: object = 1
    for _ in range(62):
        lists = [lists]
    assert load_config({"a": lists}).data == {"a": lists}
    with pytest.raises(ConfigError, match="nesting must be at most 64 deep"):
        load_config({"a": [[lists]]})


@pytest.mark.parametrize("key", [3, "", "a..b", "a.", " .b"])
def test_settings_need_dotted_keys(key: object) -> None:
    with pytest.raises(ConfigError) as caught:
        load_config({}, sets={key: 1})  # type: ignore[dict-item]
    assert caught.value.problems == (f"set: key must be dotted text, as in 'cube.pes', not {key!r}.",)


@given(st.text(max_size=60))
def test_any_text_is_read_or_refused_with_a_place(text: str) -> None:
    try:
        parse_config(text, "f.yaml")
    except ConfigError as fault:
        assert all(problem.startswith("f.yaml:") for problem in fault.problems)


def test_a_flood_of_problems_is_cut(capsys: pytest.CaptureFixture[str]) -> None:
    """Twenty are told and the rest is counted, in the message and on stderr; `problems` has them all."""
    problems = [f"f.yaml:{line}:1: key{line} must be a known key." for line in range(1, 10_001)]
    error = ConfigError(*problems)
    told = [*problems[:20], "… and 9,980 more; mend these first."]
    assert str(error) == "\n".join(told)
    assert error.problems == tuple(problems)
    Shell().fail(3, *error.problems, labelled=False)
    assert capsys.readouterr().err.splitlines() == told
    assert str(ConfigError(*problems[:21])) == "\n".join(problems[:21])


_LEAVES = st.integers(0, 3).map(lambda number: Located(number, "leaf"))
_KEYS = st.sampled_from(["impl", "params", "overrides", "x", "y"])
_TREES = st.recursive(
    _LEAVES | st.lists(_LEAVES, max_size=2).map(lambda items: Located(items, "list")),
    lambda inner: st.dictionaries(_KEYS, inner, max_size=3).map(lambda items: Located(items, "mapping")),
    max_leaves=6,
)


@given(st.lists(st.dictionaries(_KEYS, _TREES, max_size=3).map(lambda items: Located(items, "layer")), max_size=5))
def test_layers_are_merged_without_being_changed(layers: list[Located]) -> None:
    """Though they may share parts."""
    layers = [*layers, *layers[:2]]
    before, merged = copy.deepcopy(layers), Located({}, "")
    for layer in layers:
        merged = merge(merged, layer)
    assert layers == before


def test_a_small_file_is_parsed_once_and_is_as_new_each_time(tmp_path: Path) -> None:
    """Nothing that is laid over it, its base included, is left in what is kept; a changed file is another one."""
    below, file = tmp_path / "below.yaml", tmp_path / "file.yaml"
    below.write_text("cube: {pes: 1, width: 3}\noverrides: [{a: 1}]\n")
    file.write_text("base: below.yaml\ncube: {pes: 2}\noverrides: [{b: 2}]\n")
    plain = {"cube": {"pes": 2, "width": 3}, "overrides": [{"a": 1}, {"b": 2}]}
    assert load_config(file, sets=["cube.pes=7"]).data == plain | {"cube": {"pes": 7, "width": 3}}
    parsed = strict_yaml._parsed.cache_info().misses
    for _ in range(2):
        assert load_config(file).data == plain
    assert strict_yaml._parsed.cache_info().misses == parsed
    below.write_text("cube: {pes: 1, width: 4}\n")
    assert load_config(file).data == {"cube": {"pes": 2, "width": 4}, "overrides": [{"b": 2}]}


def test_what_is_wrong_with_a_small_file_is_told_each_time(tmp_path: Path) -> None:
    file = tmp_path / "file.yaml"
    file.write_text("cube: {pes: 1}\ncube: {pes: 2}\n")
    sentence = f"{file}:2:1: key 'cube' must appear once, but it is also at {file}:1:1."
    for _ in range(2):
        assert load_config(file, defer=True).faults == (sentence,)
        with pytest.raises(ConfigError) as caught:
            load_config(file)
        assert caught.value.problems == (sentence,)
