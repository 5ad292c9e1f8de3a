"""Names, options and files that a command cannot use: exit code 2, one sentence, before anything runs."""

from __future__ import annotations

import io
import json
import re
from typing import Any

import numpy as np
import pytest

import kernbench as kb
from kernbench_core.errors import UsageError

BENCHES = (
    "attention, attention-decode, copy, gemm, gemm-composite, gemm-naive, gemm-stream, gemm-sweep, gemv, layernorm, "
    "mlp, qkv-gemm, rmsnorm, softmax, sparse-gemm, vector-add"
)
ARGUMENTS = {
    ("run", "gem"): "bench must be a registered name or the path of a .py file, not 'gem'. Did you mean 'gemv'?",
    ("run", "none.py"): "bench file 'none.py' does not exist; give a registered bench or the path of a .py file.",
    ("run", "gemm", "-p", "Q=3"): "bench 'gemm' has no parameter 'Q'; its parameters are: M, N, K, tile_m, tile_n, "
    "tile_k, "
    "dtype, a, b.",
    ("run", "gemm", "-p", "m=3"): "bench 'gemm' has no parameter 'm'; its parameters are: M, N, K, tile_m, tile_n, "
    "tile_k, "
    "dtype, a, b. Did you mean 'M'?",
    ("run", "gemm", "-p", "M"): "option -p must be followed by NAME=VALUE, not 'M'.",
    ("run", "gemm", "-p", "=3"): "option -p must be followed by NAME=VALUE, not '=3'.",
    ("run", "gemm", "-p", "M=1", "-p", "M=2"): "option -p must give 'M' once, not as '1' and as '2'.",
    ("run", "gemm", "-p", "M=abc"): "parameter 'M' of bench 'gemm' must be an integer, not 'abc'.",
    ("run", "gemm", "-p", "M=1e3"): "parameter 'M' of bench 'gemm' must be an integer, not '1e3'.",
    ("run", "gemm", "-p", "dtype=f8"): "parameter 'dtype' of bench 'gemm' must be one of 'f16', 'bf16', 'f32', "
    "'int8', not "
    "'f8'.",
    ("run", "gemm", "--topology", "tinny"): "topology must be a preset or a file, not 'tinny'. Did you mean 'tiny'?",
    ("run", "gemm", "--topology", "no.yaml"): "topology must be a preset or a file, not 'no.yaml'. Known: "
    "a100_node, default, full, mesh, tiny, tpu7x_slice, u280_hbm.",
    ("run", "gemm", "--components", "no.yaml"): "overlay (--components) must be a preset or a file, not 'no.yaml'. "
    "Known: a100_node, default, full, mesh, tiny, tpu7x_slice, u280_hbm.",
    ("run", "gemm", "--topology", "tiny", "--device", "sip:9"): "--device must be 'all' or 'sip:N' with N from 0 to "
    "0, not "
    "'sip:9'.",
    ("run", "gemm", "--topology", "tiny", "--device", "gpu"): "--device must be 'all' or 'sip:N' with N from 0 to 0, "
    "not "
    "'gpu'.",
    ("run", "gemm", "--seed", "-1"): "option --seed must be an integer of at least 0, not '-1'.",
    ("run", "gemm", "--max-events", "0"): "option --max-events must be an integer of at least 1, not '0'.",
    ("run", "gemm", "--max-events", "many"): "option --max-events must be an integer of at least 1, not 'many'.",
    ("run", "gemm", "--max-sim-time", "5"): "option --max-sim-time must be a positive time with its unit, as '5 ms', "
    "not "
    "'5'.",
    ("run", "gemm", "--timeout", "5 GB"): "option --timeout must be a positive time with its unit, as '60 s', not '5 "
    "GB'.",
    ("run", "gemm", "--no-data", "--verify-data"): "verifying data needs data; leave out either --verify-data or "
    "--no-data.",
    ("run", "gemm", "-q", "-v"): "options -q and -v exclude each other; give one of them.",
    ("run", "gemm", "--trace", "t.csv"):
        "trace file must end in .json or .json.gz, .pftrace or .pftrace.gz, not 't.csv'.",
    ("run", "gemm", "--trace", "."):
        "trace file must end in .json or .json.gz, .pftrace or .pftrace.gz, not '.'.",
    ("run", "gemm", "--trace", "file/t.json"): "trace file 'file/t.json' must be in a folder, and 'file' is none; give "
    "another one.",
    ("run", "gemm", "--trace", "d.json"): "trace file 'd.json' must be a file in a folder that can be written; give "
    "another "
    "one.",
    ("run", "gemm", "--out", "file/o"): "--out must be in a folder, and 'file' is none; give another one.",
    ("run", "gemm", "--out", "file"): "--out must name a folder, not the file 'file'.",
    ("run", "gemm", "--bogus"): "No such option '--bogus'. See 'kernbench run --help'.",
    ("components", "builtin.pe_gmm"): "component must be a registered name or a part of one, not 'builtin.pe_gmm'. "
    "Did you mean 'builtin.pe_gemm'?",
    ("list", "gemn"): "bench must be a registered name, a part of one, or the path of a .py file, not 'gemn'. Did you "
    "mean 'gemv'?",
    ("topology", "list", "ful1"): "topology preset must be a registered name or a part of one, not 'ful1'. Did you "
    "mean 'full'?",
    ("rerun", "none.json"): "manifest 'none.json' must be a readable file: No such file or directory.",
    ("rerun", "file"): "manifest 'file' must be JSON; give the manifest.json of a run's --out.",
}
FILES = {
    "x = 1": (2, "bench file 'b.py' must define a function bench(rt, …)."),
    "def bench(rt): pass": (
        2,
        "bench 'b' must submit something to the device, but it returned without a copy or a launch; call rt.tensor or "
        "rt.launch in it.",
    ),
    "def bench(): pass": (2, "bench 'b' must take the runtime as its first parameter: def bench(rt, …)."),
    "def bench(rt):\n    yield": (
        2, "bench 'b' must be a plain function, with neither yield nor async: it would never run."
    ),
    "def bench(rt, n: int): pass": (2, "bench 'b' needs a value for 'n'; give it with -p n=VALUE."),
    "def bench(rt:\n": (6, "{here}/b.py:1: bench file must be valid Python, but '(' was never closed."),
    "import no_such_module": (
        6,
        "bench file 'b.py' must run to its end, but it raised ModuleNotFoundError: No module named 'no_such_module'.\n"
        '  File "{here}/b.py", line 1, in <module>\n    import no_such_module',
    ),
    "class Own(Exception):\n    def __str__(self): raise SystemExit(0)\nraise Own": (
        6,
        "bench file 'b.py' must run to its end, but it raised Own: <exception str() failed>.\n"
        '  File "{here}/b.py", line 3, in <module>\n    raise Own',
    ),
    "raise SystemExit(0)": (
        6,
        "bench file 'b.py' must run to its end, but it raised SystemExit: 0.\n"
        '  File "{here}/b.py", line 1, in <module>\n    raise SystemExit(0)',
    ),
}  # fmt: skip


