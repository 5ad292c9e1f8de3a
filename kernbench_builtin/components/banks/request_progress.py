"""How far a request to a controller with banks is."""

from __future__ import annotations

import math
from typing import Any

from kernbench_builtin.components.banks.mapping import BlockRun


class RequestProgress:
    """Keep how far a request is: its bursts, when it came, its data's first and last time, what its rows took to open.

    `entering` is how many queues have not all of its bursts yet, `waiting` how many bursts have no command.
    """

    __slots__ = ("end", "entering", "first", "head", "last", "msg", "opening", "runs", "tail", "waiting")

    def __init__(self, msg: Any, runs: list[BlockRun], first: float, tail: float) -> None:
        self.msg = msg
        self.runs = runs
        self.first = first
        self.tail = tail
        self.entering = 0
        self.waiting = sum([len(places) for _, places in runs])
        self.head = math.inf
        self.end = self.opening = 0.0
        self.last: Any = None
