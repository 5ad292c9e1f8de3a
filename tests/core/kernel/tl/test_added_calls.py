"""What plug-ins add to the language: a call of kernels by its name, which makes commands as the language's own do."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import kernbench_core as kb
from kernbench_core.plugins import load_plugins
from tests.core.offered import MACHINES
from tests.core.plugin_site import Site
from tests.core.working_machine import MACHINE

PLUGIN = """
from kernbench_core import LanguageEntry
def kernbench_language():
    return [LanguageEntry({name!r}, "acme:twice", "Add a tile to itself.")]
def twice(tl, tile, *, times: int = 1):
    for _ in range(times):
        tile = tile + tile
    return tile
"""


def run(kernel: Any, *entries: str) -> Any:
    """Run a kernel on four numbers, with the machine's models and more plug-ins; return what it left."""
    plugins = load_plugins(["test = tests.core.working_machine", MACHINES, *entries], installed=False)

    def bench(rt: Any) -> None:
        rt.launch(kernel, rt.tensor(np.arange(4, dtype=np.float32), name="x"), grid=(1,))

    return kb.run(bench, MACHINE, outputs=True, plugins=plugins).outputs["x"].tolist()


def twice(x: Any, tl: Any) -> None:
    """Make each number eight times as much."""
    tl.store(x, tl.twice(tl.load(x, shape=(4,)), times=3))


def test_a_kernel_calls_what_a_plugin_adds(site: Site) -> None:
    """The function is given the program's `tl` first."""
    site.module("acme", PLUGIN.format(name="twice"))
    assert run(twice, "acme = acme") == [0, 8, 16, 24]


def test_what_nobody_adds_is_no_name(site: Site) -> None:
    """A name that is nearly one of an added call is told."""
    site.module("acme", PLUGIN.format(name="twices"))
    with pytest.raises(kb.KernelError, match=r"AttributeError: tl has no name 'twice'\. Did you mean tl\.twices\?"):
        run(twice, "acme = acme")
