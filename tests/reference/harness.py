"""Run a made-up program on kernbench and on the reference interpreter, and say where they differ."""

from __future__ import annotations

import functools
import linecache
import re
from dataclasses import dataclass
from typing import Any

import numpy as np

from kernbench_core.plugins import own_plugins
from tests.reference import numerics as num
from tests.reference.posts import Runtime
from tests.reference.programs import Program
from tests.reference.tiles import UndeterminedError, WrongProgramError
from tests.reference.triton_tl import TritonRuntime

MESHES = {"tiny": 4, "default": 64}


@dataclass(frozen=True)
class Mismatch:
    """What differs: its class, by which a smaller program is recognised as the same, and a sentence."""

    kind: str
    sentence: str


def namespace(program: Program) -> dict[str, Any]:
    """Run the source of a program as a module, whose lines errors can name; give its names."""
    source, file = _shown(program)
    names: dict[str, Any] = {"__name__": f"seed{program.seed}", "__file__": file}
    exec(compile(source, file, "exec"), names)
    return names


def _shown(program: Program) -> tuple[str, str]:
    """Give the source of a program, and the name of a file of which errors can show lines."""
    source, file = program.source(), f"/tmp/seed{program.seed}.py"
    linecache.cache[file] = (len(source), None, source.splitlines(True), file)
    return source, file


def _of_script(program: Program, names: dict[str, Any]) -> dict[str, Any]:
    """Give the arrays of a script by their names."""
    return {tensor.name: names[tensor.name] for tensor in program.tensors if tensor.name in names}


def run_reference(program: Program) -> Runtime:
    """Run a program on the interpreter; give its runtime, with the tensors."""
    if program.triton:
        script = TritonRuntime(MESHES[program.topology])
        for name, array in _of_script(program, script.run_file(*_shown(program))).items():
            script.tensors[name] = script.buffer(array)
        return script
    runtime = Runtime(MESHES[program.topology])
    namespace(program)["bench"](runtime)
    return runtime


@functools.cache
def _machine(topology: str) -> tuple[Any, Any]:
    from kernbench_core.plugins import load_plugins
    from kernbench_core.runs.bench_run import configure
    from kernbench_core.topology.compilation import compile_topology

    tree = own_plugins()
    plugins = load_plugins(tree, installed=False)
    return plugins, compile_topology(configure(plugins, topology), plugins)


def run_kernbench(program: Program) -> tuple[dict[str, Any], list[str]]:
    """Run a program with data, all of phase 2 at once; give its outputs and its hazards."""
    if program.triton:
        return _run_triton(program)
    from kernbench_core.compute.executor import DataExecutor
    from kernbench_core.host.session import GraphEngine

    plugins, graph = _machine(program.topology)
    functions = {name: entry.target for name, entry in plugins.ops.items()}
    engine = GraphEngine(graph, plugins.components, functions=functions, plugins=plugins)
    engine.run(namespace(program)["bench"], {}, name="bench")
    executor = DataExecutor(engine.op_log, engine.store, engine.functions)
    executor.run()
    outputs = {each.name.split(",")[0]: executor.materialize(each.value) for each in engine.expectations}
    return outputs, [str(hazard) for hazard in engine.device.hazards.found()]


def _run_triton(program: Program) -> tuple[dict[str, Any], list[str]]:
    import kernbench as kb

    source, file = _shown(program)
    names: dict[str, Any] = {"__name__": "made_up", "__file__": file}
    with kb.triton(program.topology) as sim:
        exec(compile(source, file, "exec", dont_inherit=True), names)
    assert sim.result is not None
    assert sim.verified
    outputs = {tensor.name for tensor in program.tensors if tensor.output}
    arrays = {name: array for name, array in _of_script(program, names).items() if name in outputs}
    return arrays, [str(hazard) for hazard in sim.result.hazards]


def compare(program: Program) -> Mismatch | None:
    """Run both and give the first difference, or None; raise UndeterminedError where nothing can be said."""
    wanted, wrong = _tried(lambda: run_reference(program))
    if isinstance(wrong, UndeterminedError):
        raise wrong
    found, raised = _tried(lambda: run_kernbench(program))
    if wrong is not None or raised is not None:
        if wrong is not None and raised is not None:
            return _other_class(wrong, raised)
        side, error = ("kernbench", raised) if wrong is None else ("the interpreter", wrong)
        told = f"{type(error).__name__}: {error}"
        kind = re.sub(r"\d+|\(.*?\)|'.*?'", "", told.split("\n")[0])[:60]
        return Mismatch(f"{side} raises {kind}", f"only {side} raises {told}")
    outputs, hazards = found
    if hazards:
        return Mismatch("hazard", f"kernbench lists a hazard of a program without one: {hazards[0]}")
    for name, array in outputs.items():
        mismatch = _difference(name, array, wanted)
        if mismatch is not None:
            return mismatch
    return None


def _other_class(wrong: Exception, raised: Exception) -> Mismatch | None:
    """Give what differs where both sides raise: what the language forbids has a class of its own, by name."""
    one, other = type(wrong).__name__, type(raised).__name__
    if one == other or not isinstance(wrong, WrongProgramError):
        return None
    return Mismatch(f"{other} for {one}", f"the interpreter raises {one}, and kernbench {other}: {raised}")


def _tried(run: Any) -> tuple[Any, Exception | None]:
    try:
        return run(), None
    except Exception as error:
        return None, error


def _difference(name: str, array: Any, reference: Runtime) -> Mismatch | None:
    buffer = reference.tensors[name]
    if array.shape != buffer.shape or array.dtype != buffer.dtype:
        words = f"{array.dtype}{list(array.shape)}, and must be {buffer.dtype}{list(buffer.shape)}"
        return Mismatch("shape", f"{name} is {words}")
    got = array.reshape(-1)
    far = num.distance(got, buffer.data) > buffer.slack
    if not far.any():
        return None
    at = int(np.argmax(far))
    where = [int(i) for i in np.unravel_index(at, buffer.shape)]
    return Mismatch(
        "value",
        f"{name}{where} ({buffer.dtype}) is {got[at]} on kernbench and {buffer.data[at]} on the interpreter, "
        f"± {buffer.slack[at]:.3g}; {int(far.sum())} of {far.size} elements differ",
    )