@pytest.mark.parametrize("args", ARGUMENTS, ids=" ".join)
def test_a_wrong_argument_is_one_sentence(folder: Any, args: tuple[str, ...]) -> None:
    """Exit code 2, nothing on stdout, nothing written; with --json one object as well."""
    folder.write("file", "no JSON")
    (folder.path / "d.json").mkdir()
    outcome = folder.call(*args)
    sentence = ARGUMENTS[args]
    hint = re.escape(sentence).replace(r"'\-\-bogus'\.", r"'\-\-bogus'\.(?: \(Did you mean one of: .*\?\))?")
    assert re.fullmatch(f"error: {hint}\n", outcome.err), outcome.err
    assert (outcome.code, outcome.out, outcome.left) == (2, "", frozenset())
    again = folder.call(*args, "--json")
    found = json.loads(again.out)
    assert (found["schema"], found["exit_code"], len(found["problems"])) == ("kernbench.error/1", 2, 1)
    assert again.err == outcome.err == f"error: {found['problems'][0]}\n"


@pytest.mark.parametrize("source", FILES)
def test_a_bad_bench_file_is_one_sentence(folder: Any, source: str) -> None:
    """2 when it is no bench, 6 when its own code fails, with the line."""
    folder.write("b.py", source)
    outcome = folder.run("b.py")
    code, sentence = FILES[source]
    assert (outcome.code, outcome.out, outcome.left) == (code, "", frozenset())
    assert outcome.err == f"error: {sentence.format(here=folder.path)}\n"


