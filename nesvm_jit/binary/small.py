"""Small problems: all sub-problems of a machine are fitted in one compiled call, and settled.

Where many of them take long together, there are several calls, so that Ctrl-C is heard between two.
What the call cannot finish, the engines go on with from its point. Callbacks see the rounds
of a call once it has ended; where one of them ends a fit, the call is made again up to that round,
so that what is returned is what was found by then. After the time limit, what is certified is kept,
and nothing else is gone on with.
"""

import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from ..clock import must_end, watching
from ..jit import get_threads, one_blas_thread
from ..kernels import small, small_newton, small_pairs
from ..kernels.loss import HINGE, RowData
from ..kernels.small import Ends, Parts
from ..kernels.small_newton import Rules
from ..matrix.matrix import Csr, Matrix, shape
from ..matrix.rows import as_scipy, narrowed
from ..models import MODELS
from ..problems.few import FewKernelRows, FewRows, norms_above
from ..problems.labels import bias_range, radius_of
from ..problems.linear import SMALL as SHARES
from ..problems.rounding import TINY, EntryError, growth, norm_above
from ..problems.settling import settle_linear
from ..problems.settling_kernel import settle_kernel
from ..problems.upper_bound import settle_objective
from ..problems.walk import FAINT
from ..settings import HALF_SQUARE, Settings
from ..solvers import newton
from ..solvers.run import COLUMNS, proves, relative_gap
from .centred import centre_columns
from .kernel_matrix import budget_bytes, precomputed_matrix, small_matrix
from .solution import Solution
from .start import Start, Unfinished

MOST_CELLS = 1 << 19  # rows times features of a linear sub-problem
WIDEST = 128  # features: wider Hessians are factorised faster by LAPACK, one after the other
MOST_ROWS = 2000  # of a kernel matrix, 32 MB
MOST_SQUARES = 500  # rows of a linear system that is factorised
LARGEST = 1e100  # that n · C · ‖x‖² may be; what is said of larger ones is said elsewhere
ROUNDS = 200  # of a call at most: a fit that takes more is not small
# Numbers that a call reads at most, in about a third of a second, or more where each thread would
# have less than one sub-problem. One class of 4000 x 128 is half of it.
AT_ONCE = 3 * 10**8
FINEST = 1e-9  # the smallest tolerance: for less, rounding is watched round by round


class Part(NamedTuple):
    """A sub-problem: its rows (None: all), their signs and what they cost."""

    rows: np.ndarray | None
    sign: np.ndarray
    c: np.ndarray


SmallFit = Solution | Unfinished


def solve_small_problems(
    X: Matrix,
    parts: Sequence[Part],
    settings: Settings,
    limits: Callable[[int], Settings] | None = None,
) -> list[SmallFit] | None:
    """The solutions of sub-problems on rows of one matrix, fitted in one compiled call, or where
    the engines go on with them; None if they are not small, or ask for something else.

    `limits` gives the settings of a sub-problem, with its own callback and what is left of the
    time, for those that have such.
    """
    if not suits(X, parts, settings):
        return None
    with one_blas_thread():
        data = (_OnRows if settings.kernel == "linear" else _OnGram).of(X, parts, settings)
        if data is None:
            return None
        fits = _Fits(data, settings)
        fits.run()
        return [fits.end(k, limits(k) if limits else settings) for k in range(len(parts))]


def suits(X: Matrix, parts: Sequence[Part], settings: Settings) -> bool:
    """Whether sub-problems are small enough, and ask for nothing that only an engine can do. Nobody
    looks at the clock in the call: where time is limited, all of them together must be as small as
    one has to be."""
    n, p = shape(X)
    plain = settings.solver == "auto" and settings.moving_centre is not False
    if not plain or settings.returned != "best" or settings.tol < FINEST or n == 0:
        return False
    sizes = [len(part.sign) for part in parts]
    most, limited = max(sizes), settings.time_limit is not None
    if settings.kernel == "linear":
        cells = (sum(sizes) if limited else most) * p
        return 0 < p <= WIDEST and cells <= MOST_CELLS and settings.approx is None
    if settings.approx is not None or settings.model not in HALF_SQUARE or n > MOST_ROWS:
        return False
    if settings.model == "lssvm" and most > MOST_SQUARES:
        return False
    if limited and n * sum(sizes) > MOST_ROWS**2:
        return False
    return settings.cache_mb is None or 8.0 * n * n <= 0.5 * budget_bytes(settings.cache_mb)


