"""Write the JSON Schemas that lie beside presets: what editors check YAML files by.

`python tools/schemas.py` writes those that have changed; `--check` tells whether any would. Each of presets is what
`kernbench topology schema` prints where the plug-ins of its folder, and no others, are installed.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from kernbench_core.plugins import own_plugins

ROOT = Path(__file__).resolve().parents[1]
NAME = "topology.schema.json"
OURS = own_plugins()
FOLDERS = {
    "kernbench_builtin/topologies": OURS,
    "plugins_example/kernbench_example": (*OURS, "example = kernbench_example.plugin"),
}
"""Folders of presets, and the plug-ins that they may name something of."""


def texts() -> dict[str, str]:
    """Return the schemas by their paths in the tree."""
    from kernbench_builtin.machines import configuration_schema
    from kernbench_core.plugins import load_plugins
    from kernbench_core.runs.result import json_text

    found = {}
    for folder, points in FOLDERS.items():
        plugins = load_plugins(points, installed=False)
        schema = configuration_schema(plugins.components, plugins.networks, plugins.machines)
        found[f"{folder}/{NAME}"] = f"{json_text(schema)}\n"
    return found


def main(argv: Sequence[str] | None = None) -> int:
    """Write the schemas, or with `--check` return 1 where one is not as it would be written."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="write nothing; exit with 1 if a schema is out of date")
    check = parser.parse_args(argv).check
    sys.path[:0] = [str(ROOT), str(ROOT / "plugins_example")]
    stale = [path for path, text in texts().items() if not (ROOT / path).is_file() or (ROOT / path).read_text() != text]
    for path in stale:
        if not check:
            (ROOT / path).write_text(texts()[path], encoding="utf-8")
        print(f"{path} {'is out of date; run python tools/schemas.py.' if check else 'written.'}")
    return int(check and bool(stale))


if __name__ == "__main__":
    sys.exit(main())
