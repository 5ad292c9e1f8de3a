"""`kernbench plugins new`: write a distribution with a plug-in, which passes its own tests at once."""

from __future__ import annotations

import importlib.util
import re
import shutil
from importlib import resources
from pathlib import Path
from string import Template
from typing import Final

from attrs import frozen

from kernbench_core.cli.plugin_list import inventory
from kernbench_core.errors import UsageError
from kernbench_core.package import API
from kernbench_core.plugins import Plugins

_NAME: Final = re.compile(r"[a-z](?:[a-z0-9_]*[a-z0-9])?")
_PREFIX: Final = "kernbench"
#: What of its files is called after the plug-in, by the names of their templates.
_FILES: Final = {
    "pyproject.toml": "pyproject.toml",
    "README.md": "README.md",
    "init.py": "{package}/__init__.py",
    "plugin.py": "{package}/plugin.py",
    "matrix_unit.py": "{package}/matrix_unit.py",
    "matrix_unit.yaml": "{package}/matrix_unit.yaml",
    "test.py": "tests/test_{vendor}.py",
}
#: Templates that are written behind others, where there is an algorithm.
_MORE: Final = {"README.md": "algorithm_readme", "plugin.py": "algorithm_hook"}
#: The collective whose template becomes the algorithm, what it is called there, and here.
_COLLECTIVE, _PLACEHOLDER, _ALGORITHM = "all_reduce", "my_algorithm", "parts_all_reduce"


@frozen
class NewPlugin:
    """The texts of a new distribution by their paths, in a folder that is called like it."""

    vendor: str
    distribution: str
    files: dict[str, str]

    @classmethod
    def called(cls, name: str, plugins: Plugins) -> NewPlugin:
        """Return the plug-in of this vendor; UsageError for a name that cannot be one, or is taken.

        It has a collective algorithm where the `plugins` have a collective with a template for one.
        """
        _refuse_name(name, plugins)
        algorithm = _algorithm(plugins)
        words = {
            "vendor": name,
            "package": f"{_PREFIX}_{name}",
            "distribution": f"{_PREFIX}-{name.replace('_', '-')}",
            "api": str(API),
            "algorithm": _ALGORITHM,
            "collective": _COLLECTIVE,
            "entries": "ComponentEntry" if algorithm is None else "AlgorithmEntry, ComponentEntry",
        }
        files = {}
        for template, path in _FILES.items():
            text = _text(template, words)
            if algorithm is not None and template in _MORE:
                text += _text(_MORE[template], words)
            files[path.format(**words)] = text
        if algorithm is not None:
            files[f"{words['package']}/{_ALGORITHM}.py"] = algorithm.replace(_PLACEHOLDER, _ALGORITHM)
        return cls(name, words["distribution"], files)

    def write(self, folder: Path) -> Path:
        """Write it into a folder, which is made, and return where; UsageError where it is there, or cannot be."""
        there = folder / self.distribution
        try:
            folder.mkdir(parents=True, exist_ok=True)
            there.mkdir()
        except FileExistsError as error:
            if str(error.filename) != str(there):
                raise UsageError(f"{str(folder)!r} must be a folder; choose another --dir.") from None
            raise UsageError(
                f"{str(there)!r} must not be there yet; choose another name or --dir, or move it away."
            ) from None
        except OSError as error:
            raise _not_writable(there, error) from None
        try:
            for path, text in self.files.items():
                (there / path).parent.mkdir(exist_ok=True)
                (there / path).write_text(text, encoding="utf-8")
        except OSError as error:
            shutil.rmtree(there, ignore_errors=True)
            raise _not_writable(there, error) from None
        return there

    def next_steps(self, there: Path) -> list[str]:
        """Return what to do with it."""
        return [
            f"next: cd {there}",
            '  pip install -e ".[test]"',
            "  pytest",
            f"  kernbench plugins show {self.vendor}",
            "README.md there says what its files are, and how runs use them.",
        ]


def _refuse_name(name: str, plugins: Plugins) -> None:
    if not _NAME.fullmatch(name):
        raise UsageError(
            "the vendor name of a new plug-in must be of lower-case letters, digits and '_', begin with a letter and "
            f"not end with '_', not {name!r}; call it acme, say."
        )
    if name.startswith(_PREFIX):
        raise UsageError(
            f"the vendor name of a new plug-in must not begin with {_PREFIX!r}, which kernbench adds itself, as "
            f"{name!r} does; call it {name.removeprefix(_PREFIX).lstrip('_') or 'acme'}, say."
        )
    for found in inventory(plugins):
        if found.name == name:
            raise UsageError(
                f"the vendor name of a new plug-in must be unused, but {name!r} is that of {found.provider}; choose "
                "another."
            )
    package = f"{_PREFIX}_{name}"
    if importlib.util.find_spec(package) is not None:
        raise UsageError(
            f"the vendor name of a new plug-in must be unused, but package {package!r} exists already; choose another "
            f"than {name!r}."
        )


def _algorithm(plugins: Plugins) -> str | None:
    """Return the text of an algorithm to begin with, as its collective has it; None where there is none."""
    collectives = plugins.registries.get("collectives")
    if collectives is None or _COLLECTIVE not in collectives:
        return None
    package, _, file = str(getattr(collectives.load(_COLLECTIVE), "template", "")).partition(":")
    return (resources.files(package) / file).read_text("utf-8") if file else None


def _text(template: str, words: dict[str, str]) -> str:
    text = (resources.files(__package__) / "template" / f"{template}.txt").read_text("utf-8")
    return Template(text).substitute(words)


def _not_writable(there: Path, error: OSError) -> UsageError:
    return UsageError(f"{str(there)!r} must be writable, but that failed with {error.strerror!r}.")
