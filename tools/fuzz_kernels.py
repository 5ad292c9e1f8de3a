"""Run made-up kernels on kernbench and on the reference interpreter, and print the smallest program of each mismatch.

    python tools/fuzz_kernels.py --seeds 0-999 -j 2

docs/testing.md says what is covered. Exit codes: 0 when nothing differs, 1 when something does.
"""

from __future__ import annotations

import argparse
import multiprocessing
import sys
import time
import traceback
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.reference.generator import Maker
from tests.reference.harness import Mismatch, compare, run_reference
from tests.reference.programs import Program
from tests.reference.shrink import shrink
from tests.reference.tiles import UndeterminedError


def main(arguments: list[str] | None = None) -> int:
    """Run the seeds; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=_seeds, default=range(100), help="A-B, both included, or one number")
    parser.add_argument("-j", type=int, default=1, metavar="N", help="processes")
    parser.add_argument(
        "--topology", choices=("tiny", "default"), help="one machine for all; default: as the seed says"
    )
    parser.add_argument("--show", action="store_true", help="print the programs and run nothing")
    parser.add_argument(
        "--shrink-seconds", type=float, default=60.0, help="time for making one mismatch small; 0 leaves it"
    )
    given = parser.parse_args(arguments)
    if given.show:
        for seed in given.seeds:
            print(Maker(seed, topology=given.topology).program().source())
        return 0
    began, counts = time.monotonic(), Counter[str]()
    tasks = [(seed, given.topology, given.shrink_seconds) for seed in given.seeds]
    with multiprocessing.Pool(given.j) as pool:
        for seed, kind, text in pool.imap_unordered(_try, tasks):
            counts[kind] += 1
            if text:
                print(f"seed {seed}: {text}", flush=True)
    seconds = time.monotonic() - began
    print(f"{len(tasks)} programs in {seconds:.0f} s: " + ", ".join(f"{n} {kind}" for kind, n in counts.most_common()))
    return 0 if set(counts) <= {"alike", "undetermined"} else 1


def _seeds(text: str) -> range:
    first, _, last = text.partition("-")
    return range(int(first), int(last or first) + 1)


def _try(task: tuple[int, str | None, float]) -> tuple[int, str, str]:
    """Give the seed, what came of it in a word, and what to print."""
    seed, topology, seconds = task
    try:
        program = Maker(seed, topology=topology).program()
    except UndeterminedError:
        return seed, "undetermined", ""
    except Exception:
        return seed, "not made", f"the generator failed.\n{traceback.format_exc()}"
    try:
        mismatch = compare(program)
    except UndeterminedError:
        return seed, "undetermined", ""
    if mismatch is None:
        return seed, "alike", ""
    if seconds:
        program, mismatch = shrink(program, mismatch, seconds)
    return seed, f"with a mismatch ({mismatch.kind})", report(program, mismatch)


def report(program: Program, mismatch: Mismatch) -> str:
    """Give the sentence of a mismatch and a file for `kernbench run --verify-data`."""
    source = program.source()
    if mismatch.kind == "value":
        source = source.replace("WANTED = {}", f"WANTED = {_wanted(program)}")
    return f"{mismatch.sentence}\n# kernbench run FILE --topology {program.topology} --verify-data\n{source}"


def _wanted(program: Program) -> str:
    tensors = run_reference(program).tensors
    lines = [
        f'    "{tensor.name}": np.array({tensors[tensor.name].numpy().astype(float).tolist()}),'
        for tensor in program.tensors
        if tensor.output and tensor.name in tensors
    ]
    return (
        "{  # what the interpreter gives\n" + "\n".join(lines).replace("nan", "np.nan").replace("inf", "np.inf") + "\n}"
    )


if __name__ == "__main__":
    sys.exit(main())
