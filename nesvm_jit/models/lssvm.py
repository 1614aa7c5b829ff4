"""LS-SVM: ½‖w‖² + Σ c_i r_i², the paper's Section 3.3. Nothing needs smoothing."""

from ..kernels.loss import SQUARE
from .csvm import CSvm


class LsSvm(CSvm):
    """Dual: max Σ(α − α²/(4c)) − ½‖Σ α_i y_i x_i‖², α free, α_i = 2c_i r_i at the optimum.

    The paper's Lipschitz constant 1 + 2C max‖x‖² lacks the sum over samples, and its iteration
    diverges. With `curvature` it is 1 + 2n max c‖x‖², or the spectral constant.
    """

    name = "lssvm"
    loss = SQUARE
    smoothed = False

    def curvature(self, rows):
        return 2.0 * rows.c

    def curvature_scale(self, smoothing):
        return 1.0

    def dual_value(self, total, squares, dual_weights, most):
        # D(tα) = t Σα − t²(Σα²/(4c) + ½‖dual weights‖²), any t
        bend = squares + 0.5 * float(dual_weights @ dual_weights)
        t = 0.5 * total / bend if bend > 0.0 else 0.0
        return t * total - t * t * bend, t
