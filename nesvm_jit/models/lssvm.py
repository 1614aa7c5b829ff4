"""LS-SVM: ½‖w‖² + Σ c_i r_i², the paper's Section 3.3. Nothing needs smoothing."""

from ..kernels.sweep import SQUARE
from .base import tilt
from .csvm import CSvm


class LsSvm(CSvm):
    """Dual: max Σ(α − α²/(4c)) − ½‖Σ α_i y_i x_i‖², α free, α_i = 2c_i r_i at the optimum.

    The paper's Lipschitz constant 1 + 2C max‖x‖² forgets the sum over samples; its iteration
    diverges. `curvature` gives 1 + 2n max c‖x‖² or the spectral constant instead.
    """

    name = "lssvm"
    loss = SQUARE
    smoothed = False

    def curvature(self, rows):
        return 2.0 * rows.c

    def curvature_scale(self, smoothing):
        return 1.0

    def dual_value(self, total, squares, direction, most):
        # D(tα) = t Σα − t²(Σα²/(4c) + ½‖direction‖²), any t
        bend = squares + 0.5 * float(direction @ direction)
        t = 0.5 * total / bend if bend > 0.0 else 0.0
        return t * total - t * t * bend, t

    def balanced(self, part, alpha):
        # the nearest point in the metric of the dual, Σ(Δα)²/(4c)
        share = part.reduced(tilt, (alpha,)) / part.facts.costs
        return [part.mapped(_shifted, (alpha,), (share,))]


def _shifted(rows, alpha, share):
    return alpha - rows.c * rows.y * share
