"""What a cache cannot keep, as no key covers it."""

from __future__ import annotations

from kernbench_core.errors import KernbenchError


class NotCacheable(KernbenchError):
    """What was asked for is made anew each time: the sentence says what of it no key covers, and why."""
