"""Compile the modules of `COMPILED`, where there is a compiler; all else about the package stands in pyproject.toml.

Without a compiler, or with KERNBENCH_PURE=1, the package is pure Python: the same results, more slowly. Where
KERNBENCH_BUILD_CACHE names a folder, what is compiled is kept there, and taken from there.
"""

import importlib.util
import multiprocessing
import os
import sys
from pathlib import Path

from setuptools import Extension, find_namespace_packages, setup
from setuptools.command.build_ext import build_ext

ROOT = Path(__file__).resolve().parent
COMPILED = (
    "kernbench_core.units",
    "kernbench_core.callsite",
    "kernbench_core.topology.paths.mesh_order",
    "kernbench_core.topology.paths.search",
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
    "kernbench_builtin.components.dma_jobs",
    "kernbench_builtin.components.pe_dma",
    "kernbench_builtin.components.pe_mmu",
    "kernbench_builtin.components.pe_tcm",
    "kernbench_builtin.components.queues.rings",
    "kernbench_builtin.components.queues.messages",
    "kernbench_builtin.components.queues.ends",
    "kernbench_builtin.components.pe_ipcq",
    "kernbench_core.fabric",
    "kernbench_core.kernel.bridge",
    "kernbench_core.kernel.pe_state",
    "kernbench_core.kernel.commands",
    "kernbench_core.kernel.steps",
    "kernbench_core.kernel.pointers",
    "kernbench_core.kernel.compute_commands",
    "kernbench_core.kernel.dma_commands",
    "kernbench_core.kernel.queue_commands",
    "kernbench_core.kernel.serving",
    "kernbench_core.kernel.tl.tensor",
    "kernbench_core.kernel.tl.memory_calls",
    "kernbench_core.kernel.tl.math",
    "kernbench_core.kernel.tl.issuer",
    "kernbench_core.kernel.tl.dispatch",
    "kernbench_core.kernel.tl.queue_calls",
    "kernbench_core.kernel.tl.shapes",
    "kernbench_builtin.components.compute_unit",
    "kernbench_builtin.components.matrix_unit",
    "kernbench_builtin.components.pe_math",
    "kernbench_builtin.components.tiles.plan",
    "kernbench_builtin.components.tiles.token",
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
#: With the folders of their data, which are no packages.
PACKAGES = ["kernbench_core*", "kernbench_builtin*", "kernbench_ccl*"]
PLACES = {name: name.replace(".", "/") for name in COMPILED}
#: Multiplications are not to be fused with additions: that would round in another way than Python does. `-O2` compiles
#: half as long again, and runs as fast as `-O1` with what it does to small functions, branches and tail calls.
FLAGS = [
    "-O1", "-finline-small-functions", "-freorder-blocks-and-partition", "-foptimize-sibling-calls",
    "-g0", "-fno-strict-aliasing", "-ffp-contract=off", "-w",
]  # fmt: skip
#: The same of the engine in C++.
ENGINE_FLAGS = ["-O2", "-g0", "-std=c++17", "-fno-strict-aliasing", "-ffp-contract=off", "-w"]
#: What to do where C is not compiled, and where no C is made.
INSTALL_COMPILER, TELL_US = "install a C compiler", "tell its authors of what stands above"
#: What the sources mean to Cython.
DIRECTIVES = {"language_level": 3, "nonecheck": True, "annotation_typing": False}


def module_of(file):
    """Return the module of a file of this checkout, without the package around it."""
    spec = importlib.util.spec_from_file_location(file.stem, file)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def form():
    """Return the module that says what is compiled."""
    return module_of(ROOT / "kernbench_core" / "compiled" / "form.py")


def engine():
    """Return the native engine, as it is to be compiled: it is no module of Python's, and loaded by its path."""
    own = module_of(ROOT / "kernbench_builtin" / "native" / "sources.py")
    known = [("KERNBENCH_SOURCES", str(own.engine_checksum()))]
    sources = [str(file.relative_to(ROOT)) for file in own.engine_sources()]
    how = {"define_macros": known, "extra_compile_args": ENGINE_FLAGS, "language": "c++"}
    return Extension(own.MODULE, [sources[-1]], depends=sources, **how)


def extensions():
    """Return what is to be compiled."""
    if os.environ.get("KERNBENCH_PURE", "0") not in ("", "0"):
        if "editable_wheel" in sys.argv:  # what lies in this folder is what will run
            remove_compiled(ROOT)
        return []
    try:
        import Cython.Build  # noqa: F401
    except ImportError as error:
        tell_of_python(error, "install Cython")
        return []
    sources = {name: place + (".pyx" if (ROOT / f"{place}.pyx").is_file() else ".py") for name, place in PLACES.items()}
    return [Extension(name, [source], extra_compile_args=FLAGS) for name, source in sources.items()]


def translate(modules, **options):
    """Make C of modules, and return these as they are to be compiled."""
    from Cython.Build import cythonize

    return cythonize(
        modules,
        # as many at once as there are processors, where that does not run this file again
        nthreads=(os.cpu_count() or 1) if multiprocessing.get_start_method() == "fork" else 0,
        compiler_directives=DIRECTIVES,
        quiet=True,
        **options,
    )


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

    #: The folder in which compiled modules are kept, where there is one.
    kept_in = os.environ.get("KERNBENCH_BUILD_CACHE")

    def finalize_options(self):
        """Compile as many at once as there are processors, and all anew where it is kept."""
        super().finalize_options()
        self.parallel = self.parallel or os.cpu_count()
        self.force = self.force or bool(self.kept_in)
        self.kept = {}  # the modules that were there before, by name
        self.natives = []  # the file of the native engine, where there is one
        self.what_to_do = INSTALL_COMPILER

    def run(self):
        """Compile; where that fails, say so in a line and leave pure Python."""
        folder = ROOT if self.inplace else Path(self.build_lib)
        remove_compiled(folder)
        try:
            super().run()
        except Exception as error:
            remove_compiled(folder)
            self.extensions = []
            tell_of_python(error, self.what_to_do)
            return
        if self.extensions:
            form().write_list(str(folder), FOUND)
        for file in map(Path, self.natives if self.inplace else ()):  # setuptools copies modules alone
            self.copy_file(str(file), str(ROOT / file.relative_to(self.build_lib)))

    def build_extensions(self):
        """Make C of the modules that are not kept, and compile it."""
        cache = self.cache() if self.kept_in else None
        if cache is not None:
            found = {ext.name: cache.get(ext.name) for ext in self.extensions}
            self.kept = {name: content for name, content in found.items() if content is not None}
        missing = [ext for ext in self.extensions if ext.name not in self.kept]
        self.what_to_do = TELL_US
        for ext, in_c in zip(missing, translate(missing, build_dir="build/cython", force=self.force), strict=True):
            ext.sources = in_c.sources
        self.what_to_do = INSTALL_COMPILER
        super().build_extensions()
        made = [*missing, *self.build_engine(cache)]
        if cache is not None:
            self.keep(cache, made)

    def build_engine(self, cache):
        """Compile the native engine, or say in a line that there is none; return what was made of it anew."""
        native = engine()
        native._needs_stub = False  # as setuptools says of those that it was given
        file = Path(self.get_ext_fullpath(native.name))
        content = None if cache is None else cache.get(native.name)
        try:
            file.parent.mkdir(parents=True, exist_ok=True)
            if content is None:
                super().build_extension(native)
            else:
                file.write_bytes(content)
                self.kept[native.name] = content
        except Exception as error:
            file.unlink(missing_ok=True)
            why = (str(error).strip() or type(error).__name__).splitlines()[-1]
            sys.stderr.write(
                f"kernbench: its native engine could not be compiled ({why}), so that recorded runs cannot be timed "
                "anew; all else works. Install a C++ compiler, and install again.\n"
            )
            return []
        self.natives = [str(file)]
        return [native] if content is None else []

    def build_extension(self, ext):
        """Compile a module, or write the one that was kept."""
        if ext.name in self.kept:
            file = Path(self.get_ext_fullpath(ext.name))
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(self.kept[ext.name])
        else:
            super().build_extension(ext)

    def cache(self):
        """Return the cache, with the keys that the modules have now."""
        import Cython
        from Cython.Build.Dependencies import create_dependency_tree

        tools, tree = module_of(ROOT / "tools" / "build_cache.py"), create_dependency_tree(quiet=True)
        flags = [*FLAGS, *(["-g"] if self.debug else [])]
        makers = tools.makers(self.compiler, flags, {**DIRECTIVES, "Cython": Cython.__version__})
        sources = {ext.name: tools.sources_seen(ext.sources[0], tree) for ext in self.extensions}
        sources[engine().name] = [*engine().depends, "setup.py"]
        return tools.BuildCache(Path(self.kept_in), makers, sources)

    def keep(self, cache, made):
        """Keep what was made, and say how much that was: in a line, and in a file, as pip shows no line."""
        among = len(self.extensions) + len(self.natives)
        told = f"{len(self.kept)} of {among} modules came from {self.kept_in}; compiled: {len(made)}"
        try:
            for ext in made:
                cache.put(ext.name, Path(self.get_ext_fullpath(ext.name)).read_bytes())
            if made:
                cache.prune()
        except OSError as error:
            told += f", which are not kept ({error})"
        sys.stderr.write(f"kernbench: {told}.\n")
        (ROOT / "build").mkdir(exist_ok=True)
        (ROOT / "build" / "built.txt").write_text(f"{told}\n", encoding="utf-8")

    def get_outputs(self):
        """Return what was built, and the list of what from."""
        if not self.extensions:
            return []
        return [*super().get_outputs(), form().list_file(self.build_lib), *self.natives]


#: The modules that are to be compiled, each with the checksum of its sources, before these are read to be compiled.
FOUND = {name: form().checksum(str(ROOT), name) for name in COMPILED}
setup(
    # the users' door is installed as `kernbench`; its source lies with what is built in
    packages=["kernbench", *find_namespace_packages(include=PACKAGES, exclude=["kernbench_builtin.door*"])],
    package_dir={"kernbench": "kernbench_builtin/door"},
    ext_modules=extensions(),
    cmdclass={"build_ext": AllOrNothing},
)
