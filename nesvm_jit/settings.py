"""The settings of a fit: one table of them, and the names of models, kernels, solvers and statuses.

`solve` and `train` make a `Settings` of their keywords. The options of the command line are made
from the table, and tests compare `NESVC` and the documents with it. This module imports nothing
heavy, since `--help` needs it, too.
"""

import os
import sys
from collections.abc import Callable
from dataclasses import dataclass, field, fields
from numbers import Integral, Rational, Real
from typing import Any, NamedTuple

from .errors import FormatError, InputError

MODELS = ("csvm", "lpsvm", "lssvm")
# Models with the penalty ½‖w‖². Coordinate steps need it, and with a kernel it becomes ½βᵀKβ. With
# a kernel, other models are linear machines whose features are the columns of K.
HALF_SQUARE = ("csvm", "lssvm")
KERNELS = ("linear", "poly", "rbf", "precomputed")
SOLVERS = ("auto", "nesvm", "homotopy", "newton", "coordinate")
# Solvers with the constant smoothing `mu`; all others start at `mu_start`.
ONE_SMOOTHING = ("nesvm",)
PAPERS = ("nesvm", "homotopy")  # the paper's algorithms, by default as printed
# Solvers of kernel machines, f = Kβ + b; a new engine of linear problems does not belong here.
KERNEL_SOLVERS = ("auto", "nesvm", "homotopy", "newton", "coordinate")
MULTICLASS = ("ovo", "ovr")
LIPSCHITZ = ("paper", "tight")
SCHEDULES = ("paper", "geometric", "gap")
SCORES = ("accuracy", "balanced_accuracy", "f1", "auc")
RETURNED = ("best", "last")


class Explanation(NamedTuple):
    """The reason why a run with some status is not certified, and what to do about it. Names of
    settings are in braces."""

    why: str
    remedy: str


# The statuses of a run, the worst first; only `converged` means certified to the tolerance.
ENDINGS = {
    "interrupted": Explanation("it was interrupted, and what it found was kept", "let it run on"),
    "time_limit": Explanation("the time limit was reached", "raise {time_limit} or {tol}"),
    "iteration_limit": Explanation(
        "the limit of iterations was reached", "raise {max_iter} or {tol}"
    ),
    "stalled": Explanation(
        "rounding leaves nothing more to gain", "scale the features, lower {C} or raise {tol}"
    ),
    "epsilon": Explanation(
        "the paper's rule, a change below {epsilon}, ended it",
        "lower {epsilon} and {mu} or {mu_end}, or choose the {solver} auto",
    ),
    "converged": Explanation("", ""),
}
STATUSES = tuple(ENDINGS)
CUT_SHORT = STATUSES[:3]  # the statuses of runs that can be continued


# ---------------------------------------------------------------- checks of one value


def one_of(name: str, value: Any, allowed: Any) -> None:
    """Require one of these names."""
    if not isinstance(value, str) or value not in allowed:
        raise InputError(f"{name} must be one of {', '.join(allowed)}, got {value!r:.60}")


def positive(name: str, value: Any, zero: bool = False) -> None:
    """Require a finite number above zero, or with `zero` also zero."""
    number = _number(value)
    if number is None or not 0 <= number <= sys.float_info.max or (number == 0 and not zero):
        shown = f"{value!r:.60}"
        raise InputError(f"{name} must be {'zero or ' * zero}positive and finite, got {shown}")


def whole_number(name: str, value: Any, least: int, most: int | None = None) -> int:
    """Require a whole number within these limits, not a boolean, and return it as int."""
    whole = isinstance(value, Integral) and not isinstance(value, bool)
    if not whole or value < least or (most is not None and value > most):
        limits = f"from {least}" if most is None else f"from {least} to {most}"
        raise InputError(f"{name} must be a whole number {limits}, got {value!r:.60}")
    return int(value)


def boolean(name: str, value: Any) -> None:
    """Require True or False, of Python or NumPy."""
    if type(value).__name__ not in ("bool", "bool_"):
        raise InputError(f"{name} must be True or False, got {value!r:.60}")


def _number(value: Any) -> int | float | None:
    """Convert an int or a float of Python or NumPy to Python's; for anything else, also for a
    Fraction, return None."""
    if isinstance(value, Integral):
        return int(value)
    return float(value) if isinstance(value, Real) and not isinstance(value, Rational) else None


class OneOf(NamedTuple):
    """The kind of a setting that is one of these names."""

    names: tuple[str, ...]

    def check(self, name: str, value: Any) -> None:
        one_of(name, value, self.names)


