"""Run machines that nobody would write down, and see that kernbench says what is wrong with them.

    python tools/fuzz_config.py [--seeds 0-199] [-j 2]

Each seed makes a preset wrong in one to four places, by `--set` and in the text of the file, and asks for one thing:
to validate it, to draw it, to run a small bench, or a small collective. What may come of it: a right result, or
sentences with an exit code of 2 to 6. What may not: a traceback, wrong data, a failed sanity check (7), an exit code
that nobody documents, a death, or no end within 60 s. What fails is made smaller, mutation by mutation, and printed as
a command to type.
"""

from __future__ import annotations

import argparse
import os
import random
import re
import resource
import shlex
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from attrs import evolve, frozen

from kernbench_core.plugins import own_plugins

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from kernbench_core.cli import main as kernbench
from kernbench_core.plugins import Plugins, load_plugins
from kernbench_core.runs.bench_run import configure

REPO = Path(__file__).resolve().parent.parent
ENTRY_POINTS = own_plugins()
PRESETS = ("tiny", "tiny", "tiny", "default")
SECONDS = 60
MEMORY = 6 * 2**30
LIMITS = ("--max-events", "150000", "--timeout", "20 s")
COMMANDS = (
    ("topology", "validate", "{machine}"),
    ("topology", "show", "{machine}", "--view", "sip"),
    ("topology", "show", "{machine}", "--view", "cube"),
    ("run", "vector-add", "--topology", "{machine}", "-p", "n=3000", "--verify-data", *LIMITS),
    ("run", "gemm", "--topology", "{machine}", "-p", "M=64", "-p", "N=64", "-p", "K=64", "-p", "tile_m=32",
     "-p", "tile_n=32", "-p", "tile_k=32", "--verify-data", *LIMITS),
    ("run", "gemm-composite", "--topology", "{machine}", "-p", "M=64", "-p", "N=64", "-p", "K=64", "--explain",
     *LIMITS),
    ("run", "softmax", "--topology", "{machine}", "--json", *LIMITS),
    ("ccl", "all_reduce", "--topology", "{machine}", "--ranks", "2", "-b", "1K", "-e", "1K"),
)  # fmt: skip
#: What a value becomes: nothing that was meant, and what was meant with another size, unit or type.
STRANGE = (
    "0", "-1", "1", "2", "3", "7", "1000000000", "1e30", "-0.0", "0.5", ".nan", ".inf", "null", "true", "''", "[]",
    "{}", "[1, 2]", "{a: 1}", "auto", "no such thing", "12 ns", "0 ns", "-3 ns", "1e9 ns", "1 s", "100 GB/s", "0 GB/s",
    "1 B/s", "1e15 GB/s", "64 KiB", "0 B", "1 B", "8 EiB", "1 GHz", "1 mHz", "100 %", "١٢ ns", "1_000", "0x10",
    "2026-11-22",
    "host", "pe_gemm", "builtin.pe_gemm", "builtin.hbm_ctrl_bank", "ring", "switch", "torus_2d", "f16",
)  # fmt: skip

#: Names that may stand where the presets say others.
FITTING = (
    *(f"system.network.topology={shape}" for shape in ("ring", "mesh_2d", "torus_2d", "fully_connected", "switch")),
    *(f"system.sips={count}" for count in (1, 2, 3, 4)),
    *(f"sip.mesh.{extent}={count}" for extent in ("width", "height") for count in (1, 2, 3)),
    *(f"cube.pes={count}" for count in (1, 2, 3, 6, 8, 16)),
    "components.hbm_ctrl.impl=builtin.hbm_ctrl_bank",
    "components.pe_gemm.impl=builtin.pe_gemm_systolic",
)
_FIGURE = re.compile(r"([\d.]+) ([a-zA-Z/%]+)")


@frozen
class Mutation:
    """One thing made wrong: a setting (`key=value`), or an edit of a line of the preset's text."""

    setting: str | None = None
    edit: tuple[int, str] | None = None


@frozen
class Case:
    """One machine and what is asked of it."""

    preset: str
    command: tuple[str, ...]
    mutations: tuple[Mutation, ...]

    def arguments(self, folder: Path) -> list[str]:
        """Return the command line; a preset whose text is edited is written into `folder`."""
        machine = self.preset
        edits = [(*line_of(self.preset, m.edit[0]), m.edit[1]) for m in self.mutations if m.edit is not None]
        if edits:
            machine = str(folder / f"{self.preset}.yaml")
            for name, text in texts(self.preset).items():
                lines = text.splitlines()
                for file, number, line in edits:
                    if file == name:
                        lines[number] = line
                (folder / name).write_text("\n".join(lines).replace("base: base.yaml", "base: ./base.yaml") + "\n")
        sets = [word for m in self.mutations if m.setting is not None for word in ("--set", m.setting)]
        return [word.format(machine=machine) if "{machine}" in word else word for word in self.command] + sets


