"""How far the exact optimum can be from a point with a certificate, and what follows for scores.

P is strongly convex in w: ½‖w − w*‖² ≤ P(w, b) − P*, so that w* is in a ball about w of radius
R = √(2(P − D)), and x·w* within R‖x‖ of x·w. An optimal b is best for w*: a weighted quantile (or
mean) of e_i = y_i − x_i·w*, which grows with every e_i, so that bounds of these bound b. Kernels
alike, with √k(x, x) for ‖x‖. docs/certificate.md has the proof.
"""

import numpy as np

from ..kernels.loss import HINGE
from .rounding import above, growth, up


def radius_of(objective: float, dual_objective: float) -> float:
    """R = √(2(P − D)) or a little more."""
    between = max(objective - dual_objective, 0.0)
    return above(float(np.sqrt(2.0 * up(between))), 3) if between > 0.0 else 0.0


def bias_range(
    y: np.ndarray, c: np.ndarray, products: np.ndarray, off: np.ndarray, loss: int
) -> tuple[float, float]:
    """Bounds of every b that is optimal for some products x_i·w within `off` of these."""
    used = c > 0.0
    y, c, e, off = y[used], c[used], (y - products)[used], off[used]
    if not (len(e) and np.isfinite(e).all() and np.isfinite(off).all()):
        return -np.inf, np.inf
    off = above(off + growth(4.0) * (1.0 + np.abs(e)), 4)
    total = float(c.sum())
    if loss != HINGE:
        spread = float(c @ off) / total
        slip = growth(2.0 * len(e) + 8.0) * float(c @ (np.abs(e) + off)) / total
        mean = float(c @ e) / total
        half = above(spread + slip, 4)
        return mean - half, mean + half
    # b is least where Σ{c_i : e_i ≤ b} first reaches the cost of all positive rows, and largest
    # where it first exceeds it
    positive, doubt = float(c[y > 0].sum()), growth(2.0 * len(e) + 8.0) * total
    low, high = e - off, e + off
    by_least, by_most = low.argsort(kind="stable"), high.argsort(kind="stable")
    low, high = low[by_least], high[by_most]
    by_low, by_high = c[by_least].cumsum(), c[by_most].cumsum()
    first = int(by_low.searchsorted(positive - doubt))
    last = int(by_high.searchsorted(positive + doubt, side="right"))
    least = -np.inf if positive <= doubt or first == len(e) else float(low[first])
    return least, np.inf if last == len(e) else float(high[last])
