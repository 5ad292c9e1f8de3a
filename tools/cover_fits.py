"""Count how often a fit's stated errors cover the truth: random machines by seed, with logs by closed form.

    python tools/cover_fits.py links|stepped|copies|inside|products [--count 100] [--seed 0] [--noise 0.02]

A closed form shares no code with kernbench, but for what the base machine takes on its dies, for a start and for a byte
of a message: two small simulations of other parameters tell that. A log has noise on every time. For each parameter the
table has how many of the machines the stated error covers, the middle of the errors, and of how far values are off.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from attrs import Factory, frozen

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from kernbench_builtin.calibrate import calibrate, open_logs
from kernbench_core.calibration import LogOptions, MachineChoice
from kernbench_core.errors import UsageError
from kernbench_core.plugins import Plugins, load_plugins

RANKS = 4
WIDE = ("system.network.topology=ring", f"system.sips={RANKS}", "cube.pes=1", "host.pcie.latency=300 ns")
RING = [1 << at for at in range(12, 25)]
COPIES = [64, 4096, 65536, 262144, 1 << 20, 2 << 20, 4 << 20, 16 << 20]
PRODUCTS = [(256, 256, n) for n in (256, 512, 1024, 2048)] + [(512, 512, n) for n in (256, 512, 1024, 2048)]
TLP = (256 + 24) / 256
"""Bytes on a PCIe wire for one of a copy: headers of 24 B for 256 B, docs/topology.md."""

Dies = tuple[float, float]
"""What dies take of a case in ns, and of a ring's step for each byte of a message besides."""
Times = Callable[[dict[str, float], Dies], list[float]]


@frozen
class Family:
    """Machines of one kind: parameters with the ends of their logarithms, the log's cases, and their closed form.

    `times` gives ns of the cases for parameters and what the dies take besides, which the first case tells at `known`,
    and of a byte the case number `larger`.
    """

    form: str
    header: str
    cases: Sequence[str]
    ends: dict[str, tuple[float, float]]
    keys: dict[str, str]
    known: dict[str, float]
    times: Times
    topology: str = "tiny"
    sets: tuple[str, ...] = ()
    options: LogOptions = Factory(LogOptions)
    larger: int = 0


MESSAGE = 256 << 10
STEPS = 2 * (RANKS - 1)


def pipelined(size: float, latency: float, bandwidth: float, byte: float) -> float:
    """Return the time of a ring whose ranks pass on each message as it comes, in ns, message by message."""
    whole = size / RANKS
    messages = max(1, round(whole / MESSAGE))
    wire, latency = whole / messages / bandwidth, latency + whole / messages * byte
    free, there = 0.0, [0.0] * messages
    for _ in range(STEPS):
        for at in range(messages):
            free = max(free, there[at]) + wire
            there[at] = free + latency
    return there[-1]


def stepped(size: float, latency: float, bandwidth: float, byte: float) -> float:
    """Return the time of a ring whose ranks wait at each step, in ns."""
    return STEPS * (latency + min(MESSAGE, size / RANKS) * byte + size / RANKS / bandwidth)


Way = Callable[[float, float, float, float], float]


def ring(way: Way) -> Times:
    return lambda p, dies: [way(n, p["link-latency"] + dies[0] / STEPS, p["link-bandwidth"], dies[1]) for n in RING]


def rings(way: Way, folder: Path) -> Family:
    (config := folder / "ccl.yaml").write_text("defaults: {chunk: 256 KiB}\n")
    options = LogOptions(algo="ring", config=str(config), pipeline=way is pipelined)
    keys = {"link-latency": "system.network.latency={} ns", "link-bandwidth": "system.network.bandwidth={} GB/s"}
    return Family(
        "collectives", "collective,ranks,bytes", [f"all_reduce,{RANKS},{n}" for n in RING],
        {"link-latency": (500, 5000), "link-bandwidth": (20, 120)}, keys,
        {"link-latency": 1500.0, "link-bandwidth": 100.0}, ring(way), "a100_node", WIDE, options, 7,
    )  # fmt: skip


def copies() -> Family:
    kinds = [(kind, n) for kind in ("h2d", "d2h") for n in COPIES]
    keys = {"dma-overhead": "components.host.params.overhead={} ns", "pcie-bandwidth": "host.pcie.bandwidth={} GB/s"}

    def times(p: dict[str, float], dies: Dies) -> list[float]:
        return [p["dma-overhead"] + dies[0] + n * TLP / p["pcie-bandwidth"] for _, n in kinds]

    return Family("copies", "kind,bytes", [f"{kind},{n}" for kind, n in kinds],
                  {"dma-overhead": (300, 9000), "pcie-bandwidth": (4, 100)}, keys,
                  {"dma-overhead": 1000.0, "pcie-bandwidth": 50.0}, times)  # fmt: skip