def _dense(X: Matrix) -> np.ndarray:
    """X in float64, rows one after the other."""
    return np.ascontiguousarray(as_scipy(X).toarray() if isinstance(X, Csr) else X, np.float64)


def _lists_of(parts: Sequence[Part], n: int) -> Parts:
    """The sub-problems as compiled code reads them."""
    sizes = [0, *(len(part.sign) for part in parts)]
    every = np.arange(n)
    return Parts(
        np.cumsum(sizes),
        np.concatenate([every if part.rows is None else part.rows for part in parts]),
        np.concatenate([part.sign for part in parts]),
        np.concatenate([part.c for part in parts]),
    )


class _OnRows:
    """Linear machines, by Newton's steps on the smoothed problem."""

    def __init__(self, X: np.ndarray, parts: Sequence[Part], settings: Settings):
        self.X, self.parts, self.settings = X, parts, settings
        self.lists = _lists_of(parts, len(X))
        self.model = MODELS[settings.model]()
        self.width = X.shape[1] + settings.bias
        self.norms = norms_above(X)
        self.tops = np.abs(X).max(axis=1)

    @classmethod
    def of(cls, X: Matrix, parts: Sequence[Part], settings: Settings) -> "_OnRows | None":
        """Where columns far from zero need to be moved, or rows are so large that their squares
        overflow, nothing."""
        if narrowed(X)[1] is not None or (settings.bias and centre_columns(X)[1] is not None):
            return None
        data = cls(_dense(X), parts, settings)
        most = max(float(part.c.max()) for part in parts) * float(data.norms.max()) ** 2
        return data if most * len(X) <= LARGEST and float(data.norms.max()) <= LARGEST else None

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
        at = slice(None) if rows is None else rows
        X, norms, tops = self.X[at], self.norms[at], self.tops[at]
        s = np.maximum(tops, 1.0) if self.settings.bias else np.where(tops > 0.0, tops, 1.0)
        few = FewRows(X, norms, RowData(part.sign, part.c, s), self.model, self.settings.bias)
        w, b = point[:p], float(point[-1]) if self.settings.bias else 0.0
        objective, dual, f = settle_linear(few, w, b, alpha, tol)
        if self.model.smoothed_penalty:
            w, objective, f = self._sparsest(few, w, b, objective, dual.value, f)
        b_range = None
        if self.settings.bias and not self.model.smoothed_penalty:
            off = (radius_of(objective, dual.value) + growth(p + 8.0) * norm_above(w)) * norms
            off += (p + 1.0) * TINY + growth(8.0) * (np.abs(f) + abs(b))
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


class _OnGram:
    """Kernel machines, by steps of pairs on the kernel matrix, or by solving a linear system."""

    width = 1

    def __init__(
        self, K: np.ndarray, entries: EntryError, parts: Sequence[Part], settings: Settings
    ):
        self.K, self.entries, self.parts, self.settings = K, entries, parts, settings
        self.lists = _lists_of(parts, len(K))
        self.model = MODELS[settings.model]()

    @classmethod
    def of(cls, X: Matrix, parts: Sequence[Part], settings: Settings) -> "_OnGram | None":
        """The kernel matrix in float64."""
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
        found = settle_kernel(rows, data, loss, bias, beta, b, beta * part.sign)  # type: ignore[arg-type]
        b_range = None
        if bias:
            off = found.off + radius_of(found.objective, found.dual.value) * rows.entries.roots
            b_range = bias_range(part.sign, part.c, found.f, off, loss)
        values = {"objective": found.objective, "dual_objective": found.dual.value}
        more = {"alpha": found.dual.alpha, "bias_range": b_range, "margins": found.f + b}
        return {**values, **more, "w": None, "beta": found.beta, "b": b}


