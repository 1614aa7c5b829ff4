"""Prepare numbers for pictures: round them, thin curves, count histograms, format them."""

import math
from collections.abc import Iterable
from typing import Any

import numpy as np

DIGITS = 6
BINS = 70  # bins of a histogram, at most
# If the range of all values is more than FAR times that of nearly all of them (99.6 %), the bins
# cover the latter, and values outside are counted in the first and the last bin.
FAR = 3.0
RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def plain(value: Any, digits: int = DIGITS) -> int | float | None:
    """Round a number for JSON; whole numbers become int, those that are not finite None."""
    if value is None or not math.isfinite(value):
        return None
    rounded = float(f"{value:.{digits}g}")
    return int(rounded) if rounded.is_integer() and abs(rounded) < 1e15 else rounded


def plain_list(values: Iterable[Any], digits: int = DIGITS) -> list[int | float | None]:
    """Apply `plain` to every number."""
    return [plain(v, digits) for v in values]


def thin(n: int, most: int) -> np.ndarray:
    """Choose about `most` of the numbers 0 … n − 1 or fewer: both ends, and more at the start."""
    if n <= most:
        return np.arange(n)
    half = max(1, most // 2)
    early = np.geomspace(1, n, half).astype(np.int64) - 1
    even = np.linspace(0, n - 1, half).round().astype(np.int64)
    return np.union1d(early, even)


def spread(n: int, most: int) -> np.ndarray:
    """Choose at most `most` of the numbers 0 … n − 1, evenly spaced."""
    return np.arange(n) if n <= most else np.linspace(0, n - 1, most).round().astype(np.int64)


def histogram(groups: list[np.ndarray], bins: int = BINS) -> dict[str, Any]:
    """Return edges at multiples of 1, 2 or 5 · 10^k, the counts of every group, and the names of
    bins that also hold far values."""
    values = np.concatenate(groups)
    values = values[np.isfinite(values)]
    if not len(values):
        values = np.zeros(1)
    lo, hi = float(values.min()), float(values.max())
    low, high = (float(q) for q in np.quantile(values, (0.002, 0.998)))
    if hi - lo > FAR * (high - low) > 0.0:
        lo, hi = low, high
    width = round_up((hi - lo) / bins) if hi > lo else round_up(max(abs(hi), 1.0) / bins)
    first, last = math.floor(lo / width), math.floor(hi / width) + 1
    edges = width * np.arange(first, last + 1)
    inside = [np.clip(g[np.isfinite(g)], edges[0], np.nextafter(edges[-1], lo)) for g in groups]
    names = {}
    if values.min() < edges[0]:
        names["0"] = f"below {text(edges[1])}"
    if values.max() > edges[-1]:
        names[str(len(edges) - 2)] = f"above {text(edges[-2])}"
    return {
        "edges": plain_list(edges),
        "counts": [np.histogram(g, edges)[0].tolist() for g in inside],
        "names": names,
    }


def bin_name(chart: dict[str, Any], i: int) -> str:
    """Return the range of values in bin i of a histogram, as text."""
    edges = chart["edges"]
    return chart["names"].get(str(i)) or f"{text(edges[i])} to {text(edges[i + 1])}"


def round_up(width: float) -> float:
    """Round up to the next 1, 2 or 5 · 10^k."""
    power = 10.0 ** math.floor(math.log10(width))
    step = next(s for s in (1, 2, 5, 10) if s * power >= width * (1 - 1e-9))
    return float(f"{step * power:.12g}")


def text(value: float | None, digits: int = 4) -> str:
    """Format a number for people: 12 345, 0.0123, 1.2e-07."""
    if value is None or math.isnan(value):
        return "–"
    if math.isinf(value):
        return "∞" if value > 0 else "−∞"
    value = float(value)
    if value.is_integer() and abs(value) < 1e15:
        shown = f"{int(value):,}"
        shown = shown.replace(",", "") if abs(value) < 10_000 else shown.replace(",", "\u202f")
    elif abs(value) >= 10_000:
        whole, _, part = f"{value:,.{1 if abs(value) < 1e6 else 0}f}".partition(".")
        shown = whole.replace(",", "\u202f") + (f".{part}" if part else "")
    else:
        shown = f"{value:.{digits}g}"
    return shown.replace("-", "−", 1) if shown.startswith("-") else shown


def power_text(value: float) -> str:
    """Format a tick of a logarithmic axis: 10⁻³, 2·10⁴."""
    digits, power = f"{value:.2e}".split("e")
    raised = f"10{str(int(power)).translate(RAISED)}"
    return raised if float(digits) == 1.0 else f"{float(digits):g}·{raised}"


def label(value: float) -> str:
    """Format the label of a class as files do."""
    return f"{value:.9g}"


def percent(fraction: float, up: bool = False) -> str:
    """Format a fraction in per cent with two digits. With `up`, for upper bounds, it is rounded up
    to two digits or to a millionth of a per cent."""
    if not math.isfinite(fraction):
        return "∞ %"
    value = 100.0 * fraction
    if value == 0.0:
        return "0 %"
    value = max(value, 1e-6) if up else value
    unit = 10.0 ** (math.floor(math.log10(abs(value))) - 1)
    steps = math.ceil(value / unit - 1e-9) if up else round(value / unit)
    return np.format_float_positional(float(f"{steps * unit:.3g}"), trim="-") + "\u00a0%"


def share(part: int, whole: int) -> str:
    """Format part / whole in per cent with two decimals."""
    return f"{100.0 * part / whole:.2f}\u00a0%" if whole else "–"


def duration(seconds: float) -> str:
    """Format a time: 0.42 s, 12.3 s, 4 min 5 s, 2 h 3 min."""
    if seconds < 0.001:
        return "< 1\u00a0ms"
    if seconds < 1.0:
        return (
            f"{seconds:.2g}\u00a0s"
            if seconds >= 0.1
            else f"{float(f'{1000 * seconds:.2g}'):g}\u00a0ms"
        )
    if seconds < 60.0:
        return f"{seconds:.3g}\u00a0s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes}\u00a0min {rest}\u00a0s"
    return f"{minutes // 60}\u00a0h {minutes % 60}\u00a0min"
