"""The smoothed kernel machine in the kernel's own metric: F_μ(β, b) = ½βᵀKβ + Σ c_i h_μ(r_i).

A point is v = [β; f; b] with f = Kβ. Sums of points and gradients keep f = Kβ, so a round costs
only the columns of K where the dual weights h = c∘y∘u changed; the gradient is
[β − h; f − Kh; −Σh]. The inner product is that of the functions Σ β_i k(x_i, ·). Taken in β, as the
paper has it, the gradient is K times that one: two products a round, and the conditioning of K
squared.
"""

from typing import Any

import numpy as np

from ..kernels.loss import RowData, loss_about, loss_slope
from ..models.base import Model, Smoothing
from ..numerics.eigenvalues import power_iteration
from .certificate import DualPoint
from .evaluation import NO_SUMS, Evaluation
from .kernel import KernelProblem
from .lipschitz import Curved

LITTLE = 1e-8  # of what the curvature of b could be, where no row is active


class SmoothedKernel(Curved):
    """F_μ of a kernel machine. Kh is kept for the h of the last evaluation, where `kernel` stands;
    of an older one it is computed again."""

    def __init__(self, kernel: KernelProblem, model: Model):
        super().__init__()
        self.kernel, self.model, self.bias = kernel, model, kernel.bias
        n = self.n_rows = kernel.n_rows
        self._norms2 = kernel.rows.diagonal() + self.bias
        largest = kernel.rows.largest()
        s = np.maximum(largest, 1.0) if self.bias else np.where(largest > 0.0, largest, 1.0)
        self.rows = RowData(kernel.y, kernel.c, s)
        self.n_variables = 2 * n + 1

    @property
    def passes(self) -> float:
        """How often all of K has been computed."""
        return self.kernel.passes

    def parts(self, v: np.ndarray) -> tuple[np.ndarray, np.ndarray, float]:
        """β, Kβ and b of a point."""
        n = self.n_rows
        return v[:n], v[n : 2 * n], float(v[-1])

    def split(self, v: np.ndarray) -> tuple[np.ndarray, float]:
        """β and b of a point."""
        return v[: self.n_rows], float(v[-1])

    def inner(self, v: np.ndarray, other: np.ndarray) -> float:
        (beta, _, b), (_, f, b_other) = self.parts(v), self.parts(other)
        return float(beta @ f) + b * b_other

    def start(self, beta: np.ndarray, b: float = 0.0) -> np.ndarray:
        """The point of this β and b."""
        return np.concatenate([beta, self.kernel.rows.times(beta)[0], [b]])

    def state(self) -> dict[str, Any]:
        """Where the kernel problem stands, and the constants that are known."""
        return {**self.kernel.state(), "spectral": dict(self._spectral)}

    def restore(self, saved: dict[str, Any]) -> None:
        """Stand where a state was saved."""
        self.kernel.restore(saved)
        self._spectral = dict(saved["spectral"])

    # ------------------------------------------------------------ values

    def at(self, v: np.ndarray, smoothing: Smoothing, centre: np.ndarray | None = None):
        """u, F_μ(v), ∇F_μ(v), P(v), smoothed about the dual variables `centre`, or zero."""
        y, c, s = self.rows
        beta, f, b = self.parts(v)
        r = 1.0 - y * (f + b)
        half = 0.5 * float(beta @ f)
        scale, about = smoothing.loss * s, 0.0 if centre is None else centre
        u, h_mu, true = loss_about(about + r / scale, r, scale, about, self.model.loss)
        h = c * y * u
        smoothed, loss = float(c @ h_mu), float(c @ true)
        self._stand(h)
        gradient = np.concatenate(
            [beta - h, f - self.kernel.f, [-float(h.sum()) if self.bias else 0.0]]
        )
        value, P = half + smoothed, half + loss
        return Evaluation(v.copy(), smoothing, value, gradient, P, NO_SUMS, alpha=h * y, u=u)

    def _stand(self, h: np.ndarray) -> None:
        """Bring Kh up to date, afresh where much has changed."""
        changed = np.flatnonzero(h != self.kernel.beta)
        if 2 * len(changed) > np.count_nonzero(h):
            self.kernel.stand(h)
        elif len(changed):
            self.kernel.move(changed, h[changed])

    def walk(
        self, v: np.ndarray, smoothing: Smoothing, alpha: np.ndarray | None = None
    ) -> "KernelWalk":
        """Begin steps at v, smoothed about α or zero."""
        centre = None
        if alpha is not None:
            centre = np.zeros(self.n_rows)
            np.divide(alpha, self.rows.c, out=centre, where=self.rows.c > 0.0)
        return KernelWalk(self, self.at(v, smoothing, centre), centre)

    # ------------------------------------------------------------ bounds

    def suboptimality(self, at: Evaluation) -> float:
        """About what the gap owes to F_μ not being minimal at the point."""
        beta, f, b = self.parts(at.gradient)
        found = 0.5 * max(0.0, float(beta @ f))
        return found + abs(b) * max(1.0, abs(float(at.point[-1])))

    def estimate_bound(self, at: Evaluation) -> float:
        """The dual value at h, which need not be feasible yet."""
        self._stand(at.alpha * self.rows.y)
        return self.kernel.dual_value(self.kernel.beta, self.kernel.f)

    def bound(self, at: Evaluation) -> DualPoint:
        """The best feasible multiple of h, made feasible."""
        kernel = self.kernel
        self._stand(at.alpha * self.rows.y)
        beta = kernel.feasible(kernel.beta)
        changed = np.flatnonzero(beta != kernel.beta)
        f = kernel.f.copy()
        kernel.rows.add(changed, beta[changed] - kernel.beta[changed], f)
        return kernel.scaled(beta, f)

    def _steepest(self) -> float:
        return float((self.model.curvature(self.rows) * self._norms2).max(initial=0.0))

    def _largest_eigenvalue(self) -> float:
        root = np.sqrt(self.model.curvature(self.rows))

        def apply(v: np.ndarray) -> np.ndarray:
            x = root * v
            image = self.kernel.rows.times(x)[0]
            return root * (image + x.sum()) if self.bias else root * image

        return power_iteration(apply, self.n_rows)

    # ------------------------------------------------------------ curvature

    def active(self, at: Evaluation) -> tuple[np.ndarray, np.ndarray]:
        """The rows that bend F_μ at the point, and the curvature of each."""
        inside = np.flatnonzero((at.u > 0.0) & (at.u < 1.0) & (self.rows.c > 0.0))
        scale = at.smoothing.loss * self.rows.s[inside]
        return inside, self.rows.c[inside] / scale

    def bias_curvature(self, smoothing: Smoothing) -> float:
        """A little of what the curvature of b could be, for where no row bends F_μ."""
        return LITTLE * float((self.rows.c / (smoothing.loss * self.rows.s)).sum())


