"""Interpreted first, compiled when hot: which runs are which, and that both say the same."""

import contextvars
import os
import subprocess
import sys
import threading
from types import SimpleNamespace

import nesvm_jit
import numpy as np
import pytest
from nesvm_jit import InputError, jit, solve, train
from nesvm_jit.jit import cache as codecache
from nesvm_jit.jit import tier
from nesvm_jit.kernels.loss import _project_l1
from nesvm_jit.matrix.checks import as_matrix

from .conftest import PURE

pytestmark = pytest.mark.skipif(PURE, reason="nothing is compiled")


@pytest.fixture(autouse=True)
def auto(monkeypatch):
    """As users have it, in a process that has not interpreted anything yet."""
    monkeypatch.delenv("NESVM_JIT_TIER")
    monkeypatch.setattr(tier, "_kinds", {})


def rows(n=40, p=3, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, p))
    return X, np.where(X[:, 0] + 0.5 * rng.standard_normal(n) > 0, 1.0, -1.0)


def loop_of(work, compiled=False, price=tier.COMPILE):
    ready = {"compiled_for": lambda _: compiled, "price": price}
    return SimpleNamespace(name="loop", work=lambda *_: work, **ready)


class Cold(tier.Trial):
    """A trial that nothing would end."""

    def __init__(self):
        super().__init__(tier.Kind())
        self.price = np.inf


def interpreted(run, *args, **given):
    """What a run returns that is interpreted to its end."""
    with tier._mode(Cold()):
        return run(*args, **given)


# ---------------------------------------------------------------- what a run costs


def test_work_is_the_numbers_in_all_arrays():
    a, b = np.zeros((3, 4)), np.zeros(5)
    assert tier.cells() == 0
    assert tier.cells(1, "x", a, (b, (a, 2.0)), None) == 12 + 5 + 12


def test_work_that_is_not_about_the_numbers_in_arrays():
    @jit.takes(lambda x, times: times * x.size)
    @jit.loop
    def body(x, times):
        return x

    assert body.work(np.zeros(3), 7) == 21
    assert jit.loop(lambda x: x).work(np.zeros(3)) == 3


@pytest.mark.parametrize(
    ("numba_loaded", "ready", "kept", "price"),
    [
        (False, False, False, tier.IMPORT + tier.COMPILE),
        (True, False, False, tier.COMPILE),
        (True, False, True, tier.LOAD),
        (True, True, True, 0.0),
    ],
)
def test_the_price_of_compiled_code(monkeypatch, numba_loaded, ready, kept, price):
    if not numba_loaded:
        monkeypatch.delitem(sys.modules, "numba", raising=False)
    else:
        monkeypatch.setitem(sys.modules, "numba", "loaded")
    monkeypatch.setattr(tier, "is_kept", lambda name, described: kept)
    trial = tier.Trial(tier.Kind())
    if ready:
        with pytest.raises(tier.TooMuchWork):
            trial.note(loop_of(1, ready), (1.0,))
    else:
        trial.note(loop_of(100), (1.0,))
        trial.note(loop_of(100), (2.0,))  # the same code
        assert trial.seconds == 2 * (tier.CALL + 100 * tier.CELL)
    assert trial.price == price
    if not ready:
        trial.note(loop_of(0), (np.zeros(2),))
        assert trial.price == price + (tier.LOAD if kept else tier.COMPILE)


def test_a_call_that_takes_longer_than_compiling_is_not_begun(monkeypatch):
    monkeypatch.setitem(sys.modules, "numba", "loaded")
    monkeypatch.setattr(tier, "is_kept", lambda name, described: False)
    enough = (tier.COMPILE - tier.CALL) / tier.CELL
    tier.Trial(tier.Kind()).note(loop_of(0.99 * enough), ())
    with pytest.raises(tier.TooMuchWork):
        tier.Trial(tier.Kind()).note(loop_of(1.01 * enough), ())


def test_a_loop_that_takes_long_to_compile_is_interpreted_for_longer(monkeypatch):
    monkeypatch.setitem(sys.modules, "numba", "loaded")
    monkeypatch.setattr(tier, "is_kept", lambda name, described: False)
    enough = (9.0 - tier.CALL) / tier.CELL
    tier.Trial(tier.Kind()).note(loop_of(0.99 * enough, price=9.0), ())
    with pytest.raises(tier.TooMuchWork):
        tier.Trial(tier.Kind()).note(loop_of(1.01 * enough, price=9.0), ())
    body = jit.takes(lambda *_: 1, price=9.0)(jit.loop(lambda x: x))
    assert (body.price, jit.loop(lambda x: x).price) == (9.0, tier.COMPILE)


