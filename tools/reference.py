"""Write the pages of the reference from the code: what there is, with units, defaults and what it means.

    python tools/reference.py [FOLDER]

`make docs` has them in the site (tools/site_hooks.py); nothing of them is kept. Whatever has no sentence of its own is
an error, so that nothing can be added without one.
"""

from __future__ import annotations

import argparse
import ast
import inspect
import json
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))

import attrs
import check_docs
import click
from reference_text import NOTE, code, said, sentence, signature, table, whole

import kernbench as door
import kernbench_core as kb
from kernbench_builtin.sweeps.objectives import FAMILIES, FIGURES, SECTIONS
from kernbench_core import errors, messages
from kernbench_core.cli.command import kernbench as whole_command
from kernbench_core.cli.group import CommandGroup
from kernbench_core.cli.shell import Shell
from kernbench_core.kernel import TLContext
from kernbench_core.kernel.tl.language import DIFFERS, OURS, SAME
from kernbench_core.oplog.description import Access, OpDescription
from kernbench_core.oplog.log import OpRecord
from kernbench_core.plugins import LANGUAGE, Plugins, entries, load_plugins

#: What a pattern of the schema names, by a unit that only it has.
UNITS = {"GB/s": "bandwidth", "ns/mm": "time per length", "KiB": "size", "mm": "length", "MHz": "frequency",
         "GT/s": "transfer rate", "ns": "time"}  # fmt: skip


# Commands -----------------------------------------------------------------------------------------------


def commands(plugins: Plugins) -> Iterator[str]:
    """Yield the page of every command, with its arguments and options."""
    yield from ("# Commands", "", NOTE, "What they do at length: [the command line](../cli.md).", "")
    top = click.Context(whole_command, info_name="kernbench", obj=Shell(plugins))
    yield from _command(top, whole_command, plugins)


def _command(ctx: click.Context, command: click.Command, plugins: Plugins) -> Iterator[str]:
    yield from (f"## `{ctx.command_path}`", "", said(command.help or command.short_help, ctx.command_path), "")
    yield from _options(ctx, command)
    if not isinstance(command, click.Group):
        return
    alike: dict[str, tuple[list[str], list[str]]] = {}
    for name in command.list_commands(ctx):
        found = command.load(ctx, name) if isinstance(command, CommandGroup) else command.get_command(ctx, name)
        assert found is not None
        inner = click.Context(found, info_name=name, parent=ctx, obj=ctx.obj)
        options = "\n".join(_options(inner, found)) or name
        if options in alike:
            alike[options][1].append(f"- `{inner.command_path}`: {said(found.help, inner.command_path)}")
        else:
            alike[options] = (list(_command(inner, found, plugins)), [])
    for lines, others in alike.values():
        yield from lines
        if others:
            yield from ("The same options have:", "", *others, "")


def _options(ctx: click.Context, command: click.Command) -> list[str]:
    rows = []
    for each in command.get_params(ctx):
        name = f"{ctx.command_path} {each.human_readable_name}"
        if isinstance(each, click.Argument):
            rows.append((code(each.make_metavar(ctx)), "", "", "argument, required" if each.required else "argument"))
            continue
        assert isinstance(each, click.Option)
        if each.hidden or "--help" in each.opts:
            continue
        value = "" if each.is_flag or each.count else each.make_metavar(ctx)
        default = each.default if isinstance(each.default, str | int | float) and not each.is_flag else ""
        names = ", ".join(f"`{one}`" for one in (*each.opts, *each.secondary_opts))
        rows.append((names, code(value), code(default), said(each.help, name)))
    return table(("option", "value", "default", "meaning"), rows)


# Configuration and components ---------------------------------------------------------------------------


def configuration(plugins: Plugins) -> Iterator[str]:
    """Yield the page of every key of a configuration."""
    schema, merged = (_printed(plugins, f"topology schema{option}") for option in ("", " --merged"))
    yield from ("# Keys of a configuration", "", NOTE)
    yield "From `kernbench topology schema`, which editors can use. How files are laid over one another, and what"
    yield "values look like: [configuration](../configuration.md). Parameters of models: [components](components.md)."
    yield "Where the default says *required*, the file, its base or a setting must give the key: in every machine of"
    yield "packages, or where the section or the item of a list is there that it belongs to."
    needed = {name for rule in merged["allOf"] for name in rule["then"]["required"]}
    for name, layer in schema["properties"].items():
        if name != "components":
            section = merged["properties"].get(name, layer)  # of files alone is `base`
            listed = section.get("items")
            told = section.get("description") or (listed or {}).get("description")
            yield from ("", f"## `{name}`", "", said(told, name) + (" *Required.*" if name in needed else ""), "")
            yield from table(
                ("key", "value", "default", "meaning"), _keys(f"{name}[]" if listed else name, listed or section)
            )


