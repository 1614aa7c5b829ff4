"""Runs that began from a given point and are taken up from a checkpoint."""

import numpy as np
import pytest
from nesvm_jit import InputError
from scipy.sparse import csr_matrix

from tests.endings import solve

OFTEN = 1e-9  # seconds


def draw(n=60, p=2500):
    """Rows too wide for a Hessian."""
    rng = np.random.default_rng(0)
    cells = (rng.random(n * 50), (np.repeat(np.arange(n), 50), rng.integers(0, p, n * 50)))
    return csr_matrix(cells, (n, p)), np.where(np.arange(n) % 2, 1.0, -1.0)


def same(a, b):
    np.testing.assert_array_equal(a.w, b.w)
    np.testing.assert_array_equal(a.alpha, b.alpha)
    assert (a.b, a.objective, a.dual_objective) == (b.b, b.objective, b.dual_objective)
    assert (a.n_iter, a.status, a.solver, a.why) == (b.n_iter, b.status, b.solver, b.why)
    for name in set(a.history) - {"seconds"}:
        np.testing.assert_array_equal(a.history[name], b.history[name])


@pytest.mark.parametrize("model", ["lpsvm", "csvm"])
def test_a_warm_start_that_auto_chose_its_smoothing_for_goes_on_to_the_same_bits(tmp_path, model):
    X, y = draw()
    rough = solve(X, y, C=1e3)
    start = {"w0": rough.w, "b0": rough.b, "C": 1e3, "tol": 1e-9, "max_iter": 90}
    whole = solve(X, y, model, **start)
    assert whole.solver == ("homotopy" if model == "lpsvm" else "coordinate")
    assert model == "csvm" or whole.history["mu"][0] < 5.0
    for k in (1, 12, 30, 80):
        kept = {"checkpoint": tmp_path / "file", **start}
        if k < whole.n_iter:
            solve(
                X,
                y,
                model,
                checkpoint_every=OFTEN,
                callback=lambda row, k=k: row["round"] == k,
                **kept,
            )
            same(solve(X, y, model, resume=True, **kept), whole)


@pytest.mark.parametrize("schedule", ["paper", "geometric", "gap"])
def test_every_stage_of_homotopy_goes_on_to_the_same_bits(tmp_path, schedule):
    X, y = draw(p=40)
    options = {"solver": "homotopy", "schedule": schedule, "mu_start": 3.0, "mu_end": 0.2}
    options |= {"epsilon": 0.5, "tol": 1e-9, "C": 0.3}
    whole = solve(X, y, **options)
    assert len(set(whole.history["mu"])) >= 3
    for k in range(1, whole.n_iter, 5):
        kept = {"checkpoint": tmp_path / "file", **options}
        solve(X, y, checkpoint_every=OFTEN, callback=lambda row, k=k: row["round"] == k, **kept)
        same(solve(X, y, resume=True, **kept), whole)


def test_a_run_from_another_dual_point_is_refused(tmp_path):
    X, y = draw(p=40)
    options = {"checkpoint": tmp_path / "file", "tol": 1e-9, "C": 3.0}
    alpha = np.full(60, 0.5)
    solve(X, y, alpha0=alpha, checkpoint_every=OFTEN, callback=lambda _: True, **options)
    for other in (None, 0.9 * alpha):
        with pytest.raises(InputError, match="of other data"):
            solve(X, y, alpha0=other, resume=True, **options)
    assert solve(X, y, alpha0=alpha, resume=True, **options).certified