def test_types_of_arguments_are_told_alike_with_and_without_numba():
    X, _ = rows()
    packed = as_matrix(jit_csr(X))
    readonly = X.view()
    readonly.flags.writeable = False
    from numba import typeof

    for a in (
        *(X, readonly, X.T, X[::2, ::2], X.astype(np.float32), np.zeros(3, np.uint8)),
        *(packed, (packed, 1.0), (X, X), 3, 2.5, True, (1, 2), np.float32(1.0)),
        nesvm_jit.kernels.public.as_spec("rbf", 0.5, 0.0, 3, 2),
    ):
        assert tier.describe((a,)) == codecache.describe_types([typeof(a)])


def jit_csr(X):
    from scipy.sparse import csr_matrix

    return csr_matrix(X)


def test_code_that_is_kept_or_ready_is_found_without_compiling():
    u = np.zeros(3)
    args = np.array([-9.0, 0.25, 9.0]), 0.5, u
    _project_l1(1, *args)
    described = tier.describe(args)
    assert _project_l1.compiled_for(described)
    assert codecache.is_kept(_project_l1.name, described)
    for wrong in (described + ",x", tier.describe(args[:2])):
        assert not _project_l1.compiled_for(wrong)
        assert not codecache.is_kept(_project_l1.name, wrong)
    assert not codecache.is_kept(_project_l1.name + "x", described)


def test_nothing_is_kept_where_the_cache_is_off(monkeypatch):
    monkeypatch.setattr(codecache, "cache_folders", lambda: pytest.fail("looked for"))
    monkeypatch.setenv("NESVM_JIT_CACHE", "0")
    assert not codecache.is_kept(_project_l1.name, "")


# ---------------------------------------------------------------- interpreted, then compiled


def run_of(log, work=lambda: 0.0):
    """A run that notes how it is run."""

    @tier.interpreted_first
    def run(*args, **given):
        trial = tier.trial.get()
        log.append("compiled" if trial is None else "interpreted")
        if trial is not None:
            trial.note(loop_of(work() / tier.CELL), ())
        log.append(given.get("time_limit", "done"))
        return args

    return run


@pytest.fixture
def priced(monkeypatch):
    """Compiled code costs a second."""
    monkeypatch.setattr(tier, "_price", lambda loop, described: 1.0)
    monkeypatch.setitem(sys.modules, "numba", "loaded")


def test_a_small_run_is_interpreted_and_a_large_one_begun_again(priced):
    log = []
    assert run_of(log)(1, 2) == (1, 2)
    assert run_of(log, lambda: 2.0)(3) == (3,)
    assert log == ["interpreted", "done", "interpreted", "compiled", "done"]


def test_small_runs_are_compiled_when_there_have_been_many(priced):
    log = []
    run = run_of(log, lambda: 0.4)
    for _ in range(4):
        run()
    # the third would bring all of them to 1.2 seconds
    assert log == [*["interpreted", "done"] * 2, "interpreted", *["compiled", "done"] * 2]
    run("another kind", 1.0)
    assert log[-2:] == ["interpreted", "done"]


def test_seconds_of_earlier_runs_are_held_against_all_loops_that_these_met(priced):
    log = []

    @tier.interpreted_first
    def run():
        trial = tier.trial.get()
        log.append("compiled" if trial is None else "interpreted")
        if trial is not None:
            for kind in range(3):  # three loops, a second each to compile
                trial.note(loop_of(0.3 / tier.CELL), (np.zeros((1,) * (kind + 1)),))

    for _ in range(4):
        run()
    # two seconds are above the price of the first loop, and below that of all three
    assert log == [*["interpreted"] * 4, "compiled"]


@pytest.mark.parametrize("name", ["checkpoint", "state"])
def test_a_run_that_can_be_resumed_is_compiled(priced, name):
    log = []
    run_of(log)(**{name: "file"})
    run_of(log)(**{name: None})
    assert log == ["compiled", "done", "interpreted", "done"]


def test_all_of_a_run_is_in_one_mode_in_its_threads_too(priced):
    log, found = [], []
    inner = run_of(log)

    @tier.interpreted_first
    def outer():
        inner()
        context = contextvars.copy_context()
        thread = threading.Thread(target=context.run, args=(inner,))
        thread.start()
        thread.join()
        found.append(tier.trial.get())

    outer()
    with jit.compiled():
        outer()
    assert log == [*["interpreted", "done"] * 2, *["compiled", "done"] * 2]
    assert isinstance(found[0], tier.Trial)
    assert found[1] is None
    assert tier.trial.get() is None


