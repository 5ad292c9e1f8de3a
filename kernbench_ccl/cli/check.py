"""`kernbench ccl check` and `kernbench ccl new`: prove an algorithm, and begin a new one."""

from __future__ import annotations

import json
import operator
import shutil
import sys
import textwrap
import time
from collections.abc import Iterable, Mapping, Sequence
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING, Any

import rich_click as click

from kernbench_ccl.cli.completion import every_algorithm
from kernbench_ccl.cli.completion import networks as network_names
from kernbench_core.cli.option_types import ReadType
from kernbench_core.cli.options import JOBS, JSON, QUIET, TIMEOUT, with_parameters
from kernbench_core.cli.shell import Shell
from kernbench_core.errors import UsageError
from kernbench_core.process import shown
from kernbench_core.runs import ProgressDisplay
from kernbench_core.wording import brief, spell_numbers

if TYPE_CHECKING:
    from kernbench_ccl.catalogue import Algorithm
    from kernbench_ccl.prove import Checked, Fault, Ranks
    from kernbench_ccl.prove.tried_cases import TriedCases

_EXIT = {"wrong": 1, "deadlock": 4, "endless": 5, "raised": 6}
"""The exit code for the kind of the first fault."""

_FAULT = {"wrong": "WRONG", "deadlock": "DEADLOCK", "endless": "NO END", "raised": "AN ERROR"}
"""What a row says of a kind of fault."""

ROOTS = ("first", "middle", "last")
"""How roots are told, in this order."""

_MOST_TOLD = 3
"""Faults that are told in full; --json has all of them."""


def numbers() -> ReadType:
    """Return the type of numbers and ranges of numbers of at least 1, each once, in their order: `2-17`, `2,4,8`."""
    return ReadType("numbers", "numbers and ranges of numbers of at least 1, as '2-17' or '2,4,8'", _read_numbers)


def _read_numbers(value: Any) -> tuple[int, ...]:
    if isinstance(value, tuple):
        return value
    found: dict[int, None] = {}
    for part in str(value).split(","):
        low, dash, high = part.partition("-")
        chosen = range(int(low), int(high if dash else low) + 1)
        if not chosen or chosen[0] < 1:
            raise ValueError
        found.update(dict.fromkeys(chosen))
    return tuple(found)


class _Display(ProgressDisplay):
    """The live line of a check: what is proved, and how far that is."""

    def forms(self) -> tuple[str, ...]:
        """Return nothing: the title says it all."""
        return ()


@click.command("check")
@click.argument("algo", metavar="ALGO", shell_complete=every_algorithm)
@click.option("--ranks", metavar="N,N-N", type=numbers(), default="2-17", show_default=True, help="Numbers of ranks.")
@click.option(
    "--topology",
    "networks",
    metavar="NAME",
    multiple=True,
    help="A network shape; repeatable. [default: all built-in ones]",
    shell_complete=network_names,
)
@click.option("--pes", metavar="N", type=numbers(), help="PEs of each rank. [default: one, and several]")
@click.option("--count", "counts", metavar="N,N-N", type=numbers(), help="Element counts. [default: uneven ones]")
@TIMEOUT.but(default="60 s", help="Stop a case after this wall time.")
@with_parameters(JSON, JOBS.but(default="2"), QUIET)
@click.pass_obj
def check(
    shell: Shell, /, algo: str, networks: tuple[str, ...], as_json: bool, jobs: int, quiet: bool, **options: Any
) -> int:
    """Prove that ALGO is right: run its kernel on symbolic data, without timing.

    ALGO is a registered name (ccl.ring_all_reduce), a method (ring: of every collective), the path of a .py file, or
    all. Every rank must end with each contribution exactly once, and no kernel may wait for ever. Exit code 0: proved;
    1: wrong; 4: a wait cycle; 5: a kernel without end; 6: the kernel raised.
    """
    from kernbench_ccl.catalogue import Catalogue
    from kernbench_ccl.prove import Wanted, check_all

    catalogue = Catalogue.of(shell.plugins)
    algorithms, broken = catalogue.open_every() if algo == "all" else (catalogue.open_all(algo), {})
    pes = options["pes"]
    if pes is not None and len(pes) != 1:
        raise UsageError(f"option --pes must be one number, not {len(pes)} of them; check one after the other.")
    n_pe = None if pes is None else pes[0]
    registry = shell.plugins.networks
    wanted = Wanted(options["ranks"], networks or None, n_pe, options["counts"], options["timeout_s"], registry)
    _check_networks(algorithms, networks, registry)
    found: list[Checked] = []
    began = time.perf_counter()
    with _Display("beginning", enabled=not quiet, rows=not as_json) as display:

        def show_progress(what: str) -> None:
            display.title = what

        for algorithm, rows in check_all(algorithms, wanted, jobs, show_progress):
            found += rows
            if rows and not (as_json or quiet):
                _say(_title(algorithm), *_laid_out(rows))
    _require_some(found)
    if as_json:
        click.echo(json.dumps(_as_json(found, broken), indent=2, ensure_ascii=False))
    elif quiet:
        _say(_in_one_line(found, broken))
    else:
        _say(*_verdict(found, broken), *_summary(found, time.perf_counter() - began, len(broken)))
    first = next((_EXIT[fault.kind] for checked in found for fault in checked.faults), 0)
    return first or (_EXIT["raised"] if broken else 0)


