"""What a user may ask of a fit, checked once: the same names in `solve`, `train`, the command line
and the estimator."""

import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from .errors import FormatError, InputError
from .files.text import display_name
from .matrix.checks import as_number, boolean, one_of, positive, whole_number
from .models import MODELS
from .solvers.accelerated import SCHEDULES

KERNELS = ("linear", "poly", "rbf", "precomputed")
SOLVERS = ("auto", "nesvm", "homotopy", "newton", "coordinate")
KERNEL_SOLVERS = {
    "csvm": ("auto", "nesvm", "homotopy", "newton", "coordinate"),
    "lpsvm": ("auto", "nesvm", "homotopy", "newton"),
    "lssvm": ("auto", "nesvm", "homotopy", "newton"),
}


@dataclass(frozen=True)
class Settings:
    """Which problem, which solver, when to stop.

    model: csvm ½‖w‖² and hinge, lpsvm ‖w‖₁ and hinge, lssvm ½‖w‖² and square. The bias is free.
    kernel: linear, poly (γ x·z + coef0)^degree, rbf exp(−γ‖x−z‖²) or precomputed; γ is 1/features
    by default, "scale" is 1/(features · variance). cache_mb bounds the memory for kernel rows.
    approx "nystroem" makes of poly and rbf a linear machine over features of `landmarks` rows.

    solver: nesvm (Algorithm 1 at `mu`) and homotopy (Algorithm 2 from `mu_start` to `mu_end`) are
    the paper's; newton and coordinate work on the same smoothed problem; auto chooses. `nu` is the
    hinge's own smoothing in lpsvm, `mu` if not given.

    coordinate steps go through the rows in an order drawn by `seed`.

    A run stops when the certified gap reaches `tol`, or when the solver's own rule holds
    (|ΔF_μ| < epsilon; at `mu_end`), or at a limit, or when the callback, called with a dict every
    round, returns true, or at Ctrl-C: the best point so far is returned with its certificate.

    checkpoint: a file that the state is saved to every `checkpoint_every` seconds; with `resume`
    the run goes on from it, to the same result. The callback then ends a run at the end of a round.

    Beyond the paper: lipschitz="tight", restart, strong (momentum from strong convexity, csvm and
    lssvm without bias), schedule "geometric" or "gap", moving_centre (newton: unless False).
    """

    model: str = "csvm"
    kernel: str = "linear"
    C: float = 1.0
    bias: bool = True
    solver: str = "auto"
    tol: float = 1e-3
    gamma: float | str | None = None
    degree: int = 3
    coef0: float = 0.0
    cache_mb: float | None = None
    approx: str | None = None
    landmarks: int | None = None  # 1000 with approx
    mu: float = 5.0
    nu: float | None = None
    mu_start: float = 5.0
    mu_end: float | None = None
    epsilon: float = 1e-3
    lipschitz: str | None = None
    schedule: str | None = None
    restart: bool | None = None
    strong: bool = False
    moving_centre: bool | None = None
    max_iter: int = 100_000
    time_limit: float | None = None
    seed: int = 0
    callback: Callable[[dict], object] | None = None
    checkpoint: str | os.PathLike | None = None
    checkpoint_every: float = 60.0
    resume: bool = False

    def __post_init__(self):
        one_of("model", self.model, tuple(MODELS))
        one_of("kernel", self.kernel, KERNELS)
        one_of("solver", self.solver, SOLVERS)
        for name in ("bias", "strong", "restart", "moving_centre", "resume"):
            boolean(name, getattr(self, name), none=name in ("restart", "moving_centre"))
        for name, allowed in (("lipschitz", ("paper", "tight")), ("schedule", SCHEDULES)):
            if getattr(self, name) is not None:
                one_of(name, getattr(self, name), allowed)
        for name in ("C", "mu", "mu_start", "checkpoint_every"):
            positive(name, getattr(self, name))
        for name in ("nu", "mu_end", "cache_mb"):
            if getattr(self, name) is not None:
                positive(name, getattr(self, name))
        for name in ("tol", "epsilon"):
            positive(name, getattr(self, name), zero=True)
        if self.time_limit is not None:
            positive("time_limit", self.time_limit, zero=True)
        if self.nu is not None and self.model != "lpsvm":
            raise InputError(f"nu is the hinge's own smoothing in lpsvm, {self.model} has mu alone")
        if self.callback is not None and not callable(self.callback):
            raise InputError(f"callback must be a function, got {self.callback!r:.60}")
        if self.strong and (self.bias or MODELS[self.model].strong_convexity == 0.0):
            raise InputError("strong needs a strongly convex problem: csvm or lssvm without bias")
        if self.checkpoint is not None:
            require_named_file(self.checkpoint)
        elif self.resume:
            raise InputError("resume needs the checkpoint to go on from")
        whole_number("max_iter", self.max_iter, 1)
        if self.landmarks is not None:
            whole_number("landmarks", self.landmarks, 1)
            if self.approx is None:
                raise InputError("landmarks are for approx, which must be given too")
        if self.approx is not None:
            one_of("approx", self.approx, ("nystroem",))
            if self.kernel not in ("poly", "rbf"):
                raise InputError(f"approx is for poly and rbf kernels, got {self.kernel!r}")
        whole_number("seed", self.seed, 0)
        if self.kernel != "linear":
            self._check_kernel()
        elif self.solver == "coordinate" and self.model == "lpsvm":
            raise InputError("solver coordinate serves csvm and lssvm, got model 'lpsvm'")

    def _check_kernel(self):
        if isinstance(self.gamma, str):
            one_of("gamma", self.gamma, ("scale", "auto"))
        if self.kernel == "poly" and as_number("coef0", self.coef0) < 0.0:
            raise InputError(
                "coef0 must not be negative: such a polynomial is no kernel and nothing could be "
                f"certified, got {self.coef0!r:.60}"
            )
        if self.approx is not None:
            return  # solved as a linear machine
        allowed = KERNEL_SOLVERS[self.model]
        if self.solver not in allowed:
            raise InputError(
                f"solver must be one of {', '.join(allowed)} for {self.model} with a kernel, "
                f"got {self.solver!r}"
            )


def require_named_file(path: Any) -> None:
    """Refuse what cannot be read again."""
    name = "-" if path == "-" else display_name(path)
    if not isinstance(path, (str, os.PathLike)) or path in ("", "-", "/dev/stdout"):
        raise FormatError(f"checkpoint must be the name of a file, got {name}")
