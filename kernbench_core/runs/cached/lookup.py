"""A run that is not made again: its result comes from the cache where nothing that it depends on has changed."""

from __future__ import annotations

import hashlib
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import attrs

from kernbench_core.cache import Cache, NotCacheable, computing_code
from kernbench_core.errors import KernbenchWarning, in_words
from kernbench_core.runs.cached.columns import Arrays
from kernbench_core.runs.cached.keys import RunKey, plain_request, run_key
from kernbench_core.runs.cached.reads import find, keep
from kernbench_core.runs.cached.recording import Shown, recorded
from kernbench_core.runs.cached.result_files import RunAnswer, pack, result_json, result_of, unpacked
from kernbench_core.runs.cached.surprises import Surprises, program_of

if TYPE_CHECKING:
    from kernbench_core.runs.manifest import Manifest
    from kernbench_core.runs.request import Request
    from kernbench_core.runs.result import RunResult


def cached_run(
    request: Request,
    here: Path,
    manifest_of: Callable[[Request, str | None], Manifest],
    carry_out: Callable[[], RunResult],
    surprises: Surprises,
    cache: Cache | None = None,
) -> RunResult:
    """Return what the cache has for a request that begins in the folder `here`, else carry it out and keep the result.

    `surprises` are what was noticed while the bench was opened.

    Where no key covers what the request depends on, it is carried out, and a warning says why nothing is kept. Where
    files are to be written, or somebody watches, it is carried out, too, and its result is kept.
    """
    began = time.perf_counter()
    plain = plain_request(request)
    cache = Cache.of_user() if cache is None else cache
    try:
        with _not_in_the_way("making its key"):
            manifest = manifest_of(plain, None)
            key = run_key(plain, manifest, here, cache)
    except NotCacheable as why:
        return _not_kept(carry_out, why)
    wants = [*request.files, *(["--web"] if request.watcher is not None else [])]
    wants += ["timeline"] if request.wants_timeline and not wants else []
    found = None if wants else _found(cache, key, plain, manifest, here, began)
    if found is not None:
        return found
    with recorded() as shown, surprises.watched():
        result = carry_out()
    try:
        with _not_in_the_way("keeping its result"):
            reads = _reads(cache, key, request, surprises)
            kept_as = _keep(cache, key, request, manifest, here, result, shown(), reads)
    except NotCacheable as why:
        return _not_kept(lambda: result, why)
    asked = bool(wants) and kept_as is not None
    note = f"{' and '.join(wants)} needs a run of its own: this one was made, and its result is kept" if asked else ""
    return attrs.evolve(result, cache_key=kept_as, cache_note=note)


@contextmanager
def _not_in_the_way(what: str) -> Iterator[None]:
    """Have what fails in a block be a reason to keep nothing: it may be a method of an object of the user's."""
    try:
        yield
    except NotCacheable:
        raise
    except Exception as error:
        raise NotCacheable(f"{what} raised {in_words(error).rstrip('.')}; the run is not kept.") from error


def _not_kept(carry_out: Callable[[], RunResult], why: NotCacheable) -> RunResult:
    warnings.warn(str(why), KernbenchWarning, stacklevel=5)
    return attrs.evolve(carry_out(), cache_note=str(why))


def _found(
    cache: Cache, key: RunKey, request: Request, manifest: Manifest, here: Path, began: float
) -> RunResult | None:
    """Return the result that is kept under a key, where the files that the bench reads are what they were."""
    there = find(cache, key.sha256, here)
    if there is None:
        return None
    kept_as, files = there
    all_links = request.options.links == "all"
    try:
        with unpacked(files) as (said, data):
            answer = RunAnswer.of(request.bench.name, manifest, said["result"], kept_as, all_links=all_links)
            result, shown = result_of(said["result"], data, answer, began), Shown.of(said)
    except NotCacheable:
        cache.remove(kept_as)
        return None
    shown.show()
    return result


def _reads(cache: Cache, key: RunKey, request: Request, surprises: Surprises) -> dict[str, str]:
    """Return what a run has read, with the SHA-256 of what it got; "" where that was nothing.

    NotCacheable where it did what no key covers, or code was changed meanwhile.
    """
    surprises.check_bench(request.bench)
    code = computing_code(request.plugins, cache, closely=True)
    if code.digests != key.code:
        raise NotCacheable("the code of a package was changed while the run went on; the run is not kept.")
    own = () if request.bench.sources is None else request.bench.sources.modules
    found = surprises.modules(program_of(request.bench), code.origins, own) | surprises.reads
    kept, asked = request.inputs.kept, request.inputs.asked
    return found | {
        place: hashlib.sha256(kept[name]).hexdigest() if name in kept else "" for name, place in asked.items()
    }


def _keep(
    cache: Cache, key: RunKey, request: Request, manifest: Manifest, here: Path, result: RunResult, shown: Shown,
    reads: dict[str, str],
) -> str | None:  # fmt: skip
    """Keep a result, as it would be without files; return its key with the files that the bench `reads`.

    It is None where there is no room.
    """
    explain = result.explain if request.options.explain else None
    arrays = Arrays()
    said = result_json(attrs.evolve(result, explain=explain, timeline=None), arrays)
    files = pack({"result": said, **attrs.asdict(shown)}, arrays)
    about = {
        "kind": "run",
        "name": f"{result.bench} on {result.topology}",
        "params": manifest.to_json()["params"],
        "total_ns": result.total_ns,
        "op_log_sha256": result.op_log_sha256,
        "parts": dict(key.parts),
    }
    return keep(cache, key.sha256, here, reads, files, about)
