"""Compile the modules of `COMPILED`, where there is a compiler; all else about the package stands in pyproject.toml.

Without a compiler, or with KERNBENCH_PURE=1, the package is pure Python: the same results, more slowly.
"""

import importlib.util
import multiprocessing
import os
import sys
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

ROOT = Path(__file__).resolve().parent
COMPILED = (
    "kernbench_core.units",
    "kernbench_core.callsite",
    "kernbench_core.peers",
    "kernbench_core.topology.paths.mesh_order",
    "kernbench_core.topology.paths.search",
    "kernbench_core.topology.resolver",
    "kernbench_core.topology.routing",
    "kernbench_core.events.queue",
    "kernbench_core.environment",
    "kernbench_core.messages",
    "kernbench_core.wire",
    "kernbench_core.reporting",
    "kernbench_core.workers.worker",
    "kernbench_core.component",
    "kernbench_core.values.region",
    "kernbench_core.values.region_pages",
    "kernbench_core.values.halves",
    "kernbench_core.values.dtypes",
    "kernbench_core.values.loads_in_flight",
    "kernbench_core.values.value",
    "kernbench_core.values.store_index",
    "kernbench_core.values.memory_store",
    "kernbench_core.memory.allocator",
    "kernbench_core.memory.scratchpad",
    "kernbench_core.memory.memory_uses",
    "kernbench_core.memory.clocks",
    "kernbench_core.memory.hazards",
    "kernbench_core.compute.planned_op",
    "kernbench_core.compute.kinds",
    "kernbench_core.compute.lifetimes",
    "kernbench_core.compute.prepared",
    "kernbench_core.compute.batches",
    "kernbench_core.compute.calculation",
    "kernbench_core.compute.op_graph",
    "kernbench_core.values.chunking",
    "kernbench_core.memory.page_table",
    "kernbench_core.memory.device_memory",
    "kernbench_core.oplog.description",
    "kernbench_core.oplog.parameters",
    "kernbench_core.oplog.writing",
    "kernbench_core.oplog.logger",
    "kernbench_builtin.components.forwarding",
    "kernbench_builtin.components.channelled_memory",
    "kernbench_builtin.components.hbm_ctrl",
    "kernbench_builtin.components.dma_jobs",
    "kernbench_builtin.components.pe_dma",
    "kernbench_builtin.components.pe_mmu",
    "kernbench_builtin.components.pe_tcm",
    "kernbench_builtin.components.queues.messages",
    "kernbench_builtin.components.queues.ends",
    "kernbench_builtin.components.pe_ipcq",
    "kernbench_core.fabric",
    "kernbench_core.kernel.bridge",
    "kernbench_core.kernel.pe_state",
    "kernbench_core.kernel.commands",
    "kernbench_core.kernel.descriptors",
    "kernbench_core.kernel.pointers",
    "kernbench_core.kernel.compute_commands",
    "kernbench_core.kernel.dma_commands",
    "kernbench_core.kernel.queues",
    "kernbench_core.kernel.queue_commands",
    "kernbench_core.kernel.serving",
    "kernbench_core.kernel.tl.tensor",
    "kernbench_core.kernel.tl.flags",
    "kernbench_core.kernel.tl.memory_calls",
    "kernbench_core.kernel.tl.math",
    "kernbench_core.kernel.tl.dispatch",
    "kernbench_core.kernel.tl.queue_calls",
    "kernbench_core.kernel.tl.shapes",
    "kernbench_builtin.components.compute_unit",
    "kernbench_builtin.components.matrix_unit",
    "kernbench_builtin.components.pe_math",
    "kernbench_builtin.components.pe_gemm",
    "kernbench_builtin.components.tiles.plan",
    "kernbench_builtin.components.tiles.token",
    "kernbench_builtin.components.tiles.register_file",
    "kernbench_builtin.components.pe_fetch_store",
    "kernbench_builtin.components.pe_scheduler",
    "kernbench_builtin.components.pe_cpu",
    "kernbench_builtin.components.banks.mapping",
    "kernbench_builtin.components.banks.queues",
    "kernbench_builtin.components.banks.waiting",
    "kernbench_builtin.components.banks.pseudo_channel",
    "kernbench_builtin.components.banks.channel",
    "kernbench_builtin.components.banks.front_end",
    "kernbench_builtin.probe.driven.asker",
    "kernbench_builtin.probe.driven.packets",
)
#: What the C files of a source distribution were made from.
TRANSLATED = ROOT / "kernbench_core" / "compiled" / "translated.txt"
PLACES = {name: name.replace(".", "/") for name in COMPILED}
#: Multiplications are not to be fused with additions: that would round in another way than Python does.
FLAGS = ["-O2", "-g0", "-fno-strict-aliasing", "-ffp-contract=off", "-w"]


