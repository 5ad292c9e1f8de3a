"""A golden is read as it was written, and what else may lie in its place is told in a sentence."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernbench_core.errors import UsageError
from kernbench_core.testing.budgets.golden_file import Golden, GoldenFault, read_golden, write_golden

FLOATS = st.floats(allow_nan=False, allow_infinity=False)
VALUES = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), FLOATS, st.text()),
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(st.text(), inner, max_size=4)),
)
GOLDENS = st.builds(
    Golden,
    st.text(),
    st.dictionaries(st.text(), st.one_of(st.none(), st.integers(), FLOATS)),
    st.dictionaries(st.text(), VALUES),
)
RIGHT = Golden("test_a", {"time_ns": 1.5}, {"totals": {"time_ns": 1.5}}).to_text()


@settings(max_examples=20)
@given(GOLDENS)
def test_what_is_written_is_what_is_read(tmp_path_factory: pytest.TempPathFactory, golden: Golden) -> None:
    """To the last bit of each number, whatever texts there are; the file is plain JSON in ASCII."""
    file = tmp_path_factory.getbasetemp() / "golden.json"
    write_golden(file, golden)
    assert read_golden(file, "golden.json", golden.test) == golden
    assert json.loads(file.read_bytes().decode("ascii"))["schema"] == "kernbench.golden/1"


def test_a_figure_has_a_line() -> None:
    """So that a change reads well: members of objects, but not numbers of a row."""
    golden = Golden("test_a", {"time_ns": 1.5}, {"rows": {"a": [1, 2.5], "b": []}, "long": ["x" * 99, "y"], "none": {}})
    assert golden.to_text().splitlines() == [
        "{", ' "schema": "kernbench.golden/1",', ' "test": "test_a",', ' "measured": {', '  "time_ns": 1.5', " },",
        ' "figures": {', '  "rows": {', '   "a": [1, 2.5],', '   "b": []', "  },", '  "long": [',
        f'   "{"x" * 99}",', '   "y"', "  ],", '  "none": {}', " }", "}",
    ]  # fmt: skip


DAMAGED = [
    ("", "golden 'g.json' must be JSON, and at line 1, column 1 it says 'Expecting value'.", False),
    (RIGHT[:-12], "golden 'g.json' must be JSON, and at line 9, column 15 it says 'Expecting value'.", True),
    (RIGHT.replace("1.5", "NaN", 1), "golden 'g.json' must be JSON: NaN is no number of it.", True),
    ("[" * 100_000, "golden 'g.json' must be JSON, and is nested too deep.", False),
    ("é".encode("latin-1"), "golden 'g.json' must be text in UTF-8.", False),
    (
        RIGHT.replace(' "test"', '<<<<<<< HEAD\n "test"'),
        "golden 'g.json' must hold one side of a merge, and line 3 is '<<<<<<< HEAD'.",
        True,
    ),
    (
        RIGHT.replace(' "test"', '=======\n "test"'),
        "golden 'g.json' must hold one side of a merge, and line 3 is '======='.",
        True,
    ),
    (
        "[1]",
        "golden 'g.json' must have schema 'kernbench.golden/1', not None; it is no golden, so move it away.",
        False,
    ),
    (
        RIGHT.replace("golden/1", "golden/2"),
        "golden 'g.json' must have schema 'kernbench.golden/1', not 'kernbench.golden/2'; a later kernbench wrote it; "
        "use a newer kernbench.",
        False,
    ),
    (
        RIGHT.replace("golden/1", "golden/0"),
        "golden 'g.json' must have schema 'kernbench.golden/1', not 'kernbench.golden/0'; an earlier kernbench wrote "
        "it.",
        True,
    ),
    (
        RIGHT.replace('"measured": {\n  "time_ns": 1.5\n }', '"measured": []'),
        "golden 'g.json' must hold measured as it was written.",
        True,
    ),
    (RIGHT.replace("1.5", '"1.5"', 1), "golden 'g.json' must hold measured as it was written.", True),
    (
        RIGHT.replace("test_a", "test_A"),
        "golden 'g.json' must be that of 'test_a', and is that of 'test_A'; where both tests are there, give one "
        "another name.",
        False,
    ),
]


@pytest.mark.parametrize(("text", "sentence", "replaceable"), DAMAGED)
def test_what_is_no_golden_is_told(tmp_path: Path, text: str | bytes, sentence: str, replaceable: bool) -> None:
    """Only what was one may be written anew."""
    file = tmp_path / "g.json"
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(GoldenFault) as caught:
        read_golden(file, "g.json", "test_a")
    assert (str(caught.value), caught.value.replaceable) == (sentence, replaceable)


def test_what_cannot_be_read_or_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder in its place, a file in the place of its folder; no file at all is no golden."""
    assert read_golden(tmp_path / "g.json", "g.json", "test_a") is None
    (tmp_path / "g.json").mkdir()
    with pytest.raises(GoldenFault, match=r"^golden 'g\.json' must be a file that can be read: Is a directory\.$"):
        read_golden(tmp_path / "g.json", "g.json", "test_a")
    (tmp_path / "file").write_text("")
    golden = Golden("test_a", {}, {})
    with pytest.raises(UsageError) as caught:
        write_golden(tmp_path / "file" / "g.json", golden)
    where = str(tmp_path / "file" / "g.json")
    assert str(caught.value) == f"file {where!r} must be in a folder that can be written: File exists."

    def full(self: Path, target: Path) -> None:
        raise OSError(28, os.strerror(28))

    monkeypatch.setattr(Path, "replace", full)
    with pytest.raises(UsageError) as caught:
        write_golden(tmp_path / "h.json", golden)
    where = str(tmp_path / "h.json")
    assert str(caught.value) == f"file {where!r} must be writable: No space left on device."
    assert sorted(each.name for each in tmp_path.iterdir()) == ["file", "g.json"]
