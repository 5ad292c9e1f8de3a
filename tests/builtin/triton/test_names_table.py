"""The table of names in docs/triton.md says what the code says, and nothing that is not there."""

from __future__ import annotations

from pathlib import Path

from kernbench_builtin.triton.language.dialect import TritonLanguage
from kernbench_builtin.triton.language.table import HERE, table
from kernbench_builtin.triton.names import language_module
from kernbench_core.kernel.tl.language import REFUSED, TLContext

DOCS = Path(__file__).parents[3] / "docs" / "triton.md"


def test_the_documentation_has_the_table() -> None:
    """Name for name."""
    _, _, rest = DOCS.read_text().partition("<!-- names begin -->\n")
    assert rest.partition("<!-- names end -->")[0] == table()


def test_every_name_is_there_and_each_that_was_refused_and_is_there_is_told() -> None:
    """In the module, or in the language of a kernel."""
    own = vars(language_module())
    there = {name for name in dir(TritonLanguage) if not hasattr(TLContext, name)} | set(own)
    assert all(hasattr(TritonLanguage, name) or name in own for name in HERE)
    assert {name for name in REFUSED if name in there} <= {*HERE, "dtype"}
