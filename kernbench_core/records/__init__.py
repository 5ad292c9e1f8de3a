"""Plain classes of fields, as attrs makes them, at a third of the time that importing a class takes.

In: a class whose annotations are its fields. Out: the same with slots and methods, which are made when they are first
needed; attrs takes it for one of its own. Every module call it that a small run imports: half of those classes it never
makes anything of. What is rare attrs alone can do: converters that take the instance, hooks where a field is set.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from attrs import NOTHING as NOTHING
    from attrs import Factory as Factory
    from attrs import asdict as asdict
    from attrs import define as define
    from attrs import evolve as evolve
    from attrs import field as field
    from attrs import fields as fields
    from attrs import frozen as frozen
    from attrs import has as has
else:
    from kernbench_core.records.fields import NOTHING, Factory, field
    from kernbench_core.records.making import define, frozen
    from kernbench_core.records.uses import asdict, evolve, fields, has

__all__ = ["NOTHING", "Factory", "asdict", "define", "evolve", "field", "fields", "frozen", "has"]
