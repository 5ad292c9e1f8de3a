"""Strict YAML: what is read, and what is refused with its place."""

from __future__ import annotations

import math

import pytest

from kernbench_core.errors import ConfigError
from kernbench_core.topology.strict_yaml import ALIAS_BUDGET, MAX_DEPTH
from tests.core.topology.text_config import parse_config


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


