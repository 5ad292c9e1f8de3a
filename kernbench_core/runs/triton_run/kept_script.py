"""A script written in Triton, from the cache: its result, its launches, what it printed, as one run of all of it."""

from __future__ import annotations

import hashlib
import json
import os
import sys
import time
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import attrs

from kernbench_core.cache import Cache, NotCacheable, computing_code
from kernbench_core.errors import KernbenchWarning
from kernbench_core.host.sources import read_sources
from kernbench_core.runs.cached.columns import Arrays
from kernbench_core.runs.cached.keys import OPTIONS, configuration_digest, python_digest
from kernbench_core.runs.cached.output import named_files
from kernbench_core.runs.cached.reads import find, keep
from kernbench_core.runs.cached.recording import Shown, recorded
from kernbench_core.runs.cached.records import decode, encode
from kernbench_core.runs.cached.result_files import (
    RunAnswer,
    launch_json,
    launch_of,
    pack,
    result_json,
    result_of,
    unpacked,
)
from kernbench_core.runs.cached.surprises import Surprises
from kernbench_core.runs.manifest import current_plugins, current_versions, kept_options
from kernbench_core.runs.options import RunCall

if TYPE_CHECKING:
    from kernbench_core.cache import ComputingCode
    from kernbench_core.plugins import Plugins
    from kernbench_core.runs.result import RunResult
    from kernbench_core.runs.triton_run.script import Script
    from kernbench_core.runs.triton_run.session import TritonRun
    from kernbench_core.topology.configuration import Config

_ANSWER: Final = ("bench", "params", "topology", "device")
#: Options for which a script has to run: those that write files, or have somebody watch.
_FILES: Final = ("trace", "out", "report")


class KeptScripts:
    """Runs scripts, or finds what they gave: with these options, on the machine of a configuration."""

    def __init__(self, call: RunCall, config: Config, plugins: Plugins, cache: Cache | None = None) -> None:
        self._call, self._config, self._plugins = call, config, plugins
        self._cache = Cache.of_user() if cache is None else cache
        self._here = Path.cwd()

    def run(self, script: Script, session: TritonRun) -> int:
        """Run a script in a session, or give that what the script gave before; return the exit code.

        Of a script that fails nothing is kept. Raise NotCacheable, and run nothing, where there is no key.
        """
        began = time.perf_counter()
        code = computing_code(self._plugins, self._cache)
        key = self._key(script, session.points, code)
        if not any(getattr(self._call, name) for name in _FILES) and self._found(key, session, began):
            return 0
        surprises = Surprises()
        with recorded() as shown, surprises.watched():
            exit_code = script.run(session)
        after = computing_code(self._plugins, self._cache, closely=True)
        if exit_code or after.digests != code.digests:
            return exit_code
        try:
            surprises.check(() if script.is_module else read_sources(Path(script.name)).files.values())
        except NotCacheable as why:
            warnings.warn(str(why), KernbenchWarning, stacklevel=2)
            return exit_code
        reads = surprises.modules(script.name, code.origins) | surprises.reads
        kept_as = self._keep(key, script, session, shown(), reads)
        if session.result is not None:
            session.result = attrs.evolve(session.result, cache_key=kept_as)
        return 0

    def _key(self, script: Script, points: int | None, code: ComputingCode) -> str:
        """Return the SHA-256 of all that a script's answer depends on, as far as its files say it."""
        files = dict(named_files(script.arguments))
        if script.is_module:
            modules = sorted(code.origins.imported(script.name, as_loaded=True))
        else:
            script.check()
            sources = read_sources(Path(script.name))
            for name in sources.modules:
                if name in sys.modules:
                    raise NotCacheable(
                        f"module {name!r} beside script {script.name!r} must be what its file says, and was loaded "
                        "before the script ran; the run is not kept."
                    )
            files |= {f"{sources.folder}/{name}": sha256 for name, sha256 in sources.hashes.items()}
            modules = sorted(told for name in sources.imported for told in code.origins.imported(name, as_loaded=True))
        options = {**kept_options(self._call), **{name: getattr(self._call, name) for name in OPTIONS}}
        parts = [
            "script", script.name, list(script.arguments), script.is_module, sorted(files.items()), modules, points,
            sorted(options.items()), str(self._call.topology), configuration_digest(self._config),
            sorted(code.digests.items()), current_versions(), [dict(each) for each in current_plugins(self._plugins)],
            python_digest(), os.path.abspath(""),  # noqa: PTH100
        ]  # fmt: skip
        return hashlib.sha256(json.dumps(parts).encode()).hexdigest()

    def _found(self, key: str, session: TritonRun, began: float) -> bool:
        """Give a session what is kept, and show what the script printed; whether there was such a thing."""
        there = find(self._cache, key, self._here)
        if there is None:
            return False
        kept_as, files = there
        try:
            with unpacked(files) as (said, data):
                shown = Shown.of(said)
                result = None if said["result"] is None else self._result(said, data, kept_as, began)
                launches = [launch_of(each, data) for each in said["launches"]]
                tunings = [decode(each) for each in said["tunings"]]
                notes = [str(note) for note in said["notes"]]
        except NotCacheable:
            self._cache.remove(kept_as)
            return False
        session.result, session.launches, session.tunings, session.notes = result, launches, tunings, notes
        shown.show()
        return True

    def _result(self, said: Mapping[str, Any], data: bytes, key: str, began: float) -> RunResult:
        all_links = self._call.links == "all"
        told = {name: said["answer"][name] for name in _ANSWER}
        answer = RunAnswer(**told, manifest=said["manifest"], cache_key=key, all_links=all_links)
        return result_of(said["result"], data, answer, began)

    def _keep(
        self, key: str, script: Script, session: TritonRun, shown: Shown, reads: Mapping[str, str]
    ) -> str | None:
        """Keep what a script gave, and return what it is kept under; None where there is no room."""
        arrays, result = Arrays(), session.result
        said: dict[str, Any] = {"result": None, **attrs.asdict(shown), "notes": session.notes}
        said["launches"] = [launch_json(launch, arrays) for launch in session.launches]
        said["tunings"] = [encode(attrs.evolve(each, key=_spelled(each.key))) for each in session.tunings]
        if result is not None:
            explain = result.explain if self._call.explain else None
            said["result"] = result_json(attrs.evolve(result, explain=explain, timeline=None), arrays)
            said["answer"] = {name: getattr(result, name) for name in _ANSWER}
            said["manifest"] = dict(result.manifest)
        total = None if result is None else result.total_ns
        about = {"kind": "script", "name": " ".join([script.name, *script.arguments]), "total_ns": total}
        return keep(self._cache, key, self._here, reads, pack(said, arrays), about)


def _spelled(key: Any) -> tuple[tuple[str, Any], ...]:
    """Return what a kernel was tuned for, with what is no number and no text as its text."""
    return tuple((name, value if isinstance(value, int | float | str) else str(value)) for name, value in key)


def run_script(
    script: Script, session: TritonRun, topology: Any, options: Mapping[str, Any], plugins: Plugins,
    configure: Callable[..., Config],
) -> int:  # fmt: skip
    """Run a script, or take what it gave from the cache; see `KeptScripts.run`."""
    call = RunCall(script.name, topology, **options)
    config = configure(plugins, topology, options["components"], options["set"])
    return KeptScripts(call, config, plugins).run(script, session)
