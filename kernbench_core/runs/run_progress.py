"""How far a run is: what it does at the moment, and how much of that is over, where anybody can know.

It looks at what is there anyhow: the requests of the host programs, the launches, where kernels stand; of a launch of
which that says nothing, at how long the launch before of its kernel took. It looks four times a second, and when a host
program goes on or waits again, and costs a run nothing in between.

How far a kernel is that is suspended is read off its source and its variables, without running any of it: loops over
`range(…)` count, and `while at < last` where `at += step` is all that changes `at`, of numbers, names, sums and
products, `min`, `max`, `cdiv` and `program_id`. Of what else a kernel may be, nobody knows how long it goes on.
"""

from __future__ import annotations

import ast
import inspect
import operator
import textwrap
import time
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from numbers import Integral
from types import CodeType, FrameType
from typing import TYPE_CHECKING, Any, Final, TypeGuard

from attrs import evolve, frozen

from kernbench_core.engine.watchdog import Progress
from kernbench_core.messages import HostRequest, KernelLaunchMsg, MemoryMsg, MemoryReadMsg

if TYPE_CHECKING:
    from kernbench_core.host.session import GraphEngine
    from kernbench_core.messages import Launch

_LOOK_S = 0.25
#: What is looked at when a host program waits again is not counted more often than this.
_COUNT_S = 0.05
#: At how many PEs of a launch the kernels are looked at, evenly spread.
_MOST_LOOKED_AT = 64


@frozen
class RunStep:
    """What a run does at a moment: a phase of it, `done` `of` `unit`s, and the part of it that is over."""

    phase: str
    what: str = ""
    done: int | None = None
    of: int | None = None
    unit: str = ""
    fraction: float | None = None
    key: object = None
    """What makes it another step than one of the same phase."""