def npy(array: Any, *, pickle: bool = False) -> bytes:
    """Return the bytes of a .npy file."""
    file = io.BytesIO()
    np.save(file, array, allow_pickle=pickle)
    return file.getvalue()


ARRAYS = {
    "shape": (
        npy(np.ones((3, 5), "f2")),
        "parameter 'M' of bench 'gemm' must be 3, as in array 'a' in 'a.npy' of shape (M, K) = (3, 5), not 512; leave "
        "it out, or give another array.",
    ),
    "dimensions": (
        npy(np.ones((2, 2, 2), "f2")),
        "parameter 'a' of bench 'gemm' must be an array of 2 dimensions, (M, K), not that in 'a.npy' of shape (2, 2, "
        "2); give another array.",
    ),
    "f64": (
        npy(np.ones((512, 512))),
        "parameter 'a' of bench 'gemm' must be an array of dtype f16 or bf16 or f32 or int8, not that in 'a.npy' of "
        "f64; cast it.",
    ),
    "complex": (
        npy(np.ones((512, 512), "c8")),
        "parameter 'a' of bench 'gemm' must be an array of dtype f16 or bf16 or f32 or int8, not that in 'a.npy' of "
        "complex64; cast it.",
    ),
}
NO_ARRAYS = {
    "objects": (npy(np.array([{}]), pickle=True), "it holds Python objects; save numbers"),
    "text": (b"hello", "it does not begin like one; save the array with numpy.save"),
    "empty": (b"", "it does not begin like one; save the array with numpy.save"),
    "part": (npy(np.ones((512, 512), "f2"))[:999], "it is cut short or damaged"),
}


@pytest.mark.parametrize("name", ARRAYS)
def test_an_array_that_does_not_fit_says_what_would(folder: Any, name: str) -> None:
    """Wrong shape or dtype: what it must be, what it is, what to give."""
    data, sentence = ARRAYS[name]
    folder.write("a.npy", data)
    outcome = folder.run("gemm", "-p", "a=a.npy", "-p", "M=512")
    assert (outcome.code, outcome.err) == (2, f"error: {sentence}\n")
    assert (outcome.out, outcome.left) == ("", frozenset())


@pytest.mark.parametrize("name", NO_ARRAYS)
def test_a_file_that_is_no_array_says_why(folder: Any, name: str) -> None:
    """Pickled objects are never loaded."""
    data, reason = NO_ARRAYS[name]
    folder.write("a.npy", data)
    outcome = folder.run("gemm", "-p", "a=a.npy")
    sentence = f"parameter 'a' of bench 'gemm' must be a .npy file, not 'a.npy' ({reason})."
    assert (outcome.code, outcome.out, outcome.err, outcome.left) == (2, "", f"error: {sentence}\n", frozenset())