def test_an_error_ends_the_mode(priced):
    @tier.interpreted_first
    def fail():
        raise KeyError

    with pytest.raises(KeyError):
        fail()
    assert tier.trial.get() is None
    assert tier._decided.get() is False


def test_what_is_begun_again_has_what_is_left_of_its_time(priced, monkeypatch):
    times = iter([10.0, 12.5, 10.0, 99.0, 10.0, 10.125, 10.0, 10.5, 10.0, 10.5])
    monkeypatch.setattr(tier.time, "monotonic", lambda: next(times))
    log = []
    run_of(log, lambda: 2.0)(time_limit=60)
    run_of(log, lambda: 2.0)(1, time_limit=60.0)
    run_of(log, lambda: 2.0)(1, 2, time_limit=0.25)
    run_of(log, lambda: 2.0)(1, 2, 3, time_limit=0)
    run_of(log, lambda: 2.0)("x", time_limit="wrong")
    assert [entry for entry in log if entry not in ("compiled", "interpreted")] == [
        57.5,
        1e-3,
        0.125,
        0,
        "wrong",
    ]


def test_compiled_code_can_be_asked_for(priced, monkeypatch):
    log = []
    for value, mode in (("compiled", "compiled"), ("auto", "interpreted")):
        monkeypatch.setenv("NESVM_JIT_TIER", value)
        run_of(log)(value)
        assert log[-2] == mode
    monkeypatch.setenv("NESVM_JIT_TIER", "fast")
    with pytest.raises(InputError, match=r"^NESVM_JIT_TIER must be auto or compiled, got 'fast'$"):
        run_of(log)()


# ---------------------------------------------------------------- both say the same


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize(
    "given",
    [
        {},
        {"C": 100.0},
        {"solver": "nesvm", "max_iter": 400},
        {"solver": "coordinate"},
        {"model": "lpsvm"},
        {"model": "lssvm"},
        {"kernel": "rbf"},
        {"kernel": "rbf", "solver": "newton"},
        {"kernel": "poly", "model": "lssvm"},
    ],
    ids=str,
)
@pytest.mark.filterwarnings("ignore::nesvm_jit.NotCertifiedWarning")
def test_an_interpreted_run_agrees_to_rounding(packed, given):
    X, y = rows(60, 4)
    X = jit_csr(X) if packed else X
    with jit.compiled():
        expect = solve(X, y, **given)
    got = interpreted(solve, X, y, **given)
    assert got.certified == expect.certified
    assert got.dual_objective <= expect.objective * (1 + 1e-12)
    assert expect.dual_objective <= got.objective * (1 + 1e-12)
    assert got.objective == pytest.approx(expect.objective, rel=2e-3)


def test_sub_problems_of_a_machine_are_all_interpreted_or_all_compiled(monkeypatch, engines_only):
    X, _ = rows(60, 4)
    y = np.arange(60) % 3
    modes = []
    real = sys.modules["nesvm_jit.machine.train"].solve_checked

    def noted(*args, **given):
        modes.append(tier.trial.get() is None)
        return real(*args, **given)

    monkeypatch.setattr("nesvm_jit.machine.train.solve_checked", noted)
    monkeypatch.setattr(tier, "_price", lambda loop, described: np.inf)
    first = train(X, y, C=0.1)
    assert modes == [False] * 3
    modes.clear()
    with jit.compiled():
        second = train(X, y, C=0.1)
    assert modes == [True] * 3
    np.testing.assert_allclose(first.record.weights, second.record.weights, rtol=0, atol=0.05)


COLD = """
import os, sys
from nesvm_jit import NESVC, read_libsvm, train
X, y = read_libsvm(sys.argv[1])
machine = train(X, y, kernel=sys.argv[2])
labels = machine.predict(X)
print(machine.gap <= 1e-3 * machine.problems[0]["objective"], (labels == y).mean() > 0.8)
print("numba" in sys.modules, sum(len(files) for *_, files in os.walk(sys.argv[3])))
"""


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_a_small_cold_run_compiles_nothing_and_imports_no_numba(tmp_path, kernel):
    X, y = rows(150, 5)
    nesvm_jit.write_libsvm(tmp_path / "data", jit_csr(X), y)
    cache = tmp_path / "cache"
    ended = subprocess.run(
        [sys.executable, "-c", COLD, str(tmp_path / "data"), kernel, str(cache)],
        env={**os.environ, "NESVM_JIT_CACHE_DIR": str(cache)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert ended.stdout.splitlines() == ["True True", "False 0"]
