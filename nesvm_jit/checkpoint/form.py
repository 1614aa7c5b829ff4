"""What a state that was saved must look like before compiled loops are let loose on it.

A checksum tells damage, not whether somebody has edited a file and sealed it again. A form is a
function that raises a ValueError where a value is not as it must be.
"""

import math
from collections.abc import Callable
from typing import Any

import numpy as np

Form = Callable[[Any], None]


class MismatchError(ValueError):
    """What is wrong, and in which field."""


def number(value: Any) -> None:
    """A number; it may be infinite."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise MismatchError(f"a number is required, got {value!r:.40}")


def whole(value: Any) -> None:
    """A whole number from 0 on."""
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 1 << 62:
        raise MismatchError(f"a whole number is required, got {value!r:.40}")


def whole_up_to(most: int) -> Form:
    """A whole number from 0 to this."""

    def check(value: Any) -> None:
        whole(value)
        if value > most:
            raise MismatchError(f"a whole number up to {most} is required, got {value!r:.40}")

    return check


def duration(value: Any) -> None:
    """Seconds from 0 on."""
    number(value)
    if not 0.0 <= value < math.inf:
        raise MismatchError(f"seconds are required, got {value!r:.40}")


def flag(value: Any) -> None:
    """True or false."""
    if not isinstance(value, bool):
        raise MismatchError(f"true or false is required, got {value!r:.40}")


def no(value: Any) -> None:
    """False."""
    if value is not False:
        raise MismatchError(f"false is required, got {value!r:.40}")


def text(value: Any) -> None:
    """A string."""
    if not isinstance(value, str):
        raise MismatchError(f"text is required, got {value!r:.40}")


def plain(value: Any) -> None:
    """Anything without arrays in it."""
    if isinstance(value, np.ndarray):
        raise MismatchError("no array is allowed")
    for part in value.values() if isinstance(value, dict) else value if _is_list(value) else ():
        plain(part)


def anything(value: Any) -> None:
    """What is looked at elsewhere."""


def one_of(*names: str) -> Form:
    """One of these names."""

    def check(value: Any) -> None:
        if not isinstance(value, str) or value not in names:
            raise MismatchError(f"one of {', '.join(names)} is required, got {value!r:.40}")

    return check


def optional(form: Form) -> Form:
    """None, or this."""

    def check(value: Any) -> None:
        if value is not None:
            form(value)

    return check


def either(*forms: Form) -> Form:
    """One of these, said to be the last where it is none."""

    def check(value: Any) -> None:
        for form in forms[:-1]:
            try:
                return form(value)
            except MismatchError:
                continue
        return forms[-1](value)

    return check


def floats(*shape: int | None) -> Form:
    """An array of float64 of this shape; None stands for any length."""

    def check(value: Any) -> None:
        fits = (
            isinstance(value, np.ndarray)
            and value.dtype == np.float64
            and value.ndim == len(shape)
            and all(a in (None, b) for a, b in zip(shape, value.shape, strict=True))
        )
        if not fits:
            got = getattr(value, "shape", value)
            raise MismatchError(f"numbers of shape {shape} are required, got {got!r:.40}")

    return check


def column(value: Any) -> None:
    """A vector of numbers, of any length and type."""
    if not isinstance(value, np.ndarray) or value.ndim != 1 or value.dtype.kind not in "fiu":
        raise MismatchError("a column of numbers is required")


def row_numbers(n: int) -> Form:
    """As many numbers of rows as there are rows."""

    def check(value: Any) -> None:
        fits = isinstance(value, np.ndarray) and value.dtype == np.int64 and value.shape == (n,)
        if not fits or not ((value >= 0) & (value < n)).all():
            raise MismatchError(f"{n} numbers of rows are required")

    return check


def whole_numbers(value: Any) -> None:
    """A vector of whole numbers."""
    if not isinstance(value, np.ndarray) or value.dtype != np.int64 or value.ndim != 1:
        raise MismatchError("a column of whole numbers is required")


def rows_of(n: int) -> Form:
    """Different numbers of rows, of n."""

    def check(value: Any) -> None:
        whole_numbers(value)
        inside = ((value >= 0) & (value < n)).all()
        if not inside or len(np.unique(value)) != len(value):
            raise MismatchError(f"different numbers of rows below {n} are required")

    return check


def one_random_state(value: Any) -> None:
    """The state of the random numbers of compiled loops."""
    if not isinstance(value, np.ndarray) or value.dtype != np.uint64 or value.shape != (1,):
        raise MismatchError("the state of random numbers is required")


def sequence(*forms: Form) -> Form:
    """A list or tuple of these."""

    def check(value: Any) -> None:
        if not _is_list(value) or len(value) != len(forms):
            raise MismatchError(f"a list of {len(forms)} is required, got {type(value).__name__}")
        for k, (form, part) in enumerate(zip(forms, value, strict=True)):
            _inside(str(k), form, part)

    return check


def table(form: Form) -> Form:
    """Any names, with this for each."""

    def check(value: Any) -> None:
        _require_fields(value)
        for name, part in value.items():
            _inside(name, form, part)

    return check


def fields(*, rest: Form | None = None, **forms: Form) -> Form:
    """These names and, where there is a form for the rest, others."""

    def check(value: Any) -> None:
        _require_fields(value)
        for name, form in forms.items():
            if name not in value:
                raise MismatchError(f"{name} is missing")
            _inside(name, form, value[name])
        for name in (name for name in value if name not in forms):
            if rest is None:
                raise MismatchError(f"{name} is unknown")
            _inside(name, rest, value[name])

    return check


def known_fields(**forms: Form) -> Form:
    """Some of these names, and no others."""

    def check(value: Any) -> None:
        _require_fields(value)
        for name, part in value.items():
            if name not in forms:
                raise MismatchError(f"{name} is unknown")
            _inside(name, forms[name], part)

    return check


def _require_fields(value: Any) -> None:
    if not isinstance(value, dict):
        raise MismatchError(f"named fields are required, got {type(value).__name__}")


def _inside(name: str, form: Form, value: Any) -> None:
    try:
        form(value)
    except MismatchError as e:
        raise MismatchError(f"{name}: {e}") from None


def _is_list(value: Any) -> bool:
    return isinstance(value, (list, tuple))
