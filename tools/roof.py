"""Run benches, and print the time of their kernels over the roof of the machine: one row of a table for each.

    python tools/roof.py [--data] [--update] [BENCH[@TOPOLOGY][,KEY=VALUE …] …]

A roof is the time that no schedule goes below (kernbench_builtin/explain/roof.py); it stands beside the phase `kernel`.
A KEY with a dot is one of the machine, another one a parameter of the bench: `gemm,M=1024,pe.tcm.capacity=32 MiB`.
Without benches the table of docs/benches.md is made, which `--update` writes there. `--data` verifies data, too.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Annotated

import attrs

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from kernbench_builtin.explain.roof import Roof, roof_of
from kernbench_core.host.session import GraphEngine
from kernbench_core.plugins import RunPartEntry, load_plugins, own_plugins
from kernbench_core.runs.bench_run import run
from kernbench_core.runs.options import Option, OptionRecord
from kernbench_core.runs.parts import RunPart
from kernbench_core.units import format_time

PAGE = Path(__file__).resolve().parent.parent / "docs" / "benches.md"
BEGIN, END = "<!-- tools/roof.py writes from here -->\n", "<!-- to here -->\n"
TITLES = ("bench", "kernel", "roof", "set by", "ratio")
CASES: tuple[str, ...] = (
    "gemm,M=1024,N=1024,K=1024", "gemm,M=2048,N=2048,K=2048", "gemm@tiny", "gemm@tiny,cube.pes=1",
    "gemm-composite,M=1024,N=1024,K=1024", "gemm-composite,M=2048,N=2048,K=2048",
    "gemv", "qkv-gemm", "qkv-gemm,tokens=1", "mlp",
    "attention,tokens=2048", "softmax,rows=4096,cols=4096", "rmsnorm,tokens=8192",
    "layernorm,tokens=8192,cols=4096", "vector-add,n=16777216", "copy",
)  # fmt: skip

kernbench_api = 1


@attrs.frozen(kw_only=True)
class RoofOptions(OptionRecord):
    """The option of a roof."""

    roof: Annotated[bool, Option("Tell the time that no schedule goes below.")] = False


class RoofPart(RunPart):
    """Says how long the kernels of a run take at least."""

    NAME, OPTIONS, EXAMPLE = "roof", RoofOptions, {"roof": True}

    def answer(self, session: GraphEngine) -> Roof | None:
        """Return the roof over what has run."""
        return roof_of(session)


def kernbench_run_parts() -> list[RunPartEntry]:
    """Return the part: this file is a plug-in, too."""
    return [RunPartEntry("roof", "roof:RoofPart", "The time that no schedule goes below.")]


def row_of(case: str, data: bool) -> str:
    """Run a case; return its row of the table."""
    name, *settings = case.split(",")
    bench, _, topology = name.partition("@")
    params = dict(each.split("=", 1) for each in settings if "." not in each.split("=", 1)[0])
    sets = [each for each in settings if "." in each.split("=", 1)[0]]
    plugins = load_plugins([*own_plugins("builtin"), str(Path(__file__).resolve())], installed=False)
    options = {"roof": True, "data": data, "verify_data": data}
    result = run(bench, topology or "default", params, set=sets, plugins=plugins, **options)
    if data and not result.verified:
        raise SystemExit(f"{case}: the result is wrong.")
    kernel, found = result.phases["kernel"], result.roof
    cells = (f"`{case}`", format_time(kernel), format_time(found.ns), found.limit, f"{kernel / found.ns:.2f}")
    return f"| {' | '.join(cells)} |\n"


def main() -> int:
    """Be the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("cases", nargs="*", metavar="BENCH[@TOPOLOGY][,KEY=VALUE …]", default=CASES)
    parser.add_argument("--data", action="store_true", help="simulate with data, and verify it")
    parser.add_argument("--update", action="store_true", help="write the table into docs/benches.md")
    options = parser.parse_args()
    table = f"| {' | '.join(TITLES)} |\n|{'---|' * len(TITLES)}\n"
    print(table, end="")
    for case in options.cases:
        row = row_of(case, options.data)
        print(row, end="", flush=True)
        table += row
    if options.update:
        before, _, rest = PAGE.read_text().partition(BEGIN)
        _, _, after = rest.partition(END)
        PAGE.write_text(f"{before}{BEGIN}\n{table}\n{END}{after}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