class _Fits:
    """One compiled call and what it found."""

    def __init__(self, data: _OnRows | _OnGram, settings: Settings):
        self.data, self.settings = data, settings
        self.started, self.interrupted = time.perf_counter(), False
        self.most = 1 if settings.time_limit == 0.0 else min(ROUNDS, settings.max_iter)

    def run(self) -> None:
        """Fit all sub-problems; Ctrl-C is heard when a call has ended."""
        parts = self.data.lists
        count, n = len(parts.starts) - 1, len(parts.y)
        self.ends = ends = self._ends(count, n, self.most)
        ended, size = "", max(get_threads(), count * AT_ONCE // max(1, self.data.work()))
        try:
            with watching():
                for lo in range(0, count, size):
                    some = slice(lo, min(count, lo + size))
                    own = parts._replace(starts=parts.starts[lo : some.stop + 1])
                    columns = (ends.points[some], ends.duals, ends.trace[some], ends.how[some])
                    self.data.fit(own, self.most, Ends(*columns))
                    ended = must_end() if some.stop < count else ""
                    if ended:
                        break
        except KeyboardInterrupt:
            ended = "interrupted"
        self.interrupted = ended == "interrupted"
        self.seconds = time.perf_counter() - self.started
        limit = self.settings.time_limit
        self.late = ended == "time_limit" or (limit is not None and self.seconds >= limit)

    def _ends(self, count: int, n: int, most: int) -> Ends:
        points, trace = np.zeros((count, self.data.width)), np.empty((count, most, small.TRACED))
        return Ends(points, np.zeros(n), trace, np.zeros((count, small.ENDED), np.int64))

    def end(self, k: int, settings: Settings) -> SmallFit:
        """The solution of a sub-problem, or where it is to be gone on with; also after Ctrl-C."""
        try:
            return self._conclude(k, settings)
        except KeyboardInterrupt:
            self.interrupted = True
            return self._conclude(k, settings)

    def _conclude(self, k: int, settings: Settings) -> SmallFit:
        ends, starts, part = self.ends, self.data.lists.starts, self.data.parts[k]
        point, dual, trace = ends.points[k], ends.duals[starts[k] : starts[k + 1]], ends.trace[k]
        rounds, steps, reached = ends.how[k].tolist()
        history, status = self._history(trace[:rounds]), ""
        if self.interrupted:
            status = "interrupted"
        elif settings.callback is not None:
            last = rounds - 1 if reached else rounds  # a round that is certified ends by itself
            status, told = _told(history, last, settings.callback)
            if told < rounds:
                point, dual = self._again(k, told)
                rounds, reached = told, 0
                history = {name: column[:told] for name, column in history.items()}
        if not status and not reached and rounds == settings.max_iter:
            status = "iteration_limit"
        best_row = self.data.best_row(history["objective"]) if rounds else None
        found = self.data.settle(point, dual, part) if reached and not status else None
        gap = np.inf if found is None else relative_gap(found["objective"], found["dual_objective"])
        if found is None or not proves(gap, settings.tol):
            if not status and self.late:  # what is certified is kept, also after the time
                status = "time_limit"
            rows = [tuple(row) for row in zip(*(history[c].tolist() for c in COLUMNS), strict=True)]
            return Unfinished(self.data.start(point, dual, part), status, rounds, best_row, rows)
        history["objective"][best_row] = found["objective"]
        return Solution(
            gap=gap,
            certified=True,
            n_iter=rounds,
            status="converged",
            solver=self.data.engine(steps),
            why="the data are so few that one compiled call fits them",
            model=settings.model,
            history=history,
            **found,
        )

    def _history(self, trace: np.ndarray) -> dict[str, np.ndarray]:
        """The rounds of a sub-problem as one array per column."""
        rounds = np.arange(1, len(trace) + 1)
        objective = trace[:, small.OBJECTIVE].copy()
        dual = np.maximum.accumulate(trace[:, small.DUAL])  # rounding may lower that of pairs
        best = np.minimum.accumulate(objective)
        gap = np.divide(best - dual, best, out=np.zeros(len(best)), where=best > 0.0)
        columns = (rounds, trace[:, small.MU], trace[:, small.SMOOTHED], objective, dual, gap)
        seconds = np.full(len(trace), self.seconds)
        return dict(zip(COLUMNS, (*columns, seconds, rounds.astype(float)), strict=True))

    def _again(self, k: int, most: int) -> tuple[np.ndarray, np.ndarray]:
        """What a sub-problem had found after so many rounds."""
        lists = self.data.lists
        lo, hi = lists.starts[k], lists.starts[k + 1]
        own = Parts(np.array([0, hi - lo]), *(a[lo:hi] for a in lists[1:]))
        ends = self._ends(1, int(hi - lo), most)
        self.data.fit(own, most, ends)
        return ends.points[0], ends.duals


def _told(
    history: dict[str, np.ndarray], last: int, callback: Callable[[dict[str, Any]], Any]
) -> tuple[str, int]:
    """Whether the callback, told round after round, ends a sub-problem, and after which round."""
    for i in range(last):
        if callback({name: column[i].item() for name, column in history.items()}):
            return "interrupted", i + 1
    return "", len(history["round"])