class RunProgress:
    """Calls `on_progress`, unless it is None, with a `Progress` for each step, and four times a second within one."""

    def __init__(self, on_progress: Callable[[Progress], None] | None) -> None:
        self._on_progress = on_progress
        self._engine: GraphEngine | None = None
        self._first_open = 0
        self._took: dict[tuple[str, int], float] = {}
        """How long, in ns, the last launch took of a kernel of this name with as many programs."""
        self._latest = Progress(0.0, 0, 0.0)
        self._step = RunStep("")
        self._uncounted = 0
        self._counted = 0.0
        self._began = self._step_began = self._looked = time.perf_counter()

    @property
    def on_tick(self) -> Callable[[Progress], None] | None:
        """What the engine is to call while it simulates; None where nobody wants to know."""
        return None if self._on_progress is None else self._simulated

    def watch(self, engine: GraphEngine) -> None:
        """Look at this engine from now on."""
        self._engine = engine
        if self._on_progress is not None:
            engine.shared.on_host = self._host

    def begin(self, phase: str, of: int | None = None, unit: str = "") -> None:
        """Say that another step begins, `of` units long, if that is known."""
        self._uncounted = 0
        self._report(RunStep(phase, done=None if of is None else 0, of=of, unit=unit, key=object()))

    def did(self, number: int) -> None:
        """Count so many units of the present step as over; it is told four times a second, and when all are."""
        step = self._step
        if self._on_progress is None or step.done is None or not step.of:
            return
        self._uncounted += number
        done = step.done + self._uncounted
        if done >= step.of or time.perf_counter() - self._looked >= _LOOK_S:
            self._uncounted = 0
            of = max(done, step.of)  # what was dropped and is read again is computed once more
            self._report(evolve(step, done=done, of=of, fraction=done / of))

    def _host(self, runs: bool) -> None:
        """Tell that a host program goes on, whatever it does now, or what it waits for."""
        if runs:
            self._report(RunStep("bench"))
        elif self._engine is not None:
            self._report(self._seen(self._engine, count=time.perf_counter() - self._counted >= _COUNT_S))

    def _simulated(self, tick: Progress) -> None:
        """Take note of where the simulation is; look at what it does, if that was long ago."""
        self._latest = tick
        now = time.perf_counter()
        if now - self._looked >= _LOOK_S and self._engine is not None:
            self._report(self._seen(self._engine))

    def _seen(self, engine: GraphEngine, count: bool = True) -> RunStep:
        """Return what the oldest open request of the phase is, and how much of it is over, where that is to `count`.

        The host program runs where there is none.
        """
        requests = engine.shared.requests
        while self._first_open < len(requests) and requests[self._first_open].response is not None:
            over = requests[self._first_open]
            if isinstance(over, KernelLaunchMsg) and over.launch.ended_ns:
                self._took[_alike(over.launch)] = max(over.launch.ended_ns.values()) - _start_ns(over.launch)
            self._first_open += 1
        waiting = [request for request in requests[self._first_open :] if request.response is None]
        for phase in ("kernel", "launch", "device_to_host", "host_to_device"):
            for request in waiting:
                if _phase(request) == phase:
                    if count:
                        self._counted = time.perf_counter()
                    step = _step(phase, request, engine, count)
                    return self._as_before(step, request) if step.of and step.fraction is None else step
        return RunStep("bench")

    def _as_before(self, step: RunStep, request: HostRequest) -> RunStep:
        """Return the step of a launch of which nothing is known with the part that the one before had behind it."""
        if not isinstance(request, KernelLaunchMsg) or step.phase != "kernel":
            return step
        took = self._took.get(_alike(request.launch))
        if not took:
            return step
        return evolve(step, fraction=min(0.99, (self._latest.sim_ns - _start_ns(request.launch)) / took))

    def _report(self, step: RunStep) -> None:
        """Report a step, whose fraction does not go back."""
        now = self._looked = time.perf_counter()
        if (step.phase, step.key) != (self._step.phase, self._step.key):
            self._step_began = now
        elif self._step.fraction is not None:
            step = evolve(step, fraction=max(self._step.fraction, step.fraction or 0.0))
        self._step = step
        if self._on_progress is not None:
            self._on_progress(
                Progress(
                    self._latest.sim_ns, self._latest.events, now - self._began, step.fraction, step.phase, step.what,
                    step.done, step.of, step.unit, now - self._step_began, self._latest.events_per_s,
                )
            )  # fmt: skip


def _alike(launch: Launch) -> tuple[str, int]:
    """Return what two launches have in common of which one is expected to take as long as the other."""
    return _name_of(launch), sum(map(len, launch.programs.values()))


def _start_ns(launch: Launch) -> float:
    return min(launch.started_ns.values())


def _name_of(launch: Launch) -> str:
    return str(getattr(launch.kernel, "__name__", launch.kernel))


def _phase(request: HostRequest) -> str:
    """Return the phase of an open request, as the result counts it."""
    if isinstance(request, KernelLaunchMsg):
        launch = request.launch
        return "kernel" if launch.started_ns and len(launch.ended_ns) < len(launch.programs) else "launch"
    return "device_to_host" if isinstance(request, MemoryReadMsg) else "host_to_device"


def _step(phase: str, request: HostRequest, engine: GraphEngine, count: bool) -> RunStep:
    if isinstance(request, KernelLaunchMsg):
        what = _name_of(request.launch)
        if not count:
            return RunStep(phase, what, key=request)
        done, of, fraction = programs_done(request.launch, engine)
        return RunStep(phase, what, done, of, "programs", fraction, request)
    if isinstance(request, MemoryMsg) and request.nbytes and request.copied:
        return RunStep(phase, "", request.copied, request.nbytes, "bytes", request.copied / request.nbytes, request)
    return RunStep(phase, key=request)


