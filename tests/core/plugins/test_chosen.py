"""What the environment and the command line say of plug-ins."""

from __future__ import annotations

import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernbench_core.cli.plugin_options import wanted, without_plugin_options
from kernbench_core.errors import UsageError
from kernbench_core.plugins.chosen import FILES, STRICT, WITHOUT, Chosen, names

WORDS = st.sampled_from(["run", "gemm", "-p", "M=4", "-q", "--json", "--plugins", "x.py", "--trace=--plugin"])
CHOICES = st.sampled_from([("--plugin", "a.py"), ("--plugin=b.py",), ("--no-plugin", "x,y"), ("--no-plugin=z",),
                           ("--strict-plugins",)])  # fmt: skip


@given(st.lists(st.one_of(WORDS.map(lambda word: (word,)), CHOICES)), st.lists(WORDS | CHOICES.map(lambda c: c[0])))
def test_the_options_may_stand_anywhere_before_two_dashes(given_: list[tuple[str, ...]], behind: list[str]) -> None:
    """What is left is what would have been written without them."""
    line = [word for words in given_ for word in words]
    rest, chosen = without_plugin_options([*line, "--", *behind])
    plain = [words[0] for words in given_ if not words[0].startswith(("--plugin=", "--no-plugin", "--strict-plugins"))
             and words[0] != "--plugin"]  # fmt: skip
    said = {words for words in given_ if words[0] not in plain}
    assert rest == [*plain, "--", *behind]
    assert set(chosen.files) == {words[-1].rpartition("=")[2] for words in said if words[-1].endswith(".py")}
    without = {"x", "y"} if ("--no-plugin", "x,y") in said else set()
    assert set(chosen.without) == without | ({"z"} if ("--no-plugin=z",) in said else set())
    assert chosen.strict == (("--strict-plugins",) in said)


@pytest.mark.parametrize(
    ("line", "told"),
    [
        (["--plugin"], "option --plugin must be followed by FILE.py."),
        (["run", "--no-plugin="], "option --no-plugin must be followed by NAME."),
    ],
)
def test_an_option_without_its_value_is_refused(line: list[str], told: str) -> None:
    """It would take the next one's, or nothing."""
    with pytest.raises(UsageError) as caught:
        without_plugin_options(line)
    assert str(caught.value) == told


def test_the_environment_is_read_and_added_to(monkeypatch: pytest.MonkeyPatch) -> None:
    """The command line adds; processes that are started read the sum, and afterwards it is as it was."""
    monkeypatch.setenv(FILES, f"a.py{os.pathsep}b.py")
    monkeypatch.setenv(WITHOUT, "x, y")
    monkeypatch.delenv(STRICT, raising=False)
    _, chosen = without_plugin_options(["--plugin", "c.py", "--plugin", "a.py", "--no-plugin", "z", "--strict-plugins"])
    assert chosen == Chosen(("a.py", "b.py", "c.py"), ("x", "y", "z"), True)
    before = {name: os.environ.get(name) for name in (FILES, WITHOUT, STRICT)}
    with wanted(chosen):
        assert Chosen.of_environment() == chosen
    assert {name: os.environ.get(name) for name in before} == before


def test_a_variable_that_cannot_be_read_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """A yes would otherwise be a no."""
    monkeypatch.setenv(STRICT, "yes")
    with pytest.raises(UsageError) as caught:
        Chosen.of_environment()
    assert str(caught.value) == "variable KERNBENCH_STRICT_PLUGINS must be 1 or 0, not 'yes'."


def test_names_are_parted_by_commas_or_blanks() -> None:
    """As people write lists."""
    assert names(" a, b c,,\n") == ("a", "b", "c")
