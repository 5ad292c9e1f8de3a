"""The figures of every run, and `--links`."""

from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import attrs

from kernbench_builtin.machines.figures.names import GIVES
from kernbench_core.errors import UsageError
from kernbench_core.runs.options import OUTPUT, Option, OptionRecord
from kernbench_core.runs.parts import RunPart

if TYPE_CHECKING:
    from kernbench_builtin.machines.figures.launch import FiguresMeter
    from kernbench_builtin.machines.figures.tables import RunTables
    from kernbench_core.host.session import GraphEngine
    from kernbench_core.plugins import Plugins

#: The links of a run, in its folder.
LINKS = "links.npz"


@attrs.frozen(kw_only=True)
class FiguresOptions(OptionRecord):
    """Which links `--json` has."""

    links: Annotated[
        str, Option("Links in --json: the busiest of each kind, or all.", choices=("busiest", "all"), group=OUTPUT)
    ] = "busiest"


class FiguresPart(RunPart):
    """Measures launches, and says what was done where; every run has it."""

    NAME, OPTIONS, SAVES, ALWAYS, GIVES = "figures", FiguresOptions, (LINKS,), True, GIVES
    EXAMPLE: ClassVar = {"links": "all"}

    @classmethod
    def at_terminal(cls, shell: Any, given: dict[str, Any], title: str) -> AbstractContextManager[None]:
        """Refuse to say which links there are where nothing has them."""
        import click

        context = click.get_current_context(silent=True)
        check_links(given, as_json=context is None or context.params["as_json"])
        return nullcontext()

    def meter(self) -> "FiguresMeter":
        """Return what measures launches."""
        from kernbench_builtin.machines.figures.launch import FiguresMeter

        return FiguresMeter()

    def answer(self, session: "GraphEngine") -> "RunTables":
        """Return what there is so far."""
        from kernbench_builtin.machines.figures.tables import figures_of_session

        return figures_of_session(session, all_links=self.options.links == "all")

    def save(self, folder: Path, answers: Mapping[str, Any]) -> None:
        """Write all links beside the result."""
        from kernbench_builtin.machines.figures.columns_file import save_columns

        save_columns(answers[self.NAME].links, folder / LINKS)


def check_links(given: Mapping[str, Any], *, as_json: bool) -> None:
    """Raise UsageError where links are asked for that nothing has."""
    if given.get("links") == "all" and not as_json and given["out"] is None:
        raise UsageError("--links must be given with --json or --out; add one, or leave out --links all.")


def require_figures(plugins: "Plugins", option: str) -> None:
    """Raise UsageError for an option that shows figures where no plug-in has them."""
    if FiguresPart.NAME not in plugins.run_parts:
        left_out = plugins.run_parts.left_out
        raise UsageError(f"{option} shows the figures of a run, and no plug-in has any; leave it out.{left_out}")
