"""LP-SVM: ‖w‖₁ + Σ c_i max(0, r_i), the paper's Section 3.2, smoothed in both parts."""

import numpy as np

from ..kernels.loss import HINGE, l1_bends, l1_u


class LpSvm:
    """Dual: max Σα over 0 ≤ α ≤ c with ‖Σ α_i y_i x_i‖_∞ ≤ 1."""

    name = "lpsvm"
    loss = HINGE
    smoothed = True
    smoothed_penalty = True
    strong_convexity = 0.0

    def true_penalty(self, w):
        return float(np.abs(w).sum())

    def penalty(self, w, smoothing, centre=0.0):
        u = l1_u(centre + w / smoothing.penalty)
        offset = u - centre
        return self.true_penalty(w), float(u @ w - 0.5 * smoothing.penalty * (offset @ offset))

    def penalty_gradient(self, w, smoothing, out, centre=0.0):
        out[:] = l1_u(centre + w / smoothing.penalty)

    def penalty_curvature(self, w, smoothing, centre=0.0):
        return l1_bends(centre + w / smoothing.penalty) / smoothing.penalty

    def penalty_slope(self, w, d, t, smoothing, centre=0.0):
        z = centre + (w + t * d) / smoothing.penalty
        bent = d[l1_bends(z)]
        return float(d @ l1_u(z)), float(bent @ bent) / smoothing.penalty

    def penalty_lipschitz(self, smoothing):
        return 1.0 / smoothing.penalty

    def curvature(self, rows):
        return rows.c / rows.s

    def curvature_scale(self, smoothing):
        return 1.0 / smoothing.loss

    def suboptimality(self, w, gradient, objective):
        # F_μ(w) − F_μ* ≤ g·(w − w*) ≤ ‖g‖_∞ (‖w‖₁ + ‖w*‖₁), and the dual point must be scaled
        # down by up to 1 + ‖g‖_∞, since Σ α y x = ∇R_μ − g and |∇R_μ| ≤ 1
        size = 2.0 * float(np.abs(w).sum()) + objective
        return float(np.abs(gradient).max(initial=0.0)) * size

    def dual_value(self, total, squares, dual_weights, most):
        largest = float(np.abs(dual_weights).max(initial=0.0))
        t = min(most, 1.0 / largest) if largest > 0.0 else most
        return t * total, t
