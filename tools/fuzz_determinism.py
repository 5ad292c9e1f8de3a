"""Run one thing in many ways that must change nothing, and compare op-log hashes and times.

    python tools/fuzz_determinism.py [--seeds 0-19]

Each seed draws a bench with the small shapes of tools/golden.py, a machine and the bench's own seed. It is run plainly;
with a trace, an explanation, a scratchpad map, verified data, an output folder, and all of these; with the plug-ins
loaded in the other order; and in two processes with other hash seeds. One hash and one total must come of it. Without
data (only for benches that branch on none) the total must be the same too.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from kernbench_core.plugins import own_plugins

sys.path.insert(0, str(Path(__file__).resolve().parent))
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from attrs import frozen
from golden import BENCHES, RANKS

import kernbench as kb
from kernbench_core.plugins import Plugins, load_plugins

REPO = Path(__file__).resolve().parent.parent
ENTRY_POINTS = own_plugins()
#: Benches whose kernels or host programs branch on data: they take another time, or do not run, without.
BRANCHING = ("sparse-gemm", "moe-all-to-all")


@frozen
class Case:
    """What is run: a bench with its parameters on a machine."""

    bench: str
    params: Mapping[str, Any]
    topology: str
    seed: int


def case_of(number: int) -> Case:
    """Draw the case of a seed."""
    draw = random.Random(number)
    bench = draw.choice(sorted(BENCHES))
    topology = "default" if bench in RANKS else draw.choice(("tiny", "default"))
    return Case(bench, BENCHES[bench], topology, draw.randrange(1000))


def found(case: Case, plugins: Plugins, **options: Any) -> tuple[str | None, float]:
    """Run a case; return the hash of its op log and its time in ns."""
    result = kb.run(case.bench, case.topology, case.params, seed=case.seed, plugins=plugins, **options)
    return result.op_log_sha256, result.total_ns


def ways(folder: Path) -> dict[str, dict[str, Any]]:
    """Return the options that must change nothing."""
    files = {"trace": str(folder / "trace.json.gz"), "out": str(folder / "out")}
    looks = {"explain": True, "tcm_map": True, "verify_data": True}
    return {
        "again": {},
        "explain": {"explain": True},
        "tcm_map": {"tcm_map": True},
        "verify_data": {"verify_data": True},
        "trace": {"trace": files["trace"]},
        "everything": {**looks, **files},
        "on_progress": {"on_progress": lambda progress: None},
    }


def elsewhere(case: Case, hash_seed: int) -> tuple[str | None, float]:
    """Run a case in a process of its own with another hash seed."""
    arguments = [word for name, value in case.params.items() for word in ("-p", f"{name}={value}")]
    code = "import sys; from kernbench_core.cli import main; from kernbench_core.plugins import load_plugins; " \
        f"sys.exit(main(sys.argv[1:], load_plugins({ENTRY_POINTS!r}, installed=False)))"  # fmt: skip
    command = [sys.executable, "-c", code, "run", case.bench, "--topology", case.topology, "--seed", str(case.seed)]
    env = {**os.environ, "PYTHONHASHSEED": str(hash_seed), "PYTHONPATH": str(REPO)}
    done = subprocess.run([*command, *arguments, "--json", "-q"], env=env, capture_output=True, text=True, check=True)
    told = json.loads(done.stdout)
    return told["op_log_sha256"], told["total_ns"]


def differences(case: Case, processes: bool = True) -> Iterator[str]:
    """Run a case in every way; yield a sentence for each that changed something."""
    plugins = load_plugins(ENTRY_POINTS, installed=False)
    plain = found(case, plugins)
    with tempfile.TemporaryDirectory() as folder:
        for name, options in ways(Path(folder)).items():
            if (seen := found(case, plugins, **options)) != plain:
                yield f"{case} with {name}: must give {plain}, not {seen}"
    if (seen := found(case, load_plugins(ENTRY_POINTS[::-1], installed=False))) != plain:
        yield f"{case} with plug-ins in the other order: must give {plain}, not {seen}"
    if case.bench not in BRANCHING and (seen := found(case, plugins, data=False))[1] != plain[1]:
        yield f"{case} without data: must take {plain[1]} ns, not {seen[1]}"
    for hash_seed in (1, 4242) if processes else ():
        if (seen := elsewhere(case, hash_seed)) != plain:
            yield f"{case} with PYTHONHASHSEED={hash_seed}: must give {plain}, not {seen}"


def main() -> int:
    """Run the seeds that are asked for; 1 when one of them differed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", default="0-19", help="A-B, or one number")
    given = parser.parse_args()
    first, _, last = given.seeds.partition("-")
    seeds = range(int(first), int(last or first) + 1)
    failed = 0
    for seed in seeds:
        for difference in differences(case_of(seed)):
            failed += 1
            print(f"seed {seed}: {difference}", flush=True)
    print(f"{len(seeds)} cases in {len(ways(Path())) + 5} ways, {failed} differences")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
