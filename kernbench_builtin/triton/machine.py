"""A machine that is held open: a run whose host program launches what it is given, one at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from attrs import evolve

from kernbench_builtin.triton.addresses import addresses_of, reached
from kernbench_builtin.triton.language.blocks import TensorDescriptor
from kernbench_builtin.triton.mirror import HeldArgument, Mirror
from kernbench_builtin.triton.scalars import mapped
from kernbench_builtin.triton.simulation import facts_of
from kernbench_builtin.triton.storage import StorageView, view_of
from kernbench_core.errors import UsageError
from kernbench_core.host.launch_arguments import deal_programs
from kernbench_core.kernel.bridge import Finished, Guest
from kernbench_core.messages import Launch
from kernbench_core.runs.bench_run import run

if TYPE_CHECKING:
    from kernbench_builtin.triton.simulation import JitLaunch, MachineFacts
    from kernbench_core.host.figures.launch import LaunchFigures
    from kernbench_core.host.runtime import Runtime
    from kernbench_core.runs.result import RunResult


class HeldMachine:
    """A run of `kb.run` with these options, between `begin` and `end`; `name` is what its result calls it."""

    def __init__(
        self, topology: str | Path | Mapping[str, object], options: Mapping[str, Any], name: str = "triton"
    ) -> None:
        self.launched = 0
        self._name = name
        usual = {"race_by": "program", "materialize": "on_demand", "verify_data": options.get("data", True)}
        self._call = {"topology": topology, **usual, **options}
        self._guest: Guest | None = None

    @property
    def open(self) -> bool:
        """Whether the run goes on: it has begun, and neither ended nor failed."""
        return self._guest is not None and not self._guest.over

    def begin(self) -> None:
        """Begin the run."""
        self._guest = Guest(self._run)
        self._guest.visit()

    def facts(self) -> MachineFacts:
        """Return what the machine has."""
        facts: MachineFacts = self._ask(lambda mirror: facts_of(mirror.rt))
        return facts

    def launch(self, asked: JitLaunch, *, kept: bool = True) -> LaunchFigures:
        """Run a kernel, write what it wrote to the host's arrays if that is to be kept, and return its figures."""
        figures: LaunchFigures = self._ask(lambda mirror: _launched(mirror, asked, kept))
        self.launched += 1
        return figures

    def end(self) -> RunResult | None:
        """End the run and return its result; None where nothing was launched, or an error ended it."""
        guest = self._guest
        if guest is None or guest.over:
            return None
        if not self.launched:
            guest.abandon()
            return None
        answer = guest.visit(None)
        assert isinstance(answer, Finished)
        result: RunResult = answer.value
        return result

    def abandon(self) -> None:
        """Give the run up."""
        if self.open:
            assert self._guest is not None
            self._guest.abandon()

    def _ask(self, request: Callable[[Mirror], Any]) -> Any:
        assert self._guest is not None
        answer = self._guest.visit(request)
        if isinstance(answer, UsageError):
            raise answer
        return answer

    def _run(self) -> RunResult:
        def program(rt: Runtime) -> None:
            assert self._guest is not None
            mirror, answer = Mirror(rt), None
            while (request := self._guest.ask(answer)) is not None:
                try:
                    answer = request(mirror)
                except UsageError as error:  # of the arguments: the run goes on
                    answer = error

        program.__name__ = self._name
        return run(program, **self._call)


class Trials:
    """Launches whose data nobody gets, each on a machine of its own; what was `seen` is not simulated again."""

    def __init__(self, topology: str | Path | Mapping[str, object], options: Mapping[str, Any]) -> None:
        self.seen: dict[object, LaunchFigures] = {}
        self._given = topology, options

    def launch(self, asked: JitLaunch) -> LaunchFigures:
        """Run a kernel on a machine on which nothing ran before, and return its figures."""
        key = asked.likeness
        if key not in self.seen:
            machine = HeldMachine(*self._given)
            machine.begin()
            self.seen[key] = machine.launch(asked, kept=False)
            machine.abandon()
        return self.seen[key]


def _launched(mirror: Mirror, asked: JitLaunch, kept: bool) -> LaunchFigures:
    """Launch on the device what the host's code asks for, with the host's arrays."""
    rt = mirror.rt
    views: dict[str, StorageView] = {}
    for name, value in (each for given in asked.arguments.items() for each in _parts(*given)):
        array = value.base if isinstance(value, TensorDescriptor) else value
        view = view_of(array, f"argument {name!r} of kernel {asked.name!r}")
        if view is not None:
            views[name] = view
    views.update(reached(views, asked.reachable, f"an array that kernel {asked.name!r} reaches by its address"))
    held = mirror.hold(views, asked.name)
    if asked.reachable:
        asked.kernel.addresses = addresses_of(held.values())  # type: ignore[attr-defined]  # of a jit function
    arguments = {name: _on_device(name, value, held) for name, value in asked.arguments.items()}
    programs, grid = deal_programs([site.index for site in rt.pes], asked.grid)
    tensors = [each.held.tensor for each in held.values()]
    handle = rt.submit(Launch(asked.kernel, arguments, grid, programs), tensors, asked.name)
    handle.site = asked.site
    rt.wait(handle)
    if kept:
        mirror.read_back(held.values(), asked.name)
    else:
        mirror.forget(held.values())
    return handle.figures


def _parts(name: str, value: object) -> Iterator[tuple[str, object]]:
    """Yield an argument, or what is in it where it is a tuple, with the name of each."""
    if not isinstance(value, tuple):
        yield name, value
        return
    for place, each in zip(_places(value), value, strict=True):
        yield from _parts(f"{name}{place}", each)


def _places(value: tuple[object, ...]) -> Iterable[str]:
    fields = getattr(value, "_fields", None)
    return (f"[{at}]" for at in range(len(value))) if fields is None else (f".{field}" for field in fields)


def _on_device(name: str, value: object, held: Mapping[str, HeldArgument]) -> object:
    """Give an argument as the device has it: an array's pointer, a descriptor of what is there, a tuple of such."""
    if isinstance(value, tuple):
        places = iter(_places(value))
        return mapped(lambda each: _on_device(f"{name}{next(places)}", each, held), value)
    if name not in held:
        return value
    pointer = held[name].pointer
    return evolve(value, base=pointer) if isinstance(value, TensorDescriptor) else pointer
