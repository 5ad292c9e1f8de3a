"""The command line as core's tests call it, and what a light command must not import."""

from __future__ import annotations

from types import ModuleType

from kernbench_core.cli import main

HEAVY = ("numpy", "simpy", "greenlet", "yaml", "ml_dtypes", "kernbench_core.host.session")


def call(toy: ModuleType, *args: str) -> int:
    return main(args, toy.plugins)