def programs_done(launch: Launch, engine: GraphEngine) -> tuple[int, int, float | None]:
    """Return how many programs of a launch are over, of how many, and which part of all of them; None for unknown.

    A program under way counts with the part of it that is known to be over. Nothing is known of a launch of which no
    program is over, and no part of one.
    """
    of = sum(map(len, launch.programs.values()))
    done, running = 0, []
    for pe, programs in launch.programs.items():
        state = engine.device.kernels.states.get(pe)
        if pe in launch.ended_ns:
            done += len(programs)
        elif pe in launch.started_ns and state is not None and state.launch is launch and state.runner is not None:
            running.append(state.runner)
    done += sum(runner.turn for runner in running)
    looked_at = running[:: max(1, -(-len(running) // _MOST_LOOKED_AT))]
    parts = [runner.part_done(part_of_loop) for runner in looked_at]
    known = [part for part in parts if part is not None]
    if not of or not (done or known):
        return done, of, None
    part = (done + sum(known) * len(running) / max(1, len(parts))) / of
    return done, of, part if done == of else min(0.99, part)


_BINARY: Final[Mapping[type, Callable[[Any, Any], Any]]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
}  # fmt: skip
_CALLS: Final[Mapping[str, Callable[..., int]]] = {"min": min, "max": max, "cdiv": lambda a, b: -(-a // b)}


class _Unknown(Exception):
    """An expression is none of those that are read."""


@frozen
class Loop:
    """One loop: its lines, the name that counts, its bounds, its loops.

    The bounds are the arguments of `range`, or start, end and present step of `while`; none of loops that do not count.
    """

    first: int
    last: int
    counter: str
    bounds: tuple[ast.expr, ...]
    inner: tuple[Loop, ...]
    is_while: bool


def part_of_loop(frame: FrameType | None, kernel: Callable[..., object], program: tuple[int, ...]) -> float | None:
    """Return which part of its outermost loop, from 0 to 1, a kernel has behind it; None where that cannot be known.

    `frame` is the innermost one of the suspended kernel, `program` its program id (x, y, z).
    """
    code = getattr(inspect.unwrap(kernel), "__code__", None)
    while frame is not None and frame.f_code is not code:
        frame = frame.f_back
    if frame is None or code is None:
        return None
    loops = loops_of(code)
    if len(loops) != 1:
        return None  # of several, one after the other, nobody knows which takes how long
    (loop,) = loops
    if frame.f_lineno < loop.first:
        return 0.0
    if frame.f_lineno > loop.last:
        return 1.0
    counts = _numbers(frame)
    try:
        return _behind(loop, frame.f_lineno, counts, program)
    except (_Unknown, ArithmeticError, TypeError, ValueError):
        return None


@lru_cache(maxsize=64)
def loops_of(code: CodeType) -> tuple[Loop, ...]:
    """Return the outermost loops of a function; none where its source is not to be had, or has another loop there."""
    try:
        lines, start = inspect.getsourcelines(code)
        (function,) = ast.parse(textwrap.dedent("".join(lines))).body
    except (OSError, SyntaxError, TypeError, ValueError):
        return ()
    ast.increment_lineno(function, start - 1)
    return tuple(_read(loop, function) for loop in _loops(function))


def _loops(node: ast.AST) -> Iterator[Any]:
    """Yield the loops below a node that are in no other loop, and in no function of their own."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.For | ast.While | ast.AsyncFor):
            yield child
        elif not isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | ast.ClassDef):
            yield from _loops(child)


def _read(loop: Any, function: ast.stmt) -> Loop:
    """Return what counts of a `for` or `while` loop of a function."""
    counter, bounds = _stepped(loop, function) if isinstance(loop, ast.While) else _ranged(loop)
    inner = tuple(_read(below, function) for part in loop.body for below in _below(part))
    return Loop(loop.lineno, loop.body[-1].end_lineno, counter, bounds, inner, isinstance(loop, ast.While))


def _ranged(loop: Any) -> tuple[str, tuple[ast.expr, ...]]:
    """Return the counter of a `for` loop and the arguments of its `range`; nothing where it is over something else."""
    over: Any = loop.iter
    name = getattr(over, "func", None)
    called = name.id if isinstance(name, ast.Name) else name.attr if isinstance(name, ast.Attribute) else ""
    counter: Any = loop.target
    plain = called in ("range", "static_range") and isinstance(counter, ast.Name) and not over.keywords
    return (counter.id, tuple(over.args)) if plain else ("", ())


def _stepped(loop: ast.While, function: ast.stmt) -> tuple[str, tuple[ast.expr, ...]]:
    """Return the counter of `while at < last`, what it was set to before, the end, and what is added to it."""
    match loop.test:
        case ast.Compare(ast.Name(name), [ast.Lt()], [end]):
            stores = [node for node in ast.walk(function) if _is(node, name) and isinstance(node.ctx, ast.Store)]
            sets = (node for node in ast.walk(function) if isinstance(node, ast.Assign) and _is(node.targets[0], name))
            adds = (node for node in ast.walk(loop) if isinstance(node, ast.AugAssign) and isinstance(node.op, ast.Add))
            starts = [node.value for node in sets if node.lineno < loop.lineno]
            steps = [node.value for node in adds if _is(node.target, name)]
            if len(stores) == 2:
                return name, (*starts, end, *steps)
    return "", ()


def _is(node: ast.AST, name: str) -> TypeGuard[ast.Name]:
    return isinstance(node, ast.Name) and node.id == name


def _below(node: ast.stmt) -> Iterator[Any]:
    if isinstance(node, ast.For | ast.While | ast.AsyncFor):
        yield node
    else:
        yield from _loops(node)


def _behind(loop: Loop, line: int, numbers: Mapping[str, int], program: tuple[int, ...]) -> float:
    """Return the part of a loop that is over, of the loop that is at `line` in it as well, as far as that is known."""
    if not 1 <= len(loop.bounds) <= 3 or loop.counter not in numbers:
        raise _Unknown
    at, bounds = numbers[loop.counter], [_value(bound, numbers, program) for bound in loop.bounds]
    if loop.is_while:
        start, end, step = bounds
        turn, turns = (at - start) / step, (end - start) / step
    else:
        turn, turns = range(*bounds).index(at), len(range(*bounds))
    within = [inner for inner in loop.inner if inner.first <= line <= inner.last]
    part = 0.0
    if within and len(loop.inner) == 1:
        try:
            part = _behind(within[0], line, numbers, program)
        except (_Unknown, ArithmeticError, TypeError, ValueError):
            part = 0.0
    elif len(loop.inner) == 1 and line > loop.inner[0].last:
        part = 1.0
    return min(1.0, (turn + part) / turns)


def _value(node: ast.expr, numbers: Mapping[str, int], program: tuple[int, ...]) -> int:
    """Return the integer that an expression is; raise _Unknown for one that is not read."""
    if isinstance(node, ast.Constant) and isinstance(node.value, int):
        return node.value
    if isinstance(node, ast.Name) and node.id in numbers:
        return numbers[node.id]
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return -_value(node.operand, numbers, program)
    if isinstance(node, ast.BinOp) and type(node.op) in _BINARY:
        found: int = _BINARY[type(node.op)](*(_value(side, numbers, program) for side in (node.left, node.right)))
        return found
    if isinstance(node, ast.Call) and not node.keywords:
        name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        given = [_value(each, numbers, program) for each in node.args]
        if name == "program_id" and len(given) == 1:
            return program[given[0]]
        if name in _CALLS:
            return _CALLS[name](*given)
    raise _Unknown


def _numbers(frame: FrameType) -> dict[str, int]:
    """Return the variables of a frame, and the constants of its module, that are integers."""
    found = {name: value for name, value in frame.f_globals.items() if type(value) is int}
    values = frame.f_locals
    for name, value in values.items():
        if isinstance(value, Integral):
            found[name] = int(value)
        else:
            found.pop(name, None)
    if type(values) is dict:
        values.clear()  # before Python 3.13 this copy outlives the look, and would keep what the kernel gives up
    return found
