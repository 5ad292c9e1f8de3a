"""`--cached`: a result that is kept for the next time, and the output of commands that are no run."""

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Annotated, Any

import attrs

from kernbench_core.errors import UsageError
from kernbench_core.runs.options import CACHE, Option, OptionRecord
from kernbench_core.runs.parts import RunPart

if TYPE_CHECKING:
    from kernbench_core.cli.shell import Shell
    from kernbench_core.host.session import GraphEngine
    from kernbench_core.runs.options import RunCall
    from kernbench_core.runs.result import RunResult
    from kernbench_core.topology.configuration import Config


@attrs.frozen(kw_only=True)
class CacheOptions(OptionRecord):
    """The option of the cache; what a run depends on besides stands in `depends`, which benches have, too."""

    cached: Annotated[
        bool, Option("Return the cached result if nothing that it depends on changed; else store it.", group=CACHE)
    ] = False


class CachePart(RunPart):
    """Takes results from the user's cache, and keeps those that were made."""

    NAME, OPTIONS, ORDER = "cached", CacheOptions, 100

    def __init__(self, options: CacheOptions, call: "RunCall", plugins: Any) -> None:
        super().__init__(options, call, plugins)
        self._ran: set[str] = set()

    @classmethod
    def at_terminal(cls, shell: Any, given: dict[str, Any], title: str) -> AbstractContextManager[None]:
        """Refuse to say what a run depends on where nothing keeps it: neither the cache nor a manifest."""
        import click

        context = click.get_current_context(silent=True)
        as_json = context is None or context.params["as_json"]
        if given["depends"] and not (given["cached"] or given["out"] or as_json):
            raise UsageError(
                "--depends must be given with --cached, or --out or --json, whose manifest has it; add one, or leave "
                "out --depends."
            )
        return nullcontext()

    def around(self, make: "Callable[[], RunResult]") -> "RunResult":
        """Return what is kept, else make the run and keep it; a run that writes files, or is watched, is only made."""
        if self.request.files or not all(part.REPEATABLE for part in self.request.parts):
            return make()
        from kernbench_builtin.cache.lookup import cached_run

        return cached_run(self.request, make, lambda: self._ran)

    def answer(self, session: "GraphEngine") -> None:
        """Keep which files kernels are in, besides the bench's own; what there is to say of the run comes later."""
        logger, own = session.hardware.op_logger, self.request.bench.sources
        if logger is not None:
            self._ran = {use.site[0].co_filename for use in logger.lines.values()}
            self._ran -= set() if own is None else {str(own.folder / name) for name in own.files}

    @classmethod
    def around_command(
        cls, shell: "Shell", command: str, options: Mapping[str, Any], config: "Config", make: Callable[[], int]
    ) -> int:
        """Print what a command printed for the same machine, else have it print, and keep that."""
        from kernbench_builtin.cache.lookup import replayed

        return replayed(shell, command, options, config, make)
