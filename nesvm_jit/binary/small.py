"""Small problems: all sub-problems of a machine are fitted in one compiled call, and settled.

Where many of them take long together, there are several calls, so that Ctrl-C is heard between two.
What the call cannot finish, the engines go on with from its point. Callbacks see the rounds
of a call once it has ended; where one of them ends a fit, the call is made again up to that round,
so that what is returned is what was found by then. After the time limit, what is certified is kept,
and nothing else is gone on with.
"""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from ..clock import must_end, watching
from ..jit import get_threads
from ..kernels import small, small_settle
from ..kernels.small import Ends, Parts
from ..kernels.small_settle import Verdict
from ..matrix.matrix import Matrix
from ..settings import HALF_SQUARE, Settings
from ..solvers.run import COLUMNS, proves, relative_gap
from .kernel_matrix import budget_bytes
from .small_data import OnGram, OnRows, Part
from .solution import Solution
from .start import Unfinished

MOST_CELLS = 1 << 19  # rows times features of a linear sub-problem
WIDEST = 128  # features: wider Hessians are factorised faster by LAPACK, one after the other
MOST_ROWS = 2000  # of a kernel matrix, 32 MB
MOST_SQUARES = 500  # rows of a linear system that is factorised
ROUNDS = 200  # of a call at most: a fit that takes more is not small
# Numbers that a call reads at most, in about a third of a second, or more where each thread would
# have less than one sub-problem. One class of 4000 x 128 is half of it.
AT_ONCE = 3 * 10**8
FINEST = 1e-9  # the smallest tolerance: for less, rounding is watched round by round


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
    data = (OnRows if settings.kernel == "linear" else OnGram).of(X, parts, settings)
    if data is None:
        return None
    fits = _Fits(data, settings)
    fits.run()
    return [fits.end(k, limits(k) if limits else settings) for k in range(len(parts))]


def suits(X: Matrix, parts: Sequence[Part], settings: Settings) -> bool:
    """Whether sub-problems are small enough, and ask for nothing that only an engine can do. Nobody
    looks at the clock in the call: where time is limited, all of them together must be as small as
    one has to be."""
    n, p = X.shape
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


class Rounds(Mapping[str, np.ndarray]):
    """The rounds of a sub-problem as one array per column, made when they are asked for."""

    def __init__(
        self,
        trace: np.ndarray,
        seconds: float,
        data: OnRows | OnGram,
        objective: float | None = None,  # P at the point, once it is settled
    ):
        self._trace, self._seconds, self._data, self._objective = trace, seconds, data, objective

    def settled(self, objective: float) -> "Rounds":
        """The same rounds of a run whose P is settled."""
        return Rounds(self._trace, self._seconds, self._data, objective)

    @cached_property
    def _columns(self) -> dict[str, np.ndarray]:
        trace, rounds = self._trace, np.arange(1, len(self._trace) + 1)
        objective = trace[:, small.OBJECTIVE].copy()
        dual = np.maximum.accumulate(trace[:, small.DUAL])  # rounding may lower that of pairs
        best = np.minimum.accumulate(objective)
        gap = np.divide(best - dual, best, out=np.zeros(len(best)), where=best > 0.0)
        if self._objective is not None:
            objective[self._data.best_row(objective)] = self._objective
            np.maximum(objective, self._objective, out=objective)  # as good but for rounding
        columns = (rounds, trace[:, small.MU], trace[:, small.SMOOTHED], objective, dual, gap)
        more = self["seconds"], rounds.astype(float)
        return dict(zip(COLUMNS, (*columns, *more), strict=True))

    def __getitem__(self, name: str) -> np.ndarray:
        if name == "seconds":  # which training asks for, and nothing else
            return np.full(len(self._trace), self._seconds)
        return self._columns[name]

    def __iter__(self) -> Iterator[str]:
        return iter(COLUMNS)

    def __len__(self) -> int:
        return len(COLUMNS)


