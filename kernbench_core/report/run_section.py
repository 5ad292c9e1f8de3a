"""What it takes to run it again: manifest, configuration, plug-ins, and the command."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator, Mapping
from typing import Any, Final

from kernbench_core.report.page import environment
from kernbench_core.report.run_page import RunPage
from kernbench_core.report.section import Section

#: Options of a manifest that stand on the command line by their names.
_FLAGS: Final = ("verify_data", "verify_ops")


def _html(page: RunPage) -> str:
    manifest: Mapping[str, Any] = page.result.get("manifest") or {}
    shown = {name: value for name, value in manifest.items() if name not in ("configuration", "files")}
    return environment().get_template("run.html").render(
        command=command(page.result),
        exact="kernbench rerun DIR/manifest.json",
        manifest=json.dumps(shown, indent=2, ensure_ascii=False),
        configuration=json.dumps(manifest.get("configuration", {}), indent=2, ensure_ascii=False),
        plugins=manifest.get("plugins", ()),
        versions=manifest.get("versions", {}),
        op_log=page.result.get("op_log_sha256"),
    )  # fmt: skip


def command(result: Mapping[str, Any]) -> str:
    """Return the command line that runs a bench so again, as far as a command line can say it."""
    manifest: Mapping[str, Any] = result.get("manifest") or {}
    bench = manifest.get("bench") or {}
    name = bench.get("name") or bench.get("file") or bench.get("function") or result["bench"]
    words = ["kernbench", "run", str(name), "--topology", str(result["topology"])]
    words += [word for pair in _params(result["params"]) for word in ("-p", pair)]
    if result.get("device", "all") != "all":
        words += ["--device", str(result["device"])]
    if manifest.get("seed"):
        words += ["--seed", str(manifest["seed"])]
    if manifest.get("data") is False:
        words.append("--no-data")
    words += [f"--{flag.replace('_', '-')}" for flag in _FLAGS if manifest.get(flag)]
    return shlex.join(words)


def _params(params: Mapping[str, Any]) -> Iterator[str]:
    for name, value in params.items():
        if value is not None:
            given = value.get("file", "") if isinstance(value, Mapping) else value
            yield f"{name}={given}"


RUN: Final = Section("Run", 50, _html)
