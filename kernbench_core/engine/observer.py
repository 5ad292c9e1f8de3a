"""Who looks on while a run happens, and changes nothing of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from kernbench_core.engine.hardware import Hardware
    from kernbench_core.environment import Environment
    from kernbench_core.messages import HostRequest


class RunObserver(Protocol):
    """What is given to an engine that is to be observed; the clock that the run is to use is the observer's."""

    env: Environment

    def attach(self, hardware: Hardware) -> None:
        """Look on from now; called once, when every component exists and nothing has happened yet."""

    def submitted(self, request: HostRequest) -> None:
        """Take note of a request of a host program, before it is sent."""
