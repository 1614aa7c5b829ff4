"""Where a solver starts."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..checkpoint.checkpoint import Slot
from ..errors import InputError
from ..matrix.checks import as_number, as_vector

FARTHEST = 1e50  # that an entry of w⁰ or w⋆ may be from zero: squares of margins stay numbers


@dataclass(frozen=True)
class Unfinished:
    """Where a compiled call has left a problem that it could not finish, or that was cut short:
    the point is a `Start`, found in that row of the history."""

    start: "Start"
    status: str
    rounds: int
    best_row: int | None
    history: list[tuple[Any, ...]]


@dataclass(frozen=True)
class Start:
    """Where a linear solver starts and the prox-centre of the paper's methods; zero by default.
    α⁰, a dual point, is what newton and coordinate start from best. The slot is where its state
    is saved; one that was is taken up."""

    w0: Any = None
    b0: float = 0.0
    w_star: Any = None
    b_star: float = 0.0
    alpha0: Any = None
    slot: Slot | None = None

    @property
    def is_cold(self) -> bool:
        """Whether nothing is known that a solver could start from, and nothing is saved."""
        given = (self.w0, self.w_star, self.alpha0, self.slot)
        return not (self.b0 or self.b_star or any(v is not None for v in given))

    def of_features(self, kept: np.ndarray, p: int) -> "Start":
        """The same start for some of the p features."""
        w0, w_star = (
            None if w is None else as_vector(name, w, p)[kept]
            for name, w in (("w0", self.w0), ("w_star", self.w_star))
        )
        return replace(self, w0=w0, w_star=w_star)

    def moved(self, shift: np.ndarray) -> "Start":
        """The same start for rows that have been moved by −m: b + m·w in place of b."""
        b0, b_star = (
            b if w is None else as_number(name, b) + float(as_vector("w", w, len(shift)) @ shift)
            for name, w, b in (("b0", self.w0, self.b0), ("b_star", self.w_star, self.b_star))
        )
        return replace(self, b0=b0, b_star=b_star)

    def points(self, p: int, bias: bool) -> tuple[np.ndarray, np.ndarray]:
        """[w⁰; b⁰] and [w⋆; b⋆], checked."""
        return (
            _point("w0", self.w0, as_number("b0", self.b0), p, bias),
            _point("w_star", self.w_star, as_number("b_star", self.b_star), p, bias),
        )


def _point(name: str, w: Any, b: float, p: int, bias: bool) -> np.ndarray:
    """[w; b], zero by default."""
    w = np.zeros(p) if w is None else as_vector(name, w, p)
    if max(np.abs(w).max(initial=0.0), abs(b)) > FARTHEST:
        raise InputError(f"{name} and its bias must be within {FARTHEST:g} of zero")
    return np.append(w, b) if bias else w.copy()
