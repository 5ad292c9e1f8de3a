"""The op log: what each logged message did, when, and on which values; the only thing phase 1 hands to phase 2.

In: descriptions of ops with their times. Out: records in order, and one hash of all of them. The engine fills it,
compute and explain read it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kernbench_core.package import door

if TYPE_CHECKING:
    from kernbench_core.oplog.description import Access as Access
    from kernbench_core.oplog.description import OpDescription as OpDescription
    from kernbench_core.oplog.description import OpPattern as OpPattern
    from kernbench_core.oplog.description import Patterns as Patterns
    from kernbench_core.oplog.parameters import OF_READS as OF_READS

__getattr__ = door(__name__)
