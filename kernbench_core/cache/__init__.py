"""Answers kept in the user's cache folder, and what they depend on: whole files under a key, bounded, without pickle.

In: a key, an answer's files and the places that it depends on. Out: the same files, or nothing. Runs and the
choice of collective algorithms call it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kernbench_core.package import door

if TYPE_CHECKING:
    from kernbench_core.cache.dependencies import NotCacheable as NotCacheable
    from kernbench_core.cache.dependencies import code_digests as code_digests
    from kernbench_core.cache.dependencies import digest_of as digest_of
    from kernbench_core.cache.store import Cache as Cache

__getattr__ = door(__name__)
