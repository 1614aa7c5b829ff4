import os
import signal
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import HealthCheck, settings

from .data import KINDS

PURE = os.environ.get("NUMBA_DISABLE_JIT") == "1"
if PURE:  # compiled code wraps around silently, NumPy's scalars warn
    np.seterr(over="ignore", invalid="ignore")

# What is tested is compiled, in commands too; tests of runs that are interpreted take this away.
os.environ["NESVM_JIT_TIER"] = "compiled"

settings.register_profile(
    "default",
    deadline=None,
    max_examples=15 if PURE else 100,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
    print_blob=True,
)
settings.load_profile("default")


@pytest.fixture(autouse=True)
def _signals():
    """Every test finds Ctrl-C and the end of a terminal as Python sets them up: shells start
    programs in the background without the one, `nohup` without the other, and commands that ran
    before may have kept them."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    if hasattr(signal, "SIGHUP"):
        signal.signal(signal.SIGHUP, signal.SIG_DFL)


# What is compiled in `make test`; the other types and threads, seconds of compiling each, wait for
# `make test-slow`. Plain Python runs them all.
COMPILED = {
    ("dense float64", 1),
    ("dense float64", 2),
    ("dense float32", 1),
    ("CSR float64", 1),
    ("CSR float32", 1),
    ("CSR float32", 2),
}


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    for item in [] if PURE else items:
        params = getattr(getattr(item, "callspec", None), "params", {})
        threads = params.get("threads", 2 if "small_chunks" in item.fixturenames else 1)
        if any(kind in item.name and (kind, threads) not in COMPILED for kind in KINDS):
            item.add_marker(pytest.mark.slow)


@pytest.fixture
def one_thread():
    """Kernels run on one thread."""
    from nesvm_jit import get_threads, set_threads

    before = get_threads()
    set_threads(1)
    yield
    set_threads(before)


@pytest.fixture
def time(monkeypatch):
    """The seconds of `clock`, which pass only where a test sets `now`."""
    fake = SimpleNamespace(now=100.0)
    fake.perf_counter = lambda: fake.now
    monkeypatch.setattr("nesvm_jit.clock.time", fake)
    return fake


@pytest.fixture(params=KINDS)
def kind(request):
    return request.param


@pytest.fixture(params=[1, 2])
def threads(request, small_chunks):
    """Kernels run on one thread, then on two however small the data."""
    from nesvm_jit import get_threads, set_threads

    before = get_threads()
    if before < request.param:
        pytest.skip("one core")
    set_threads(request.param)
    yield request.param
    set_threads(before)


@pytest.fixture
def small_chunks(monkeypatch):
    """Rows are cut into chunks of a few numbers, so that all threads have work however small the
    data."""
    from nesvm_jit import jit

    monkeypatch.setattr(jit.chunks, "CHUNK_WORK", 8)


@pytest.fixture
def small_blocks(monkeypatch):
    """Matrices on disk are read in blocks of a few rows."""
    from nesvm_jit.problems import blocks

    monkeypatch.setattr(blocks, "BLOCK_BYTES", 5_000)


@pytest.fixture
def small_text_blocks(monkeypatch):
    """Text is converted in blocks of a few lines."""
    from nesvm_jit.files.ondisk import convert as converting

    def small(*args, **options):
        return convert(*args, **options, block_bytes=200)

    convert = converting.convert
    monkeypatch.setattr(converting, "convert", small)


@pytest.fixture
def engines_only(monkeypatch):
    """No fit is so small that one compiled call makes it: for tests of the engines."""
    monkeypatch.setattr("nesvm_jit.binary.small.MOST_CELLS", 0)
    monkeypatch.setattr("nesvm_jit.binary.small.MOST_ROWS", 0)
