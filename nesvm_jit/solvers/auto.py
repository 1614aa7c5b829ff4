"""`auto`: which engine suits a linear problem, and when coordinate steps hand over to Newton's.

Decisions rest on shape, model and the gaps seen, never on clocks or threads: a problem has one
answer.
"""

from ..matrix.rows import Size
from ..models.base import Smoothing
from ..problems.blocks import Blocks
from .directions import WIDEST

FEW_CELLS = 50_000  # of X: below, any start costs more than it saves
NEWTON_STEPS = 8  # about as many as are left where coordinate steps stall
BLAS = 16.0  # products while one is added to a sparse place
ACTIVE = 0.5  # of the rows bend F_μ in an average step
FAR, NEAR = 1.0, 0.25  # μ to go on from a dual point whose gap is above or below ...
FAR_OFF = 0.3


def choose(data: Blocks, model: str, warm: bool) -> tuple[str, str]:
    """The engine for a linear problem, started warm or cold, and the reason for it."""
    p = data.size.cols
    if p > WIDEST and model == "lpsvm":
        return "homotopy", f"{p} features are too many for the Hessian that lpsvm needs"
    if not data.resident:
        return "newton", "the rows are not in memory, and newton takes the fewest passes"
    if p > WIDEST:
        return "coordinate", f"{p} features are too many for a Hessian, so row by row"
    if model == "csvm" and not warm and data.size.cells > FEW_CELLS:
        return "chain", ""
    return "newton", f"{p} features are few enough to factorise the Hessian"


def patience(size: Size) -> float:
    """How many epochs of coordinate steps cost as much as Newton's steps to the end."""
    n, p, cells = size.rows, size.cols, float(size.cells)
    outer = min(0.5 * cells * cells / max(n, 1), 0.5 * n * p * p / BLAS)
    step = 2.0 * cells + ACTIVE * outer + p**3 / 24.0
    return NEWTON_STEPS * step / (4.0 * max(cells, 1.0))  # a row at random costs twice its pass


def smoothing_from(gap: float) -> Smoothing:
    """Where Newton's steps go on from a dual point of this gap."""
    mu = FAR if gap > FAR_OFF else NEAR
    return Smoothing(mu, mu)
