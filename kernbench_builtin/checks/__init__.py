"""Whether plug-ins keep their word: the checks of all that one registers, for its tests and for the command line.

    conform("acme", plugins)            # every check of everything that the plug-in acme registers

PYTEST_DONT_REWRITE: there is no assertion in it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kernbench_core.package import door

if TYPE_CHECKING:
    from kernbench_builtin.checks.conformance import Conformance as Conformance
    from kernbench_builtin.checks.conformance import conform as conform
    from kernbench_builtin.checks.pytest_plugin import parametrize_checks as parametrize_checks

__getattr__ = door(__name__)
