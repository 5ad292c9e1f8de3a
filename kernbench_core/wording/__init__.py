"""Parts of sentences that people read: what is shown of a value, of a long sentence, of many.

In: values, numbers and text of any length. Out: text of a bounded one. Errors and every room call it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kernbench_core.package import door

if TYPE_CHECKING:
    from kernbench_core.wording.numbers import join_names as join_names
    from kernbench_core.wording.numbers import number_runs as number_runs
    from kernbench_core.wording.numbers import spell_numbers as spell_numbers
    from kernbench_core.wording.sentences import MOST_TOLD as MOST_TOLD
    from kernbench_core.wording.sentences import brief as brief
    from kernbench_core.wording.sentences import first_of as first_of
    from kernbench_core.wording.sentences import in_a_line as in_a_line
    from kernbench_core.wording.sentences import schema_hint as schema_hint
    from kernbench_core.wording.sentences import shortened as shortened
    from kernbench_core.wording.sentences import with_full_stop as with_full_stop

__getattr__ = door(
    __name__,
    dict.fromkeys(
        ("MOST_TOLD", "brief", "first_of", "in_a_line", "schema_hint", "shortened", "with_full_stop"), "sentences"
    )
    | dict.fromkeys(("join_names", "number_runs", "spell_numbers"), "numbers"),
)
