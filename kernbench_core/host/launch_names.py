"""What reports call a launch."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kernbench_core.callsite import describe_site

if TYPE_CHECKING:
    from kernbench_core.host.host_program import LaunchHandle, Shared


def called(handle: LaunchHandle) -> str:
    """Return a launch's name and the line that called it, as far as there is one."""
    return handle.name + ("" if handle.site is None else f", called at {describe_site(handle.site)}")


def running_in_words(shared: Shared, pe: int) -> str:
    """Say which launch runs on a PE now; "" where none does."""
    for handle in reversed(shared.launches):
        if pe in handle.launch.started_ns and pe not in handle.launch.ended_ns:
            return called(handle)
    return ""
