"""The order of atomic ops: one for each element, which all data follows, whoever asks; replayed here lane by lane."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
from hypothesis import example, given, settings
from hypothesis import strategies as st

import kernbench as kb

# mypy: disable-error-code="import-not-found"

BITS = ("and", "or", "xor")
HOWS = ("add", "max", "min", *BITS, "xchg", "cas")
DTYPES = (np.int32, np.int64, np.uint32, np.float32, np.float16, ml_dtypes.bfloat16)


def step(how: str, found: Any, new: Any, compared: Any) -> Any:
    """Say what one lane leaves in an element."""
    if how in BITS:
        return {"and": found & new, "or": found | new, "xor": found ^ new}[how]
    if how == "cas":
        return new if found == compared else found
    return {"add": found + new, "max": max(found, new), "min": min(found, new), "xchg": new}[how]


def replayed(log: Any, how: str, dtype: Any, memory: dict[int, Any], first: int) -> list[Any]:
    """Let the lanes of a log's atomic ops take turns on `memory`, by address; return what each found."""
    found = []
    ops = [record for record in log if record.op_name == f"atomic_{how}"]
    for record in sorted(ops, key=lambda record: record.params["turn"]):
        place = [
            region.base + row * region.pitch + at
            for region in record.reads[0].regions
            for row in range(region.rows)
            for at in range(0, region.row_bytes, np.dtype(dtype).itemsize)
        ]
        new, lanes, *compared = [access.value.array().reshape(-1) for access in record.reads[1:]]
        for lane, element in enumerate(lanes):
            address = place[element]
            memory.setdefault(address, dtype(first))
            found.append(memory[address])
            memory[address] = dtype(step(how, memory[address], new[lane], compared[0][lane] if compared else None))
    return found


@settings(max_examples=20)
@given(
    how=st.sampled_from(HOWS), dtype=st.sampled_from(DTYPES), width=st.sampled_from((1, 2, 8, 32)),
    programs=st.integers(1, 6), elements=st.sampled_from((1, 3, 40)), seed=st.integers(0, 99),
)  # fmt: skip
@example(how="cas", dtype=np.int32, width=8, programs=4, elements=1, seed=0)
@example(how="add", dtype=np.float32, width=8, programs=6, elements=40, seed=1)
@example(how="add", dtype=ml_dtypes.bfloat16, width=32, programs=2, elements=3, seed=2)
@example(how="max", dtype=np.uint32, width=32, programs=6, elements=3, seed=3)
def test_all_data_follows_the_turns(how: str, dtype: Any, width: int, programs: int, elements: int, seed: int) -> None:
    """What every lane found, and what is left, are those of a loop over the turns of the log."""
    narrow, floats = np.dtype(dtype).itemsize == 2, not np.issubdtype(dtype, np.integer)
    if (how != "cas" and narrow) or (how in BITS and floats):
        how = "add"
    rng = np.random.default_rng(seed)
    lanes = width * programs
    at = rng.integers(0, elements, lanes).astype(np.int32)
    new, compared = (rng.integers(0, 5 if how == "cas" else 99, lanes).astype(dtype) for _ in range(2))
    keep = (rng.random(lanes) < 0.8).astype(np.int32) if how != "cas" else np.ones(lanes, np.int32)
    memory, out = np.full(elements, 3, dtype), np.full(lanes, 77, dtype)
    with kb.triton("tiny", verify_ops=True) as sim:
        import triton
        import triton.language as tl

        @triton.jit
        def kernel(m: Any, at: Any, new: Any, old: Any, keep: Any, out: Any, HOW: Any, B: tl.constexpr) -> None:  # noqa: N803
            i = tl.program_id(0) * B + tl.arange(0, B)
            where, value = tl.load(at + i), tl.load(new + i)
            if HOW == "cas":
                found = tl.atomic_cas(m + where, tl.load(old + i), value)
            else:
                found = getattr(tl, f"atomic_{HOW}")(m + where, value, mask=tl.load(keep + i) != 0)
            tl.store(out + i, found)

        kernel[(programs,)](memory, at, new, compared, keep, out, how, B=width)
    assert sim.result is not None
    assert (sim.result.hazards, sim.verified) == ((), True)
    left: dict[int, Any] = {}
    found = replayed(sim.result.op_log, how, dtype, left, 3)
    kept = keep != 0
    assert sorted(out[kept].tolist()) == sorted(float(each) for each in found)
    assert not out[~kept].any()
    assert sorted(memory[np.unique(at[kept])].tolist()) == sorted(float(each) for each in left.values())
    assert (memory[np.setdiff1d(np.arange(elements), at[kept])] == 3).all()
    if how == "add" and np.issubdtype(dtype, np.integer):
        expected = np.full(elements, 3, dtype)
        np.add.at(expected, at[kept], new[kept])
        assert memory.tolist() == expected.tolist()
