"""One file that holds what it takes to run something again elsewhere: manifest, sources, inputs.

A bundle is a compressed tar archive of plain files. Equal runs give equal bytes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import IO, TYPE_CHECKING, Any

from kernbench_core import records
from kernbench_core.errors import ConfigError, KernbenchError, UsageError
from kernbench_core.process.whole_files import check_file, files_below, whole_file, write_text
from kernbench_core.runs.manifest import MANIFEST
from kernbench_core.runs.result import json_text
from kernbench_core.runs.run_folder import write_inputs
from kernbench_core.wording import brief

if TYPE_CHECKING:
    import tarfile

    from kernbench_core.host.bench import Bench

SUFFIXES = (".tar.gz", ".tgz")
#: The folder of the configuration files as they were given; the manifest holds what they were resolved to.
CONFIGURATION = "configuration"
_GZIP = b"\x1f\x8b"
_MOST_FILES, _MOST_BYTES = 10_000, 64 << 30
_BLOCK = 1 << 20


@records.frozen
class Bundle:
    """A bundle to write: `texts` are the configuration files that the run was given, by name."""

    path: Path
    texts: Mapping[str, bytes]

    def write(
        self, manifest: Mapping[str, Any], bench: Bench, values: Mapping[str, Any], inputs: Mapping[str, bytes]
    ) -> None:
        """Write the whole file, or raise and leave it as it was."""
        import tarfile
        from tempfile import TemporaryDirectory

        with TemporaryDirectory(prefix="kernbench-") as made, whole_file(self.path, compress=True) as out:
            folder = Path(made)
            write_inputs(folder, bench, values, inputs)
            for name, text in self.texts.items():
                (folder / CONFIGURATION).mkdir(exist_ok=True)
                (folder / CONFIGURATION / name).write_bytes(text)
            write_text(folder / MANIFEST, json_text(manifest))
            with tarfile.open(fileobj=out, mode="w", format=tarfile.PAX_FORMAT) as archive:
                for name in files_below(folder):
                    _add(archive, name, folder / name)


def bundle_file(path: str | Path | None, configuration: Mapping[str, object]) -> Bundle | None:
    """Check, before the run, that a bundle can be written, and read the configuration files that go into it."""
    if path is None:
        return None
    path = Path(path)
    if not path.name.endswith(SUFFIXES):
        raise UsageError(f"bundle must end in {' or '.join(SUFFIXES)}, not {path.name or str(path)!r}.")
    texts = {}
    for what, given in configuration.items():
        if isinstance(given, str | Path) and Path(given).is_file():
            texts[f"{what}-{Path(given).name}"] = Path(given).read_bytes()
    return Bundle(check_file("bundle", path), texts)


@contextmanager
def opened(path: Path) -> Iterator[Path]:
    """Give the path of a manifest: of the one in a bundle, unpacked until the block ends, or `path` itself.

    Raise UsageError when a bundle is damaged, or holds anything but plain files in folders of its own. What is raised
    in the block names files of the bundle as "run.tar.gz/bench/mine.py".
    """
    try:
        with path.open("rb") as file:
            is_bundle = file.read(2) == _GZIP
    except OSError as error:
        raise UsageError(f"manifest {str(path)!r} must be a readable file: {error.strerror}.") from None
    if not is_bundle:
        yield path
        return
    from tempfile import TemporaryDirectory

    with TemporaryDirectory(prefix="kernbench-") as made:
        _unpack(path, Path(made))
        try:
            yield Path(made) / MANIFEST
        except KernbenchError as error:
            _name_members(error, made, str(path))
            raise


def _name_members(error: KernbenchError, folder: str, bundle: str) -> None:
    """Have an error name files of a bundle in place of those of the folder in which they lay for a while."""
    error.args = tuple(str(each).replace(folder, bundle) for each in error.args)
    if isinstance(error, ConfigError):
        error.problems = tuple(each.replace(folder, bundle) for each in error.problems)
    notes = getattr(error, "__notes__", [])
    notes[:] = [note.replace(folder, bundle) for note in notes]


def _add(archive: tarfile.TarFile, name: str, path: Path) -> None:
    """Add a file without its owner, its time and its rights."""
    import tarfile

    entry = tarfile.TarInfo(name)
    entry.size = path.stat().st_size
    with path.open("rb") as file:
        archive.addfile(entry, file)


def _unpack(path: Path, folder: Path) -> None:
    import gzip
    import tarfile
    import zlib

    left = _MOST_BYTES
    try:
        with gzip.open(path) as whole, tarfile.open(fileobj=whole, mode="r|") as archive:
            for number, entry in enumerate(archive):
                left -= entry.size
                _check(path, entry, number, left)
                target = folder / entry.name
                target.parent.mkdir(parents=True, exist_ok=True)
                source = archive.extractfile(entry)
                assert source is not None
                with target.open("xb") as file:
                    _copy(source, file)
            while whole.read(_BLOCK):
                pass  # the checksum stands at the end
    except (tarfile.TarError, gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise UsageError(
            f"bundle {str(path)!r} must be whole, but reading it failed with {str(error)!r}; copy it again."
        ) from None
    except FileExistsError as error:
        raise UsageError(
            f"bundle {str(path)!r} must hold each file once, not {Path(error.filename).name!r}; do not use it."
        ) from None
    if not (folder / MANIFEST).is_file():
        raise UsageError(f"bundle {str(path)!r} must hold {MANIFEST}; make it with kernbench run --bundle.")


def _check(path: Path, entry: tarfile.TarInfo, number: int, left: int) -> None:
    """Raise UsageError for what kernbench would not have put into a bundle."""
    parts = PurePosixPath(entry.name).parts
    if not entry.isreg() or not parts or parts[0] == "/" or ".." in parts or "\0" in entry.name:
        kind = "a file" if entry.isreg() else "no plain file"
        raise UsageError(
            f"bundle {str(path)!r} must hold plain files inside its own folder, not {brief(entry.name)}, {kind}; do "
            "not use "
            "it."
        )
    if number >= _MOST_FILES or left < 0 or entry.size < 0:
        raise UsageError(
            f"bundle {str(path)!r} must hold at most {_MOST_FILES:,} files of {_MOST_BYTES >> 30} GiB together; do not "
            "use it."
        )


def _copy(source: IO[bytes], target: IO[bytes]) -> None:
    while block := source.read(_BLOCK):
        target.write(block)
