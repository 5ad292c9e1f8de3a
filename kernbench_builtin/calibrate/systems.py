"""Public systems whose measurements are published: their presets, and how far these are from each published row.

The rows lie in `published/` as the formats of `kernbench calibrate` have them, with their source above them; it fitted
the presets to them.
"""

from __future__ import annotations

import csv
from collections.abc import Sequence
from importlib import resources
from pathlib import Path

from attrs import frozen

from kernbench_builtin.calibrate.calibration import Logs, open_logs, signed_percent
from kernbench_core.calibration import LogOptions, MachineChoice
from kernbench_core.errors import UsageError
from kernbench_core.params import did_you_mean
from kernbench_core.plugins import Plugins

TOLERANCE = 0.005
"""By how much an error may differ from the one that is known of its row, both parts of what was published."""
_HERE = "kernbench_builtin.calibrate"
_KNOWN = "known_errors.csv"


@frozen
class System:
    """A system: its preset, the file of its published rows with their format, and where they were published.

    `algo` and `config` (a file beside the rows) say how collectives run.
    """

    name: str
    topology: str
    rows: str
    form: str
    title: str
    source: str
    url: str
    algo: str | None = None
    config: str | None = None
    simulate_to: int = 4 << 20


@frozen
class SystemRow:
    """A published figure and what the preset gives, in `unit`; errors as parts of the published one.

    `known` is the error that it has been found to have.
    """

    case: str
    published: float
    simulated: float
    unit: str
    known: float

    @property
    def error(self) -> float:
        """How far the simulation is from what was published, as a part of it."""
        return self.simulated / self.published - 1

    @property
    def kept(self) -> bool:
        """Whether it is as far off as is known, and no nearer either."""
        return abs(self.error - self.known) <= TOLERANCE


@frozen
class SystemComparison:
    """The published rows of a system beside what its preset takes, and sentences about them."""

    system: System
    rows: tuple[SystemRow, ...]
    notes: tuple[str, ...]

    @property
    def kept(self) -> bool:
        """Whether every row is as far off as is known."""
        return all(row.kept for row in self.rows)


SYSTEMS: tuple[System, ...] = (
    System(
        "a100_node",
        "a100_node",
        "a100_node.log",
        "nccl",
        "All-reduce of eight A100-SXM4-40GB on the NVSwitches of one node, nccl-tests",
        "Oracle Japan, OCI tutorials, building a GPU cluster: NCCL Tests on one node",
        "https://github.com/oracle-japan/ocitutorials",
        algo="ring",
        config="ccl.yaml",
        simulate_to=32 << 20,
    ),
    System(
        "tpu7x_slice",
        "tpu7x_slice",
        "tpu7x_slice.csv",
        "collectives",
        "All-gather of one device of each of four TPU7x chips, slice 2x2x1 of a torus",
        "Google, accelerator-microbenchmarks, All Gather Microbenchmark, expected results",
        "https://github.com/AI-Hypercomputer/accelerator-microbenchmarks",
        algo="torus",
        config="ccl.yaml",
        simulate_to=32 << 20,
    ),
    System(
        "u280_hbm",
        "u280_hbm",
        "u280_hbm.csv",
        "memory",
        "The two HBM2 stacks of an AMD Alveo U280: latency of a burst alone, and stream",
        "Wang, Huang, Zhang, Alonso: Benchmarking High Bandwidth Memory on FPGAs (Shuhai), FCCM 2020; latencies as "
        "KU Leuven's HeMAiA quotes them",
        "https://arxiv.org/abs/2005.04324",
    ),
)


def system_of(name: str) -> System:
    """Return a system by its name; raise UsageError with a guess for one that is not there."""
    known = {system.name: system for system in SYSTEMS}
    if name not in known:
        raise UsageError(
            f"option --check must be one of {', '.join(known)}, not {name!r}."
            f"{did_you_mean(name, known).partition(' Known: ')[0]}"
        )
    return known[name]


def published_logs(system: System, plugins: Plugins, jobs: int = 1) -> Logs:
    """Read the published rows of a system, to be simulated as its preset was fitted."""
    config = None if system.config is None else str(_published(system.config))
    options = LogOptions(algo=system.algo, config=config, simulate_to=system.simulate_to, jobs=jobs)
    return open_logs([_published(system.rows)], plugins, options, system.form)


def compare_system(system: System, plugins: Plugins, jobs: int = 1) -> SystemComparison:
    """Simulate each published row of a system on its preset."""
    logs = published_logs(system, plugins, jobs)
    took = logs.simulate(MachineChoice(system.topology))
    known = known_errors(system)
    rows = tuple(
        SystemRow(row.label, row.ns, one.ns, "ns", known.get(row.label, 0.0))
        for row, one in zip(logs.rows, took, strict=True)
    )
    mean = sum(abs(row.error) for row in rows) / len(rows)
    worst = max(rows, key=lambda row: abs(row.error))
    other = [row for row in rows if not row.kept]
    notes = [f"{len(rows)} rows: {mean:.1%} off on average, {signed_percent(worst.error)} at most ({worst.case}); "
             f"{len(rows) - len(other)} of them within {TOLERANCE:.1%} of the error that is known."]  # fmt: skip
    notes += [
        f"{row.case} must be {signed_percent(row.known)} off, not {signed_percent(row.error)}: a model that it runs on "
        "has changed."
        for row in other
    ]
    more = sum(one.extended for one in took)
    if more:
        notes.append(f"Larger than what is simulated, and continued from there: {more} of them.")
    return SystemComparison(system, rows, tuple(notes))


def known_errors(system: System) -> dict[str, float]:
    """Return the error that each published row of a system has been found to have, by its case."""
    lines = csv.reader(_published(_KNOWN).read_text(encoding="utf-8").splitlines())
    return {case: float(error) for name, case, error in lines if name == system.name}


def write_known_errors(found: Sequence[SystemComparison]) -> None:
    """Write down the errors of all systems as what is known of them."""
    with _published(_KNOWN).open("w", encoding="utf-8", newline="") as file:
        lines = csv.writer(file, lineterminator="\n")
        lines.writerow(["system", "case", "error"])
        lines.writerows([one.system.name, row.case, f"{row.error:.4f}"] for one in found for row in one.rows)


def _published(name: str) -> Path:
    return Path(str(resources.files(_HERE) / "published" / name))