def _check_networks(algorithms: Sequence[Algorithm], networks: Iterable[str], registered: Iterable[str]) -> None:
    """Raise UsageError for a network that none of the algorithms supports."""
    others = [name for name in registered if any(algorithm.knows(name) for algorithm in algorithms)]
    known = list(dict.fromkeys([*(name for algorithm in algorithms for name in algorithm.topologies), *others]))
    for name in networks:
        if name not in known:
            raise UsageError(
                f"option --topology must be one of {', '.join(known)}, not {brief(name)}; choose one of these."
            )


def _require_some(found: Sequence[Checked]) -> None:
    """Raise UsageError when nothing was tried, with the reason of the last refusal."""
    if any(ranks.refusal is None for checked in found for ranks in checked.ranks):
        return
    why = [ranks.refusal for checked in found for ranks in checked.ranks if ranks.refusal]
    raise UsageError(f"option --ranks must have a number of ranks that the algorithm does; {why[-1] if why else ''}")


def _title(algorithm: Algorithm) -> str:
    is_file = algorithm.name.endswith(".py")
    called = Path(algorithm.name).name if is_file else algorithm.name
    name, sentence = f"{called} ({algorithm.collective})", algorithm.sentence
    if is_file:
        sentence = sentence.removeprefix(f"{Path(called).stem}: ")
    return textwrap.shorten(f"{name}: {sentence}" if sentence else name, _width(), placeholder=" …")


def _say(*lines: str) -> None:
    for line in lines:
        click.echo(shown(line))
    sys.stdout.flush()


def _laid_out(rows: Sequence[Checked]) -> list[str]:
    """Lay out what was found of an algorithm; networks on which nothing was tried are named in one line."""
    left_out = [row for row in rows if not any(ranks.tried for ranks in row.ranks)]
    lines = [line for alike in _grouped(row for row in rows if row not in left_out) for line in _rows(*alike)]
    if not any(row.faults for row in rows):  # a fault names its own case, and what comes behind it is not tried
        lines += _tried(ranks.scope for row in rows for ranks in row.ranks)
    return lines + (_wrapped(f"not tried on {', '.join(row.network for row in left_out)}", "  ") if left_out else [])


def _tried(scopes: Iterable[TriedCases]) -> list[str]:
    """Say what the cases of an algorithm had."""
    found = reduce(operator.or_, scopes)
    told = []
    if found.counts:
        least, most = min(found.counts), max(found.counts)
        told.append(f"counts of {least:,} to {most:,}" if most > least else f"a count of {least:,}")
    if found.pes:
        pes = "PE" if found.pes == {1} else "PEs"
        told.append(f"{_and([str(number) for number in sorted(found.pes)])} {pes} a rank")
    if found.dtypes:
        told.append(_and(sorted(found.dtypes)))
    if found.roots:
        told.append(f"the {_and([root for root in ROOTS if root in found.roots])} rank as root")
    return _wrapped(f"tried: {', '.join(told)}", "  ") if told else []


def _and(words: Sequence[str]) -> str:
    return " and ".join(filter(None, (", ".join(words[:-1]), words[-1])))


