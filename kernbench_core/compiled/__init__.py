"""Which form of the core runs: compiled, or the Python that it was compiled from.

In: what was built, and the sources as they are. Out: the form, and why it is no other. The package calls it, before
anything else of it is imported.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kernbench_core.package import door

if TYPE_CHECKING:
    from kernbench_core.compiled.form import in_words as in_words
    from kernbench_core.compiled.form import is_compiled as is_compiled

__getattr__ = door(__name__)