def test_a_manifest_that_no_run_wrote_is_refused(folder: Any) -> None:
    """Missing fields, wrong types, an edited configuration, a lost or changed input: one sentence each."""
    folder.write("a.npy", npy(np.ones((64, 32), "f2")))
    args = ("--topology", "tiny", "-p", "M=64", "-p", "N=48", "-p", "K=32", "-p", "a=a.npy", "--out", "o", "-q")
    assert folder.call("run", "gemm", *args).code == 0
    whole = json.loads((folder.path / "o" / "manifest.json").read_text())
    right = whole["configuration_sha256"][:12]

    def rerun(**changes: Any) -> str:
        folder.write("o/m.json", json.dumps({k: v for k, v in {**whole, **changes}.items() if v != "gone"}))
        outcome = folder.call("rerun", "o/m.json")
        assert (outcome.code, outcome.out) == (2, "")
        return str(outcome.err).removeprefix("error: ")

    start = "manifest 'o/m.json' must be as a run wrote it, but "
    assert rerun(seed="gone", device="gone") == (
        "manifest 'o/m.json' must hold device, seed; restore it as the run wrote it.\n"
    )
    assert rerun(schema="x/2") == (
        "manifest 'o/m.json' must have schema 'kernbench.manifest/1', not 'x/2'; give the manifest.json of a run's "
        "--out.\n"
    )
    assert rerun(seed="x", plugins=5) == f"{start}seed is 'x', not an integer; plugins is 5, not a list; restore it.\n"
    assert rerun(bench={}) == f"{start}bench is {{}}, not a name, a function, or a file with its sha256; restore it.\n"
    assert rerun(limits={"max_evnts": 1}) == (
        f"{start}limits.max_evnts is 1, not the number of one of max_events, max_sim_ns, timeout_s; restore it.\n"
    )
    assert rerun(params={"a": {"file": "b"}}) == (
        f"{start}params.a is {{'file': 'b'}}, not a plain value or a file with its sha256; restore it.\n"
    )
    assert rerun(configuration={}) == (
        f"manifest 'o/m.json' must hold the configuration of SHA-256 {right}…, not 44136fa355b3…; to run a changed "
        "configuration, use kernbench run --set.\n"
    )
    assert rerun(bench={"name": "gone"}) == (
        f"bench must be a registered name or the path of a .py file, not 'gone'. Known: {BENCHES}.\n"
    )
    folder.write("o/params/a.npy", b"damaged")
    assert re.fullmatch(
        r"the file of parameter 'a' at 'o/params/a\.npy' must have SHA-256 [0-9a-f]{12}…, not [0-9a-f]{12}…; restore "
        r"the file "
        r"that the manifest was made with\.\n",
        rerun(),
    )
    (folder.path / "o" / "params" / "a.npy").unlink()
    assert rerun() == (
        "the file of parameter 'a' must be at 'o/params/a.npy'; put the file there, or run with --out to keep a copy.\n"
    )


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"params": {"M": 1.5}}, "parameter 'M' of bench 'gemm' must be an integer, not 1.5."),
        ({"params": {"M": True}}, "parameter 'M' of bench 'gemm' must be an integer, not True."),
        ({"device": 3}, "--device must be 'all' or 'sip:N' with N from 0 to 0, not 3."),
        ({"seed": "x"}, "the seed must be an integer of at least 0, not 'x'; give another --seed."),
        (
            {"set": "cube.pes=2"},
            "set must be a list of 'key.path=value' texts, or a mapping of 'key.path' to values, not 'cube.pes=2'.",
        ),
        ({"set": {"cube.pes": 0}}, "set cube.pes: cube.pes must be a positive integer, not 0."),
        (
            {"topology": {"base": "tiny", "sip": {"ucie": {"bandwidth": "12 ns"}}}},
            "topology.sip.ucie.bandwidth: sip.ucie.bandwidth must be a positive bandwidth, not '12 ns'. Did you mean "
            "'12 GB/s'?",
        ),
        ({"bench": 5}, "bench must be a registered name, the path of a .py file, or a function, not 5."),
        (
            {"topology": None},
            "topology must be a preset, the path of a file, or a mapping as YAML would give it, not None.",
        ),
        ({"components": 5}, "components must be a path, as text or a Path, or None, not 5."),
        ({"trace": 5}, "trace must be a path, as text or a Path, or None, not 5."),
        ({"trace": b"t.json"}, "trace must be a path, as text or a Path, or None, not b't.json'."),
        ({"out": True}, "out must be a path, as text or a Path, or None, not True."),
        ({"params": ["M=3"]}, "params must be a mapping of names to values, not ['M=3']."),
        ({"max_events": 1.5}, "max_events must be a positive integer or None, not 1.5."),
        ({"max_sim_ns": "5 us"}, "max_sim_ns must be a positive finite number or None, not '5 us'."),
        ({"timeout_s": -1}, "timeout_s must be a positive finite number or None, not -1."),
        (
            {"verify_data": True, "data": False},
            "verifying data needs data; leave out either --verify-data or --no-data.",
        ),
    ],
)
def test_python_is_told_the_same(folder: Any, given: dict[str, Any], sentence: str) -> None:
    """`kb.run` checks its arguments before anything runs."""
    with pytest.raises((UsageError, kb.ConfigError)) as caught:
        kb.run(**{"bench": "gemm", "topology": "tiny", "out": "o", **given}, plugins=folder.plugins)
    assert (str(caught.value), folder.files()) == (sentence, frozenset())


def test_a_rerun_of_what_is_no_path_is_told(folder: Any) -> None:
    """`kb.rerun` checks its manifest's type too."""
    with pytest.raises(UsageError) as caught:
        kb.rerun(5, plugins=folder.plugins)  # type: ignore[arg-type]
    assert str(caught.value) == "manifest must be the path of a file, as text or a Path, not 5."
