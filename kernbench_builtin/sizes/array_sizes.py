"""Sizes and dtypes that the arrays of a bench say, so that nobody has to give them as well."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from attrs import define, field, frozen

from kernbench_core.errors import StoreError, UsageError
from kernbench_core.values.dtypes import NAMES, dtype_name, info
from kernbench_core.wording import brief

Extents: TypeAlias = tuple[str, ...]
#: The first of two extents, where the second is what the elements of an array of any shape are counted by.
ANY_SHAPE = "..."


@frozen
class ArraySizes:
    """Say what the array parameters of a bench are like.

    `shapes` has for each the names of its extents, once for each number of dimensions that it may have; "heads*tokens"
    is a product, and (ANY_SHAPE, "n") counts the elements of any shape. A name of a parameter is that parameter, any
    other an extent that arrays have in common. `dtypes` has for each the parameter that names its dtype.
    """

    shapes: Mapping[str, tuple[Extents, ...]]
    dtypes: Mapping[str, str]

    def sentences(self) -> dict[str, str]:
        """Return what each array is like, in words."""
        return {name: f"Of {' or '.join(map(_shown, forms))}." for name, forms in self.shapes.items()}

    def check(self, bench: str, kinds: Mapping[str, str]) -> None:
        """Raise UsageError where `sizes_from` speaks of parameters that the bench does not have, or not as such."""
        named = {*self.shapes, *self.dtypes}
        extents = (extent for forms in self.shapes.values() for form in forms for extent in form)
        factors = {one for extent in extents for one in extent.split("*")}
        wanted = (
            (named, ("npy",), "an array"),
            (factors & kinds.keys(), ("int",), "an integer"),
            (set(self.dtypes.values()), ("choice", "str"), "a text"),
        )
        for names, right, words in wanted:
            for name in sorted(names):
                if kinds.get(name) not in right:
                    raise UsageError(
                        f"sizes_from of bench {bench!r} must name {name!r} as {words} only if the bench has such a "
                        f"parameter; its parameters are: {', '.join(kinds)}."
                    )

    def derive(
        self,
        bench: str,
        given: Mapping[str, Any],
        files: Mapping[str, str],
        choices: Mapping[str, Sequence[str]],
    ) -> dict[str, Any]:
        """Return the sizes and dtypes that the arrays in `given` say, by name; those of `given` itself among them.

        Arrays need `shape` and `dtype`. `files` are the files that they were read from, `choices` the dtypes that a
        parameter may have. Raise UsageError, naming both, where arrays and parameters contradict each other.
        """
        found = _Found(bench, self.shapes, files, {name: value for name, value in given.items() if value is not None})
        arrays = [(name, found.given[name]) for name in self.shapes if name in found.given]
        extents = [(name, *each) for name, array in arrays for each in found.extents(name, array)]
        for products in (False, True):
            for name, extent, size in extents:
                if ("*" in extent) is products:
                    found.settle(name, extent, size)
        for name, array in arrays:
            if name in self.dtypes:
                param = self.dtypes[name]
                found.agree(name, param, found.dtype(name, array, param, choices.get(param) or NAMES))
        return found.values


@define
class _Found:
    """What has been found so far: `values` by name, and in `said` the array that said it."""

    bench: str
    shapes: Mapping[str, tuple[Extents, ...]]
    files: Mapping[str, str]
    given: Mapping[str, Any]
    values: dict[str, Any] = field(factory=dict)
    said: dict[str, str] = field(factory=dict)

    def form(self, name: str, array: Any) -> Extents:
        """Return the names of an array's extents; UsageError where it has others, or no element."""
        forms = [form for form in self.shapes[name] if form[0] == ANY_SHAPE or len(form) == len(array.shape)]
        if forms and 0 not in array.shape:
            return forms[0]
        wanted = " or ".join(f"of {_dimensions(form)}" for form in self.shapes[name]) if not forms else "with elements,"
        raise UsageError(
            f"parameter {name!r} of bench {self.bench!r} must be an array {wanted} not "
            f"{self._where(name)}of shape {tuple(array.shape)}; give another array."
        )

    def extents(self, name: str, array: Any) -> list[tuple[str, int]]:
        """Return what an array's extents are called, with their sizes."""
        form = self.form(name, array)
        if form[0] == ANY_SHAPE:
            return [(form[1], math.prod(map(int, array.shape)))]
        return list(zip(form, map(int, array.shape), strict=True))

    def settle(self, name: str, extent: str, size: int) -> None:
        """Take one extent of an array for what it is called, or for the one factor of it that is not known."""
        factors = extent.split("*")
        if len(factors) == 1:
            self.agree(name, extent, size)
            return
        unknown = [factor for factor in factors if self._known(factor) is None]
        rest = math.prod(self._known(factor) for factor in factors if factor not in unknown)
        if len(unknown) > 1 or rest < 1:
            return  # the bench has defaults for them, and compares the whole shape
        if size % rest or (not unknown and size != rest):
            must = " * ".join(factor if factor in unknown else f"{self._known(factor)}" for factor in factors)
            raise UsageError(
                f"array {self._is(name, size)} of bench {self.bench!r} must have {extent} = {must} in place of {size}; "
                "give other sizes, or another array."
            )
        if unknown:
            self.agree(name, unknown[0], size // rest)

    def agree(self, name: str, what: str, value: Any) -> None:
        """Note what an array says of a size or dtype; raise UsageError where that was given, or said, otherwise."""
        known = self._known(what)
        if known is None:
            self.values[what], self.said[what] = value, name
        elif known != value and what in self.said:
            raise UsageError(
                f"arrays {self.said[what]!r} and {name!r} of bench {self.bench!r} must agree on {what!r}, not be "
                f"{self._is(self.said[what], known)} and {self._is(name, value)}; give another array."
            )
        elif known != value:
            raise UsageError(
                f"parameter {what!r} of bench {self.bench!r} must be {value!r}, as in array {self._is(name, value)}, "
                f"not {brief(known)}; leave it out, or give another array."
            )
        self.values.setdefault(what, value)

    def dtype(self, name: str, array: Any, param: str, choices: Sequence[str]) -> str:
        """Return the name of an array's dtype; UsageError where it is none of `choices`."""
        dtype = array.dtype
        if isinstance(dtype, str):
            found: str | None = dtype
        elif dtype.kind == "V" and dtype.name.startswith("void"):  # numpy's files have no name for bf16 and the like
            narrow = [each for each in choices if _is_narrow(each, dtype.itemsize)]
            wanted = self.given.get(param)
            if wanted not in narrow and len(narrow) > 1:
                raise UsageError(
                    f"parameter {param!r} of bench {self.bench!r} must be given, as {' or '.join(narrow)}: array "
                    f"{self._is(name, str(dtype))} holds bytes, and does not say which."
                )
            found = wanted if wanted in narrow else next(iter(narrow), None)
        else:
            try:
                found = dtype_name(dtype)
            except StoreError:
                found = None
        if found is None or found not in choices:
            raise UsageError(
                f"parameter {name!r} of bench {self.bench!r} must be an array of dtype {' or '.join(choices)}, not "
                f"{self._where(name)}of {found or dtype}; cast it."
            )
        return found

    def _known(self, what: str) -> Any:
        return self.given.get(what, self.values.get(what))

    def _where(self, name: str) -> str:
        """Say which file an array is from."""
        return f"that in {self.files[name]!r} " if name in self.files else ""

    def _is(self, name: str, of: Any) -> str:
        """Name an array with its file, and what stands in it that size or dtype `of`."""
        array, file = self.given[name], f" in {self.files[name]!r}" if name in self.files else ""
        if isinstance(of, str):
            return f"{name!r}{file} of dtype {of}"
        form, shape = self.form(name, array), tuple(array.shape)
        if form[0] == ANY_SHAPE:
            return f"{name!r}{file} of shape {shape}, {form[1]} = {math.prod(shape)} in all"
        return f"{name!r}{file} of {_shown(form)} = {shape}"


def _is_narrow(name: str, nbytes: int) -> bool:
    return info(name).library == "ml_dtypes" and info(name).itemsize == nbytes


def _shown(form: Extents) -> str:
    return f"{form[1]} elements in any shape" if form[0] == ANY_SHAPE else f"shape ({_names(form)})"


def _dimensions(form: Extents) -> str:
    return f"{len(form)} dimension{'s' if len(form) != 1 else ''}, ({_names(form)}),"


def _names(form: Extents) -> str:
    return f"{', '.join(form)}{',' if len(form) == 1 else ''}"
