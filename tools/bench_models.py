"""Run the benches on layers of public models at full size, and print what that takes as a table for docs/benches.md.

    python tools/bench_models.py [--update] [--tokens N] [BENCH …]

Each run has a process of its own, so that its peak memory is its own; they come one after another. Data is verified
where the operands take less than 1 GiB. `--update` writes the table between the marks in docs/benches.md.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from kernbench_builtin.benches._models import MODELS
from kernbench_core.units import format_time

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "benches.md"
BEGIN, END = "<!-- tools/bench_models.py writes from here -->\n", "<!-- to here -->\n"
TITLES = ("bench", "model", "kernel", "whole run", "events", "CPU time", "peak memory", "data")
#: Benches, each with the models that have the layer.
BENCHES = {
    "qkv-gemm": tuple(MODELS),
    "mlp": tuple(MODELS),
    "attention": tuple(MODELS),
    "rmsnorm": ("llama3-8b", "llama3-70b", "mixtral-8x7b"),
    "layernorm": ("gpt2",),
}
#: More operand bytes than this are not verified.
MOST_BYTES = 1 << 30

IN_A_PROCESS = """
import json, resource, sys
from kernbench_core.plugins import load_plugins, own_plugins
from kernbench_core.runs.bench_run import run
plugins = load_plugins(own_plugins("builtin"), installed=False)
bench, topology, params, options = json.loads(sys.argv[1])
result = run(bench, topology, params, plugins=plugins, **options)
used = resource.getrusage(resource.RUSAGE_SELF)
found = {"kernel_ns": result.phases["kernel"], "total_ns": result.total_ns, "events": result.events}
found |= {"ops": result.timing.ops, "wall_s": result.wall_s}
found |= {"cpu_s": used.ru_utime + used.ru_stime, "peak_mib": used.ru_maxrss / 1024}
print(json.dumps(found | {"verified": result.verified}))
"""


def measure(bench: str, topology: str, params: dict[str, Any], **options: Any) -> dict[str, Any]:
    """Run a bench in a process of its own; return times, events, CPU time in s, peak memory in MiB, the verdict."""
    order = json.dumps([bench, topology, params, options])
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-c", IN_A_PROCESS, order], env=environment, stdout=subprocess.PIPE, text=True, check=True
    )
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def rows(benches: list[str], tokens: int) -> Iterator[str]:
    """Run everything; yield one line of the table for each run."""
    for bench in benches:
        for model in BENCHES[bench]:
            data = _operand_bytes(bench, model) < MOST_BYTES
            found = measure(bench, "default", {"model": model, "tokens": tokens}, data=data, verify_data=data)
            verdict = {True: "verified", False: "WRONG", None: "`--no-data`"}[found["verified"]]
            cells = (
                f"`{bench}`",
                f"`{model}`",
                format_time(found["kernel_ns"]),
                format_time(found["total_ns"]),
                f"{found['events']:,}",
                f"{found['cpu_s']:.1f} s",
                f"{found['peak_mib']:,.0f} MiB",
                verdict,
            )
            yield f"| {' | '.join(cells)} |\n"


def _operand_bytes(bench: str, model: str) -> int:
    """Return the bytes of a layer's weights in f16; those of the others are small."""
    layers = {"qkv-gemm": ("qkv",), "mlp": ("up", "up", "down")}.get(bench, ())
    return sum(2 * k * n for k, n in map(MODELS[model].product, layers))


def main() -> int:
    """Be the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("benches", nargs="*", metavar="BENCH", choices=[*BENCHES, []], help="only these")
    parser.add_argument("--tokens", type=int, default=128)
    parser.add_argument("--update", action="store_true", help="write the table into docs/benches.md")
    options = parser.parse_args()
    table = f"| {' | '.join(TITLES)} |\n|{'---|' * len(TITLES)}\n"
    for row in rows(options.benches or list(BENCHES), options.tokens):
        print(row, end="", flush=True)
        table += row
    if options.update:
        before, _, rest = PAGE.read_text().partition(BEGIN)
        _, _, after = rest.partition(END)
        PAGE.write_text(f"{before}{BEGIN}\n{table}\n{END}{after}")
    return 1 if "WRONG" in table else 0


if __name__ == "__main__":
    sys.exit(main())
