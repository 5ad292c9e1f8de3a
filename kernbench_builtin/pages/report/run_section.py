"""What it takes to run it again: manifest, configuration, plug-ins, and the command."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator, Mapping
from typing import Any, Final

from kernbench_builtin.pages.report.page import asset, environment
from kernbench_builtin.pages.report.run_page import RunPage
from kernbench_builtin.pages.report.section import Section

#: Options of a manifest that stand on the command line by their names.
_FLAGS: Final = ("verify_data", "verify_ops")


def _html(page: RunPage) -> str:
    manifest: Mapping[str, Any] = page.result.get("manifest") or {}
    shown = {name: value for name, value in manifest.items() if name not in ("configuration", "files")}
    return environment().get_template("run.html").render(
        command=command(page.result),
        files=_names_files(manifest),
        whole=manifest.get("changes") is not None,
        exact="kernbench rerun DIR/manifest.json",
        manifest=json.dumps(shown, indent=2, ensure_ascii=False),
        configuration=json.dumps(manifest.get("configuration", {}), indent=2, ensure_ascii=False),
        plugins=manifest.get("plugins", ()),
        versions=manifest.get("versions", {}),
        op_log=page.result.get("op_log_sha256"),
        result=page.result,
    )  # fmt: skip


def command(result: Mapping[str, Any]) -> str:
    """Return the command line that runs a bench so again, as far as a command line can say it; "" where none can."""
    manifest: Mapping[str, Any] = result.get("manifest") or {}
    bench = manifest.get("bench") or {}
    if "kind" in bench and not bench.get("command"):
        return ""
    name = bench.get("name") or bench.get("given") or bench.get("file") or bench.get("function") or result["bench"]
    if "file" in bench and bench.get("function"):
        name = f"{name}:{bench['function']}"
    own, *program = bench.get("command") or ("run", str(name))
    is_run = "kind" not in bench
    words = ["kernbench", own, *(program if is_run else ()), "--topology", str(result["topology"])]
    changes = manifest.get("changes") or {}
    if changes.get("components"):
        words += ["--components", changes["components"]]
    words += [word for setting in changes.get("set", ()) for word in ("--set", setting)]
    if is_run:
        words += [word for pair in _params(result["params"]) for word in ("-p", pair)]
    if result.get("device", "all") != "all":
        words += ["--device", str(result["device"])]
    if manifest.get("seed"):
        words += ["--seed", str(manifest["seed"])]
    if manifest.get("data") is False:
        words.append("--no-data")
    if manifest.get("placement", "near") != "near":
        words += ["--placement", str(manifest["placement"])]
    if manifest.get("resident"):
        words += ["--resident", str(manifest["resident"])]
    if manifest.get("pipeline_loops") is False:
        words.append("--no-pipeline-loops")
    if is_run and manifest.get("race_by", "pe") != "pe":
        words += ["--race-by", str(manifest["race_by"])]
    if is_run and manifest.get("materialize", "determined") != "determined":
        words += ["--materialize", str(manifest["materialize"])]
    if manifest.get("oob", "error") != "error":
        words += ["--oob", str(manifest["oob"])]
    if manifest.get("grid") is not None:
        words += ["--grid", str(manifest["grid"])]
    words += [word for limit in _limits(manifest.get("limits") or {}) for word in limit]
    flags = _FLAGS if is_run else _FLAGS[1:]  # a kind of program verifies what it can by itself
    words += [f"--{flag.replace('_', '-')}" for flag in flags if manifest.get(flag)]
    return shlex.join([*words, *(() if is_run else program)])


def _names_files(manifest: Mapping[str, Any]) -> bool:
    """Say whether a command names files: the bench, a components file, arrays."""
    given = [*(manifest.get("params") or {}).values()]
    changes = manifest.get("changes") or {}
    own = "file" in (manifest.get("bench") or {}) or changes.get("components") is not None
    return own or any(isinstance(value, Mapping) for value in given)


def _limits(limits: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the options of the limits that a run had."""
    for name, option, unit in (("max_events", "--max-events", ""), ("max_sim_ns", "--max-sim-time", " ns"),
                               ("timeout_s", "--timeout", " s")):  # fmt: skip
        if limits.get(name) is not None:
            yield option, f"{limits[name]:g}{unit}" if unit else str(limits[name])


def _params(params: Mapping[str, Any]) -> Iterator[str]:
    for name, value in params.items():
        if value is not None:
            given = value.get("given") or value.get("file", "") if isinstance(value, Mapping) else value
            yield f"{name}={given}"


RUN: Final = Section("Run", 50, _html, None, (asset("run.js"),), asset("run.css"))
