"""Measure what it costs that requests wait behind payload: kernels where they do, and where they have a channel.

    python tools/request_error.py [--runs 8] [BENCH ...]

Wires carry whole messages, first come first served; hardware carries requests and acknowledgements on channels of their
own, or in between flits. Here they wait for each other alone, and payload waits as long as they take. Times are
medians of runs on machines that are the same within 0.1 %, as of `--shake`.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from typing import Any

from kernbench_builtin.machines.perturbation import WITHIN, perturbed
from kernbench_core.environment import Environment
from kernbench_core.host.session import GraphEngine
from kernbench_core.messages import MsgBase
from kernbench_core.plugins import Plugins, load_plugins
from kernbench_core.runs.bench_run import configure
from kernbench_core.spread import TimeSpread
from kernbench_core.topology.compilation import compile_topology
from kernbench_core.wire import Wire


class TwoChannelWire(Wire):
    """A wire on which messages without payload wait for each other alone."""

    __slots__ = ("_requests_at",)

    def __init__(self, *args: Any, **given: Any) -> None:
        super().__init__(*args, **given)
        self._requests_at = 0.0

    def send(self, msg: MsgBase, head: float, tail: float) -> None:
        """Carry a message; payload behind a request is as much later as that takes."""
        if msg.nbytes:
            super().send(msg, head, tail)
            return
        payload_at, self.available_at = self.available_at, self._requests_at
        super().send(msg, head, tail)
        self._requests_at = self.available_at
        if payload_at > head:  # in between what is on its way
            self.available_at = max(payload_at + self.duration(0), self.available_at)


class TwoChannels:
    """Have every wire of a machine built so; it looks at nothing."""

    env: Environment | None = None

    def begin(self, hardware: Any) -> None:
        """Put the class of wires in."""
        hardware.wire_type = TwoChannelWire

    def attach(self, hardware: Any) -> None:
        """Look at nothing."""

    def submitted(self, request: Any) -> None:
        """Let requests of the host be."""


def kernel_ns(bench: str, runs: int, observers: tuple[TwoChannels, ...], plugins: Plugins) -> TimeSpread:
    """Return what the kernels of a bench take on `default`."""
    graph, found = compile_topology(configure(plugins, "default"), plugins), []
    for at in range(runs):
        machine = perturbed(graph, plugins.components, f"0.{at}", WITHIN)
        engine = GraphEngine(machine, plugins.components, data=False, plugins=plugins, observers=observers)
        engine.run(plugins.benches.load(bench))
        found.append(engine.get_timing_result().phases["kernel"])
    return TimeSpread.of(found)


def main(arguments: list[str] | None = None) -> int:
    """Print a line for each bench."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("benches", nargs="*", default=["gemm", "gemm-composite", "softmax", "vector-add"])
    parser.add_argument("--runs", type=int, default=8)
    options = parser.parse_args(arguments)
    plugins = load_plugins()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for bench in options.benches:
            behind, beside = (kernel_ns(bench, options.runs, each, plugins) for each in ((), (TwoChannels(),)))
            ratio = behind.median_ns / beside.median_ns
            print(f"{bench}: {behind} behind payload; {beside} beside it: {ratio - 1:+.2%}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
