"""The algorithms and collectives that are registered, or lie in a file: found by what a user calls them, and checked.

In: the loaded plug-ins, a name or a path. Out: checked views of modules, and records. Plans, proofs, measurements and
commands call it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kernbench_core.package import door

if TYPE_CHECKING:
    from kernbench_ccl.catalogue.algorithm import Algorithm as Algorithm
    from kernbench_ccl.catalogue.algorithm import read_algorithm as read_algorithm
    from kernbench_ccl.catalogue.catalogue import Catalogue as Catalogue
    from kernbench_ccl.catalogue.catalogue import read_file as read_file
    from kernbench_ccl.catalogue.collectives import Collectives as Collectives
    from kernbench_ccl.catalogue.names import meant as meant
    from kernbench_ccl.catalogue.names import spellings as spellings

__getattr__ = door(__name__)
