"""Run every bench and some collectives, small, and compare their op logs and times with those in tests/golden.

    python tools/golden.py [--check | --update] [--only NAME ...] [-j N]

A change that is not meant to move a time or a logged op moves none of these. One that is writes the new ones with
`--update`, in the commit that says which rule changed and why. tests/golden/runs.json holds, for each run, its total in
ns and its op log's SHA-256; tests/golden/events.json how many events the simulator took for it, in a file of its own,
as a faster simulator takes fewer for the same log. The data of each run are computed and compared with numpy, within
the tolerance of their dtype: their bits belong to the BLAS at hand, and are kept nowhere.

NAME is a run ("tiny/gemm"), a bench or collective ("gemm") or a pattern ("default/*"). The exit code is 1 when
something moved or data is wrong.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from fnmatch import fnmatchcase
from functools import cache
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from attrs import evolve, field, frozen

from kernbench_core.plugins import own_plugins

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from kernbench_ccl.catalogue import Catalogue
from kernbench_ccl.collectives import COLLECTIVES as KINDS
from kernbench_ccl.measure import Chooser, Question, Setup, Sweep, TimedMachine, machine_of
from kernbench_ccl.measure.timed_run import TimedRun
from kernbench_ccl.plan import load_ccl
from kernbench_ccl.plan.configuration import AUTO
from kernbench_core.errors import KernbenchError
from kernbench_core.host.session import GraphEngine
from kernbench_core.plugins import Plugins, load_plugins
from kernbench_core.runs.bench_run import run
from kernbench_core.values.dtypes import itemsize

FOLDER = Path(__file__).resolve().parent.parent / "tests" / "golden"
RUNS, EVENTS = "runs.json", "events.json"
TOPOLOGIES = ("tiny", "default")
UPDATE = (
    "If this is meant, write it down with `python tools/golden.py --update`, in the commit that says which rule "
    "changed and why."
)


@frozen
class Golden:
    """One run: a bench with its parameters, or a collective (`algorithm` given), on a topology with settings."""

    what: str
    topology: str
    params: Mapping[str, Any] = field(factory=dict)
    sets: tuple[str, ...] = ()
    algorithm: str | None = None

    @property
    def name(self) -> str:
        """What the file and the table call it."""
        return f"{self.topology}/{self.what}" + (f".{self.algorithm}" if self.algorithm else "")


@frozen
class Found:
    """What a run gave: its total in ns, the hash of its op log, its events, and what is wrong with its data."""

    total_ns: float
    op_log_sha256: str
    events: int
    wrong: str = ""


_TILES = {"tile_m": 32, "tile_n": 32, "tile_k": 32}
BENCHES: Mapping[str, Mapping[str, Any]] = {
    "attention": {
        "model": "gpt2", "tokens": 32, "heads": 4, "kv_heads": 2, "head_dim": 32, "tile_q": 16, "tile_k": 16,
    },
    "attention-decode": {"heads": 4, "kv_heads": 2, "head_dim": 32, "context": 100, "tile_k": 16},
    "collective": {"size": "6 KiB", "algo": "ring"},
    "copy": {"n": 5000, "block": 256},
    "dp-gradients": {"tokens": 64, "hidden": 32, "layers": 3, "communication_pes": 1},
    "gemm": {"M": 96, "N": 128, "K": 640},
    "gemm-naive": {"M": 96, "N": 128, "K": 160, **_TILES},
    "gemv": {"N": 128, "K": 96},
    "gemm-composite": {"M": 96, "N": 128, "K": 160, **_TILES},
    "gemm-stream": {"products": "1,5", "m": 16, "n": 32, "k": 16},
    "gemm-sweep": {"shapes": "64x96x64", "tiles": "32"},
    "layernorm": {"tokens": 18, "cols": 96, "block": 2},
    "mlp": {"tokens": 32, "hidden": 64, "ffn": 96, **_TILES},
    "moe-all-to-all": {"tokens": 32, "hidden": 32, "experts": 4, "top_k": 2, "skew": 0.5},
    "qkv-gemm": {"model": "gpt2", "layer": "kv", "tokens": 16, "tile_m": 16, "tile_n": 128, "tile_k": 256},
    "rmsnorm": {"tokens": 18, "cols": 96, "block": 2},
    "softmax": {"rows": 42, "cols": 96, "block": 2},
    "sparse-gemm": {"M": 128, "N": 64, "K": 128, "density": 0.4, "tile_n": 32, "tile_k": 32},
    "tp-mlp": {"tokens": 16, "hidden": 32, "ffn": 64, "layers": 2},
    "vector-add": {"n": 5000, "block": 256},
}  # fmt: skip
"""Every registered bench, with shapes that give each PE something to do, and some more than others."""
RANKS = ("collective", "dp-gradients", "moe-all-to-all", "tp-mlp")
"""Benches of several ranks, which `tiny` has not by itself."""
COLLECTIVES = (
    ("all_reduce", "ring", {}),
    ("all_reduce", AUTO, {}),
    ("all_reduce", "hierarchical", {"contributors": "pe"}),
    ("all_gather", "halving_doubling", {}),
    ("reduce_scatter", "direct", {}),
    ("all_to_all", "pairwise", {}),
    ("broadcast", "double_binary_tree", {"root": 1}),
    ("reduce", "binomial_tree", {"root": 2}),
)
"""Collectives, each by an algorithm, over four ranks, of `COUNT` elements, which four does not divide."""
COUNT, FOUR_RANKS, TWO_RANKS = 1501, "system.sips=4", "system.sips=2"


def goldens() -> list[Golden]:
    """Return every run, in the order of the files."""
    found = []
    for topology in TOPOLOGIES:
        for bench, params in BENCHES.items():
            sets = (TWO_RANKS,) if topology == "tiny" and bench in RANKS else ()
            found.append(Golden(bench, topology, params, sets))
        for collective, algorithm, asked in COLLECTIVES:
            found.append(Golden(collective, topology, asked, (FOUR_RANKS,), algorithm))
    return found


def chosen(only: Sequence[str]) -> list[Golden]:
    """Return the runs that are asked for, all of them by default; raise ValueError for a name that fits none."""
    every = goldens()
    for name in only:
        if not any(_fits(each, name) for each in every):
            known = ", ".join(dict.fromkeys(each.what for each in every))
            raise ValueError(f"no run fits {name!r}; name one as 'tiny/gemm', by a pattern, or by one of {known}.")
    return [each for each in every if not only or any(_fits(each, name) for name in only)]


def _fits(golden: Golden, name: str) -> bool:
    return name == golden.what or fnmatchcase(golden.name, name)


@cache
def _plugins() -> Plugins:
    return load_plugins(own_plugins(), installed=False)


@cache
def _machine(topology: str, sets: tuple[str, ...]) -> TimedMachine:
    return machine_of(Setup(topology, sets=sets), _plugins())


def carry_out(golden: Golden) -> Found:
    """Run it, data and all."""
    try:
        return _bench(golden) if golden.algorithm is None else _collective(golden, golden.algorithm)
    except KernbenchError as error:
        error.add_note(f"This was the golden run {golden.name}.")
        raise


def _bench(golden: Golden) -> Found:
    result = run(golden.what, golden.topology, golden.params, set=golden.sets, verify_data=True, plugins=_plugins())
    assert result.op_log_sha256 is not None
    failures = result.verification.failures if result.verification is not None else ()
    wrong = "" if result.verified else "\n".join(failures) or "it checks no data"
    return Found(result.total_ns, result.op_log_sha256, result.events, wrong)


def _collective(golden: Golden, algorithm: str) -> Found:
    plugins, machine = _plugins(), _machine(golden.topology, golden.sets)
    setup = Setup(golden.topology, sets=golden.sets)
    kind = KINDS[golden.what]
    question = Question(
        kind, "f16", "sum" if kind.reduces else None, golden.params.get("root", 0),
        contributors=golden.params.get("contributors", "sip"),
    )  # fmt: skip
    chooser = Chooser(question, machine, load_ccl(catalogue=Catalogue.of(plugins)), plugins)
    choice = chooser.best(COUNT * itemsize(question.dtype)) if algorithm == AUTO else chooser.named(algorithm)
    case = Sweep(question, setup, machine, plugins).case(COUNT, choice, False)
    ran = TimedRun(case, machine, Catalogue.of(plugins).open(case.algorithm, case.collective))
    functions = {name: entry.target for name, entry in plugins.ops.items()}
    engine = GraphEngine(machine.graph, plugins.components, functions=functions)
    engine.run(ran.bench, name=golden.name)
    verdict = ran.check(engine)
    wrong = "\n".join((f"{verdict.wrong} elements", *verdict.failures)) if verdict.wrong or verdict.failures else ""
    return Found(engine.get_timing_result().total_ns, engine.op_log.sha256(), engine.env.events, wrong)


def read() -> dict[str, Found]:
    """Return what the files hold, by run."""
    runs, events = (_read(FOLDER / name) for name in (RUNS, EVENTS))
    return {name: Found(each["total_ns"], each["op_log_sha256"], events.get(name, 0)) for name, each in runs.items()}


def _read(path: Path) -> dict[str, Any]:
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}


def write(found: Mapping[str, Found]) -> None:
    """Write the files: a run is a line."""
    kept = {golden.name: found[golden.name] for golden in goldens() if golden.name in found}
    _write(FOLDER / RUNS, {n: {"total_ns": f.total_ns, "op_log_sha256": f.op_log_sha256} for n, f in kept.items()})
    _write(FOLDER / EVENTS, {name: each.events for name, each in kept.items()})


def _write(path: Path, content: Mapping[str, Any]) -> None:
    lines = ",\n".join(f"  {json.dumps(name)}: {json.dumps(each)}" for name, each in content.items())
    path.write_text(f"{{\n{lines}\n}}\n", encoding="utf-8")


def moved(old: Mapping[str, Found], new: Mapping[str, Found], whole: bool) -> list[tuple[str, ...]]:
    """Return a row for each run that is not as it was: run, total, op log, events; empty cells for what did not move.

    With `whole`, the runs that are gone count too.
    """
    rows = [
        (name, _total(old.get(name), now), _hash(old.get(name), now), _events(old.get(name), now))
        for name, now in new.items()
        if old.get(name) != evolve(now, wrong="")
    ]
    return rows + [(name, "no run any more", "", "") for name in old if whole and name not in new]


def _total(was: Found | None, now: Found) -> str:
    if was is None:
        return f"new: {now.total_ns!r}"
    if was.total_ns == now.total_ns:
        return ""
    return f"{was.total_ns!r} -> {now.total_ns!r} ({(now.total_ns / was.total_ns - 1) * 100:+.3g} %)"


def _hash(was: Found | None, now: Found) -> str:
    if was is None or was.op_log_sha256 == now.op_log_sha256:
        return "" if was else f"new: {now.op_log_sha256[:8]}"
    return f"{was.op_log_sha256[:8]} -> {now.op_log_sha256[:8]}"


def _events(was: Found | None, now: Found) -> str:
    if was is None or was.events == now.events:
        return "" if was else f"new: {now.events}"
    return f"{was.events} -> {now.events}"


def table(rows: Sequence[tuple[str, ...]]) -> str:
    """Return the rows below their titles, in columns."""
    lines = [("golden run", "total, ns", "op log", "events"), *rows]
    widths = [max(len(line[column]) for line in lines) for column in range(4)]
    return "\n".join("  ".join(map(str.ljust, line, widths)).rstrip() for line in lines)


def main(argv: Sequence[str] | None = None) -> int:
    """Check or update; return 1 when something moved, or when data is wrong."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--check", action="store_true", help="compare with the files; the default")
    what.add_argument("--update", action="store_true", help="write what the runs give now into the files")
    parser.add_argument("--only", action="append", default=[], metavar="NAME", help="these runs alone; repeatable")
    parser.add_argument("-j", "--jobs", type=int, default=1, metavar="N", help="processes that run")
    options = parser.parse_args(argv)
    try:
        asked = chosen(options.only)
    except ValueError as error:
        parser.error(str(error))
    old, found = read(), {each.name: got for each, got in zip(asked, _all(asked, options.jobs), strict=True)}
    rows = moved(old, found, whole=not options.only)
    wrong = [f"{name}: the data is wrong: {each.wrong}" for name, each in found.items() if each.wrong]
    print("\n".join([*wrong, table(rows)] if rows else wrong or [f"{len(found)} golden runs are as they were"]))
    if options.update and not wrong:
        write({**old, **found})
    elif rows:
        print(UPDATE)
    return 1 if wrong or (rows and not options.update) else 0


def _all(asked: Sequence[Golden], jobs: int) -> Iterable[Found]:
    if jobs < 2:
        return map(carry_out, asked)
    with ProcessPoolExecutor(jobs, get_context("spawn")) as pool:
        return list(pool.map(carry_out, asked))


if __name__ == "__main__":
    sys.exit(main())
