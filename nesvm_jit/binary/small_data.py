"""What a compiled call fits: small linear machines on their rows, small kernel machines on their
kernel matrix, and how what it found is settled."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ..jit import one_blas_thread
from ..kernels import small_newton, small_pairs, small_settle
from ..kernels.loss import HINGE, RowData
from ..kernels.rounding import product_off
from ..kernels.small import Ends, Parts
from ..kernels.small_newton import Rules
from ..kernels.small_settle import Entries, Verdict
from ..matrix.matrix import Csr, Matrix, readonly
from ..matrix.rows import as_scipy, narrowed
from ..models import MODELS
from ..problems.few import FewKernelRows, FewRows, norms_above
from ..problems.labels import bias_range, radius_of
from ..problems.linear import SMALL as SHARES
from ..problems.rounding import EntryError, norm_above
from ..problems.settling import settle_linear
from ..problems.settling_kernel import settle_kernel
from ..problems.sharpness import felt_share
from ..problems.upper_bound import settle_objective
from ..problems.walk import FAINT
from ..settings import Settings
from ..solvers import newton
from .centred import centre_columns
from .kernel_matrix import precomputed_matrix, small_matrix
from .start import Start

LARGEST = 1e100  # that n · C · ‖x‖² may be; what is said of larger ones is said elsewhere


class Part(NamedTuple):
    """A sub-problem: its rows (None: all), their signs and what they cost."""

    rows: np.ndarray | None
    sign: np.ndarray
    c: np.ndarray


def dense_rows(X: Matrix) -> np.ndarray:
    """X in float64, rows one after the other."""
    dense = as_scipy(X).toarray() if isinstance(X, Csr) else X
    return readonly(np.ascontiguousarray(dense, np.float64))


def lists_of(parts: Sequence[Part], n: int) -> Parts:
    """The sub-problems as compiled code reads them."""
    sizes = [0, *(len(part.sign) for part in parts)]
    every = np.arange(n)
    return Parts(
        np.cumsum(sizes),
        np.concatenate([every if part.rows is None else part.rows for part in parts]),
        np.concatenate([part.sign for part in parts]),
        np.concatenate([part.c for part in parts]),
    )


def empty_verdict(lists: Parts) -> Verdict:
    """Memory for what is true of sub-problems."""
    n, count = len(lists.y), len(lists.starts) - 1
    return Verdict(np.empty((count, small_settle.SAID)), np.empty(n), np.empty(n))


class OnRows:
    """Linear machines, by Newton's steps on the smoothed problem."""

    def __init__(self, X: np.ndarray, parts: Sequence[Part], settings: Settings):
        self.X, self.parts, self.settings = X, parts, settings
        self.lists = lists_of(parts, len(X))
        self.model = MODELS[settings.model]()
        self.width = X.shape[1] + settings.bias

    @classmethod
    def of(cls, X: Matrix, parts: Sequence[Part], settings: Settings) -> "OnRows | None":
        """Where columns far from zero need to be moved, or rows are so large that their squares
        overflow, nothing."""
        if narrowed(X)[1] is not None or (settings.bias and centre_columns(X)[1] is not None):
            return None
        rows = dense_rows(X)
        reach, cost = (
            float(max(rows.max(), -rows.min())),
            max(float(part.c.max()) for part in parts),
        )
        square = rows.shape[1] * reach * reach
        small = cost * square * len(rows) <= LARGEST and reach <= LARGEST
        return cls(rows, parts, settings) if small else None

    def fit(self, parts: Parts, most: int, ends: Ends) -> None:
        """One call for all sub-problems."""
        s, model = self.settings, self.model
        first = newton.FIRST.loss
        rules = Rules(
            first, newton.SMALLEST * first, newton.FACTOR, newton.ENOUGH, newton.NO_DESCENT, FAINT
        )
        how = (s.bias, model.loss, model.smoothed_penalty, s.tol, rules, most, ends)
        small_newton._newton_fit(len(parts.starts) - 1, self.X, parts, *how)

    def work(self) -> int:
        """About how many numbers all sub-problems read."""
        return small_newton._work_of_newton(self.X, self.lists, self.settings.bias)

    def judge(self, ends: Ends) -> Verdict | None:
        """What is true of all sub-problems, in one call; of the ℓ1 norm, nothing."""
        if self.model.smoothed_penalty:
            return None
        s, p = self.settings, self.X.shape[1]
        felt = np.array([felt_share(len(part.sign) * p, s.tol) for part in self.parts])
        verdict = empty_verdict(self.lists)
        how = (s.bias, self.model.loss, felt, ends, verdict)
        small_settle._settle_rows(len(felt), self.X, self.lists, *how)
        return verdict

    def machine(self, point: np.ndarray, dual: np.ndarray, part: Part) -> dict[str, Any]:
        """The machine at a point, α being settled."""
        p = self.X.shape[1]
        b = float(point[-1]) if self.settings.bias else 0.0
        return {"w": point[:p], "beta": None, "b": b, "alpha": dual}

    def start(self, point: np.ndarray, alpha: np.ndarray, part: Part) -> Start:
        """Where an engine goes on."""
        p = self.X.shape[1]
        return Start(point[:p], float(point[-1]) if self.settings.bias else 0.0, alpha0=alpha)

    def engine(self, steps: int) -> str:
        """The name of what this is a compiled form of."""
        return "newton"

    def best_row(self, objective: np.ndarray) -> int:
        """The round that the point was found in."""
        return int(objective.argmin())

    def settle(self, point: np.ndarray, alpha: np.ndarray, part: Part) -> dict[str, Any]:
        """What a solution consists of, its values true in exact arithmetic."""
        tol, p, rows = self.settings.tol, self.X.shape[1], part.rows
        X = self.X if rows is None else self.X[rows]
        norms, tops = norms_above(X), np.abs(X).max(axis=1)
        s = np.maximum(tops, 1.0) if self.settings.bias else np.where(tops > 0.0, tops, 1.0)
        few = FewRows(X, norms, RowData(part.sign, part.c, s), self.model, self.settings.bias)
        w, b = point[:p], float(point[-1]) if self.settings.bias else 0.0
        with one_blas_thread():
            objective, dual, f = settle_linear(few, w, b, alpha, tol)
            if self.model.smoothed_penalty:
                w, objective, f = self._sparsest(few, w, b, objective, dual.value, f)
        b_range = None
        if self.settings.bias and not self.model.smoothed_penalty:
            off = product_off(radius_of(objective, dual.value), p, norm_above(w), norms, f, b)
            b_range = bias_range(part.sign, part.c, f - b, off, self.model.loss)
        values = {"objective": objective, "dual_objective": dual.value, "alpha": dual.alpha}
        return {**values, "w": w, "beta": None, "b": b, "margins": f, "bias_range": b_range}

    def _sparsest(
        self, few: FewRows, w: np.ndarray, b: float, objective: float, dual: float, f: np.ndarray
    ) -> tuple[np.ndarray, float, np.ndarray]:
        """The weights with as many zeros as the tolerance allows, P there and the margins."""
        size = np.abs(w)
        for share in SHARES:
            zeros = np.where(size <= share * size.max(initial=0.0), 0.0, w)
            P, margins = settle_objective(few, zeros, b, self.settings.tol)
            if objective >= P or P - dual <= self.settings.tol * P:
                return zeros, P, margins
        return w, objective, f


