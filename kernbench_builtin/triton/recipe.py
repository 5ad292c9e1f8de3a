"""What a run of a script says of itself: a bench with the script's arguments, its launches, and words for its data."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from attrs import define, evolve, field

from kernbench_builtin.triton.language.blocks import TensorDescriptor
from kernbench_core.errors import UsageError
from kernbench_core.host.bench import Bench, BenchParam
from kernbench_core.units import finite
from kernbench_core.values.element_types import ElementType

if TYPE_CHECKING:
    from kernbench_builtin.triton.simulation import JitLaunch
    from kernbench_core.compute.on_demand import HostReads
    from kernbench_core.host.sources import Sources

ORDERS: Final = "tl.atomic_add where programs add to one place, or a launch in between, orders them"
"""What orders uses of memory in kernels of Triton."""

KIND: Final = "triton"
"""The kind of program that runs a script again."""

ARGUMENTS, POINTS = "arguments", "points"
#: The options of `kernbench triton` that say what runs, as parameters of the run.
_PARAMS: Final = (BenchParam(ARGUMENTS, "str", True, False, None), BenchParam(POINTS, "int", True, False, None))


_NO_DATA: Final = "no data was computed: arrays are as the script made them (--no-data)"


@define(eq=False)
class ScriptRecipe:
    """What is kept of a run: the `command` that makes it, and its launches, equal ones counted.

    `failure` says how the script failed, `data` whether any is computed. `module` is that of `-m`, `arguments` are the
    script's, `points` is the option of that name, and `sources` are the script's file and the modules beside it, as
    they were. There is none of these where `kb.triton` is held open.
    """

    command: Sequence[str] = ()
    module: str = ""
    arguments: Sequence[str] = ()
    points: int | None = None
    sources: Sources | None = None
    failure: str = ""
    data: bool = True
    _launches: dict[str, dict[str, Any]] = field(factory=dict)

    def again(self) -> ScriptRecipe:
        """Return one without launches, for another run of the same."""
        return evolve(self, launches={})

    def note(self, asked: JitLaunch) -> None:
        """Count a launch that is over."""
        told = described(asked)
        self._launches.setdefault(json.dumps(told, sort_keys=True), {**told, "count": 0})["count"] += 1

    def to_json(self) -> dict[str, Any]:
        """Return what a manifest keeps."""
        module = {"module": self.module} if self.module else {}
        command = {"command": [*self.command]} if self.command else {}
        return {"kind": KIND, **module, **command, "launches": [*self._launches.values()]}

    def told(self, reads: HostReads) -> tuple[str, bool]:
        """Say whether the data is right, and whether the script failed."""
        told = data_words(reads) if self.data else _NO_DATA
        if not self.failure:
            return told, False
        return f"THE SCRIPT FAILED, {self.failure}{'' if self.data else f'; {told}'}", True

    @property
    def params(self) -> dict[str, Any]:
        """The arguments of the script, and how many points of its benchmarks run."""
        return {ARGUMENTS: shlex.join(self.arguments) or None, POINTS: self.points} if self.command else {}

    def bench(self, program: Callable[..., None], name: str) -> Bench:
        """Return the bench of a run that `program` is."""
        params = _PARAMS if self.command else ()
        return Bench(
            name, program, "", params, self.sources, recipe=self.to_json, data_words=self.told, orders=ORDERS
        )


def described(asked: JitLaunch) -> dict[str, Any]:
    """Say what is launched: kernel, grid, and the arguments by name, those that are constants apart; plain JSON."""
    function = asked.kernel.function  # type: ignore[attr-defined]  # of a jit function
    told = {name: _plain(value) for name, value in asked.arguments.items()}
    return {
        "kernel": asked.name,
        "grid": list(asked.grid),
        "constexprs": {name: value for name, value in told.items() if name in function.constexprs},
        "arguments": {name: value for name, value in told.items() if name not in function.constexprs},
        "hints": {name: _plain(value) for name, value in asked.kernel.hints.items()},  # type: ignore[attr-defined]
    }


def _plain(value: Any) -> Any:
    """Return an argument as JSON has it: of an array dtype and shape."""
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return finite(value)
    if isinstance(value, tuple | list):
        return [_plain(each) for each in value]
    if isinstance(value, TensorDescriptor):
        return f"{_plain(value.base)} in blocks of {list(value.block_shape)}"
    dtype, shape = getattr(value, "dtype", None), getattr(value, "shape", None)
    if dtype is not None and shape is not None:
        return f"{str(dtype).removeprefix('torch.')}{list(shape)}"
    if isinstance(value, ElementType):
        return f"tl.{value.name}"
    name = getattr(value, "__name__", None)
    return name if isinstance(name, str) else type(value).__name__


def data_words(reads: HostReads) -> str:
    """Say that a script is to check its data, and what kernbench found of what it read."""
    own = "data is for the script to check"
    if not reads.read:
        return f"{own}; nothing that it read was left to compute"
    if reads.confirmed is None:
        return f"{own}; what it read was computed once"
    if reads.confirmed == reads.read:
        return f"{own}; what it read was computed twice, alike"
    return f"{own}; of {reads.read:,} arrays that it read {reads.confirmed:,} were computed twice, alike"


def arguments_of(params: Mapping[str, Any]) -> list[str]:
    """Return the arguments of a script from the parameters of its run; UsageError for a text that holds none."""
    try:
        return shlex.split(params.get(ARGUMENTS) or "")
    except ValueError as error:
        told = f"the arguments of a script must be as a run wrote them, but there is {str(error).lower()}"
        raise UsageError(f"{told}; restore the manifest.") from None
