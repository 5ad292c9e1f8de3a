"""A machine of toys that runs kernels through every door: plug-in, preset, compiler, session, phase 2, result.

The layout is that of `small_machine`, with one cube. Each unit of a PE takes `UNIT_NS` for whatever it is
asked to do, but for queues, which nothing ever leaves; only the host's own copies are traffic.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from itertools import pairwise
from typing import Any, BinaryIO

from kernbench_core.component import ComponentBase
from kernbench_core.environment import Environment, ProcessGenerator
from kernbench_core.fabric import Fabric
from kernbench_core.graph import Node
from kernbench_core.kernel import KernelRunner, Kernels
from kernbench_core.messages import Command, KernelLaunchMsg, LaunchMsg, MsgBase
from kernbench_core.plugins import ComponentEntry, ExporterEntry, Plugins, load_plugins
from kernbench_core.reporting import Waiting
from tests.core.offered import MACHINES, SAVED
from tests.core.small_machine import KINDS, TEXT
from tests.core.topology.text_config import parse_config
from tests.core.toy_machine import ToyHost

#: What a file of the machine holds.
YAML = TEXT.replace("width: 2, height: 2", "width: 1, height: 1")
MACHINE = parse_config(YAML, "machine.yaml").data
UNIT_NS = 100.0
_MEMORY, _FORWARD, _UNIT = "toy_machine:ToyMemory", "toy_machine:ToyForward", "working_machine:Unit"
_CLASSES = {
    "host": "working_machine:Host", "pe_cpu": "working_machine:Cpu", "pe_ipcq": "working_machine:Silent",
    "hbm_ctrl": _MEMORY, "sram": _MEMORY,
}  # fmt: skip


class Host(ToyHost):
    """Send launches by way of the control processors, which pass them on.

    Ignores: Everything else.
    """

    def _launch(self, msg: KernelLaunchMsg, pe: int) -> LaunchMsg:
        site = self.fabric.layout.pes[pe]
        stops = (self.id, site.io_cpu, site.m_cpu, site.pe_cpu)
        path = tuple(node for pair in pairwise(stops) for node in self.fabric.command_path(*pair)[1:])
        return LaunchMsg(msg.launch, (pe,), (self.id, *path), lambda answer: None)


class Cpu(ComponentBase):
    """Run kernels; their commands leave in no time.

    Ignores: Commands take no time to issue.
    """

    needs = (Kernels,)
    dispatch_overhead_ns = 0.0

    def __init__(self, node: Node, fabric: Fabric) -> None:
        super().__init__(node, fabric)
        self.kernels = self.part(Kernels)
        self.runner = KernelRunner(self)

    def run(self, env: Environment, msg: Any) -> ProcessGenerator:
        """Run the programs of a launch."""
        yield from self.runner.run(env, msg.launch)

    def waits_in_words(self) -> Waiting | None:
        """Say which line of the kernel waits for what."""
        return self.runner.waits_in_words()

    def send_command(self, cmd: Command) -> None:
        """Put a command on its way to the unit that serves it."""
        cmd.path = (self.id, f"{self.id.rpartition('.')[0]}.{cmd.serves}")
        cmd.born = cmd.head = cmd.tail = self.env.now
        self.emit(cmd, self.env.now, self.env.now)


class Unit(ComponentBase):
    """Do anything, one thing after another.

    Ignores: What it is that is done.
    """

    def run(self, env: Environment, msg: MsgBase) -> ProcessGenerator:
        """Take a while."""
        yield env.timeout(UNIT_NS)


class Silent(ComponentBase):
    """Never answer: nothing comes from another PE.

    Ignores: Messages.
    """

    def run(self, env: Environment, msg: MsgBase) -> ProcessGenerator:
        """Wait for ever."""
        yield env.event()


#: The version of the hooks that this module is written for.
kernbench_api = 1


def kernbench_components() -> Iterable[ComponentEntry]:
    """Register a model for each kind of node of the machine; of a PE, all but its processor are alike."""
    for kind in KINDS:
        target = _CLASSES.get(kind, _UNIT if kind.startswith("pe_") else _FORWARD)
        yield ComponentEntry(f"test.{kind}", f"tests.core.{target}", kind, "A toy.")


def kernbench_exporters() -> Iterable[ExporterEntry]:
    """Register traces in words."""
    yield ExporterEntry("words", f"{__name__}:write_words", (".txt",), "A line for each op.")
    yield ExporterEntry("spans", f"{__name__}:write_spans", (".tsv",), "A line for each span.", takes="timeline")


def write_words(op_log: Iterable[object], out: BinaryIO) -> None:
    """Write a line for each op."""
    out.writelines(f"{record}\n".encode() for record in op_log)


def write_spans(timeline: Any, out: BinaryIO) -> None:
    """Write the track, the name and the times of each span."""
    spans = timeline.spans
    for row in zip(spans.track.tolist(), spans.name.tolist(), spans.start_ns, spans.end_ns, strict=True):
        track, name, *times = row
        out.write("\t".join([timeline.tracks[track].node, timeline.names[name], *map(str, times)]).encode() + b"\n")


@cache
def plugins() -> Plugins:
    """Load the machine's models, and what writes runs."""
    return load_plugins(["test = tests.core.working_machine", MACHINES, SAVED], installed=False)


def on_machine(**options: Any) -> dict[str, Any]:
    """Return the options of a run on the machine, with more."""
    return {"topology": MACHINE, "plugins": plugins(), **options}
