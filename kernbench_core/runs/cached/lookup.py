"""A run that is not made again: its result comes from the cache where nothing that it depends on has changed."""

from __future__ import annotations

import hashlib
import json
import sys
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TextIO

import attrs

from kernbench_core.cache import Cache, NotCacheable, computing_code
from kernbench_core.errors import KernbenchWarning
from kernbench_core.runs.cached.keys import RunKey, run_key, with_inputs
from kernbench_core.runs.cached.result_files import Shown, result_files, result_of

if TYPE_CHECKING:
    from kernbench_core.runs.manifest import Manifest
    from kernbench_core.runs.request import Request
    from kernbench_core.runs.result import RunResult

#: Of a run that prints more letters than this, nothing is kept.
_MOST_PRINTED: Final = 1 << 20
#: So many sets of files that a bench has read are remembered for one key.
_MOST_READS: Final = 8
_READS: Final = "inputs.json"


def cached_run(
    request: Request,
    here: Path,
    manifest_of: Callable[[Request, str | None], Manifest],
    carry_out: Callable[[], RunResult],
    cache: Cache | None = None,
) -> RunResult:
    """Return what the cache has for a request that begins in the folder `here`, else carry it out and keep the result.

    Where no key covers what the request depends on, it is carried out, and a warning says why nothing is kept. Where
    files are to be written, or somebody watches, it is carried out, too, and its result is kept.
    """
    began = time.perf_counter()
    plain = _plain(request)
    cache = Cache.of_user() if cache is None else cache
    try:
        manifest = manifest_of(plain, None)
        key = run_key(plain, manifest, here, cache)
    except NotCacheable as why:
        return _not_kept(carry_out, why)
    wants = [*request.files, *(["--web"] if request.watcher is not None else [])]
    wants += ["timeline"] if request.wants_timeline and not wants else []
    if not wants:
        found = _found(cache, key, plain, manifest, here, began)
        if found is not None:
            return found
    with _recorded() as shown:
        result = carry_out()
    try:
        after = computing_code(request.plugins, cache, closely=True).digests
        if after != key.code:
            raise NotCacheable("the code of a package was changed while the run went on; the run is not kept.")
        kept_as = _keep(cache, key, request, manifest, here, result, shown())
    except NotCacheable as why:
        return _not_kept(lambda: result, why)
    note = f"{' and '.join(wants)} needs a run of its own: this one was made, and its result is kept" if wants else ""
    return attrs.evolve(result, cache_key=kept_as, cache_note=note)


def _plain(request: Request) -> Request:
    """Return a request without the files to be written, whose result is the same but for what they need."""
    return attrs.evolve(request, trace=None, out=None, bundle=None, report=None)


def _not_kept(carry_out: Callable[[], RunResult], why: NotCacheable) -> RunResult:
    warnings.warn(str(why), KernbenchWarning, stacklevel=5)
    return attrs.evolve(carry_out(), cache_note=str(why))


def _found(
    cache: Cache, key: RunKey, request: Request, manifest: Manifest, here: Path, began: float
) -> RunResult | None:
    """Return the result that is kept under a key, where the files that the bench reads are what they were."""
    kept_as, files = key.sha256, cache.get(key.sha256)
    if files is not None and _READS in files:
        kept_as = next((with_inputs(key, here, reads) for reads in _reads(files) if _are_there(reads)), "")
        files = cache.get(kept_as) if kept_as else None
    if files is None:
        return None
    own = {"all_links": request.options.links == "all", "cache_key": kept_as}
    try:
        result, shown = result_of(files, request.bench.name, manifest, own, began)
    except NotCacheable:
        cache.remove(kept_as)
        return None
    sys.stdout.write(shown.printed)
    for sentence in shown.warnings:
        warnings.warn(sentence, KernbenchWarning, stacklevel=5)
    return result


def _keep(
    cache: Cache, key: RunKey, request: Request, manifest: Manifest, here: Path, result: RunResult, shown: Shown
) -> str:
    """Keep a result, as it would be without files; return its key with the files that the bench has read."""
    explain = result.explain if request.options.explain else None
    files = result_files(attrs.evolve(result, explain=explain, timeline=None), shown)
    reads = {
        place: hashlib.sha256(request.inputs.kept[name]).hexdigest() if name in request.inputs.kept else ""
        for name, place in request.inputs.asked.items()
    }
    about = {
        "kind": "run",
        "name": f"{result.bench} on {result.topology}",
        "params": manifest.to_json()["params"],
        "total_ns": result.total_ns,
        "op_log_sha256": result.op_log_sha256,
        "parts": dict(key.parts),
        "inputs": reads,
    }
    if not reads:
        cache.put(key.sha256, files, about)
        return key.sha256
    kept_as = with_inputs(key, here, reads)
    cache.put(kept_as, files, about)
    before = [each for each in _reads(cache.get(key.sha256) or {}) if each != reads]
    listed = json.dumps([reads, *before][:_MOST_READS]).encode()
    cache.put(key.sha256, {_READS: listed}, {**about, "kind": "inputs of a run"})
    return kept_as


def _reads(files: Mapping[str, bytes]) -> list[dict[str, str]]:
    """Return the sets of files, with their digests, that runs of one key have read, the latest first."""
    found: list[dict[str, str]] = json.loads(files.get(_READS, b"[]"))
    return found


def _are_there(reads: Mapping[str, str]) -> bool:
    """Whether files are what they were, and those that were not there still are not."""
    return all(_digest(path) == sha256 for path, sha256 in reads.items())


def _digest(path: str) -> str:
    try:
        return hashlib.sha256(Path(path).read_bytes()).hexdigest()
    except OSError:
        return ""


class _Tee:
    """Standard output that keeps what is written to it, up to a limit, and writes it on."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self.kept: list[str] = []
        self.letters = 0

    def write(self, text: str) -> int:
        """Write on, and keep."""
        self.letters += len(text)
        if self.letters <= _MOST_PRINTED:
            self.kept.append(text)
        return self._stream.write(text)

    def writelines(self, texts: Iterable[str]) -> None:
        """Write one text after the other."""
        for text in texts:
            self.write(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


@contextmanager
def _recorded() -> Iterator[Callable[[], Shown]]:
    """Give what tells what the block showed: what it printed, and kernbench's warnings, which come when it has ended.

    NotCacheable where it printed more than is kept.
    """
    tee: Any = _Tee(sys.stdout)
    caught: list[warnings.WarningMessage] = []

    def shown() -> Shown:
        if tee.letters > _MOST_PRINTED:
            raise NotCacheable(f"the run printed more than {_MOST_PRINTED:,} letters; it is not kept.")
        told = (str(each.message) for each in caught if issubclass(each.category, KernbenchWarning))
        return Shown("".join(tee.kept), tuple(told))

    try:
        with warnings.catch_warnings(record=True) as heard, redirect_stdout(tee):
            caught = heard
            warnings.filterwarnings("always", category=KernbenchWarning)
            yield shown
    finally:
        for each in caught:
            warnings.warn_explicit(each.message, each.category, each.filename, each.lineno, source=each.source)
