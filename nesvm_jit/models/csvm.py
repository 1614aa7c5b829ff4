"""C-SVM: ½‖w‖² + Σ c_i max(0, r_i), the paper's Section 3.1."""

from ..kernels.loss import HINGE


class CSvm:
    """Dual: max Σα − ½‖Σ α_i y_i x_i‖² over 0 ≤ α ≤ c."""

    name = "csvm"
    loss = HINGE
    smoothed = True
    smoothed_penalty = False
    strong_convexity = 1.0

    def true_penalty(self, w):
        return 0.5 * float(w @ w)

    def penalty(self, w, smoothing, centre=0.0):
        half = self.true_penalty(w)
        return half, half

    def penalty_gradient(self, w, smoothing, out, centre=0.0):
        out[:] = w

    def penalty_curvature(self, w, smoothing, centre=0.0):
        return 1.0

    def penalty_slope(self, w, d, t, smoothing, centre=0.0):
        square = float(d @ d)
        return float(w @ d) + t * square, square

    def penalty_lipschitz(self, smoothing):
        return 1.0

    def curvature(self, rows):
        return rows.c / rows.s

    def curvature_scale(self, smoothing):
        return 1.0 / smoothing.loss

    def suboptimality(self, w, gradient, objective):
        return 0.5 * float(gradient @ gradient)  # by strong convexity; it is the smoothed gap, too

    def dual_value(self, total, squares, dual_weights, most):
        # D(tα) = t Σα − ½t²‖dual weights‖²
        norm2 = float(dual_weights @ dual_weights)
        t = min(most, float(total) / norm2) if norm2 > 0.0 else most
        return t * total - 0.5 * t * t * norm2, t
