"""The smoothed kernel machine in the kernel's own metric: F_μ(β, b) = ½βᵀKβ + Σ c_i h_μ(r_i).

A point is v = [β; f; b] with f = Kβ. Sums of points and gradients keep f = Kβ, so a round costs
only the columns of K where the dual weights h = c∘y∘u changed; the gradient is
[β − h; f − Kh; −Σh]. The inner product is that of the functions Σ β_i k(x_i, ·). Taken in β, as the
paper has it, the gradient is K times that one: two products a round, and the conditioning of K
squared.
"""

import numpy as np

from ..kernels.sweep import HINGE, Rows
from .base import Model, Smoothing
from .curved import Curved, power_iteration
from .kernel_problem import KernelProblem
from .problem import DualPoint, Evaluation

LITTLE = 1e-8  # of what the curvature of b could be, where no row is active


class SmoothedKernel(Curved):
    """A point to step from and F_μ there; `kernel` stands at the dual weights h of the point."""

    def __init__(self, kernel: KernelProblem, model: Model):
        super().__init__()
        self.kernel, self.model, self.bias = kernel, model, kernel.bias
        n = self.n_rows = kernel.n_rows
        self._norms2 = kernel.rows.diagonal() + self.bias
        largest = kernel.rows.largest()
        s = np.maximum(largest, 1.0) if self.bias else np.where(largest > 0.0, largest, 1.0)
        self.rows = Rows(kernel.y, kernel.c, s)
        self.n_variables = 2 * n + 1
        self.centre, self.u = np.zeros(n), np.zeros(n)
        self.point = self._step = np.zeros(self.n_variables)

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

    # ------------------------------------------------------------ values

    def evaluate(self, v: np.ndarray, smoothing: Smoothing) -> Evaluation:
        """u, F_μ(v), ∇F_μ(v), P(v)."""
        y, c, _ = self.rows
        beta, f, b = self.parts(v)
        r = 1.0 - y * (f + b)
        half = 0.5 * float(beta @ f)
        if self.model.loss == HINGE:
            scale = smoothing.loss * self.rows.s
            self.u = np.clip(self.centre + r / scale, 0.0, 1.0)
            h = c * y * self.u
            smoothed = float(c @ (self.u * r - 0.5 * scale * (self.u - self.centre) ** 2))
            loss = float(c @ np.maximum(r, 0.0))
        else:
            h = 2.0 * c * y * r
            smoothed = loss = float(c @ (r * r))
        self._stand(h)
        gradient = np.concatenate(
            [beta - h, f - self.kernel.f, [-float(h.sum()) if self.bias else 0.0]]
        )
        return Evaluation(half + smoothed, gradient, half + loss)

    def _stand(self, h: np.ndarray) -> None:
        """Bring Kh up to date, afresh where much has changed."""
        changed = np.flatnonzero(h != self.kernel.beta)
        if 2 * len(changed) > np.count_nonzero(h):
            self.kernel.stand(h)
        else:
            self.kernel.move(changed, h[changed])

    def excess(self, v: np.ndarray, found: Evaluation) -> float:
        """About what the gap owes to F_μ not being minimal at the point just evaluated."""
        beta, f, b = self.parts(found.gradient)
        excess = 0.5 * max(0.0, float(beta @ f))
        return excess + abs(b) * max(1.0, abs(float(v[-1])))

    # ------------------------------------------------------------ bounds

    def bound_now(self) -> float:
        """The dual value at h, which need not be feasible yet."""
        return self.kernel.dual_value(self.kernel.beta, self.kernel.f)

    def dual(self) -> DualPoint:
        """The best feasible multiple of h, made feasible."""
        kernel = self.kernel
        beta = kernel.feasible(kernel.beta)
        changed = np.flatnonzero(beta != kernel.beta)
        f = kernel.f.copy()
        kernel.rows.add(changed, beta[changed] - kernel.beta[changed], f)
        return kernel.scaled(beta, f)

    def value_of(self, alpha: np.ndarray) -> DualPoint:
        """A feasible α and its value, added up afresh."""
        return self.kernel.value_of(alpha)

    def _steepest(self) -> float:
        return float((self.model.curvature(self.rows) * self._norms2).max(initial=0.0))

    def _largest_eigenvalue(self) -> float:
        root = np.sqrt(self.model.curvature(self.rows))

        def apply(v: np.ndarray) -> np.ndarray:
            x = root * v
            image = self.kernel.rows.times(x)[0]
            return root * (image + x.sum()) if self.bias else root * image

        return power_iteration(apply, self.n_rows)

    # ------------------------------------------------------------ steps

    def place(
        self, v: np.ndarray, smoothing: Smoothing, alpha: np.ndarray | None = None
    ) -> Evaluation:
        """Start steps at v, smoothed about α (or zero)."""
        self.point = v.copy()
        self.centre = np.zeros(self.n_rows)
        if alpha is not None:
            np.divide(alpha, self.rows.c, out=self.centre, where=self.rows.c > 0.0)
        return self.evaluate(self.point, smoothing)

    def aim(self, direction: np.ndarray) -> None:
        """Choose the direction of the next step."""
        self._step = direction

    def slope(self, t: float, smoothing: Smoothing) -> tuple[float, float]:
        """The first two derivatives of F_μ(point + t · direction) by t."""
        y, c, s = self.rows
        (_, f, b), (d, m, d_b) = self.parts(self.point), self.parts(self._step)
        ym = y * (m + d_b)
        r = 1.0 - y * (f + b) - t * ym
        first, second = float(d @ f) + t * float(d @ m), float(d @ m)
        if self.model.loss != HINGE:
            return first - 2.0 * float((c * ym) @ r), second + 2.0 * float((c * ym) @ ym)
        steep = 1.0 / (smoothing.loss * s)
        z = self.centre + r * steep
        bent = (z > 0.0) & (z < 1.0)
        first -= float((c * ym) @ np.clip(z, 0.0, 1.0))
        return first, second + float((c * steep * bent * ym) @ ym)

    def step(self, t: float, smoothing: Smoothing) -> Evaluation:
        """Go t along the direction."""
        if t != 0.0:
            self.point += t * self._step
        return self.evaluate(self.point, smoothing)

    def recentre(self, smoothing: Smoothing) -> None:
        """Smooth about the dual variables of the last step from now on."""
        self.centre = self.u.copy()

    def active(self, smoothing: Smoothing) -> tuple[np.ndarray, np.ndarray]:
        """The rows that bend F_μ at the point, and the curvature of each."""
        inside = np.flatnonzero((self.u > 0.0) & (self.u < 1.0) & (self.rows.c > 0.0))
        scale = smoothing.loss * self.rows.s[inside]
        return inside, self.rows.c[inside] / scale

    def bias_curvature(self, smoothing: Smoothing) -> float:
        """A little of what the curvature of b could be, for where no row bends F_μ."""
        return LITTLE * float((self.rows.c / (smoothing.loss * self.rows.s)).sum())
