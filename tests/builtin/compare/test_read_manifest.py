"""A manifest is read as it was written, or a sentence says what of it is none; files that it names are as they were."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import attrs
import pytest

from kernbench_builtin.compare.read_manifest import differences, input_file, read_manifest
from kernbench_core.errors import UsageError
from kernbench_core.process.whole_files import write_text
from kernbench_core.runs.result import json_text
from tests.core.runs.made_manifest import MANIFEST

GIVE = "; give the manifest.json of a run's --out."


def test_a_manifest_survives_its_file(tmp_path: Path) -> None:
    """What is written is what is read; also from within a result."""
    write_text(tmp_path / "m.json", json_text(MANIFEST.to_json()))
    write_text(tmp_path / "r.json", json_text({"schema": "kernbench.run/1", "manifest": MANIFEST.to_json()}))
    assert read_manifest(tmp_path / "m.json") == MANIFEST
    assert read_manifest(tmp_path / "r.json") == MANIFEST


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (None, "manifest {path!r} must be a readable file: No such file or directory."),
        ("{", "manifest {path!r} must be JSON; give the manifest.json of a run's --out."),
        ("[" * 99999, "manifest {path!r} must be JSON; give the manifest.json of a run's --out."),
        ("[]", "manifest {path!r} must have schema 'kernbench.manifest/1', not None" + GIVE),
        ('{"schema": "x"}', "manifest {path!r} must have schema 'kernbench.manifest/1', not 'x'" + GIVE),
        (
            '{"schema": "kernbench.manifest/2"}',
            "manifest {path!r} must have schema 'kernbench.manifest/1', not 'kernbench.manifest/2'; a later kernbench "
            "wrote it; use a newer kernbench.",
        ),
    ],
)
def test_a_file_that_is_no_manifest_is_a_sentence(tmp_path: Path, text: str | None, sentence: str) -> None:
    """Missing, not JSON, or something else."""
    path = tmp_path / "m.json"
    if text is not None:
        path.write_text(text)
    with pytest.raises(UsageError) as caught:
        read_manifest(path)
    assert str(caught.value) == sentence.format(path=str(path))


def test_a_manifest_that_is_not_whole_is_a_sentence(tmp_path: Path) -> None:
    """Every missing field is named."""
    found = MANIFEST.to_json()
    del found["seed"], found["limits"]
    (tmp_path / "m.json").write_text(json.dumps(found))
    with pytest.raises(UsageError) as caught:
        read_manifest(tmp_path / "m.json")
    path = str(tmp_path / "m.json")
    assert str(caught.value) == f"manifest {path!r} must hold seed, limits; restore it as the run wrote it."


@pytest.mark.parametrize(
    ("field", "value", "told"),
    [
        ("seed", -1, "seed is -1, not an integer of at least 0"),
        (
            "bench",
            {"file": "a\0", "sha256": ""},
            "bench is {'file': 'a\\x00', 'sha256': ''}, not a name, a function, or a file with its sha256",
        ),
        (
            "bench",
            {"file": "a", "sha256": "", "modules": {"b\0": ""}},
            "bench.modules is {'b\\x00': ''}, not SHA-256 by file",
        ),
        ("changes", [], "changes is [], not an object or null"),
        (
            "changes",
            {"components": None, "set": ["a=1", 2]},
            "changes is {'components': None, 'set': ['a=1', 2]}, not the name of a components file and a list of "
            "settings",
        ),
    ],
)
def test_a_value_that_no_run_has_is_a_sentence(tmp_path: Path, field: str, value: object, told: str) -> None:
    """Of the right type, and yet none that could be used."""
    path = tmp_path / "m.json"
    path.write_text(json.dumps({**MANIFEST.to_json(), field: value}))
    with pytest.raises(UsageError) as caught:
        read_manifest(path)
    assert str(caught.value) == f"manifest {str(path)!r} must be as a run wrote it, but {told}; restore it."


def test_an_input_file_must_be_unchanged(tmp_path: Path) -> None:
    """An input is found beside the manifest, and compared with its hash."""
    (tmp_path / "b.py").write_text("x = 1\n")
    entry = {"file": "b.py", "sha256": hashlib.sha256(b"x = 1\n").hexdigest()}
    assert input_file(tmp_path / "m.json", entry, "the bench file") == tmp_path / "b.py"
    (tmp_path / "b.py").write_text("x = 2\n")
    now = hashlib.sha256(b"x = 2\n").hexdigest()
    with pytest.raises(UsageError) as caught:
        input_file(tmp_path / "m.json", entry, "the bench file")
    assert str(caught.value) == (
        f"the bench file at {str(tmp_path / 'b.py')!r} must have SHA-256 {entry['sha256'][:12]}…, not {now[:12]}…; "
        "restore the file that the manifest was made with."
    )
    (tmp_path / "b.py").unlink()
    with pytest.raises(UsageError) as caught:
        input_file(tmp_path / "m.json", entry, "the bench file")
    assert str(caught.value) == (
        f"the bench file must be at {str(tmp_path / 'b.py')!r}; put the file there, or run with --out to keep a copy."
    )


def test_differences_are_sentences() -> None:
    """Versions, plug-ins, configuration and op log are compared; equal manifests differ in nothing."""
    new = attrs.evolve(
        MANIFEST,
        versions={"python": "3.12.1", "kernbench": "0.1.0"},
        plugins=({"plugin": "acme", "distribution": "acme-models", "version": "1.3"},),
        configuration={},
        op_log_sha256="bb",
    )
    assert differences(MANIFEST, MANIFEST) == ()
    assert differences(MANIFEST, new) == (
        "python was 3.11.0 and is 3.12.1.",
        "plug-in 'acme' was acme-models 1.2 and is acme-models 1.3.",
        "the resolved configuration differs.",
        "op_log_sha256 was aa and is bb.",
    )
