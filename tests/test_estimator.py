"""NESVC as scikit-learn users know estimators."""

import pytest

sklearn = pytest.importorskip("sklearn")

from nesvm_jit import NESVC  # noqa: E402
from sklearn.utils.estimator_checks import parametrize_with_checks  # noqa: E402


@parametrize_with_checks([NESVC(), NESVC(kernel="rbf")])
def test_scikit_learns_own_checks(estimator, check):
    check(estimator)
