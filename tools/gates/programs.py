"""The programs of the measurements: each runs in a process of its own, in whichever tree it is told to.

They use nothing that the older tree lacks. What is imported, and what a first small run loads, does not count.
"""

from __future__ import annotations

_TOLD = """
def told(s, **more):
    import json, resource
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps({"s": s, "peak_mib": peak, **more}))
"""

COMMAND = """
import json, sys, time
from contextlib import redirect_stdout
from io import StringIO
from kernbench_core.cli import main
order = json.loads(sys.argv[1])
def said(words):
    with redirect_stdout(StringIO()) as printed:
        code = main([*words, "--json"])
    assert code == 0, (words, code)
    return json.loads(printed.getvalue())
said(order["warm"])
began = time.process_time()
found = said(order["words"])
s = time.process_time() - began
events = found["events"] if "events" in found else sum(load["events"] for load in found["loads"])
told(s, events=events)
"""
"""One command after another, smaller one, in a process: the processor time of the command."""

WHOLE = """
import json, os, subprocess, sys
order = json.loads(sys.argv[1])
program = "import sys; from kernbench_core.cli import main; sys.argv[0] = 'kernbench'; sys.exit(main())"
process = subprocess.Popen([sys.executable, "-c", program, *order["words"]], stdout=subprocess.DEVNULL)
_, status, used = os.wait4(process.pid, 0)
assert status == 0, status
told(used.ru_utime + used.ru_stime)
"""
"""A whole command: the processor time of its process."""

FIRST_EVENT = """
import json, os, sys, time
began = time.perf_counter()
from kernbench_core.cli import main
from kernbench_core.engine.watchdog import Watchdog
def run(self, *rest):
    told(time.perf_counter() - began)
    sys.stdout.flush()
    os._exit(0)
Watchdog.run = run
main(json.loads(sys.argv[1])["words"])
"""
"""How long a command takes until it is about to simulate its first event: wall time, imports included."""

PHASE_2 = """
import json, sys, time
from kernbench_core.compute.executor import DataExecutor
from kernbench_core import package
from kernbench_core.plugins import load_plugins
from kernbench_core.runs.bench_run import run
order = json.loads(sys.argv[1])
own = getattr(package, "OWN_PLUGINS", ["builtin = kernbench_builtin.plugin", "ccl = kernbench_ccl.plugin"])
plugins = load_plugins(own, installed=False)
def computed(params):
    simulated = run(order["bench"], order["topology"], params, plugins=plugins)
    executor = DataExecutor(simulated.op_log, simulated.store)
    began = time.perf_counter(), time.process_time()
    executor.run()
    return time.perf_counter() - began[0], time.process_time() - began[1], simulated.timing.ops
computed(order["warm"])
wall, cpu, ops = computed(order["params"])
told(wall, cpu_s=cpu, ops=ops)
"""
"""Data of a bench's op log: wall time, as threads may share the work."""

HBM = """
import gc, json, sys, time
from kernbench_builtin.probe.dram_driver import DramCase, DramProbe
from kernbench_core.graph import Node
from kernbench_core.params import resolve_params
from kernbench_core import package
from kernbench_core.plugins import load_plugins
order = json.loads(sys.argv[1])
own = getattr(package, "OWN_PLUGINS", ["builtin = kernbench_builtin.plugin", "ccl = kernbench_ccl.plugin"])
plugins = load_plugins(own, installed=False)
model = "builtin.hbm_ctrl_bank"
values, _ = resolve_params(plugins.components.declared(model), {}, str)
probe = DramProbe(Node("hbm_ctrl0", "hbm_ctrl", model, values), plugins.components)
def driven(requests):
    began = time.process_time()
    probe.closed_loop(DramCase(order["pattern"], order["chunk"], requests, order["reads"]), order["outstanding"])
    return time.process_time() - began
driven(200)
gc.collect()
told(driven(order["requests"]), requests=order["requests"])
"""
"""Requests to the bank-level HBM model in a closed loop."""

COLLECTIVE = """
import json, sys, time
from kernbench_ccl.catalogue import Catalogue
from kernbench_ccl.collectives import COLLECTIVES
from kernbench_ccl.measure import Chooser, Question, Setup, Sweep, machine_of
from kernbench_ccl.measure.measurement import measure
from kernbench_ccl.plan import load_ccl
from kernbench_core import package
from kernbench_core.plugins import load_plugins
from kernbench_core.values.dtypes import itemsize
order = json.loads(sys.argv[1])
own = getattr(package, "OWN_PLUGINS", ["builtin = kernbench_builtin.plugin", "ccl = kernbench_ccl.plugin"])
plugins = load_plugins(own, installed=False)
setup = Setup(order["topology"], None, tuple(order["sets"]), False, True)
machine = machine_of(setup, plugins)
question = Question(COLLECTIVES["all_reduce"], "f16", "sum", 0, contributors="sip")
def measured(size):
    choice = Chooser(question, machine, load_ccl(catalogue=Catalogue.of(plugins)), plugins).best(size)
    case = Sweep(question, setup, machine, plugins).case(size // itemsize("f16"), choice, False)
    began = time.process_time()
    found = measure(case, machine, plugins, checked=True)
    assert not (found.wrong or found.failures or found.hazards), found
    return time.process_time() - began, found.events
measured(order["warm"])
s, events = measured(order["size"])
told(s, events=events)
"""
"""One all-reduce, out of place, its data checked."""


def program(text: str) -> str:
    """Return a program whole, with what prints its object."""
    return _TOLD + text