class KernelWalk:
    """Steps of a kernel machine: where they have led, `at`, and the dual variables that F_μ is
    smoothed about from now on."""

    def __init__(self, problem: SmoothedKernel, at: Evaluation, centre: np.ndarray | None):
        self.problem, self.at, self.centre = problem, at, centre
        self._direction = np.zeros(problem.n_variables)

    @property
    def point(self) -> np.ndarray:
        """Where the last step ended."""
        return self.at.point

    def aim(self, direction: np.ndarray) -> None:
        """Choose the direction of the next step."""
        self._direction = direction.copy()

    def slope(self, t: float, smoothing: Smoothing) -> tuple[float, float]:
        """The first two derivatives of F_μ(point + t · direction) by t."""
        problem = self.problem
        y, c, s = problem.rows
        (_, f, b), (d, m, d_b) = problem.parts(self.point), problem.parts(self._direction)
        ym = y * (m + d_b)
        r = 1.0 - y * (f + b) - t * ym
        first, second = float(d @ f) + t * float(d @ m), float(d @ m)
        steep = 1.0 / (smoothing.loss * s)
        z = (0.0 if self.centre is None else self.centre) + r * steep
        u, bend = loss_slope(z, r, steep, problem.model.loss)
        return first - float((c * ym) @ u), second + float((c * bend * ym) @ ym)

    def step(self, t: float, smoothing: Smoothing) -> Evaluation:
        """Go t along the direction."""
        point = self.point + t * self._direction if t != 0.0 else self.point
        self.at = self.problem.at(point, smoothing, self.centre)
        return self.at

    def recentre(self) -> None:
        """Smooth about the dual variables of the last step from now on."""
        self.centre = self.at.u
