"""The files of modules that are loaded: what a bench does may follow from any of them."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from kernbench_core.cache.dependencies import digest_of, is_new, packages_of
from kernbench_core.package import is_ours, is_pythons

if TYPE_CHECKING:
    from kernbench_core.plugins import Plugins

#: How the paths of our own packages begin.
_OURS: Final = f"{Path(__file__).parents[2]}/kernbench_"


def loaded_files(plugins: Plugins, ran: Iterable[str] = ()) -> dict[str, str | None]:
    """Return the SHA-256 of the files of all modules that are loaded, but for installed ones, plug-ins and the bench.

    Those count too of which some code `ran`, so that a module is found that is in no list, as it was loaded by hand.

    It is "" where a file is gone, and None where it may not be what is loaded: it was written after this process began,
    or, of files that kernbench executed, as algorithms are, and of their own modules, it is not what was executed.
    """
    others = {"__main__", "__mp_main__", *packages_of(plugins)}  # the main module, in two names
    kernels = (path for path in map(os.path.abspath, ran) if os.path.isfile(path))  # noqa: PTH113
    found = {path for path in kernels if not (_is_installed(path) or path.startswith(_OURS))}
    executed = dict[str, str]()
    for name, module in list(sys.modules.items()):
        file, spec = (getattr(module, "__dict__", {}).get(each) for each in ("__file__", "__spec__"))
        top = name.partition(".")[0]
        if top in others or is_ours(top) or name.startswith("kernbench_bench_") or not isinstance(file, str):
            continue
        sources: Any = getattr(spec, "loader_state", None)
        if hasattr(sources, "hashes"):
            executed |= {str(sources.folder / each): digest for each, digest in sources.hashes.items()}
        elif not _is_installed(file):
            path = Path(file).absolute()
            found.add(str(next((each for each in (path, *path.parents) if each.is_file()), path)))  # or a zip file
    loaded = {path: None if is_new(path) else digest_of(path) for path in sorted(found)}
    return loaded | {path: digest if digest_of(path) == digest else None for path, digest in executed.items()}


def _is_installed(file: str) -> bool:
    return is_pythons(file) or "/site-packages/" in file or "/dist-packages/" in file
