"""Newton's direction −H⁻¹g: by factorising H, or by conjugate gradients where it has too many
columns."""

import itertools

import numpy as np

from ..numerics.cholesky import factor_of, solve_factored, solve_ridged
from ..numerics.conjugate_gradients import begin, conjugate_gradients
from ..problems.walk import Walk

WIDEST = 2000  # columns of H up to which it is factorised: beyond, that costs more than it saves
RIDGE = 1e-6  # share of H's largest diagonal entry, added to H where it may be singular
FORCING = 0.05  # share of ‖g‖, in the preconditioner's norm, that conjugate gradients may leave
MOST_PRODUCTS = 500  # with H, after which conjugate gradients end with what they have


def direction(walk: Walk, gradient: np.ndarray, widest: int = WIDEST) -> np.ndarray:
    """−H⁻¹g, or near it."""
    solve = factorised if walk.problem.n_variables <= widest else iterated
    return solve(walk, gradient)


def factorised(walk: Walk, gradient: np.ndarray) -> np.ndarray:
    """−H⁻¹g; H is ridged until it can be factorised (LP-SVM's may be singular)."""
    if walk.factor is not None:
        return -solve_factored(walk.factor, gradient)

    def descent(factor: np.ndarray) -> np.ndarray | None:
        found = -solve_factored(factor, gradient)
        if not (np.isfinite(found).all() and float(found @ gradient) < 0.0):
            return None
        if not walk.problem.model.smoothed:  # nothing will change H
            walk.factor = factor
        return found

    found = solve_ridged(walk.hessian(), factor_of, descent)
    return -gradient if found is None else found


def iterated(walk: Walk, gradient: np.ndarray) -> np.ndarray:
    """d with Hd near −g by conjugate gradients, preconditioned with the diagonal of H.

    Every d on the way is a direction of descent; near the end few products suffice.
    """
    diagonal = walk.hessian_diagonal()
    ridge = 0.0
    if walk.problem.model.strong_convexity == 0.0:  # H may be singular
        ridge = RIDGE * float(diagonal.max(initial=0.0)) or 1.0
    scale = 1.0 / (diagonal + ridge)
    enough = FORCING**2 * float(gradient @ (scale * gradient))
    d = np.zeros_like(gradient)

    def apply(D: np.ndarray) -> np.ndarray:
        return (walk.hessian_times(D[0]) + ridge * D[0])[None]

    def precondition(R: np.ndarray) -> np.ndarray:
        return scale * R

    products = conjugate_gradients(apply, precondition, begin(-gradient[None], precondition))
    for found in itertools.islice(products, MOST_PRODUCTS):
        d = found.S[0]
        if found.flat or found.rest[0] <= enough:
            break
    return d if d.any() else -gradient