def form():
    """Return the module that says what is compiled, without the package around it."""
    spec = importlib.util.spec_from_file_location("form", ROOT / "kernbench_core" / "compiled" / "form.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def extensions():
    """Return what is to be compiled: from Python where Cython is, or from the C that came with the sources."""
    if os.environ.get("KERNBENCH_PURE", "0") not in ("", "0"):
        if "editable_wheel" in sys.argv:  # what lies in this folder is what will run
            remove_compiled(ROOT)
        return []
    try:
        from Cython.Build import cythonize
    except ImportError as error:
        if translated() != FOUND:
            tell_of_python(error, "install Cython")
            return []
        return [Extension(name, [f"{place}.c"], extra_compile_args=FLAGS) for name, place in PLACES.items()]
    sources = {name: place + (".pyx" if (ROOT / f"{place}.pyx").is_file() else ".py") for name, place in PLACES.items()}
    try:
        found = cythonize(
            [Extension(name, [source], extra_compile_args=FLAGS) for name, source in sources.items()],
            # as many at once as there are processors, where that does not run this file again
            nthreads=(os.cpu_count() or 1) if multiprocessing.get_start_method() == "fork" else 0,
            build_dir=None if "sdist" in sys.argv else "build/cython",
            compiler_directives={"language_level": 3, "nonecheck": True, "annotation_typing": False},
            quiet=True,
        )
    except Exception as error:
        tell_of_python(error, "tell its authors of what stands above")
        return []
    if "sdist" in sys.argv:
        TRANSLATED.write_text("".join(f"{name} {found}\n" for name, found in FOUND.items()), encoding="utf-8")
    return found


def translated():
    """Return the same of the sources that the C files of a source distribution were made from; nothing without them."""
    if not TRANSLATED.is_file() or not all((ROOT / f"{place}.c").is_file() for place in PLACES.values()):
        return {}
    return dict(line.split() for line in TRANSLATED.read_text(encoding="utf-8").splitlines())


def remove_compiled(folder):
    """Remove all that is compiled for this Python below a folder, and first the list of it."""
    Path(form().list_file(str(folder))).unlink(missing_ok=True)
    for package in ("kernbench_core", "kernbench_builtin", "kernbench_ccl"):
        for file in (folder / package).rglob(f"*{form().suffix_here()}"):
            file.unlink()


def tell_of_python(error, what_to_do):
    """Say in a line that nothing is compiled, and why."""
    why = (str(error).strip() or type(error).__name__).splitlines()[-1]
    sys.stderr.write(
        f"kernbench: its core could not be compiled ({why}), so it is installed as pure Python, which gives the "
        f"same results more slowly; {what_to_do}, and install again.\n"
    )


class AllOrNothing(build_ext):
    """Compile all modules, or leave none: each that is compiled knows the layout of the others."""

    def finalize_options(self):
        """Compile as many at once as there are processors."""
        super().finalize_options()
        self.parallel = self.parallel or os.cpu_count()

    def run(self):
        """Compile; where that fails, say so in a line and leave pure Python."""
        folder = ROOT if self.inplace else Path(self.build_lib)
        remove_compiled(folder)
        try:
            super().run()
        except Exception as error:
            remove_compiled(folder)
            self.extensions = []
            tell_of_python(error, "install a C compiler")
            return
        if self.extensions:
            form().write_list(str(folder), FOUND)

    def get_outputs(self):
        """Return what was built, and the list of what from."""
        if not self.extensions:
            return []
        return [*super().get_outputs(), form().list_file(self.build_lib)]


#: The modules that are to be compiled, each with the checksum of its sources, before these are read to be compiled.
FOUND = {name: form().checksum(str(ROOT), name) for name in COMPILED}
setup(ext_modules=extensions(), cmdclass={"build_ext": AllOrNothing})
