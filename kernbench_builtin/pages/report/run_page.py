"""What a page shows of one run, as plain data: the same whether it was saved or is in memory."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

import attrs

from kernbench_builtin.compare.run_figures import figures_of_json
from kernbench_builtin.machines.drawing import MachineDrawing

if TYPE_CHECKING:
    from kernbench_builtin.compare import RunFigures
    from kernbench_builtin.machines.figures.columns import ColumnTable
    from kernbench_builtin.pages.timeline import Timeline

#: Kernels of a script that are named.
_KERNELS: Final = 4


@attrs.define(slots=False, repr=False)
class RunPage:
    """One run: its `name` on the page, the object of `--json` (`result`), and what else there is of it.

    `machine` is what `machine.json` holds, `sources` the texts of the files that kernels are in, by name.
    `links` are all of its links, where they were kept, `bench_files` the texts of the bench's own files, by name.
    The run `goes_on` where the page shows what there is so far. `scale_ns` is how long the longest run beside it took,
    to which its bars and times are drawn, `launch_scale_ns` how long the longest launch of any; None where it stands
    alone.
    """

    name: str
    result: Mapping[str, Any]
    machine: Mapping[str, Any] | None = None
    timeline: Timeline | None = None
    sources: Mapping[str, str] = attrs.field(factory=dict)
    goes_on: bool = False
    scale_ns: float | None = None
    launch_scale_ns: float | None = None
    links: ColumnTable | None = None
    bench_files: Mapping[str, str] = attrs.field(factory=dict)

    @property
    def kernels(self) -> str:
        """The kernels that a script launched, in words; "" for a bench, whose name says what runs."""
        return script_kernels(self.result)

    @property
    def title(self) -> str:
        """Its name; of a script also which that is, and its kernels."""
        if not self.kernels:
            return self.name
        script = str(self.result["bench"])
        return f"{self.name if script in self.name else f'{self.name}: {script}'} ({self.kernels})"

    @property
    def explain(self) -> Mapping[str, Any] | None:
        """The explanation as JSON, None where the run was not asked for one."""
        found: Mapping[str, Any] | None = self.result.get("explain")
        return found

    @property
    def total_ns(self) -> float:
        """Simulated time of the whole run, in ns."""
        return float(self.result["total_ns"])

    @property
    def longest_launch_ns(self) -> float:
        """Time of the programs of its longest launch, in ns; 0 without one."""
        return max((each["ended_ns"] - each["started_ns"] for each in self.result.get("launches") or ()), default=0.0)

    @cached_property
    def figures(self) -> RunFigures:
        """What it is compared by with runs beside it."""
        return figures_of_json(self.result, self.links, self.name, self.bench_files)

    @cached_property
    def drawing(self) -> MachineDrawing | None:
        """The machine as it is drawn."""
        return None if self.machine is None else MachineDrawing.from_json(self.machine)

    def __repr__(self) -> str:
        return f"<RunPage {self.name}>"


def script_kernels(result: Mapping[str, Any]) -> str:
    """Name the kernels that a script launched, the first of many; "" for the result of a bench."""
    launches = ((result.get("manifest") or {}).get("bench") or {}).get("launches") or ()
    names = [*dict.fromkeys(each["kernel"] for each in launches)]
    more = [f"{len(names) - _KERNELS} more"] if len(names) > _KERNELS else []
    return ", ".join([*names[:_KERNELS], *more])
