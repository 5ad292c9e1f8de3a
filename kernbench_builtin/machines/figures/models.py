"""Which code the models of a run are: a digest of each, by which a changed model is told from a changed kernel."""

from __future__ import annotations

import hashlib
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Final

from kernbench_core.package import is_ours

if TYPE_CHECKING:
    from kernbench_core.component import ComponentBase

_IMPORT: Final = re.compile(
    rb"^[ \t]*(?:from[ \t]+([\w.]+)[ \t]+import[ \t]+(\([^)]*\)|[^\n#]*)|import[ \t]+([\w.]+))", re.MULTILINE
)


def model_digests(components: Iterable[ComponentBase]) -> Mapping[str, str]:
    """Return the SHA-256 of the code of each implementation among components, by name; "" where it has no file.

    The code is that of the modules of the class and of its bases, and of what these import of their own package; core
    is told by its version.
    """
    classes: dict[str, type] = {each.node.impl: type(each) for each in components}
    return {impl: _digest(classes[impl]) for impl in sorted(classes)}


@cache
def _digest(model: type) -> str:
    modules = [base.__module__ for base in model.__mro__]
    left = [module for module in modules if not is_ours(module) and module != "builtins"]
    digests: dict[str, str] = {}
    seen = set(left)
    while left:
        name = left.pop()
        digest, imports = _module(name)
        if digest:
            digests[name] = digest
        left += imports - seen
        seen |= imports
    if model.__module__ not in digests:
        return ""
    return hashlib.sha256("".join(f"{name} {digests[name]}\n" for name in sorted(digests)).encode()).hexdigest()


@cache
def _module(name: str) -> tuple[str, frozenset[str]]:
    """Return the SHA-256 of a module, "" where it has no file, and what it imports of its own package."""
    file = _file(name)
    if file is None:
        return "", frozenset()
    code = file.read_bytes()
    return hashlib.sha256(code).hexdigest(), frozenset(_imports(name, code, file.name == "__init__.py"))


def _file(name: str) -> Path | None:
    """Return the file of a module, the source of a compiled one: of what is loaded, or where its package has it."""
    loaded = getattr(sys.modules.get(name), "__file__", None)
    if loaded is not None:
        path = Path(loaded)
        source = path.with_name(path.name.partition(".")[0] + ".py")
        return next((each for each in (source, path) if each.is_file()), None)
    package, _, last = name.rpartition(".")
    home = _file(package) if package else None
    if home is None or home.name != "__init__.py":
        return None
    tried = home.parent / f"{last}.py", home.parent / last / "__init__.py"
    return next((path for path in tried if path.is_file()), None)


def _imports(name: str, code: bytes, is_package: bool) -> Iterator[str]:
    """Yield what a module imports of its own package: modules, and names that may be some."""
    own = name.partition(".")[0]
    for match in _IMPORT.finditer(code):
        module, names, plain = (each.decode("ascii", "ignore") if each else "" for each in match.groups())
        if module.startswith("."):
            up = len(module) - len(module.lstrip("."))
            base = name.split(".")[: len(name.split(".")) - up + is_package]
            module = ".".join([*base, module.lstrip(".")]).rstrip(".")
        found = plain or module
        if found.partition(".")[0] == own:
            yield found
            yield from (f"{found}.{each.split()[0]}" for each in names.strip("() \t").split(",") if each.strip())