class OnGram:
    """Kernel machines, by steps of pairs on the kernel matrix, or by solving a linear system."""

    width = 1

    def __init__(
        self, K: np.ndarray, entries: EntryError, parts: Sequence[Part], settings: Settings
    ):
        self.K, self.entries, self.parts, self.settings = K, entries, parts, settings
        self.lists = lists_of(parts, len(K))
        self.model = MODELS[settings.model]()

    @classmethod
    def of(cls, X: Matrix, parts: Sequence[Part], settings: Settings) -> "OnGram | None":
        """The kernel matrix in float64."""
        with one_blas_thread():
            return cls._of(X, parts, settings)

    @classmethod
    def _of(cls, X: Matrix, parts: Sequence[Part], settings: Settings) -> "OnGram":
        if settings.kernel == "precomputed":
            K, entries = precomputed_matrix(X)
            K = np.require(K, np.float64, ["C", "A", "O", "W"])
        else:
            K, entries = small_matrix(X, settings)
        return cls(K, entries, parts, settings)

    def fit(self, parts: Parts, most: int, ends: Ends) -> None:
        """One call for all sub-problems."""
        s = self.settings
        fit = small_pairs._pairs_fit if self.model.loss == HINGE else small_pairs._least_squares_fit
        fit(len(parts.starts) - 1, self.K, parts, s.bias, s.tol, most, ends)

    def work(self) -> int:
        """About how many numbers all sub-problems read."""
        hinge = self.model.loss == HINGE
        of = small_pairs._work_of_pairs if hinge else small_pairs._work_of_factors
        return of(self.K, self.lists)

    def judge(self, ends: Ends) -> Verdict:
        """What is true of all sub-problems, in one call."""
        verdict, entries = empty_verdict(self.lists), Entries(*self.entries)
        how = (self.settings.bias, self.model.loss, entries, ends, verdict)
        small_settle._settle_gram(len(self.parts), self.K, self.lists, *how)
        return verdict

    def machine(self, point: np.ndarray, dual: np.ndarray, part: Part) -> dict[str, Any]:
        """The machine at a point, β being settled."""
        return {"w": None, "beta": dual, "b": float(point[0]), "alpha": dual * part.sign}

    def start(self, point: np.ndarray, beta: np.ndarray, part: Part) -> Start:
        """Where an engine goes on."""
        return Start(alpha0=beta * part.sign)

    def engine(self, steps: int) -> str:
        """The name of what this is a compiled form of."""
        return "coordinate" if self.model.loss == HINGE and not steps else "newton"

    def best_row(self, objective: np.ndarray) -> int:
        """The round that the point was found in: the last."""
        return len(objective) - 1

    def settle(self, point: np.ndarray, beta: np.ndarray, part: Part) -> dict[str, Any]:
        """What a solution consists of, its values true in exact arithmetic."""
        rows, b, bias = (
            FewKernelRows(self.K, part.rows, self.entries),
            float(point[0]),
            self.settings.bias,
        )
        data, loss = RowData(part.sign, part.c, part.c), self.model.loss
        with one_blas_thread():
            found = settle_kernel(rows, data, loss, bias, beta, b, beta * part.sign)  # type: ignore[arg-type]
        b_range = None
        if bias:
            off = found.off + radius_of(found.objective, found.dual.value) * rows.entries.roots
            b_range = bias_range(part.sign, part.c, found.f, off, loss)
        values = {"objective": found.objective, "dual_objective": found.dual.value}
        more = {"alpha": found.dual.alpha, "bias_range": b_range, "margins": found.f + b}
        return {**values, **more, "w": None, "beta": found.beta, "b": b}