def _keys(path: str, schema: Mapping[str, Any]) -> Iterator[tuple[str, str, str, str]]:
    for name, below in schema.get("properties", {}).items():
        key, needed = f"{path}.{name}", "*required*" if name in schema.get("required", ()) else ""
        if isinstance(below.get("additionalProperties"), Mapping):
            key, below = f"{key}.NAME", below["additionalProperties"]
        if below.get("type") == "object" and "properties" in below:
            yield code(key), "section", needed, said(below.get("description"), key)
            yield from _keys(key, below)
        else:
            items = below.get("items", {})
            told = below.get("description") or items.get("description") or _PARAMS.get(name)
            value = "[a model](components.md)" if name == "impl" else _value(below)
            yield code(key), value, code(_default(below)) or needed, said(told, key)
            yield from _keys(f"{key}[]", items)


#: Of what every impl has its own, the schema says nothing by itself.
_PARAMS = {"params": "Parameters of the implementation, or of a plug-in's shape."}


def _default(schema: Mapping[str, Any]) -> str:
    default = schema.get("default", "")
    return json.dumps(default) if isinstance(default, bool) or default is None else str(default)


def _value(schema: Mapping[str, Any]) -> str:
    """Return what a key takes, in words."""
    if "anyOf" in schema:
        told = [_value(each) for each in schema["anyOf"]]
        return " or ".join(dict.fromkeys(word for word in told if word != "null"))
    schema = schema.get("else", schema)  # of a name without its vendor
    if "enum" in schema:
        return ", ".join(code(each) for each in schema["enum"] if each is not None)
    if "pattern" in schema:
        units = schema["pattern"].rpartition("(?:")[2].removesuffix(r")\s*$").split("|")
        return next((what for unit, what in UNITS.items() if unit in units), "text")
    kind = schema.get("type", "")
    words = {"string": "text", "array": "list", "object": "mapping", "boolean": "true or false"}
    return words.get(kind, kind) if isinstance(kind, str) else " or ".join(words.get(each, each) for each in kind)


def components(plugins: Plugins) -> Iterator[str]:
    """Yield the page of every registered model, with parameters, ports and statistics."""
    yield from ("# Components", "", NOTE)
    yield "`components.KIND: {impl: NAME, params: {…}}` puts a model there ([configuration](../configuration.md))."
    shown = {
        entry["name"]: entry for entry in _printed(plugins, "plugins show builtin")["plugin"]["entries"]["components"]
    }
    for name in sorted(plugins.components):
        told, ports = _printed(plugins, f"components {name}")["component"], shown[name]
        yield from ("", f"## `{name}`", "", f"{said(told['sentence'], name)} Kind: {told['kind']}.", "")
        for part in ("models", "ignores", "timing", "source"):
            yield from (f"*{part.title()}:* {said(told[part], f'{name}, {part}')}", "")
        rows = [
            (code(p["name"]), p["type"], code(p["default"]), said(p["sentence"], p["name"])) for p in told["params"]
        ]
        yield from table(("parameter", "type", "default", "meaning"), rows)
        rows = [(code(s["name"]), s["unit"], s["combine"], said(s["sentence"], name)) for s in ports["statistics"]]
        yield from table(("statistic", "unit", "combined", "meaning"), rows)
        for port in ports["ports"]:
            ends = (", ".join(port[side]) or "none" for side in ("sources", "sinks"))
            yield from ("*Ports of {}:* from {}; to {}.".format(port["kind"], *ends), "")


def _printed(plugins: Plugins, command: str) -> Any:
    """Return the object that a command prints."""
    json_option = "" if command.startswith("topology schema") else " --json"
    status, text = check_docs.execute(check_docs.Command(f"kernbench {command}{json_option}", ""), plugins)
    if status != 0:
        raise SystemExit(text)
    return json.loads(text)


def not_modelled(plugins: Plugins) -> Iterator[str]:
    """Yield the page of what every model ignores, sentence by sentence."""
    from kernbench_core.host.timing import ignored_by

    yield from ("# What is not modelled", "", NOTE)
    yield "Each run lists the sentences of those models that its own messages crossed, with how many (`-v`, and"
    yield "`not_modelled` of `--json`). Which way it errs: [in short](../timing_model.md#in-short); by how much:"
    yield from ("[accuracy](../accuracy.md).", "")
    for name in sorted(plugins.components):
        ignored = ignored_by(plugins.components.load(name))
        yield from (f"## `{name}`", "", *(f"- {said(told, name)}" for told in ignored or (None,)), "")


# Language, messages, hooks, errors ----------------------------------------------------------------------