class Positive(NamedTuple):
    """The kind of a setting that is a finite number above zero, or with `zero` also zero."""

    zero: bool = False

    def check(self, name: str, value: Any) -> None:
        positive(name, value, self.zero)


class Whole(NamedTuple):
    """The kind of a setting that is a whole number of at least `least`."""

    least: int

    def check(self, name: str, value: Any) -> None:
        whole_number(name, value, self.least)


class YesOrNo(NamedTuple):
    """The kind of a setting that is True or False."""

    def check(self, name: str, value: Any) -> None:
        boolean(name, value)


class Function(NamedTuple):
    """The kind of a setting that can be called."""

    def check(self, name: str, value: Any) -> None:
        if not callable(value):
            raise InputError(f"{name} must be a function, got {value!r:.60}")


class File(NamedTuple):
    """The kind of a setting that is the name of a file, not a stream, since it is read again."""

    def check(self, name: str, value: Any) -> None:
        if isinstance(value, (str, os.PathLike)) and value not in ("", "-", "/dev/stdout"):
            return
        shown = f"{value!r:.60}"
        if isinstance(value, (str, bytes)) and value and os.fsdecode(value).isprintable():
            shown = os.fsdecode(value)
        elif hasattr(value, "read") or hasattr(value, "write"):
            shown = str(getattr(value, "name", "<file object>"))
        raise FormatError(f"{name} must be the name of a file, got {shown}")


class OfKernel(NamedTuple):
    """The kind of a setting that is a parameter of a kernel; `kernels.gram.as_spec` checks it if
    the kernel has it."""

    def check(self, name: str, value: Any) -> None:
        pass


Kind = OneOf | Positive | Whole | YesOrNo | Function | File | OfKernel


# ---------------------------------------------------------------- the table


def setting(default: Any, kind: Kind, help: str) -> Any:
    """Make a row of the table. A setting with the default None may be None."""
    return field(default=default, metadata={"kind": kind, "help": help})


@dataclass(frozen=True)
class Settings:
    """The problem to solve, the solver, and the rules for stopping; checked when it is made.

    A run stops when the certified gap reaches `tol` (0 means as small as rounding allows), when
    the solver's own rule holds (|ΔF_μ| < epsilon; at `mu_end`), when nothing improves any more,
    at a limit, when the callback returns true, or at Ctrl-C. The best point so far, or the last
    one, is returned with its certificate. With a checkpoint, the callback ends a run at the end
    of an iteration.
    """

    model: str = setting(
        "csvm",
        OneOf(MODELS),
        "Choose the model: csvm minimises the squared norm and hinge loss, lpsvm the l1 norm and "
        "hinge loss, lssvm the squared norm and squared loss.",
    )
    kernel: str = setting(
        "linear",
        OneOf(KERNELS),
        "Choose the kernel: linear is u'v, poly (gamma*u'v + coef0)^degree, rbf "
        "exp(-gamma*|u-v|^2); with precomputed the data are the kernel matrix.",
    )
    C: float = setting(
        1.0, Positive(), "Weigh the loss of the rows by C; a larger C fits them more closely."
    )
    bias: bool = setting(True, YesOrNo(), "Train a bias term, which is not penalised.")
    solver: str = setting(
        "auto",
        OneOf(SOLVERS),
        "Choose the solver: nesvm and homotopy are the paper's Algorithms 1 and 2, auto chooses "
        "what suits the data.",
    )
    tol: float = setting(
        1e-3, Positive(zero=True), "Stop when the certified relative duality gap is this small."
    )
    gamma: float | str | None = setting(
        None,
        OfKernel(),
        "Set gamma of poly and rbf: a number, or scale for 1/(features*variance) (default: "
        "1/features).",
    )
    degree: int = setting(3, OfKernel(), "Set the degree of poly.")
    coef0: float = setting(0.0, OfKernel(), "Set the constant of poly. It must not be negative.")
    cache_mb: float | None = setting(
        None,
        Positive(),
        "Use up to this many MB for rows of the kernel matrix (default: a quarter of the memory).",
    )
    approx: str | None = setting(
        None,
        OneOf(("nystroem",)),
        "Approximate poly or rbf by landmarks. The machine is then trained as a linear one, which "
        "suits many rows.",
    )
    landmarks: int | None = setting(
        None, Whole(1), "Draw this many rows as landmarks of the approximation (default: 1000)."
    )
    mu: float = setting(5.0, Positive(), "Set the smoothing mu of nesvm.")
    nu: float | None = setting(
        None,
        Positive(),
        "Set the smoothing of the hinge of lpsvm, if it shall not be that of its norm.",
    )
    mu_start: float = setting(5.0, Positive(), "Set the smoothing that homotopy starts with.")
    mu_end: float | None = setting(
        None, Positive(), "Set the smoothing that homotopy ends with (default: 1/100 of the first)."
    )
    epsilon: float = setting(
        1e-3,
        Positive(zero=True),
        "Stop nesvm, and each stage of homotopy, when the smoothed objective changes by less than "
        "this.",
    )
    lipschitz: str | None = setting(
        None,
        OneOf(LIPSCHITZ),
        "Choose the step constant of nesvm and homotopy: the paper's (default) or tight, the "
        "smaller one from the largest eigenvalue.",
    )
    schedule: str | None = setting(
        None, OneOf(SCHEDULES), "Choose how homotopy lowers the smoothing (default: paper)."
    )
    restart: bool | None = setting(
        None, YesOrNo(), "Forget the momentum when the gradient points against the step."
    )
    strong: bool = setting(
        False, YesOrNo(), "Take the momentum from strong convexity: csvm or lssvm without bias."
    )
    returned: str = setting(
        "best",
        OneOf(RETURNED),
        "Return the best point found, or the last one, as the paper's algorithms (nesvm and "
        "homotopy) do.",
    )
    moving_centre: bool | None = setting(
        None, YesOrNo(), "Smooth about the last dual point (default: newton does)."
    )
    max_iter: int = setting(
        100_000, Whole(1), "Stop each sub-problem after this many iterations of its solver."
    )
    time_limit: float | None = setting(
        None, Positive(zero=True), "Stop solving after this many seconds."
    )
    seed: int = setting(
        0,
        Whole(0),
        "Draw folds, landmarks and the order in which coordinate visits rows from this seed.",
    )
    callback: Callable[[dict[str, Any]], object] | None = setting(  # noqa: RUF009
        None, Function(), "Call this with a dict at every iteration; a true answer ends the run."
    )
    checkpoint: str | os.PathLike[str] | None = setting(  # noqa: RUF009
        None, File(), "Save the state of training to this file at regular intervals."
    )
    checkpoint_every: float = setting(
        60.0, Positive(), "Save the state at intervals of this many seconds."
    )
    resume: bool = setting(
        False,
        YesOrNo(),
        "Continue from the state in the checkpoint; the model is the same as without an "
        "interruption.",
    )

    def __post_init__(self) -> None:
        for name, default, kind in _CHECKS:
            value = getattr(self, name)
            if type(value) is not type(default) or value != default:
                kind.check(name, value)
        _check_together(self)

    def derive(self, **changes: Any) -> "Settings":
        """Return a copy with changes by the package itself, which are not checked."""
        copy = object.__new__(Settings)
        copy.__dict__.update(self.__dict__, **changes)
        return copy