def texts(preset: str) -> dict[str, str]:
    """Return the files of a preset, its base first."""
    folder = REPO / "kernbench_builtin" / "topologies"
    return {name: (folder / name).read_text(encoding="utf-8") for name in ("base.yaml", f"{preset}.yaml")}


def line_of(preset: str, number: int) -> tuple[str, int]:
    """Return the file, and the index in it, of a line counted through the files of a preset."""
    for name, text in texts(preset).items():
        lines = text.count("\n")
        if number < lines:
            return name, number
        number -= lines
    raise IndexError(number)


def leaves(tree: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[str, Any]]:
    """Yield the dotted key and the value of everything that a configuration says."""
    if isinstance(tree, Mapping) and tree:
        for key, item in tree.items():
            yield from leaves(item, (*path, str(key)))
    else:
        yield ".".join(path), tree


def known_keys(plugins: Plugins) -> dict[str, list[tuple[str, Any]]]:
    """Return for each preset the keys that it says, and every parameter of every model that it names."""
    found = {}
    for preset in set(PRESETS):
        data = configure(plugins, preset).data
        keys = dict(leaves(data))
        for kind, entry in data["components"].items():
            for param in plugins.components.load(entry["impl"]).PARAMS:
                keys.setdefault(f"components.{kind}.params.{param.name}", param.default)
        found[preset] = sorted(keys.items(), key=lambda item: item[0])
    return found


def case_of(seed: int, keys: Mapping[str, list[tuple[str, Any]]]) -> Case:
    """Make the case of a seed: two in three only change sizes, so that most of those are machines that run."""
    draw = random.Random(seed)
    preset, command = draw.choice(PRESETS), draw.choice(COMMANDS)
    make = _resized if draw.random() < 0.67 else _mutation
    return Case(preset, command, tuple(make(draw, preset, keys[preset]) for _ in range(draw.randint(1, 4))))


def _resized(draw: random.Random, preset: str, keys: list[tuple[str, Any]]) -> Mutation:
    """Change one figure to another of its kind, or one of a few names to another that fits."""
    if draw.random() < 0.2:
        return Mutation(setting=draw.choice(FITTING))
    key, value = draw.choice([(key, value) for key, value in keys if sized(value)])
    return Mutation(setting=f"{key}={_other_size(draw, value)}")


def sized(value: Any) -> bool:
    """Tell whether a value is a figure."""
    return isinstance(value, int | float | bool) or (isinstance(value, str) and bool(_FIGURE.fullmatch(value)))