class _Fits:
    """One compiled call, what it found, and what is true of it."""

    def __init__(self, data: OnRows | OnGram, settings: Settings):
        self.data, self.settings = data, settings
        self.started, self.interrupted = time.perf_counter(), False
        self.most = 1 if settings.time_limit == 0.0 else min(ROUNDS, settings.max_iter)
        self.verdict: Verdict | None = None

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
            if not ended:
                self.verdict = self.data.judge(ends)
        except KeyboardInterrupt:
            ended = "interrupted"
        self.interrupted = ended == "interrupted"
        self.seconds = time.perf_counter() - self.started
        limit = self.settings.time_limit
        self.late = ended == "time_limit" or (limit is not None and self.seconds >= limit)
        self.starts, self.how = parts.starts.tolist(), self.ends.how.tolist()
        self.said = None if self.verdict is None else self.verdict.said.tolist()

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
        rounds, steps, reached = self.how[k]
        history, status = Rounds(self.ends.trace[k, :rounds], self.seconds, self.data), ""
        if self.interrupted:
            status = "interrupted"
        elif settings.callback is not None:
            last = rounds - 1 if reached else rounds  # a round that is certified ends by itself
            status, told = _told(history, last, settings.callback)
            if told < rounds:
                return self._unfinished(k, status, *self._again(k, told))
        if not status and not reached and rounds == settings.max_iter:
            status = "iteration_limit"
        if reached and not status:
            found = self._settled(k)
            gap = relative_gap(found["objective"], found["dual_objective"])
            if proves(gap, settings.tol):
                return Solution(
                    gap=gap,
                    certified=True,
                    n_iter=rounds,
                    status="converged",
                    solver=self.data.engine(steps),
                    why="the data are so few that one compiled call fits them",
                    model=settings.model,
                    history=history.settled(found["objective"]),
                    **found,
                )
        if not status and self.late:  # what is certified is kept, also after the time
            status = "time_limit"
        lo, hi = self.starts[k], self.starts[k + 1]
        return self._unfinished(k, status, self.ends.points[k], self.ends.duals[lo:hi], history)

    def _settled(self, k: int) -> dict[str, Any]:
        """What a solution consists of, its values true in exact arithmetic."""
        lo, hi = self.starts[k], self.starts[k + 1]
        point, part = self.ends.points[k], self.data.parts[k]
        if self.verdict is None or self.said is None or not self.said[k][small_settle.SETTLED]:
            return self.data.settle(point, self.ends.duals[lo:hi], part)
        objective, dual, least, most, *_ = self.said[k]
        ranged = self.settings.bias
        return {
            **self.data.machine(point, self.verdict.duals[lo:hi], part),
            "objective": objective,
            "dual_objective": dual,
            "margins": self.verdict.margins[lo:hi],
            "bias_range": (least, most) if ranged else None,
        }

    def _unfinished(
        self, k: int, status: str, point: np.ndarray, dual: np.ndarray, history: Rounds
    ) -> Unfinished:
        rows = [tuple(row) for row in zip(*(history[c].tolist() for c in COLUMNS), strict=True)]
        best_row = self.data.best_row(history["objective"]) if rows else None
        start = self.data.start(point, dual, self.data.parts[k])
        return Unfinished(start, status, len(rows), best_row, rows)

    def _again(self, k: int, most: int) -> tuple[np.ndarray, np.ndarray, Rounds]:
        """What a sub-problem had found after so many rounds."""
        lists = self.data.lists
        lo, hi = lists.starts[k], lists.starts[k + 1]
        own = Parts(np.array([0, hi - lo]), *(a[lo:hi] for a in lists[1:]))
        ends = self._ends(1, int(hi - lo), most)
        self.data.fit(own, most, ends)
        history = Rounds(ends.trace[0, : ends.how[0, small.ROUNDS]], self.seconds, self.data)
        return ends.points[0], ends.duals, history


def _told(history: Rounds, last: int, callback: Callable[[dict[str, Any]], Any]) -> tuple[str, int]:
    """Whether the callback, told round after round, ends a sub-problem, and after which round."""
    for i in range(last):
        if callback({name: column[i].item() for name, column in history.items()}):
            return "interrupted", i + 1
    return "", len(history["round"])