def _grouped(rows: Iterable[Checked]) -> list[list[Checked]]:
    """Put to each network those on which the same runs prove the same, or on which the same is refused."""
    groups: list[list[Checked]] = []
    for checked in rows:
        done = [ranks for ranks in checked.ranks if ranks.refusal is None]
        homes = {ranks.alike for ranks in done}
        same = (group for group in groups if _outcome(group[0]) == _outcome(checked))
        home = next((group for group in same if not done or homes == {group[0].network}), None)
        if home is not None:
            home.append(checked)
        else:
            groups.append([checked])
    return groups


def _outcome(checked: Checked) -> list[tuple[int, str | None]]:
    return [(ranks.world, ranks.refusal) for ranks in checked.ranks]


def _rows(checked: Checked, *alike: Checked) -> list[str]:
    """Lay out what was found on one network, and name those on which it is the same."""
    done = [ranks for ranks in checked.ranks if ranks.refusal is None]
    good = [ranks.world for ranks in done if not ranks.faults]
    bad = [ranks.world for ranks in done if ranks.faults]
    steps = max((r.steps for r in done), default=0)
    slots = max((r.slots for r in done if not r.faults), default=0)
    lines = [
        f"  {checked.network:<15} {'proved ' + spell_numbers(good) if good else '-':<14} "
        f"{_count(sum(r.cases for r in done), 'case'):>9} {sum(r.messages for r in done):>9,} messages "
        f"{steps:>3} steps {_wall(checked.wall_s):>7}"
    ]
    if alike:
        names = ", ".join(other.network for other in alike)
        lines += _wrapped(f"alike on {names}: it never asks which" if done else f"alike on {names}", "    ")
    if slots > 1:
        lines.append(f"    queues must hold {slots} messages at least")
    if bad:
        kinds = dict.fromkeys(ranks.faults[0].kind for ranks in done if ranks.faults)
        lines.append(f"    {' and '.join(_FAULT[kind] for kind in kinds)} for {spell_numbers(bad)} ranks")
    refused: dict[str, list[Ranks]] = {}
    for ranks in checked.ranks:
        if ranks.refusal is not None:
            refused.setdefault(_general(ranks), []).append(ranks)
    for why, those in refused.items():
        what, worlds = "refused" if those[0].tried else "not tried", spell_numbers([ranks.world for ranks in those])
        if len(those) == 1 or why == those[0].refusal:
            lines += _wrapped(f"{what} {worlds}: {those[0].refusal}", "    ")
        else:
            lines += _wrapped(f"{what} N = {worlds}: {why}", "    ")
    return lines


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def _general(ranks: Ranks) -> str:
    """Return a refusal with the number of ranks left out, so that those of several numbers are told once."""
    words = (ranks.refusal or "").split(" ")
    number = str(ranks.world)
    return " ".join(word.replace(number, "N") if word.strip(".,;:") == number else word for word in words)


def _wall(seconds: float) -> str:
    return f"{seconds * 1e3:.0f} ms" if seconds < 1 else f"{seconds:.1f} s"


def _verdict(found: Sequence[Checked], broken: Mapping[str, str]) -> list[str]:
    faults = [fault for checked in found for fault in checked.faults]
    unusable = [line for name, text in broken.items() for line in ("", *_wrapped(f"cannot be used: {name}", ""),
                *_wrapped(text, "  "))]  # fmt: skip
    held = max((ranks.slots for checked in found for ranks in checked.ranks), default=1)
    ends = "every rank ends with every contribution once, and nobody waits for ever"
    ends += f" where queues hold {held} messages" if held > 1 else ""
    if not faults and unusable:
        return [*unusable[1:], "", *_wrapped(f"proved, but for these: {ends}", "")]
    if not faults and any(ranks.scope.some_orders for checked in found for ranks in checked.ranks):
        return ["no fault found, in some orders of running: not proved, as tl.recv_any takes what comes first"]
    if not faults:
        return _wrapped(f"proved: {ends}", "")
    different = list({(fault.kind, fault.lines): fault for fault in reversed(faults)}.values())[::-1]
    lines = []
    for fault in different[:_MOST_TOLD]:
        lines += _fault_lines(fault)
    more = len(faults) - len(different[:_MOST_TOLD])
    if more:
        lines += ["", f"and {more} more {'faults' if more > 1 else 'fault'}; --json lists all"]
    return lines + unusable


