"""Time scripts written in Triton with their arrays in each place that `--placement` has, as a table in Markdown.

    python tools/placements.py 01-vector-add.py 02-fused-softmax.py --topology default --points 1

A row is a script and a kernel of it: the time of all its launches in us. docs/triton.md has the table of Triton's own
tutorials, as tools/try_triton.py finds them.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections import Counter
from pathlib import Path

PLACEMENTS = ("blocks", "interleaved", "near")


def times(script: Path, placement: str, options: list[str]) -> Counter[str]:
    """Return the us of the launches of each kernel of a script."""
    call = [sys.executable, "-m", "kernbench", "triton", str(script), "--json", "--placement", placement, *options]
    ran = subprocess.run(call, capture_output=True, text=True, check=False)
    if ran.returncode:
        raise SystemExit(f"{script} must end with 0, not {ran.returncode}:\n{ran.stderr[-1000:]}")
    found: Counter[str] = Counter()
    for each in json.loads(ran.stdout)["result"]["launches"]:
        found[each["kernel"]] += each["time_ns"] / 1e3
    return found


def main() -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("scripts", nargs="+", type=Path)
    own, options = parser.parse_known_args()
    print(f"| script | kernel | {' | '.join(PLACEMENTS)} |\n|---|---|{'--:|' * len(PLACEMENTS)}")
    for script in own.scripts:
        found = [times(script, each, options) for each in PLACEMENTS]
        for kernel in found[0]:
            print(f"| {script.stem} | `{kernel}` | {' | '.join(f'{each[kernel]:.4g}' for each in found)} |", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