_CHECKS = tuple((row.name, row.default, row.metadata["kind"]) for row in fields(Settings))


def _check_together(s: Settings) -> None:
    """Raise InputError if settings contradict each other."""
    if s.nu is not None and s.model != "lpsvm":
        raise InputError(f"nu is the hinge's own smoothing in lpsvm, {s.model} has mu alone")
    if s.strong and (s.bias or s.model not in HALF_SQUARE):
        raise InputError("strong needs a strongly convex problem: csvm or lssvm without bias")
    if s.returned == "last" and s.solver not in PAPERS:
        raise InputError(f"returned 'last' is for nesvm and homotopy, got the solver {s.solver!r}")
    if s.resume and s.checkpoint is None:
        raise InputError("resume needs the checkpoint to go on from")
    if s.landmarks is not None and s.approx is None:
        raise InputError("landmarks are for approx, which must be given too")
    if s.approx is not None and s.kernel not in ("poly", "rbf"):
        raise InputError(f"approx is for poly and rbf kernels, got {s.kernel!r}")
    if s.kernel != "linear" and isinstance(s.gamma, str):
        one_of("gamma", s.gamma, ("scale", "auto"))
    if s.kernel == "poly" and (_number(s.coef0) or 0.0) < 0.0:
        raise InputError(
            "coef0 must not be negative: such a polynomial is no kernel and nothing could be "
            f"certified, got {s.coef0!r:.60}"
        )
    kernel = s.kernel != "linear" and s.approx is None
    coordinate = s.model == "csvm" if kernel else s.model in HALF_SQUARE
    names = KERNEL_SOLVERS if kernel and s.model in HALF_SQUARE else SOLVERS
    solvers = [name for name in names if coordinate or name != "coordinate"]
    if s.solver not in solvers:
        machine = f"{s.model} with a kernel" if kernel else s.model
        raise InputError(
            f"solver must be one of {', '.join(solvers)} for {machine}, got {s.solver!r}"
        )
