"""What waited at a wire or a component, counted where a wait happens anyway."""

from __future__ import annotations


class Waits:
    """Count messages that queued at one place: how many, how long together, and the longest, in ns."""

    __slots__ = ("longest_wait_ns", "waited_ns", "waits")

    def __init__(self) -> None:
        self.waits = 0
        self.waited_ns = 0.0
        self.longest_wait_ns = 0.0

    def note_wait(self, waited: float) -> None:
        """Count a message that queued here for `waited` ns."""
        self.waits += 1
        self.waited_ns += waited
        if waited > self.longest_wait_ns:
            self.longest_wait_ns = waited
