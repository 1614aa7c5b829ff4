import os

import numpy as np
import pytest
from hypothesis import HealthCheck, settings
from scipy.sparse import csr_matrix

PURE = os.environ.get("NUMBA_DISABLE_JIT") == "1"
if PURE:  # compiled code wraps around silently, NumPy's scalars warn
    np.seterr(over="ignore", invalid="ignore")

settings.register_profile(
    "default",
    deadline=None,
    max_examples=15 if PURE else 100,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
    print_blob=True,
)
settings.load_profile("default")

KINDS = ("dense float64", "dense float32", "CSR float64", "CSR float32", "dense int8", "CSR uint8")


def as_kind(X, kind):
    """The array X, rounded where the kind demands it, as a matrix of that kind."""
    layout, dtype = kind.split()
    A = np.rint(X).clip(0, 127).astype(dtype) if "int" in dtype else X.astype(dtype)
    return csr_matrix(A) if layout == "CSR" else A


def sparse_normal(n, p, seed=0, density=0.4):
    rng = np.random.default_rng(seed)
    return 3 * rng.standard_normal((n, p)) * (rng.random((n, p)) < density)


@pytest.fixture(params=KINDS)
def kind(request):
    return request.param


@pytest.fixture(params=[1, 2])
def threads(request):
    """Kernels run on one thread, then on two however small the data."""
    from nesvm_jit import get_threads, jit, set_threads

    before = get_threads()
    if before < request.param:
        pytest.skip("one core")
    set_threads(request.param)
    with jit.eager_kernels():
        yield request.param
    set_threads(before)


@pytest.fixture
def eager():
    """Kernels run on all threads however small the data."""
    from nesvm_jit import jit

    with jit.eager_kernels():
        yield
