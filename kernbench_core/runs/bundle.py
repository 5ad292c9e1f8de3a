"""One file that holds what it takes to run something again elsewhere: manifest, sources, inputs.

A bundle is a compressed tar archive of plain files. Equal runs give equal bytes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import IO, TYPE_CHECKING, Any, cast

import attrs

from kernbench_core.errors import ConfigError, KernbenchError, UsageError
from kernbench_core.process.whole_files import check_file, files_below, whole_file, write_text
from kernbench_core.runs.manifest import MANIFEST
from kernbench_core.runs.result import json_text
from kernbench_core.runs.run_folder import write_inputs
from kernbench_core.units import format_bytes
from kernbench_core.wording import brief

if TYPE_CHECKING:
    import tarfile

    from kernbench_core.host.bench import Bench

SUFFIXES = (".tar.gz", ".tgz")
#: The folder of the configuration files as they were given; the manifest holds what they were resolved to.
CONFIGURATION = "configuration"
_GZIP = b"\x1f\x8b"
#: Of a bundle of any size, unpacked; beyond `_FREE_BYTES` a bundle is as well at most `_MOST_RATIO` times its file.
_MOST_FILES, _MOST_BYTES = 10_000, 16 << 30
_FREE_BYTES, _MOST_RATIO = 1 << 30, 100
#: What stands between two files of an archive, and behind the last one: blocks of 512 bytes with names, and zeros.
_MOST_BETWEEN = 64 << 10
_BLOCK = 1 << 20


@attrs.frozen
class Bundle:
    """A bundle to write: `texts` are the configuration files that the run was given, by name."""

    path: Path
    texts: Mapping[str, bytes]

    def write(
        self, manifest: Mapping[str, Any], bench: Bench, values: Mapping[str, Any], inputs: Mapping[str, bytes]
    ) -> None:
        """Write the whole file, or raise and leave it as it was; what is large is not compressed."""
        import gzip
        import tarfile
        from tempfile import TemporaryDirectory

        with TemporaryDirectory(prefix="kernbench-") as made, whole_file(self.path) as raw:
            folder = Path(made)
            write_inputs(folder, bench, values, inputs)
            for name, text in self.texts.items():
                (folder / CONFIGURATION).mkdir(exist_ok=True)
                (folder / CONFIGURATION / name).write_bytes(text)
            write_text(folder / MANIFEST, json_text(manifest))
            names = files_below(folder)
            size = sum((folder / name).stat().st_size for name in names)
            if len(names) > _MOST_FILES or size > _MOST_BYTES:
                raise UsageError(
                    f"a bundle must hold at most {_MOST_FILES:,} files and {format_bytes(_MOST_BYTES)}, not "
                    f"{len(names):,} files of {format_bytes(size)}; leave --bundle out, and keep an --out folder."
                )
            level = 9 if size <= _FREE_BYTES else 0
            with (
                gzip.GzipFile(filename="", mode="wb", compresslevel=level, fileobj=raw, mtime=0) as out,
                tarfile.open(fileobj=out, mode="w", format=tarfile.PAX_FORMAT) as archive,
            ):
                for name in names:
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

    Raise UsageError, before anything is unpacked, when a bundle is damaged, is beyond the limits of files and bytes, or
    holds anything but plain files in folders of its own. What is raised in the block names files of the bundle as
    "run.tar.gz/bench/mine.py".
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
        _check_all(path)
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
    """Unpack a bundle, all of which has been read and checked before."""
    try:
        for archive, entry in _members(path):
            target = folder / entry.name
            target.parent.mkdir(parents=True, exist_ok=True)
            with target.open("xb") as file:
                source = cast("IO[bytes]", archive.extractfile(entry))
                while block := source.read(_BLOCK):
                    file.write(block)
    except (FileExistsError, NotADirectoryError) as error:
        raise UsageError(
            f"bundle {str(path)!r} must hold each file once, not {Path(error.filename).name!r}; do not use it."
        ) from None
    except OSError as error:
        raise UsageError(
            f"bundle {str(path)!r} must unpack below {str(folder.parent)!r}, which failed with {error.strerror!r}; "
            "make room, or set TMPDIR."
        ) from None
    if not (folder / MANIFEST).is_file():
        raise UsageError(f"bundle {str(path)!r} must hold {MANIFEST}; make it with kernbench run --bundle.")


def _check_all(path: Path) -> None:
    """Raise UsageError for a bundle that is damaged, or is not one that kernbench would have made; read all of it."""
    left = _limit(path)
    for number, (_, entry) in enumerate(_members(path)):
        left -= entry.size
        _check(path, entry, number, left)


def _members(path: Path) -> Iterator[tuple[tarfile.TarFile, tarfile.TarInfo]]:
    """Yield what is in an archive, one after the other; UsageError where it is cut, spoilt or too large."""
    import gzip
    import tarfile
    import zlib

    try:
        with gzip.open(path) as whole:
            bounded = _Bounded(cast("IO[bytes]", whole), path)
            with tarfile.open(fileobj=cast("IO[bytes]", bounded), mode="r|") as archive:
                for entry in archive:
                    bounded.left = entry.size + _MOST_BETWEEN
                    yield archive, entry
            while bounded.read(_BLOCK):
                pass  # the checksum stands at the end
    except (tarfile.TarError, gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise UsageError(
            f"bundle {str(path)!r} must be whole, but reading it failed with {str(error)!r}; copy it again."
        ) from None


class _Bounded:
    """What a bundle unpacks to, of which there is to be `left` at most: long headers keep tarfile busy for hours."""

    def __init__(self, whole: IO[bytes], path: Path) -> None:
        self._whole, self._path = whole, path
        self.left = _MOST_BETWEEN

    def read(self, size: int) -> bytes:
        data = self._whole.read(size)
        self.left -= len(data)
        if self.left < 0:
            raise UsageError(
                f"bundle {str(self._path)!r} must hold files alone, not more than {format_bytes(_MOST_BETWEEN)} "
                "between two or behind the last; do not use it."
            )
        return data


def _limit(path: Path) -> int:
    """Return how many bytes a bundle may hold: what a small file claims to unpack to need not fit on a disk."""
    return min(_MOST_BYTES, max(_FREE_BYTES, _MOST_RATIO * path.stat().st_size))


def _too_large(path: Path) -> UsageError:
    return UsageError(
        f"bundle {str(path)!r} must unpack to at most {_MOST_FILES:,} files and {format_bytes(_limit(path))} "
        f"({format_bytes(_FREE_BYTES)}, or {_MOST_RATIO} times its own size up to {format_bytes(_MOST_BYTES)}); do not "
        "use it."
    )


def _check(path: Path, entry: tarfile.TarInfo, number: int, left: int) -> None:
    """Raise UsageError for what kernbench would not have put into a bundle."""
    parts = PurePosixPath(entry.name).parts
    if not entry.isreg() or entry.issparse() or not parts or parts[0] == "/" or ".." in parts or "\0" in entry.name:
        kind = "a file" if entry.isreg() and not entry.issparse() else "no plain file"
        raise UsageError(
            f"bundle {str(path)!r} must hold plain files inside its own folder, not {brief(entry.name)}, {kind}; do "
            "not use it."
        )
    if number >= _MOST_FILES or left < 0 or entry.size < 0:
        raise _too_large(path)