def _other_size(draw: random.Random, value: Any) -> str:
    if isinstance(value, bool):
        return str(not value).lower()
    if isinstance(value, int):
        return str(max(0, draw.choice((1, 2, 3, 5, 8, value + 1, value - 1, value * 2, value // 2, value * 16))))
    factor = draw.choice((1e-3, 0.1, 0.5, 0.75, 1.001, 2, 3, 10, 1e3))
    if isinstance(value, float):
        return f"{value * factor:g}"
    figure = _FIGURE.fullmatch(value)
    assert figure is not None
    amount = float(figure[1]) * factor
    whole = "B" in figure[2] and "/" not in figure[2]
    return f"{max(1, int(amount)) if whole else amount:g} {figure[2]}"


def _mutation(draw: random.Random, preset: str, keys: list[tuple[str, Any]]) -> Mutation:
    if draw.random() < 0.75:
        key, value = draw.choice(keys)
        if draw.random() < 0.05:
            key = draw.choice((key + ".deeper", key.rpartition(".")[0] or key, key + "x", key.replace("e", "é", 1)))
        return Mutation(setting=f"{key}={_strange(draw, value)}")
    number = draw.randrange(sum(text.count("\n") for text in texts(preset).values()))
    name, index = line_of(preset, number)
    line = texts(preset)[name].splitlines()[index]
    way = draw.randrange(6)
    if way == 0:
        line = ""
    elif way == 1:
        line = " " * draw.randint(1, 3) + line
    elif way == 2:
        line = line.replace(":", draw.choice(("", "::", " :", ": &a", ": *a", ": !!python/object")), 1)
    elif way == 3:
        line = f"{line.partition(':')[0]}: {draw.choice(STRANGE)}"
    elif way == 4:
        line = line + "\n" + line
    else:
        at = draw.randint(0, len(line))
        line = line[:at] + draw.choice("\t\x1b{}[]|>'\"%@`,\u202e") + line[at:]
    return Mutation(edit=(number, line))


def _strange(draw: random.Random, value: Any) -> str:
    if draw.random() < 0.3 and sized(value):
        return _other_size(draw, value)
    return draw.choice(STRANGE)


def start(case: Case, folder: Path, plugins: Plugins) -> int:
    """Begin a case in a process of its own; what it says goes to a file in `folder`."""
    arguments = case.arguments(folder)
    child = os.fork()
    if child:
        return child
    code = 99
    try:
        os.setsid()
        os.chdir(folder)
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
        with (folder / "said").open("w", encoding="utf-8") as said:
            os.dup2(said.fileno(), 1)
            os.dup2(said.fileno(), 2)
            sys.stdout = sys.stderr = said
            code = kernbench(arguments, plugins)
    finally:
        os._exit(code)


def outcomes(
    cases: Mapping[int, Case], jobs: int, plugins: Plugins, codes: Counter[int] | None = None
) -> Iterator[tuple[int, str]]:
    """Run cases, some at a time; yield what is wrong with what came of each ('' is nothing), as they end.

    `codes` counts exit codes.
    """
    waiting = list(cases)
    running: dict[int, tuple[int, float, tempfile.TemporaryDirectory[str]]] = {}
    while waiting or running:
        while waiting and len(running) < jobs:
            number = waiting.pop(0)
            folder = tempfile.TemporaryDirectory()
            running[start(cases[number], Path(folder.name), plugins)] = number, time.monotonic(), folder
        ended, status = os.waitpid(-1, os.WNOHANG)
        if ended:
            number, _, folder = running.pop(ended)
            said = Path(folder.name) / "said"
            words = said.read_text(encoding="utf-8", errors="replace") if said.exists() else ""
            folder.cleanup()
            code = os.waitstatus_to_exitcode(status)
            if codes is not None:
                codes[code] += 1
            yield number, fault_of(code, words)
            continue
        time.sleep(0.005)
        for child, (number, began, folder) in list(running.items()):
            if time.monotonic() - began > SECONDS:
                os.killpg(child, signal.SIGKILL)
                os.waitpid(child, 0)
                del running[child]
                folder.cleanup()
                yield number, f"no end: not within {SECONDS} s"


def fault_of(code: int, words: str) -> str:
    """Say what is wrong with an exit code and what was said; '' where nothing is."""
    if code < 0:
        return f"died: of signal {-code}"
    if "Traceback" in words or "kernbench itself failed" in words:
        last = [line for line in words.splitlines() if re.match(r"[\w.]*(Error|Exception|Interrupt)\b", line)]
        return f"a traceback: {last[-1] if last else 'kernbench itself failed'}"
    if code in (1, 7) or code > 7:
        return f"exit code {code}: {words.strip().splitlines()[-1][:160] if words.strip() else ''}"
    if code and not words.strip():
        return f"exit code {code}: without a word"
    return ""


def smaller(case: Case, fault: str, plugins: Plugins) -> Case:
    """Leave out mutations as long as the same kind of fault remains."""
    kind = fault.partition(":")[0]
    shrinking = True
    while shrinking:
        shrinking = False
        for left_out in range(len(case.mutations)):
            fewer = evolve(case, mutations=case.mutations[:left_out] + case.mutations[left_out + 1 :])
            (_, found), = outcomes({0: fewer}, 1, plugins)
            if found.partition(":")[0] == kind:
                case, shrinking = fewer, True
                break
    return case


def shown(case: Case) -> str:
    """Return a case as something to type."""
    folder = Path(tempfile.gettempdir()) / "fuzz_config"
    folder.mkdir(exist_ok=True)
    return shlex.join(["kernbench", *case.arguments(folder)])


def faults(seeds: Sequence[int], jobs: int, codes: Counter[int]) -> Iterator[tuple[int, str, str]]:
    """Run seeds; yield each that failed with what is wrong and the command that shows it."""
    plugins = load_plugins(ENTRY_POINTS, installed=False)
    keys = known_keys(plugins)
    cases = {seed: case_of(seed, keys) for seed in seeds}
    for seed, fault in outcomes(cases, jobs, plugins, codes):
        if fault:
            yield seed, fault, shown(smaller(cases[seed], fault, plugins))


def main() -> int:
    """Run the seeds that are asked for; 1 when one of them failed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", default="0-199", help="A-B, or one number")
    parser.add_argument("-j", "--jobs", type=int, default=2, help="how many at a time")
    given = parser.parse_args()
    first, _, last = given.seeds.partition("-")
    seeds = range(int(first), int(last or first) + 1)
    failed, codes = 0, Counter[int]()
    for seed, fault, command in faults(seeds, given.jobs, codes):
        failed += 1
        print(f"seed {seed}: {fault}\n  {command}", flush=True)
    counted = ", ".join(f"{count} x {code}" for code, count in sorted(codes.items()))
    print(f"{len(seeds)} machines, {failed} of them with a fault; exit codes {counted}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