def language(plugins: Plugins) -> Iterator[str]:
    """Yield the page of every name of `tl`."""
    yield from ("# Names of `tl`", "", NOTE)
    yield "What differs from Triton, and what is refused: [the table](../language.md#tritons-names)."
    yield from ("What holds for all: [the kernel language](../language.md).", "")
    rows, constants = [], []
    calls = plugins.of(LANGUAGE)
    for name in sorted({*SAME, *DIFFERS, *OURS, *calls}):
        found = partial(calls.load(name), None) if name in calls else getattr(TLContext, name)
        if isinstance(found, str):
            constants.append(f"`tl.{name}`")
        else:
            called = signature(found, f"tl.{name}") if callable(found) and not inspect.isclass(found) else f"tl.{name}"
            rows.append((code(called), sentence(getattr(found, "func", found), f"tl.{name}")))
    yield from table(("name", ""), rows)
    yield f"Dtypes: {', '.join(constants)}."


def message_page(plugins: Plugins) -> Iterator[str]:
    """Yield the page of messages, and of what a record of the op log holds."""
    yield from ("# Messages and the op log", "", NOTE)
    yield from ("How they move: [hardware](../hardware.md); what the log is for: [two phases](../two_phases.md).", "")
    yield from ("## Messages", "")
    for name, found in _own_classes(messages):
        base = ", ".join(f"`{b.__name__}`" for b in found.__bases__ if b is not object)
        slots = [slot for slot in getattr(found, "__slots__", ()) if not slot.startswith("_")]
        told = [f"*Of:* {base}." if base else "", f"*Fields:* {', '.join(map(code, slots))}." if slots else ""]
        yield from (f"### `{name}`", "", whole(found, name), "", " ".join(filter(None, told)), "")
    yield from ("## Commands of the kernel language", "", "All are `Command`s; `serves` is the kind of unit.", "")
    yield from table(("command", "serves", ""), _kernel_commands())
    for head, found in (
        ("## A record of the op log", OpRecord),
        ("### What a message says of itself: `OpDescription`", OpDescription),
        ("### What an op reads or writes: `Access`", Access),
    ):
        yield from (head, "", whole(found, found.__name__), "")
        yield from table(("field", "type"), ((code(name), code(held)) for name, held in _fields(found)))
    told = "Their names in the op log: `op_name`, or the parameter `op`; plug-ins register others."
    yield from ("## Math ops", "", told, "")
    yield from table(("op_name", "form", "operands", "also called"), _math_ops())


def _kernel_commands() -> Iterator[tuple[str, str, str]]:
    modules = [f"kernbench_core.kernel.{name}_commands" for name in ("compute", "dma", "queue")]
    for module in (modules[0], "kernbench_builtin.composites.command", *modules[1:]):
        for name, found in _own_classes(import_module(module)):
            if issubclass(found, messages.Command) and found.serves:
                yield code(name), code(found.serves), sentence(found, name)


def _fields(found: type) -> Iterator[tuple[str, str]]:
    """Yield the name and type of each field: of a plain class, what its constructor takes (in its source, as a compiled
    class has no signature).
    """
    if attrs.has(found):
        yield from ((field.name, _type(field)) for field in attrs.fields(found))
        return
    owner = next(node for node in _classes_in(found.__module__) if node.name == found.__name__)
    made = next(node for node in owner.body if isinstance(node, ast.FunctionDef) and node.name == "__init__")
    yield from ((arg.arg, ast.unparse(arg.annotation)) for arg in made.args.args[1:] if arg.annotation)


def _type(field: Any) -> str:
    return field.type if isinstance(field.type, str) else getattr(field.type, "__name__", str(field.type))


def _classes_in(module: str) -> list[ast.ClassDef]:
    source = ast.parse((check_docs.REPO / (module.replace(".", "/") + ".py")).read_text(encoding="utf-8"))
    return [node for node in source.body if isinstance(node, ast.ClassDef)]


def _own_classes(module: Any) -> Iterator[tuple[str, type]]:
    """Yield the public classes of a module by name, in the order of its source (a compiled module has another)."""
    for name in (node.name for node in _classes_in(module.__name__)):
        if not name.startswith("_") and not getattr(getattr(module, name), "_is_protocol", False):
            yield name, getattr(module, name)


def _math_ops() -> Iterator[tuple[str, str, object, str]]:
    from kernbench_core.compute.ops import OPS

    for name, op in sorted(OPS.items()):
        yield code(name), str(op.form.value), op.arity or "any", ", ".join(map(code, op.aliases))


