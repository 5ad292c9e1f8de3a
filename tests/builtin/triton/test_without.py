"""What kernels written in Triton say where this plug-in is left out."""

from __future__ import annotations

import sys
from pathlib import Path

import attrs
import pytest

import kernbench as kb
from kernbench_core import ProgramEntry
from kernbench_core.errors import KernelError, UsageError
from kernbench_core.plugins import CORE, PluginFailure, Plugins, Provider, Registry
from kernbench_core.plugins.points import PROGRAMS

LEFT_OUT = PluginFailure(Provider("builtin.triton", "kernbench", "0.1.0"), "--no-plugin names it")


def without(plugins: Plugins, *blocked: PluginFailure) -> Plugins:
    """Return the plug-ins without this one."""
    own = [(plugins.programs[name], CORE) for name in plugins.programs if plugins.programs.provider(name) == CORE]
    left: Registry[ProgramEntry] = Registry("kind of program", own, blocked)
    return attrs.evolve(plugins.having(PROGRAMS, left), blocked=blocked)


@pytest.fixture(autouse=True)
def nobody_has_triton(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "triton", None)


def test_a_jit_function_says_which_plugin_it_needs(plugins: Plugins, tmp_path: Path) -> None:
    """In a sentence, with what to do; where nothing is left out, what Python says of the import."""
    file = tmp_path / "k.py"
    file.write_text("import triton\n@triton.jit\ndef k(x): ...\n")
    with pytest.raises(UsageError) as caught:
        kb.run(f"{file}:k", "tiny", grid="1", plugins=without(plugins, LEFT_OUT))
    assert str(caught.value) == (
        f"bench file '{file}' imports 'triton', which is missing or comes from a plug-in that was left out, "
        "'builtin.triton' (kernbench 0.1.0: --no-plugin names it); load that plug-in, or install 'triton'."
    )
    with pytest.raises(KernelError, match="must run to its end, but it raised ModuleNotFoundError"):
        kb.run(f"{file}:k", "tiny", grid="1", plugins=without(plugins))


def test_a_sweep_of_a_script_says_so_too(plugins: Plugins) -> None:
    """Before anything runs."""
    with pytest.raises(UsageError) as caught:
        kb.sweep("triton:s.py", arguments=["{n}"], params={"n": [1, 2]}, plugins=without(plugins, LEFT_OUT))
    assert str(caught.value) == (
        "kind of program must be a registered name, not 'triton'. Known: kernel. It may belong to a plug-in that was "
        "left out: 'builtin.triton' (kernbench 0.1.0)."
    )


def test_a_bench_that_imports_triton_says_that_it_is_not_there(plugins: Plugins) -> None:
    """Inside, where kernbench's own is not in the way."""

    def bench(rt: object) -> None:
        import triton  # noqa: F401

    with pytest.raises(KernelError, match="ModuleNotFoundError: import of triton halted"):
        kb.run(bench, "tiny", plugins=plugins)
