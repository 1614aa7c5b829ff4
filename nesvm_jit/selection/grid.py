"""Parse grids of C and γ: `low:high:count` in equal ratios, or numbers."""

from collections.abc import Iterable
from typing import Any

import numpy as np

from ..errors import InputError
from ..settings import positive

MOST = 1000  # values of a grid, at most
NAMES = ("scale", "auto")  # rules for γ that a grid may name instead of numbers


def cost_grid(costs: Any) -> list[float]:
    """Return the values of C in ascending order, each once."""
    return sorted({float(C) for C in _values("costs", costs, ())})


def gamma_grid(gammas: Any) -> list[float | str]:
    """Return the values of γ in the order given, each once; some may be "scale" or "auto"."""
    return list(dict.fromkeys(_values("gammas", gammas, NAMES)))


def _values(name: str, given: Any, names: tuple[str, ...]) -> list[Any]:
    if isinstance(given, str):
        values = _parse(name, given, names)
    elif isinstance(given, Iterable):
        values = list(given)
    else:
        values = [given]
    if not 1 <= len(values) <= MOST:
        raise InputError(f"{name} must have 1 to {MOST} values, got {len(values)}")
    for value in values:
        if not isinstance(value, str) or value not in names:
            positive(f"each of {name}", value)
    return [v if isinstance(v, str) else float(v) for v in values]


def _parse(name: str, text: str, names: tuple[str, ...]) -> list[Any]:
    parts = [part.strip() for part in text.split(":")]
    try:
        if len(parts) == 3:
            return _ratios(name, float(parts[0]), float(parts[1]), int(parts[2]))
        if len(parts) == 1:
            words = [word.strip() for word in text.split(",")]
            return [word if word in names else float(word) for word in words]
    except ValueError as e:
        if isinstance(e, InputError):
            raise
    also = "".join(f" or {word}" for word in names)
    raise InputError(
        f"{name} must be LOW:HIGH:COUNT or numbers{also} with commas between, got {text!r:.60}"
    )


def _ratios(name: str, low: float, high: float, count: int) -> list[float]:
    positive(f"the low end of {name}", low)
    positive(f"the high end of {name}", high)
    if not 1 <= count <= MOST:
        raise InputError(f"{name} must have 1 to {MOST} values, got {count}")
    if count == 1 and low != high:
        raise InputError(
            f"{name} of one value must begin and end with it, got {low:g} and {high:g}"
        )
    # rounded to 12 digits: 0.01, not 0.010000000000000002
    return [float(f"{v:.12g}") for v in np.geomspace(low, high, count)]
