"""What was done where in a run, a row for each."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar

import attrs

from kernbench_builtin.machines.figures.columns import ColumnTable
from kernbench_builtin.machines.figures.components import component_kinds, components
from kernbench_builtin.machines.figures.kernels import KernelFigures, kernel_figures
from kernbench_builtin.machines.figures.launch import LaunchFigures
from kernbench_builtin.machines.figures.lines import kernel_functions, kernel_lines
from kernbench_builtin.machines.figures.links import links
from kernbench_builtin.machines.figures.meter import LaunchMeter
from kernbench_builtin.machines.figures.models import model_digests
from kernbench_builtin.machines.figures.names import GIVES
from kernbench_builtin.machines.figures.op_kinds import op_kinds
from kernbench_builtin.machines.figures.ops import masked_share, op_columns
from kernbench_core.runs.listing import listed

if TYPE_CHECKING:
    from kernbench_core.host.session import GraphEngine


@attrs.frozen(repr=False)
class RunTables:
    """What was done where, a row for each; each is an attribute of the result, too.

    `launches` have figures of their own, `kernels` what they did together; `links` are all wires and channels,
    `components` all components, `lines` the lines of kernels with the ops that they gave, `functions` the functions
    that these are in, `op_kinds` the op log by name of op, `models` the SHA-256 of the code of each implementation (""
    where it has no file). `ops` is the op log by column, a row for each record.
    """

    GIVES: ClassVar = GIVES

    launches: tuple[LaunchFigures, ...] = attrs.field(converter=listed)
    kernels: KernelFigures | None
    links: ColumnTable
    components: ColumnTable
    lines: ColumnTable
    functions: ColumnTable
    op_kinds: ColumnTable
    models: Mapping[str, str]
    ops: ColumnTable = attrs.field(eq=False)
    all_links: bool = attrs.field(default=False, eq=False)

    @property
    def masked_share(self) -> float:
        """The share of the blocks that DMAs loaded and stored, in bytes, that masks left out, from 0 to 1.

        Which lanes of a computation lead to a result is not known: FLOP are of all lanes.
        """
        return masked_share(self.ops)

    def __repr__(self) -> str:
        return f"<RunTables of {len(self.launches)} launches, {len(self.links)} links, {len(self.ops)} ops>"

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON types."""
        return {
            "kernels": None if self.kernels is None else self.kernels.to_json(),
            "launches": [launch.to_json() for launch in self.launches],
            **({"links": self.links.to_json()} if self.all_links else {}),
            "components": [*component_kinds(self.components)],
            "op_kinds": [*self.op_kinds],
            "lines": [*self.lines],
            "functions": [*self.functions],
            "models": dict(self.models),
        }


def meter_of(session: GraphEngine) -> LaunchMeter | None:
    """Return what measures the launches of a session; None where something else does, or nothing."""
    return session.meter if isinstance(session.meter, LaunchMeter) else None


def launches_of(session: GraphEngine) -> Iterable[LaunchFigures]:
    """Yield the figures of every launch that is over, in the order in which they were submitted."""
    return (found for handle in session.shared.launches if (found := session.figures_of(handle)) is not None)


def kernels_of(session: GraphEngine) -> KernelFigures | None:
    """Return what all kernels did together so far, None where none ran to its end, or nobody measured."""
    meter = meter_of(session)
    return None if meter is None else kernel_figures(session.hardware, meter)


def figures_of_session(session: GraphEngine, *, all_links: bool = False) -> RunTables:
    """Return the figures of what has run so far."""
    hardware, log = session.hardware, session.op_log
    uses = () if hardware.op_logger is None else hardware.op_logger.lines.values()
    return RunTables(
        launches_of(session), kernels_of(session), links(hardware), components(hardware, log), kernel_lines(uses),
        kernel_functions(uses), op_kinds(log), model_digests(hardware.components.values()), op_columns(log), all_links,
    )  # fmt: skip
