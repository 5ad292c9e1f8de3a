"""A device of a few PEs whose uses of memory are watched."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from kernbench_core.memory.hazard import Hazard
from kernbench_core.messages import Launch
from tests.core.kernel_rig import Rig


class Watched(Rig):
    """A rig that looks for hazards; each run is a launch that the host waits for, unless told otherwise."""

    def __init__(self, pes: int = 2, **options: Any) -> None:
        super().__init__(pes, **{"watch": pes, **options})

    def launch_all(self, *kernels: tuple[Callable[..., Any], dict[str, Any]], wait: bool = True) -> None:
        """Submit launches one after the other on all PEs before any is waited for."""
        programs = {pe: ((pe, 0, 0),) for pe in range(len(self.cpus))}
        launches = [Launch(kernel, given, (len(programs), 1, 1), programs) for kernel, given in kernels]
        for launch in launches:
            self.hazards.launched(launch)
        env = self.env

        def queue(runner: Any) -> Iterator[Any]:
            for launch in launches:
                yield from runner.run(env, launch)

        for runner in self.runners:
            env.process(queue(runner))
        while env.advance(1000):
            pass
        for launch in launches if wait else ():
            self.hazards.joined(launch)

    def found(self) -> tuple[Hazard, ...]:
        """Give the hazards."""
        return self.hazards.found()
