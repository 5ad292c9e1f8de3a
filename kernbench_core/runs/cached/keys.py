"""The key of a run: digests, by name, of all that its result depends on, and one of all of them."""

from __future__ import annotations

import functools
import hashlib
import json
import platform
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import attrs

from kernbench_core.cache import Cache, Digester, computing_code

if TYPE_CHECKING:
    from kernbench_core.runs.manifest import Manifest
    from kernbench_core.runs.request import Request
    from kernbench_core.topology.configuration import Config

NOT_COVERED: Final = (
    "files that are not opened by Python", "the clock", "the network", "random numbers that chance seeds",
)  # fmt: skip
"""What a run may depend on and no key covers."""

_CODE: Final = "code of "
#: Options beside those of the manifest that change what a result has.
OPTIONS: Final = ("explain", "tcm_map", "outputs")


@attrs.frozen
class RunKey:
    """The SHA-256, in hex, of all that a run's result depends on, as far as that can be known before it runs.

    `parts` are digests by name, so that two keys are told apart in words; `not_covered` is what no key covers.
    """

    sha256: str
    parts: Mapping[str, str]
    not_covered: tuple[str, ...] = NOT_COVERED

    @property
    def code(self) -> dict[str, str]:
        """The digests of the code that is not the user's own, by package or file."""
        return {name.removeprefix(_CODE): each for name, each in self.parts.items() if name.startswith(_CODE)}


def differences(first: Mapping[str, str], second: Mapping[str, str]) -> tuple[str, ...]:
    """Return the names of the parts in which two keys differ."""
    return tuple(sorted(name for name in {*first, *second} if first.get(name) != second.get(name)))


def plain_request(request: Request) -> Request:
    """Return a request without the files to be written, whose result is the same but for what they need."""
    return attrs.evolve(request, trace=None, out=None, bundle=None, report=None)


def run_key(request: Request, manifest: Manifest, here: Path, cache: Cache) -> RunKey:
    """Return the key of a plain run that begins in the folder `here`, whose manifest it would be; nothing is run.

    Raise NotCacheable where something that the run depends on has no digest.
    """
    bench, options = request.bench, request.options
    code = computing_code(request.plugins, cache)
    parts = {f"{_CODE}{name}": digest for name, digest in code.digests.items()}
    parts["configuration"] = configuration_digest(request.config)
    digester = Digester(code.origins)
    digester.add("the bench", bench.function)
    if bench.sources is not None:
        digester.add("the bench's files", (str(bench.sources.folder), bench.sources.function, bench.sources.hashes))
        for name in sorted(bench.sources.imported):
            digester.add("an import", tuple(code.origins.imported(name, as_loaded=True)))
    if not bench.registered:
        parts["folder"] = _text(str(here))
    told = manifest.to_json()
    for name in ("configuration", "configuration_sha256", "op_log_sha256", "schema"):
        del told[name]
    parts["bench"] = _text([digester.sha256, told.pop("bench")])
    parts["topology"] = _text([told.pop("topology"), told.pop("changes")])
    for name in ("plugins", "versions"):
        parts[name] = _text(told.pop(name))
    types = {name: str(value.dtype) for name, value in request.values.items() if hasattr(value, "dtype")}
    parts["parameters"] = _text([told.pop("params"), types])
    parts["options"] = _text([told, {name: getattr(options, name) for name in OPTIONS}])
    parts["Python"] = python_digest()
    if options.backend != "numpy":
        from kernbench_core.compute.backends import backend_of

        found = backend_of(options.backend)
        parts["backend"] = _text([found.name, found.library, found.device])
    return RunKey(_text(sorted(parts.items())), parts)


def configuration_digest(config: Config) -> str:
    """Digest a configuration with the places of its keys, which warnings name."""
    places = [(repr(path), place) for path, place in config.places.items()]
    told = [config.data, places, config.sources, config.warnings, sorted(map(repr, config.inherited))]
    return hashlib.sha256(repr(told).encode()).hexdigest()


@functools.cache
def python_digest() -> str:
    """Digest what of Python may change what a run computes."""
    return _text([sys.version, sys.implementation.name, sys.flags.optimize, platform.machine()])


def _text(value: Any) -> str:
    return hashlib.sha256(json.dumps(value, default=_spelled).encode()).hexdigest()


def _spelled(value: Any) -> Any:
    """Spell what JSON has no word for."""
    return dict(value) if isinstance(value, Mapping) else f"{type(value).__qualname__} {value!r}"
