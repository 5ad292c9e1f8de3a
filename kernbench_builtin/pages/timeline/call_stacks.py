"""Where kernels wait, with who called: stacks of kernel lines as they are noted, and what lines called when."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from types import FrameType
from typing import TypeAlias

import attrs
import numpy as np

from kernbench_builtin.pages.timeline.columns import Indices, Times
from kernbench_core.callsite import CallSite, machinery

CallStack: TypeAlias = tuple[CallSite, ...]
"""The user's lines that are being executed, the one that called first."""


def call_stack() -> CallStack:
    """Note the user's frames, from the kernel to the line that asked for something."""
    found: list[CallSite] = []
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        if not machinery(frame.f_globals):
            found.append((frame.f_code, frame.f_lasti))
        frame = frame.f_back
    found.reverse()
    return tuple(found)


@attrs.frozen(eq=False)
class Calls:
    """What lines at one depth called, one after another: rows by program, line, and from and until when (ns).

    `inside` is, of each step, the row that it lies in, -1 for none.
    """

    program: Indices
    line: Indices
    start_ns: Times
    end_ns: Times
    inside: Indices


def calls_of(
    stacks: Sequence[Sequence[int]], stack: Indices, program: Indices, start_ns: Times, end_ns: Times
) -> Iterator[Calls]:
    """Yield the calls at each depth, the outermost first, around steps that have a stack of lines each (-1: none).

    Steps of a program stand in time. Calls of one line that follow each other without a wait between are one.
    """
    order = np.argsort(program, kind="stable")
    at, of = stack[order], program[order]
    goes_on = np.zeros(len(order), bool)
    goes_on[1:] = (of[1:] == of[:-1]) & (start_ns[order][1:] == end_ns[order][:-1])
    for depth in range(max(map(len, stacks), default=1) - 1):
        numbers: dict[tuple[int, ...], int] = {}
        around = [numbers.setdefault(tuple(each[: depth + 1]), len(numbers)) if len(each) > depth + 1 else -1
                  for each in stacks]  # fmt: skip
        caller = np.array([*around, -1], np.int64)[at]
        begins = caller >= 0
        begins[1:] &= ~goes_on[1:] | (caller[1:] != caller[:-1])
        row = np.where(caller >= 0, np.cumsum(begins) - 1, -1)
        first = np.flatnonzero(begins)
        last = np.flatnonzero(np.append((caller[:-1] >= 0) & (row[1:] != row[:-1]), caller[-1:] >= 0))
        lines = np.array([each[-1] for each in numbers], np.int64)
        inside = np.empty(len(order), np.int64)
        inside[order] = row
        yield Calls(of[first], lines[caller[first]], start_ns[order][first], end_ns[order][last], inside)