def inside() -> Family:
    """Copies inside the memory of a package: each byte is read and written once, by four slices of 4 x 25.6 GB/s."""
    keys = {"launch-overhead": "components.io_cpu.params.overhead={} ns",
            "hbm-efficiency": "components.hbm_ctrl.params.efficiency={}"}  # fmt: skip

    def times(p: dict[str, float], dies: Dies) -> list[float]:
        return [2 * p["launch-overhead"] + dies[0] + 2 * n / (4 * 4 * 25.6 * p["hbm-efficiency"]) for n in COPIES]

    return Family("copies", "kind,bytes", [f"d2d,{n}" for n in COPIES],
                  {"launch-overhead": (300, 9000), "hbm-efficiency": (0.2, 1)}, keys,
                  {"launch-overhead": 1000.0, "hbm-efficiency": 0.9}, times)  # fmt: skip


def products() -> Family:
    """Products by four arrays of 32 x 64 at 1 GHz, whose operands come as fast as they are wanted."""
    keys = {"launch-overhead": "components.io_cpu.params.overhead={} ns",
            "gemm-efficiency-f16": "components.pe_gemm.params.rates.f16={}"}  # fmt: skip
    peak = 4 * ARRAY * 2

    def times(p: dict[str, float], dies: Dies) -> list[float]:
        return [2 * p["launch-overhead"] + dies[0] + 2.0 * m * n * k / peak / p["gemm-efficiency-f16"]
                for m, n, k in PRODUCTS]  # fmt: skip

    return Family("gemm", "M,N,K,dtype", [f"{m},{n},{k},f16" for m, n, k in PRODUCTS],
                  {"launch-overhead": (300, 9000), "gemm-efficiency-f16": (0.1, 1)}, keys,
                  {"launch-overhead": 1000.0, "gemm-efficiency-f16": 0.3}, times)  # fmt: skip


ARRAY = 32 * 64.0
"""Multiply-accumulates per ns of one array of `tiny`."""


def on_dies(family: Family, plugins: Plugins) -> Dies:
    """Return what a machine of known parameters takes for its smallest cases beside their closed forms."""
    sets = [family.keys[name].format(value) for name, value in family.known.items()]
    ((own, rows),) = open_log(family, [1.0] * len(family.cases), plugins).groups
    took = own.simulate(rows[: family.larger + 1], MachineChoice(family.topology, (*family.sets, *sets)))
    form = family.times(family.known, (0.0, 0.0))
    start = took[0].ns - form[0]
    if not family.larger:
        return start, 0.0
    more = took[-1].ns - form[family.larger] - start
    return start, more / STEPS * RANKS / RING[family.larger]


def open_log(family: Family, times: Sequence[float], plugins: Plugins):  # type: ignore[no-untyped-def]
    with tempfile.TemporaryDirectory() as folder:
        (log := Path(folder) / "log.csv").write_text("\n".join(
            [f"{family.header},time_ns", *(f"{case},{ns!r}" for case, ns in zip(family.cases, times, strict=True))]
        ))  # fmt: skip
        return open_logs([log], plugins, family.options, family.form)


def trial(family: Family, dies: Dies, seed: int, noise: float, plugins: Plugins) -> dict[str, tuple[float, float]]:
    """Return for each parameter that has one the error stated, and how far it is off, parts of the value fitted."""
    rng = np.random.default_rng(seed)
    truth = {name: float(np.exp(rng.uniform(*np.log(ends)))) for name, ends in family.ends.items()}
    times = np.array(family.times(truth, dies)) * (1 + rng.normal(0, noise, len(family.cases)))
    try:
        found = calibrate(open_log(family, times.tolist(), plugins), MachineChoice(family.topology, family.sets))
    except UsageError as refused:
        print(f"seed {seed}: refused, {refused}", flush=True)
        return {}
    print(f"seed {seed}: {found.mean_error:.2%} off, checks {found.check_error}, " + ", ".join(
        f"{one.unknown.name} {one.value:.5g} +- {one.error or 0:.2%} ({one.value / truth[one.unknown.name] - 1:+.2%})"
        for one in found.values
    ), flush=True)  # fmt: skip
    return {one.unknown.name: (one.error, 1 - truth[one.unknown.name] / one.value)
            for one in found.values if one.error is not None}  # fmt: skip


def families(folder: Path) -> dict[str, Family]:
    return {"links": rings(pipelined, folder), "stepped": rings(stepped, folder), "copies": copies(),
            "inside": inside(), "products": products()}  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("family")
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--noise", type=float, default=0.02)
    given = parser.parse_args()
    plugins = load_plugins()
    with tempfile.TemporaryDirectory() as folder:
        family = families(Path(folder))[given.family]
        dies = on_dies(family, plugins)
        seeds = range(given.seed, given.seed + given.count)
        found = [one for seed in seeds if (one := trial(family, dies, seed, given.noise, plugins))]
    print(f"{given.family}: {len(found)} of {given.count} were fitted; on dies {dies[0]:.0f} ns")
    for name in family.ends:
        pairs = np.array([one[name] for one in found if name in one])
        covered = int(np.sum(np.abs(pairs[:, 1]) <= pairs[:, 0]))
        middle, off = np.median(np.abs(pairs), axis=0)
        print(f"{name:22} covered {covered:4d} of {len(pairs):4d}  stated {middle:7.2%}  off {off:7.2%}")


if __name__ == "__main__":
    main()
