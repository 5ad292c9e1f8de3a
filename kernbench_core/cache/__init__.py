"""Answers kept by content in the user's cache folder: whole files under a key, bounded, without pickle.

In: a key of all that an answer depends on, and the answer's files. Out: the same files, or nothing. Runs, sweeps and
the choice of collective algorithms call it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kernbench_core.package import door

if TYPE_CHECKING:
    from kernbench_core.cache.computing import ComputingCode as ComputingCode
    from kernbench_core.cache.computing import computing_code as computing_code
    from kernbench_core.cache.digests import Digester as Digester
    from kernbench_core.cache.not_cacheable import NotCacheable as NotCacheable
    from kernbench_core.cache.store import Cache as Cache
    from kernbench_core.cache.store import CacheEntry as CacheEntry

__getattr__ = door(
    __name__,
    {
        "Cache": "store",
        "ComputingCode": "computing",
        "Digester": "digests",
        "CacheEntry": "store",
        "NotCacheable": "not_cacheable",
        "computing_code": "computing",
    },
)