def _in_one_line(found: Sequence[Checked], broken: Mapping[str, str]) -> str:
    faults = [fault for checked in found for fault in checked.faults]
    told = [f"{fault.kind}: {fault.case}: {' '.join(fault.sentence.split())}" for fault in faults[:1]]
    told = told or _verdict(found, {})[:1]
    told += [f"{len(faults) - 1} more faults"] if len(faults) > 1 else []
    return "; ".join([*told, *([f"{len(broken)} cannot be used"] if broken else [])])


def _summary(found: Sequence[Checked], wall_s: float, broken: int) -> list[str]:
    """Say how much was proved, where it was more than one algorithm."""
    names = list(dict.fromkeys(checked.algorithm for checked in found))
    if len(names) < 2:
        return []
    done = [ranks for checked in found for ranks in checked.ranks if ranks.refusal is None]
    bad = {checked.algorithm for checked in found if checked.faults}
    right = f", {len(names) - len(bad):,} of them right" if bad or broken else ""
    cases, runs = sum(ranks.cases for ranks in done), sum(ranks.runs for ranks in done)
    told = f"{_count(len(names) + broken, 'algorithm')}{right}: {_count(cases, 'case')} by {_count(runs, 'run')}"
    return [*([""] if bad else []), f"{told} in {_wall(wall_s)}"]


def _fault_lines(fault: Fault) -> list[str]:
    """Lay out one fault: the case, then the sentence."""
    here = f"{Path.cwd()}/"
    return ["", *_wrapped(f"{fault.kind}: {fault.case}", ""), *_wrapped(fault.sentence.replace(here, ""), "  ")]


def _width() -> int:
    """Return how wide a line may be."""
    return min(max(shutil.get_terminal_size((80, 24)).columns, 60), 120)


def _wrapped(text: str, indent: str) -> list[str]:
    return textwrap.wrap(
        text, _width(), initial_indent=indent, subsequent_indent=f"{indent}  ", break_long_words=False,
        break_on_hyphens=False,
    )  # fmt: skip


def _as_json(found: Sequence[Checked], broken: Mapping[str, str]) -> dict[str, Any]:
    """Return plain JSON types."""
    return {
        "schema": "kernbench.ccl.check/1",
        "proved": not broken and not any(checked.faults for checked in found),
        "broken": dict(broken),
        "topologies": [
            {
                "algorithm": checked.algorithm,
                "collective": checked.collective,
                "topology": checked.network,
                "wall_s": checked.wall_s,
                "ranks": [_ranks_json(ranks) for ranks in checked.ranks],
            }
            for checked in found
        ],
    }


def _ranks_json(ranks: Ranks) -> dict[str, Any]:
    return {
        "ranks": ranks.world,
        "proved": ranks.proved,
        "tried": ranks.tried,
        "refusal": ranks.refusal,
        "cases": ranks.cases,
        "messages": ranks.messages,
        "steps": ranks.steps,
        "slots": ranks.slots,
        "counts": sorted(ranks.scope.counts),
        "pes": sorted(ranks.scope.pes),
        "dtypes": sorted(ranks.scope.dtypes),
        "roots": sorted(ranks.scope.roots),
        "runs": ranks.runs,
        "alike": ranks.alike,
        "wall_s": ranks.wall_s,
        "faults": [
            {
                "kind": fault.kind,
                "case": str(fault.case),
                "rank": fault.rank,
                "pe": fault.pe,
                "step": fault.step,
                "elements": None if fault.start is None else [fault.start, fault.end],
                "lines": fault.lines,
                "sentence": fault.sentence,
            }
            for fault in ranks.faults
        ],
    }


@click.command("new")
@click.argument("name", metavar="NAME")
@click.option(
    "--collective", metavar="NAME", default="all_reduce", show_default=True, help="The collective that it computes."
)
@click.pass_obj
def new(shell: Shell, /, name: str, collective: str) -> int:
    """Write NAME.py, a short algorithm that works, to start from.

    A file that exists is never overwritten.
    """
    from kernbench_ccl.catalogue import Catalogue, meant
    from kernbench_ccl.cli.scaffold import next_steps, write_algorithm

    known = Catalogue.of(shell.plugins).collectives
    collective = meant(collective, known) or collective
    path = write_algorithm(name, collective, known=known)
    _say(f"wrote {path}: {collective}, right for any number of ranks on any network", "", *next_steps(path, collective))
    return 0

