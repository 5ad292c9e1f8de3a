"""What docstrings say of parameters."""

from __future__ import annotations

import inspect

import numpy as np
import pytest

from kernbench_core.host.bench import open_bench
from kernbench_core.host.parameters.docstrings import argument_sentences
from kernbench_core.plugins import Registry


def documented(rt, n: int = 4, x: np.ndarray | None = None, other: str = ""):
    """Do it.

    More on it: of no use here.

    Args:
        n: how many there are;
            at least one.
        x (array): the vector: of any
            length.

    Returns:
        other: nothing.
    """


def test_the_section_args_is_read() -> None:
    """Lines that are indented more go on; another section is none; a parameter that is not told of has no sentence."""
    bench = open_bench(documented, Registry("bench"))
    assert bench.sentence == "Do it."
    assert {param.name: param.sentence for param in bench.params} == {
        "n": "how many there are; at least one.", "x": "the vector: of any length.", "other": "",
    }  # fmt: skip
    assert [param.to_json().get("sentence") for param in bench.params] == [
        "how many there are; at least one.", "the vector: of any length.", None,
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("doc", "found"),
    [
        ("", {}),
        ("One line: with a colon.", {}),
        ("Args: of what?\n    n: no.", {}),
        ("Do.\n\nParameters:\n  n: yes.\n  *rest: more.\nEnd: no.\n  m: no.", {"n": "yes.", "rest": "more."}),
        ("Do.\n\nArgs:\n    a text without a name\n    n: yes.", {"n": "yes."}),
        ("Do.\n\n    Args:\n        n:\n            below.\n    m: no.", {"n": "below."}),
    ],
)
def test_other_docstrings(doc: str, found: dict[str, str]) -> None:
    assert argument_sentences(inspect.cleandoc(doc) if doc.startswith("Do.\n\nP") else doc) == found