def hooks(plugins: Plugins) -> Iterator[str]:
    """Yield the page of the hooks, and of the entries that they return."""
    yield from ("# Hooks", "", NOTE)
    yield from ("How to write a plug-in, and what happens when something is wrong: [plug-ins](../plugins.md).", "")
    rows = []
    for kind, point in sorted(plugins.points.items()):
        rows.append((code(f"kernbench_{kind}"), code(point.entry.__name__), point.returns))
    yield from table(("hook", "returns", ""), rows)
    for name, found in _own_classes(entries):
        if name.endswith("Entry") and name != "Entry":
            fields = ", ".join(field.name for field in attrs.fields(found))
            yield from (f"## `{name}({fields})`", "", whole(found, name), "")


def error_page(plugins: Plugins) -> Iterator[str]:
    """Yield the page of every exception and its exit code."""
    yield from ("# Errors", "", NOTE)
    yield "All are `KernbenchError`s; the command line exits with their code ([exit codes](../cli.md#exit-codes))."
    yield ""
    rows = []
    for name, found in _error_classes():
        base = found.__bases__[0].__name__
        rows.append((code(name), getattr(found, "exit_code", ""), code(base), sentence(found, name)))
    yield from table(("error", "exit code", "is a", ""), rows)


def _error_classes() -> Iterator[tuple[str, type]]:
    yield from _own_classes(errors)
    for path in sorted(check_docs.REPO.glob("kernbench_*/**/*.py")):
        text = path.read_text(encoding="utf-8")
        if path.name != "errors.py" and re.search(r"^class \w+\(.*\b(\w*Error|UnknownName)\b.*\):", text, re.MULTILINE):
            module = import_module(".".join(path.relative_to(check_docs.REPO).with_suffix("").parts))
            for name, found in _own_classes(module):
                if issubclass(found, kb.KernbenchError):
                    yield name, found


def python(plugins: Plugins) -> Iterator[str]:
    """Yield the page of what `import kernbench as kb` gives, and of what `kernbench_core` has for plug-ins."""
    yield from ("# Names of `kb`", "", NOTE, "After `import kernbench as kb`; what a run gives back is described in")
    yield "[results](../results.md). What plug-ins import stands behind, with its module, and their entries are with"
    yield from ("the [hooks](hooks.md).", "")
    of_plugins = sorted(name for name in kb.__all__ if name not in door.__all__ and not name.endswith("Entry"))
    for module, names in ((door, door.__all__), (kb, of_plugins)):
        for name in (name for name in names if not name.startswith("_")):
            found, shown = getattr(module, name), f"{'kb' if module is door else module.__name__}.{name}"
            called = signature(found, shown) if inspect.isroutine(found) else shown
            yield from (f"## `{shown}`", "", *([code(called), ""] if called != shown else []), whole(found, name), "")


def figures(plugins: Plugins) -> Iterator[str]:
    """Yield the page of every figure that objectives of a sweep may name."""
    yield from ("# Figures of a run", "", NOTE)
    yield "What `--objective` of `kernbench sweep` may name, and the columns of its tables. How expressions are made of"
    yield from ("them: [searching](../searching.md#expressions).", "", "Every run has:", "")
    rows = [(code(each.name), _unit_of(each.name), each.sentence) for each in FIGURES]
    yield from table(("figure", "unit", "meaning"), rows)
    yield from ("", "Of each kind of resource that was used, statistic of a model, and column of rows there are:", "")
    parts = (told.partition(": ") for told in FAMILIES.values())
    yield from table(("figures", "unit", "meaning"), [(code(name), _unit_of(name), told) for name, _, told in parts])
    yield from ("", "In KIND and COLUMN what is no letter or digit is `_`: `utilisation.hbm_ctrl_channel`.", "")
    yield "Whatever else `--json` of a run has under a name of its own can be named by its dotted path, as"
    yield "`kernels.roofline.bound`: " + ", ".join(code(name) for name in sorted(SECTIONS)) + "."


def _unit_of(name: str) -> str:
    parts = name.split(".")
    return "ns" if any(each.endswith("_ns") for each in parts) else "B" if name.endswith("_bytes") else ""


PAGE: Mapping[str, Callable[[Plugins], Iterator[str]]] = {
    "commands": commands,
    "configuration": configuration,
    "components": components,
    "not_modelled": not_modelled,
    "language": language,
    "messages": message_page,
    "python": python,
    "hooks": hooks,
    "errors": error_page,
    "figures": figures,
}


def written() -> dict[str, str]:
    """Return the text of every page, by its name."""
    plugins = load_plugins(check_docs.ENTRY_POINTS[:-1], installed=False)
    pages = {name: "\n".join(page(plugins)).rstrip() + "\n" for name, page in PAGE.items()}
    return {name: re.sub(r"\n{3,}", "\n\n", text) for name, text in pages.items()}


def main(argv: Sequence[str] | None = None) -> int:
    """Write the pages into a folder."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("folder", nargs="?", type=Path, default=check_docs.REPO / "build" / "reference")
    folder = parser.parse_args(argv).folder
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in written().items():
        (folder / f"{name}.md").write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
