"""Strict YAML: what is read, what is refused, and that every key keeps its place through merging."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernbench_core.cli.shell import Shell
from kernbench_core.errors import ConfigError, UsageError
from kernbench_core.topology.configuration import ALIAS_BUDGET, MAX_BYTES, MAX_DEPTH, load_config, parse_config


def problems(text: str, **options: object) -> tuple[str, ...]:
    with pytest.raises(ConfigError) as caught:
        parse_config(text, "f.yaml", **options)  # type: ignore[arg-type]
    return caught.value.problems


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1e9", 1e9), ("1E-3", 1e-3), ("12", 12), ("-7", -7), ("0x10", 16), ("0o17", 15), ("017", 17), (".5", 0.5),
        ("on", "on"), ("yes", "yes"), ("off", "off"), ("No", "No"), ("true", True), ("False", False),
        ("null", None), ("~", None), ("", None), ("'1e9'", "1e9"), ('"true"', "true"), ("12:30:45", "12:30:45"),
        ("2001-01-01", "2001-01-01"), ("1_000", "1_000"), (".inf", math.inf), ("-.inf", -math.inf), ("8 ns", "8 ns"),
    ],
)  # fmt: skip
def test_scalars_follow_yaml_1_2(text: str, value: object) -> None:
    read = parse_config(f"a: {text}").data["a"]
    assert read == value
    assert type(read) is type(value)


def test_places_point_at_keys_and_list_items() -> None:
    config = parse_config("sip:\n  ucie:\n    bandwidth: 1\nlist: [1,\n  {a: 2}]\n", "f.yaml")
    assert config.where(("sip", "ucie", "bandwidth")) == "f.yaml:3:5"
    assert config.where(("list", 1, "a")) == "f.yaml:5:4"
    assert config.at(("sip", "ucie", "latency")) == "f.yaml:2:3: sip.ucie.latency"
    assert config.where(("nowhere",)) == "f.yaml"


def test_duplicate_keys_are_all_reported() -> None:
    assert problems("a: 1\na: 2\nb: {c: 1, c: 2}") == (
        "f.yaml:2:1: key 'a' must appear once, but it is also at f.yaml:1:1.",
        "f.yaml:3:11: key 'c' must appear once, but it is also at f.yaml:3:5.",
    )


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("a: [1", "f.yaml:2:1: text must be valid YAML, but did not find expected ',' or ']'."),
        ("a: *x", "f.yaml:1:4: alias must name a finished anchor, not 'x'."),
        ("a: &a [*a]", "f.yaml:1:8: alias must name a finished anchor, not 'a'."),
        ("a: !!python/name:os.system 1",
         "f.yaml:1:1: value must have no tag, not 'tag:yaml.org,2002:python/name:os.system'; drop it."),
        ("1: 2", "f.yaml:1:1: key must be text, not 1; quote it."),
        ("? [1]\n: 2", "f.yaml:1:3: key must be text, not [1]; quote it."),
        ("a: 1\n---\nb: 2", "f.yaml:2:1: file must hold one YAML document, not several."),
        ("[1, 2]", "f.yaml:1:1: configuration must be a mapping, not [1, 2]."),
        ("base: 3", "f.yaml:1:1: base must be a preset or a file name, not 3."),
    ],
)  # fmt: skip
def test_what_is_no_plain_document_is_refused(text: str, problem: str) -> None:
    assert problems(text) == (problem,)


def test_an_alias_is_a_copy() -> None:
    assert parse_config("a: &x {b: 1}\nc: *x").data == {"a": {"b": 1}, "c": {"b": 1}}


def test_an_alias_bomb_is_refused() -> None:
    lines = ["a: &a [1, 2, 3, 4, 5, 6, 7, 8, 9]"]
    for name, below in zip("bcdefgh", "abcdefg", strict=True):
        lines.append(f"{name}: &{name} [{', '.join([f'*{below}'] * 9)}]")
    (problem,) = problems("\n".join(lines))
    assert problem.endswith(f"aliases must expand to at most {ALIAS_BUDGET} values in one file; write the values out.")


def test_nesting_is_limited_tightly() -> None:
    def nested(depth: int) -> str:
        return "a: " + "[" * (depth - 1) + "]" * (depth - 1)

    parse_config(nested(MAX_DEPTH))
    (problem,) = problems(nested(MAX_DEPTH + 1))
    assert problem == "f.yaml:1:67: nesting must be at most 64 deep; flatten the file."
    problems("[" * 100_000)


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
    assert str(caught.value) == "overlay must be a preset or a file, not 'lost.yaml'."


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
