"""Where in the user's kernel a call was made: cheap to note for every command, resolved only when printed."""

from __future__ import annotations

import sys
import traceback as tracebacks
from types import CodeType, FrameType, TracebackType
from typing import Any, TypeAlias

from kernbench_core.package import OURS, is_ours

# No kernel lives in what is `OURS`: whatever of it is on the stack stands between the user's line and the command. So
# does a module of another package that holds the name `__tracebackhide__`, which is pytest's for the same purpose.
_HIDDEN = "__tracebackhide__"

#: Packages besides whose frames say nothing to a user: they stand between the command and the user's own lines.
_FRAMEWORK = ("simpy", "click", "rich_click", "IPython")

#: Which modules are `OURS`, of those that were asked for: comparing the beginnings is 1 % of a run.
_ours: dict[str, bool] = {}

CallSite: TypeAlias = tuple[CodeType, int]
"""A code object and the offset of the instruction that was executing."""


def machinery(names: dict[str, Any]) -> bool:
    """Tell whether a frame with these globals stands between the user's line and what it asked for."""
    return is_ours(names.get("__name__", "")) or _HIDDEN in names


def call_site() -> CallSite:
    """Note the innermost frame that is not part of the kernel language: the user's own line."""
    frame: FrameType | None = sys._getframe()  # the caller's, where this is compiled
    while frame is not None:
        names = frame.f_globals  # inlined from machinery: this is asked for every command
        name: str = names.get("__name__", "")
        ours = _ours.get(name)
        if ours is None:
            ours = _ours[name] = name.startswith(OURS)
        if not ours and _HIDDEN not in names:
            return frame.f_code, frame.f_lasti
        frame = frame.f_back
    raise RuntimeError("a call site was asked for outside any user code; call it from a kernel")


def site_of_frame(frame: FrameType | None) -> CallSite | None:
    """Give the user's line that `frame` (innermost first) is executing, or None if there is none."""
    while frame is not None:
        if not machinery(frame.f_globals):
            return frame.f_code, frame.f_lasti
        frame = frame.f_back
    return None


def site_of_traceback(traceback: TracebackType | None) -> CallSite | None:
    """Give the innermost user line of an exception's traceback, or None if there is none."""
    found: CallSite | None = None
    while traceback is not None:
        if not machinery(traceback.tb_frame.f_globals):
            found = (traceback.tb_frame.f_code, traceback.tb_lasti)
        traceback = traceback.tb_next
    return found


def site_of_raise(traceback: TracebackType | None) -> CallSite | None:
    """Give the line that raised if it is the user's, or None if the machinery raised."""
    while traceback is not None and traceback.tb_next is not None:
        traceback = traceback.tb_next
    if traceback is None or machinery(traceback.tb_frame.f_globals):
        return None
    return traceback.tb_frame.f_code, traceback.tb_lasti


def line_number(site: CallSite) -> int:
    """Give the source line of a call site (1-based)."""
    code, lasti = site
    for start, end, line in code.co_lines():
        if start <= max(lasti, 0) < end and line is not None:
            return line
    return code.co_firstlineno


def describe_site(site: CallSite | None) -> str:
    """Spell a call site as `file.py:LINE`, the form of every kernel error."""
    if site is None:
        return "an unknown line"
    return f"{site[0].co_filename}:{line_number(site)}"


def user_traceback(error: BaseException) -> str:
    """Format the part of a traceback that lies outside the framework and its event loop.

    Frames of a module that holds the name `__tracebackhide__` are left out, but for the one that raised.
    """
    walked = list(tracebacks.walk_tb(error.__traceback__))
    frames = [
        summary
        for number, ((frame, _), summary) in enumerate(
            zip(walked, tracebacks.extract_tb(error.__traceback__), strict=True), 1
        )
        if not _framework(frame)
        if "__tracebackhide__" not in frame.f_globals or number == len(walked)
    ]
    return "".join(tracebacks.format_list(frames)).rstrip()


def _framework(frame: FrameType) -> bool:
    """Tell whether a frame is ours, of the event loop, of the command line, or of the import machinery."""
    module = str(frame.f_globals.get("__name__", ""))
    between = is_ours(module) or module.partition(".")[0] in _FRAMEWORK
    return between or frame.f_code.co_filename.startswith("<frozen importlib")
